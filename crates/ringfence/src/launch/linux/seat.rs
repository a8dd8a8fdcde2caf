//! Where the command sits: its standard streams, and the terminal that controls it.
//!
//! A session's terminal comes from the devpts of the session itself, so it is made by the first
//! process, inside the new root. The first process leads the session and keeps the terminal's inner
//! end; the command gets a process group of its own, in the foreground. So a command can be stopped
//! by the terminal's keys and continued again, which an orphaned group could not. The outer end goes
//! to the supervisor, who sets size and modes before the command starts, and to nobody else.
//!
//! [`Seat::take`] runs before the first process is its own program: it allocates nothing and reports
//! by value.

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
    /// The number that the inner end will have in the first process; until then the socket again.
    pub(super) place: OwnedFd,
    /// The supervisor's end of it, if the first process has a copy at birth.
    pub(super) outer: Option<RawFd>,
    /// Which of the three streams are the terminal.
    pub(super) streams: [Use; 3],
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
        let refused = |errno: Errno| LaunchError::Prepare {
            what: "open a socket".to_owned(),
            source: errno.into(),
        };
        let (outer, socket) = sockets::pair().map_err(refused)?;
        seat.desk = Some(Desk::new(socket, Some(outer.as_raw_fd()), uses).map_err(refused)?);
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

    /// Where the inner end of the terminal is, once it was made.
    pub(super) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        self.desk.as_ref().map(|desk| desk.place.as_fd())
    }

    /// Whose word says that the terminal is as it should be.
    pub(super) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        self.desk.as_ref().map(|desk| desk.socket.as_fd())
    }

    /// Puts the streams in their places and makes the terminal. For the first process.
    pub(super) fn take(&self, subject: &Subject) -> Result<(), Errno> {
        for (number, given) in (0..).zip(&self.given) {
            if let Some(given) = given {
                descriptors::place(subject, given.as_fd(), number)?;
            }
        }
        match &self.desk {
            Some(desk) => desk.make(subject),
            None => Ok(()),
        }
    }
}

impl Desk {
    /// Lays it out.
    pub(super) fn new(
        socket: OwnedFd,
        outer: Option<RawFd>,
        streams: [Use; 3],
    ) -> Result<Self, Errno> {
        let place = fcntl_dupfd_cloexec(&socket, ABOVE_STANDARD)?;
        Ok(Self {
            socket,
            place,
            outer,
            streams,
        })
    }

    fn make(&self, subject: &Subject) -> Result<(), Errno> {
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
        // The number stays the supervisor's socket in the supervisor itself: nothing is taken over.
        descriptors::place(subject, slave.as_fd(), self.place.as_raw_fd())?;
        sockets::send(&self.socket, MADE, &[master.as_fd()])
    }
}

/// The first number behind standard error's.
const ABOVE_STANDARD: RawFd = 3;

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
    if file.as_raw_fd() >= ABOVE_STANDARD {
        return Ok(file);
    }
    fcntl_dupfd_cloexec(&file, ABOVE_STANDARD).map_err(|errno| LaunchError::Prepare {
        what: "copy a stream".to_owned(),
        source: errno.into(),
    })
}
