//! Pipes that no program gets unasked.

use std::io;
use std::os::fd::OwnedFd;

/// Two ends, the reading one first.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(target_os = "linux")]
    let ends = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    #[cfg(target_os = "macos")]
    let ends = {
        let (read, write) = rustix::pipe::pipe()?;
        for end in [&read, &write] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
        }
        (read, write)
    };
    Ok(ends)
}
