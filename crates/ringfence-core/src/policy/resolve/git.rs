//! What a git level means for the repositories in and around a project.
//!
//! Nothing is read here: repositories arrive as facts. What git would run or obey stays as it is at
//! every level but `full`; the levels differ in how much of the rest may be used.

use std::path::Path;

use super::{Builder, OnAbsent, Seen, lists};
use crate::git::{GitDir, Position, Repository, Role, Shape};
use crate::origin::{BuiltIn, Origin};
use crate::policy::{Access, Found};
use crate::settings::GitLevel;

impl Builder<'_> {
    pub(super) fn git_paths(&mut self, level: GitLevel) {
        self.own_repository(level);
        let repositories = &self.place.repositories;
        self.settled.expect(repositories.len());
        for repository in repositories {
            match repository.position {
                Position::Own | Position::Above | Position::Named => {
                    self.repository(repository, level);
                }
                // It is not the project's: no level is about using it.
                Position::Beyond => {
                    if level == GitLevel::Hidden {
                        self.repository(repository, level);
                    }
                }
                // Everything in the project may be written anyway.
                Position::Within => {
                    if level != GitLevel::Full {
                        self.repository(repository, level);
                    }
                }
            }
            if level != GitLevel::Full {
                self.obeyed(repository);
            }
        }
    }

    /// The name at the project's root, whatever stands there and whoever has looked into it.
    fn own_repository(&mut self, level: GitLevel) {
        let project = self.place.project.clone();
        let directory = project.below(".git");
        let is_directory = matches!(
            (self.look)(directory.as_path()),
            Seen::At(_, Found::Directory)
        );
        let access = match level {
            GitLevel::Hidden => Access::None,
            GitLevel::Read => Access::Read,
            GitLevel::Write if is_directory => Access::Write,
            // A pointer stays where it points, and what is not there is not made.
            GitLevel::Write => Access::Execute,
            GitLevel::Full => Access::Write,
        };
        self.name(&project, Path::new(".git"), access, git());
        if level == GitLevel::Write && is_directory {
            for knob in lists::GIT_KNOBS {
                self.name(&directory, Path::new(knob), Access::Execute, git());
            }
        }
    }

    fn repository(&mut self, repository: &Repository, level: GitLevel) {
        let pointer = repository.shape == Shape::Pointer;
        if pointer && repository.position == Position::Within {
            let access = match level {
                GitLevel::Hidden => Access::None,
                GitLevel::Read => Access::Read,
                GitLevel::Write => Access::Execute,
                GitLevel::Full => return,
            };
            self.rule(repository.entry.as_path(), access, git(), OnAbsent::Skip);
        }
        for directory in &repository.git_dirs {
            let own = repository.position == Position::Own && directory.path == repository.entry;
            if !own {
                self.git_dir(directory, level);
            }
        }
    }

    fn git_dir(&mut self, directory: &GitDir, level: GitLevel) {
        let knobs = match directory.role {
            Role::Main | Role::Module => lists::GIT_KNOBS,
            Role::Worktree => lists::WORKTREE_KNOBS,
        };
        let access = match level {
            GitLevel::Hidden => Access::None,
            GitLevel::Read => Access::Read,
            // A link in a writable directory could be replaced, so nothing of it may be written.
            GitLevel::Write if self.has_link(directory, knobs) => Access::Execute,
            GitLevel::Write | GitLevel::Full => Access::Write,
        };
        self.rule(directory.path.as_path(), access, git(), OnAbsent::Skip);
        if level == GitLevel::Write && access == Access::Write {
            for knob in knobs {
                self.name(&directory.path, Path::new(knob), Access::Execute, git());
            }
        }
    }

    fn has_link(&mut self, directory: &GitDir, knobs: &[&str]) -> bool {
        knobs.iter().any(|knob| {
            let path = directory.path.below(knob);
            match (self.look)(path.as_path()) {
                Seen::At(target, _) => target != path,
                Seen::Absent => self.name_of_absent(path.clone()) != path,
                Seen::Unreadable(_) => true,
            }
        })
    }

    /// What the configuration of a repository names, as far as it lies in the project.
    fn obeyed(&mut self, repository: &Repository) {
        let project = &self.place.project;
        for path in &repository.obeyed {
            let relative = path.as_path().strip_prefix(project.as_path());
            if let Ok(name) = relative.map(Path::to_owned)
                && !name.as_os_str().is_empty()
                && !name.starts_with(".git")
            {
                self.name(project, &name, Access::Execute, git());
            }
        }
    }
}

fn git() -> Origin {
    Origin::BuiltIn(BuiltIn::Git)
}
