//! What is inside a git directory: those of submodules, and working trees.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use ringfence_core::git::{GitDir, Role};
use ringfence_core::path::AbsPath;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::reading::{self, Entry};

/// Submodules and working trees of one repository.
const MOST_INNER: usize = 1024;
/// Submodules of submodules, and slashes in their names.
const DEEPEST_MODULE: usize = 8;

/// Whether git would take a directory for a repository, or may do so later: see
/// [`Looks`](super::scan::Looks).
pub(super) fn is_git_directory(path: &AbsPath) -> bool {
    let has = |name| reading::is_there(&path.below(name));
    has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

/// The git directories of submodules in a git directory, whose names may have slashes. Those that are
/// not found, because they are too deep, too many or closed, are not used: `modules` stays as it is.
pub(super) fn modules(git_dir: &AbsPath, depth: usize, out: &mut Vec<GitDir>) {
    search_modules(&git_dir.below("modules"), depth, out);
}

fn search_modules(directory: &AbsPath, depth: usize, out: &mut Vec<GitDir>) {
    if depth >= DEEPEST_MODULE {
        return;
    }
    let mut names = Vec::new();
    let _ = names_in(directory, &mut names);
    for name in names {
        if out.len() >= MOST_INNER {
            return;
        }
        let path = directory.below(name);
        if is_git_directory(&path) {
            let role = Role::Module;
            out.push(GitDir {
                path: path.clone(),
                role,
            });
            worktrees(&path, out);
            modules(&path, depth + 1, out);
        } else {
            search_modules(&path, depth + 1, out);
        }
    }
}

/// What a git directory keeps for each linked working tree; all of it as one where nobody can say which
/// there are.
pub(super) fn worktrees(git_dir: &AbsPath, out: &mut Vec<GitDir>) {
    let all = git_dir.below("worktrees");
    let mut names = Vec::new();
    if names_in(&all, &mut names) == Ok(()) {
        let role = Role::Worktree;
        let paths = names.into_iter().map(|name| all.below(name));
        out.extend(paths.map(|path| GitDir { path, role }));
    } else {
        let role = Role::Worktrees;
        out.push(GitDir { path: all, role });
    }
}

/// The names of the directories in a directory, if it is there; an error if those are not all.
fn names_in(directory: &AbsPath, out: &mut Vec<PathBuf>) -> Result<(), Errno> {
    let directory = match reading::directory(directory) {
        Ok(directory) => directory,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(why) => return Err(why),
    };
    // Who may list and not enter sees names of what he cannot look at.
    rustix::fs::statat(&directory, ".", AtFlags::SYMLINK_NOFOLLOW)?;
    let mut buffer = Vec::new();
    reading::list(&directory, &mut buffer, |name, kind| {
        if kind == Entry::Directory {
            out.push(PathBuf::from(OsStr::from_bytes(name)));
        }
        if out.len() > MOST_INNER {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    if out.len() > MOST_INNER {
        Err(Errno::TOOBIG)
    } else {
        Ok(())
    }
}
