//! What configurations of git make it run or read, wherever a session may write it.

use std::path::Path;

use super::{Builder, Layer, Seen, lists};
use crate::git::{Position, Repository};
use crate::origin::{BuiltIn, Located, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Content, Found};
use crate::settings::{GitLevel, ProjectName, ProjectTrust};

impl Builder<'_> {
    /// Comes when it is known what may be written: in the project, in a directory that was given, in a git
    /// directory.
    pub(super) fn obeyed(
        &mut self,
        level: GitLevel,
        allowed: &[Located<ProjectName>],
        given: &[AbsPath],
    ) {
        if level == GitLevel::Full {
            return;
        }
        // A repository of a directory that nobody gave is not looked at: a project's file may have named it.
        let counts = |repository: &&Repository| {
            repository.position != Position::Granted || given.contains(&repository.working_tree())
        };
        let repositories = self.place.repositories.iter().filter(counts);
        let mut unread: Vec<&AbsPath> = repositories.clone().flat_map(|it| &it.unread).collect();
        unread.sort();
        unread.dedup();
        for path in unread {
            let message = format!(
                "{path} is too long to be read, or includes too many files, so nobody can say what git would run for it"
            );
            let help =
                "make it shorter (1 MiB and 256 included files are the most), or use `--git full`";
            self.complain(git(), message, Some(help.to_owned()));
        }
        let mut paths: Vec<&AbsPath> = repositories.flat_map(|it| &it.obeyed).collect();
        paths.sort();
        paths.dedup();
        for tree in std::iter::once(&self.place.project).chain(given) {
            paths.retain(|path| {
                let mut allowed = allowed.iter();
                !allowed.any(|name| tree.below(&name.value.0) == **path)
            });
        }
        for path in paths {
            let place = match (self.look)(path.as_path()) {
                Seen::At(place, _) => place,
                Seen::Absent => self.name_of_absent(path.clone()),
                Seen::Unreadable(_) => path.clone(),
            };
            self.obeyed_at(&place);
            // A link on the way that could be replaced is complained of; where everything is given, the
            // links of the system are no reason.
            let around = self.settled.covering(path);
            let by_root = around
                .last()
                .is_some_and(|rule| rule.path == AbsPath::root());
            if place != *path && !by_root {
                self.obeyed_at(path);
            }
        }
    }

    fn obeyed_at(&mut self, place: &AbsPath) {
        let trusted = self.settings.trust() == ProjectTrust::Trusted;
        let around = self.settled.covering(place);
        let Some(rule) = around.last().filter(|rule| {
            let counts = trusted || rule.origin.layer() != Layer::Project;
            rule.access == Access::Write && rule.content == Content::Host && counts
        }) else {
            return;
        };
        let tree = rule.path.clone();
        if tree == *place {
            self.hooks_of(place);
        } else if let Ok(name) = place.as_path().strip_prefix(tree.as_path()) {
            self.name(&tree, name, Access::Execute, git());
        }
    }

    /// Hooks among other files, which may be written: `core.hooksPath = .`.
    fn hooks_of(&mut self, directory: &AbsPath) {
        if !matches!(
            (self.look)(directory.as_path()),
            Seen::At(_, Found::Directory)
        ) {
            return;
        }
        for hook in lists::GIT_HOOKS {
            self.name(directory, Path::new(hook), Access::Execute, git());
        }
    }
}

fn git() -> Origin {
    Origin::BuiltIn(BuiltIn::Git)
}
