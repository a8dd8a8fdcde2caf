//! The session keyring, which crosses every namespace there is.

use rustix::io::Errno;

use super::raw;
use super::subject::Subject;

const KEYCTL_GET_KEYRING_ID: usize = 0;
const KEYCTL_JOIN_SESSION_KEYRING: usize = 1;
const KEY_SPEC_SESSION_KEYRING: i32 = -3;

/// Leaves the session keyring that was inherited for a new, empty, nameless one.
///
/// # Errors
///
/// [`Errno::NOSYS`] on a kernel without keyrings, where there is nothing to leave.
pub fn join_new_session(_subject: &Subject) -> Result<(), Errno> {
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
pub fn is_refused() -> bool {
    session_serial() == Err(Errno::PERM)
}
