//! Pseudoterminals, and the modes of the user's own terminal.
//!
//! What no system does like another is in `tty`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_current_process_group};
use rustix::termios::{
    self, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, Winsize, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr, tcsetpgrp, tcsetwinsize,
};

use crate::Subject;
use crate::signals::Mask;
pub use crate::tty::{in_foreground, open_again, open_pty};

/// A pseudoterminal: the end that a program believes to be a terminal, and the other.
#[derive(Debug)]
pub struct Pty {
    /// What our side reads and writes.
    pub master: OwnedFd,
    /// What the program gets.
    pub slave: OwnedFd,
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

/// Puts this process into a group of its own, in the foreground of its controlling terminal.
///
/// Signals must be blocked: the terminal tells background processes off for this.
///
/// # Errors
///
/// [`Errno::PERM`] for the leader of a session, which has such a group already.
pub fn take_foreground(_subject: &Subject, terminal: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::process::setpgid(None, None)?;
    tcsetpgrp(terminal, rustix::process::getpid())
}

/// Puts another group into the foreground of the terminal that controls this process, which is in it.
///
/// # Errors
///
/// [`Errno::PERM`] for a group of another session.
pub fn give_foreground(
    _subject: &Subject,
    terminal: BorrowedFd<'_>,
    group: Pid,
) -> Result<(), Errno> {
    tcsetpgrp(terminal, group)
}

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

/// Continues every process of a group.
///
/// # Errors
///
/// [`Errno::SRCH`] if there is none.
pub fn continue_group(_subject: &Subject, leader: Pid) -> Result<(), Errno> {
    rustix::process::kill_process_group(leader, Signal::CONT)
}

/// Which way a terminal is opened again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// To read what is typed.
    Read,
    /// To write to the screen.
    Write,
}
