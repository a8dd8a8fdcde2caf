//! Mounts over a name in a session that already runs.
//!
//! The session itself can mount nothing. But whoever made its user namespace has every right in it,
//! so a process is born for this one mount: it joins the session's user and mount namespaces and
//! nothing else of it, is in none of its lists of processes, and is gone a moment later.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ringfence_core::policy::Access;
use ringfence_sys::files::{self, CWD, OpenFlags, Resolve};
use ringfence_sys::mounts::{
    Attributes, Change, Filesystem, Reach, mount_setattr, move_mount, open_tree,
};
use ringfence_sys::namespaces::{self, Namespaces};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Ended;
use ringfence_sys::{Errno, Subject};
use rustix::fs::{AtFlags, FileType, Mode, StatxAttributes, StatxFlags, statx};

/// Where a session is.
#[derive(Debug)]
pub(super) struct Session {
    /// Its root.
    pub(super) root: OwnedFd,
    /// Its user namespace.
    pub(super) user: OwnedFd,
    /// Its mount namespace.
    pub(super) mount: OwnedFd,
    /// Has news whenever a mount there comes or goes, also by the host's hand. Not to be had where
    /// `/proc` shows nobody else's processes.
    pub(super) changes: Option<OwnedFd>,
}

struct Order<'a> {
    session: &'a Session,
    path: CString,
    what: What,
}

/// What is mounted.
#[derive(Clone, Copy)]
enum What {
    /// What stands there, with nothing that may be changed.
    Itself,
    /// Nothing, where a directory stands.
    NoDirectory,
    /// Nothing, where anything else stands.
    NoFile,
}

const HARMLESS: Attributes = Attributes::NOSUID.union(Attributes::NODEV);
const CLOSED: Mode = Mode::from_raw_mode(0o000);

impl Session {
    /// Whether the session sees a mount of its own at a path.
    pub(super) fn is_covered(&self, path: &Path) -> bool {
        let path = path.strip_prefix("/").unwrap_or(path);
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
            return false;
        };
        let inside = Resolve::IN_ROOT | Resolve::NO_SYMLINKS | Resolve::NO_MAGICLINKS;
        let flags = OpenFlags::PATH;
        let found = files::openat2(self.root.as_fd(), &path, flags, Mode::empty(), inside);
        let status = found.and_then(|found| {
            let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
            statx(&found, c"", flags, StatxFlags::TYPE)
        });
        status.is_ok_and(|status| status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }
}

/// Mounts over a path of a session.
pub(super) fn mount(session: &Session, path: &Path, access: Access) -> Result<(), Errno> {
    let status = rustix::fs::lstat(path)?;
    let what = match (access, FileType::from_raw_mode(status.st_mode)) {
        // A link cannot be mounted over.
        (_, FileType::Symlink) => return Err(Errno::LOOP),
        (Access::None, FileType::Directory) => What::NoDirectory,
        (Access::None, _) => What::NoFile,
        (Access::Read | Access::Execute, _) => What::Itself,
        // It was not protected.
        (Access::Write, _) => return Ok(()),
    };
    let mut order = Order {
        session,
        path: CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?,
        what,
    };
    let child = Spawn::new(Memory::Copied).start(&mut order, carry_out)?;
    match child.wait()? {
        Ended::Exited(0) => Ok(()),
        Ended::Exited(number) => Err(Errno::from_raw_os_error(number.into())),
        Ended::Killed { .. } => Err(Errno::IO),
    }
}

/// In a process of its own; the number of an error is its status.
fn carry_out(subject: &Subject, order: &mut Order<'_>) -> u8 {
    match try_to(subject, order) {
        Ok(()) => 0,
        Err(errno) => u8::try_from(errno.raw_os_error()).unwrap_or(u8::MAX),
    }
}

fn try_to(subject: &Subject, order: &Order<'_>) -> Result<(), Errno> {
    let Session { user, mount, .. } = order.session;
    namespaces::enter(subject, user.as_fd(), Namespaces::USER)?;
    namespaces::enter(subject, mount.as_fd(), Namespaces::MOUNT)?;
    let target = files::pin_exact(CWD, &order.path)?;
    let empty = HARMLESS | Attributes::RDONLY | Attributes::NOEXEC;
    let (tree, attributes) = match order.what {
        What::Itself => {
            let tree = open_tree(target.as_fd(), c"", Reach::Recursive)?;
            (tree, HARMLESS | Attributes::RDONLY)
        }
        What::NoDirectory => (Filesystem::open(c"tmpfs")?.mount(HARMLESS)?, empty),
        What::NoFile => {
            let nothing = Filesystem::open(c"tmpfs")?.mount(HARMLESS)?;
            files::make_file(nothing.as_fd(), c"closed", CLOSED)?;
            (open_tree(nothing.as_fd(), c"closed", Reach::Single)?, empty)
        }
    };
    let change = Change::forbid(attributes);
    mount_setattr(subject, tree.as_fd(), c"", change, Reach::Recursive)?;
    move_mount(subject, tree.as_fd(), target.as_fd(), c"")
}
