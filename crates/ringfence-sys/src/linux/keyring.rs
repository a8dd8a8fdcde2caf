//! The session keyring, which crosses every namespace there is.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, Timespec, nanosleep};

use super::raw;
use super::subject::Subject;

const KEYCTL_GET_KEYRING_ID: usize = 0;
const KEYCTL_JOIN_SESSION_KEYRING: usize = 1;
const KEYCTL_CAPABILITIES: usize = 31;
const KEY_SPEC_SESSION_KEYRING: i32 = -3;

/// How long somebody waits for a key of their own, and how often that is looked at.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// Leaves the session keyring that was inherited for a new, empty, nameless one.
///
/// A plain user can have only so many keys (`kernel.keys.maxkeys`, 200 as a rule), and that of a process
/// counts until the process is reaped and the kernel has tidied up after it. So whoever starts many
/// processes one after the other runs into that bound without having many at once, and only has to wait.
///
/// # Errors
///
/// [`Errno::NOSYS`] on a kernel without keyrings, where there is nothing to leave. [`Errno::DQUOT`] if the
/// user has as many keys as there may be, and still does after ten seconds.
pub fn join_new_session(subject: &Subject) -> Result<(), Errno> {
    const PAUSES: u128 = PATIENCE.as_millis() / PAUSE.as_millis();
    for _ in 0..PAUSES {
        match join(subject) {
            Err(Errno::DQUOT) => pause(),
            answer => return answer,
        }
    }
    join(subject)
}

fn pause() {
    let mut left = Timespec {
        tv_sec: 0,
        tv_nsec: PAUSE.subsec_nanos().into(),
    };
    // Whoever shares the memory of their starter has no signal handler that could be run meanwhile.
    while let NanosleepRelativeResult::Interrupted(rest) = nanosleep(&left) {
        left = rest;
    }
}

fn join(_subject: &Subject) -> Result<(), Errno> {
    // SAFETY: a null name asks for an anonymous keyring; nothing else is read.
    unsafe {
        raw::call(
            libc::SYS_keyctl,
            [KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0, 0],
        )
    }
    .map(|_serial| ())
}

/// The serial number of the session keyring, for telling whether two are the same.
///
/// # Errors
///
/// The kernel's answer.
pub fn session_serial() -> Result<usize, Errno> {
    const DO_NOT_CREATE: usize = 0;
    // SAFETY: takes integers only.
    unsafe {
        raw::call(
            libc::SYS_keyctl,
            [
                KEYCTL_GET_KEYRING_ID,
                raw::int_word(KEY_SPEC_SESSION_KEYRING),
                DO_NOT_CREATE,
                0,
                0,
                0,
            ],
        )
    }
}

/// Whether a filter around this process refuses keyrings. The kernel itself never says so of this question.
///
/// It is asked what keyrings there can do. To ask for the session's would give one to a process that has
/// none, and the next one would then count among the user's.
pub fn is_refused() -> bool {
    // SAFETY: asks for no more than the number of bytes it could write; a null pointer with no length is not written
    // to.
    let answer = unsafe { raw::call(libc::SYS_keyctl, [KEYCTL_CAPABILITIES, 0, 0, 0, 0, 0]) };
    answer == Err(Errno::PERM)
}
