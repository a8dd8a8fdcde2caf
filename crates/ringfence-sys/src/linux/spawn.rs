//! Starts a child, in new namespaces if asked, and runs one function in it.
//!
//! Owns the `clone3` call and its fallback. It never execs, waits or decides what the child
//! does; it never allocates between the call and the child's function.
//!
//! Kinds of child:
//!
//! - [`Memory::Copied`], like fork: the child gets its own copy of everything and may live on
//!   as a process of its own (an init, a probe). The cost grows with the caller's memory.
//! - [`Memory::Shared`], like vfork but on a stack of its own: the calling thread sleeps until
//!   the child execs or exits, and the cost is the same from a caller of any size. What the
//!   child writes into its context is what the caller finds there afterwards.
//! - [`Beside`], which shares our memory as well, while we go on: for work that two processors
//!   can do at once. It gets a copy of its context and tells what it has to tell by descriptors.
//!   [`Ahead`](super::ahead::Ahead) is one that is told later what to do.
//!
//! All signals are blocked from before the call, so that no handler of the caller can ever
//! run in the child; the child's function starts with all signals blocked and must reset the
//! dispositions before it unblocks ([`signals::reset`](super::signals::reset)).
//!
//! The child announces its death by no signal ([`wait`](super::wait) finds it by its pidfd), so
//! neither a caller that ignores `SIGCHLD` nor one that reaps every child it sees can lose
//! us the exit status before the child has become another program.

use std::arch::asm;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::process::Pid;

use super::exec;
use super::namespaces::Namespaces;
use super::raw;
use super::signals::Mask;
use super::stack::Stack;
use super::subject::Subject;
use super::wait::{self, Child, Ended};

/// Whose memory the child runs in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Memory {
    /// A copy of the caller's, like fork.
    Copied,
    /// The caller's own, like vfork; the calling thread sleeps until the child execs or exits.
    Shared,
}

/// How to start a child.
#[derive(Clone, Copy, Debug)]
pub struct Spawn<'fd> {
    memory: Memory,
    namespaces: Namespaces,
    cgroup: Option<BorrowedFd<'fd>>,
}

/// What runs in the child. Its result is the child's exit status.
///
/// A plain function, not a closure: nothing is moved into the child, so nothing can be
/// dropped there. It must not allocate, lock, log or panic: another thread of the caller may
/// have held the lock in question at the moment of the copy, and in the child it is held for
/// ever.
///
/// A panic that happens all the same is caught at the child's first frame, never unwinds into
/// the caller's, and ends the child by `SIGABRT`. Where panics abort instead of unwinding it
/// cannot be caught, and the C library's `abort` signals the thread it *remembers* itself to
/// be, which with musl is the caller: a program built that way must end its panic hook with
/// [`exec::abort`](super::exec::abort).
pub type Body<T> = fn(&Subject, &mut T) -> u8;

impl<'fd> Spawn<'fd> {
    /// A child in the caller's own namespaces and cgroup.
    pub const fn new(memory: Memory) -> Self {
        Self {
            memory,
            namespaces: Namespaces::empty(),
            cgroup: None,
        }
    }

    /// Puts the child into new namespaces, made at its birth.
    #[must_use]
    pub const fn namespaces(mut self, namespaces: Namespaces) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Lets the child be born in `cgroup`, an open version 2 cgroup directory.
    ///
    /// Never one in which `cgroup.kill` was ever written: several kernels kill such newborns.
    #[must_use]
    pub const fn cgroup(mut self, cgroup: BorrowedFd<'fd>) -> Self {
        self.cgroup = Some(cgroup);
        self
    }

    /// Starts the child and runs `body` in it.
    ///
    /// # Errors
    ///
    /// The kernel's answer; no child exists then. [`Errno::NOSYS`] with a cgroup means that
    /// this kernel (or a filter around us) has no `clone3`: without a cgroup the older call
    /// is used instead.
    pub fn start<T>(&self, context: &mut T, body: Body<T>) -> Result<Child, Errno> {
        let mut launch = Launch { context, body };
        let launch = std::ptr::from_mut(&mut launch);
        match self.memory {
            Memory::Copied => self.blocked(Sharing::nothing(), launch, None),
            Memory::Shared => {
                let stack = Stack::map()?;
                let sharing = Sharing::memory(CLONE_VFORK);
                self.blocked(sharing, launch, Some((&stack, stack.top())))
            }
        }
    }

    /// Starts a child beside us, in our memory, and runs `body` in it.
    ///
    /// For a process that exists to be confined: it has one thread, and knows what is beside it.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_beside<T: Copy + 'static>(
        &self,
        _subject: &Subject,
        context: T,
        body: Body<T>,
    ) -> Result<Beside, Errno> {
        let stack = Stack::map()?;
        // On the child's own stack, since our frames do not wait for it.
        let (context, below) = stack.lay(stack.top(), context)?;
        // SAFETY: a live value of that type was laid there just now, and nobody else knows of it.
        let context = unsafe { &mut *context };
        let (launch, below) = stack.lay(below, Launch { context, body })?;
        let child = self.blocked(Sharing::memory(0), launch, Some((&stack, below)))?;
        Ok(Beside {
            child: ManuallyDrop::new(child),
            stack: ManuallyDrop::new(stack),
        })
    }

    /// Makes the call with all signals blocked.
    pub(super) fn blocked<T>(
        &self,
        sharing: Sharing,
        launch: *mut Launch<'_, T>,
        stack: Option<(&Stack, usize)>,
    ) -> Result<Child, Errno> {
        let before = Mask::block_all()?;
        let born = self.clone(sharing, launch, stack);
        before.restore()?;
        born
    }

    /// `stack` comes with the address from which it is free.
    fn clone<T>(
        &self,
        sharing: Sharing,
        launch: *mut Launch<'_, T>,
        stack: Option<(&Stack, usize)>,
    ) -> Result<Child, Errno> {
        let mut pidfd: RawFd = -1;
        let flags = CLONE_PIDFD | sharing.flags | u64::from(self.namespaces.bits());
        let mut arguments = CloneArguments {
            flags,
            pidfd: word(raw::address_mut(&mut pidfd)),
            child_tid: word(sharing.cleared),
            ..CloneArguments::default()
        };
        if let Some(cgroup) = self.cgroup {
            arguments.flags |= CLONE_INTO_CGROUP;
            arguments.cgroup = word(raw::fd_word(cgroup));
        }
        if let Some((stack, top)) = stack {
            arguments.stack = word(stack.bottom());
            arguments.stack_size = word(top - stack.bottom());
        }
        let modern = [
            raw::address(&arguments),
            size_of::<CloneArguments>(),
            0,
            0,
            0,
        ];
        // SAFETY: `arguments` is a whole `struct clone_args`, alive across the call, its
        // reserved tail zero; `pidfd` is a live int for the kernel to fill. The stack is either
        // a mapping of our own that outlives the child's use of it (CLONE_VFORK, `Beside` and
        // `Ahead`, on which lies the word that the kernel clears when the child leaves), or
        // absent, and then the child runs on its private copy of ours (no CLONE_VM): no caller
        // sets one without the other. `launch` lives in the caller's frame, which the child sees
        // as a copy or as the frame of a thread that sleeps, or on that very stack.
        let mut answer = unsafe { call_or_enter::<T>(libc::SYS_clone3, modern, launch) };
        let modern_only = self.cgroup.is_some() || sharing.cleared != 0;
        if answer == Err(Errno::NOSYS) && !modern_only {
            let legacy = [
                self.legacy_flags(flags)?,
                stack.map_or(0, |(_, top)| top),
                raw::address_mut(&mut pidfd),
                0,
                0,
            ];
            // SAFETY: as above; the older call takes the top of the stack instead of its
            // bottom, and writes the pidfd where the third word points. No TLS or child-tid
            // flag is set, so the last two words are not read on either architecture.
            answer = unsafe { call_or_enter::<T>(libc::SYS_clone, legacy, launch) };
        }
        let pid = answer?;
        // SAFETY: the call succeeded with CLONE_PIDFD, so the kernel stored a fresh,
        // close-on-exec descriptor there, and nobody else knows its number.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        pid.map(|pid| Child::new(pid, pidfd)).ok_or(Errno::RANGE)
    }

    /// The older call has a 32-bit flag word, whose low byte is the exit signal: a time
    /// namespace does not fit.
    fn legacy_flags(&self, flags: u64) -> Result<usize, Errno> {
        if self.namespaces.contains(Namespaces::TIME) {
            return Err(Errno::NOSYS);
        }
        usize::try_from(flags).map_err(|_| Errno::OVERFLOW)
    }
}

/// A child that runs beside us in our memory.
///
/// Its stack is kept until [`wait`](Self::wait) has seen its end. Dropped before that, the memory is
/// never used again, so that a child nobody waited for does no harm to it.
#[derive(Debug)]
#[must_use = "it runs beside us until somebody waits for its end"]
pub struct Beside {
    /// Never dropped: a process that closes what it does not need does so by number.
    child: ManuallyDrop<Child>,
    stack: ManuallyDrop<Stack>,
}

impl Beside {
    /// Sleeps until it ends, and reaps it.
    ///
    /// # Errors
    ///
    /// [`Errno::CHILD`] if somebody else has reaped it.
    pub fn wait(self) -> Result<Ended, Errno> {
        let Self { child, stack } = self;
        // By number, which stays its own until here.
        let ended = wait::wait_for(child.pid())?;
        drop(ManuallyDrop::into_inner(stack));
        Ok(ended)
    }
}

impl AsFd for Beside {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.child.as_fd()
    }
}

/// What a child has in common with us.
#[derive(Clone, Copy)]
pub(super) struct Sharing {
    flags: u64,
    /// The address of a word that the kernel clears when the child has left our memory, or zero.
    cleared: usize,
}

impl Sharing {
    const fn nothing() -> Self {
        Self {
            flags: 0,
            cleared: 0,
        }
    }

    const fn memory(more: u64) -> Self {
        Self {
            flags: CLONE_VM | more,
            cleared: 0,
        }
    }

    /// Memory and descriptors; the word is cleared, and whoever sleeps on it woken, when the child
    /// has left our memory.
    pub(super) fn until_left(here: &AtomicU32) -> Self {
        Self {
            flags: CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID,
            cleared: here.as_ptr().expose_provenance(),
        }
    }
}

/// What the child needs to begin.
pub(super) struct Launch<'a, T> {
    context: &'a mut T,
    body: Body<T>,
}

impl<'a, T> Launch<'a, T> {
    pub(super) fn new(context: &'a mut T, body: Body<T>) -> Self {
        Self { context, body }
    }
}

/// The child's first and last frame.
///
/// # Safety
///
/// `launch` must be valid and unaliased for the rest of the process's life.
unsafe extern "C" fn enter<T>(launch: *mut Launch<'_, T>) -> ! {
    // SAFETY: the caller passes a pointer to a live value that nobody else uses: the thread
    // that made it sleeps, or has its own copy.
    let launch = unsafe { &mut *launch };
    let Launch { context, body } = launch;
    // The context is not looked at again after a panic: the child ends.
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&Subject::newborn(), context)));
    match outcome.map_err(ManuallyDrop::new) {
        Ok(status) => exec::exit(status),
        Err(_payload) => exec::abort(),
    }
}

/// Makes the given clone call. In the parent it returns; in the child it calls [`enter`].
///
/// # Safety
///
/// `words` must be valid for the call; if they ask for shared memory they must bring a stack
/// of their own. `launch` must live until the child execs or exits.
unsafe fn call_or_enter<T>(
    number: libc::c_long,
    words: [usize; 5],
    launch: *mut Launch<'_, T>,
) -> Result<usize, Errno> {
    let [first, second, third, fourth, fifth] = words;
    let entry: unsafe extern "C" fn(*mut Launch<'_, T>) -> ! = enter::<T>;
    let answer: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: in the parent this is a plain system call: rax, rcx and r11 are declared as
    // changed and the kernel preserves the rest. The child falls through to `call` with a
    // 16-byte aligned stack (mapped, or the copy of ours as this block found it), its argument
    // and target in registers that the kernel preserved, and never comes back: `enter` does
    // not return. Memory may change behind the block, and no option claims otherwise.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") number => answer,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            in("r8") fifth,
            in("r12") launch,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as for x86_64; the kernel changes x0 only, and `blr` needs a 16-byte aligned
    // stack, which both kinds of child have.
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            in("x8") number,
            inlateout("x0") first => answer,
            in("x1") second,
            in("x2") third,
            in("x3") fourth,
            in("x4") fifth,
            in("x20") launch,
            in("x21") entry,
            // `blr` is only reached in the child, but the assembler cannot know.
            lateout("x30") _,
        );
    }
    raw::answered(answer)
}

/// `usize` is 64 bits on both architectures.
const fn word(value: usize) -> u64 {
    value as u64
}

const CLONE_VM: u64 = 0x100;
const CLONE_FILES: u64 = 0x400;
const CLONE_PIDFD: u64 = 0x1000;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// `struct clone_args`, third version (Linux 5.7). Older kernels accept it while the tail
/// they do not know is zero.
#[derive(Default)]
#[repr(C, align(8))]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const _: () = assert!(size_of::<CloneArguments>() == 88);
