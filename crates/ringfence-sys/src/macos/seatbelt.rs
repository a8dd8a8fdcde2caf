//! The sandbox of macOS.
//!
//! `sandbox_init_with_parameters` and `sandbox_check` are exported by libSystem and declared in no
//! public header. Browsers and Apple's own programs use both; their shape has not changed for years.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use super::Subject;

/// The second argument of `sandbox_check` for a question about a path.
const FILTER_PATH: c_int = 1;

// SAFETY: these are the functions and the constant of libSystem, as every program that uses them
// declares them. `sandbox_check` takes the path behind its fixed arguments, so it must be declared
// with a variable number of them: on arm64 those are passed another way.
unsafe extern "C" {
    fn sandbox_init_with_parameters(
        profile: *const c_char,
        flags: u64,
        parameters: *const *const c_char,
        error: *mut *mut c_char,
    ) -> c_int;
    fn sandbox_free_error(error: *mut c_char);
    fn sandbox_check(pid: libc::pid_t, operation: *const c_char, filter: c_int, ...) -> c_int;
    static SANDBOX_CHECK_NO_REPORT: c_int;
}

/// Why a profile was not applied, in the words of the system.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(pub String);

/// Applies a profile to this process, for ever. `parameters` are names and values in turn.
///
/// # Errors
///
/// What the system says about the profile. The process is then as it was.
pub fn apply(_subject: &Subject, profile: &CStr, parameters: &[CString]) -> Result<(), Refused> {
    let mut pointers: Vec<*const c_char> = parameters.iter().map(|text| text.as_ptr()).collect();
    pointers.push(ptr::null());
    let mut error: *mut c_char = ptr::null_mut();
    // SAFETY: the profile ends in NUL and lives; the array holds pointers to strings that live and
    // end in NUL, and ends in a null pointer; zero flags mean that the first argument is the text
    // itself; the last one is where one pointer may be written.
    let status = unsafe {
        sandbox_init_with_parameters(profile.as_ptr(), 0, pointers.as_ptr(), &raw mut error)
    };
    if status == 0 {
        return Ok(());
    }
    if error.is_null() {
        return Err(Refused("the system gave no reason".to_owned()));
    }
    // SAFETY: the system wrote the pointer, to a string that ends in NUL and stays until it is freed
    // below.
    let text = unsafe { CStr::from_ptr(error) };
    let text = text.to_string_lossy().into_owned();
    // SAFETY: it is the system's own, freed once, and not used again.
    unsafe { sandbox_free_error(error) };
    Err(Refused(text))
}

/// What the kernel says of a process and a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// The process may read there.
    Allowed,
    /// It may not.
    Denied,
    /// There is no such process, or nobody may ask.
    Unknown,
}

/// Whether a process may read a path.
pub fn may_read(pid: i32, path: &CStr) -> Answer {
    // SAFETY: a constant of the library, which nobody writes to.
    let quietly = unsafe { SANDBOX_CHECK_NO_REPORT };
    let operation = c"file-read-data";
    // SAFETY: both strings end in NUL and live; the filter says that one pointer to such a string
    // follows, and one does. The function only asks.
    let answer = unsafe {
        sandbox_check(
            pid,
            operation.as_ptr(),
            FILTER_PATH | quietly,
            path.as_ptr(),
        )
    };
    match answer {
        0 => Answer::Allowed,
        1 => Answer::Denied,
        _ => Answer::Unknown,
    }
}
