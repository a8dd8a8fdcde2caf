//! What is known about git repositories in and around a project, as plain facts.
//!
//! The library finds them by reading git's files itself; what follows from a repository for a
//! policy is decided in [`policy`](crate::policy). A fact here never grants anything by itself:
//! whether a pointer may be followed was checked by whoever found it, and says so.

pub mod config;

use serde::Serialize;

use crate::path::AbsPath;

/// A repository, as it stood when it was looked at.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Repository {
    /// Its `.git`, or the repository itself where it is bare.
    pub entry: AbsPath,
    /// What that is.
    pub shape: Shape,
    /// Where it lies.
    pub position: Position,
    /// Git directories that belong to it and may be followed: where a pointer leads, what several
    /// working trees share. For a directory, the directory itself.
    pub git_dirs: Vec<GitDir>,
    /// Files and directories that its configuration makes git run or obey, wherever they are.
    pub obeyed: Vec<AbsPath>,
    /// Configurations that could not be read whole, so that nobody knows what they make git obey.
    pub unread: Vec<AbsPath>,
}

impl Repository {
    /// The directory that it is the repository of; itself where it is bare, or could not be looked into.
    pub fn working_tree(&self) -> AbsPath {
        match self.shape {
            Shape::Bare | Shape::Closed => self.entry.clone(),
            Shape::Directory | Shape::Pointer => self.entry.parent().unwrap_or_else(AbsPath::root),
        }
    }
}

/// A directory in which git keeps its files.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct GitDir {
    /// Where it is.
    pub path: AbsPath,
    /// What it is to its repository.
    pub role: Role,
}

/// What a git directory is to its repository.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The one that holds objects and references, and all the others.
    Main,
    /// A submodule's, in the main one.
    Module,
    /// A linked working tree's, in the main one.
    Worktree,
    /// The directory of all of those, where nobody could say which there are.
    Worktrees,
}

/// What stands where a repository was found.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A directory that is a repository without being called `.git`.
    Bare,
    /// A directory that could not be looked into: whatever it holds may be a repository.
    Closed,
    /// A directory called `.git`.
    Directory,
    /// A file called `.git` that leads to a directory elsewhere.
    Pointer,
}

/// Where a repository lies.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// Above the project, which has none of its own: it is the project's repository.
    Above,
    /// Above the project's own repository.
    Beyond,
    /// Elsewhere, in a directory that somebody gave for writing.
    Granted,
    /// Named by a variable such as `GIT_DIR`.
    Named,
    /// At the project's root.
    Own,
    /// Below the project's root.
    Within,
}
