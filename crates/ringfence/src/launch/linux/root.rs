//! The new root, mount by mount.
//!
//! Everything private comes from one small file system in memory, the scratch: temporary
//! directories, masks, `/dev`, and the root itself where it starts from nothing. Its directories
//! are made before anything is mounted, so nothing is ever created in a tree of the host's.
//!
//! Sources were pinned when the launch was prepared. A mount can only be cloned inside its own
//! namespace, so each is opened once more in here, without following a link, and must be the very
//! file that was pinned; from then on only that descriptor is used.

mod crowd;
mod swap;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use foldhash::HashSet;
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{Base, Mount, MountKind, pins};
use ringfence_core::policy::{Access, Found};
use ringfence_sys::files::{self, CWD, Identity};
use ringfence_sys::mounts::Attributes;
use rustix::fs::Mode;

use super::links;
use crate::approve::bound::Captured;

const PAGE: u64 = 4096;
/// A small private directory may have this many files all the same.
const FEWEST_FILES: u64 = 4096;

/// Everything the child needs to build a root, laid out before the fork.
#[derive(Debug)]
pub(super) struct RootBuild {
    base: Access,
    /// How large it may become, and how many files may be in it.
    scratch_size: Option<(CString, CString)>,
    /// Made in the scratch, in order.
    create: Vec<Create>,
    mounts: Vec<Placed>,
    /// Which mount has so many others in it that another way to make them is worth it.
    crowded: Option<usize>,
    /// Keeps the sources from being reused by other files.
    pins: Vec<OwnedFd>,
    begun: Begun,
}

/// Whether somebody has begun with a root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Begun {
    No,
    /// The common part is there, and left out here.
    Yes,
}

/// A file of the session's own, with what is in it, where it is seen.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) at: AbsPath,
    pub(super) bytes: Vec<u8>,
}

/// Something made in the scratch.
#[derive(Debug, Eq, PartialEq)]
struct Create {
    path: CString,
    what: Made,
}

#[derive(Debug, Eq, PartialEq)]
enum Made {
    Directory(Mode),
    File(Mode),
    Link(CString),
    Text(Vec<u8>),
}

/// A mount and where it goes.
#[derive(Debug)]
struct Placed {
    /// Below the new root, without the leading slash; `.` for the root itself.
    at: CString,
    kind: Kind,
    /// How else it can be mounted, if it is one of many.
    among: Option<crowd::Among>,
}

#[derive(Debug, Eq, PartialEq)]
enum Kind {
    /// A tree of the host's.
    Host {
        path: CString,
        identity: Identity,
        attributes: Attributes,
    },
    /// A device that every program expects.
    Device {
        path: CString,
        number: (u32, u32),
    },
    /// Nothing: one of [`MASKS`].
    Mask(&'static CStr),
    /// A directory over itself, so that it stays where it is.
    Pin,
    /// A directory or file of the scratch.
    Scratch {
        path: CString,
        attributes: Attributes,
    },
    Proc,
    Terminals,
}

/// Devices every program expects, with the numbers that they must have.
pub(super) const DEVICES: [(&str, (u32, u32)); 6] = [
    ("full", (1, 7)),
    ("null", (1, 3)),
    ("random", (1, 8)),
    ("tty", (5, 0)),
    ("urandom", (1, 9)),
    ("zero", (1, 5)),
];

const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("ptmx", "pts/ptmx"),
    ("stderr", "/proc/self/fd/2"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
];

/// What is forbidden in a mask.
const MASK: Attributes = SCRATCH.union(Attributes::RDONLY).union(Attributes::NOEXEC);
/// What is forbidden in the scratch itself, and so in every part of it.
const SCRATCH: Attributes = Attributes::NOSUID.union(Attributes::NODEV);
/// Read-only does not keep anybody from writing to a device; it keeps root from changing the mode
/// or the times of the host's own.
const DEVICE: Attributes = Attributes::NOSUID
    .union(Attributes::NOEXEC)
    .union(Attributes::RDONLY);

/// An empty directory and a closed file of the scratch, for whatever is hidden.
const MASKS: [&CStr; 2] = [c"mask", c"closed"];

/// A directory anybody can list and nobody can write.
const LISTED: Mode = Mode::from_raw_mode(0o555);
/// A directory of the scratch that only holds mount points.
const PLAIN: Mode = Mode::from_raw_mode(0o755);
/// A temporary directory.
const STICKY: Mode = Mode::from_raw_mode(0o1777);
/// A file that everybody can read.
const READABLE: Mode = Mode::from_raw_mode(0o444);
/// A file that nobody can open.
const CLOSED: Mode = Mode::from_raw_mode(0o000);

/// Lays out what nearly every root has: the host's files read-only, `/dev` and `/proc`.
pub(super) fn lay_out_common() -> io::Result<RootBuild> {
    let mount = |at: &str, kind| {
        let at = AbsPath::parse(at).map_err(io::Error::other)?;
        Ok::<_, io::Error>(Mount { at, kind })
    };
    let base = Base::Host {
        access: Access::Execute,
    };
    let mounts = [
        mount("/dev", MountKind::Devices)?,
        mount("/proc", MountKind::Proc)?,
    ];
    lay_out(base, &mounts, &[], &[], None)
}

/// Lays a root out and pins its sources. If somebody has begun with a common part and all of that is
/// wanted, it is left out.
pub(super) fn lay_out(
    base: Base,
    mounts: &[Mount],
    texts: &[Text],
    granted: &[Captured],
    common: Option<&RootBuild>,
) -> io::Result<RootBuild> {
    let mut layout = Layout::new(base, granted);
    layout.make("mask", Made::Directory(LISTED))?;
    layout.make("closed", Made::File(CLOSED))?;
    if base == Base::Empty {
        layout.make("root", Made::Directory(PLAIN))?;
        layout.show(&AbsPath::root(), "root");
        layout.root_links()?;
    }
    // The base itself carries the access of the root.
    let mounts = mounts.iter().filter(|mount| mount.at != AbsPath::root());
    let places = mounts.clone().map(|mount| &mount.at);
    let pinned = pins(mounts.clone());
    let mut above: HashSet<&OsStr> = HashSet::default();
    for place in places.chain(texts.iter().map(|text| &text.at)) {
        for directory in place.above() {
            if !above.insert(directory.as_os_str()) {
                break;
            }
        }
    }
    for (index, mount) in mounts.clone().enumerate() {
        let has_children = above.contains(mount.at.as_path().as_os_str());
        if let MountKind::Alias { path } = &mount.kind {
            layout.alias(&mount.at, path)?;
        } else if pinned.contains(&mount.at) {
            layout.push(&mount.at, Kind::Pin)?;
        } else {
            layout.place(index, mount, has_children)?;
        }
    }
    for (index, text) in texts.iter().enumerate() {
        layout.text(index, text)?;
    }
    if let Some(common) = common {
        layout.build.leave_out(common);
    }
    layout.build.find_crowd()?;
    Ok(layout.build)
}

impl RootBuild {
    /// Whether it relies on a common part.
    pub(super) fn is_begun(&self) -> bool {
        self.begun == Begun::Yes
    }

    /// Leaves out what is common, if all of it is wanted here.
    fn leave_out(&mut self, common: &Self) {
        let wanted = self.base == common.base
            && common.create.iter().all(|made| self.create.contains(made))
            && common.mounts.iter().all(|placed| self.has(placed));
        if wanted {
            self.create.retain(|made| !common.create.contains(made));
            self.mounts.retain(|placed| !common.has(placed));
            self.begun = Begun::Yes;
        }
    }

    fn has(&self, wanted: &Placed) -> bool {
        let same = |placed: &Placed| placed.at == wanted.at && placed.kind == wanted.kind;
        self.mounts.iter().any(same)
    }
}

struct Layout<'a> {
    build: RootBuild,
    /// Directories of the scratch by where they will be seen, in an order in which whatever is in a
    /// directory comes behind it.
    private: BTreeMap<OsString, PathBuf>,
    /// What is made already.
    made: HashSet<CString>,
    /// What was held when somebody granted it: never looked up again.
    granted: &'a [Captured],
}

impl<'a> Layout<'a> {
    fn new(base: Base, granted: &'a [Captured]) -> Self {
        Self {
            build: RootBuild {
                base: match base {
                    Base::Empty => Access::None,
                    Base::Host { access } => access,
                },
                scratch_size: None,
                create: Vec::new(),
                mounts: Vec::new(),
                crowded: None,
                pins: Vec::new(),
                begun: Begun::No,
            },
            private: BTreeMap::new(),
            made: HashSet::default(),
            granted,
        }
    }

    fn make(&mut self, path: impl AsRef<Path>, what: Made) -> io::Result<()> {
        let path = c_string(path.as_ref())?;
        if self.made.insert(path.clone()) {
            self.build.create.push(Create { path, what });
        }
        Ok(())
    }

    /// Links such as `/bin` that lead to places which are mounted by their real names.
    fn root_links(&mut self) -> io::Result<()> {
        for entry in std::fs::read_dir("/")? {
            let entry = entry?;
            if entry.file_type()?.is_symlink() {
                let target = std::fs::read_link(entry.path())?;
                let path = Path::new("root").join(entry.file_name());
                self.make(path, Made::Link(c_string(&target)?))?;
            }
        }
        Ok(())
    }

    /// Makes the links on the way from a name to what it leads to, where the scratch has the
    /// directories they are in; elsewhere the host's own are seen.
    fn alias(&mut self, name: &AbsPath, path: &AbsPath) -> io::Result<()> {
        for (at, target) in links::on_the_way(name, path)? {
            self.make_at(&at, Made::Link(c_string(&target)?))?;
        }
        Ok(())
    }

    fn place(&mut self, index: usize, mount: &Mount, has_children: bool) -> io::Result<()> {
        if let MountKind::Bind { access } = mount.kind {
            let (kind, identity) = self.host(mount.at.as_path(), SCRATCH | attributes(access))?;
            self.make_target(&mount.at, identity.kind == files::Kind::Directory)?;
            self.shadow(&mount.at);
            return self.push(&mount.at, kind);
        }
        let file = matches!(
            mount.kind,
            MountKind::Device { .. }
                | MountKind::Mask {
                    over: Found::File | Found::Other
                }
        );
        self.make_target(&mount.at, !file)?;
        let kind = match &mount.kind {
            MountKind::Device { access } => {
                let forbidden = Attributes::NOSUID | attributes(*access);
                self.host(mount.at.as_path(), forbidden)?.0
            }
            MountKind::Mask {
                over: Found::Directory,
            } => {
                if has_children {
                    let own = format!("mask{index}");
                    self.make(&own, Made::Directory(PLAIN))?;
                    self.show(&mount.at, &own);
                    Kind::Scratch {
                        path: c_string(Path::new(&own))?,
                        attributes: MASK,
                    }
                } else {
                    Kind::Mask(MASKS[0])
                }
            }
            MountKind::Mask { .. } => Kind::Mask(MASKS[1]),
            MountKind::Tmpfs { size } => {
                let own = format!("tmp{index}");
                self.make(&own, Made::Directory(STICKY))?;
                self.show(&mount.at, &own);
                if let Some(size) = size {
                    // The kernel keeps an inode of its own memory for the smallest file.
                    let files = (size / PAGE).max(FEWEST_FILES);
                    self.build.scratch_size = Some((number(*size)?, number(files)?));
                }
                Kind::Scratch {
                    path: c_string(Path::new(&own))?,
                    attributes: SCRATCH,
                }
            }
            MountKind::Devices => return self.devices(&mount.at),
            MountKind::Proc => Kind::Proc,
            _ => {
                return Err(io::Error::other(
                    "a mount of a kind this launcher does not know",
                ));
            }
        };
        self.push(&mount.at, kind)
    }

    fn push(&mut self, at: &AbsPath, kind: Kind) -> io::Result<()> {
        let at = inside(at)?;
        let among = None;
        self.build.mounts.push(Placed { at, kind, among });
        Ok(())
    }

    /// A file of the scratch in place of the host's, or where there is none.
    fn text(&mut self, index: usize, text: &Text) -> io::Result<()> {
        let path = format!("text{index}");
        self.make(&path, Made::Text(text.bytes.clone()))?;
        self.make_target(&text.at, false)?;
        let kind = Kind::Scratch {
            path: c_string(Path::new(&path))?,
            attributes: MASK,
        };
        self.push(&text.at, kind)
    }

    /// A tree of the host's hides what the scratch has around it.
    fn shadow(&mut self, at: &AbsPath) {
        let within = |end: &str| {
            let mut path = at.as_path().as_os_str().to_owned();
            path.push(end);
            path
        };
        // Whatever begins with the path and a slash: `0` is the next byte. A policy can have ten
        // thousand binds, and none may look at all others.
        let hidden = self.private.range(within("/")..within("0"));
        let hidden: Vec<OsString> = hidden.map(|(private, _)| private.clone()).collect();
        for private in hidden {
            self.private.remove(&private);
        }
        self.show(at, "");
    }

    /// From here on a directory of the scratch is seen at a path; the empty one is the host's.
    fn show(&mut self, at: &AbsPath, scratch: &str) {
        let at = at.as_path().as_os_str().to_owned();
        self.private.insert(at, scratch.into());
    }

    /// Makes the place for a mount, if it lies in the scratch.
    fn make_target(&mut self, at: &AbsPath, directory: bool) -> io::Result<()> {
        let what = if directory {
            Made::Directory(PLAIN)
        } else {
            Made::File(CLOSED)
        };
        self.make_at(at, what)
    }

    /// Makes something where it will be seen at a path, if that lies in the scratch.
    fn make_at(&mut self, at: &AbsPath, what: Made) -> io::Result<()> {
        let around = at
            .above()
            .find_map(|above| self.private.get_key_value(above.as_os_str()));
        let Some((private, scratch)) = around.filter(|(_, scratch)| *scratch != Path::new(""))
        else {
            return Ok(());
        };
        let below = at.as_path().strip_prefix(private);
        let below = below.map_err(io::Error::other)?.to_owned();
        let mut path = scratch.clone();
        if let Some(above) = below.parent() {
            for part in above.components() {
                path.push(part);
                self.make(&path, Made::Directory(PLAIN))?;
            }
        }
        path.extend(below.file_name());
        self.make(path, what)
    }

    fn host(&mut self, path: &Path, attributes: Attributes) -> io::Result<(Kind, Identity)> {
        let held = Captured::find(self.granted, path);
        let path = c_string(path)?;
        let pin = match held {
            Some(held) => held.try_clone_to_owned()?,
            None => files::pin_exact(CWD, &path)?,
        };
        let identity = files::identify(&pin)?;
        self.build.pins.push(pin);
        let kind = Kind::Host {
            path,
            identity,
            attributes,
        };
        Ok((kind, identity))
    }

    fn devices(&mut self, at: &AbsPath) -> io::Result<()> {
        self.make("dev", Made::Directory(PLAIN))?;
        self.show(at, "dev");
        self.make("dev/pts", Made::Directory(PLAIN))?;
        for (name, target) in DEVICE_LINKS {
            let target = c_string(Path::new(target))?;
            self.make(Path::new("dev").join(name), Made::Link(target))?;
        }
        let kind = Kind::Scratch {
            path: c"dev".to_owned(),
            attributes: MASK,
        };
        self.push(at, kind)?;
        for (name, number) in DEVICES {
            self.make(Path::new("dev").join(name), Made::File(CLOSED))?;
            let path = Path::new("/dev").join(name);
            let path = c_string(&path)?;
            self.push(&at.below(name), Kind::Device { path, number })?;
        }
        self.push(&at.below("pts"), Kind::Terminals)
    }
}

fn attributes(access: Access) -> Attributes {
    match access {
        Access::None | Access::Read => Attributes::RDONLY | Attributes::NOEXEC,
        Access::Execute => Attributes::RDONLY,
        Access::Write => Attributes::empty(),
    }
}

/// As the kernel reads numbers in options of a file system.
fn number(number: u64) -> io::Result<CString> {
    CString::new(number.to_string()).map_err(io::Error::other)
}

fn c_string(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// A path as seen from the new root's own directory.
fn inside(path: &AbsPath) -> io::Result<CString> {
    let below = path.as_path().strip_prefix("/").unwrap_or(path.as_path());
    if below.as_os_str().is_empty() {
        return Ok(c".".to_owned());
    }
    c_string(below)
}

/// Whether both are the same file.
pub(super) fn same(a: &Identity, b: &Identity) -> bool {
    (a.device, a.inode, a.kind) == (b.device, b.inode, b.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_the_hosts_hides_what_is_in_it_and_nothing_beside_it() {
        let mut layout = Layout::new(Base::Empty, &[]);
        let path = |text: &str| AbsPath::parse(text).unwrap();
        for private in ["/a", "/a-b", "/a/b", "/a/b/c", "/a0", "/ab"] {
            layout.show(&path(private), "scratch");
        }
        layout.shadow(&path("/a"));
        let left: Vec<(&OsStr, &Path)> = layout
            .private
            .iter()
            .map(|(at, scratch)| (at.as_os_str(), scratch.as_path()))
            .collect();
        let beside = |at: &'static str| (OsStr::new(at), Path::new("scratch"));
        let expected = [
            (OsStr::new("/a"), Path::new("")),
            beside("/a-b"),
            beside("/a0"),
            beside("/ab"),
        ];
        assert_eq!(left, expected);
    }
}
