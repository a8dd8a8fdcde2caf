//! What only macOS does this way with terminals.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{tcgetpgrp, ttyname};

use crate::terminal::{Direction, Pty};

/// Opens a pseudoterminal.
///
/// # Errors
///
/// The kernel's answer, when all are in use.
pub fn open_pty() -> Result<Pty, Errno> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty())?;
    Ok(Pty { master, slave })
}

/// Whether this process may use a terminal: it is in its foreground, or the terminal is not the one
/// that controls its jobs.
///
/// # Errors
///
/// The kernel's answer, for a terminal that is gone.
pub fn in_foreground(terminal: impl AsFd) -> Result<bool, Errno> {
    match tcgetpgrp(terminal) {
        Ok(foreground) => Ok(foreground == getpgrp()),
        Err(Errno::NOTTY) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// Opens a terminal once more, so that waiting can be switched off for us alone: whoever gave us
/// the descriptor shares its description.
///
/// # Errors
///
/// [`Errno::ACCESS`] for a terminal of somebody else.
pub fn open_again(terminal: impl AsFd, direction: Direction) -> Result<OwnedFd, Errno> {
    let way = match direction {
        Direction::Read => OFlags::RDONLY,
        Direction::Write => OFlags::WRONLY,
    };
    let flags = way | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let name = ttyname(&terminal, Vec::new())?;
    rustix::fs::open(name, flags, Mode::empty())
}
