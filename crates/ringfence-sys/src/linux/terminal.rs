//! Pseudoterminals, and the modes of the user's own terminal.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Signal, kill_current_process_group};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    self, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, Winsize, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr, tcsetwinsize,
};

use super::fdpath::FdPath;
use super::raw;
use super::signals::Mask;
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

impl From<Termios> for Modes {
    fn from(modes: Termios) -> Self {
        Self(modes)
    }
}

impl Modes {
    /// Those that pass every byte through untouched; see [`make_raw`].
    #[must_use]
    pub fn raw(&self, output: Output) -> Self {
        let mut raw = self.0.clone();
        raw.make_raw();
        if output == Output::Processed {
            raw.output_modes = self.0.output_modes;
        }
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        Self(raw)
    }

    /// Whether a terminal treats what is typed in the same way with both.
    pub fn read_like(&self, other: &Self) -> bool {
        let (one, other) = (&self.0, &other.0);
        one.input_modes == other.input_modes && one.local_modes == other.local_modes
    }
}

/// Reads the modes of a terminal.
///
/// # Errors
///
/// [`Errno::NOTTY`] for anything else.
pub fn modes(terminal: impl AsFd) -> Result<Modes, Errno> {
    tcgetattr(terminal).map(Modes)
}

/// What a terminal makes of the ends of lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Output {
    /// What is written is shown as it is.
    AsIs,
    /// As its modes say: for a terminal on which others write at the same time.
    Processed,
}

/// Passes every byte through untouched, and returns the modes of before.
///
/// Reading never waits afterwards, not even from a description that others share and that must
/// therefore not be made non-blocking. Output that is still on its way is not waited for: whoever
/// has stopped it would stop us.
///
/// # Errors
///
/// [`Errno::NOTTY`] for anything but a terminal.
pub fn make_raw(terminal: impl AsFd, output: Output) -> Result<Modes, Errno> {
    let before = modes(&terminal)?;
    restore(&terminal, &before.raw(output))?;
    Ok(before)
}

/// Gives a terminal modes that it had, at once.
///
/// # Errors
///
/// [`Errno::IO`] from a background process of an orphaned group.
pub fn restore(terminal: impl AsFd, modes: &Modes) -> Result<(), Errno> {
    tcsetattr(terminal, OptionalActions::Now, &modes.0)
}

/// Throws away what was typed and not read.
///
/// # Errors
///
/// [`Errno::NOTTY`] for anything but a terminal.
pub fn discard_input(terminal: impl AsFd) -> Result<(), Errno> {
    tcflush(terminal, QueueSelector::IFlush)
}

/// Throws away what was written and not shown yet.
///
/// # Errors
///
/// [`Errno::NOTTY`] for anything but a terminal.
pub fn discard_output(terminal: impl AsFd) -> Result<(), Errno> {
    tcflush(terminal, QueueSelector::OFlush)
}

/// Makes `terminal` the controlling terminal of the session that this process leads.
///
/// # Errors
///
/// [`Errno::PERM`] if the process leads none, or the terminal has another.
pub fn take_control(_subject: &Subject, terminal: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::process::ioctl_tiocsctty(terminal)
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

/// Stops the whole job that this process belongs to, as a terminal's key would; returns when it was
/// continued. A job that nobody could continue is not stopped.
///
/// # Errors
///
/// The kernel's answer.
pub fn stop_job(signal: Signal) -> Result<(), Errno> {
    let before = Mask::current()?;
    before.without(signal.as_raw()).restore()?;
    let stopped = kill_current_process_group(signal);
    before.restore()?;
    stopped
}

/// Which way a terminal is opened again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// To read what is typed.
    Read,
    /// To write to the screen.
    Write,
}

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
