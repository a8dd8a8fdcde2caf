//! Descriptors that a second stage is born with, and those that its command must not get.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use super::Subject;

/// Starts `command` with these descriptors open in it besides the standard ones, under the numbers
/// they have here.
///
/// # Errors
///
/// What kept the process from starting.
pub fn start_with(command: &mut Command, kept: &[BorrowedFd<'_>]) -> io::Result<Child> {
    let numbers: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
    let keep = move || {
        for number in &numbers {
            // SAFETY: takes integers only. The descriptor is open, since the caller has borrowed it
            // for the whole call that starts the process.
            if unsafe { libc::fcntl(*number, libc::F_SETFD, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: what runs between fork and exec makes one system call for each number, which may be
    // made there, and neither allocates nor locks: the list was made before.
    unsafe { command.pre_exec(keep) };
    command.spawn()
}

/// Takes over the descriptor of this number, which this process was started with. The number itself is
/// free afterwards.
///
/// # Errors
///
/// If it is not open, or is a standard one.
pub fn inherited(_subject: &Subject, number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: takes integers only, and answers with a fresh descriptor or an error.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: takes an integer only. The number was given to this process by whoever started it, no
    // value here owns it, and it can be taken over once.
    unsafe { libc::close(number) };
    // SAFETY: the kernel just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Marks every descriptor from `first` on to be closed when a program is started.
///
/// # Errors
///
/// If nobody can say which are open.
pub fn close_from_at_exec(_subject: &Subject, first: RawFd) -> io::Result<()> {
    for entry in std::fs::read_dir("/dev/fd")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse::<RawFd>().ok());
        if let Some(number) = number.filter(|number| *number >= first) {
            // SAFETY: takes integers only. One that is gone by now, as the one the directory was
            // read through will be, needs no mark.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}
