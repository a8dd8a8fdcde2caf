//! How one rule comes in: what stands at its path, whose files are seen there, and which of two
//! rules for one path stands.

use std::path::Path;

use super::{Builder, OnAbsent, Seen, lists, name_beside};
use crate::origin::{BuiltIn, Layer, Located, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Alias, Content, FileRule, FileRules, Found, SocketGrant};
use crate::settings::{GitLevel, Preset, Tmp};

impl Builder<'_> {
    pub(super) fn rule(
        &mut self,
        path: &Path,
        access: Access,
        origin: Origin,
        on_absent: OnAbsent,
    ) {
        let (path, found) = match ((self.look)(path), on_absent) {
            (Seen::At(seen, found), _) => {
                if self.follow(path, &seen, found, access, &origin) {
                    return;
                }
                (seen, found)
            }
            (Seen::Absent, OnAbsent::Hide | OnAbsent::Keep) => match AbsPath::lexical(path) {
                Ok(path) => (self.name_of_absent(path), Found::Absent),
                Err(error) => return self.complain(origin, error.to_string(), None),
            },
            (Seen::Absent, OnAbsent::Complain) => {
                let shown = crate::text::printable_path(path);
                let help = "create it first, or take the rule away; ringfence never creates it and \
                            never falls back to its parent";
                return self.complain(
                    origin,
                    format!("{shown} does not exist"),
                    Some(help.to_owned()),
                );
            }
            // A list may name what this user cannot even see; the kernel refuses it anyway.
            (Seen::Absent | Seen::Unreadable(_), OnAbsent::Skip) => return,
            (Seen::Unreadable(why), OnAbsent::Hide) => {
                if let Ok(path) = AbsPath::lexical(path) {
                    self.unseen.push((path, origin, why));
                }
                return;
            }
            (Seen::Unreadable(why), OnAbsent::Complain | OnAbsent::Keep) => {
                let shown = crate::text::printable_path(path);
                return self.complain(origin, format!("{shown} cannot be looked up: {why}"), None);
            }
        };
        self.rule_for(path, found, access, origin);
    }

    /// The same for what was looked up already.
    pub(super) fn rule_for(&mut self, path: AbsPath, found: Found, access: Access, origin: Origin) {
        let rule = FileRule {
            content: self.content(&path, &origin),
            path,
            access,
            origin,
            found,
        };
        self.settle(rule);
    }

    /// Where something would appear if it were created.
    pub(super) fn name_of_absent(&mut self, path: AbsPath) -> AbsPath {
        name_beside(path, self.look, &mut self.straight)
    }

    /// Remembers the name that a grant was written with, if it is not the canonical one.
    pub(super) fn alias(
        &mut self,
        written: &Path,
        path: &AbsPath,
        access: Access,
        origin: &Origin,
    ) {
        if access == Access::None || origin.layer() == Layer::BuiltIn {
            return;
        }
        let name = AbsPath::parse(written).ok();
        if let Some(name) = name.filter(|name| name != path) {
            let path = path.clone();
            let alias = Alias { name, path };
            if !self.aliases.contains(&alias) {
                self.aliases.push(alias);
            }
        }
    }

    /// Whose files are seen at a path.
    fn content(&self, path: &AbsPath, origin: &Origin) -> Content {
        for (tree, _, content) in lists::session_trees(self.place.os) {
            // The trees themselves are never the host's, whoever grants them; single devices of
            // the host can be granted, single processes cannot.
            let inside = *content == Content::Processes && path.is_in(tree);
            if inside || path.bytes() == tree.as_bytes() {
                return *content;
            }
        }
        let listed = matches!(origin, Origin::BuiltIn(BuiltIn::SystemPaths | BuiltIn::Tmp));
        if listed && self.temporaries.contains(path) {
            Content::Memory
        } else {
            Content::Host
        }
    }

    /// Lets a rule in, against what already stands for the same path.
    pub(super) fn settle(&mut self, rule: FileRule) {
        let origin = rule.origin.clone();
        if let Err(contradiction) = self.settled.settle(rule) {
            self.complain(
                origin,
                contradiction,
                Some("keep one of the two".to_owned()),
            );
        }
    }

    /// A rule from a built-in list; `~/` is the home, and what is secret is so in either home.
    pub(super) fn listed(&mut self, text: &str, access: Access, list: BuiltIn) {
        let (on_absent, other) = if list == BuiltIn::Secrets {
            (OnAbsent::Hide, self.place.account_home.as_ref())
        } else {
            (OnAbsent::Skip, None)
        };
        let Some(rest) = text.strip_prefix("~/") else {
            return self.rule(Path::new(text), access, Origin::BuiltIn(list), on_absent);
        };
        for home in self.place.home.as_ref().into_iter().chain(other) {
            let path = home.below(rest);
            if on_absent == OnAbsent::Hide && (self.look)(path.as_path()) == Seen::Absent {
                // As below, for nearly all of a long list: it is taken apart no more than once.
                let path = self.name_of_absent(path);
                self.rule_for(path, Found::Absent, access, Origin::BuiltIn(list));
            } else {
                self.rule(path.as_path(), access, Origin::BuiltIn(list), on_absent);
            }
        }
    }

    pub(super) fn files(
        &mut self,
        preset: &Located<Preset>,
        git: GitLevel,
        sockets: &[SocketGrant],
    ) -> FileRules {
        let default = match preset.value {
            Preset::Track => Access::Write,
            Preset::Agent | Preset::Strict | Preset::Terminal => Access::None,
        };
        if preset.value != Preset::Track {
            self.temporaries();
            self.system_paths();
            self.preset_paths();
            let before = self.settled.len();
            let allowed = self.project_paths(git);
            let of_project = before..self.settled.len();
            self.additional_paths();
            let all = self.granted_paths();
            self.followed();
            self.seen_sockets(sockets);
            self.raise_readable(all);
            // What is opened of a hidden `.git` by its level stays hidden.
            let project = &self.place.project;
            self.settled
                .bound(of_project, |around| project.covers(&around.path));
            let given = self.given_trees(git, &allowed);
            self.obeyed(git, &allowed, &given);
            self.idle_allowances(&allowed, &given);
            self.obeyed_elsewhere();
            self.own();
            self.hidden_project();
        }
        let rules = self.settled.take_rules();
        let files = FileRules::of_settled(default, preset.origin.clone(), rules);
        for (path, origin, why) in std::mem::take(&mut self.unseen) {
            if files.access(&path).access == Access::Write {
                let message = format!("{path} cannot be looked up, and so not hidden: {why}");
                let help = "what is around it may be written, so the command could open it up";
                self.complain(origin, message, Some(help.to_owned()));
            }
        }
        files
    }

    /// Finds out which temporary directories the session has its own of.
    fn temporaries(&mut self) {
        if self.tmp == Tmp::Host {
            return;
        }
        for directory in lists::temporary_directories(self.place.os) {
            if let Seen::At(path, _) = (self.look)(Path::new(directory)) {
                self.temporaries.push(path);
            }
        }
    }

    /// A project in a hidden place: one of the two is a mistake, and a working directory that
    /// somebody chose is no reason to show a secret.
    fn hidden_project(&mut self) {
        let project = &self.place.project;
        let around = self.settled.covering(project);
        let hidden = around
            .into_iter()
            .rfind(|rule| rule.path != *project || rule.access == Access::None);
        let Some(rule) = hidden.filter(|rule| rule.access == Access::None) else {
            return;
        };
        let elsewhere = Origin::BuiltIn(BuiltIn::Homes);
        let runtime = Origin::BuiltIn(BuiltIn::Runtime);
        let drives = Origin::BuiltIn(BuiltIn::Drives);
        let around = [elsewhere, runtime, drives].contains(&rule.origin);
        if rule.path != *project && around {
            return;
        }
        let message = format!(
            "the project {project} is hidden, by the rule for {}",
            rule.path
        );
        let origin = rule.origin.clone();
        if rule.path == *project && origin == Origin::BuiltIn(BuiltIn::Git) {
            let message =
                format!("the project {project} looks like a bare repository, which is hidden");
            let help = "if it is none, take `HEAD`, `objects`, `refs` or `commondir` out of it; if it is, say how \
                        much of it may be used with `--git read` or `--git write`";
            return self.complain(origin, message, Some(help.to_owned()));
        }
        let help = "start in another directory, or name the hidden one in `secrets.show`";
        self.complain(origin, message, Some(help.to_owned()));
    }
}
