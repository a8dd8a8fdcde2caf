//! Loading seccomp programs. What they say is decided elsewhere, as data.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::raw;
use super::subject::Subject;

/// One instruction, laid out as the kernel's `struct sock_filter`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub struct SockFilter {
    /// What to do.
    pub code: u16,
    /// How many instructions to skip if true.
    pub jt: u8,
    /// How many instructions to skip if false.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

bitflags::bitflags! {
    /// How to load a program.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Load: u32 {
        /// Apply to every thread of the process.
        const TSYNC = 1 << 0;
        /// Log every denial to the kernel's audit.
        const LOG = 1 << 1;
        /// Leave speculative execution as it is.
        const SPEC_ALLOW = 1 << 2;
        /// Once a notification was received, only a fatal signal interrupts its caller
        /// (with a listener only, Linux 5.19).
        const WAIT_KILLABLE_RECV = 1 << 5;
    }
}

const NEW_LISTENER: u32 = 1 << 3;
const TSYNC_ESRCH: u32 = 1 << 4;

const SET_MODE_FILTER: usize = 1;
const GET_ACTION_AVAIL: usize = 2;

/// Adds `program` to the filters of the calling thread, for good.
///
/// # Errors
///
/// [`Errno::ACCESS`] without `no_new_privs` or the right to do without; [`Errno::INVAL`] for
/// a program the kernel does not accept; [`Errno::SRCH`] if a thread could not be brought
/// along. Nothing is in force then.
pub fn load(_subject: &Subject, program: &[SockFilter], flags: Load) -> Result<(), Errno> {
    let flags = flags.bits();
    // Without this the kernel answers a failed TSYNC by a thread number, which a hurried
    // reader takes for success.
    let flags = if flags & Load::TSYNC.bits() == 0 {
        flags
    } else {
        flags | TSYNC_ESRCH
    };
    let fprog = Program::new(program)?;
    // SAFETY: `fprog` points to as many instructions as it says, all alive; the kernel copies
    // them. A program can only narrow what this process may call.
    let zero = unsafe { set_filter(flags, &fprog) }?;
    if zero == 0 { Ok(()) } else { Err(Errno::SRCH) }
}

/// As [`load`], and returns the descriptor on which calls that the program passes on are
/// announced.
///
/// # Errors
///
/// As [`load`]; [`Errno::BUSY`] if a filter around us has a listener already.
pub fn load_with_listener(
    _subject: &Subject,
    program: &[SockFilter],
    flags: Load,
) -> Result<OwnedFd, Errno> {
    let flags = flags.bits() | NEW_LISTENER;
    let fprog = Program::new(program)?;
    let words = [
        SET_MODE_FILTER,
        flags as usize,
        raw::address(&fprog),
        0,
        0,
        0,
    ];
    // SAFETY: as in `load`; with this flag a successful call returns a new descriptor. The
    // combination with TSYNC that returns a thread number instead is refused by the kernel.
    unsafe { raw::call_for_fd(libc::SYS_seccomp, words) }
}

/// Whether this kernel knows an action, by its `SECCOMP_RET_*` value.
///
/// # Errors
///
/// [`Errno::NOSYS`] without seccomp; an unknown action is `Ok(false)`.
pub fn action_available(action: u32) -> Result<bool, Errno> {
    let words = [GET_ACTION_AVAIL, 0, raw::address(&action), 0, 0, 0];
    // SAFETY: the kernel reads one u32, which is alive, and changes nothing.
    match unsafe { raw::call(libc::SYS_seccomp, words) } {
        Ok(_) => Ok(true),
        Err(Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// # Safety
///
/// `program` must point to live instructions, as many as it says.
unsafe fn set_filter(flags: u32, program: &Program) -> Result<usize, Errno> {
    let words = [
        SET_MODE_FILTER,
        flags as usize,
        raw::address(program),
        0,
        0,
        0,
    ];
    // SAFETY: the caller vouches for the program; `Program` is a `struct sock_fprog`.
    unsafe { raw::call(libc::SYS_seccomp, words) }
}

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    length: u16,
    instructions: *const SockFilter,
}

impl Program {
    fn new(instructions: &[SockFilter]) -> Result<Self, Errno> {
        Ok(Self {
            length: u16::try_from(instructions.len()).map_err(|_| Errno::INVAL)?,
            instructions: instructions.as_ptr(),
        })
    }
}

const _: () = {
    assert!(size_of::<SockFilter>() == 8);
    assert!(size_of::<Program>() == 16);
};
