//! What only Linux does this way with terminals.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

use super::fdpath::FdPath;
use super::raw;
use crate::terminal::{Direction, Pty};

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

/// Whether this process may use a terminal: it is in its foreground, or the terminal is not the one
/// that controls its jobs.
///
/// # Errors
///
/// The kernel's answer, for a terminal that is gone.
pub fn in_foreground(terminal: impl AsFd) -> Result<bool, Errno> {
    // Plain numbers: both are zero for a session that lives outside of this pid namespace.
    let mut foreground: libc::pid_t = 0;
    let request = [
        raw::fd_word(terminal.as_fd()),
        TIOCGPGRP,
        raw::address_mut(&mut foreground),
        0,
        0,
        0,
    ];
    // SAFETY: the request writes one process number to where the third word points, which is a live
    // one; the descriptor is borrowed for the call.
    match unsafe { raw::call(libc::SYS_ioctl, request) } {
        Ok(_) => {}
        Err(Errno::NOTTY) => return Ok(true),
        Err(errno) => return Err(errno),
    }
    // SAFETY: takes one integer and touches no memory.
    let own = unsafe { raw::call(libc::SYS_getpgid, [0; 6]) }?;
    Ok(i32::try_from(own) == Ok(foreground))
}

const TIOCGPGRP: usize = 0x540f;

/// Opens a terminal once more, so that waiting can be switched off for us alone: whoever gave us
/// the descriptor shares its description.
///
/// # Errors
///
/// [`Errno::ACCESS`] for a terminal of somebody else that does not control our session.
pub fn open_again(terminal: impl AsFd, direction: Direction) -> Result<OwnedFd, Errno> {
    let way = match direction {
        Direction::Read => OFlags::RDONLY,
        Direction::Write => OFlags::WRONLY,
    };
    let flags = way | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let path = FdPath::new(terminal.as_fd());
    let opened = rustix::fs::open(path.as_c_str(), flags, Mode::empty());
    let Err(refusal) = opened else {
        return opened;
    };
    // Everybody may open the terminal that controls its session, also after a change of user.
    let controlling = rustix::fs::open(c"/dev/tty", flags, Mode::empty()).map_err(|_| refusal)?;
    if device(&controlling)? == device(&terminal)? {
        Ok(controlling)
    } else {
        Err(refusal)
    }
}

/// Which terminal this really is, also behind `/dev/tty`.
fn device(terminal: impl AsFd) -> Result<u32, Errno> {
    const TIOCGDEV: usize = 0x8004_5432;
    let mut device = 0_u32;
    let request = [
        raw::fd_word(terminal.as_fd()),
        TIOCGDEV,
        raw::address_mut(&mut device),
        0,
        0,
        0,
    ];
    // SAFETY: the request writes one 32-bit device number to where the third word points, which is
    // a live one; the descriptor is borrowed for the call.
    unsafe { raw::call(libc::SYS_ioctl, request) }?;
    Ok(device)
}
