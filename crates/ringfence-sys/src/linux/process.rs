//! Attributes of the calling process: who watches it, what it may become, what it may use.

use std::ffi::CStr;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    self, DumpableBehavior, Pid, Resource, Rlimit, Signal, prlimit, set_child_subreaper,
    set_dumpable_behavior, set_parent_process_death_signal,
};
use rustix::thread;

use super::raw;
use super::subject::Subject;

pub use rustix::process::{Resource as LimitedResource, Rlimit as Limit};

/// Asks the kernel to send `signal` when the thread that started this process ends, and
/// makes sure that it has not ended already.
///
/// `parent` is the starter's pid as seen from here: `None` when it is outside our pid
/// namespace. It must be called after any change of uid, which forgets the request. The
/// kernel watches the starting *thread*, so spawn from one that lives as long as it should.
///
/// # Errors
///
/// [`Errno::SRCH`] if the parent is gone: the caller must exit. In a new pid namespace that
/// cannot be seen from inside; there, hold a pipe whose other end the parent owns.
pub fn die_with_parent(
    subject: &Subject,
    parent: Option<Pid>,
    signal: Signal,
) -> Result<(), Errno> {
    signal_at_parents_end(subject, signal)?;
    if process::getppid() == parent {
        Ok(())
    } else {
        Err(Errno::SRCH)
    }
}

/// Asks the kernel to send `signal` when the thread that started this process ends.
///
/// For a signal that does no harm if the parent has ended before: nothing is checked.
///
/// # Errors
///
/// The kernel's answer.
pub fn signal_at_parents_end(_subject: &Subject, signal: Signal) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(signal))
}

/// Whether other processes of the same user may look into this one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dumpable {
    /// They may trace it and read its memory, environment and descriptors.
    Yes,
    /// They may not, and its files below `/proc` belong to root: write id maps first.
    No,
}

/// Opens or closes this process to others of the same user; exec opens it again.
///
/// # Errors
///
/// The kernel's answer.
pub fn set_dumpable(_subject: &Subject, dumpable: Dumpable) -> Result<(), Errno> {
    set_dumpable_behavior(match dumpable {
        Dumpable::Yes => DumpableBehavior::Dumpable,
        Dumpable::No => DumpableBehavior::NotDumpable,
    })
}

/// Gives up, for this process and all it will start, every way to gain rights by exec.
///
/// # Errors
///
/// The kernel's answer.
pub fn no_new_privs(_subject: &Subject) -> Result<(), Errno> {
    thread::set_no_new_privs(true)
}

/// Whether [`no_new_privs`] holds.
///
/// # Errors
///
/// The kernel's answer.
pub fn has_no_new_privs() -> Result<bool, Errno> {
    thread::no_new_privs()
}

/// Makes orphans among our descendants our children. Not inherited by children.
///
/// # Errors
///
/// The kernel's answer.
pub fn become_subreaper(_subject: &Subject) -> Result<(), Errno> {
    // Any pid means yes; rustix takes one because the kernel takes a number.
    set_child_subreaper(Some(process::getpid()))
}

/// Names this thread, as `ps` shows it; the kernel keeps fifteen bytes.
///
/// # Errors
///
/// The kernel's answer.
pub fn set_name(_subject: &Subject, name: &CStr) -> Result<(), Errno> {
    thread::set_name(name)
}

/// Starts a session of its own, without a controlling terminal.
///
/// # Errors
///
/// [`Errno::PERM`] if the process already leads its process group.
pub fn new_session(_subject: &Subject) -> Result<(), Errno> {
    process::setsid().map(|_session| ())
}

/// Sets the bits that new files never get, and returns those of before.
pub fn set_umask(_subject: &Subject, mask: u32) -> u32 {
    process::umask(Mode::from_raw_mode(mask)).as_raw_mode()
}

/// Sets one resource limit of this process and returns the one of before.
///
/// # Errors
///
/// [`Errno::PERM`] for raising a hard limit; [`Errno::INVAL`] for a soft one above it.
pub fn set_limit(_subject: &Subject, resource: Resource, limit: Rlimit) -> Result<Rlimit, Errno> {
    prlimit(None, resource, limit)
}

/// Reads one resource limit of this process.
pub fn limit(resource: Resource) -> Rlimit {
    process::getrlimit(resource)
}

/// Reads one resource limit of another process.
///
/// # Errors
///
/// [`Errno::SRCH`] if there is no such process; [`Errno::PERM`] if it is somebody else's, or has
/// become it.
pub fn limit_of(pid: Pid, resource: Resource) -> Result<Rlimit, Errno> {
    /// The kernel's `struct rlimit64`.
    #[repr(C)]
    struct Pair {
        current: u64,
        maximum: u64,
    }
    const _: () = assert!(size_of::<Pair>() == 16);
    const INFINITY: u64 = u64::MAX;
    let mut pair = Pair {
        current: 0,
        maximum: 0,
    };
    // SAFETY: a null new limit changes nothing; the old one is written to a live pair of the
    // kernel's layout. The process is named by number and none of its memory is touched.
    unsafe {
        raw::call(
            libc::SYS_prlimit64,
            [
                raw::int_word(pid.as_raw_nonzero().get()),
                raw::int_word(resource_number(resource)),
                0,
                raw::address_mut(&mut pair),
                0,
                0,
            ],
        )
    }?;
    let bound = |value| (value != INFINITY).then_some(value);
    Ok(Rlimit {
        current: bound(pair.current),
        maximum: bound(pair.maximum),
    })
}

/// rustix numbers them as the kernel does.
fn resource_number(resource: Resource) -> i32 {
    resource as i32
}

/// Returns to the plain execution domain: address randomisation on, no emulation of other
/// systems, whatever a strange parent asked for.
///
/// # Errors
///
/// The kernel's answer, or that of a filter around us.
pub fn reset_personality(_subject: &Subject) -> Result<(), Errno> {
    const PER_LINUX: usize = 0;
    // SAFETY: takes one integer and touches no memory; it takes effect at the next exec.
    unsafe { raw::call(libc::SYS_personality, [PER_LINUX, 0, 0, 0, 0, 0]) }.map(|_before| ())
}

/// The execution domain in force, without changing it.
///
/// # Errors
///
/// The kernel's answer, or that of a filter around us.
pub fn personality() -> Result<usize, Errno> {
    const ASK: usize = 0xffff_ffff;
    // SAFETY: takes one integer and touches no memory; this value asks and changes nothing.
    unsafe { raw::call(libc::SYS_personality, [ASK, 0, 0, 0, 0, 0]) }
}

/// Fills `bytes` from the kernel's random source.
///
/// # Errors
///
/// The kernel's answer; `bytes` is then not to be used.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), Errno> {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let count = rustix::io::retry_on_intr(|| {
            rustix::rand::getrandom(&mut *rest, rustix::rand::GetRandomFlags::empty())
        })?;
        filled += count;
    }
    Ok(())
}

/// Sets real, effective and saved ids of the calling thread, groups first.
///
/// For a launcher that was started as root and must not stay it, and for tests. Ids are never
/// mixed: all three become the one given.
///
/// # Errors
///
/// [`Errno::PERM`] without the right to do so; groups may then be gone already.
pub fn become_user(_subject: &Subject, uid: u32, gid: u32) -> Result<(), Errno> {
    let gid = process::Gid::from_raw(gid);
    let uid = process::Uid::from_raw(uid);
    thread::set_thread_groups(&[])?;
    thread::set_thread_res_gid(gid, gid, gid)?;
    thread::set_thread_res_uid(uid, uid, uid)
}
