//! Namespaces: which there are, who maps to whom, what they are called.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::thread::{
    LinkNameSpaceType, ThreadNameSpaceType, move_into_link_name_space, move_into_thread_name_spaces,
};

use super::fdpath::decimal;
use super::files;
use super::procfs::ProcDir;
use super::raw;
use super::subject::Subject;

bitflags::bitflags! {
    /// A set of namespaces, with the kernel's own bits.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct Namespaces: u32 {
        /// Clocks.
        const TIME = 0x0000_0080;
        /// Mounts.
        const MOUNT = 0x0002_0000;
        /// The view of the cgroup tree.
        const CGROUP = 0x0200_0000;
        /// Host name.
        const UTS = 0x0400_0000;
        /// System V and POSIX message queues, semaphores, shared memory.
        const IPC = 0x0800_0000;
        /// Users, groups and capabilities.
        const USER = 0x1000_0000;
        /// Process numbers.
        const PID = 0x2000_0000;
        /// Network.
        const NET = 0x4000_0000;
    }
}

/// Moves the calling process into new namespaces. A new pid or time namespace takes effect
/// for its children only.
///
/// # Errors
///
/// [`Errno::PERM`] without the right; [`Errno::NOSPC`] (or [`Errno::USERS`]) beyond the
/// allowed number.
pub fn unshare(_subject: &Subject, namespaces: Namespaces) -> Result<(), Errno> {
    // SAFETY: takes one integer. The set holds namespace flags only: neither memory, nor
    // descriptors, nor the filesystem context stop being shared behind anybody's back.
    unsafe {
        raw::call(
            libc::SYS_unshare,
            [namespaces.bits() as usize, 0, 0, 0, 0, 0],
        )
    }
    .map(|_zero| ())
}

/// Joins those namespaces of the process behind `pidfd`.
///
/// # Errors
///
/// [`Errno::PERM`] without rights in the target's user namespace.
pub fn join(
    _subject: &Subject,
    pidfd: BorrowedFd<'_>,
    namespaces: Namespaces,
) -> Result<(), Errno> {
    move_into_thread_name_spaces(
        pidfd,
        ThreadNameSpaceType::from_bits_retain(namespaces.bits()),
    )
}

/// A handle to the calling process's own namespace of one kind, for somebody who may
/// [`enter`] it later.
///
/// # Errors
///
/// [`Errno::INVAL`] for more than one kind, or one that has no such handle here.
pub fn own(kind: Namespaces) -> Result<OwnedFd, Errno> {
    let path = if kind == Namespaces::USER {
        c"/proc/thread-self/ns/user"
    } else if kind == Namespaces::MOUNT {
        c"/proc/thread-self/ns/mnt"
    } else {
        return Err(Errno::INVAL);
    };
    files::openat2(
        files::CWD,
        path,
        OFlags::RDONLY,
        Mode::empty(),
        ResolveFlags::empty(),
    )
}

/// Enters the namespace behind a handle.
///
/// # Errors
///
/// [`Errno::PERM`] without rights in its user namespace; [`Errno::INVAL`] for another kind, or
/// from a process with threads.
pub fn enter(_subject: &Subject, namespace: BorrowedFd<'_>, kind: Namespaces) -> Result<(), Errno> {
    let kind = if kind == Namespaces::USER {
        LinkNameSpaceType::User
    } else if kind == Namespaces::MOUNT {
        LinkNameSpaceType::Mount
    } else {
        return Err(Errno::INVAL);
    };
    move_into_link_name_space(namespace, Some(kind))
}

/// One id inside that stands for one id outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IdMap {
    /// The id as seen inside the new user namespace.
    pub inside: u32,
    /// The id that it is in the parent's.
    pub outside: u32,
}

impl IdMap {
    /// An id that stays itself.
    pub const fn same(id: u32) -> Self {
        Self {
            inside: id,
            outside: id,
        }
    }
}

/// Maps one user and one group of the calling process's new user namespace, and gives up
/// `setgroups` first, as the kernel demands of the unprivileged.
///
/// The process must still be dumpable: otherwise the files belong to root.
///
/// # Errors
///
/// [`Errno::PERM`] if the outer ids are not the caller's own, or were mapped before.
pub fn map_ids(
    _subject: &Subject,
    proc_dir: &ProcDir,
    user: IdMap,
    group: IdMap,
) -> Result<(), Errno> {
    proc_dir.write_file(c"self/setgroups", b"deny")?;
    write_map(proc_dir, c"self/gid_map", group)?;
    write_map(proc_dir, c"self/uid_map", user)
}

fn write_map(proc_dir: &ProcDir, file: &std::ffi::CStr, map: IdMap) -> Result<(), Errno> {
    let mut text = [0; MAP_BYTES];
    let length = format_map(map, &mut text);
    proc_dir.write_file(file, text.get(..length).unwrap_or_default())
}

/// Two numbers of ten digits, two blanks, a one and a newline.
const MAP_BYTES: usize = 24;

fn format_map(map: IdMap, text: &mut [u8; MAP_BYTES]) -> usize {
    let (mut inside, mut outside) = ([0; 10], [0; 10]);
    let parts = [
        decimal(map.inside, &mut inside),
        b" ",
        decimal(map.outside, &mut outside),
        b" 1\n",
    ];
    let mut length = 0;
    for (slot, byte) in text.iter_mut().zip(parts.into_iter().flatten()) {
        *slot = *byte;
        length += 1;
    }
    length
}

/// Names the machine, as seen in the calling process's UTS namespace.
///
/// # Errors
///
/// [`Errno::PERM`] without the right: the namespace is not ours.
pub fn set_host_name(_subject: &Subject, name: &[u8]) -> Result<(), Errno> {
    rustix::system::sethostname(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_line_is_what_the_kernel_reads() {
        for (map, expected) in [
            (IdMap::same(0), "0 0 1\n"),
            (
                IdMap {
                    inside: 1000,
                    outside: 54_321,
                },
                "1000 54321 1\n",
            ),
            (IdMap::same(u32::MAX), "4294967295 4294967295 1\n"),
        ] {
            let mut text = [0; MAP_BYTES];
            let length = format_map(map, &mut text);
            assert_eq!(&text[..length], expected.as_bytes());
        }
    }
}
