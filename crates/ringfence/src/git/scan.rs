//! Walking a project's tree in search of repositories.
//!
//! Only directories matter: one that holds a `.git`, or looks like a repository itself. A tree of a
//! hundred thousand files has to be listed once; after that a directory that has not changed since
//! needs no listing, because the kernel sets its change time whenever a name in it comes or goes
//! and nobody can set it back. So what was seen is remembered, and each later walk asks every
//! directory for that time only.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringfence_core::path::AbsPath;
use ringfence_core::text::printable_path;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::asking::{Asking, now};
use super::cache::{Stamp, Tree};
use super::reading::{self, Entry};

/// More directories than any project has; what is larger is refused, not searched in part.
const MOST_DIRECTORIES: usize = 250_000;
/// What lies deeper, or has a longer path, is closed: nobody could mount over all that may be in it.
const DEEPEST: usize = 256;
const LONGEST: usize = 3072;

/// Something that a walk found.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Place {
    /// The directory: a working tree, or a repository without one.
    pub(super) directory: PathBuf,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum What {
    Bare,
    /// Nobody can say what is in it, so nobody gets at it.
    Closed,
    GitDirectory,
    GitFile,
    /// Neither: a directory like any other.
    Plain,
}

/// The tree could not be walked whole.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Incomplete {
    #[error("{} in it cannot be listed: {why}", printable_path(.directory))]
    Broken { directory: PathBuf, why: Errno },
    #[error("it holds more than {MOST_DIRECTORIES} directories")]
    TooMany,
    #[error("it cannot be listed; `chmod u+rx` on it would help")]
    Unreadable,
}

/// Walks a tree, with what is remembered of it, and says what to remember.
pub(super) fn walk(
    root: &AbsPath,
    remembered: Option<Tree>,
) -> Result<(Vec<Place>, Changed, Tree), Incomplete> {
    let asking = Asking::new(root, remembered.unwrap_or_default())?;
    asking.ask_all();
    if asking.all_as_they_were() {
        return Ok((asking.presumed(), Changed(0), asking.tree));
    }
    walk_on(root, &asking)
}

/// The same, of a tree whose directories were asked: those that have changed are listed.
pub(super) fn walk_on(
    root: &AbsPath,
    asking: &Asking,
) -> Result<(Vec<Place>, Changed, Tree), Incomplete> {
    let mut walk = Walk {
        asking,
        above: root.as_path().as_os_str().len() + 1,
        children: children(&asking.tree),
        tree: Tree::default(),
        paths: Vec::new(),
        changed: 0,
        buffer: Vec::new(),
        now: SystemTime::now(),
        device: now(&asking.root, Path::new("")).map(|stamp| stamp.device),
    };
    walk.run()?;
    let places = walk.places();
    Ok((places, Changed(walk.changed), walk.tree))
}

/// How many directories had to be listed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Changed(pub(super) usize);

struct Walk<'a> {
    /// Which of the remembered directories are as they were.
    asking: &'a Asking,
    /// How long the root's path is.
    above: usize,
    children: HashMap<u32, Vec<u32>>,
    tree: Tree,
    /// For each directory of the new tree, its path below the root.
    paths: Vec<PathBuf>,
    changed: usize,
    buffer: Vec<u8>,
    now: SystemTime,
    /// The root's file system, whose times are believed.
    device: Option<u64>,
}

impl Walk<'_> {
    fn run(&mut self) -> Result<(), Incomplete> {
        // New index, the remembered index if there is one.
        let mut next: Vec<(u32, Option<u32>)> = Vec::new();
        let first = (!self.asking.tree.nodes.is_empty()).then_some(0);
        next.push((self.add(None, b"", PathBuf::new())?, first));
        while let Some((index, known)) = next.pop() {
            let fresh = known.is_some_and(|known| self.asking.is_as_it_was(known));
            if let (true, Some(known)) = (fresh, known) {
                self.copy(index, known, &mut next)?;
            } else {
                self.read(index, known, &mut next)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, parent: Option<u32>, name: &[u8], path: PathBuf) -> Result<u32, Incomplete> {
        let index = u32::try_from(self.tree.nodes.len()).map_err(|_| Incomplete::TooMany)?;
        if self.tree.nodes.len() >= MOST_DIRECTORIES {
            return Err(Incomplete::TooMany);
        }
        let parent = parent.unwrap_or(u32::MAX);
        self.tree.push(parent, name, Stamp::default(), What::Plain);
        self.paths.push(path);
        Ok(index)
    }

    /// A directory that has not changed holds what it held.
    fn copy(
        &mut self,
        index: u32,
        known: u32,
        next: &mut Vec<(u32, Option<u32>)>,
    ) -> Result<(), Incomplete> {
        let old = usize::try_from(known).unwrap_or(usize::MAX);
        if let Some(node) = self.asking.tree.nodes.get(old) {
            let (stamp, what) = (node.stamp, node.what);
            if let Some(new) = self.tree.node_mut(index) {
                new.stamp = stamp;
                new.what = what;
            }
        }
        for child in self.children.get(&known).cloned().unwrap_or_default() {
            let name = self.asking.tree.name(child).to_vec();
            let path = self.path(index).join(OsStr::from_bytes(&name));
            next.push((self.add(Some(index), &name, path)?, Some(child)));
        }
        Ok(())
    }

    fn path(&self, index: u32) -> &Path {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.paths
            .get(index)
            .map_or_else(|| Path::new(""), PathBuf::as_path)
    }

    fn read(
        &mut self,
        index: u32,
        known: Option<u32>,
        next: &mut Vec<(u32, Option<u32>)>,
    ) -> Result<(), Incomplete> {
        self.changed += 1;
        let path = self.path(index).to_owned();
        let (directory, stamp) = match self.open(&path) {
            Ok(opened) => opened,
            // Gone, or no directory any more.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            // Its owner can open it, and so can a session of the same user.
            Err(Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG) => return self.close(index),
            Err(why) => return Err(broken(path, why)),
        };
        let mut found = Looks::default();
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut buffer = std::mem::take(&mut self.buffer);
        let listed = reading::list(&directory, &mut buffer, |name, kind| {
            found.take(name, kind);
            if kind == Entry::Directory && !name.eq_ignore_ascii_case(b".git") {
                names.push(name.to_vec());
            }
            if names.len() > MOST_DIRECTORIES {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        self.buffer = buffer;
        match listed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(why) => return Err(broken(path, why)),
        }
        names.extend(found.settle(&directory));
        let what = found.what();
        if let Some(node) = self.tree.node_mut(index) {
            node.what = what;
            // One that changed a moment ago may change again without anybody being able to tell.
            if listed.is_ok() && Some(stamp.device) == self.device && stamp.is_settled(self.now) {
                node.stamp = stamp;
            }
        }
        let known_children: HashMap<&[u8], u32> = known
            .and_then(|known| self.children.get(&known))
            .map(|children| {
                let children = children.iter();
                children
                    .map(|child| (self.asking.tree.name(*child), *child))
                    .collect()
            })
            .unwrap_or_default();
        let found: Vec<(Vec<u8>, Option<u32>)> = names
            .into_iter()
            .map(|name| {
                let known = known_children.get(name.as_slice()).copied();
                (name, known)
            })
            .collect();
        for (name, known) in found {
            let below = path.join(OsStr::from_bytes(&name));
            next.push((self.add(Some(index), &name, below)?, known));
        }
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<(OwnedFd, Stamp), Errno> {
        let length = self.above + path.as_os_str().len();
        if length > LONGEST || path.components().count() > DEEPEST {
            return Err(Errno::NAMETOOLONG);
        }
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let directory = open_below(&self.asking.root, path)?;
        // Asked by a name in it: what can be listed and not entered holds what cannot be looked at.
        let status = rustix::fs::statat(&directory, ".", AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((directory, Stamp::of(&status)))
    }

    /// A directory that cannot be looked into. It has no time to be remembered by.
    fn close(&mut self, index: u32) -> Result<(), Incomplete> {
        if index == 0 {
            return Err(Incomplete::Unreadable);
        }
        if let Some(node) = self.tree.node_mut(index) {
            node.what = What::Closed;
        }
        Ok(())
    }

    fn places(&self) -> Vec<Place> {
        let nodes = self.tree.nodes.iter().zip(&self.paths);
        nodes
            .filter(|(node, _)| node.what != What::Plain)
            .map(|(node, path)| Place {
                directory: path.clone(),
                what: node.what,
            })
            .collect()
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn open_below(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, path, flags, Mode::empty(), beneath)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_below(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(root, path, flags, Mode::empty())
}

fn broken(directory: PathBuf, why: Errno) -> Incomplete {
    Incomplete::Broken { directory, why }
}

/// What the names in a directory say about it: the names alone. Git follows links and takes a file that
/// can be run for a directory; what a link leads to, and a mode, change without a trace in the directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    git: Option<Entry>,
    /// Other spellings of that name.
    like_git: Vec<(Vec<u8>, Entry)>,
    /// Which of the names below.
    parts: u8,
}

const HEAD: u8 = 1;
const OBJECTS: u8 = 2;
const REFS: u8 = 4;
/// Says where objects and references are instead.
const COMMON: u8 = 8;

impl Looks {
    pub(crate) fn take(&mut self, name: &[u8], kind: Entry) {
        match name {
            b".git" => self.git = Some(kind),
            b"HEAD" => self.parts |= HEAD,
            b"objects" => self.parts |= OBJECTS,
            b"refs" => self.parts |= REFS,
            b"commondir" => self.parts |= COMMON,
            _ if name.eq_ignore_ascii_case(b".git") => {
                self.like_git.push((name.to_vec(), kind));
            }
            _ => {}
        }
    }

    /// Finds out whether another spelling is the same name here; those that are not are directories
    /// like any other, which are returned.
    pub(crate) fn settle(&mut self, directory: &OwnedFd) -> Vec<Vec<u8>> {
        let spellings = std::mem::take(&mut self.like_git);
        if let ([(_, kind)], None) = (&spellings[..], self.git)
            && rustix::fs::statat(directory, ".git", AtFlags::SYMLINK_NOFOLLOW).is_ok()
        {
            self.git = Some(*kind);
            return Vec::new();
        }
        let spellings = spellings.into_iter();
        let directories = spellings.filter(|(_, kind)| *kind == Entry::Directory);
        directories.map(|(name, _)| name).collect()
    }

    pub(crate) fn what(self) -> What {
        let has = |parts| self.parts & parts == parts;
        match self.git {
            Some(Entry::Directory) => What::GitDirectory,
            Some(Entry::File) => What::GitFile,
            Some(Entry::Other) | None if has(HEAD | OBJECTS | REFS) || has(HEAD | COMMON) => {
                What::Bare
            }
            Some(Entry::Other) | None => What::Plain,
        }
    }
}

fn children(tree: &Tree) -> HashMap<u32, Vec<u32>> {
    let mut out: HashMap<u32, Vec<u32>> = HashMap::new();
    for (index, node) in (0_u32..).zip(&tree.nodes) {
        if node.parent != u32::MAX {
            out.entry(node.parent).or_default().push(index);
        }
    }
    out
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
