//! Names outside of every project that a program of the user's obeys later, where what is around
//! them may be written.

use std::path::Path;

use super::{Builder, Seen, lists};
use crate::origin::{BuiltIn, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Content, FileRule, Found};

impl Builder<'_> {
    /// Comes when it is known what may be written.
    pub(super) fn obeyed_elsewhere(&mut self) {
        for (cache, name) in lists::CACHE_KNOBS {
            if let Some(cache) = self.cache(cache) {
                self.held(&cache, name, |rule| {
                    rule.origin == Origin::BuiltIn(BuiltIn::Toolchains)
                });
            }
        }
        for runtime in self.place.runtimes.clone() {
            if let Some(runtime) = self.directory(&runtime) {
                for name in lists::RUNTIME_KNOBS {
                    self.held(&runtime, name, |_| true);
                }
            }
        }
    }

    /// Where a cache is, by its name in the list or by the variable that names it.
    fn cache(&self, cache: &str) -> Option<AbsPath> {
        let path = if let Some(rest) = cache.strip_prefix("~/") {
            self.place.home.as_ref()?.below(rest).as_path().to_owned()
        } else {
            let mut known = self.place.toolchains.iter();
            known.find(|(name, _)| *name == cache)?.1.clone().into()
        };
        self.directory(&path)
    }

    fn directory(&self, path: &Path) -> Option<AbsPath> {
        match (self.look)(path) {
            Seen::At(directory, Found::Directory) => Some(directory),
            Seen::At(..) | Seen::Absent | Seen::Unreadable(_) => None,
        }
    }

    /// Keeps a name in a directory as it is, also if it is not there, where somebody who counts lets it be
    /// written.
    fn held(&mut self, directory: &AbsPath, name: &str, counts: impl Fn(&FileRule) -> bool) {
        let path = directory.below(name);
        let is_written = |rule: &FileRule| {
            rule.access == Access::Write && rule.content == Content::Host && counts(rule)
        };
        let around = self.settled.covering(&path);
        if !around.last().is_some_and(|rule| is_written(rule)) {
            return;
        }
        let origin = Origin::BuiltIn(BuiltIn::Protected);
        let found = match (self.look)(path.as_path()) {
            Seen::At(seen, found) if seen == path => found,
            Seen::Absent if self.name_of_absent(path.clone()) == path => Found::Absent,
            Seen::At(..) | Seen::Absent | Seen::Unreadable(_) => {
                let message = format!("{path} is kept as it is, but a link is in its way");
                let help = "the command could replace the link: put what it leads to in its place";
                return self.complain(origin, message, Some(help.to_owned()));
            }
        };
        self.rule_for(path, found, Access::Execute, origin);
    }
}
