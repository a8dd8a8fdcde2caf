//! What this host lets us do, found by doing it in a child that ends at once.
//!
//! Nothing is concluded from a version number. A probe answers `Ok(())` if the thing worked
//! and the kernel's own answer if it did not; why that is so (a sysctl, a filter, a container)
//! is for the caller to find out with [`switches`](super::switches).

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use super::exec;
use super::files::{self, CWD};
use super::landlock::{self, AccessFs, Handled, Restrict, Ruleset};
use super::loopback;
use super::mounts::{self, Attributes, Change, Filesystem, Propagation, Reach};
use super::namespaces::{IdMap, Namespaces, map_ids};
use super::notify;
use super::process;
use super::procfs::ProcDir;
use super::seccomp::{self, Load, SockFilter};
use super::spawn::{Body, Memory, Spawn};
use super::subject::Subject;

/// Makes a user namespace together with `further` ones, and maps the caller into it.
///
/// # Errors
///
/// What the kernel answered to the first step that failed.
pub fn namespaces(further: Namespaces) -> Result<(), Errno> {
    try_inside(Namespaces::USER | further, |_, _| Ok(()))
}

/// Mounts a fresh procfs in a new pid namespace.
///
/// # Errors
///
/// [`Errno::PERM`] where the visible `/proc` is partly covered, as in many containers.
pub fn proc_mount() -> Result<(), Errno> {
    let set = Namespaces::USER | Namespaces::MOUNT | Namespaces::PID;
    try_inside(set, |_, _| {
        let tree = Filesystem::open(c"proc")?.mount(Attributes::NOSUID)?;
        ProcDir::verified(tree).map(|_proc_dir| ())
    })
}

/// Goes through the calls that mount by descriptor: a cloned tree, made read-only at every
/// depth, and a new tmpfs put in place.
///
/// # Errors
///
/// [`Errno::NOSYS`] where one of them is missing.
pub fn mount_api() -> Result<(), Errno> {
    try_inside(Namespaces::USER | Namespaces::MOUNT, |subject, _| {
        let private = Change::forbid(Attributes::empty()).with_propagation(Propagation::Private);
        mounts::mount_setattr(subject, CWD, c"/", private, Reach::Recursive)?;
        let tree = mounts::open_tree(CWD, c"/", Reach::Recursive)?;
        let read_only = Change::forbid(Attributes::RDONLY);
        mounts::mount_setattr(subject, tree.as_fd(), c"", read_only, Reach::Recursive)?;
        let place = files::pin(CWD, c"/tmp")?;
        let empty = Filesystem::open(c"tmpfs")?.mount(Attributes::NODEV)?;
        mounts::move_mount(subject, empty.as_fd(), place.as_fd(), c"")
    })
}

/// Brings up the loopback device of a new network namespace.
///
/// # Errors
///
/// What the kernel answered.
pub fn loopback_device() -> Result<(), Errno> {
    try_inside(Namespaces::USER | Namespaces::NET, |subject, _| {
        loopback::bring_up(subject)
    })
}

/// Enforces an empty ruleset of everything this kernel's ABI handles, and checks that it
/// holds.
///
/// # Errors
///
/// What the kernel answered; [`Errno::NOTRECOVERABLE`] if the rules were accepted and a file
/// could be opened all the same.
pub fn landlock() -> Result<(), Errno> {
    try_plain(|subject, _| {
        let abi = landlock::abi()?;
        let handled = Handled {
            fs: AccessFs::of_abi(abi),
            ..Handled::default()
        };
        let ruleset = Ruleset::new(abi, handled)?;
        process::no_new_privs(subject)?;
        ruleset.restrict_self(subject, Restrict::empty())?;
        match rustix::fs::open(c"/", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::ACCESS) => Ok(()),
            Ok(_) => Err(Errno::NOTRECOVERABLE),
            Err(errno) => Err(errno),
        }
    })
}

/// Loads a filter and checks that it answers.
///
/// # Errors
///
/// What the kernel answered; [`Errno::NOTRECOVERABLE`] if the filter was accepted and did
/// nothing.
pub fn seccomp_filter() -> Result<(), Errno> {
    try_plain(|subject, _| {
        process::no_new_privs(subject)?;
        seccomp::load(subject, &refuse_getppid(RET_ERRNO), Load::empty())?;
        // SAFETY: has no demands.
        match unsafe { super::raw::call(libc::SYS_getppid, [0; 6]) } {
            Err(Errno::DOM) => Ok(()),
            _ => Err(Errno::NOTRECOVERABLE),
        }
    })
}

/// Loads a filter with a listener.
///
/// # Errors
///
/// [`Errno::BUSY`] where a filter around us has a listener already; [`Errno::OVERFLOW`] if
/// the kernel's structures are not those we know.
pub fn seccomp_listener() -> Result<(), Errno> {
    try_plain(|subject, _| {
        if !notify::sizes_agree()? {
            return Err(Errno::OVERFLOW);
        }
        process::no_new_privs(subject)?;
        let program = refuse_getppid(RET_USER_NOTIF);
        seccomp::load_with_listener(subject, &program, Load::empty()).map(|_listener| ())
    })
}

/// Lets a child be born in `cgroup`, a group of ours that was never killed.
///
/// # Errors
///
/// [`Errno::ACCESS`] where it is not delegated; [`Errno::NOSYS`] without `clone3`.
pub fn spawn_into(cgroup: BorrowedFd<'_>) -> Result<(), Errno> {
    run(
        Spawn::new(Memory::Shared).cgroup(cgroup),
        &mut Attempt::new(None, |_, _| Ok(())),
    )
}

/// Opens the device that makes network tunnels; nothing is configured.
///
/// # Errors
///
/// [`Errno::ACCESS`] where only root may; [`Errno::NOENT`] where there is none.
pub fn tun_device() -> Result<(), Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(c"/dev/net/tun", flags, Mode::empty()).map(|_tun| ())
}

type Step = fn(&Subject, &Attempt) -> Result<(), Errno>;

struct Attempt {
    proc_dir: Option<ProcDir>,
    user: IdMap,
    group: IdMap,
    step: Step,
    outcome: Result<(), Errno>,
}

impl Attempt {
    fn new(proc_dir: Option<ProcDir>, step: Step) -> Self {
        Self {
            proc_dir,
            user: IdMap::same(geteuid().as_raw()),
            group: IdMap::same(getegid().as_raw()),
            step,
            // Stays if the child dies before it can say anything.
            outcome: Err(Errno::NOTRECOVERABLE),
        }
    }
}

fn try_inside(set: Namespaces, step: Step) -> Result<(), Errno> {
    let mut attempt = Attempt::new(Some(ProcDir::open()?), step);
    run(Spawn::new(Memory::Shared).namespaces(set), &mut attempt)
}

fn try_plain(step: Step) -> Result<(), Errno> {
    run(Spawn::new(Memory::Shared), &mut Attempt::new(None, step))
}

/// The child shares our memory, so its outcome is simply there when the call returns.
fn run(spawn: Spawn<'_>, attempt: &mut Attempt) -> Result<(), Errno> {
    let body: Body<Attempt> = |subject, attempt| {
        attempt.outcome = attempt_all(subject, attempt);
        exec::exit_now(subject, 0)
    };
    spawn.start(attempt, body)?.wait()?;
    attempt.outcome
}

fn attempt_all(subject: &Subject, attempt: &Attempt) -> Result<(), Errno> {
    if let Some(proc_dir) = &attempt.proc_dir {
        map_ids(subject, proc_dir, attempt.user, attempt.group)?;
    }
    (attempt.step)(subject, attempt)
}

const RET_ERRNO: u32 = 0x0005_0000 + EDOM;
/// An answer that the call itself never gives.
const EDOM: u32 = 33;
const RET_USER_NOTIF: u32 = 0x7fc0_0000;

/// Gives `action` for a harmless call and allows every other.
fn refuse_getppid(action: u32) -> [SockFilter; 4] {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    #[cfg(target_arch = "x86_64")]
    const GETPPID: u32 = 110;
    #[cfg(target_arch = "aarch64")]
    const GETPPID: u32 = 173;
    let instruction = |code, jf, k| SockFilter { code, jt: 0, jf, k };
    [
        instruction(LOAD_NUMBER, 0, 0),
        instruction(JUMP_IF_EQUAL, 1, GETPPID),
        instruction(RETURN, 0, action),
        instruction(RETURN, 0, ALLOW),
    ]
}
