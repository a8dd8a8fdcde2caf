//! What a poll loop is made of: waiting, timers, pipes, and memory that can be sealed.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{self, PollFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

pub use rustix::event::{PollFd as Polled, PollFlags as Ready};

/// Sleeps until one of the descriptors is ready, at most for `limit`; says how many are.
///
/// # Errors
///
/// [`Errno::INTR`] when a handler ran: a loop with signals on a descriptor has none.
pub fn poll(descriptors: &mut [PollFd<'_>], limit: Option<Duration>) -> Result<usize, Errno> {
    let limit = limit.map(timespec);
    event::poll(descriptors, limit.as_ref())
}

/// A duration too long for the kernel is as good as its longest.
fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// A clock that becomes readable; it counts while the machine sleeps, and nobody can set it.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// A timer that is off.
    ///
    /// # Errors
    ///
    /// For want of descriptors.
    pub fn new() -> Result<Self, Errno> {
        timerfd_create(
            TimerfdClockId::Boottime,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )
        .map(Self)
    }

    /// Goes off once, `after` from now. Zero means at once.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn start(&self, after: Duration) -> Result<(), Errno> {
        // For the kernel zero means never.
        self.set(after.max(Duration::from_nanos(1)))
    }

    /// Switches it off.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn stop(&self) -> Result<(), Errno> {
        self.set(Duration::ZERO)
    }

    fn set(&self, value: Duration) -> Result<(), Errno> {
        let setting = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value: timespec(value),
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &setting).map(|_before| ())
    }

    /// Whether it has gone off since it was last asked.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub fn went_off(&self) -> Result<bool, Errno> {
        match rustix::io::read(&self.0, &mut [0_u8; 8]) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A pipe, reading end first, closed by exec.
///
/// # Errors
///
/// For want of descriptors.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    pipe_with(PipeFlags::CLOEXEC)
}

/// Memory as a file that exists nowhere else.
///
/// # Errors
///
/// The kernel's answer.
pub fn memory_file(name: &CStr) -> Result<OwnedFd, Errno> {
    memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
}

/// Makes a memory file unchangeable for everybody, for good.
///
/// # Errors
///
/// [`Errno::BUSY`] while it is mapped for writing; [`Errno::INVAL`] for any other file.
pub fn seal(file: impl AsFd) -> Result<(), Errno> {
    fcntl_add_seals(file, all_seals())
}

/// Whether [`seal`] was done.
///
/// # Errors
///
/// [`Errno::INVAL`] for a file that cannot be sealed.
pub fn is_sealed(file: impl AsFd) -> Result<bool, Errno> {
    Ok(fcntl_get_seals(file)?.contains(all_seals()))
}

fn all_seals() -> SealFlags {
    SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}
