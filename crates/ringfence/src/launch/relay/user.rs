//! The terminal of whoever sits in front of it.
//!
//! It is borrowed: its modes are put back whatever happens here, its descriptors belong to the
//! caller's shell as much as to us and are never made non-blocking, and while another job is in its
//! foreground nothing is done to it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ringfence_sys::terminal::{self, Direction, Modes, Output};
use ringfence_sys::{Errno, Signal};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{dup, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{Termios, tcgetattr};

use super::guardian::{Guardian, Undo};
use crate::launch::streams::Use;
use crate::launch::{Size, pipes};

/// The user's terminal, with the modes it had.
#[derive(Debug)]
pub(super) struct UserTerminal {
    /// For questions and modes.
    control: OwnedFd,
    /// What is typed; `None` if no stream can be read.
    input: Option<OwnedFd>,
    screen: Screen,
    before: Modes,
    state: State,
    /// Gives it back if we cannot; there while its modes are not the user's.
    guardian: Option<Guardian>,
    undo: Undo,
    /// Which of the three streams are this terminal.
    pub(super) streams: [Use; 3],
}

/// Whose the terminal is at the moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Its modes are the user's.
    Lent,
    /// Every byte comes through to us.
    Raw,
}

/// Where output goes without ever waiting for it.
#[derive(Debug)]
pub(super) struct Screen {
    target: Option<OwnedFd>,
    /// Writes in our place, where the terminal cannot be opened once more.
    writer: Option<JoinHandle<Result<(), Errno>>>,
    /// Tells the writer that nobody looks any more.
    abandoned: Arc<AtomicBool>,
}

impl UserTerminal {
    /// Finds it among the standard streams; `None` if none of them is one.
    pub(super) fn find() -> io::Result<Option<Self>> {
        let all = [stdin(), stdout(), stderr()];
        let streams = all.map(|stream| {
            if terminal::is_terminal(stream) {
                Use::Terminal
            } else {
                Use::Other
            }
        });
        let [input, output, error] = all;
        let readable = first([input, output, error], OFlags::RDONLY);
        let Some(writable) = first([output, error, input], OFlags::WRONLY) else {
            return Ok(None);
        };
        let control = fcntl_dupfd_cloexec(writable, ABOVE_STANDARD)?;
        Ok(Some(Self {
            before: terminal::modes(&control)?,
            input: readable.map(open_input).transpose()?,
            screen: Screen::open(writable)?,
            control,
            state: State::Lent,
            guardian: None,
            undo: Undo::new()?,
            streams,
        }))
    }

    /// How large it is.
    pub(super) fn size(&self) -> Size {
        terminal::size(&self.control).map_or_else(
            |_| Size::default(),
            |terminal::Size { rows, columns }| Size { rows, columns },
        )
    }

    /// Its modes, as they are now.
    pub(super) fn modes(&self) -> Option<Termios> {
        tcgetattr(&self.control).ok()
    }

    /// Waits for the foreground, as every job does, and lets every byte come through.
    pub(super) fn take(&mut self) -> io::Result<()> {
        const SOON: Duration = Duration::from_millis(5);
        const MOST_IN_VAIN: u32 = 3;
        let mut in_vain = 0;
        while !terminal::in_foreground(&self.control)? {
            let asked = Instant::now();
            terminal::stop_job(Signal::TTIN)?;
            // Nobody controls this job: it was not stopped, and never gets the foreground.
            if asked.elapsed() < SOON {
                in_vain += 1;
            }
            if in_vain > MOST_IN_VAIN {
                return Err(Errno::IO.into());
            }
        }
        // In a pipeline others write to the terminal as well, and count on its ends of lines.
        let output = match self.streams {
            [_, Use::Terminal, _] => Output::AsIs,
            [_, Use::Other, _] => Output::Processed,
        };
        let before = terminal::modes(&self.control)?;
        let raw = before.raw(output);
        if self.state == State::Lent {
            // One that cannot be had is not needed as long as nobody kills us.
            self.guardian = Guardian::start(self.control.as_fd(), &before, &raw, &self.undo).ok();
            // The user may have changed them meanwhile.
            self.before = before;
            self.state = State::Raw;
        }
        Ok(terminal::restore(&self.control, &raw)?)
    }

    /// What has to be written to the screen if we are killed.
    pub(super) fn remember(&mut self, undo: Vec<u8>) {
        self.undo.remember(undo);
    }

    /// Gives the terminal the modes it had.
    pub(super) fn give_back(&mut self) {
        if self.state == State::Raw {
            // A terminal that is gone needs no modes.
            let _ = terminal::restore(&self.control, &self.before);
            self.state = State::Lent;
            self.guardian = None;
        }
    }

    /// What restores the terminal even when nothing of this is dropped.
    pub(super) fn rescue(&self) -> io::Result<(OwnedFd, Modes)> {
        Ok((self.control.try_clone()?, self.before.clone()))
    }

    /// Whether another job has the terminal.
    pub(super) fn is_away(&self) -> bool {
        terminal::in_foreground(&self.control) == Ok(false)
    }

    /// Whether there is no such terminal any more.
    pub(super) fn is_gone(&self) -> bool {
        terminal::modes(&self.control).is_err()
    }

    /// What is typed.
    pub(super) fn input(&self) -> Option<BorrowedFd<'_>> {
        self.input.as_ref().map(AsFd::as_fd)
    }

    /// What is shown.
    pub(super) fn screen(&self) -> Option<BorrowedFd<'_>> {
        self.screen.target()
    }

    /// Throws away what was typed for the command, or what a terminal answered it: the user's shell
    /// must not take it for its own.
    pub(super) fn discard_input(&self) {
        if let Some(input) = &self.input {
            // Nothing to throw away is as good.
            let _ = terminal::discard_input(input);
        }
    }

    /// Lets what is still on its way reach the screen, for a while.
    pub(super) fn flush(&mut self, patience: Duration) {
        self.screen.finish(patience);
    }

    /// Throws away what is on its way to a screen that nobody reads, so that whatever is written to
    /// it next does not wait for ever.
    pub(super) fn abandon_output(&mut self) {
        self.screen.abandoned.store(true, Ordering::Relaxed);
        // Nothing to throw away is as good.
        let _ = terminal::discard_output(&self.control);
    }
}

impl Drop for UserTerminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

const ABOVE_STANDARD: i32 = 3;

/// The first terminal among the streams that is open for this.
fn first(streams: [BorrowedFd<'static>; 3], way: OFlags) -> Option<BorrowedFd<'static>> {
    streams.into_iter().find(|stream| {
        let mode = fcntl_getfl(stream).map(|flags| flags & OFlags::RWMODE);
        terminal::is_terminal(stream) && (mode == Ok(way) || mode == Ok(OFlags::RDWR))
    })
}

/// In raw mode reading does not wait, so a shared description will do.
fn open_input(stream: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let opened = terminal::open_again(stream, Direction::Read);
    Ok(opened.or_else(|_| fcntl_dupfd_cloexec(stream, ABOVE_STANDARD))?)
}

impl Screen {
    /// What to write to, until it is finished.
    pub(super) fn target(&self) -> Option<BorrowedFd<'_>> {
        self.target.as_ref().map(AsFd::as_fd)
    }

    /// Opens what a stream leads to.
    pub(super) fn open(stream: BorrowedFd<'_>) -> io::Result<Self> {
        if terminal::is_terminal(stream)
            && let Ok(target) = terminal::open_again(stream, Direction::Write)
        {
            return Ok(Self {
                target: Some(target),
                writer: None,
                abandoned: Arc::default(),
            });
        }
        // A pipe, or somebody else's terminal. Writing may wait, and others share the description, so a
        // thread does it; what it has in hand is bounded by the pipe.
        let (source, target) = pipes::pipe()?;
        fcntl_setfl(&target, OFlags::NONBLOCK)?;
        let screen = dup(stream)?;
        let abandoned = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&abandoned);
        let writer = std::thread::Builder::new()
            .name("ringfence-screen".to_owned())
            .stack_size(128 << 10)
            .spawn(move || write_on(&source, &screen, &stop))?;
        Ok(Self {
            target: Some(target),
            writer: Some(writer),
            abandoned,
        })
    }

    /// Closes it and waits a while for the writer, if there is one; says whether all was written.
    pub(super) fn finish(&mut self, patience: Duration) -> bool {
        let Some(writer) = &self.writer else {
            return true;
        };
        self.target = None;
        let deadline = Instant::now() + patience;
        while !writer.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        writer.is_finished()
    }

    /// Why the writer could not go on, if it has ended for that.
    pub(super) fn refusal(&mut self) -> Option<Errno> {
        let writer = self.writer.take_if(|writer| writer.is_finished())?;
        writer.join().ok()?.err()
    }
}

/// The life of a writer: it ends with its source, its screen, or when nobody looks any more.
fn write_on(source: &OwnedFd, screen: &OwnedFd, abandoned: &AtomicBool) -> Result<(), Errno> {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = retry_on_intr(|| rustix::io::read(source, &mut chunk)) {
        let mut rest = chunk.get(..count).unwrap_or_default();
        while !rest.is_empty() && !abandoned.load(Ordering::Relaxed) {
            let written = retry_on_intr(|| rustix::io::write(screen, rest))?;
            rest = rest.get(written..).unwrap_or_default();
        }
    }
    Ok(())
}
