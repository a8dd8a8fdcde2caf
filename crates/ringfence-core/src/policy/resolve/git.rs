//! What a git level means for the repositories in and around a project.
//!
//! Nothing is read here: repositories arrive as facts. What git would run or obey stays as it is at
//! every level but `full`; the levels differ in how much of the rest may be used.

use std::path::Path;

use super::{Builder, OnAbsent, Seen, lists};
use crate::git::{GitDir, Position, Repository, Role, Shape};
use crate::origin::{BuiltIn, Layer, Located, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Found};
use crate::settings::{GitLevel, ProjectName, ProjectTrust};

impl Builder<'_> {
    pub(super) fn git_paths(&mut self, level: GitLevel) {
        let repositories = &self.place.repositories;
        let project = &self.place.project;
        let mut bare = repositories.iter().filter(|it| it.shape == Shape::Bare);
        let is_bare = bare.any(|repository| repository.entry == *project);
        self.own_repository(project, level, is_bare);
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
                // Whether it is given at all is known when everything else is: see `given_trees`.
                Position::Granted => {}
                // Everything in the project may be written anyway.
                Position::Within => {
                    if level != GitLevel::Full {
                        self.repository(repository, level);
                    }
                }
            }
        }
    }

    /// The name at the root of the project or of a directory that was given, whatever stands there and
    /// whoever has looked into it.
    fn own_repository(&mut self, tree: &AbsPath, level: GitLevel, is_bare: bool) {
        let directory = tree.below(".git");
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
        self.name(tree, Path::new(".git"), access, git());
        if level == GitLevel::Write && is_directory {
            self.linkless.push(directory.clone());
            for knob in lists::GIT_KNOBS {
                self.name(&directory, Path::new(knob), Access::Execute, git());
            }
        }
        if level != GitLevel::Full && !is_bare {
            self.never_bare(tree);
        }
    }

    /// Keeps a directory from becoming a repository without a `.git`, which git looks for where there is no
    /// `.git`, or one that is no repository any more. It takes none without the name `HEAD`.
    ///
    /// A project may have a file or a directory of that name. Then it is what else a repository needs that
    /// is not made; where nothing of it is missing, the directory counts as a repository already.
    fn never_bare(&mut self, tree: &AbsPath) {
        let is_absent = |name: &&str| (self.look)(tree.below(*name).as_path()) == Seen::Absent;
        let missing: &[&str] = if is_absent(&"HEAD") {
            &["HEAD"]
        } else {
            let mark = lists::GIT_MARKS.iter().rfind(|mark| is_absent(mark));
            &mark.map_or(["commondir"; 2], |mark| ["commondir", mark])
        };
        for name in missing {
            self.name(tree, Path::new(name), Access::Execute, git());
        }
    }

    /// What holds in directories beside the project that somebody gave for writing. They mean the files: how
    /// much of the git metadata may be used is said by the level, as in the project, and what runs there
    /// later runs outside.
    ///
    /// A repository that was found for one counts only if these settings give that very directory: which
    /// settings somebody looked with, and what a stronger layer says of it, is not known to a fact.
    ///
    /// Returns those directories.
    pub(super) fn given_trees(
        &mut self,
        level: GitLevel,
        allowed: &[Located<ProjectName>],
    ) -> Vec<AbsPath> {
        let known = self.settled.len();
        let repositories = &self.place.repositories;
        // What a project asks for that nobody trusts is never given, so no link in it stops anything.
        let trusted = self.settings.trust() == ProjectTrust::Trusted;
        let given = self.settled.given(&self.place.project);
        let given = given.filter(|rule| trusted || rule.origin.layer() != Layer::Project);
        let trees: Vec<AbsPath> = given.map(|rule| rule.path.clone()).collect();
        for tree in &trees {
            let here = repositories.iter().filter(|repository| {
                repository.position == Position::Granted && repository.working_tree() == *tree
            });
            // Also where nothing is: whoever makes one there has the user's git obey it.
            if level != GitLevel::Full {
                let is_bare = here.clone().any(|it| it.shape == Shape::Bare);
                self.own_repository(tree, level, is_bare);
            }
            for repository in here {
                if repository.shape == Shape::Bare {
                    self.bare(repository, level);
                } else {
                    self.protected_names(tree, allowed);
                    self.repository(repository, level);
                }
            }
        }
        let given = known..self.settled.len();
        self.settled.bound(given, |around| {
            around.access == Access::None || trees.iter().any(|tree| tree.covers(&around.path))
        });
        trees
    }

    /// A repository without a working tree that was given itself, so it may be written; but never what git
    /// would run or obey.
    fn bare(&mut self, repository: &Repository, level: GitLevel) {
        if level == GitLevel::Full {
            return;
        }
        for directory in &repository.git_dirs {
            self.knobs(directory);
            self.marks(directory);
            self.linkless.push(directory.path.clone());
        }
    }

    /// Keeps in their place what a repository is known by. A session that moved it away would have the next
    /// one find no repository, and so write what git runs there.
    fn marks(&mut self, directory: &GitDir) {
        if directory.role == Role::Worktree {
            return;
        }
        for mark in lists::GIT_MARKS {
            let path = directory.path.below(mark);
            match (self.look)(path.as_path()) {
                Seen::At(target, found) if target == path => {
                    self.rule_for(path, found, Access::Write, git());
                }
                Seen::Absent => {}
                // A link could be replaced.
                Seen::At(..) | Seen::Unreadable(_) => {
                    self.name(&directory.path, Path::new(mark), Access::Execute, git());
                }
            }
        }
    }

    fn repository(&mut self, repository: &Repository, level: GitLevel) {
        if repository.shape == Shape::Closed {
            let closed = Origin::BuiltIn(BuiltIn::Closed);
            return self.found_rule(&repository.entry, Access::None, closed);
        }
        let pointer = repository.shape == Shape::Pointer;
        if pointer && repository.position == Position::Within {
            let access = match level {
                GitLevel::Hidden => Access::None,
                GitLevel::Read => Access::Read,
                GitLevel::Write => Access::Execute,
                GitLevel::Full => return,
            };
            self.found_rule(&repository.entry, access, git());
        }
        for directory in &repository.git_dirs {
            if directory.role == Role::Worktrees {
                // Otherwise it is as what is around it.
                if level == GitLevel::Write {
                    self.knobs(directory);
                }
                continue;
            }
            let at_root = matches!(repository.position, Position::Granted | Position::Own);
            let own = at_root && directory.path == repository.entry;
            if !own {
                self.git_dir(directory, level);
            }
            let within = repository.position == Position::Within;
            if within && repository.shape == Shape::Bare && level == GitLevel::Write {
                self.marks(directory);
                // What is pushed to it leaves the one alone, and nobody makes the other there.
                for name in ["HEAD", ".git"] {
                    self.name(&directory.path, Path::new(name), Access::Execute, git());
                }
            }
        }
        let may_break = repository.shape == Shape::Directory && level == GitLevel::Write;
        if may_break && repository.position == Position::Within {
            self.never_bare(&repository.working_tree());
        }
    }

    fn git_dir(&mut self, directory: &GitDir, level: GitLevel) {
        let access = match level {
            GitLevel::Hidden => Access::None,
            GitLevel::Read => Access::Read,
            // A link in a writable directory could be replaced, so nothing of it may be written.
            GitLevel::Write if self.has_link(directory) => Access::Execute,
            GitLevel::Write | GitLevel::Full => Access::Write,
        };
        self.found_rule(&directory.path, access, git());
        if level == GitLevel::Write && access == Access::Write {
            self.linkless.push(directory.path.clone());
            self.knobs(directory);
        }
    }

    /// What is gone since somebody looked needs no rule. What cannot be looked at any more does, and
    /// has none.
    fn found_rule(&mut self, path: &AbsPath, access: Access, origin: Origin) {
        let on_absent = match (self.look)(path.as_path()) {
            Seen::Unreadable(_) => OnAbsent::Hide,
            Seen::Absent | Seen::At(..) => OnAbsent::Skip,
        };
        self.rule(path.as_path(), access, origin, on_absent);
    }

    /// What git would run or obey stays as it is.
    fn knobs(&mut self, directory: &GitDir) {
        if let (Role::Worktrees, Some(above)) = (directory.role, directory.path.parent()) {
            return self.name(&above, Path::new("worktrees"), Access::Execute, git());
        }
        for knob in knobs_of(directory) {
            self.name(&directory.path, Path::new(knob), Access::Execute, git());
        }
    }

    fn has_link(&mut self, directory: &GitDir) -> bool {
        knobs_of(directory).iter().any(|knob| {
            let path = directory.path.below(knob);
            match (self.look)(path.as_path()) {
                Seen::At(target, _) => target != path,
                Seen::Absent => self.name_of_absent(path.clone()) != path,
                Seen::Unreadable(_) => true,
            }
        })
    }
}

fn knobs_of(directory: &GitDir) -> &'static [&'static str] {
    match directory.role {
        Role::Main | Role::Module => lists::GIT_KNOBS,
        Role::Worktree => lists::WORKTREE_KNOBS,
        // It is one itself.
        Role::Worktrees => &[],
    }
}

fn git() -> Origin {
    Origin::BuiltIn(BuiltIn::Git)
}
