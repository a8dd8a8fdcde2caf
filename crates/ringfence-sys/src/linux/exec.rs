//! Becoming another program, and leaving.

use std::ffi::{CStr, CString, c_char};
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::io::Errno;
use rustix::process::Signal;

use super::raw;
use super::signals::{self, Mask};
use super::subject::Subject;

/// Strings laid out as `execve` wants them, made before the fork.
#[derive(Debug)]
pub struct StringArray {
    /// Ends with a null pointer; every other entry points into `strings`.
    pointers: Vec<*const c_char>,
    strings: Vec<CString>,
}

// SAFETY: the pointers refer to heap memory that this value owns and never changes or hands
// out for writing, so moving it to another thread moves all that it refers to.
unsafe impl Send for StringArray {}
// SAFETY: no method changes the value behind a shared reference.
unsafe impl Sync for StringArray {}

impl StringArray {
    /// Takes the strings and lays them out.
    pub fn new(strings: Vec<CString>) -> Self {
        let pointers = strings
            .iter()
            .map(|string| string.as_ptr())
            .chain([ptr::null()])
            .collect();
        Self { pointers, strings }
    }

    /// The strings, in order.
    pub fn strings(&self) -> &[CString] {
        &self.strings
    }
}

impl FromIterator<CString> for StringArray {
    fn from_iter<I: IntoIterator<Item = CString>>(strings: I) -> Self {
        Self::new(strings.into_iter().collect())
    }
}

/// Replaces this program by the one at `path`. Returns only to say why it could not.
pub fn execve(
    _subject: &Subject,
    path: &CStr,
    arguments: &StringArray,
    environment: &StringArray,
) -> Errno {
    // SAFETY: `path` ends in a NUL. Both arrays end in a null pointer and their entries are
    // NUL-terminated strings that they own, so all are alive until the program is replaced.
    let refused = unsafe {
        raw::call(
            libc::SYS_execve,
            [
                path.as_ptr().expose_provenance(),
                arguments.pointers.as_ptr().expose_provenance(),
                environment.pointers.as_ptr().expose_provenance(),
                0,
                0,
                0,
            ],
        )
    };
    refused.err().unwrap_or(Errno::NOEXEC)
}

/// Replaces this program by the open file `program`. Returns only to say why it could not.
///
/// A script needs its descriptor to stay open across the call: the interpreter opens it by
/// number. For a binary the descriptor should be close-on-exec.
pub fn fexecve(
    subject: &Subject,
    program: BorrowedFd<'_>,
    arguments: &StringArray,
    environment: &StringArray,
) -> Errno {
    execveat(subject, program, c"", arguments, environment)
}

/// Replaces this program by `path` below the directory `base`; an empty path means `base`
/// itself. Symbolic links in the last place are refused with [`Errno::LOOP`].
pub fn execveat(
    _subject: &Subject,
    base: BorrowedFd<'_>,
    path: &CStr,
    arguments: &StringArray,
    environment: &StringArray,
) -> Errno {
    let flags = if path.is_empty() {
        libc::AT_EMPTY_PATH
    } else {
        libc::AT_SYMLINK_NOFOLLOW
    };
    // SAFETY: as for `execve`; `base` is an open descriptor for the whole call.
    let refused = unsafe {
        raw::call(
            libc::SYS_execveat,
            [
                raw::fd_word(base),
                path.as_ptr().expose_provenance(),
                arguments.pointers.as_ptr().expose_provenance(),
                environment.pointers.as_ptr().expose_provenance(),
                raw::int_word(flags),
                0,
            ],
        )
    };
    refused.err().unwrap_or(Errno::NOEXEC)
}

/// Ends the process at once: no destructor, no exit handler, no flushing.
pub(super) fn exit(status: u8) -> ! {
    // SAFETY: `_exit` has no demands. Nothing of ours runs afterwards, which is what a child
    // that shares or copied somebody's memory needs.
    unsafe { libc::_exit(i32::from(status)) }
}

/// Ends the process by `SIGABRT`, whatever it thinks its own number is.
///
/// The C library's `abort` may signal a number it remembers from before a `clone`, which is
/// the parent's. This one asks the kernel, and is fit to be the last thing a panic hook does.
pub fn abort() -> ! {
    let _ = signals::set_default(libc::SIGABRT);
    let _ = Mask::EMPTY.restore();
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::ABORT);
    // The first process of a pid namespace cannot be killed by its own signals.
    exit(STATUS_OF_ABORT)
}

/// What a shell shows for a process that was killed by `SIGABRT`.
const STATUS_OF_ABORT: u8 = 134;

/// Ends a process that exists to be confined, at once.
pub fn exit_now(_subject: &Subject, status: u8) -> ! {
    exit(status)
}
