//! Calls that a seccomp program passes on to a supervisor, and the supervisor's answers.
//!
//! An answer is given for a call, never for a process: the id of a call is checked by the
//! kernel. Memory of the caller may change at any time; whoever reads it must decide on the
//! copy and act on the copy ([`add_fd`](Listener::add_fd)), and may let the call go on by
//! itself only for reporting.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::Pid;

use super::raw;

/// The supervisor's end of a filter that was loaded with a listener.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// One call that waits for an answer: `struct seccomp_notif`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Notification {
    /// Names the call.
    pub id: u64,
    /// Who makes it, in our pid namespace; zero if it is not visible from there.
    pub pid: u32,
    /// Unused by the kernel so far.
    pub flags: u32,
    /// Number of the system call.
    pub number: i32,
    /// Architecture, by its audit constant.
    pub arch: u32,
    /// Where it was made.
    pub instruction_pointer: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// What to answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// The call is made after all, by its caller, with arguments that may have changed since.
    Continue,
    /// The call fails with this error.
    Fail(Errno),
    /// The call returns this value, without having been made.
    Return(i64),
}

impl Listener {
    /// Takes the descriptor that
    /// [`load_with_listener`](super::seccomp::load_with_listener) returned, or a copy that
    /// was passed over a socket.
    pub fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Sleeps until a call waits, and takes it.
    ///
    /// # Errors
    ///
    /// [`Errno::NOENT`] if the caller was killed meanwhile: ask again. [`Errno::INTR`] when a
    /// handler ran.
    pub fn receive(&self) -> Result<Notification, Errno> {
        let mut notification = Notification::default();
        // SAFETY: the kernel demands a zeroed `struct seccomp_notif` to fill, which this is.
        unsafe { self.ask(RECV, raw::address_mut(&mut notification)) }?;
        Ok(notification)
    }

    /// Answers a call.
    ///
    /// # Errors
    ///
    /// [`Errno::NOENT`] if nobody waits for it any more, [`Errno::INPROGRESS`] if it was
    /// answered and has not gone on yet.
    pub fn answer(&self, id: u64, answer: Answer) -> Result<(), Errno> {
        let response = match answer {
            Answer::Continue => Response {
                id,
                value: 0,
                error: 0,
                flags: 1,
            },
            Answer::Fail(errno) => Response {
                id,
                value: 0,
                error: -errno.raw_os_error(),
                flags: 0,
            },
            Answer::Return(value) => Response {
                id,
                value,
                error: 0,
                flags: 0,
            },
        };
        // SAFETY: the kernel reads a `struct seccomp_notif_resp`, which this is.
        unsafe { self.ask(SEND, raw::address(&response)) }.map(|_zero| ())
    }

    /// Gives the caller a copy of `file` and makes the call return its number, in one step.
    ///
    /// # Errors
    ///
    /// [`Errno::NOENT`] if nobody waits any more; [`Errno::MFILE`] if the caller has no number
    /// left: then the call still waits.
    pub fn add_fd(&self, id: u64, file: BorrowedFd<'_>, at_exec: AtExec) -> Result<(), Errno> {
        const SEND_TOO: u32 = 2;
        let addition = Addition {
            id,
            flags: SEND_TOO,
            source: std::os::fd::AsRawFd::as_raw_fd(&file).cast_unsigned(),
            number: 0,
            number_flags: match at_exec {
                AtExec::Close => libc::O_CLOEXEC.cast_unsigned(),
                AtExec::Keep => 0,
            },
        };
        // SAFETY: the kernel reads a `struct seccomp_notif_addfd`, which this is.
        unsafe { self.ask(ADDFD, raw::address(&addition)) }.map(|_number| ())
    }

    /// Whether the call still waits: to be asked after its memory was read, since the pid may
    /// have been reused before.
    ///
    /// # Errors
    ///
    /// Those of an odd kernel; a call that is gone is `Ok(false)`.
    pub fn still_waits(&self, id: u64) -> Result<bool, Errno> {
        // SAFETY: the kernel reads one u64.
        match unsafe { self.ask(ID_VALID, raw::address(&id)) } {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Wakes the supervisor on the caller's own processor: several times faster, since only
    /// one of the two ever runs (Linux 6.6).
    ///
    /// # Errors
    ///
    /// [`Errno::INVAL`] on older kernels.
    pub fn wake_synchronously(&self) -> Result<(), Errno> {
        const SYNC_WAKE_UP: usize = 1;
        // SAFETY: this request takes its flags by value.
        unsafe { self.ask(SET_FLAGS, SYNC_WAKE_UP) }.map(|_zero| ())
    }

    /// # Safety
    ///
    /// `argument` must be what `request` demands.
    unsafe fn ask(&self, request: usize, argument: usize) -> Result<usize, Errno> {
        // SAFETY: passed on to the caller.
        unsafe {
            raw::call(
                libc::SYS_ioctl,
                [raw::fd_word(self.0.as_fd()), request, argument, 0, 0, 0],
            )
        }
    }
}

impl AsFd for Listener {
    /// Readable when a call waits; hangs up when no process is left.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What becomes of a descriptor when its process becomes another program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AtExec {
    /// It is closed.
    Close,
    /// It is inherited.
    Keep,
}

/// Copies memory of another process; fewer bytes than asked for if the rest is not mapped.
///
/// What is read is a copy of something that may have changed since, of a process that may
/// have been another: see [`still_waits`](Listener::still_waits).
///
/// # Errors
///
/// [`Errno::FAULT`] if nothing is mapped there; [`Errno::PERM`] without the right to trace.
pub fn read_memory(pid: Pid, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let local = [raw::address_mut(buffer), buffer.len()];
    let remote = [
        usize::try_from(address).map_err(|_| Errno::FAULT)?,
        buffer.len(),
    ];
    // SAFETY: both arrays are single `struct iovec`, a pointer and a length. The local one is
    // the caller's buffer, which the kernel fills up to its length; the remote one is an
    // address in another process and is checked there.
    unsafe {
        raw::call(
            libc::SYS_process_vm_readv,
            [
                raw::int_word(pid.as_raw_pid()),
                raw::address(&local),
                1,
                raw::address(&remote),
                1,
                0,
            ],
        )
    }
}

/// Whether the structures here are as long as the kernel's own.
///
/// # Errors
///
/// [`Errno::NOSYS`] or [`Errno::INVAL`] on kernels without user notification.
pub fn sizes_agree() -> Result<bool, Errno> {
    const GET_NOTIF_SIZES: usize = 3;
    let mut sizes = [0_u16; 3];
    // SAFETY: the kernel writes three u16.
    unsafe {
        raw::call(
            libc::SYS_seccomp,
            [GET_NOTIF_SIZES, 0, raw::address_mut(&mut sizes), 0, 0, 0],
        )
    }?;
    Ok(sizes == [80, 24, 64])
}

const RECV: usize = 0xc050_2100;
const SEND: usize = 0xc018_2101;
const ID_VALID: usize = 0x4008_2102;
const ADDFD: usize = 0x4018_2103;
const SET_FLAGS: usize = 0x4008_2104;

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// `struct seccomp_notif_addfd`.
#[repr(C)]
struct Addition {
    id: u64,
    flags: u32,
    source: u32,
    number: u32,
    number_flags: u32,
}

const _: () = {
    assert!(size_of::<Notification>() == 80);
    assert!(size_of::<Response>() == 24);
    assert!(size_of::<Addition>() == 24);
};
