//! Which paths the presets, the project and the settings name.

use std::path::{Path, PathBuf};

use super::{Builder, OnAbsent, Paths, Seen, lists};
use crate::origin::{BuiltIn, Layer, Located, Origin};
use crate::path::AbsPath;
use crate::policy::lists::{SystemLists, Toolchain};
use crate::policy::{Access, Found, Note};
use crate::settings::{GitLevel, Kind, List, Os, Preset, ProjectName, Tmp};

impl Builder<'_> {
    pub(super) fn system_paths(&mut self) {
        let os = self.place.os;
        let lists = match self.preset {
            // Everything may be read and run; what may not is carved out below.
            Preset::Agent => SystemLists {
                executable: &["/"],
                read_only: &[],
                read_write: &["/dev"],
            },
            Preset::Strict => lists::strict_system_paths(os),
            Preset::Terminal | Preset::Track => lists::system_paths(os),
        };
        let categories: [(Paths, _, _); 3] = [
            (
                |keys| &keys.terminal.sandbox.system_paths.read_write,
                lists.read_write,
                Access::Write,
            ),
            (
                |keys| &keys.terminal.sandbox.system_paths.executable,
                lists.executable,
                Access::Execute,
            ),
            (
                |keys| &keys.terminal.sandbox.system_paths.read_only,
                lists.read_only,
                Access::Read,
            ),
        ];
        for (key, default, access) in categories {
            match self.word(key) {
                None => {
                    for path in default {
                        self.listed(path, access, BuiltIn::SystemPaths);
                    }
                }
                Some(written) => {
                    for entry in written.value {
                        // Zed's lists name directories that only some machines have.
                        self.rule(&entry.value.0, access, entry.origin, OnAbsent::Skip);
                    }
                }
            }
        }
    }

    pub(super) fn preset_paths(&mut self) {
        let os = self.place.os;
        for (tree, access, _) in lists::session_trees(os) {
            self.listed(tree, *access, BuiltIn::Session);
        }
        // The list of system paths that `terminal` starts from names the host's temporary
        // directories, and whoever replaces that list by another one means it.
        if self.tmp == Tmp::Private || self.preset != Preset::Terminal {
            for path in lists::temporary_directories(os) {
                self.listed(path, Access::Write, BuiltIn::Tmp);
            }
        }
        if self.preset == Preset::Agent {
            for path in lists::runtime_directories(os) {
                self.listed(path, Access::None, BuiltIn::Runtime);
            }
            self.homes();
        }
        if self.preset == Preset::Strict {
            self.toolchains();
        }
        if self.preset == Preset::Terminal {
            for path in lists::DOTFILES {
                self.listed(path, Access::Read, BuiltIn::Dotfiles);
            }
        }
        for drive in self.drives() {
            let origin = Origin::BuiltIn(BuiltIn::Drives);
            self.rule(drive.as_path(), Access::None, origin, OnAbsent::Skip);
        }
        self.secrets();
    }

    /// The drives of Windows, if this is WSL: files of another system, whose programs `binfmt` would
    /// start outside.
    pub(super) fn drives(&self) -> Vec<AbsPath> {
        let is_wsl = self.place.os == Os::Linux
            && matches!((self.look)(Path::new(lists::WSL_MARK)), Seen::At(..));
        if !is_wsl {
            return Vec::new();
        }
        let mounts = ('a'..='z').map(|letter| PathBuf::from(format!("/mnt/{letter}")));
        let seen = mounts.filter_map(|mount| match (self.look)(&mount) {
            Seen::At(path, Found::Directory) => Some(path),
            Seen::At(..) | Seen::Absent | Seen::Unreadable(_) => None,
        });
        seen.collect()
    }

    /// The caller's home is seen, those of others are not.
    fn homes(&mut self) {
        let home = self.place.home.clone();
        for path in lists::homes(self.place.os) {
            // The caller's home may itself be in the list.
            let seen = (self.look)(Path::new(path));
            if !matches!(seen, Seen::At(path, _) if Some(&path) == home.as_ref()) {
                self.listed(path, Access::None, BuiltIn::Homes);
            }
        }
        if let Some(home) = home {
            let origin = Origin::BuiltIn(BuiltIn::Preset(Preset::Agent));
            self.rule(home.as_path(), Access::Execute, origin, OnAbsent::Skip);
        }
    }

    fn toolchains(&mut self) {
        for path in lists::TOOLCHAINS {
            self.listed(path, Access::Execute, BuiltIn::Toolchains);
        }
        for path in lists::TOOLCHAIN_CACHES {
            self.listed(path, Access::Write, BuiltIn::Toolchains);
        }
        for (name, value) in self.place.toolchains.clone() {
            let known = lists::TOOLCHAIN_VARIABLES
                .iter()
                .find(|(variable, _)| *variable == name);
            let access = match known {
                Some((_, Toolchain::Cache)) => Access::Write,
                Some((_, Toolchain::Programs)) => Access::Execute,
                None => continue,
            };
            let origin = Origin::BuiltIn(BuiltIn::Toolchains);
            self.rule(Path::new(&value), access, origin, OnAbsent::Skip);
        }
    }

    /// What holds in the project; returns the names in it that somebody allows to be written.
    pub(super) fn project_paths(&mut self, git: GitLevel) -> List<ProjectName> {
        let project = self.place.project.clone();
        let origin = Origin::BuiltIn(BuiltIn::Project);
        self.rule(project.as_path(), Access::Write, origin, OnAbsent::Complain);
        let allowed = self.allowed_names();
        self.protected_names(&project, &allowed);
        self.git_paths(git);
        allowed
    }

    /// The names that somebody allows to be written, without those that cannot be meant.
    fn allowed_names(&mut self) -> List<ProjectName> {
        let mut allowed = self.entries(|keys| &keys.protect.allow);
        allowed.retain(|name| {
            let shown = crate::text::printable_path(&name.value.0);
            let (message, help) = if name.value.0.starts_with(".git") {
                let help =
                    "use `--git LEVEL`, or the key `git`: they say how much of it may be used"
                        .to_owned();
                ("git metadata cannot be allowed here".to_owned(), help)
            } else if let Some(inside) = holds_protected(&shown)
                && name.origin.layer() == Layer::Flag
            {
                // The same: what is in it stays protected.
                let message = format!("`{shown}` itself is not protected, only names in it are");
                (message, format!("name what you mean, such as `{inside}`"))
            } else if let Some(meant) = slip(&shown)
                && name.origin.layer() == Layer::Flag
            {
                // Let through, it would be a refusal that nobody understands later.
                let message = format!("`{shown}` is not a protected name");
                (message, format!("did you mean `{meant}`?"))
            } else {
                self.note_slip(name, shown);
                return true;
            };
            self.complain(name.origin.clone(), message, Some(help));
            false
        });
        allowed
    }

    /// In a file it may be a name that another project protects, so it is no mistake.
    fn note_slip(&mut self, name: &Located<ProjectName>, shown: String) {
        let own = self.entries(|keys| &keys.protect.add);
        let is_own = own.iter().any(|own| own.value == name.value);
        if let Some(meant) = slip(&shown).filter(|_| !is_own) {
            self.notes.push(Note::Slip {
                name: shown,
                meant,
                origin: name.origin.clone(),
            });
        }
    }

    /// Complains of flags that allow what is not there in a place that stays protected: nothing can be made
    /// there, and the refusal would not say why.
    pub(super) fn idle_allowances(&mut self, allowed: &[Located<ProjectName>], given: &[AbsPath]) {
        let flags = allowed
            .iter()
            .filter(|name| name.origin.layer() == Layer::Flag);
        for name in flags {
            let written = &name.value.0;
            let is_allowed = |around: &Path| allowed.iter().any(|allow| allow.value.0 == around);
            let mut around = written.ancestors().skip(1);
            let kept = around.find(|around| {
                let mut names = lists::PROTECTED.iter().map(|(name, _)| Path::new(name));
                names.any(|name| name == *around) && !is_allowed(around)
            });
            let mut trees = std::iter::once(&self.place.project).chain(given);
            let is_there =
                |tree: &AbsPath| (self.look)(tree.below(written).as_path()) != Seen::Absent;
            let Some(kept) = kept.filter(|_| !trees.any(is_there)) else {
                continue;
            };
            let [shown, kept] = [written, kept].map(crate::text::printable_path);
            let message = format!(
                "`{shown}` is not there, and cannot be made in `{kept}`, which stays protected"
            );
            let help = format!("make it first, or allow `{kept}`");
            self.complain(name.origin.clone(), message, Some(help));
        }
    }

    /// Names in a tree that may be written, which may not.
    pub(super) fn protected_names(&mut self, tree: &AbsPath, allowed: &[Located<ProjectName>]) {
        for (name, _) in lists::PROTECTED {
            if !allowed.iter().any(|allow| allow.value.0 == Path::new(name)) {
                let origin = Origin::BuiltIn(BuiltIn::Protected);
                self.name(tree, Path::new(name), Access::Execute, origin);
            }
        }
        self.pointers(tree, allowed);
        for name in self.entries(|keys| &keys.protect.add) {
            self.name(tree, &name.value.0, Access::Execute, name.origin);
        }
        for name in allowed {
            self.name(tree, &name.value.0, Access::Write, name.origin.clone());
        }
    }

    /// A rule for a name in the project, whatever stands there.
    ///
    /// Whoever made the project chose its links, so a link never carries a grant to where it
    /// leads; and a link in a writable directory can be replaced, so it cannot be protected.
    pub(super) fn name(
        &mut self,
        directory: &AbsPath,
        name: &Path,
        access: Access,
        origin: Origin,
    ) {
        let path = directory.below(name);
        let (target, found) = match (self.look)(path.as_path()) {
            Seen::At(target, found) => (target, found),
            Seen::Absent => (self.name_of_absent(path.clone()), Found::Absent),
            Seen::Unreadable(_) => {
                return self.rule(path.as_path(), access, origin, OnAbsent::Keep);
            }
        };
        if target == path {
            self.rule_for(path, found, access, origin);
        } else if access != Access::Write {
            let message = format!("{path} is protected by name, but a link leads to {target}");
            let help = "the command could replace the link: put what it leads to in its place, \
                        or allow its name in `protect.allow` (for git metadata: `git: full`)";
            self.complain(origin, message, Some(help.to_owned()));
        }
    }

    pub(super) fn additional_paths(&mut self) {
        let keys: [(Paths, Access); 5] = [
            (
                |keys| &keys.terminal.sandbox.additional_executable_paths,
                Access::Execute,
            ),
            (
                |keys| &keys.terminal.sandbox.additional_read_only_paths,
                Access::Read,
            ),
            (
                |keys| &keys.terminal.sandbox.additional_read_write_paths,
                Access::Write,
            ),
            (|keys| &keys.secrets.hide, Access::None),
            (|keys| &keys.secrets.show, Access::Read),
        ];
        for (key, access) in keys {
            for entry in self.entries(key) {
                // Hiding what is not there is not a mistake.
                let on_absent = if access == Access::None {
                    OnAbsent::Keep
                } else {
                    OnAbsent::Complain
                };
                self.rule(&entry.value.0, access, entry.origin, on_absent);
            }
        }
        if self.place.kind == Kind::Tool {
            for entry in self.entries(|keys| &keys.agent.sandbox_permissions.write_paths) {
                self.granted_rule(&entry.value.0, entry.origin);
            }
            let all = self.word(|keys| &keys.agent.sandbox_permissions.allow_fs_write_all);
            if let Some(all) = all.filter(|all| all.value) {
                self.rule(
                    Path::new("/"),
                    Access::Write,
                    all.origin,
                    OnAbsent::Complain,
                );
            }
        }
    }
}

/// The protected name that a word was meant to be which is none, if one is but a slip away. Others may be
/// names that a project or git's settings protect.
fn slip(word: &str) -> Option<&'static str> {
    const SLIP: usize = 2;
    let mut names = lists::PROTECTED.iter().map(|(name, _)| *name);
    // What lies below one is protected with it.
    let holds = |name: &str| {
        word.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if names.clone().any(holds) {
        return None;
    }
    // In a short name two slips are another word.
    names.find(|name| strsim::levenshtein(name, word) <= SLIP.min(name.len() / 3))
}

/// The first protected name that lies below a word which is none itself.
fn holds_protected(word: &str) -> Option<&'static str> {
    let mut names = lists::PROTECTED.iter().map(|(name, _)| *name);
    if names.clone().any(|name| Path::new(word).starts_with(name)) {
        return None;
    }
    names.find(|name| Path::new(name).starts_with(word))
}
