//! What a session changed that somebody outside will run or trust: in its project, and in the
//! repositories of directories that it was given beside it.
//!
//! Two looks, one before the command and one when nothing of the session is left; nothing is ever
//! prevented here. The second look walks a tree that something hostile may have arranged, so no link
//! is followed, only regular files are read, nothing is waited for, and everything is bounded.

mod given;
mod links;
mod named;
mod programs;
mod references;
mod since;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ringfence_core::git::Shape;
use ringfence_core::git::config::{self, Obeyed};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::lists;
use rustix::fs::{AtFlags, FileType, Mode, Stat};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::git::reading::{self, Entry};
use crate::git::scan::{Looks, open_below};
use crate::git::{self, Search, entry_of};
use crate::indexes::suspicion;
use given::Given;
use links::Links;
pub use links::{GitLink, GitLinks};
use named::{Meaning, Names, is_young};
pub use programs::{MOST_PROGRAMS, ProgramChanges};
use programs::{Programs, holds_programs};
use references::References;
pub use references::{ReferenceChange, ReferenceChanges};
use since::{Since, TICK};

/// Larger files are told by their size.
const LARGEST: u64 = 64 << 20;
/// Entries of a tree that are looked at.
const MOST_ENTRIES: usize = 1_000_000;
/// Paths of one kind that are listed; the rest is counted.
const MOST_LISTED: usize = 100;
/// Hooks of one new repository that are named.
const MOST_HOOKS: usize = 32;

/// What a project was like before a session.
#[derive(Debug)]
pub struct Before {
    project: AbsPath,
    files: Vec<(PathBuf, Option<String>)>,
    /// By their entries, with which file each was; `None` if nobody could look.
    repositories: Option<HashMap<AbsPath, Identity>>,
    /// `None` if nobody could look.
    programs: Option<Programs>,
    /// `None` if nobody could look.
    references: Option<References>,
    /// `None` if nobody could look.
    links: Option<Links>,
    given: Given,
    since: Since,
}

/// Which file something was.
type Identity = Option<(u64, u64)>;

/// What became of it.
///
/// # Examples
///
/// ```
/// /// Whether somebody should look before anything of the project is run.
/// fn suspicious(report: &ringfence::Report) -> bool {
///     report.changes.as_ref().is_some_and(|changes| !changes.is_empty())
/// }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Changes {
    /// Ordinary files that somebody will run later, and that are not as they were.
    pub files: Vec<FileChange>,
    /// Programs that the project keeps for itself, and that are not as they were.
    pub programs: ProgramChanges,
    /// What has a protected name, wherever it lies, and was made or changed. At the project's root that
    /// takes somebody who allowed it, or a host that cannot refuse it.
    pub protected: Listed,
    /// Ordinary files further down that somebody will run later, and that were made or changed.
    pub run_later: Listed,
    /// What makes git run or obey something in repositories that were there, and was made or changed.
    pub git_knobs: Listed,
    /// Repositories that were not there, or are not the ones that were.
    pub repositories: Vec<NewRepository>,
    /// Branches and other references, in those that were there, which do not lead where they led.
    pub references: ReferenceChanges,
    /// Symbolic links in git directories that were not there, or led elsewhere: git may write
    /// through them.
    pub git_links: GitLinks,
    /// Files that gained a set-user-id or set-group-id bit, or have one and were changed.
    pub set_id: Listed,
    /// Files that have another name outside the project, so that writing to them writes there. No
    /// session can make such a name: they were there before.
    pub hard_links: Listed,
    /// Directories that nobody could look into.
    pub unseen: Listed,
    /// Whether the whole tree was looked at.
    pub complete: bool,
}

/// A file that somebody will run later.
///
/// # Examples
///
/// ```
/// fn show(changes: &ringfence::Changes) {
///     for file in &changes.files {
///         match &file.after {
///             Some(_) => println!("{} was changed, and will be run", file.path),
///             None => println!("{} is gone", file.path),
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct FileChange {
    /// Its name in the project.
    pub path: String,
    /// SHA-256 of what it held; `null` if it was not there.
    pub before: Option<String>,
    /// SHA-256 of what it holds; `null` if it is gone.
    pub after: Option<String>,
}

/// A repository that a session left behind.
///
/// # Examples
///
/// ```
/// fn show(changes: &ringfence::Changes) {
///     for repository in &changes.repositories {
///         println!("{} would make git run {:?}", repository.path, repository.knobs);
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct NewRepository {
    /// Its `.git`, or itself where it is bare: in the project or, where it is elsewhere, from the root.
    pub path: String,
    /// What it is.
    pub shape: Shape,
    /// What in it would make git run something: variables of its configuration, and hooks.
    pub knobs: Vec<String>,
}

/// Some paths, and how many there are.
///
/// # Examples
///
/// ```
/// fn show(changes: &ringfence::Changes) {
///     let set_id = &changes.set_id;
///     println!("{} files run as somebody else, such as {:?}", set_id.count, set_id.paths.first());
/// }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Listed {
    /// The first ones.
    pub paths: Vec<String>,
    /// All of them.
    pub count: usize,
}

impl Listed {
    pub(crate) fn push(&mut self, path: &Path) {
        self.count += 1;
        if self.paths.len() < MOST_LISTED {
            self.paths.push(path.to_string_lossy().into_owned());
        }
    }
}

impl Changes {
    /// Whether there is nothing to tell.
    ///
    /// ```
    /// assert!(!ringfence::Changes::default().is_empty(), "not all of the tree was looked at");
    /// ```
    pub fn is_empty(&self) -> bool {
        let paths = self.set_id.count + self.hard_links.count;
        let named = self.protected.count + self.run_later.count + self.git_knobs.count;
        let programs = self.programs.is_empty();
        self.files.is_empty()
            && programs
            && self.repositories.is_empty()
            && self.references.count + self.git_links.count == 0
            && paths + named == 0
            && self.complete
    }
}

impl Before {
    /// Looks at a project before a command starts in it.
    pub fn look(search: &Search) -> Self {
        Self::look_beside(search, std::iter::empty())
    }

    /// The same, and at the repositories of directories beside it that the command may write.
    pub fn look_beside<'t>(search: &Search, given: impl Iterator<Item = &'t AbsPath>) -> Self {
        let since = Since::now();
        let given = Given::look(search, given.cloned().collect());
        let files = lists::RUN_LATER.iter().map(PathBuf::from);
        let files = files.map(|name| {
            let digest = digest(&search.project.below(&name));
            (name, digest)
        });
        let files = files.collect();
        let found = git::entries_and(search, holds_programs).ok();
        let (entries, directories) = found.unzip();
        let repositories = entries.map(|entries| {
            let entries = entries.into_iter();
            entries
                .map(|(entry, _)| {
                    let identity = identity(&entry);
                    (entry, identity)
                })
                .collect()
        });
        let references = References::look(search, given.directories());
        let git = references.as_ref().map(References::directories);
        Self {
            project: search.project.clone(),
            files,
            repositories,
            programs: directories.map(|all| Programs::look(&search.project, &all)),
            links: git.map(|directories| Links::look(directories, since.at())),
            references,
            given,
            since,
        }
    }

    /// To be called right before the session begins, when all else is ready: what is written until then is
    /// not taken for the session's. Without it that can happen, and nothing is missed.
    pub fn settle(&mut self) {
        self.since.settle();
    }

    /// Looks again, when nothing of the session is left.
    pub fn compare(mut self) -> Changes {
        let mut changes = Changes::default();
        let (references, links) = (self.references.take(), self.links.take());
        if let Some(known) = &references {
            let directories = known.directories().iter();
            changes.git_knobs = named::knobs(directories, &self.project, self.since);
        }
        let references = references.map(|before| before.compare(&self.project));
        for (name, before) in &self.files {
            let after = digest(&self.project.below(name));
            if after != *before {
                changes.files.push(FileChange {
                    path: name.to_string_lossy().into_owned(),
                    before: before.clone(),
                    after,
                });
            }
        }
        let mut after = After {
            before: &self,
            changes,
            links: HashMap::new(),
            programs: Vec::new(),
            names: Names::new(),
            left: MOST_ENTRIES,
        };
        after.walk();
        let mut changes = after.changes;
        for (path, (links, seen)) in after.links.into_values() {
            if seen < links {
                changes.hard_links.push(&path);
            }
        }
        let (references, all) = references.unwrap_or_default();
        changes.references = references;
        changes.complete &= all;
        let made = changes.repositories.iter();
        let made = made.filter(|made| made.shape != Shape::Pointer);
        let made = made.map(|made| self.project.below(&made.path));
        let beside = self.given.made();
        let made = made.chain(given::git_directories(&beside));
        let links = links.map(|before| before.compare(&self.project, made));
        let (links, all) = links.unwrap_or_default();
        changes.git_links = links;
        changes.complete &= all;
        changes.repositories.extend(beside);
        changes.hard_links.paths.sort();
        for listed in [&mut changes.protected, &mut changes.run_later] {
            listed.paths.sort();
        }
        changes.repositories.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }
}

/// The second look.
struct After<'a> {
    before: &'a Before,
    changes: Changes,
    /// Files with several names: the first one, how many there are, and how many were seen.
    links: HashMap<(u64, u64), (PathBuf, (u64, u64))>,
    /// Directories with programs in them.
    programs: Vec<PathBuf>,
    names: Names,
    left: usize,
}

impl After<'_> {
    fn walk(&mut self) {
        let Ok(root) = reading::directory(&self.before.project) else {
            return;
        };
        let mut buffer = Vec::new();
        let mut next = vec![PathBuf::new()];
        self.changes.complete = self.before.repositories.is_some();
        while let Some(path) = next.pop() {
            let here = if path.as_os_str().is_empty() {
                Path::new(".")
            } else {
                &path
            };
            let Ok(directory) = open_below(&root, here) else {
                // What was closed before was so for the session, too.
                let closed = Some(self.before.project.below(&path));
                let mut above = std::iter::successors(closed, AbsPath::parent);
                let known = self.before.repositories.as_ref();
                if !known.is_some_and(|known| above.any(|path| known.contains_key(&path))) {
                    self.changes.unseen.push(&path);
                    self.changes.complete = false;
                }
                continue;
            };
            let mut looks = Looks::default();
            let in_git = path.iter().any(|part| part == ".git");
            // What lies in a directory with a protected name has that name.
            let above = path.ancestors().find_map(|above| {
                let meaning = self.names.meaning(above);
                meaning.filter(|meaning| *meaning == Meaning::Protected)
            });
            let told = self.changes.protected.count;
            let listed = reading::list(&directory, &mut buffer, |name, kind| {
                let Some(left) = self.left.checked_sub(1) else {
                    self.changes.complete = false;
                    return ControlFlow::Break(());
                };
                self.left = left;
                looks.take(name, kind);
                let below = path.join(std::ffi::OsStr::from_bytes(name));
                let meaning = above.or_else(|| self.names.meaning(&below));
                let meaning = meaning.filter(|_| !in_git);
                if let Some(meaning) = meaning.filter(|_| kind != Entry::Directory)
                    && is_young(&directory, &below, self.before.since)
                {
                    self.named(&below, meaning);
                }
                match kind {
                    Entry::Directory => next.push(below),
                    Entry::File => self.file(&directory, below),
                    Entry::Other => {}
                }
                ControlFlow::Continue(())
            });
            if listed.is_err() {
                self.changes.complete = false;
            }
            // One that was moved there has what is older in it.
            let itself = self.names.meaning(&path) == Some(Meaning::Protected) && !in_git;
            if itself
                && self.changes.protected.count == told
                && rustix::fs::fstat(&directory).is_ok_and(|it| self.before.since.includes(&it))
            {
                self.named(&path, Meaning::Protected);
            }
            // Its directory is walked all the same.
            let _ = looks.settle(&directory);
            // What lies in a repository is the repository's.
            if !in_git {
                if holds_programs(&path) {
                    self.programs.push(path.clone());
                }
                let directory = self.before.project.below(&path);
                if let Some((entry, shape)) = entry_of(&directory, looks.what()) {
                    self.repository(&entry, shape);
                }
            }
        }
        self.programs.sort();
        if let Some(programs) = &self.before.programs {
            let since = self.before.since.at();
            self.changes.programs = programs.compare(&root, &self.programs, since);
        }
    }

    fn named(&mut self, path: &Path, meaning: Meaning) {
        match meaning {
            Meaning::Protected => self.changes.protected.push(path),
            Meaning::Source => self.changes.run_later.push(path),
        }
    }

    fn file(&mut self, directory: &OwnedFd, path: PathBuf) {
        let Some(name) = path.file_name() else {
            return;
        };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let Ok(status) = rustix::fs::statat(directory, name, flags) else {
            return;
        };
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return;
        }
        let mode = Mode::from_raw_mode(status.st_mode);
        if mode.intersects(Mode::SUID | Mode::SGID) && self.before.since.includes(&status) {
            self.changes.set_id.push(&path);
        }
        let links = links(&status);
        if links > 1 {
            let known = self.links.entry(number(&status));
            known.or_insert((path, (links, 0))).1.1 += 1;
        }
    }

    fn repository(&mut self, entry: &AbsPath, shape: Shape) {
        let Some(known) = &self.before.repositories else {
            return;
        };
        if known.get(entry) == Some(&identity(entry)) {
            return;
        }
        let below = entry.as_path().strip_prefix(self.before.project.as_path());
        let path = below.unwrap_or(entry.as_path());
        // The project itself, by a name.
        let root = path.as_os_str().is_empty();
        let path = if root { Path::new(".") } else { path };
        self.changes.repositories.push(NewRepository {
            path: path.to_string_lossy().into_owned(),
            shape,
            knobs: knobs(entry, shape),
        });
    }
}

/// What in a repository would make git run something.
fn knobs(entry: &AbsPath, shape: Shape) -> Vec<String> {
    if shape == Shape::Pointer {
        let leads = reading::pointer(entry).unwrap_or_default();
        return vec![leads];
    }
    let file = entry.below("config");
    let text = reading::config(&file);
    // What is too long, closed or no file may say anything.
    let unread = text.is_none() && reading::is_there(&file);
    let mut knobs: Vec<String> = config::parse(&text.unwrap_or_default())
        .into_iter()
        .filter(|variable| {
            matches!(
                config::obeyed(&variable.key),
                Some(Obeyed::Path | Obeyed::Include | Obeyed::Program)
            )
        })
        .map(|variable| variable.key)
        .collect();
    if unread {
        knobs.push("config (cannot be read)".to_owned());
    }
    let further = ["commondir", "config.worktree"].into_iter();
    let further = further.filter(|name| reading::is_there(&entry.below(name)));
    knobs.extend(further.map(str::to_owned));
    if let Ok(directory) = reading::directory(&entry.below("hooks")) {
        let mut buffer = Vec::new();
        let _ = reading::list(&directory, &mut buffer, |name, _| {
            let name = String::from_utf8_lossy(name);
            if !name.ends_with(".sample") {
                knobs.push(format!("hooks/{name}"));
            }
            if knobs.len() < MOST_HOOKS {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
    }
    // Git writes what an index says, and an index by hand may say anything.
    knobs.extend(suspicion(entry));
    knobs.sort();
    knobs.dedup();
    knobs
}

fn identity(path: &AbsPath) -> Identity {
    let status = rustix::fs::lstat(path.as_path()).ok()?;
    Some(number(&status))
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_sign_loss,
    reason = "the fields have other types on other systems; they are only compared"
)]
pub(crate) fn number(status: &Stat) -> (u64, u64) {
    (status.st_dev as u64, status.st_ino as u64)
}

/// How many names a file has.
#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    reason = "the field has other types on other systems"
)]
pub(crate) fn links(status: &Stat) -> u64 {
    status.st_nlink as u64
}

/// When something about a file last changed, and a tick: it did so no later.
pub(crate) fn changed(status: &Stat) -> SystemTime {
    stamp(status) + TICK
}

/// When something about a file last changed: nobody can set this time.
#[allow(
    clippy::unnecessary_cast,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the fields have other types on other systems"
)]
fn stamp(status: &Stat) -> SystemTime {
    let seconds = u64::try_from(status.st_ctime as i64).unwrap_or_default();
    let since = std::time::Duration::new(seconds, status.st_ctime_nsec as u32);
    UNIX_EPOCH + since
}

/// SHA-256 of a regular file, in the usual digits; of a very large one its size, and of what is no
/// file what it is. `None` if nothing is there.
fn digest(path: &AbsPath) -> Option<String> {
    let status = rustix::fs::lstat(path.as_path()).ok()?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => {
            let target = rustix::fs::readlink(path.as_path(), Vec::new()).ok()?;
            return Some(format!("a link to {}", target.to_string_lossy()));
        }
        _ => return Some("not a file".to_owned()),
    }
    let (file, status) = reading::regular(path)?;
    let size = u64::try_from(status.st_size).unwrap_or_default();
    if size > LARGEST {
        return Some(format!("{size} bytes"));
    }
    hashed(file)
}

fn hashed(file: File) -> Option<String> {
    let mut hash = Sha256::new();
    let mut bounded = file.take(LARGEST);
    let mut buffer = [0; 16 << 10];
    loop {
        let read = bounded.read(&mut buffer).ok()?;
        if read == 0 {
            break;
        }
        hash.update(buffer.get(..read)?);
    }
    let digits = hash.finalize();
    let digits = digits.iter().map(|byte| format!("{byte:02x}"));
    Some(digits.collect())
}
