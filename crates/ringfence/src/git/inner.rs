//! What is inside a git directory: those of submodules, and working trees.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use ringfence_core::git::{GitDir, Role};
use ringfence_core::path::AbsPath;

use super::reading::{self, Entry};

/// Submodules and working trees of one repository.
pub(super) const MOST_INNER: usize = 1024;
/// Submodules of submodules, and slashes in their names.
const DEEPEST_MODULE: usize = 8;

/// Whether git would take a directory for a repository.
pub(super) fn is_git_directory(path: &AbsPath) -> bool {
    reading::is_file(&path.below("HEAD"))
        && reading::is_directory(&path.below("objects"))
        && reading::is_directory(&path.below("refs"))
}

/// The git directories of submodules in a git directory, whose names may have slashes.
pub(super) fn modules(git_dir: &AbsPath, depth: usize, out: &mut Vec<GitDir>) {
    search_modules(&git_dir.below("modules"), depth, out);
}

fn search_modules(directory: &AbsPath, depth: usize, out: &mut Vec<GitDir>) {
    if depth >= DEEPEST_MODULE {
        return;
    }
    let mut names = Vec::new();
    names_in(directory, &mut names);
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
            modules(&path, depth + 1, out);
        } else {
            search_modules(&path, depth + 1, out);
        }
    }
}

/// The names of the directories in a directory.
pub(super) fn names_in(directory: &AbsPath, out: &mut Vec<PathBuf>) {
    let Ok(directory) = reading::directory(directory) else {
        return;
    };
    let mut buffer = Vec::new();
    let _ = reading::list(&directory, &mut buffer, |name, kind| {
        if kind == Entry::Directory {
            out.push(PathBuf::from(OsStr::from_bytes(name)));
        }
        if out.len() >= MOST_INNER {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
}
