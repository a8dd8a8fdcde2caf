//! Opening paths once, and telling what was opened.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use super::raw;

pub use rustix::fs::{CWD, Mode as FileMode, OFlags as OpenFlags, ResolveFlags as Resolve};

/// Opens `path` below `base`; how links and mounts on the way are met is up to `resolve`.
///
/// Close-on-exec is always set.
///
/// # Errors
///
/// [`Errno::XDEV`] or [`Errno::LOOP`] where `resolve` said no; [`Errno::NOSYS`] before Linux
/// 5.6. [`Errno::AGAIN`] means that a rename raced with a walk that had to stay beneath:
/// the caller may try again.
pub fn openat2(
    base: BorrowedFd<'_>,
    path: &CStr,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    fs::openat2(base, path, flags | OFlags::CLOEXEC, mode, resolve)
}

/// Pins `path` as it is now, as a handle for mounting and for Landlock: no rights to its
/// contents are asked for or given. Links are followed, also in the last place; pass an
/// already canonical path to [`pin_exact`] where that matters.
///
/// # Errors
///
/// The kernel's answer.
pub fn pin(base: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    openat2(
        base,
        path,
        OFlags::PATH,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )
}

/// As [`pin`], and refuses a symbolic link anywhere on the way, the last place included.
///
/// # Errors
///
/// [`Errno::LOOP`] for a link, and the kernel's other answers.
pub fn pin_exact(base: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    openat2(
        base,
        path,
        // Not with O_NOFOLLOW: together with O_PATH that would pin a link in the last place
        // instead of refusing it.
        OFlags::PATH,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS,
    )
}

/// As [`pin_exact`], and never leaves `base`.
///
/// # Errors
///
/// [`Errno::XDEV`] for a path that climbs out, and those of [`pin_exact`].
pub fn pin_beneath(base: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    openat2(
        base,
        path,
        OFlags::PATH,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS,
    )
}

/// Makes a directory `name` in `base`; `name` is one component, so nothing is followed.
///
/// # Errors
///
/// [`Errno::INVAL`] for a name with a slash; [`Errno::EXIST`] if it is taken.
pub fn make_directory(base: BorrowedFd<'_>, name: &CStr, mode: Mode) -> Result<(), Errno> {
    fs::mkdirat(base, single(name)?, mode)
}

/// Makes an empty file `name` in `base`, as a place to mount on.
///
/// # Errors
///
/// As [`make_directory`].
pub fn make_file(base: BorrowedFd<'_>, name: &CStr, mode: Mode) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
    openat2(base, single(name)?, flags, mode, ResolveFlags::BENEATH).map(|_file| ())
}

/// Makes a symbolic link `name` in `base` that says `target`.
///
/// # Errors
///
/// As [`make_directory`].
pub fn make_link(base: BorrowedFd<'_>, name: &CStr, target: &CStr) -> Result<(), Errno> {
    fs::symlinkat(target, base, single(name)?)
}

/// A name that is one step and no more.
fn single(name: &CStr) -> Result<&CStr, Errno> {
    if name.to_bytes().contains(&b'/') {
        Err(Errno::INVAL)
    } else {
        Ok(name)
    }
}

/// What kind of file, and which one: enough to compare two descriptors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Identity {
    /// The kind of file.
    pub kind: Kind,
    /// The device that holds it.
    pub device: (u32, u32),
    /// Its number on that device.
    pub inode: u64,
    /// For a device node, the device it stands for.
    pub stands_for: (u32, u32),
    /// Permission bits.
    pub permissions: u16,
    /// Owner and group.
    pub owner: (u32, u32),
    /// How many names it has.
    pub links: u32,
    /// Its size in bytes.
    pub size: u64,
}

/// Kinds of file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// A directory.
    Directory,
    /// A pipe with a name.
    Fifo,
    /// A plain file.
    Regular,
    /// A socket.
    Socket,
    /// A symbolic link.
    Symlink,
    /// Something this kernel has and we do not know.
    Unknown,
}

/// Tells what `fd` refers to. Works on a mere pin as well.
///
/// # Errors
///
/// The kernel's answer.
pub fn identify(fd: impl AsFd) -> Result<Identity, Errno> {
    let stat = fs::statx(
        fd,
        c"",
        AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC,
        StatxFlags::BASIC_STATS,
    )?;
    Ok(Identity {
        kind: match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
            FileType::BlockDevice => Kind::BlockDevice,
            FileType::CharacterDevice => Kind::CharacterDevice,
            FileType::Directory => Kind::Directory,
            FileType::Fifo => Kind::Fifo,
            FileType::RegularFile => Kind::Regular,
            FileType::Socket => Kind::Socket,
            FileType::Symlink => Kind::Symlink,
            FileType::Unknown => Kind::Unknown,
        },
        device: (stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
        stands_for: (stat.stx_rdev_major, stat.stx_rdev_minor),
        permissions: stat.stx_mode & 0o7777,
        owner: (stat.stx_uid, stat.stx_gid),
        links: stat.stx_nlink,
        size: stat.stx_size,
    })
}

/// Which filesystem `fd` is on, by its magic number, and the flags of its mount.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FilesystemFacts {
    /// The magic number, such as [`PROC_MAGIC`].
    pub magic: u64,
    /// `ST_*` flags of the mount that `fd` was opened through.
    pub flags: StatFlags,
}

bitflags::bitflags! {
    /// What a mount forbids, as `fstatfs` tells it.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct StatFlags: u64 {
        /// Nothing can be written.
        const RDONLY = 0x1;
        /// Set-user-id bits are ignored.
        const NOSUID = 0x2;
        /// Device nodes cannot be opened.
        const NODEV = 0x4;
        /// Nothing can be executed.
        const NOEXEC = 0x8;
        /// Symbolic links are not followed.
        const NOSYMFOLLOW = 0x2000;

        // The kernel may add more.
        const _ = !0;
    }
}

/// `PROC_SUPER_MAGIC`.
pub const PROC_MAGIC: u64 = 0x9fa0;
/// `CGROUP2_SUPER_MAGIC`.
pub const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// `TMPFS_MAGIC`.
pub const TMPFS_MAGIC: u64 = 0x0102_1994;
/// `DEVPTS_SUPER_MAGIC`.
pub const DEVPTS_MAGIC: u64 = 0x1cd1;

/// Tells which filesystem `fd` is on.
///
/// # Errors
///
/// The kernel's answer.
pub fn filesystem(fd: impl AsFd) -> Result<FilesystemFacts, Errno> {
    // The C library's structure keeps the flags among its spare words, and rustix hides them;
    // this is the kernel's own.
    let mut raw_facts = RawStatFs::default();
    // SAFETY: the kernel writes one `struct statfs`, which has this layout on both
    // architectures, to a live value.
    unsafe {
        raw::call(
            libc::SYS_fstatfs,
            [
                raw::fd_word(fd.as_fd()),
                raw::address_mut(&mut raw_facts),
                0,
                0,
                0,
                0,
            ],
        )
    }?;
    Ok(FilesystemFacts {
        magic: raw_facts.kind,
        flags: StatFlags::from_bits_retain(raw_facts.flags),
    })
}

/// The kernel's `struct statfs` on 64-bit machines.
#[derive(Default)]
#[repr(C)]
struct RawStatFs {
    kind: u64,
    block_size: u64,
    blocks: u64,
    blocks_free: u64,
    blocks_available: u64,
    files: u64,
    files_free: u64,
    filesystem_id: [i32; 2],
    name_length: u64,
    fragment_size: u64,
    flags: u64,
    spare: [u64; 4],
}

const _: () = assert!(size_of::<RawStatFs>() == 120);
