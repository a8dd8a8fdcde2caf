//! Signals that are waited for instead of being obeyed.

use std::io;
use std::mem::MaybeUninit;

use super::Subject;

/// A set of signals.
#[derive(Clone, Copy)]
pub struct Set(libc::sigset_t);

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Set")
    }
}

impl Set {
    /// These signals. A number that is none is left out.
    pub fn new(signals: &[i32]) -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: it writes one whole set to a live place.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: it was written just above.
        let mut set: libc::sigset_t = unsafe { set.assume_init() };
        for signal in signals {
            // SAFETY: a live set, and any number: one that is no signal is refused.
            unsafe { libc::sigaddset(&raw mut set, *signal) };
        }
        Self(set)
    }

    /// Keeps these signals from acting on this thread, and on those it will start.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn block(&self) -> io::Result<()> {
        // SAFETY: reads one live set; nothing is written where null is.
        let status = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const self.0, std::ptr::null_mut())
        };
        answer(status)
    }

    /// Waits for one of these signals, which must be blocked in every thread.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn wait(&self) -> io::Result<i32> {
        let mut signal = 0;
        // SAFETY: reads one live set and writes one live number.
        let status = unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
        answer(status).map(|()| signal)
    }
}

/// Lets every signal act again, as a program that is started expects.
///
/// # Errors
///
/// The kernel's answer.
pub fn unblock_all(_subject: &Subject) -> io::Result<()> {
    let none = Set::new(&[]);
    // SAFETY: reads one live set; nothing is written where null is.
    let status = unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none.0, std::ptr::null_mut())
    };
    answer(status)
}

fn answer(status: libc::c_int) -> io::Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(status))
    }
}
