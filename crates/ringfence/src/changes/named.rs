//! Files that changed in a session and that somebody obeys for their names, wherever they lie.
//!
//! At a project's root each such name is looked at before and after. Further down there are too many
//! places where one could be, so what is there is told by the time of its last change, which nobody
//! can set. That says neither what it held nor whether it was there, and of what is gone nothing.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ringfence_core::path::AbsPath;
use ringfence_core::policy::lists;
use rustix::fs::{AtFlags, FileType, Stat};

use super::{Listed, Since};
use crate::git::reading;

/// Python runs what is in such a file, whatever it is called.
const PYTHON: &str = "pth";
/// Packages of others, each with its own sources: whoever changes those needs no special name.
const PACKAGES: &str = "node_modules";
/// Parts of git directories that are looked into.
const MOST_PARTS: usize = 20_000;

/// What a name means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Meaning {
    /// Some program obeys it without being asked.
    Protected,
    /// It is ordinary source that is run later.
    Source,
}

/// The names of the lists, by what they end with.
pub(super) struct Names {
    known: HashMap<&'static OsStr, Vec<(&'static Path, Meaning)>>,
}

impl Names {
    pub(super) fn new() -> Self {
        let protected = lists::PROTECTED.iter().map(|(name, _)| *name);
        let protected = protected.map(|name| (Path::new(name), Meaning::Protected));
        let source = lists::RUN_LATER.iter();
        let source = source.map(|name| (Path::new(*name), Meaning::Source));
        let mut known: HashMap<_, Vec<_>> = HashMap::new();
        for (name, meaning) in protected.chain(source) {
            let last = name.file_name().unwrap_or(name.as_os_str());
            known.entry(last).or_default().push((name, meaning));
        }
        Self { known }
    }

    /// What the name of something in a project means.
    pub(super) fn meaning(&self, path: &Path) -> Option<Meaning> {
        let known = self.known.get(path.file_name()?);
        let mut known = known.into_iter().flatten();
        let found = known.find(|(name, _)| path.ends_with(name));
        let python = || {
            path.extension()
                .is_some_and(|extension| extension == PYTHON)
        };
        let meaning = match found {
            Some((_, meaning)) => *meaning,
            None if python() => Meaning::Source,
            None => return None,
        };
        let package = || path.iter().any(|part| part == PACKAGES);
        // At the root it is compared by what it holds.
        let compared = || lists::RUN_LATER.iter().any(|name| path == Path::new(name));
        let told = meaning == Meaning::Protected || !(package() || compared());
        told.then_some(meaning)
    }
}

/// Whether something in a directory changed; of a link it is asked, not of what it leads to.
pub(super) fn is_young(directory: &OwnedFd, path: &Path, since: Since) -> bool {
    let status = path
        .file_name()
        .and_then(|name| rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok());
    status.is_some_and(|status| since.includes(&status))
}

/// What in the git directories of a project makes git run or obey something, and changed.
pub(super) fn knobs<'a>(
    directories: impl Iterator<Item = &'a AbsPath>,
    project: &AbsPath,
    since: Since,
) -> Listed {
    let mut look = Knobs {
        project,
        since,
        left: MOST_PARTS,
        told: Listed::default(),
    };
    for directory in directories {
        for knob in lists::GIT_KNOBS {
            // What is in it has directories of its own.
            if *knob != "modules" {
                look.at(&directory.below(knob));
            }
        }
    }
    look.told
}

struct Knobs<'a> {
    project: &'a AbsPath,
    since: Since,
    left: usize,
    told: Listed,
}

impl Knobs<'_> {
    fn at(&mut self, path: &AbsPath) {
        let Ok(status) = rustix::fs::lstat(path.as_path()) else {
            return;
        };
        let before = self.told.count;
        if FileType::from_raw_mode(status.st_mode) == FileType::Directory
            && let Ok(opened) = reading::directory(path)
        {
            let _ = reading::list(&opened, &mut Vec::new(), |name, _| {
                let below = path.below(OsStr::from_bytes(name));
                if let Ok(status) = rustix::fs::lstat(below.as_path()) {
                    self.one(&below, &status);
                }
                self.left = self.left.saturating_sub(1);
                if self.left == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        }
        // A directory that was moved there as a whole has what is older in it.
        if self.told.count == before {
            self.one(path, &status);
        }
    }

    fn one(&mut self, path: &AbsPath, status: &Stat) {
        if self.since.includes(status) {
            let below = path.as_path().strip_prefix(self.project.as_path());
            self.told.push(below.unwrap_or(path.as_path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{Before, Changes};
    use crate::git::Search;
    use std::fs;
    use std::time::Duration;

    fn project() -> (tempfile::TempDir, AbsPath) {
        let guard = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(guard.path()).unwrap();
        (guard, AbsPath::parse(root).unwrap())
    }

    fn write(project: &AbsPath, path: &str) {
        let path = project.below(path);
        fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
        fs::write(path.as_path(), "new").unwrap();
    }

    fn before(project: &AbsPath) -> Before {
        // The clock of a file system may not have ticked since.
        std::thread::sleep(Duration::from_millis(50));
        Before::look(&Search::new(project.clone()))
    }

    fn sorted(listed: &Listed) -> Vec<&str> {
        let mut paths: Vec<&str> = listed.paths.iter().map(|path| &**path).collect();
        paths.sort_unstable();
        paths
    }

    #[test]
    fn names_are_told_wherever_they_lie() {
        let (_guard, project) = project();
        for old in ["sub/Makefile", "sub/.vscode/old.json", "away/tasks.json"] {
            write(&project, old);
        }
        let look = before(&project);
        let protected = [
            "a/b/.cargo/config.toml",
            "node_modules/x/.npmrc",
            "sub/.envrc",
            "sub/.mcp.json",
            "sub/.vscode/tasks.json",
        ];
        let source = [
            ".venv/lib/python3/site-packages/sitecustomize.py",
            ".venv/lib/python3/site-packages/x.pth",
            "crates/x/build.rs",
            "sub/package.json",
            "tests/conftest.py",
        ];
        for new in protected.iter().chain(&source) {
            write(&project, new);
        }
        for other in ["Makefile", "node_modules/x/package.json", "sub/main.rs"] {
            write(&project, other);
        }
        // A directory that was there by another name, and a link.
        fs::rename(
            project.below("away").as_path(),
            project.below("sub/.idea").as_path(),
        )
        .unwrap();
        std::os::unix::fs::symlink("..", project.below("sub/.zed").as_path()).unwrap();
        let changes: Changes = look.compare();
        let mut all = [&protected[..], &["sub/.idea", "sub/.zed"]].concat();
        all.sort_unstable();
        assert_eq!(sorted(&changes.protected), all);
        assert_eq!(sorted(&changes.run_later), source);
        assert!(!changes.is_empty());
    }

    #[test]
    fn hooks_of_a_repository_that_was_there_are_told() {
        let (_guard, project) = project();
        for file in ["HEAD", "objects/x", "refs/x", "hooks/old", "config"] {
            write(&project, &format!(".git/{file}"));
        }
        let look = before(&project);
        write(&project, ".git/hooks/post-checkout");
        write(&project, ".git/info/attributes");
        write(&project, ".git/refs/heads/config");
        let changes = look.compare();
        let told = [".git/hooks/post-checkout", ".git/info/attributes"];
        assert_eq!(sorted(&changes.git_knobs), told);
    }
}
