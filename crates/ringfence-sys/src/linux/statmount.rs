//! Asking the kernel about mounts by number (Linux 6.8), without text.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::Errno;

use super::mounts::Attributes;
use super::raw;

/// The number of a mount that no other will ever have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(transparent)]
pub struct MountId(u64);

impl MountId {
    /// The root of the mount namespace, as seen by the caller.
    pub const NAMESPACE_ROOT: Self = Self(u64::MAX);
}

/// What the kernel tells of one mount.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MountFacts {
    /// What it forbids.
    pub attributes: Attributes,
    /// Whether it exchanges events with other mounts.
    pub shared: bool,
    /// The magic number of its filesystem.
    pub magic: u64,
}

const SYS_STATMOUNT: libc::c_long = 457;
const SYS_LISTMOUNT: libc::c_long = 458;

/// The number of the mount that `fd` was opened through.
///
/// # Errors
///
/// [`Errno::NOSYS`] before Linux 6.8.
pub fn mount_id(fd: BorrowedFd<'_>) -> Result<MountId, Errno> {
    let unique = StatxFlags::from_bits_retain(STATX_MNT_ID_UNIQUE);
    let stat = statx(
        fd,
        c"",
        AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC,
        unique,
    )?;
    if stat.stx_mask & STATX_MNT_ID_UNIQUE == 0 {
        return Err(Errno::NOSYS);
    }
    Ok(MountId(stat.stx_mnt_id))
}

const STATX_MNT_ID_UNIQUE: u32 = 0x4000;

/// Tells what a mount forbids.
///
/// # Errors
///
/// [`Errno::NOENT`] for a mount that is gone or attached nowhere; [`Errno::NOSYS`] before
/// Linux 6.8.
pub fn statmount(id: MountId) -> Result<MountFacts, Errno> {
    const SB_BASIC: u64 = 0x1;
    const MNT_BASIC: u64 = 0x2;
    const MS_SHARED: u64 = 1 << 20;
    let answer = ask(id, SB_BASIC | MNT_BASIC)?.answer;
    Ok(MountFacts {
        attributes: Attributes::from_bits_truncate(answer.mount_attributes),
        shared: answer.propagation & MS_SHARED != 0,
        magic: answer.magic,
    })
}

/// Which part of its filesystem a mount shows, and where.
#[derive(Clone, Debug)]
pub struct Mounted(Texts);

impl Mounted {
    /// The directory of the filesystem that is its root, as the caller's cgroup namespace has it.
    pub fn root(&self) -> &[u8] {
        self.0.text(self.0.answer.root)
    }

    /// Where it is, from the caller's root.
    pub fn point(&self) -> &[u8] {
        self.0.text(self.0.answer.point)
    }
}

/// Tells where the mount is that `fd` was opened through.
///
/// # Errors
///
/// [`Errno::OVERFLOW`] for very long paths; otherwise as [`statmount`].
pub fn mounted(fd: BorrowedFd<'_>) -> Result<Mounted, Errno> {
    const MNT_ROOT: u64 = 0x8;
    const MNT_POINT: u64 = 0x10;
    ask(mount_id(fd)?, MNT_ROOT | MNT_POINT).map(Mounted)
}

/// Asks for some of what the kernel knows about a mount: all of it, or nothing.
fn ask(id: MountId, wanted: u64) -> Result<Texts, Errno> {
    let request = Request::new(id, wanted);
    let mut answer = Texts {
        answer: Answer::default(),
        bytes: [0; LONGEST_TEXTS],
    };
    // SAFETY: the request is a whole `struct mnt_id_req` of the size it names; the answer, with room
    // for texts behind it, is a live buffer of the length given, of which the kernel writes no more.
    unsafe {
        raw::call(
            SYS_STATMOUNT,
            [
                raw::address(&request),
                raw::address_mut(&mut answer),
                size_of::<Texts>(),
                0,
                0,
                0,
            ],
        )
    }?;
    if answer.answer.mask & wanted != wanted {
        return Err(Errno::NOSYS);
    }
    Ok(answer)
}

/// Lists the mounts below one, at any depth, into `ids`, and returns those found.
///
/// # Errors
///
/// [`Errno::NOBUFS`] if there may be more than fit; [`Errno::NOSYS`] before Linux 6.8.
pub fn listmount(below: MountId, ids: &mut [MountId]) -> Result<&[MountId], Errno> {
    const FROM_THE_FIRST: u64 = 0;
    let request = Request::new(below, FROM_THE_FIRST);
    // SAFETY: the request is as for `statmount`; the kernel writes at most as many u64 as
    // the third word says, and `MountId` is laid out as one.
    let count = unsafe {
        raw::call(
            SYS_LISTMOUNT,
            [
                raw::address(&request),
                raw::address_mut(ids),
                ids.len(),
                0,
                0,
                0,
            ],
        )
    }?;
    if count >= ids.len() {
        return Err(Errno::NOBUFS);
    }
    Ok(ids.get(..count).unwrap_or_default())
}

/// Checks that a mount and all mounts below it forbid at least `demanded`.
///
/// # Errors
///
/// [`Errno::ROFS`] never means success here: [`Errno::PERM`] is returned for the first mount
/// that lacks an attribute, and the kernel's answer if one could not be asked.
pub fn verify(top: BorrowedFd<'_>, demanded: Attributes) -> Result<(), Errno> {
    let top = mount_id(top)?;
    let mut buffer = [MountId(0); MOST_MOUNTS];
    check(top, demanded)?;
    for id in listmount(top, &mut buffer)? {
        check(*id, demanded)?;
    }
    Ok(())
}

/// Far more than one granted tree ever holds; 4 KiB of stack.
const MOST_MOUNTS: usize = 512;

fn check(id: MountId, demanded: Attributes) -> Result<(), Errno> {
    if statmount(id)?.attributes.contains(demanded) {
        Ok(())
    } else {
        Err(Errno::PERM)
    }
}

/// `struct mnt_id_req`, first version.
#[repr(C)]
struct Request {
    size: u32,
    spare: u32,
    id: u64,
    parameter: u64,
}

const _: () = assert!(size_of::<Request>() == 24);

impl Request {
    const fn new(id: MountId, parameter: u64) -> Self {
        Self {
            size: 24,
            spare: 0,
            id: id.0,
            parameter,
        }
    }
}

/// `struct statmount` as far as we read it; the kernel's is 512 bytes long.
#[derive(Clone, Debug)]
#[repr(C)]
struct Answer {
    size: u32,
    options: u32,
    mask: u64,
    device_major: u32,
    device_minor: u32,
    magic: u64,
    super_flags: u32,
    kind: u32,
    id: u64,
    parent: u64,
    old_id: u32,
    old_parent: u32,
    mount_attributes: u64,
    propagation: u64,
    peers: u64,
    master: u64,
    propagated_from: u64,
    /// Where its text begins, behind the answer.
    root: u32,
    /// The same.
    point: u32,
    rest: [u64; 50],
}

const _: () = assert!(size_of::<Answer>() == 512);

impl Default for Answer {
    fn default() -> Self {
        Self {
            size: 0,
            options: 0,
            mask: 0,
            device_major: 0,
            device_minor: 0,
            magic: 0,
            super_flags: 0,
            kind: 0,
            id: 0,
            parent: 0,
            old_id: 0,
            old_parent: 0,
            mount_attributes: 0,
            propagation: 0,
            peers: 0,
            master: 0,
            propagated_from: 0,
            root: 0,
            point: 0,
            rest: [0; 50],
        }
    }
}

/// Room for both texts of a mount that is where mounts usually are.
const LONGEST_TEXTS: usize = 512;

/// An answer with its texts, each of which ends in a NUL.
#[derive(Clone, Debug)]
#[repr(C)]
struct Texts {
    answer: Answer,
    bytes: [u8; LONGEST_TEXTS],
}

impl Texts {
    fn text(&self, from: u32) -> &[u8] {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let text = self.bytes.get(from..).unwrap_or_default();
        text.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}
