//! Signals that are waited for instead of being obeyed.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::Subject;
pub use crate::mask::Mask;

/// As the kernel has a set of signals.
pub(crate) type Bits = libc::sigset_t;

/// Signals are numbered from one to this.
pub(crate) const LAST: i32 = 31;

impl Mask {
    /// Those that have arrived and were kept from acting.
    fn pending() -> Result<Self, Errno> {
        let mut pending = 0;
        // SAFETY: writes one live set.
        answer(unsafe { libc::sigpending(&raw mut pending) })?;
        Ok(Self(pending))
    }

    /// Takes one of these, which must have arrived already.
    fn take(self) -> Result<(), Errno> {
        let mut signal = 0;
        // SAFETY: reads one live set and writes one live number.
        match unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } {
            0 => Ok(()),
            errno => Err(Errno::from_raw_os_error(errno)),
        }
    }
}

pub(crate) fn change(new: Option<Mask>) -> Result<Mask, Errno> {
    let mut before = 0;
    let new = new.map(|mask| mask.0);
    let new = new.as_ref().map_or_else(std::ptr::null, std::ptr::from_ref);
    // SAFETY: the new mask is null or live and only read, the old one live and only written.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, new, &raw mut before) } {
        0 => Ok(Mask(before)),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

fn answer(status: libc::c_int) -> Result<libc::c_int, Errno> {
    if status < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(status)
}

/// Lets every signal act again, as a program that is started expects.
///
/// # Errors
///
/// The kernel's answer.
pub fn unblock_all(_subject: &Subject) -> Result<(), Errno> {
    Mask::EMPTY.restore()
}

/// Whether an ignored signal would arrive if it were blocked and waited for: here none does, for one is
/// thrown away before anybody looks whether it is blocked.
pub fn is_ignored(_signal: i32) -> bool {
    false
}

/// Blocked signals as readable events, so that a loop needs no handler.
///
/// A queue of the kernel's says that one came; the signal itself stays where blocked signals stay
/// until it is taken.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

/// One signal that arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// Whether some process asked for it.
    pub sent_by: SentBy,
}

/// Where a signal came from. macOS does not say it of one that is waited for, so every signal counts as
/// one that a process asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SentBy {
    /// The kernel itself: a terminal's key.
    Kernel,
    /// A process, by `kill` or one of its relatives.
    Process,
}

impl SignalFd {
    /// Listens for the signals of `mask`, which the caller has blocked ([`Mask::block`]).
    ///
    /// # Errors
    ///
    /// The kernel's answer, for want of descriptors.
    pub fn new(mask: Mask) -> Result<Self, Errno> {
        let queue = rustix::event::kqueue::kqueue()?;
        rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
        for signal in (1..=LAST).filter(|signal| mask.contains(*signal)) {
            let wanted = event(signal, libc::EV_ADD | libc::EV_CLEAR);
            // SAFETY: reads one live event and writes none; the queue is open.
            answer(unsafe {
                libc::kevent(
                    queue.as_raw_fd(),
                    &raw const wanted,
                    1,
                    std::ptr::null_mut(),
                    0,
                    std::ptr::null(),
                )
            })?;
        }
        Ok(Self(queue))
    }

    /// Takes one signal that has arrived, without sleeping.
    ///
    /// # Errors
    ///
    /// The kernel's answer; an empty queue is `Ok(None)`.
    pub fn take(&self) -> Result<Option<Arrived>, Errno> {
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        loop {
            let mut came = event(0, 0);
            // SAFETY: writes at most the one live event that is said; reads one live time; the queue
            // is open.
            let count = answer(unsafe {
                libc::kevent(
                    self.0.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    &raw mut came,
                    1,
                    &raw const at_once,
                )
            })?;
            if count == 0 {
                return Ok(None);
            }
            let signal = i32::try_from(came.ident).map_err(|_| Errno::INVAL)?;
            if Mask::pending()?.contains(signal) {
                Mask::EMPTY.with(signal).take()?;
            } else if ![libc::SIGCONT, libc::SIGWINCH].contains(&signal) {
                // It has acted already, as the one does that stops a job of our own. Those two
                // do nothing by themselves and are never kept.
                continue;
            }
            return Ok(Some(Arrived {
                signal,
                sent_by: SentBy::Process,
            }));
        }
    }
}

fn event(signal: i32, flags: u16) -> libc::kevent {
    libc::kevent {
        ident: usize::try_from(signal).unwrap_or(0),
        filter: libc::EVFILT_SIGNAL,
        flags,
        fflags: 0,
        data: 0,
        udata: std::ptr::null_mut(),
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
