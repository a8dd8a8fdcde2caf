//! Directories beside the project that were given for writing: what became of the repositories at their top.
//!
//! Nobody walks them, they can be as large as they like. So what lies further down in one is not told.

use ringfence_core::git::{Repository, Shape};
use ringfence_core::path::AbsPath;

use super::{Identity, NewRepository, identity, knobs};
use crate::git::{Search, at_top};
use crate::place::Lookout;

/// Them before a session.
#[derive(Debug)]
pub(super) struct Given {
    search: Search,
    trees: Vec<AbsPath>,
    repositories: Vec<(Repository, Identity)>,
}

impl Given {
    pub(super) fn look(search: &Search, trees: Vec<AbsPath>) -> Self {
        Self {
            repositories: repositories(search, &trees),
            search: search.clone(),
            trees,
        }
    }

    /// Where git keeps the files of those that were there.
    pub(super) fn directories(&self) -> impl Iterator<Item = AbsPath> {
        let repositories = self.repositories.iter();
        let directories = repositories.flat_map(|(repository, _)| &repository.git_dirs);
        directories.map(|directory| directory.path.clone())
    }

    /// Those that were not there, or are not the ones that were.
    pub(super) fn made(&self) -> Vec<NewRepository> {
        let now = repositories(&self.search, &self.trees).into_iter();
        let made = now.filter(|(repository, identity)| {
            let is_same = |(known, before): &(Repository, Identity)| {
                (&known.entry, known.shape, before)
                    == (&repository.entry, repository.shape, identity)
            };
            !self.repositories.iter().any(is_same)
        });
        let told = made.map(|(Repository { entry, shape, .. }, _)| NewRepository {
            path: entry.as_path().to_string_lossy().into_owned(),
            shape,
            knobs: knobs(&entry, shape),
        });
        told.collect()
    }
}

fn repositories(search: &Search, trees: &[AbsPath]) -> Vec<(Repository, Identity)> {
    // What was seen before a session says nothing of what stands there after it.
    let lookout = Lookout::new();
    let found = trees.iter().flat_map(|tree| at_top(tree, search, &lookout));
    let known = found.map(|repository| {
        let identity = identity(&repository.entry);
        (repository, identity)
    });
    known.collect()
}

/// The git directories of repositories that were made; a pointer is none.
pub(super) fn git_directories(made: &[NewRepository]) -> impl Iterator<Item = AbsPath> {
    let made = made.iter().filter(|made| made.shape != Shape::Pointer);
    made.filter_map(|made| AbsPath::parse(&made.path).ok())
}
