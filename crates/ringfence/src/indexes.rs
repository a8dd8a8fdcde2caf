//! The indexes of the repositories that a session may write, when it is over.
//!
//! The host's git believes what an index says, also a path that git itself would never put there:
//! `git checkout .` then writes a hook and runs it. Nothing keeps a session of level `write` from
//! writing an index, since every `git add` does. So each that changed is read when nothing of the
//! session is left, and put aside if it holds such a path, or cannot be read as git would. What is
//! staged for names that run later is told: git writes it where the session itself could not.
//!
//! At the start only what kind of file each is gets noted, so that costs one `stat` each.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ringfence_core::git::config::{self, Variable};
use ringfence_core::origin::{BuiltIn, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{Access, FileRules, Found, Policy, lists};
use ringfence_core::settings::GitLevel;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use serde::Serialize;

use crate::changes::{Listed, changed, links, number};
use crate::git::index::{self, Entry, Rest, Unread, is_of_git};
use crate::git::{object, reading};
use crate::launch::NameFound;
use crate::report::{Name, Text};

/// No index is larger: this one has some two million files.
const LARGEST: u64 = 256 << 20;
/// Protected files that are compared with what is staged for them.
const LARGEST_FILE: u64 = 64 << 20;
/// Git directories that are looked at, those of working trees included.
const MOST_DIRECTORIES: usize = 20_000;

/// An index of git's that a session left, and that somebody should know of.
///
/// # Examples
///
/// ```
/// fn show(report: &ringfence::Report) {
///     for index in &report.indexes {
///         for path in &index.refused.paths {
///             println!("{} would have had git write {path}", index.path.display());
///         }
///         println!("{} files that run later are staged", index.protected.count);
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IndexFound {
    /// The index.
    pub path: PathBuf,
    /// How far it could be read.
    pub state: IndexState,
    /// Paths in it that git itself never puts there.
    pub refused: Listed,
    /// Protected names for which it has something else than is there.
    pub protected: Listed,
    /// What was put out of the way for it: the index, and those that it shares entries with.
    pub aside: Vec<NameFound>,
}

impl IndexFound {
    /// What nobody could look at.
    fn odd(path: &AbsPath) -> Self {
        Self {
            path: path.as_path().to_owned(),
            state: IndexState::Odd,
            refused: Listed::default(),
            protected: Listed::default(),
            aside: Vec::new(),
        }
    }
}

/// How far an index could be read.
///
/// # Examples
///
/// ```
/// use ringfence::IndexState;
///
/// fn is_trusted(report: &ringfence::Report) -> bool {
///     report.indexes.iter().all(|index| index.state == IndexState::Whole)
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IndexState {
    /// To its end.
    #[default]
    Whole,
    /// Git does not take it for an index, and stops.
    Foreign,
    /// Git takes it for one, and nobody can say what it would find in it.
    Damaged,
    /// It is no plain file of its own: a link, a file with another name, or too large.
    Odd,
}

/// The same, as the report and the trail have it.
#[derive(Clone, Debug, Serialize)]
pub struct Index<'a> {
    /// The index.
    pub path: Text<'a>,
    /// How far it could be read.
    pub state: IndexState,
    /// Paths in it that git itself never puts there.
    pub refused: &'a Listed,
    /// Protected names for which something else is staged than is there.
    pub protected: &'a Listed,
    /// What was put out of the way for it.
    pub aside: Vec<Name<'a>>,
}

impl<'a> Index<'a> {
    /// From what the session's supervisor found.
    pub fn new(found: &'a IndexFound) -> Self {
        Self {
            path: Text(found.path.as_os_str()),
            state: found.state,
            refused: &found.refused,
            protected: &found.protected,
            aside: found.aside.iter().map(Name::new).collect(),
        }
    }
}

/// The indexes that a session may write.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    rules: Option<Arc<FileRules>>,
    /// By git directory, with what the index was like.
    known: BTreeMap<AbsPath, Option<Stamp>>,
    since: Option<SystemTime>,
    /// Whoever may do everything is only told.
    puts_aside: bool,
}

/// Which file something was, and when it last changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stamp {
    file: (u64, u64),
    size: i64,
    changed: SystemTime,
}

impl Stamp {
    fn of(status: &Stat) -> Self {
        Self {
            file: number(status),
            size: status.st_size,
            changed: changed(status),
        }
    }
}

/// What is done to files outside; each system has its own way.
pub(crate) struct Hands {
    /// Lets the owner look at a name again whose directories the session has closed.
    pub(crate) open_up: fn(&Path),
    /// Puts a name out of the way.
    pub(crate) put_aside: fn(&Path) -> Option<NameFound>,
}

impl Hands {
    /// What stands at a path, if anything does.
    fn status(&self, path: &AbsPath) -> Result<Option<Stat>, Errno> {
        let look = || rustix::fs::lstat(path.as_path());
        let seen = look().or_else(|error| match error {
            Errno::ACCESS | Errno::PERM => {
                (self.open_up)(path.as_path());
                look()
            }
            error => Err(error),
        });
        match seen {
            Ok(status) => Ok(Some(status)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Indexes {
    /// Notes what is there before anything runs.
    pub(crate) fn remember(policy: &Policy) -> Self {
        let level = policy.git().value;
        if !matches!(level, GitLevel::Write | GitLevel::Full) {
            return Self::default();
        }
        let rules = policy.shared_files();
        let written = rules.rules().iter().filter(|rule| {
            rule.origin == Origin::BuiltIn(BuiltIn::Git)
                && rule.access == Access::Write
                && rule.found == Found::Directory
        });
        let known = written.map(|rule| {
            let status = rustix::fs::lstat(rule.path.below("index").as_path());
            (
                rule.path.clone(),
                status.ok().map(|status| Stamp::of(&status)),
            )
        });
        let known = known.collect();
        Self {
            known,
            rules: Some(rules),
            since: Some(SystemTime::now()),
            puts_aside: level == GitLevel::Write,
        }
    }

    /// Looks at those that changed, when nothing of the session is left.
    pub(crate) fn look(&self, hands: &Hands) -> Vec<IndexFound> {
        let (Some(rules), Some(since)) = (&self.rules, self.since) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut directories = self.known.clone();
        for directory in self.known.keys() {
            let all = directory.below("worktrees");
            let listed = each_name(&all, |name| {
                let made = all.below(OsStr::from_bytes(name));
                directories.entry(made).or_insert(None);
                directories.len() < MOST_DIRECTORIES
            });
            if listed != Ok(true) {
                found.push(IndexFound::odd(&all));
            }
        }
        for (directory, before) in directories {
            let mut look = Look::new(&directory, rules, hands);
            look.shared(since);
            look.own(before);
            let mut seen = look.seen;
            for path in look.protected {
                seen.protected.push(&path);
            }
            if self.puts_aside {
                let aside = look.bad.iter();
                seen.aside = aside.filter_map(|path| (hands.put_aside)(path)).collect();
            }
            if seen.state != IndexState::Whole || seen.refused.count + seen.protected.count > 0 {
                found.push(seen);
            }
        }
        found
    }
}

/// Goes over the names in a directory, and says whether that was all of them.
fn each_name(directory: &AbsPath, mut each: impl FnMut(&[u8]) -> bool) -> Result<bool, Errno> {
    let opened = match reading::directory(directory) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(true),
        opened => opened?,
    };
    let mut all = true;
    reading::list(&opened, &mut Vec::new(), |name, _| {
        all = each(name);
        if all {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(all)
}

/// A look at the index of one git directory.
struct Look<'a> {
    directory: &'a AbsPath,
    hands: &'a Hands,
    name_length: usize,
    guarded: Guarded<'a>,
    seen: IndexFound,
    /// Protected names for which something else is staged.
    protected: BTreeSet<PathBuf>,
    /// Protected names that have any entry.
    held: BTreeSet<PathBuf>,
    /// Shared indexes that were read.
    read: HashSet<AbsPath>,
    /// What has to be put aside.
    bad: BTreeSet<PathBuf>,
}

impl<'a> Look<'a> {
    fn new(directory: &'a AbsPath, rules: &'a FileRules, hands: &'a Hands) -> Self {
        // A linked working tree is configured where its repository is.
        let above = directory.parent();
        let above = above.filter(|above| above.as_path().ends_with("worktrees"));
        let main = above.and_then(|above| above.parent());
        let main = main.unwrap_or_else(|| directory.clone());
        let text = reading::config(&main.below("config")).unwrap_or_default();
        let variables = config::parse(&text);
        let tree = working_tree(directory, last(&variables, "core.worktree"));
        Self {
            directory,
            hands,
            name_length: name_length(&variables),
            guarded: Guarded::new(rules, tree),
            seen: IndexFound {
                state: IndexState::Whole,
                ..IndexFound::odd(&directory.below("index"))
            },
            protected: BTreeSet::new(),
            held: BTreeSet::new(),
            read: HashSet::new(),
            bad: BTreeSet::new(),
        }
    }

    /// Those that several states of an index share, if they are younger than the session.
    fn shared(&mut self, since: SystemTime) {
        let mut paths = Vec::new();
        let listed = each_name(self.directory, |name| {
            if name.starts_with(b"sharedindex.") {
                paths.push(self.directory.below(OsStr::from_bytes(name)));
            }
            true
        });
        for path in paths {
            let status = self.hands.status(&path);
            let young = |status: &Stat| changed(status) >= since;
            if status
                .as_ref()
                .is_ok_and(|found| found.as_ref().is_some_and(young))
            {
                self.file(&path, status);
            }
        }
        if listed.is_err() {
            self.seen.state = IndexState::Odd;
        }
        // Without them, or where they cannot be found, nobody knows what the index says.
        if !self.bad.is_empty() || listed.is_err() {
            self.bad.insert(self.seen.path.clone());
        }
    }

    fn own(&mut self, before: Option<Stamp>) {
        let path = self.directory.below("index");
        let status = self.hands.status(&path);
        if matches!(&status, Ok(Some(status)) if before == Some(Stamp::of(status))) {
            return;
        }
        let Some(rest) = self.file(&path, status) else {
            return;
        };
        let Some(name) = rest.shared else {
            return;
        };
        let digits: Vec<String> = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let shared = self
            .directory
            .below(format!("sharedindex.{}", digits.concat()));
        if !self.read.contains(&shared) {
            let status = self.hands.status(&shared);
            self.file(&shared, status);
            if self.bad.contains(shared.as_path()) {
                self.bad.insert(self.seen.path.clone());
            }
        }
        if rest.replaces {
            // What the shared one has for a name may have been replaced in this one.
            self.protected.append(&mut self.held);
        }
    }

    /// Reads a file; what it says besides its entries, if that was possible.
    fn file(&mut self, path: &AbsPath, status: Result<Option<Stat>, Errno>) -> Option<Rest> {
        let status = match status {
            Ok(None) => return None,
            Ok(Some(status)) => Some(status),
            Err(_) => None,
        };
        let refused = self.seen.refused.count;
        self.read.insert(path.clone());
        let (state, rest) = match status.and_then(|status| self.entries(path, &status)) {
            Some(Ok(rest)) => (IndexState::Whole, Some(rest)),
            Some(Err(Unread::Foreign)) => (IndexState::Foreign, None),
            Some(Err(Unread::Damaged)) => (IndexState::Damaged, None),
            None => (IndexState::Odd, None),
        };
        self.seen.state = self.seen.state.max(state);
        let obeyed = matches!(state, IndexState::Damaged | IndexState::Odd);
        if obeyed || self.seen.refused.count > refused {
            self.bad.insert(path.as_path().to_owned());
        }
        rest
    }

    /// `None` for a file that is none of git's.
    fn entries(&mut self, path: &AbsPath, status: &Stat) -> Option<Result<Rest, Unread>> {
        let plain = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        // Whoever writes to another name of it writes here, also in a session that may not.
        if !plain || links(status) != 1 {
            return None;
        }
        let bytes = content(path, LARGEST)?;
        let length = self.name_length;
        Some(index::read(&bytes, length, |entry| {
            if entry.path.is_empty() {
                return;
            }
            let path = Path::new(OsStr::from_bytes(entry.path));
            if !is_of_git(entry.path, entry.mode) {
                self.seen.refused.push(path);
            } else if self.guarded.holds(&entry) {
                self.held.insert(path.to_owned());
                if !self.guarded.is_as_staged(&entry) {
                    self.protected.insert(path.to_owned());
                }
            }
        }))
    }
}

/// What is wrong with the index of a repository that a session made, in a few words.
pub(crate) fn suspicion(directory: &AbsPath) -> Option<String> {
    let bytes = content(&directory.below("index"), LARGEST)?;
    let text = reading::config(&directory.below("config")).unwrap_or_default();
    let mut first = None;
    let read = index::read(&bytes, name_length(&config::parse(&text)), |entry| {
        if first.is_none() && !entry.path.is_empty() && !is_of_git(entry.path, entry.mode) {
            first = Some(String::from_utf8_lossy(entry.path).into_owned());
        }
    });
    match (first, read) {
        (Some(path), _) => Some(format!("index: {path}")),
        (None, Err(Unread::Damaged)) => Some("index: damaged".to_owned()),
        (None, _) => None,
    }
}

/// How long the names of contents are in a repository.
fn name_length(variables: &[Variable]) -> usize {
    match last(variables, "extensions.objectformat") {
        Some(format) if format.eq_ignore_ascii_case("sha256") => 32,
        _ => 20,
    }
}

fn last<'v>(variables: &'v [Variable], key: &str) -> Option<&'v str> {
    let found = variables.iter().rfind(|variable| variable.key == key);
    found.map(|variable| &*variable.value)
}

/// Where a git directory's working tree is, if that can be told.
fn working_tree(directory: &AbsPath, configured: Option<&str>) -> Option<AbsPath> {
    if directory.as_path().ends_with(".git") {
        return directory.parent();
    }
    if let Some(entry) = reading::pointer(&directory.below("gitdir")) {
        let entry = AbsPath::lexical(directory.as_path().join(entry)).ok()?;
        return entry.parent();
    }
    AbsPath::lexical(directory.as_path().join(configured?)).ok()
}

/// All that a regular file holds, if it is no longer than that.
fn content(path: &AbsPath, largest: u64) -> Option<Vec<u8>> {
    let (file, status) = reading::regular(path)?;
    let size = u64::try_from(status.st_size).ok()?;
    if size > largest {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
    file.take(largest).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The protected names of a working tree.
struct Guarded<'a> {
    rules: &'a FileRules,
    tree: Option<AbsPath>,
    /// As paths in the tree.
    names: Vec<PathBuf>,
    /// What they begin with, in small letters: nearly every path begins with something else.
    first: HashSet<Vec<u8>>,
}

impl<'a> Guarded<'a> {
    fn new(rules: &'a FileRules, tree: Option<AbsPath>) -> Self {
        let protected = rules.rules().iter().filter(|rule| {
            rule.origin == Origin::BuiltIn(BuiltIn::Protected) && rule.access != Access::Write
        });
        let below = protected.filter_map(|rule| {
            let tree = tree.as_ref()?.as_path();
            rule.path.as_path().strip_prefix(tree).ok()
        });
        let mut names: Vec<PathBuf> = below.map(Path::to_owned).collect();
        let writable = |tree: &AbsPath| rules.access(tree).access == Access::Write;
        if !tree.as_ref().is_some_and(writable) {
            // It is elsewhere, or around the project: at its root the session can write nothing.
            names.extend(lists::PROTECTED.iter().map(|(name, _)| PathBuf::from(name)));
        }
        let first = names
            .iter()
            .map(|name| first_part(name.as_os_str().as_bytes()));
        let first = first.collect();
        Self {
            rules,
            tree,
            names,
            first,
        }
    }

    /// Whether an entry is what has a protected name, or would stand above it.
    fn holds(&self, entry: &Entry<'_>) -> bool {
        if !self.first.contains(&first_part(entry.path)) {
            return false;
        }
        self.names.iter().any(|name| {
            let name = name.as_os_str().as_bytes();
            let granted = || entry.path.starts_with(name) && self.is_granted(entry);
            (is_at_or_below(entry.path, name) && !granted())
                || (entry.leads_on() && is_at_or_below(name, entry.path))
        })
    }

    /// Whether the session may write there all the same.
    fn is_granted(&self, entry: &Entry<'_>) -> bool {
        let path = |tree: &AbsPath| tree.below(OsStr::from_bytes(entry.path));
        let path = self.tree.as_ref().map(path);
        path.is_some_and(|path| self.rules.access(&path).access == Access::Write)
    }

    /// Whether the working tree has the very thing that is staged: then git changes nothing.
    fn is_as_staged(&self, entry: &Entry<'_>) -> bool {
        let Some(tree) = &self.tree else {
            return false;
        };
        let path = tree.below(OsStr::from_bytes(entry.path));
        let there = if entry.mode == index::LINK {
            let target = rustix::fs::readlink(path.as_path(), Vec::new());
            target.ok().map(std::ffi::CString::into_bytes)
        } else {
            content(&path, LARGEST_FILE)
        };
        there.is_some_and(|there| object::blob(&there, entry.object.len()) == entry.object)
    }
}

fn first_part(path: &[u8]) -> Vec<u8> {
    let first = path.split(|byte| *byte == b'/').next();
    first.unwrap_or(path).to_ascii_lowercase()
}

/// Also by another spelling, where capital letters are small ones.
fn is_at_or_below(path: &[u8], name: &[u8]) -> bool {
    let (start, rest) = path.split_at(name.len().min(path.len()));
    start.eq_ignore_ascii_case(name) && matches!(rest, [] | [b'/', ..])
}

#[cfg(test)]
#[path = "indexes_tests.rs"]
mod tests;
