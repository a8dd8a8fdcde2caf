//! Version 2 cgroups: where ours is, making one below it, and ending all that is in one.
//!
//! The parsers are pure. A [`Group`] is used by descriptor. One group serves one run and is
//! never used again after [`kill`](Group::kill): several kernels kill whatever is born in it
//! later.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, mkdirat, unlinkat};
use rustix::io::{Errno, read, retry_on_intr, write};

use super::files::{self, CGROUP2_MAGIC};
use super::mountinfo::{self, Mount};
use super::{procfs, statmount};

/// The path of the calling process in the version 2 tree, from `/proc/self/cgroup`: the line
/// that begins with `0::`.
///
/// `None` if there is no such line, or the group lies outside our view of the tree.
pub fn own_path(text: &[u8]) -> Option<&[u8]> {
    let path = text
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"))?;
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let outside = path.starts_with(b"/..") || !path.starts_with(b"/");
    (!outside).then_some(path)
}

/// The mount of the version 2 tree that shows the group `own`, from `/proc/self/mountinfo`: the last
/// one, and where the group is below it. A container without a cgroup namespace of its own sees a
/// part of the tree only.
pub fn mount<'t>(text: &'t [u8], own: &'t [u8]) -> Option<(Mount<'t>, &'t [u8])> {
    mountinfo::mounts(text)
        .flatten()
        .filter(|mount| mount.kind == b"cgroup2")
        .filter_map(|mount| Some((mount, below(own, mount.root)?)))
        .last()
}

/// Where nearly every machine has the version 2 tree.
const USUAL: [&CStr; 2] = [c"/sys/fs/cgroup", c"/sys/fs/cgroup/unified"];

/// The same as [`mount`] for the places where the tree usually is: asking about those takes the kernel
/// a tenth of the time in which it writes down every mount there is.
///
/// `None` if the tree is not there, or does not show the group, or before Linux 6.8: then
/// `mountinfo` has the answer.
pub fn usual_mount(own: &[u8]) -> Option<(&'static CStr, &[u8])> {
    USUAL.into_iter().find_map(|point| {
        let tree = Group::open(point).ok()?;
        let mounted = statmount::mounted(tree.as_fd()).ok()?;
        let at = mounted.point() == point.to_bytes();
        Some((point, below(own, mounted.root()).filter(|_| at)?))
    })
}

/// Where the group `own` is below a mount that shows the tree from `root` on, if it is there.
fn below<'t>(own: &'t [u8], root: &[u8]) -> Option<&'t [u8]> {
    let below = own.strip_prefix(root)?;
    let whole = root.ends_with(b"/") || below.is_empty() || below.starts_with(b"/");
    whole.then(|| below.strip_prefix(b"/").unwrap_or(below))
}

/// A cgroup that is open.
#[derive(Debug)]
pub struct Group(OwnedFd);

impl Group {
    /// Takes an open directory.
    ///
    /// # Errors
    ///
    /// [`Errno::NODEV`] if it is not in a version 2 tree.
    pub fn from_directory(directory: OwnedFd) -> Result<Self, Errno> {
        if files::filesystem(&directory)?.magic == CGROUP2_MAGIC {
            Ok(Self(directory))
        } else {
            Err(Errno::NODEV)
        }
    }

    /// Opens a group by its path in the file system.
    ///
    /// # Errors
    ///
    /// As [`from_directory`](Self::from_directory), and those of opening.
    pub fn open(path: &CStr) -> Result<Self, Errno> {
        Self::open_at(files::CWD, path)
    }

    fn open_at(base: BorrowedFd<'_>, path: &CStr) -> Result<Self, Errno> {
        let directory = files::openat2(
            base,
            path,
            OFlags::RDONLY | OFlags::DIRECTORY,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )?;
        Self::from_directory(directory)
    }

    /// Makes a group below this one.
    ///
    /// # Errors
    ///
    /// [`Errno::ACCESS`] where the group is not delegated to us; [`Errno::EXIST`] if the name
    /// is taken.
    pub fn create(&self, name: &CStr) -> Result<Self, Errno> {
        mkdirat(&self.0, name, Mode::from_raw_mode(0o755))?;
        Self::open_at(self.0.as_fd(), name)
    }

    /// Removes the empty group `name` below this one.
    ///
    /// # Errors
    ///
    /// [`Errno::BUSY`] while a process is in it, or a group below it.
    pub fn remove(&self, name: &CStr) -> Result<(), Errno> {
        unlinkat(&self.0, name, AtFlags::REMOVEDIR)
    }

    /// Kills every process in this group and below, forks that race with it included.
    ///
    /// # Errors
    ///
    /// [`Errno::NOENT`] before Linux 5.14.
    pub fn kill(&self) -> Result<(), Errno> {
        self.write(c"cgroup.kill", b"1")
    }

    /// Stops every process in this group and below; see
    /// [`is_frozen`](Self::is_frozen) for when that is done.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn freeze(&self) -> Result<(), Errno> {
        self.write(c"cgroup.freeze", b"1")
    }

    /// Lets the processes go on.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn thaw(&self) -> Result<(), Errno> {
        self.write(c"cgroup.freeze", b"0")
    }

    /// Opens the file that becomes urgently readable ([`PRI`](super::events::Ready::PRI))
    /// whenever the group becomes empty or not, frozen or not.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn events(&self) -> Result<OwnedFd, Errno> {
        self.open_file(c"cgroup.events", OFlags::RDONLY)
    }

    /// Whether any process is in this group or below.
    ///
    /// # Errors
    ///
    /// [`Errno::BADMSG`] if the kernel does not say.
    pub fn is_populated(&self) -> Result<bool, Errno> {
        self.event(b"populated ")
    }

    /// Whether all processes in it have stopped.
    ///
    /// # Errors
    ///
    /// [`Errno::BADMSG`] if the kernel does not say.
    pub fn is_frozen(&self) -> Result<bool, Errno> {
        self.event(b"frozen ")
    }

    fn event(&self, key: &[u8]) -> Result<bool, Errno> {
        let mut buffer = [0; 256];
        let text = procfs::read_whole(self.events()?.as_fd(), &mut buffer)?;
        flag(text, key).ok_or(Errno::BADMSG)
    }

    /// Writes a control file of this group, such as a limit.
    ///
    /// # Errors
    ///
    /// [`Errno::NOENT`] where the controller is not enabled.
    pub fn write(&self, file: &CStr, text: &[u8]) -> Result<(), Errno> {
        let file = self.open_file(file, OFlags::WRONLY)?;
        match retry_on_intr(|| write(&file, text))? {
            count if count == text.len() => Ok(()),
            _ => Err(Errno::IO),
        }
    }

    /// Reads the beginning of a control file of this group.
    ///
    /// # Errors
    ///
    /// [`Errno::NOENT`] where the controller is not enabled.
    pub fn read<'b>(&self, file: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        let file = self.open_file(file, OFlags::RDONLY)?;
        let count = retry_on_intr(|| read(&file, &mut *buffer))?;
        Ok(buffer.get(..count).unwrap_or_default())
    }

    fn open_file(&self, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        files::openat2(
            self.0.as_fd(),
            name,
            flags,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
        )
    }
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn flag(text: &[u8], key: &[u8]) -> Option<bool> {
    let value = text
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(key))?;
    match value {
        b"0" => Some(false),
        b"1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_path_is_the_unified_line() {
        let hybrid = b"12:pids:/user\n1:name=systemd:/x\n0::/user.slice/a b\n";
        assert_eq!(own_path(hybrid), Some(&b"/user.slice/a b"[..]));
        assert_eq!(own_path(b"0::/\n"), Some(&b"/"[..]));
        assert_eq!(own_path(b"0::/gone (deleted)\n"), Some(&b"/gone"[..]));
        assert_eq!(own_path(b"0::/../outside\n"), None);
        assert_eq!(own_path(b"1:cpu:/x\n"), None);
        assert_eq!(own_path(b""), None);
    }

    #[test]
    fn tree_is_found_among_other_mounts() {
        let text = b"30 1 0:1 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n\
            31 30 0:2 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
            32 30 0:3 /below /elsewhere rw - cgroup2 cgroup2 rw\n\
            33 30 0:3 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n";
        let (unified, below) = mount(text, b"/user.slice/x").unwrap();
        assert_eq!(unified.point, b"/sys/fs/cgroup/unified");
        assert_eq!(below, b"user.slice/x");
        assert_eq!(mount(text, b"/").unwrap().1, b"");
        assert_eq!(mount(b"", b"/"), None);
    }

    #[test]
    fn a_part_of_the_tree_shows_what_is_in_it() {
        let text = b"32 30 0:3 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let (part, below) = mount(text, b"/docker/abc/x/y").unwrap();
        assert_eq!((part.point, below), (&b"/sys/fs/cgroup"[..], &b"x/y"[..]));
        assert_eq!(mount(text, b"/docker/abc").unwrap().1, b"");
        // A name that only begins alike, and groups that it does not show.
        assert_eq!(mount(text, b"/docker/abcd"), None);
        assert_eq!(mount(text, b"/docker"), None);
        assert_eq!(mount(text, b"/"), None);
    }

    #[test]
    fn the_usual_place_is_what_mountinfo_says_of_it() {
        let text = std::fs::read("/proc/self/mountinfo").unwrap();
        let root = std::fs::File::open("/").unwrap();
        let asks = statmount::mounted(root.as_fd()).is_ok();
        for own in [&b"/"[..], b"/a/b"] {
            let listed = mount(&text, own).filter(|_| asks);
            let usual = |(mount, below): (Mount<'_>, _)| {
                let mut points = USUAL.into_iter();
                let point = points.find(|point| point.to_bytes() == mount.point)?;
                Some((point, below))
            };
            // Before Linux 6.8 nobody can be asked.
            assert_eq!(usual_mount(own), listed.and_then(usual));
        }
        // A group that only a mount from outside of our view could show.
        assert_eq!(usual_mount(b"nowhere"), None);
    }

    #[test]
    fn only_a_clear_flag_counts() {
        assert_eq!(flag(b"populated 1\nfrozen 0\n", b"populated "), Some(true));
        assert_eq!(flag(b"populated 1\nfrozen 0\n", b"frozen "), Some(false));
        assert_eq!(flag(b"populated 2\n", b"populated "), None);
        assert_eq!(flag(b"", b"populated "), None);
    }
}
