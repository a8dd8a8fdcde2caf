//! Building the root and making it the session's. Runs in the child.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringfence_core::policy::Access;
use ringfence_sys::files::{self, CWD};
use ringfence_sys::mounts::{
    self, Attributes, Change, CoveredRoot, Filesystem, Propagation, Reach, mount_setattr,
    move_mount, open_tree,
};
use ringfence_sys::{Errno, Subject, process};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};

use super::{
    Begun, Create, DEVICE, Kind, MASK, MASKS, Made, Placed, READABLE, RootBuild, SCRATCH,
    attributes, same,
};

/// Where the scratch is while the root is built, seen from the old one.
pub(super) const SCRATCH_AT: &CStr = c"/proc";

/// How many terminals a session can have: every machine has only so many for all, 4,096 as a rule.
const MOST_TERMINALS: &CStr = c"256";

impl RootBuild {
    /// What a failure's number means, in words.
    pub(in super::super) fn describe(&self, detail: u32) -> Option<String> {
        let index = usize::try_from(detail).ok()?.checked_sub(1)?;
        let placed = self.mounts.get(index)?;
        let at = ringfence_core::text::printable_bytes(placed.at.to_bytes());
        Some(format!("/{at}"))
    }

    /// Builds the root and makes it the session's. Runs in the child. The old one must still be
    /// taken off.
    ///
    /// # Errors
    ///
    /// The kernel's answer, and which mount it was: one more than its index, or zero.
    pub(in super::super) fn swap(&self, subject: &Subject) -> Result<CoveredRoot, (u32, Errno)> {
        let whole = |errno| (0, errno);
        let laid = match self.begun {
            Begun::No => self.lay(subject),
            Begun::Yes => self.find(subject),
        };
        let laid = laid.map_err(whole)?;
        self.mount(subject, &laid)?;
        mounts::swap_root(subject, laid.root.as_fd()).map_err(whole)
    }

    /// Builds a part that others will go on with, and leaves it where they find it: no descriptor
    /// stays open. Runs in the child.
    ///
    /// # Errors
    ///
    /// As [`swap`](Self::swap).
    pub(in super::super) fn begin(&self, subject: &Subject) -> Result<(), (u32, Errno)> {
        let laid = self.lay(subject).map_err(|errno| (0, errno))?;
        self.mount(subject, &laid)
    }

    /// Makes the scratch and the new root, and puts them where nothing is looked up any more.
    fn lay(&self, subject: &Subject) -> Result<Laid, Errno> {
        let memory = Filesystem::open(c"tmpfs")?;
        memory.set(c"mode", c"0755")?;
        self.bound(&memory)?;
        let scratch = memory.mount(SCRATCH)?;
        self.create(subject, &scratch)?;
        let root = self.base(subject, scratch.as_fd())?;
        move_mount(subject, root.as_fd(), CWD, c"/")?;
        masks(subject, scratch.as_fd())?;
        Ok(Laid { root, scratch })
    }

    /// Finds both where somebody has left them, and goes on.
    fn find(&self, subject: &Subject) -> Result<Laid, Errno> {
        let open = |path: &CStr| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::openat(CWD, path, flags, Mode::empty())
        };
        // `..` at the root goes to what is mounted on it last.
        let (root, scratch) = (open(c"/..")?, open(SCRATCH_AT)?);
        if self.scratch_size.is_some() {
            let memory = Filesystem::pick(scratch.as_fd(), c"")?;
            self.bound(&memory)?;
            memory.reconfigure()?;
        }
        self.create(subject, &scratch)?;
        Ok(Laid { root, scratch })
    }

    /// Mounts everything in its place.
    fn mount(&self, subject: &Subject, laid: &Laid) -> Result<(), (u32, Errno)> {
        let (root, scratch) = (laid.root.as_fd(), laid.scratch.as_fd());
        let mut crowd = None;
        for (number, placed) in (1..).zip(&self.mounts) {
            if crowd.is_some() && placed.mount_among(subject) {
                continue;
            }
            placed
                .mount(subject, root, scratch)
                .map_err(|errno| (number, errno))?;
            if self.is_crowded(number) {
                crowd = placed
                    .gather(subject, root, scratch)
                    .map_err(|errno| (number, errno))?;
            }
        }
        match crowd {
            Some(crowd) => crowd.disperse(subject).map_err(|errno| (0, errno)),
            None => Ok(()),
        }
    }

    /// Says how large the scratch may become.
    fn bound(&self, memory: &Filesystem) -> Result<(), Errno> {
        if let Some((size, files)) = &self.scratch_size {
            memory.set(c"size", size)?;
            memory.set(c"nr_inodes", files)?;
        }
        Ok(())
    }

    /// Makes everything in the scratch that anybody will see.
    fn create(&self, subject: &Subject, scratch: &OwnedFd) -> Result<(), Errno> {
        // The modes are meant as they are written.
        let mask = process::set_umask(subject, 0);
        let made = self.create.iter().try_for_each(|it| it.make(scratch));
        process::set_umask(subject, mask);
        made
    }
    fn base(&self, subject: &Subject, scratch: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
        let harmless = Attributes::NOSUID | Attributes::NODEV;
        // Before Linux 6.15 only what is attached can be cloned. It is put where nothing is looked
        // up any more, not on the old root itself: there it would be taken off instead of that.
        // It must not be in the clone of the host's tree, and goes with the old root.
        let attach = || move_mount(subject, scratch, CWD, SCRATCH_AT);
        let (tree, set) = match self.base {
            Access::None => {
                attach()?;
                let tree = open_tree(scratch, c"root", Reach::Single)?;
                (tree, harmless | Attributes::RDONLY)
            }
            access => {
                let tree = open_tree(CWD, c"/", Reach::Recursive)?;
                attach()?;
                (tree, harmless | attributes(access))
            }
        };
        let change = Change::forbid(set).with_propagation(Propagation::Private);
        mount_setattr(subject, tree.as_fd(), c"", change, Reach::Recursive)?;
        Ok(tree)
    }
}

/// The two trees that everything is mounted from and to.
struct Laid {
    root: OwnedFd,
    scratch: OwnedFd,
}

/// Closes the masks for good: what is cloned from them is closed as well.
fn masks(subject: &Subject, scratch: BorrowedFd<'_>) -> Result<(), Errno> {
    for mask in MASKS {
        let tree = open_tree(scratch, mask, Reach::Single)?;
        forbid(subject, tree.as_fd(), MASK)?;
        move_mount(subject, tree.as_fd(), scratch, mask)?;
    }
    Ok(())
}

impl Create {
    /// Makes it. Runs in the child.
    fn make(&self, scratch: &OwnedFd) -> Result<(), Errno> {
        let path = &*self.path;
        match &self.what {
            Made::Directory(mode) => rustix::fs::mkdirat(scratch, path, *mode),
            Made::File(mode) => rustix::fs::mknodat(scratch, path, FileType::RegularFile, *mode, 0),
            Made::Text(bytes) => write_text(scratch, path, bytes),
            Made::Link(target) => rustix::fs::symlinkat(&**target, scratch, path),
        }
    }
}

/// Makes a file with something in it. Runs in the child.
fn write_text(scratch: &OwnedFd, path: &CStr, mut bytes: &[u8]) -> Result<(), Errno> {
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(scratch, path, new, READABLE)?;
    while !bytes.is_empty() {
        let count = rustix::io::write(&file, bytes)?;
        bytes = bytes.get(count..).unwrap_or_default();
    }
    Ok(())
}

impl Placed {
    fn mount(
        &self,
        subject: &Subject,
        root: BorrowedFd<'_>,
        scratch: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        let tree = match &self.kind {
            Kind::Host {
                path,
                identity,
                attributes,
            } => {
                let source = files::pin_exact(CWD, path)?;
                if !same(&files::identify(&source)?, identity) {
                    return Err(Errno::STALE);
                }
                let tree = open_tree(source.as_fd(), c"", Reach::Recursive)?;
                forbid(subject, tree.as_fd(), *attributes)?;
                tree
            }
            Kind::Device { path, number } => {
                let tree = open_tree(CWD, path, Reach::Single)?;
                // It is what it is by its number, whatever it was before this moment.
                let device = files::identify(&tree)?;
                if device.kind != files::Kind::CharacterDevice || device.stands_for != *number {
                    return Err(Errno::STALE);
                }
                forbid(subject, tree.as_fd(), DEVICE)?;
                // Its place was made a moment ago, in a directory of ours: nothing on the way
                // can lead elsewhere.
                return move_mount(subject, tree.as_fd(), root, &self.at);
            }
            Kind::Mask(path) => open_tree(scratch, path, Reach::Single)?,
            Kind::Pin => {
                // Whatever stands there is seen there already; it only must be no link.
                let place = self.place(root, OFlags::DIRECTORY)?;
                let tree = open_tree(place.as_fd(), c"", Reach::Recursive)?;
                return move_mount(subject, tree.as_fd(), place.as_fd(), c"");
            }
            Kind::Scratch { path, attributes } => {
                let tree = open_tree(scratch, path, Reach::Single)?;
                if *attributes != SCRATCH {
                    forbid(subject, tree.as_fd(), *attributes)?;
                }
                tree
            }
            Kind::Proc => Filesystem::open(c"proc")?.mount(
                Attributes::NOSUID | Attributes::NODEV | Attributes::NOEXEC | Attributes::RDONLY,
            )?,
            Kind::Terminals => {
                let terminals = Filesystem::open(c"devpts")?;
                terminals.set(c"ptmxmode", c"0666")?;
                terminals.set(c"mode", c"0620")?;
                terminals.set(c"max", MOST_TERMINALS)?;
                terminals.mount(Attributes::NOSUID | Attributes::NOEXEC)?
            }
        };
        let place = self.place(root, OFlags::empty())?;
        move_mount(subject, tree.as_fd(), place.as_fd(), c"")
    }

    /// Where it goes, with no link on the way.
    pub(super) fn place(&self, root: BorrowedFd<'_>, more: OFlags) -> Result<OwnedFd, Errno> {
        files::openat2(
            root,
            &self.at,
            OFlags::PATH | OFlags::NOFOLLOW | more,
            Mode::empty(),
            ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )
    }
}

fn forbid(subject: &Subject, tree: BorrowedFd<'_>, set: Attributes) -> Result<(), Errno> {
    let change = Change::forbid(set).with_propagation(Propagation::Private);
    mount_setattr(subject, tree, c"", change, Reach::Recursive)
}
