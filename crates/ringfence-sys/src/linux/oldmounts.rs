//! `mount(2)`, for kernels that lack the calls by descriptor.
//!
//! Paths are those of open descriptors ([`FdPath`]), so that here too nothing is looked up
//! twice. What these calls cannot do is be recursive: a read-only bind leaves the mounts
//! below it writable, and the caller must walk them
//! ([`mountinfo`](super::mountinfo)) or refuse.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::mount::{self, MountFlags, MountPropagationFlags};

use super::fdpath::FdPath;
use super::mounts::{Attributes, Propagation, Reach};
use super::subject::Subject;

/// Binds the file or directory `source` over `target`.
///
/// # Errors
///
/// [`Errno::NOENT`] also means that `/proc` is not mounted.
pub fn bind(
    _subject: &Subject,
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    reach: Reach,
) -> Result<(), Errno> {
    let source = FdPath::new(source);
    let target = FdPath::new(target);
    match reach {
        Reach::Recursive => mount::mount_bind_recursive(source.as_c_str(), target.as_c_str()),
        Reach::Single => mount::mount_bind(source.as_c_str(), target.as_c_str()),
    }
}

/// Binds the one file or directory at `source` over `target`, both by their paths.
///
/// Links are followed on the way to either, so the caller must know that there can be none.
///
/// # Errors
///
/// The kernel's answer.
pub fn bind_paths(_subject: &Subject, source: &CStr, target: &CStr) -> Result<(), Errno> {
    mount::mount_bind(source, target)
}

/// Sets what the single mount at `target` forbids: all of `attributes` and nothing else,
/// except what an outer namespace has locked.
///
/// `target` must have been opened after the bind: a descriptor from before refers to what is
/// underneath.
///
/// # Errors
///
/// [`Errno::PERM`] if a locked attribute is missing from `attributes`.
pub fn remount(
    _subject: &Subject,
    target: BorrowedFd<'_>,
    attributes: Attributes,
) -> Result<(), Errno> {
    mount::mount_remount(
        FdPath::new(target).as_c_str(),
        MountFlags::BIND | flags(attributes),
        c"",
    )
}

/// Mounts a new filesystem over `target`.
///
/// # Errors
///
/// [`Errno::PERM`] for a type that may not be mounted here, or a procfs that would show more
/// than the one in sight.
pub fn mount_new(
    _subject: &Subject,
    kind: &CStr,
    target: BorrowedFd<'_>,
    attributes: Attributes,
    options: &CStr,
) -> Result<(), Errno> {
    mount::mount(
        kind,
        FdPath::new(target).as_c_str(),
        kind,
        flags(attributes),
        options,
    )
}

/// Sets where the events of the mount at `path` go.
///
/// # Errors
///
/// [`Errno::INVAL`] if `path` is not the root of a mount.
pub fn propagate(
    _subject: &Subject,
    path: &CStr,
    propagation: Propagation,
    reach: Reach,
) -> Result<(), Errno> {
    let mut flags = match propagation {
        Propagation::Keep => return Ok(()),
        Propagation::Private => MountPropagationFlags::PRIVATE,
        Propagation::Slave => MountPropagationFlags::DOWNSTREAM,
        Propagation::Unbindable => MountPropagationFlags::UNBINDABLE,
    };
    if reach == Reach::Recursive {
        flags |= MountPropagationFlags::REC;
    }
    mount::mount_change(path, flags)
}

fn flags(attributes: Attributes) -> MountFlags {
    [
        (Attributes::RDONLY, MountFlags::RDONLY),
        (Attributes::NOSUID, MountFlags::NOSUID),
        (Attributes::NODEV, MountFlags::NODEV),
        (Attributes::NOEXEC, MountFlags::NOEXEC),
        (Attributes::NOSYMFOLLOW, MountFlags::NOSYMFOLLOW),
    ]
    .into_iter()
    .filter(|(attribute, _)| attributes.contains(*attribute))
    .fold(MountFlags::empty(), |all, (_, flag)| all | flag)
}
