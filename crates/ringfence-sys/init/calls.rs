//! The system calls of the first process, by the bare instruction: there is no C library in it.
//!
//! Errors are the kernel's own numbers. Descriptors are plain numbers: this program was given
//! each of them by number, and owns everything that is open in it.

use core::arch::asm;

use super::bare::system_call;

/// What the kernel answered to a call that it refused.
pub(crate) type Errno = i32;

pub(crate) const EINTR: Errno = 4;
pub(crate) const EIO: Errno = 5;
pub(crate) const ECHILD: Errno = 10;
pub(crate) const EACCES: Errno = 13;
pub(crate) const ENOENT: Errno = 2;
pub(crate) const ENOTDIR: Errno = 20;
pub(crate) const EINVAL: Errno = 22;
pub(crate) const EPIPE: Errno = 32;

pub(crate) const SIGCHLD: i32 = 17;
pub(crate) const SIGCONT: i32 = 18;
const SIGKILL: i32 = 9;

/// Numbers of calls on x86-64.
#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const CLOCK_GETTIME: usize = 228;
    pub(super) const CLONE: usize = 56;
    pub(super) const CLOSE: usize = 3;
    pub(super) const CLOSE_RANGE: usize = 436;
    pub(super) const EXECVE: usize = 59;
    pub(super) const EXIT_GROUP: usize = 231;
    pub(super) const FCNTL: usize = 72;
    pub(super) const FSTATFS: usize = 138;
    pub(super) const GETPID: usize = 39;
    pub(super) const IOCTL: usize = 16;
    pub(super) const KILL: usize = 62;
    pub(super) const OPENAT: usize = 257;
    pub(super) const PIDFD_SEND_SIGNAL: usize = 424;
    pub(super) const PPOLL: usize = 271;
    pub(super) const PRCTL: usize = 157;
    pub(super) const READ: usize = 0;
    pub(super) const RT_SIGPROCMASK: usize = 14;
    pub(super) const SETPGID: usize = 109;
    pub(super) const SIGNALFD4: usize = 289;
    pub(super) const WAIT4: usize = 61;
    pub(super) const WAITID: usize = 247;
    pub(super) const WRITE: usize = 1;
}

/// Numbers of calls on 64-bit ARM.
#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const CLOCK_GETTIME: usize = 113;
    pub(super) const CLONE: usize = 220;
    pub(super) const CLOSE: usize = 57;
    pub(super) const CLOSE_RANGE: usize = 436;
    pub(super) const EXECVE: usize = 221;
    pub(super) const EXIT_GROUP: usize = 94;
    pub(super) const FCNTL: usize = 25;
    pub(super) const FSTATFS: usize = 44;
    pub(super) const GETPID: usize = 172;
    pub(super) const IOCTL: usize = 29;
    pub(super) const KILL: usize = 129;
    pub(super) const OPENAT: usize = 56;
    pub(super) const PIDFD_SEND_SIGNAL: usize = 424;
    pub(super) const PPOLL: usize = 73;
    pub(super) const PRCTL: usize = 167;
    pub(super) const READ: usize = 63;
    pub(super) const RT_SIGPROCMASK: usize = 135;
    pub(super) const SETPGID: usize = 154;
    pub(super) const SIGNALFD4: usize = 74;
    pub(super) const WAIT4: usize = 260;
    pub(super) const WAITID: usize = 95;
    pub(super) const WRITE: usize = 64;
}

/// Makes one system call.
///
/// # Safety
///
/// Whatever the kernel demands of `number`: every word that it takes for a pointer must be valid
/// for the access it makes.
unsafe fn call(number: usize, words: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: passed on to the caller, whose demands are the same.
    let answer = unsafe { system_call(number, words) };
    usize::try_from(answer).map_err(|_| Errno::try_from(-answer).unwrap_or(EIO))
}

/// An `int` as the kernel wants it in a register: it looks at the low half only.
fn int(value: i32) -> usize {
    value.cast_unsigned() as usize
}

fn fd(number: u32) -> usize {
    number as usize
}

fn address<T: ?Sized>(value: &T) -> usize {
    core::ptr::from_ref(value).cast::<u8>().expose_provenance()
}

fn address_mut<T: ?Sized>(value: &mut T) -> usize {
    core::ptr::from_mut(value).cast::<u8>().expose_provenance()
}

/// Ends this process.
pub(crate) fn exit(status: u8) -> ! {
    loop {
        // SAFETY: takes one integer. Nothing runs afterwards.
        let _ = unsafe { call(number::EXIT_GROUP, [usize::from(status), 0, 0, 0, 0, 0]) };
    }
}

/// Closes a descriptor.
pub(crate) fn close(file: u32) {
    // SAFETY: takes one integer; nothing in this program owns a descriptor but by its number.
    let _ = unsafe { call(number::CLOSE, [fd(file), 0, 0, 0, 0, 0]) };
}

/// Closes the three standard streams.
pub(crate) fn close_streams() {
    // SAFETY: takes integers; as for `close`.
    let _ = unsafe { call(number::CLOSE_RANGE, [0, 2, 0, 0, 0, 0]) };
}

/// Has everything but the standard streams closed by the next exec.
pub(crate) fn close_others_at_exec() -> Result<(), Errno> {
    const CLOSE_RANGE_CLOEXEC: usize = 4;
    let words = [3, int(-1), CLOSE_RANGE_CLOEXEC, 0, 0, 0];
    // SAFETY: takes integers; nothing is closed yet.
    unsafe { call(number::CLOSE_RANGE, words) }.map(|_zero| ())
}

/// Has one descriptor closed by the next exec: for Linux before 5.11, which cannot do it to all.
pub(crate) fn close_at_exec(file: u32) -> Result<(), Errno> {
    const F_SETFD: usize = 2;
    const FD_CLOEXEC: usize = 1;
    // SAFETY: takes integers.
    unsafe { call(number::FCNTL, [fd(file), F_SETFD, FD_CLOEXEC, 0, 0, 0]) }.map(|_zero| ())
}

/// Writes bytes in one piece; whether anybody hears them is not our business.
pub(crate) fn say(file: u32, bytes: &[u8]) {
    loop {
        let words = [fd(file), address(bytes), bytes.len(), 0, 0, 0];
        // SAFETY: the kernel reads as many bytes as there are.
        if unsafe { call(number::WRITE, words) } != Err(EINTR) {
            return;
        }
    }
}

/// Reads what is there, as far as it fits.
pub(crate) fn read(file: u32, buffer: &mut [u8]) -> Result<usize, Errno> {
    loop {
        let words = [fd(file), address_mut(buffer), buffer.len(), 0, 0, 0];
        // SAFETY: the kernel writes no more bytes than there is room for.
        match unsafe { call(number::READ, words) } {
            Err(EINTR) => {}
            other => return other,
        }
    }
}

/// Nanoseconds on the clock that all processes share.
pub(crate) fn now() -> u64 {
    const CLOCK_MONOTONIC: usize = 1;
    let mut time = [0_u64; 2];
    let words = [CLOCK_MONOTONIC, address_mut(&mut time), 0, 0, 0, 0];
    // SAFETY: the kernel writes a `struct timespec`: two words of 64 bits on both architectures.
    let _ = unsafe { call(number::CLOCK_GETTIME, words) };
    let [seconds, nanoseconds] = time;
    seconds
        .wrapping_mul(1_000_000_000)
        .wrapping_add(nanoseconds)
}

fn prctl(option: usize, value: usize) -> Result<(), Errno> {
    // SAFETY: both options used below take an integer, or the address of a name that lives for
    // ever, and the other words must be zero.
    unsafe { call(number::PRCTL, [option, value, 0, 0, 0, 0]) }.map(|_zero| ())
}

/// Closes this process to others of the same user.
pub(crate) fn hide_memory() -> Result<(), Errno> {
    const PR_SET_DUMPABLE: usize = 4;
    prctl(PR_SET_DUMPABLE, 0)
}

/// Names this process, as `ps` shows it.
pub(crate) fn set_name(name: &'static core::ffi::CStr) -> Result<(), Errno> {
    const PR_SET_NAME: usize = 15;
    prctl(PR_SET_NAME, name.as_ptr().expose_provenance())
}

/// The size the kernel demands of a signal mask.
const MASK_BYTES: usize = 8;

/// Which signals this process blocks.
pub(crate) fn set_mask(mask: u64) -> Result<(), Errno> {
    const SIG_SETMASK: usize = 2;
    let words = [SIG_SETMASK, address(&mask), 0, MASK_BYTES, 0, 0];
    // SAFETY: the kernel reads one mask; a null old mask is allowed.
    unsafe { call(number::RT_SIGPROCMASK, words) }.map(|_zero| ())
}

/// Every signal there is, as readable events.
pub(crate) fn all_signals() -> Result<u32, Errno> {
    const CLOEXEC_NONBLOCK: usize = 0o2_004_000;
    let mask = u64::MAX;
    let words = [int(-1), address(&mask), MASK_BYTES, CLOEXEC_NONBLOCK, 0, 0];
    // SAFETY: the kernel reads one mask.
    let answer = unsafe { call(number::SIGNALFD4, words) }?;
    u32::try_from(answer).map_err(|_| EIO)
}

/// One signal that arrived.
pub(crate) struct Arrived {
    pub(crate) signal: i32,
    /// Whether a process asked for it; the kernel did otherwise.
    pub(crate) by_process: bool,
}

/// Takes one signal that has arrived, without sleeping.
pub(crate) fn next_signal(signals: u32) -> Option<Arrived> {
    // `struct signalfd_siginfo`: signo at 0, code at 8.
    let mut info = [0_i32; 32];
    let words = [
        fd(signals),
        address_mut(&mut info),
        size_of_val(&info),
        0,
        0,
        0,
    ];
    // SAFETY: the kernel writes whole records of this size, and there is room for one.
    match unsafe { call(number::READ, words) } {
        Ok(128) => Some(Arrived {
            signal: info[0],
            // Codes above zero are the kernel's own.
            by_process: info[2] <= 0,
        }),
        _ => None,
    }
}

/// The kernel's `struct pollfd`.
#[repr(C)]
pub(crate) struct Watched {
    fd: u32,
    events: u16,
    happened: u16,
}

const POLLIN: u16 = 1;
const POLLERR: u16 = 8;

impl Watched {
    pub(crate) fn readable(fd: u32) -> Self {
        Self {
            fd,
            events: POLLIN,
            happened: 0,
        }
    }

    /// Watched only for what cannot be left out.
    pub(crate) fn closing(fd: u32) -> Self {
        Self {
            fd,
            events: 0,
            happened: 0,
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.happened & POLLERR != 0
    }
}

/// Sleeps until something happens.
pub(crate) fn poll(watched: &mut [Watched]) -> Result<(), Errno> {
    ppoll(watched, None)
}

/// Looks what has happened.
pub(crate) fn poll_at_once(watched: &mut [Watched]) -> Result<(), Errno> {
    ppoll(watched, Some([0, 0]))
}

/// Sleeps until a signal has arrived, but no longer than so many milliseconds.
pub(crate) fn rest(signals: u32, milliseconds: u32) {
    let time = [
        u64::from(milliseconds / 1000),
        u64::from(milliseconds % 1000) * 1_000_000,
    ];
    let _slept = ppoll(&mut [Watched::readable(signals)], Some(time));
}

/// Sleeps no longer than some time, in seconds and nanoseconds.
fn ppoll(watched: &mut [Watched], mut time: Option<[u64; 2]>) -> Result<(), Errno> {
    let time = time.as_mut().map_or(0, address_mut);
    let words = [address_mut(watched), watched.len(), time, 0, MASK_BYTES, 0];
    // SAFETY: the kernel reads and writes as many records as there are, and one time, if one is given,
    // where it leaves what remains of it; no mask is.
    unsafe { call(number::PPOLL, words) }.map(|_count| ())
}

/// How a process ended, as `wait4` packs it.
#[derive(Clone, Copy)]
pub(crate) struct Status(pub(crate) i32);

/// Whether to sleep until a child has ended.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Patience {
    None,
    UntilOneEnds,
}

/// Reaps any one child; `None` if there are children and none has ended.
pub(crate) fn reap(patience: Patience) -> Result<Option<(i32, Status)>, Errno> {
    const WNOHANG: i32 = 1;
    // Also those that announce their end by no signal.
    const WALL: i32 = 0x4000_0000;
    let mut status = 0_i32;
    let options = match patience {
        Patience::None => WALL | WNOHANG,
        Patience::UntilOneEnds => WALL,
    };
    let words = [int(-1), address_mut(&mut status), int(options), 0, 0, 0];
    // SAFETY: the kernel writes one int; a null usage is allowed.
    let pid = unsafe { call(number::WAIT4, words) }?;
    Ok(match i32::try_from(pid) {
        Ok(0) | Err(_) => None,
        Ok(pid) => Some((pid, Status(status))),
    })
}

/// What has happened to a child that is still there.
pub(crate) enum Turn {
    Continued,
    Stopped(i32),
}

/// Whether a child was stopped or continued since this was last asked.
pub(crate) fn turn(pidfd: u32) -> Option<Turn> {
    const P_PIDFD: usize = 3;
    const WNOHANG_WSTOPPED_WCONTINUED_WALL: i32 = 0x4000_000b;
    const CLD_STOPPED: i32 = 5;
    const CLD_CONTINUED: i32 = 6;
    // `siginfo_t`: signo at 0, code at 8, status at 24.
    let mut info = [0_i32; 32];
    let words = [
        P_PIDFD,
        fd(pidfd),
        address_mut(&mut info),
        int(WNOHANG_WSTOPPED_WCONTINUED_WALL),
        0,
        0,
    ];
    // SAFETY: the kernel writes one `siginfo_t`, which has 128 bytes; a null usage is allowed.
    unsafe { call(number::WAITID, words) }.ok()?;
    match (info[0], info[2]) {
        (SIGCHLD, CLD_CONTINUED) => Some(Turn::Continued),
        (SIGCHLD, CLD_STOPPED) => Some(Turn::Stopped(info[6])),
        _ => None,
    }
}

/// Sends a signal to a child and to nothing else.
pub(crate) fn signal_child(pidfd: u32, signal: i32) {
    // SAFETY: takes integers; null information is what `kill` sends.
    let _ = unsafe {
        call(
            number::PIDFD_SEND_SIGNAL,
            [fd(pidfd), int(signal), 0, 0, 0, 0],
        )
    };
}

fn kill(whom: i32, signal: i32) {
    // SAFETY: takes integers.
    let _ = unsafe { call(number::KILL, [int(whom), int(signal), 0, 0, 0, 0]) };
}

/// Ends a child of ours, by its number, which is its own until it is reaped here.
pub(crate) fn end_child(pid: i32) {
    if pid > 1 {
        kill(pid, SIGKILL);
    }
}

/// Continues a process group that was stopped.
pub(crate) fn continue_group(leader: i32) {
    if leader > 1 {
        kill(-leader, SIGCONT);
    }
}

/// Kills every other process of the pid namespace whose init this is. In any other process it
/// would mean everybody's, so there it does nothing.
pub(crate) fn kill_everyone_else() {
    // SAFETY: takes nothing and touches nothing.
    if unsafe { call(number::GETPID, [0; 6]) } == Ok(1) {
        kill(-1, SIGKILL);
    }
}

/// Makes this process a group of its own, in the foreground of a terminal.
pub(crate) fn take_foreground(terminal: u32) -> Result<(), Errno> {
    const TIOCSPGRP: usize = 0x5410;
    // SAFETY: takes integers; zeros mean this process.
    unsafe { call(number::SETPGID, [0; 6]) }?;
    // SAFETY: takes nothing and touches nothing.
    let own = unsafe { call(number::GETPID, [0; 6]) }?;
    let own = i32::try_from(own).map_err(|_| EIO)?;
    // SAFETY: this request reads one process number, which is alive.
    unsafe {
        call(
            number::IOCTL,
            [fd(terminal), TIOCSPGRP, address(&own), 0, 0, 0],
        )
    }
    .map(|_zero| ())
}

/// Opens the list of our own children, if that is what the kernel shows there.
pub(crate) fn open_children() -> Result<u32, Errno> {
    const AT_FDCWD: i32 = -100;
    const RDONLY_CLOEXEC: usize = 0o2_000_000;
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    let path = c"/proc/thread-self/children";
    let words = [
        int(AT_FDCWD),
        path.as_ptr().expose_provenance(),
        RDONLY_CLOEXEC,
        0,
        0,
        0,
    ];
    // SAFETY: the path ends in a NUL and lives for ever.
    let answer = unsafe { call(number::OPENAT, words) }?;
    let file = u32::try_from(answer).map_err(|_| EIO)?;
    // `struct statfs` has 120 bytes on both architectures and begins with the type.
    let mut filesystem = [0_u64; 15];
    let words = [fd(file), address_mut(&mut filesystem), 0, 0, 0, 0];
    // SAFETY: the kernel writes one `struct statfs`.
    let looked = unsafe { call(number::FSTATFS, words) };
    if looked.is_ok() && filesystem[0] == PROC_SUPER_MAGIC {
        return Ok(file);
    }
    close(file);
    Err(EIO)
}

/// Replaces this program. Returns only to say why it could not.
///
/// # Safety
///
/// `path` must end in a NUL; both arrays must end in a null pointer and hold such strings.
pub(crate) unsafe fn execve(
    path: *const u8,
    arguments: *const *const u8,
    environment: *const *const u8,
) -> Errno {
    let words = [
        path.expose_provenance(),
        arguments.expose_provenance(),
        environment.expose_provenance(),
        0,
        0,
        0,
    ];
    // SAFETY: passed on to the caller.
    unsafe { call(number::EXECVE, words) }.err().unwrap_or(EIO)
}

/// The memory that a child of [`spawn`] runs on. One at a time: the caller sleeps.
#[repr(C, align(16))]
struct Stack(core::cell::UnsafeCell<[u8; STACK_BYTES]>);
const STACK_BYTES: usize = 16 << 10;
// SAFETY: this program has one thread, and the child that uses the memory runs while it sleeps.
unsafe impl Sync for Stack {}
static STACK: Stack = Stack(core::cell::UnsafeCell::new([0; STACK_BYTES]));

/// A child, by its number and its descriptor.
#[derive(Clone, Copy)]
pub(crate) struct Child {
    pub(crate) pid: i32,
    pub(crate) pidfd: u32,
}

/// Starts a child that shares our memory, and sleeps until it has become another program or
/// ended. What `body` returns is its status.
pub(crate) fn spawn<T>(context: &T, body: extern "C" fn(&T) -> u8) -> Result<Child, Errno> {
    /// Everything is shared but for descriptors and signal actions; the caller sleeps.
    const VM_VFORK_PIDFD: usize = 0x100 | 0x4000 | 0x1000;
    /// The child's first and last frame.
    extern "C" fn enter<T>(context: &T, body: extern "C" fn(&T) -> u8) -> ! {
        exit(body(context))
    }
    let mut pidfd = u32::MAX;
    let top = STACK.0.get().expose_provenance() + STACK_BYTES;
    let entry: extern "C" fn(&T, extern "C" fn(&T) -> u8) -> ! = enter::<T>;
    let answer: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: in the parent this is a plain system call, which writes the descriptor to a live
    // int. The child comes out of it on the stack given, aligned, with its target and arguments
    // in registers that the kernel preserved, and never returns. The parent sleeps meanwhile
    // (CLONE_VFORK), so that nothing else uses that stack or changes the context.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "mov rsi, r13",
            "call r14",
            "ud2",
            "2:",
            inlateout("rax") number::CLONE => answer,
            in("rdi") VM_VFORK_PIDFD,
            in("rsi") top,
            in("rdx") address_mut(&mut pidfd),
            in("r10") 0,
            in("r8") 0,
            in("r12") context,
            in("r13") body,
            in("r14") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as for x86-64.
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x20",
            "mov x1, x21",
            "blr x22",
            "brk #1",
            "2:",
            in("x8") number::CLONE,
            inlateout("x0") VM_VFORK_PIDFD => answer,
            in("x1") top,
            in("x2") address_mut(&mut pidfd),
            in("x3") 0,
            in("x4") 0,
            in("x20") context,
            in("x21") body,
            in("x22") entry,
            // `blr` is only reached in the child, but the assembler cannot know.
            lateout("x30") _,
        );
    }
    match i32::try_from(answer) {
        Ok(pid) if pid > 0 => Ok(Child { pid, pidfd }),
        Ok(refused) => Err(-refused),
        Err(_) => Err(EIO),
    }
}
