//! Where the references of a project's repositories lead, before a session and after it.
//!
//! Whoever may commit may move every branch and every tag, too, with calls that no hook ever sees.
//! Nothing keeps a session of level `write` from that; what it comes to is told.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use ringfence_core::path::AbsPath;
use serde::Serialize;

use crate::git::reading::{self, Entry};
use crate::git::{self, Reach, Search};
use crate::place::Lookout;

/// References that are compared in one project.
const MOST: usize = 20_000;
/// Those that are listed; the rest is counted.
const MOST_LISTED: usize = 100;

/// What became of the references in repositories that were there before.
///
/// # Examples
///
/// ```
/// fn show(changes: &ringfence::Changes) {
///     println!("{} branches and tags were moved", changes.references.count);
/// }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct ReferenceChanges {
    /// The first ones that do not lead where they led.
    pub moved: Vec<ReferenceChange>,
    /// All of them.
    pub count: usize,
}

/// A branch, a tag or another reference that does not lead where it led.
///
/// # Examples
///
/// ```
/// fn show(changes: &ringfence::Changes) {
///     for moved in &changes.references.moved {
///         println!("{} of {} was {:?}", moved.name, moved.repository, moved.before);
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ReferenceChange {
    /// Its git directory, in the project or, where it is elsewhere, from the root.
    pub repository: String,
    /// Its whole name.
    pub name: String,
    /// Where it led; `null` if it was not there.
    pub before: Option<String>,
    /// Where it leads; `null` if it is gone.
    pub after: Option<String>,
}

/// The references of a project before a session.
#[derive(Debug)]
pub(super) struct References {
    directories: BTreeSet<AbsPath>,
    before: Look,
}

impl References {
    /// Looks at every repository of a project, at its own if that is elsewhere, and at these git
    /// directories. `None` if nobody can say which there are in the project.
    pub(super) fn look(search: &Search, beside: impl Iterator<Item = AbsPath>) -> Option<Self> {
        let repositories = git::find(search, Reach::Inside, &Lookout::new()).ok()?;
        let directories = repositories.into_iter().flat_map(|it| it.git_dirs);
        let directories = directories.map(|directory| directory.path);
        let directories = directories.chain(beside).collect();
        let before = Look::at(&directories);
        Some(Self {
            directories,
            before,
        })
    }

    /// The git directories that were looked at.
    pub(super) fn directories(&self) -> &BTreeSet<AbsPath> {
        &self.directories
    }

    /// Looks again; and whether all of them were compared.
    pub(super) fn compare(self, project: &AbsPath) -> (ReferenceChanges, bool) {
        let after = Look::at(&self.directories);
        let all = self.before.complete && after.complete;
        let mut changes = ReferenceChanges::default();
        let keys: BTreeSet<_> = self.before.known.keys().chain(after.known.keys()).collect();
        for key in keys {
            let (before, after) = (self.before.known.get(key), after.known.get(key));
            // What one of the looks did not get to need not have changed.
            if before == after || (!all && (before.is_none() || after.is_none())) {
                continue;
            }
            let (directory, name) = key;
            let below = directory.as_path().strip_prefix(project.as_path());
            let shown = below.unwrap_or(directory.as_path()).to_string_lossy();
            changes.push(ReferenceChange {
                repository: shown.into_owned(),
                name: name.clone(),
                before: before.cloned(),
                after: after.cloned(),
            });
        }
        (changes, all)
    }
}

impl ReferenceChanges {
    fn push(&mut self, change: ReferenceChange) {
        self.count += 1;
        if self.moved.len() < MOST_LISTED {
            self.moved.push(change);
        }
    }
}

/// What was seen at one time.
#[derive(Debug)]
struct Look {
    /// By git directory and name.
    known: BTreeMap<(AbsPath, String), String>,
    complete: bool,
}

impl Look {
    fn at(directories: &BTreeSet<AbsPath>) -> Self {
        let mut look = Self {
            known: BTreeMap::new(),
            complete: true,
        };
        for directory in directories {
            look.packed(directory);
            look.loose(directory);
            if let Some(head) = reading::pointer(&directory.below("HEAD")) {
                look.take(directory, "HEAD", head);
            }
            // The newer format keeps all of them in tables, with new names after each change.
            if let Some(tables) = reading::config(&directory.below("reftable/tables.list")) {
                let tables = tables.split_whitespace().collect::<Vec<_>>().join(" ");
                look.take(directory, "reftable", tables);
            }
        }
        look
    }

    fn take(&mut self, directory: &AbsPath, name: &str, leads_to: String) {
        if self.known.len() < MOST {
            let key = (directory.clone(), name.to_owned());
            self.known.insert(key, leads_to);
        } else {
            self.complete = false;
        }
    }

    fn packed(&mut self, directory: &AbsPath) {
        let path = directory.below("packed-refs");
        let Some(text) = reading::packed_references(&path) else {
            self.complete &= !reading::is_file(&path);
            return;
        };
        for line in text.lines().filter(|line| !line.starts_with(['#', '^'])) {
            if let Some((object, name)) = line.split_once(' ') {
                self.take(directory, name, object.to_owned());
            }
        }
    }

    /// What a file of its own says stands against what is packed.
    fn loose(&mut self, directory: &AbsPath) {
        let mut buffer = Vec::new();
        let mut left = MOST;
        let mut next = vec![PathBuf::from("refs")];
        while let Some(path) = next.pop() {
            let Ok(opened) = reading::directory(&directory.below(&path)) else {
                continue;
            };
            let mut files = Vec::new();
            let listed = reading::list(&opened, &mut buffer, |name, kind| {
                let Some(rest) = left.checked_sub(1) else {
                    self.complete = false;
                    return ControlFlow::Break(());
                };
                left = rest;
                let below = path.join(OsStr::from_bytes(name));
                match kind {
                    Entry::Directory => next.push(below),
                    Entry::File | Entry::Other => files.push(below),
                }
                ControlFlow::Continue(())
            });
            self.complete &= listed.is_ok();
            for file in files {
                let leads_to = reading::pointer(&directory.below(&file));
                let leads_to = leads_to.unwrap_or_else(|| "what no reference holds".to_owned());
                self.take(directory, &file.to_string_lossy(), leads_to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn project() -> (tempfile::TempDir, AbsPath) {
        let guard = tempfile::tempdir().unwrap();
        let project = AbsPath::parse(fs::canonicalize(guard.path()).unwrap()).unwrap();
        for directory in [".git/objects", ".git/refs/heads/a", ".git/refs/tags"] {
            fs::create_dir_all(project.below(directory).as_path()).unwrap();
        }
        write(&project, "HEAD", "ref: refs/heads/main\n");
        (guard, project)
    }

    fn write(project: &AbsPath, name: &str, text: &str) {
        fs::write(project.below(".git").below(name).as_path(), text).unwrap();
    }

    #[test]
    fn each_reference_is_told_that_leads_elsewhere() {
        let (_guard, project) = project();
        let packed = format!("# pack-refs\n{A} refs/heads/main\n{A} refs/tags/v1\n^{B}\n");
        write(&project, "packed-refs", &packed);
        write(&project, "refs/heads/a/b", &format!("{A}\n"));
        write(&project, "refs/heads/same", &format!("{A}\n"));
        let before = References::look(&Search::new(project.clone()), std::iter::empty()).unwrap();

        write(&project, "HEAD", "ref: refs/heads/a/b\n");
        write(&project, "refs/heads/main", &format!("{B}\n"));
        write(&project, "packed-refs", &format!("{A} refs/heads/main\n"));
        fs::remove_file(project.below(".git/refs/heads/a/b").as_path()).unwrap();
        fs::remove_file(project.below(".git/refs/heads/same").as_path()).unwrap();
        // Only kept in another way.
        let packed = format!("{A} refs/heads/main\n{A} refs/heads/same\n");
        write(&project, "packed-refs", &packed);
        std::os::unix::fs::symlink("HEAD", project.below(".git/refs/tags/new").as_path()).unwrap();

        let (changes, complete) = before.compare(&project);
        let told = changes.moved.iter().map(|moved| {
            let before = moved.before.as_deref().unwrap_or("-");
            let after = moved.after.as_deref().unwrap_or("-");
            assert_eq!(moved.repository, ".git");
            (&moved.name[..], before, after)
        });
        let told: Vec<_> = told.collect();
        assert_eq!(
            told,
            [
                ("HEAD", "ref: refs/heads/main", "ref: refs/heads/a/b"),
                ("refs/heads/a/b", A, "-"),
                ("refs/heads/main", A, B),
                ("refs/tags/new", "-", "what no reference holds"),
                ("refs/tags/v1", A, "-"),
            ]
        );
        assert!(complete && changes.count == 5);
    }

    #[test]
    fn what_was_planted_ends_the_look_and_is_said() {
        let (_guard, project) = project();
        let before = References::look(&Search::new(project.clone()), std::iter::empty()).unwrap();
        // A list that has no end, as far as anybody would read.
        let file = fs::File::create(project.below(".git/packed-refs").as_path()).unwrap();
        file.set_len(1 << 40).unwrap();
        let (changes, complete) = before.compare(&project);
        assert!(changes.moved.is_empty() && !complete);
    }
}
