//! The terminal of a session's own.
//!
//! The supervisor makes it and keeps its outer end. The second stage leads the terminal's session and
//! starts the command in a group of its own, in the foreground: so the terminal's keys can stop the
//! command, the second stage hears of it, and somebody can continue it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Child;

use ringfence_core::path::AbsPath;
use ringfence_sys::terminal::{self, Modes, Pty};
use ringfence_sys::{Pid, Subject, descriptors};
use rustix::process::{WaitOptions, waitpid};
use rustix::termios::ttyname;

use super::orders::{Desk, Word};
use crate::launch::{NewTerminal, pipes};

/// The supervisor's side: a terminal that was made, until a second stage has it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) pty: Pty,
    /// Its name, for the profile.
    pub(super) path: AbsPath,
}

/// The supervisor's side while the command runs.
#[derive(Debug)]
pub(super) struct Outer {
    /// The outer end, until somebody takes it.
    pub(super) terminal: Option<OwnedFd>,
    /// What becomes of the command is told here.
    pub(super) words: OwnedFd,
    /// Its closing lets the second stage go.
    _stay: OwnedFd,
    /// Keeps what was shown from being thrown away with the last program that could show more.
    _inner: OwnedFd,
    /// The command, whose group has the same number.
    pub(super) command: Pid,
}

/// Descriptors that go to the second stage.
#[derive(Debug)]
pub(super) struct Passed {
    words: OwnedFd,
    stay: OwnedFd,
    inner: OwnedFd,
}

impl Made {
    /// Makes a terminal as large as is wanted, with those modes.
    pub(super) fn new(wanted: &NewTerminal) -> io::Result<Self> {
        let pty = terminal::open_pty()?;
        if let Some(modes) = &wanted.modes {
            terminal::restore(&pty.master, &Modes::from(modes.clone()))?;
        }
        terminal::set_size(&pty.master, wanted.size.into())?;
        let name = ttyname(&pty.slave, Vec::new())?;
        let path = AbsPath::parse(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let path = path.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self { pty, path })
    }

    /// The streams of a command that has the terminal for one.
    pub(super) fn stream(&self) -> io::Result<OwnedFd> {
        self.pty.slave.try_clone()
    }

    /// What goes to the second stage, and what stays until that says which process the command is.
    pub(super) fn hand_over(self) -> io::Result<(Passed, Waiting)> {
        let (words, words_inside) = pipes::pipe()?;
        let (stay_inside, stay) = pipes::pipe()?;
        let passed = Passed {
            words: words_inside,
            stay: stay_inside,
            inner: self.pty.slave.try_clone()?,
        };
        let waiting = Waiting {
            terminal: self.pty.master,
            inner: self.pty.slave,
            words,
            stay,
        };
        Ok((passed, waiting))
    }
}

impl Passed {
    /// Their numbers, as the second stage is told them.
    pub(super) fn numbers(&self) -> Desk {
        Desk {
            inner: self.inner.as_raw_fd(),
            words: self.words.as_raw_fd(),
            stay: self.stay.as_raw_fd(),
        }
    }

    /// All of them.
    pub(super) fn into_all(self) -> [OwnedFd; 3] {
        [self.inner, self.words, self.stay]
    }
}

/// The supervisor's side until the command runs.
#[derive(Debug)]
pub(super) struct Waiting {
    terminal: OwnedFd,
    inner: OwnedFd,
    words: OwnedFd,
    stay: OwnedFd,
}

impl Waiting {
    /// Learns which process the command is.
    pub(super) fn started(self) -> io::Result<Outer> {
        let Some(Word::Started(pid)) = receive(&self.words)? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        Ok(Outer {
            terminal: Some(self.terminal),
            words: self.words,
            _stay: self.stay,
            _inner: self.inner,
            command: Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?,
        })
    }
}

/// The next word; `None` if there will be none.
pub(super) fn receive(words: &OwnedFd) -> io::Result<Option<Word>> {
    let mut bytes = [0; Word::LENGTH];
    match rustix::io::retry_on_intr(|| rustix::io::read(words, &mut bytes))? {
        Word::LENGTH => Ok(Word::from_bytes(bytes)),
        _ => Ok(None),
    }
}

/// The second stage's side.
#[derive(Debug)]
pub(super) struct Seat {
    inner: OwnedFd,
    words: OwnedFd,
    stay: OwnedFd,
}

impl Seat {
    /// Leads a session that this terminal controls.
    pub(super) fn take(subject: &Subject, desk: Desk) -> io::Result<Self> {
        let seat = Self {
            inner: descriptors::inherited(subject, desk.inner)?,
            words: descriptors::inherited(subject, desk.words)?,
            stay: descriptors::inherited(subject, desk.stay)?,
        };
        rustix::process::setsid()?;
        terminal::take_control(subject, seat.inner.as_fd())?;
        Ok(seat)
    }
}

/// A command that was started at the session's own terminal.
#[derive(Debug)]
pub(super) struct Attended {
    pub(super) seat: Seat,
    pub(super) child: Child,
}

impl Attended {
    /// Gives the command the foreground, tells what becomes of it, and stays until nobody needs the
    /// terminal's session any more.
    pub(super) fn attend(self, subject: &Subject) -> i32 {
        let Seat { inner, words, stay } = self.seat;
        let number = self.child.id().cast_signed();
        let Some(command) = Pid::from_raw(number) else {
            return super::stage::FAILED;
        };
        // It may have ended. One that was stopped because it was too fast goes on.
        let _ = terminal::give_foreground(subject, inner.as_fd(), command);
        let _ = terminal::continue_group(subject, command);
        let mut words = File::from(words);
        // Whoever does not listen has ended the session by that.
        let mut say = |word: Word| words.write_all(&word.to_bytes());
        let _ = say(Word::Started(number));
        loop {
            let status = match waitpid(Some(command), WaitOptions::UNTRACED) {
                Ok(Some((_, status))) => status,
                Ok(None) | Err(rustix::io::Errno::INTR) => continue,
                Err(_) => break,
            };
            let word = if let Some(status) = status.exit_status() {
                Word::Exited(u8::try_from(status & 0xff).unwrap_or(u8::MAX))
            } else if let Some(signal) = status.terminating_signal() {
                Word::Killed(signal)
            } else {
                Word::Stopped
            };
            let _ = say(word);
            if word != Word::Stopped {
                break;
            }
        }
        // Nobody writes: there is only an end to be read.
        let _ = File::from(stay).read(&mut [0]);
        0
    }
}
