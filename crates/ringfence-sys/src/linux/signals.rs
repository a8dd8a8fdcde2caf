//! Signal masks and dispositions, by the bare call.
//!
//! The C library hides two signals of its own from every mask and disposition; a child that
//! must start from a known state resets those as well, so its functions are not used here.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::raw;
use super::subject::Subject;
pub use crate::mask::Mask;

/// As the kernel has a set of signals.
pub(crate) type Bits = u64;

/// Signals are numbered from one to this.
pub(crate) const LAST: i32 = 64;

/// The size the kernel demands of a mask.
const MASK_BYTES: usize = size_of::<u64>();

pub(crate) fn change(new: Option<Mask>) -> Result<Mask, Errno> {
    const SIG_SETMASK: usize = 2;
    let mut before = 0_u64;
    let new = new.map(|mask| mask.0);
    // SAFETY: the new mask is null or a live u64 that is only read; the old one is a live u64
    // that is only written; both have the size given. Blocking signals breaks no memory.
    unsafe {
        raw::call(
            libc::SYS_rt_sigprocmask,
            [
                SIG_SETMASK,
                new.as_ref().map_or(0, raw::address),
                raw::address_mut(&mut before),
                MASK_BYTES,
                0,
                0,
            ],
        )
    }?;
    Ok(Mask(before))
}

/// What a caller asks for by ignoring it: `nohup` and a shell's background jobs mean the program, and
/// whatever that starts.
const ASKED_FOR: [i32; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT];

/// Gives every signal its default action, then unblocks them all.
///
/// A program must not inherit what a strange parent ignored or blocked, but for a hang-up, an
/// interrupt and a quit that were ignored. In this order, because a handler of the caller has no
/// business in this process.
///
/// # Errors
///
/// The first refusal; some dispositions may then have been reset.
pub fn reset(subject: &Subject) -> Result<(), Errno> {
    reset_dispositions(subject)?;
    Mask::EMPTY.restore()
}

/// Gives every signal its default action, with the same exceptions, and leaves the mask alone.
///
/// # Errors
///
/// As [`reset`].
pub fn reset_dispositions(_subject: &Subject) -> Result<(), Errno> {
    for signal in 1..=LAST {
        let fixed = signal == libc::SIGKILL || signal == libc::SIGSTOP;
        let asked_for = ASKED_FOR.contains(&signal) && is_ignored(signal);
        if !fixed && !asked_for {
            set_action(signal, SIG_DFL)?;
        }
    }
    Ok(())
}

/// Gives one signal its default action.
pub(super) fn set_default(signal: i32) -> Result<(), Errno> {
    set_action(signal, SIG_DFL)
}

/// Ignores one signal, as an init does with those it would otherwise die of.
///
/// # Errors
///
/// [`Errno::INVAL`] for a signal that cannot be ignored.
pub fn ignore(_subject: &Subject, signal: i32) -> Result<(), Errno> {
    set_action(signal, SIG_IGN)
}

/// Has a file that grows too large for this process be an answer to whoever writes it, and not the
/// process's end. For a program as a whole: a library leaves this to its caller.
///
/// # Errors
///
/// Only those of an outer filter.
pub fn outlive_file_size() -> Result<(), Errno> {
    set_action(libc::SIGXFSZ, SIG_IGN)
}

/// What a signal does, where that is not a handler.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Disposition {
    /// The kernel's default action.
    Default,
    /// A handler of this program.
    Handled,
    /// Nothing.
    Ignored,
}

/// Reads what `signal` does in this process.
///
/// # Errors
///
/// [`Errno::INVAL`] for a number that is no signal.
pub fn disposition(signal: i32) -> Result<Disposition, Errno> {
    let mut action = Action::default();
    // SAFETY: a null new action changes nothing; the old one is written to a live value of
    // the kernel's layout, and the mask size is the kernel's.
    unsafe {
        raw::call(
            libc::SYS_rt_sigaction,
            [
                raw::int_word(signal),
                0,
                raw::address_mut(&mut action),
                MASK_BYTES,
                0,
                0,
            ],
        )
    }?;
    Ok(match action.handler {
        SIG_DFL => Disposition::Default,
        SIG_IGN => Disposition::Ignored,
        _ => Disposition::Handled,
    })
}

/// Whether this process ignores `signal`.
///
/// Blocked and read from a [`SignalFd`] it would arrive all the same.
pub fn is_ignored(signal: i32) -> bool {
    disposition(signal) == Ok(Disposition::Ignored)
}

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;

/// The kernel's `struct sigaction`, which is not the C library's.
#[derive(Default)]
#[repr(C)]
struct Action {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

const _: () = assert!(size_of::<Action>() == 32);

fn set_action(signal: i32, handler: usize) -> Result<(), Errno> {
    let action = Action {
        handler,
        ..Action::default()
    };
    // SAFETY: the action is a live value of the kernel's layout; its handler is one of the two
    // that name no code, so no code of ours can be run by it. A null old action is allowed.
    unsafe {
        raw::call(
            libc::SYS_rt_sigaction,
            [
                raw::int_word(signal),
                raw::address(&action),
                0,
                MASK_BYTES,
                0,
                0,
            ],
        )
    }?;
    Ok(())
}

/// Blocked signals as readable events, so that a poll loop needs no handler.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

/// One signal that arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// Who sent it, in our pid namespace; zero when it came from outside or from the kernel.
    pub sender: u32,
    /// Whether some process asked for it.
    pub sent_by: SentBy,
}

/// Where a signal came from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SentBy {
    /// The kernel itself: a terminal's key, a child's end, an expired timer.
    Kernel,
    /// A process, by `kill` or one of its relatives.
    Process,
}

impl SignalFd {
    /// Listens for the signals of `mask`, which the caller has blocked ([`Mask::block`]).
    ///
    /// # Errors
    ///
    /// The kernel's answer, for want of descriptors.
    pub fn new(mask: Mask) -> Result<Self, Errno> {
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the mask is a live u64 that is only read, of the size given. With -1 the
        // call makes a new descriptor, which is ours alone.
        unsafe {
            raw::call_for_fd(
                libc::SYS_signalfd4,
                [
                    raw::int_word(-1),
                    raw::address(&mask.0),
                    MASK_BYTES,
                    raw::int_word(flags),
                    0,
                    0,
                ],
            )
        }
        .map(Self)
    }

    /// Takes one signal that has arrived, without sleeping.
    ///
    /// # Errors
    ///
    /// Those of reading; an empty queue is `Ok(None)`.
    pub fn take(&self) -> Result<Option<Arrived>, Errno> {
        // `struct signalfd_siginfo`: signo at 0, errno at 4, code at 8, pid at 12.
        let mut info = [0_u8; 128];
        match rustix::io::read(&self.0, &mut info) {
            Ok(128) => {}
            Ok(_) => return Err(Errno::IO),
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(errno),
        }
        let [
            s0,
            s1,
            s2,
            s3,
            _,
            _,
            _,
            _,
            c0,
            c1,
            c2,
            c3,
            p0,
            p1,
            p2,
            p3,
            ..,
        ] = info;
        // Codes above zero are the kernel's own.
        let code = i32::from_ne_bytes([c0, c1, c2, c3]);
        Ok(Some(Arrived {
            signal: i32::from_ne_bytes([s0, s1, s2, s3]),
            sender: u32::from_ne_bytes([p0, p1, p2, p3]),
            sent_by: if code > 0 {
                SentBy::Kernel
            } else {
                SentBy::Process
            },
        }))
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
