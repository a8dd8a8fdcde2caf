//! Gives the user's terminal back when nobody else can.
//!
//! A supervisor that is killed cannot restore anything. So while it has the terminal, a second
//! process sleeps beside it, which holds the terminal, what its modes were, and a pipe whose other
//! end only the supervisor has. When that end closes, it restores the modes and undoes what was
//! done to the screen; a supervisor that gives the terminal back itself ends it before.
//!
//! It is in a session of its own with every signal blocked, so neither keys nor the end of a shell
//! or of a whole job reach it, and it may set modes from the background. It is a copy of the
//! supervisor, which shares its pages with it and is small: a relay is only for programs whose whole
//! purpose is one session.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::terminal::{self, Modes};
use ringfence_sys::wait::Child;
use ringfence_sys::{Errno, Signal, Subject, descriptors, events, process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{pread, pwrite, read, retry_on_intr, write};
use rustix::process::chdir;
use rustix::stdio::{stderr, stdin, stdout};

/// No more than this is ever said to undo something.
const LONGEST: usize = 510;
/// How long a screen may take to be ready for it.
const SOON: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// What has to be written to the screen to undo what was done to it, where a guardian reads it when
/// nobody can tell it any more: its length in two bytes, and the bytes.
#[derive(Debug)]
pub(super) struct Undo {
    file: OwnedFd,
    written: Vec<u8>,
}

impl Undo {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self {
            file: events::memory_file(c"ringfence-undo")?,
            written: Vec::new(),
        })
    }

    /// Replaces it. Programs change the screen's state rarely, so mostly there is nothing to do.
    pub(super) fn remember(&mut self, undo: Vec<u8>) {
        if undo == self.written || undo.len() > LONGEST {
            return;
        }
        let length = u16::try_from(undo.len()).unwrap_or(0);
        let mut record = length.to_le_bytes().to_vec();
        record.extend_from_slice(&undo);
        // What cannot be written down is undone by us alone.
        let _ = retry_on_intr(|| pwrite(&self.file, &record, 0));
        self.written = undo;
    }
}

/// A guardian. Dropping it ends it, and nothing is restored.
#[derive(Debug)]
pub(super) struct Guardian {
    child: Child,
    /// Closes with us, however we end.
    _lifeline: OwnedFd,
}

/// What a guardian has.
struct Watch<'a> {
    lifeline: BorrowedFd<'a>,
    terminal: BorrowedFd<'a>,
    undo: BorrowedFd<'a>,
    before: &'a Modes,
    raw: &'a Modes,
}

impl Guardian {
    /// Starts one for a terminal that is about to get the modes `raw`, and has these before.
    pub(super) fn start(
        terminal: BorrowedFd<'_>,
        before: &Modes,
        raw: &Modes,
        undo: &Undo,
    ) -> Result<Self, Errno> {
        let (watched, lifeline) = events::pipe()?;
        let mut watch = Watch {
            lifeline: watched.as_fd(),
            terminal,
            undo: undo.file.as_fd(),
            before,
            raw,
        };
        let child = Spawn::new(Memory::Copied).start(&mut watch, keep_watch)?;
        Ok(Self {
            child,
            _lifeline: lifeline,
        })
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // It may have been ended by somebody else.
        let _ = self.child.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The life of a guardian. Like every child that is a copy it must not allocate, lock or panic.
fn keep_watch(subject: &Subject, watch: &mut Watch<'_>) -> u8 {
    let streams = [watch.lifeline, watch.terminal, watch.undo];
    let ready = process::new_session(subject)
        .and_then(|()| descriptors::place_standard(subject, streams))
        // Also our copy of the supervisor's end of the pipe, or it would never close.
        .and_then(|()| descriptors::close_from(subject, 3))
        .and_then(|()| chdir(c"/"));
    if ready.is_err() {
        return 1;
    }
    // Whoever ends programs by the name of the supervisor does not mean us.
    let _ = process::set_name(subject, c"tty-guardian");
    // Nobody ever writes to it.
    let closed = retry_on_intr(|| read(stdin(), &mut [0; 1]));
    if closed != Ok(0) {
        return 1;
    }
    let terminal = stdout();
    // A shell that was faster has modes of its own by now.
    if terminal::modes(terminal).is_ok_and(|now| now.read_like(watch.raw)) {
        let _ = terminal::restore(terminal, watch.before);
        let _ = terminal::discard_input(terminal);
    }
    undo_on(terminal);
    0
}

/// Undoes what was done to the screen, unless nobody looks at it.
fn undo_on(terminal: BorrowedFd<'_>) {
    let mut record = [0; LONGEST + 2];
    let Ok(count) = retry_on_intr(|| pread(stderr(), &mut record, 0)) else {
        return;
    };
    let Some((length, undo)) = record.get(..count).and_then(<[u8]>::split_first_chunk::<2>) else {
        return;
    };
    let length = usize::from(u16::from_le_bytes(*length));
    let Some(undo) = undo.get(..length) else {
        return;
    };
    let mut watched = [PollFd::from_borrowed_fd(terminal, PollFlags::OUT)];
    // A terminal that can take anything can take this much.
    if poll(&mut watched, Some(&SOON)) == Ok(1) && watched[0].revents() == PollFlags::OUT {
        let _ = retry_on_intr(|| write(terminal, undo));
    }
}
