//! Where the command sits: its standard streams, and the terminal that controls it.
//!
//! A session's terminal comes from the devpts of the session itself, so it is made by the first
//! process, inside the new root. The first process leads the session and keeps the terminal's inner
//! end; the command gets a process group of its own, in the foreground. So a command can be stopped
//! by the terminal's keys and continued again, which an orphaned group could not. The outer end goes
//! to the supervisor, who sets size and modes before the command starts, and to nobody else.
//!
//! [`Seat::take`] and [`Seat::take_foreground`] run between fork and exec: they allocate nothing and
//! report by value.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use ringfence_sys::terminal::{self, Modes, Pty};
use ringfence_sys::{Errno, Subject, descriptors, process, sockets};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{stderr, stdin, stdout};

pub(super) use crate::launch::streams::Use;
use crate::launch::{LaunchError, NewTerminal, Stream, Streams};

/// The inner side.
#[derive(Debug, Default)]
pub(super) struct Seat {
    /// Streams that are not the caller's own.
    pub(super) given: [Option<OwnedFd>; 3],
    /// The terminal, if the session gets one.
    pub(super) desk: Option<Desk>,
}

/// A terminal to be made.
#[derive(Debug)]
pub(super) struct Desk {
    /// Over which the outer end goes to the supervisor, and its word comes back.
    pub(super) socket: OwnedFd,
    /// The supervisor's end of it, if the first process has a copy at birth.
    pub(super) outer: Option<RawFd>,
    /// Which of the three streams are the terminal.
    pub(super) streams: [Use; 3],
    /// The inner end, once it was made.
    pub(super) inner: Option<OwnedFd>,
}

/// The supervisor's side, until the terminal is there.
#[derive(Debug)]
pub(super) struct Outer {
    socket: OwnedFd,
    wanted: NewTerminal,
}

impl Seat {
    /// Lays out both sides.
    pub(super) fn new(streams: Streams) -> Result<(Self, Option<Outer>), LaunchError> {
        let Streams {
            input,
            output,
            error,
            terminal,
        } = streams;
        let mut uses = [Use::Other; 3];
        let mut given = [const { None }; 3];
        for ((stream, slot), used) in [input, output, error]
            .into_iter()
            .zip(&mut given)
            .zip(&mut uses)
        {
            match stream {
                Stream::Given(file) => *slot = Some(above_standard(file)?),
                Stream::Inherited => {}
                Stream::Terminal => *used = Use::Terminal,
            }
        }
        let mut seat = Self { given, desk: None };
        let Some(wanted) = terminal else {
            return Ok((seat, None));
        };
        let (outer, socket) = sockets::pair().map_err(|errno| LaunchError::Prepare {
            what: "open a socket".to_owned(),
            source: errno.into(),
        })?;
        seat.desk = Some(Desk {
            socket,
            outer: Some(outer.as_raw_fd()),
            streams: uses,
            inner: None,
        });
        let outer = Outer {
            socket: outer,
            wanted,
        };
        Ok((seat, Some(outer)))
    }

    /// The three streams as the command will have them, but for its terminal.
    pub(super) fn streams(&self) -> [BorrowedFd<'_>; 3] {
        let [input, output, error] = &self.given;
        [(input, stdin()), (output, stdout()), (error, stderr())]
            .map(|(given, own)| given.as_ref().map_or(own, AsFd::as_fd))
    }

    /// Whether each of the three will be the terminal.
    pub(super) fn uses(&self) -> [Use; 3] {
        self.desk
            .as_ref()
            .map_or([Use::Other; 3], |desk| desk.streams)
    }

    /// The inner end of the terminal, once it was made.
    pub(super) fn terminal(&self) -> Option<&OwnedFd> {
        self.desk.as_ref().and_then(|desk| desk.inner.as_ref())
    }

    /// Puts the streams in their places and makes the terminal. For the first process.
    pub(super) fn take(&mut self, subject: &Subject) -> Result<(), Errno> {
        for (number, given) in (0..).zip(&self.given) {
            if let Some(given) = given {
                descriptors::place(subject, given.as_fd(), number)?;
            }
        }
        match &mut self.desk {
            Some(desk) => desk.make(subject),
            None => Ok(()),
        }
    }

    /// Takes the terminal's foreground. For the command, with signals blocked.
    pub(super) fn take_foreground(&self, subject: &Subject) -> Result<(), Errno> {
        match self.terminal() {
            Some(inner) => terminal::take_foreground(subject, inner.as_fd()),
            None => Ok(()),
        }
    }
}

impl Desk {
    fn make(&mut self, subject: &Subject) -> Result<(), Errno> {
        if let Some(outer) = self.outer {
            // Or its closing would never be heard here.
            let number = outer.unsigned_abs();
            descriptors::close_between(subject, number, number)?;
        }
        process::new_session(subject)?;
        let Pty { master, slave } = terminal::open_pty()?;
        terminal::take_control(subject, slave.as_fd())?;
        for (number, used) in (0..).zip(self.streams) {
            if used == Use::Terminal {
                descriptors::place(subject, slave.as_fd(), number)?;
            }
        }
        sockets::send(&self.socket, MADE, &[master.as_fd()])?;
        drop(master);
        let mut answer = [0; 1];
        if sockets::receive(&self.socket, &mut answer)?.length != answer.len() {
            return Err(Errno::PIPE);
        }
        self.inner = Some(slave);
        Ok(())
    }
}

const MADE: &[u8] = b"t";
const READY: &[u8] = b"r";

impl Outer {
    /// Receives the outer end, gives it size and modes, and lets the first process go on.
    ///
    /// `None` if there will be none: then the first process has failed, and says why elsewhere.
    pub(super) fn receive(self) -> Result<Option<OwnedFd>, Errno> {
        let mut message = [0; 1];
        let received = match sockets::receive(&self.socket, &mut message) {
            Ok(received) => received,
            Err(Errno::CONNRESET) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let [Some(master), ..] = received.descriptors else {
            return Ok(None);
        };
        if let Some(modes) = &self.wanted.modes {
            terminal::restore(&master, &Modes::from(modes.clone()))?;
        }
        terminal::set_size(&master, self.wanted.size.into())?;
        match sockets::send(&self.socket, READY, &[]) {
            Ok(()) => Ok(Some(master)),
            Err(Errno::PIPE) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// The same file under a number that no standard stream has, so that placing one never closes
/// another.
fn above_standard(file: OwnedFd) -> Result<OwnedFd, LaunchError> {
    const ABOVE_STANDARD: RawFd = 3;
    if file.as_raw_fd() >= ABOVE_STANDARD {
        return Ok(file);
    }
    fcntl_dupfd_cloexec(&file, ABOVE_STANDARD).map_err(|errno| LaunchError::Prepare {
        what: "copy a stream".to_owned(),
        source: errno.into(),
    })
}
