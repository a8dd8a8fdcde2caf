//! Symbolic links in the git directories of a project, before a session and after it.
//!
//! Git writes some of its files in place, and through a link if there is one. At level `write` a
//! session is refused to make any; what one that raced has left, or one that may do everything, is
//! told.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use ringfence_core::path::AbsPath;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use serde::Serialize;

use super::{MOST_ENTRIES, MOST_LISTED, changed};
use crate::git::reading::{self, Entry};

/// Links that were not in a git directory, or led elsewhere.
///
/// # Examples
///
/// ```
/// fn show(changes: &ringfence::Changes) {
///     println!("git could write through {} links", changes.git_links.count);
/// }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct GitLinks {
    /// The first ones.
    pub made: Vec<GitLink>,
    /// All of them.
    pub count: usize,
}

/// A symbolic link in a git directory.
///
/// # Examples
///
/// ```
/// fn show(changes: &ringfence::Changes) {
///     for link in &changes.git_links.made {
///         println!("{} leads to {}", link.path, link.leads_to);
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct GitLink {
    /// Where it is, in the project or, where it is elsewhere, from the root.
    pub path: String,
    /// What it says.
    pub leads_to: String,
}

/// The links before a session.
#[derive(Debug)]
pub(super) struct Links {
    directories: BTreeSet<AbsPath>,
    before: Look,
    at: SystemTime,
}

impl Links {
    /// Looks at git directories, but not where they keep their objects: those are many, and have the
    /// time of their last change.
    pub(super) fn look(directories: &BTreeSet<AbsPath>, at: SystemTime) -> Self {
        let mut before = Look::default();
        before.walk(directories, |path| holds_objects(directories, path));
        Self {
            directories: directories.clone(),
            before,
            at,
        }
    }

    /// Looks again, also at repositories that were made meanwhile; and whether all was looked at.
    pub(super) fn compare(
        self,
        project: &AbsPath,
        made: impl Iterator<Item = AbsPath>,
    ) -> (GitLinks, bool) {
        let directories: BTreeSet<AbsPath> = self.directories.iter().cloned().chain(made).collect();
        let mut after = Look::default();
        after.walk(&directories, |_| false);
        let mut links = GitLinks::default();
        for (path, link) in &after.links {
            let known = self.before.links.get(path);
            if known.is_some_and(|before| before.leads_to == link.leads_to) {
                continue;
            }
            // A link that was moved along with the directory around it keeps its time.
            let among_objects = path
                .as_path()
                .ancestors()
                .any(|above| holds_objects(&self.directories, above));
            if link.changed < self.at && (among_objects || !self.before.complete) {
                continue;
            }
            let below = path.as_path().strip_prefix(project.as_path());
            let shown = below.unwrap_or(path.as_path()).to_string_lossy();
            links.count += 1;
            if links.made.len() < MOST_LISTED {
                links.made.push(GitLink {
                    path: shown.into_owned(),
                    leads_to: link.leads_to.clone(),
                });
            }
        }
        (links, self.before.complete && after.complete)
    }
}

/// Whether a directory is one in which git, or an extension that many use, keeps objects.
fn holds_objects(directories: &BTreeSet<AbsPath>, path: &Path) -> bool {
    let Some(above) = path.parent().filter(|_| path.ends_with("objects")) else {
        return false;
    };
    let above = if above.ends_with("lfs") {
        above.parent().unwrap_or(above)
    } else {
        above
    };
    AbsPath::parse(above).is_ok_and(|above| directories.contains(&above))
}

/// What was seen at one time.
#[derive(Debug)]
struct Look {
    links: BTreeMap<AbsPath, Link>,
    left: usize,
    complete: bool,
}

#[derive(Debug)]
struct Link {
    leads_to: String,
    changed: SystemTime,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            links: BTreeMap::new(),
            left: MOST_ENTRIES,
            complete: true,
        }
    }
}

impl Look {
    fn walk(&mut self, directories: &BTreeSet<AbsPath>, skip: impl Fn(&Path) -> bool) {
        // What belongs to submodules and working trees lies in the main one.
        let known: HashSet<&Path> = directories.iter().map(AbsPath::as_path).collect();
        let within = |path: &AbsPath| path.above().any(|above| known.contains(above));
        let mut next: Vec<AbsPath> = directories
            .iter()
            .filter(|path| !within(path))
            .cloned()
            .collect();
        let mut buffer = Vec::new();
        while let Some(path) = next.pop() {
            let directory = match reading::directory(&path) {
                Ok(directory) => directory,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(_) => {
                    self.complete = false;
                    continue;
                }
            };
            let mut others = Vec::new();
            let listed = reading::list(&directory, &mut buffer, |name, kind| {
                let Some(left) = self.left.checked_sub(1) else {
                    self.complete = false;
                    return ControlFlow::Break(());
                };
                self.left = left;
                let below = || path.below(OsStr::from_bytes(name));
                match kind {
                    Entry::Directory => {
                        next.extend(Some(below()).filter(|path| !skip(path.as_path())));
                    }
                    Entry::Other => others.push(below()),
                    Entry::File => {}
                }
                ControlFlow::Continue(())
            });
            self.complete &= listed.is_ok();
            for other in others {
                let Some(name) = other.as_path().file_name() else {
                    continue;
                };
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                let Ok(status) = rustix::fs::statat(&directory, name, flags) else {
                    continue;
                };
                if FileType::from_raw_mode(status.st_mode) == FileType::Symlink
                    && let Ok(target) = rustix::fs::readlinkat(&directory, name, Vec::new())
                {
                    let link = Link {
                        leads_to: target.to_string_lossy().into_owned(),
                        changed: changed(&status),
                    };
                    self.links.insert(other, link);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn each_link_is_told_that_was_not_there_or_leads_elsewhere() {
        let guard = tempfile::tempdir().unwrap();
        let project = AbsPath::parse(fs::canonicalize(guard.path()).unwrap()).unwrap();
        let path = |name: &str| project.below(name).as_path().to_owned();
        for directory in [
            ".git/objects/aa",
            ".git/modules/a/objects/aa",
            ".git/refs/objects",
            ".git/lfs/objects",
            "elsewhere",
            "new/.git",
        ] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        let directories = [".git", ".git/modules/a"].map(|name| project.below(name));
        let directories = BTreeSet::from(directories);
        for old in [
            ".git/HEAD",
            ".git/stays",
            ".git/objects/aa/old",
            "elsewhere/x",
        ] {
            symlink("old", path(old)).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        let links = Links::look(&directories, SystemTime::now());

        fs::remove_file(path(".git/HEAD")).unwrap();
        for new in [
            ".git/HEAD",
            ".git/COMMIT_EDITMSG",
            ".git/objects/aa/new",
            ".git/modules/a/objects/aa/new",
            ".git/refs/objects/x",
            ".git/lfs/objects/x",
            "new/.git/FETCH_HEAD",
            "elsewhere/y",
        ] {
            symlink("/new", path(new)).unwrap();
        }
        // Its links are as old as they were.
        fs::rename(path("elsewhere"), path(".git/logs")).unwrap();
        let made = [project.below("new/.git")].into_iter();
        let (links, complete) = links.compare(&project, made);
        let told = links.made.iter();
        let told: Vec<_> = told
            .map(|link| (&link.path[..], &link.leads_to[..]))
            .collect();
        assert_eq!(
            told,
            [
                (".git/COMMIT_EDITMSG", "/new"),
                (".git/HEAD", "/new"),
                (".git/lfs/objects/x", "/new"),
                (".git/logs/x", "old"),
                (".git/logs/y", "/new"),
                (".git/modules/a/objects/aa/new", "/new"),
                (".git/objects/aa/new", "/new"),
                (".git/refs/objects/x", "/new"),
                ("new/.git/FETCH_HEAD", "/new"),
            ]
        );
        assert!(complete && links.count == 9);
    }
}
