//! Pseudoterminals, and the modes of the user's own terminal.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    self, OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use super::subject::Subject;

/// A pseudoterminal: the end that a program believes to be a terminal, and the other.
#[derive(Debug)]
pub struct Pty {
    /// What our side reads and writes.
    pub master: OwnedFd,
    /// What the program gets.
    pub slave: OwnedFd,
}

/// Opens a pseudoterminal of this mount namespace's `/dev/ptmx`.
///
/// The program's end is taken from the master itself and not by a path, so that no other
/// devpts can slip in between.
///
/// # Errors
///
/// [`Errno::NOENT`] without a devpts; [`Errno::NOSPC`] when all are in use.
pub fn open_pty() -> Result<Pty, Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    Ok(Pty { master, slave })
}

/// Rows and columns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Size {
    /// Lines of text.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// How large a terminal is.
///
/// # Errors
///
/// [`Errno::NOTTY`] for anything else.
pub fn size(terminal: impl AsFd) -> Result<Size, Errno> {
    tcgetwinsize(terminal).map(|size| Size {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// Tells a terminal how large it is; its foreground programs get `SIGWINCH`.
///
/// # Errors
///
/// [`Errno::NOTTY`] for anything else.
pub fn set_size(terminal: impl AsFd, size: Size) -> Result<(), Errno> {
    tcsetwinsize(
        terminal,
        Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )
}

/// Whether `fd` is a terminal.
pub fn is_terminal(fd: impl AsFd) -> bool {
    termios::isatty(fd)
}

/// The modes a terminal had, to be given back.
#[derive(Clone, Debug)]
pub struct Modes(Termios);

/// Reads the modes of a terminal.
///
/// # Errors
///
/// [`Errno::NOTTY`] for anything else.
pub fn modes(terminal: impl AsFd) -> Result<Modes, Errno> {
    tcgetattr(terminal).map(Modes)
}

/// Passes every byte through untouched, and returns the modes of before.
///
/// # Errors
///
/// [`Errno::NOTTY`] for anything but a terminal.
pub fn make_raw(terminal: impl AsFd) -> Result<Modes, Errno> {
    let before = tcgetattr(&terminal)?;
    let mut raw = before.clone();
    raw.make_raw();
    tcsetattr(&terminal, OptionalActions::Drain, &raw)?;
    Ok(Modes(before))
}

/// Gives a terminal the modes it had.
///
/// # Errors
///
/// [`Errno::IO`] from a background process of an orphaned group.
pub fn restore(terminal: impl AsFd, modes: &Modes) -> Result<(), Errno> {
    tcsetattr(terminal, OptionalActions::Drain, &modes.0)
}

/// Makes `terminal` the controlling terminal of the session that this process leads.
///
/// # Errors
///
/// [`Errno::PERM`] if the process leads none, or the terminal has another.
pub fn take_control(_subject: &Subject, terminal: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::process::ioctl_tiocsctty(terminal)
}
