//! What a walk remembers, and where it is kept.
//!
//! One file for each large project, in ringfence's own state directory, which every session that
//! is restricted finds hidden. A file that is damaged, of another version or of another project is
//! as good as none; it can be deleted at any time.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringfence_core::path::AbsPath;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};

use super::scan::What;

const MAGIC: &[u8; 16] = b"ringfence tree 2";
/// No tree that may be walked needs more.
const LONGEST: u64 = 64 << 20;
/// What changed this shortly before it was looked at may change again within one tick of the file
/// system's clock.
pub(super) const TICK: Duration = Duration::from_millis(50);
const COARSE_TICK: Duration = Duration::from_secs(3);
/// Files of projects that are long gone are not kept for ever.
const MOST_FILES: usize = 64;

/// A tree of directories, each behind the one that holds it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// Their names, one behind the other: thousands would be slow one by one.
    names: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Node {
    /// `u32::MAX` for the root.
    pub(super) parent: u32,
    name: Range<usize>,
    pub(super) stamp: Stamp,
    pub(super) what: What,
}

/// Which directory it was, and when a name in it last came or went; or which file, and when it was last
/// written. All zero for a directory that has to be listed again.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Stamp {
    pub(super) device: u64,
    inode: u64,
    pub(super) seconds: i64,
    pub(super) nanos: u32,
}

impl Stamp {
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the fields have other types on other systems; they are only compared"
    )]
    pub(super) fn of(status: &Stat) -> Self {
        Self {
            device: status.st_dev as u64,
            inode: status.st_ino as u64,
            seconds: status.st_ctime as i64,
            nanos: status.st_ctime_nsec as u32,
        }
    }

    /// As many as it is kept as.
    pub(super) const BYTES: usize = 28;

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.device.to_le_bytes());
        out.extend_from_slice(&self.inode.to_le_bytes());
        out.extend_from_slice(&self.seconds.to_le_bytes());
        out.extend_from_slice(&self.nanos.to_le_bytes());
    }

    pub(super) fn take(rest: &mut &[u8]) -> Option<Self> {
        Some(Self {
            device: u64::from_le_bytes(chunk(rest)?),
            inode: u64::from_le_bytes(chunk(rest)?),
            seconds: i64::from_le_bytes(chunk(rest)?),
            nanos: u32::from_le_bytes(chunk(rest)?),
        })
    }

    /// Whether it is so old that whatever happens after `now` has another time.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        // Some file systems count in seconds.
        let tick = if self.nanos == 0 { COARSE_TICK } else { TICK };
        self.is_older_than(now, tick)
    }

    pub(super) fn is_older_than(&self, now: SystemTime, age: Duration) -> bool {
        let Ok(since) = now.duration_since(UNIX_EPOCH) else {
            return false;
        };
        let changed = Duration::new(u64::try_from(self.seconds).unwrap_or(u64::MAX), self.nanos);
        changed
            .checked_add(age)
            .is_some_and(|settled| settled < since)
    }
}

impl Tree {
    pub(super) fn node_mut(&mut self, index: u32) -> Option<&mut Node> {
        self.nodes.get_mut(usize::try_from(index).ok()?)
    }

    pub(super) fn name(&self, index: u32) -> &[u8] {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.nodes.get(index).map_or(b"", |node| self.name_of(node))
    }

    fn name_of(&self, node: &Node) -> &[u8] {
        self.names.get(node.name.clone()).unwrap_or_default()
    }

    /// How many of them are repositories, or hold one.
    pub(super) fn repositories(&self) -> usize {
        let nodes = self.nodes.iter();
        nodes.filter(|node| node.what != What::Plain).count()
    }

    /// Adds a directory behind the one that holds it.
    pub(super) fn push(&mut self, parent: u32, name: &[u8], stamp: Stamp, what: What) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.nodes.push(Node {
            parent,
            name: start..self.names.len(),
            stamp,
            what,
        });
    }

    /// Each directory's path below the root.
    pub(super) fn paths(&self) -> Paths {
        let mut out = Paths {
            bytes: Vec::with_capacity(self.nodes.len() * 32),
            places: Vec::with_capacity(self.nodes.len()),
        };
        for node in &self.nodes {
            let parent = usize::try_from(node.parent).ok();
            let parent = parent.and_then(|parent| out.places.get(parent)).cloned();
            let start = out.bytes.len();
            if let Some(parent) = parent {
                if !parent.is_empty() {
                    out.bytes.extend_from_within(parent);
                    out.bytes.push(b'/');
                }
                out.bytes.extend_from_slice(self.name_of(node));
            }
            out.places.push(start..out.bytes.len());
        }
        out
    }

    pub(super) fn to_bytes(&self, root: &AbsPath) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.nodes.len() * 56);
        out.extend_from_slice(MAGIC);
        put_path(&mut out, root);
        for node in &self.nodes {
            out.extend_from_slice(&node.parent.to_le_bytes());
            put(&mut out, self.name_of(node));
            node.stamp.put(&mut out);
            out.push(match node.what {
                What::Plain => 0,
                What::GitDirectory => 1,
                What::GitFile => 2,
                What::Bare => 3,
                What::Closed => 4,
            });
        }
        out
    }

    pub(super) fn from_bytes(bytes: &[u8], root: &AbsPath) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        if take(&mut rest)? != root.as_path().as_os_str().as_bytes() {
            return None;
        }
        let mut tree = Self {
            // A node has at least so many bytes.
            nodes: Vec::with_capacity(rest.len() / 35),
            names: Vec::with_capacity(rest.len() / 4),
        };
        while !rest.is_empty() {
            let parent = u32::from_le_bytes(chunk(&mut rest)?);
            let is_first = tree.nodes.is_empty();
            let known = usize::try_from(parent).is_ok_and(|parent| parent < tree.nodes.len());
            if known == is_first || (is_first && parent != u32::MAX) {
                return None;
            }
            let name = take(&mut rest)?;
            let step = !name.is_empty() && !name.contains(&b'/') && name != b".." && name != b".";
            if step == is_first {
                return None;
            }
            let stamp = Stamp::take(&mut rest)?;
            let what = match chunk::<1>(&mut rest)? {
                [0] => What::Plain,
                [1] => What::GitDirectory,
                [2] => What::GitFile,
                [3] => What::Bare,
                [4] => What::Closed,
                _ => return None,
            };
            tree.push(parent, name, stamp, what);
        }
        (!tree.nodes.is_empty()).then_some(tree)
    }
}

/// Paths by the indices of their nodes, one behind the other: thousands would be slow one by one.
#[derive(Debug)]
pub(super) struct Paths {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Paths {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.from(0)
    }

    /// From an index on.
    pub(super) fn from(&self, index: usize) -> impl Iterator<Item = &Path> {
        let places = self.places.get(index..).unwrap_or_default().iter();
        places.map(|place| {
            let path = self.bytes.get(place.clone()).unwrap_or_default();
            Path::new(OsStr::from_bytes(path))
        })
    }
}

/// Says which project it is about.
pub(super) fn put_path(out: &mut Vec<u8>, path: &AbsPath) {
    put(out, path.as_path().as_os_str().as_bytes());
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    // A name has at most 255 bytes and a path 4096.
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes.get(..usize::from(length)).unwrap_or_default());
}

fn take<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::from(u16::from_le_bytes(chunk(rest)?));
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

fn chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*bytes)
}

/// Where something is remembered of each project.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    directory: PathBuf,
}

impl Memory {
    /// In ringfence's own state directory, among others of its kind.
    pub(super) fn new(state: &Path, kind: &str) -> Self {
        let directory = state.join(kind);
        Self { directory }
    }

    /// What is remembered of a project, if its file system can be believed.
    pub(super) fn bytes(&self, root: &AbsPath) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(CWD, self.file(root), flags, Mode::empty()).ok()?;
        let status = rustix::fs::fstat(&file).ok()?;
        let own = status.st_uid == rustix::process::geteuid().as_raw();
        if !own || FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return None;
        }
        if !keeps_time(root) {
            return None;
        }
        let mut bytes = Vec::new();
        let mut bounded = std::fs::File::from(file).take(LONGEST);
        bounded.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Remembers it; that this can fail costs only time.
    pub(super) fn keep(&self, root: &AbsPath, bytes: &[u8]) {
        if keeps_time(root) {
            let _ = self.write(root, bytes);
        }
    }

    fn write(&self, root: &AbsPath, bytes: &[u8]) -> std::io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        let path = self.file(root);
        if std::fs::symlink_metadata(&path).is_err()
            && std::fs::read_dir(&self.directory)?.count() >= MOST_FILES
        {
            for file in std::fs::read_dir(&self.directory)? {
                let _ = std::fs::remove_file(file?.path());
            }
        }
        let mut name = path.clone().into_os_string();
        name.push(format!(".{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&name)?;
        let written = file
            .write_all(bytes)
            .and_then(|()| std::fs::rename(&name, &path));
        if written.is_err() {
            let _ = std::fs::remove_file(&name);
        }
        written
    }

    fn file(&self, root: &AbsPath) -> PathBuf {
        // Two projects with one number only forget each other: the path is in the file.
        let bytes = root.as_path().as_os_str().as_bytes();
        let number = bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |number, byte| {
                (number ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
        self.directory.join(format!("{number:016x}"))
    }
}

/// Whether change times of directories can be believed: on a disk of this machine.
#[cfg(target_os = "linux")]
fn keeps_time(root: &AbsPath) -> bool {
    rustix::fs::statfs(root.as_path()).is_ok_and(|facts| crate::local::is_local(&facts))
}

#[cfg(not(target_os = "linux"))]
fn keeps_time(_root: &AbsPath) -> bool {
    false
}

/// Whether what was written to a mapped file gets another change time, within a minute: pages that are
/// written back are protected again. Files in memory are never written back.
#[cfg(target_os = "linux")]
pub(super) fn writes_back(root: &AbsPath) -> bool {
    rustix::fs::statfs(root.as_path()).is_ok_and(|facts| !crate::local::is_in_memory(&facts))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn writes_back(_root: &AbsPath) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_in_whole_seconds_settles_late() {
        let now = UNIX_EPOCH + Duration::from_millis(10_500);
        let stamp = |seconds, nanos| Stamp {
            seconds,
            nanos,
            ..Stamp::default()
        };
        assert!(stamp(10, 400_000_000).is_settled(now));
        assert!(!stamp(10, 470_000_000).is_settled(now));
        assert!(!stamp(10, 0).is_settled(now), "the second is not over");
        assert!(stamp(7, 0).is_settled(now));
        assert!(!stamp(11, 1).is_settled(now), "it is yet to come");
    }

    fn root() -> AbsPath {
        AbsPath::root().below("project")
    }

    fn tree() -> Tree {
        let stamp = Stamp {
            device: 1,
            inode: 2,
            seconds: -3,
            nanos: 4,
        };
        let mut tree = Tree::default();
        tree.push(u32::MAX, b"", stamp, What::GitDirectory);
        tree.push(0, b"a", stamp, What::Plain);
        tree.push(1, b"\xff", stamp, What::Bare);
        tree
    }

    #[test]
    fn a_tree_comes_back_for_its_own_project_only() {
        let bytes = tree().to_bytes(&root());
        let back = Tree::from_bytes(&bytes, &root()).unwrap();
        assert_eq!(back.to_bytes(&root()), bytes);
        assert!(Tree::from_bytes(&bytes, &AbsPath::root().below("other")).is_none());
        for end in 0..bytes.len() - 1 {
            if let Some(short) = Tree::from_bytes(&bytes[..end], &root()) {
                assert!(short.nodes.len() < 3);
            }
        }
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_no_tree_that_climbs(
            at in 0..120_usize, byte in any::<u8>(),
        ) {
            let mut bytes = tree().to_bytes(&root());
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            if let Some(tree) = Tree::from_bytes(&bytes, &root()) {
                for path in tree.paths().iter() {
                    let mut parts = path.components();
                    let normal = |part| matches!(part, std::path::Component::Normal(_));
                    prop_assert!(parts.all(normal));
                }
            }
        }
    }
}
