//! Mounts by descriptor: the calls that replaced `mount(2)`.
//!
//! A tree is cloned from a descriptor, given its attributes while nobody can see it, and only
//! then put in place; no source is looked up by name twice. Kernels that lack one of these
//! calls answer [`Errno::NOSYS`]: see [`oldmounts`](super::oldmounts).

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::{
    self, FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};

use super::raw;
use super::subject::Subject;

/// Whether a call means one mount or all that hangs below it too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// The mount and everything mounted below.
    Recursive,
    /// The one mount.
    Single,
}

bitflags::bitflags! {
    /// What a mount forbids, with the kernel's `MOUNT_ATTR_*` bits.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Attributes: u64 {
        /// Nothing can be written.
        const RDONLY = 0x1;
        /// Set-user-id bits and file capabilities are ignored.
        const NOSUID = 0x2;
        /// Device nodes cannot be opened.
        const NODEV = 0x4;
        /// Nothing can be executed.
        const NOEXEC = 0x8;
        /// Symbolic links are not followed.
        const NOSYMFOLLOW = 0x0020_0000;
    }
}

/// Where events of a mount go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Propagation {
    /// As it was.
    Keep,
    /// Nowhere, and none come.
    Private,
    /// Nowhere, but those of the former peers come.
    Slave,
    /// Nowhere, none come, and it cannot be cloned.
    Unbindable,
}

impl Propagation {
    const fn bits(self) -> u64 {
        match self {
            Self::Keep => 0,
            Self::Private => 1 << 18,
            Self::Slave => 1 << 19,
            Self::Unbindable => 1 << 17,
        }
    }
}

/// Clones the mount tree that starts at `path` below `base`; an empty path means `base`
/// itself. The clone is attached nowhere, and dies with its descriptor.
///
/// # Errors
///
/// [`Errno::INVAL`] where a locked mount would be uncovered by a single clone.
pub fn open_tree(base: BorrowedFd<'_>, path: &CStr, reach: Reach) -> Result<OwnedFd, Errno> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | OpenTreeFlags::AT_NO_AUTOMOUNT;
    if path.is_empty() {
        flags |= OpenTreeFlags::AT_EMPTY_PATH;
    }
    if reach == Reach::Recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    mount::open_tree(base, path, flags)
}

/// Puts `tree` on `path` below `base`; an empty path means on `base` itself. A symbolic link
/// in the last place is not followed.
///
/// # Errors
///
/// The kernel's answer; `tree` is then still unattached.
pub fn move_mount(
    _subject: &Subject,
    tree: BorrowedFd<'_>,
    base: BorrowedFd<'_>,
    path: &CStr,
) -> Result<(), Errno> {
    let mut flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    if path.is_empty() {
        flags |= MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    }
    mount::move_mount(tree, c"", base, path, flags)
}

/// A change of mount attributes.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// What is forbidden from now on.
    pub set: Attributes,
    /// What is no longer forbidden.
    pub clear: Attributes,
    /// Where events go.
    pub propagation: Propagation,
}

impl Change {
    /// Forbids, and allows nothing.
    pub const fn forbid(set: Attributes) -> Self {
        Self {
            set,
            clear: Attributes::empty(),
            propagation: Propagation::Keep,
        }
    }

    /// The same change, and this propagation.
    #[must_use]
    pub const fn with_propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = propagation;
        self
    }
}

/// Changes the attributes of the mount at `path` below `base`; an empty path means `base`.
///
/// Unlike a remount the recursive form reaches every mount below, all or none.
///
/// # Errors
///
/// [`Errno::PERM`] for clearing what an outer namespace locked; [`Errno::INVAL`] if `path` is
/// not the root of a mount. Nothing has changed then.
pub fn mount_setattr(
    _subject: &Subject,
    base: BorrowedFd<'_>,
    path: &CStr,
    change: Change,
    reach: Reach,
) -> Result<(), Errno> {
    let mut flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
    if path.is_empty() {
        flags |= libc::AT_EMPTY_PATH;
    }
    if reach == Reach::Recursive {
        flags |= AT_RECURSIVE;
    }
    let attributes = MountAttributes {
        set: change.set.bits(),
        clear: change.clear.bits(),
        propagation: change.propagation.bits(),
        user_namespace: 0,
    };
    // SAFETY: `path` ends in a NUL and `attributes` is a whole `struct mount_attr` of the size
    // given; the kernel only reads both, and both outlive the call.
    unsafe {
        raw::call(
            libc::SYS_mount_setattr,
            [
                raw::fd_word(base),
                path.as_ptr().expose_provenance(),
                raw::int_word(flags),
                raw::address(&attributes),
                size_of::<MountAttributes>(),
                0,
            ],
        )
    }
    .map(|_zero| ())
}

const AT_RECURSIVE: i32 = 0x8000;

/// `struct mount_attr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const _: () = assert!(size_of::<MountAttributes>() == 32);

/// A filesystem that is being configured.
#[derive(Debug)]
pub struct Filesystem(OwnedFd);

impl Filesystem {
    /// Begins a new filesystem of this type.
    ///
    /// # Errors
    ///
    /// [`Errno::NODEV`] for a type the kernel does not have; [`Errno::PERM`] for one that may
    /// not be mounted here.
    pub fn open(kind: &CStr) -> Result<Self, Errno> {
        mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map(Self)
    }

    /// Takes hold of the filesystem mounted at `path` below `base`, to change it.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn pick(base: BorrowedFd<'_>, path: &CStr) -> Result<Self, Errno> {
        let mut flags = FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_SYMLINK_NOFOLLOW;
        if path.is_empty() {
            flags |= FsPickFlags::FSPICK_EMPTY_PATH;
        }
        mount::fspick(base, path, flags).map(Self)
    }

    /// Sets an option with a value.
    ///
    /// # Errors
    ///
    /// [`Errno::INVAL`] for an option the filesystem does not know.
    pub fn set(&self, key: &CStr, value: &CStr) -> Result<(), Errno> {
        mount::fsconfig_set_string(&self.0, key, value)
    }

    /// Sets an option without a value.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_flag(&self, key: &CStr) -> Result<(), Errno> {
        mount::fsconfig_set_flag(&self.0, key)
    }

    /// Sets an option whose value is an open file.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_fd(&self, key: &CStr, value: BorrowedFd<'_>) -> Result<(), Errno> {
        mount::fsconfig_set_fd(&self.0, key, value)
    }

    /// Makes the filesystem and a mount of it that is attached nowhere.
    ///
    /// # Errors
    ///
    /// [`Errno::PERM`] for a procfs or sysfs that would show more than the one in sight.
    pub fn mount(self, attributes: Attributes) -> Result<OwnedFd, Errno> {
        mount::fsconfig_create(&self.0)?;
        let bits = u32::try_from(attributes.bits()).map_err(|_| Errno::INVAL)?;
        mount::fsmount(
            &self.0,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::from_bits_retain(bits),
        )
    }

    /// Applies the options to the filesystem that was picked.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn reconfigure(self) -> Result<(), Errno> {
        mount::fsconfig_reconfigure(&self.0)
    }
}

/// Makes `new_root` the root of this mount namespace and lets go of the old one, of which
/// nothing stays reachable by path.
///
/// Whatever was mounted on the old root's own place goes with it, and that the new root is then
/// the topmost mount there is made sure of: anything above it would be reached by `/..`.
///
/// # Errors
///
/// [`Errno::INVAL`] if `new_root` is not the root of a mount, or is shared; [`Errno::BUSY`] if
/// something is left above it. The working directory may have changed: the caller must exit.
pub fn pivot_root(subject: &Subject, new_root: BorrowedFd<'_>) -> Result<(), Errno> {
    swap_root(subject, new_root).and_then(|covered| uncover_root(subject, covered))
}

/// A new root that the old one still covers: `/..` leads there until [`uncover_root`] is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "the old root can be reached until it is taken off"]
pub struct CoveredRoot {
    number: u64,
}

impl CoveredRoot {
    /// As bytes, for another process of this mount namespace.
    pub fn to_bytes(self) -> [u8; 8] {
        self.number.to_ne_bytes()
    }

    /// Back again.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self {
            number: u64::from_ne_bytes(bytes),
        }
    }
}

/// The first half of [`pivot_root`]: the root of every process of this mount namespace is the new
/// one, and paths from it mean that one.
///
/// # Errors
///
/// As [`pivot_root`].
pub fn swap_root(_subject: &Subject, new_root: BorrowedFd<'_>) -> Result<CoveredRoot, Errno> {
    let number = mount_number(new_root, c"")?;
    rustix::process::fchdir(new_root)?;
    // The old root ends up on top of the new one, at the same place, so no directory for it
    // has to exist, and taking it off uncovers the new one.
    rustix::process::pivot_root(c".", c".")?;
    Ok(CoveredRoot { number })
}

/// The second half of [`pivot_root`]. The kernel waits in it until no processor looks at the old
/// tree any more, so another process of the same mount namespace may do it.
///
/// # Errors
///
/// As [`pivot_root`].
pub fn uncover_root(_subject: &Subject, covered: CoveredRoot) -> Result<(), Errno> {
    /// More than anybody stacks on one place.
    const MOST_STACKED: usize = 4;
    rustix::process::chdir(c"/")?;
    for _ in 0..MOST_STACKED {
        mount::unmount(c".", UnmountFlags::DETACH)?;
        // `..` at the root goes to what is mounted on it last.
        if mount_number(rustix::fs::CWD, c"/..")? == covered.number {
            return rustix::process::chdir(c"/");
        }
    }
    Err(Errno::BUSY)
}

/// The kernel's number for the mount that a path is on.
fn mount_number(base: BorrowedFd<'_>, path: &CStr) -> Result<u64, Errno> {
    const MOUNT_NUMBER: StatxFlags = StatxFlags::MNT_ID;
    let stat = statx(base, path, AtFlags::EMPTY_PATH, MOUNT_NUMBER)?;
    // Kernels before 5.8 do not tell, and then nothing can be made sure of.
    if stat.stx_mask & MOUNT_NUMBER.bits() == 0 {
        return Err(Errno::NOSYS);
    }
    Ok(stat.stx_mnt_id)
}

/// Takes the mount at `path` out of sight; what uses it keeps it until done.
///
/// # Errors
///
/// [`Errno::INVAL`] for a mount that is not ours to take, or none.
pub fn detach(_subject: &Subject, path: &CStr) -> Result<(), Errno> {
    mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
}

/// Makes an open directory the working directory.
///
/// # Errors
///
/// The kernel's answer.
pub fn change_directory(_subject: &Subject, directory: impl AsFd) -> Result<(), Errno> {
    rustix::process::fchdir(directory)
}

/// Makes the directory at `path` the working directory.
///
/// # Errors
///
/// The kernel's answer.
pub fn change_directory_to(_subject: &Subject, path: &CStr) -> Result<(), Errno> {
    rustix::process::chdir(path)
}
