//! A child, held by descriptor, and how it ended.
//!
//! Everything goes through the pidfd: a pid that was reused can be neither signalled nor
//! waited for. Dropping a [`Child`] neither kills nor reaps; that is the supervisor's choice.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_send_signal, waitid,
};

/// A process that we started and have not forgotten.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    pidfd: OwnedFd,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// It exited with this status.
    Exited(u8),
    /// It was killed by this signal.
    Killed {
        /// The number of the signal; not all have a name.
        signal: i32,
    },
}

impl Child {
    pub(super) fn new(pid: Pid, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd }
    }

    /// The same child, for somebody else to wait for.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        Ok(Self {
            pid: self.pid,
            pidfd: self.pidfd.try_clone()?,
        })
    }

    /// Its number in our pid namespace, for display and for paths below `/proc`.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to it and to nothing else.
    ///
    /// # Errors
    ///
    /// [`Errno::SRCH`] once it is gone.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        pidfd_send_signal(&self.pidfd, signal)
    }

    /// Sleeps until it ends, and reaps it.
    ///
    /// # Errors
    ///
    /// [`Errno::CHILD`] if it was reaped before.
    pub fn wait(&self) -> Result<Ended, Errno> {
        self.reap(WaitIdOptions::EXITED)?.ok_or(Errno::CHILD)
    }

    /// Reaps it if it has ended.
    ///
    /// # Errors
    ///
    /// [`Errno::CHILD`] if it was reaped before.
    pub fn try_wait(&self) -> Result<Option<Ended>, Errno> {
        self.reap(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }

    fn reap(&self, options: WaitIdOptions) -> Result<Option<Ended>, Errno> {
        let status = retry_on_intr(|| {
            waitid(
                WaitId::PidFd(self.pidfd.as_fd()),
                options | any_exit_signal(),
            )
        })?;
        Ok(status.as_ref().and_then(ended))
    }
}

impl AsFd for Child {
    /// Readable once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Sleeps until the child with this number ends, and reaps it.
pub(super) fn wait_for(pid: Pid) -> Result<Ended, Errno> {
    let options = WaitIdOptions::EXITED | any_exit_signal();
    let status = retry_on_intr(|| waitid(WaitId::Pid(pid), options))?;
    status.as_ref().and_then(ended).ok_or(Errno::CHILD)
}

/// Reaps any one child that has ended: the work of an init.
///
/// `Ok(None)` means that children exist and all of them are alive.
///
/// # Errors
///
/// [`Errno::CHILD`] when there are no children at all.
pub fn reap_any() -> Result<Option<(Pid, Ended)>, Errno> {
    reap(libc::WNOHANG)
}

/// Sleeps until any child ends, and reaps it.
///
/// # Errors
///
/// [`Errno::CHILD`] when there are no children at all; [`Errno::INTR`] when a handler ran.
pub fn wait_any() -> Result<(Pid, Ended), Errno> {
    reap(0)?.ok_or(Errno::CHILD)
}

fn reap(options: i32) -> Result<Option<(Pid, Ended)>, Errno> {
    let mut status = 0;
    // SAFETY: the kernel writes one int to `status`, which outlives the call, and accepts a
    // null resource pointer, which is the fourth word.
    let pid = unsafe {
        super::raw::call(
            libc::SYS_wait4,
            [
                super::raw::int_word(-1),
                super::raw::address_mut(&mut status),
                super::raw::int_word(options | libc::__WALL),
                0,
                0,
                0,
            ],
        )
    }?;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(pid.map(|pid| (pid, ended_by_status(status))))
}

/// Splits the packed word of `wait4`: without `WUNTRACED` it tells only of ends.
fn ended_by_status(status: i32) -> Ended {
    match status & 0x7f {
        0 => Ended::Exited(status.to_le_bytes()[1]),
        signal => Ended::Killed { signal },
    }
}

/// Children of ours send no signal when they end, and are invisible to a plain wait.
fn any_exit_signal() -> WaitIdOptions {
    WaitIdOptions::from_bits_retain(libc::__WALL.cast_unsigned())
}

fn ended(status: &WaitIdStatus) -> Option<Ended> {
    if let Some(code) = status.exit_status() {
        // The kernel keeps eight bits of an exit status.
        return Some(Ended::Exited(code.to_le_bytes()[0]));
    }
    status
        .terminating_signal()
        .map(|signal| Ended::Killed { signal })
}
