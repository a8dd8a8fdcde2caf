//! Repositories beside the project that somebody gave for writing.

use ringfence_core::git::{Position, Repository, Shape};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{Found, Seen, written_paths};
use ringfence_core::settings::{Kind, Settings};

use super::inner::is_git_directory;
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
    let mut found: Vec<Repository> = Vec::new();
    for path in written_paths(settings, kind) {
        let Seen::At(directory, Found::Directory) = lookout.look(&path) else {
            // Whatever else it is has nothing in it, or is a mistake that is told later.
            continue;
        };
        let known = |known: &Repository| known.working_tree() == directory;
        if search.project.covers(&directory) || found.iter().any(known) {
            continue;
        }
        let entry = directory.below(".git");
        let bare = lookout.look(entry.as_path()) == Seen::Absent;
        if bare && !is_git_directory(&directory) {
            continue;
        }
        let search = Search {
            project: directory.clone(),
            variables: Vec::new(),
            ..search.clone()
        };
        let finder = Finder::new(&search, Reach::Own, lookout);
        found.push(if bare {
            finder.bare(directory, Position::Granted)
        } else {
            // A link, or what cannot be looked up, is told by whoever protects the name.
            let unknown = || Repository {
                entry,
                shape: Shape::Pointer,
                position: Position::Granted,
                git_dirs: Vec::new(),
                obeyed: Vec::new(),
            };
            finder
                .at(&directory, Position::Granted)
                .unwrap_or_else(unknown)
        });
    }
    found
}

impl Finder<'_> {
    /// A repository without a working tree.
    fn bare(&self, entry: AbsPath, position: Position) -> Repository {
        let git_dirs = Self::main(&entry);
        let obeyed = self.obeyed(&git_dirs, &entry, position);
        Repository {
            entry,
            shape: Shape::Bare,
            position,
            git_dirs,
            obeyed,
        }
    }
}
