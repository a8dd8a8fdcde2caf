//! Repositories beside the project that somebody gave for writing.

use ringfence_core::git::{Position, Repository, Shape};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{Found, Seen, lists, written_paths};
use ringfence_core::settings::{Kind, Settings};

use super::{Finder, Reach, Search};
use crate::lookout::Lookout;

/// The repositories of directories that settings give for writing: those whose working trees they are, or
/// which they are themselves. Nobody walks them: they can be as large as they like.
pub fn granted(
    settings: &Settings,
    kind: Kind,
    search: &Search,
    lookout: &Lookout,
) -> Vec<Repository> {
    let mut trees: Vec<AbsPath> = Vec::new();
    for path in written_paths(settings, kind) {
        let Seen::At(tree, Found::Directory) = lookout.look(&path) else {
            // Whatever else it is has nothing in it, or is a mistake that is told later.
            continue;
        };
        if !search.project.covers(&tree) && !trees.contains(&tree) {
            trees.push(tree);
        }
    }
    let found = trees.iter().flat_map(|tree| at_top(tree, search, lookout));
    found.collect()
}

/// The repositories of one directory: it can be the working tree of one and be one itself. Whoever looks at
/// only one of the two is shown the other by a session that makes it.
pub(crate) fn at_top(tree: &AbsPath, search: &Search, lookout: &Lookout) -> Vec<Repository> {
    let search = Search {
        project: tree.clone(),
        variables: Vec::new(),
        ..search.clone()
    };
    let finder = Finder::new(&search, Reach::Own, lookout);
    let mut found = Vec::new();
    let entry = tree.below(".git");
    if lookout.look(entry.as_path()) != Seen::Absent {
        // A link, or what cannot be looked up, is told by whoever protects the name.
        let unknown = || Repository {
            entry,
            shape: Shape::Pointer,
            position: Position::Granted,
            git_dirs: Vec::new(),
            obeyed: Vec::new(),
            unread: Vec::new(),
        };
        found.push(finder.at(tree, Position::Granted).unwrap_or_else(unknown));
    }
    // Not what git asks for, which a session could have moved away for a while: see `lists::GIT_MARKS`.
    // What each is does not matter, as in the project: see `scan::Looks`.
    let is_there = |name: &str| lookout.look(tree.below(name).as_path()) != Seen::Absent;
    let marked = lists::GIT_MARKS.iter().all(|mark| is_there(mark));
    if marked || is_there("HEAD") && is_there("commondir") {
        found.push(finder.bare(tree.clone(), Position::Granted));
    }
    found
}

impl Finder<'_> {
    /// A repository without a working tree.
    fn bare(&self, entry: AbsPath, position: Position) -> Repository {
        let git_dirs = Self::main(&entry);
        let (obeyed, unread) = self.obeyed(&git_dirs, &entry);
        Repository {
            entry,
            shape: Shape::Bare,
            position,
            git_dirs,
            obeyed,
            unread,
        }
    }
}
