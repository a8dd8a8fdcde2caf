//! Settings –resolve→ policy.
//!
//! Layers are merged here and nowhere else. A stronger layer's word replaces a weaker one's; lists
//! of additional things add up; a rule for the same path from a stronger layer replaces the
//! weaker one's. Nothing is opened: what stands at a path is asked of the caller, through `look`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Ignored;
use super::environment::{Environment, Passing};
use super::files::{Access, Content, FileRule, FileRules, Found};
use super::lists::{self, SystemLists, Toolchain};
use super::network::{Network, SocketGrant};
use super::settled::Settled;
use super::{Alias, Limits, Note, Policy};
use crate::origin::{BuiltIn, Layer, Located, Origin};
use crate::path::{AbsPath, PathError};
use crate::settings::{
    ApplyTo, GitLevel, Key, Keys, Kind, Limit, List, NetworkMode, OnGap, Os, Preset, SettingPath,
    Settings, SocketName, Tmp,
};

/// Who is calling, and from where.
#[derive(Clone, Debug)]
pub struct Place {
    /// Whose command it is.
    pub kind: Kind,
    /// The operating system it will run on.
    pub os: Os,
    /// The caller's home, canonical.
    pub home: Option<AbsPath>,
    /// The project's root, canonical.
    pub project: AbsPath,
    /// Directories of ringfence's own: settings and state.
    pub own: Vec<AbsPath>,
    /// Where the usual sockets are on this host, by the names that settings use.
    pub sockets: Vec<(&'static str, PathBuf)>,
    /// Variables of [`lists::TOOLCHAIN_VARIABLES`] that the caller has.
    pub toolchains: Vec<(&'static str, OsString)>,
}

/// What stands at a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Seen {
    /// Nothing, not even a link that leads nowhere.
    Absent,
    /// Something, with its canonical path.
    At(AbsPath, Found),
    /// The caller may not look, or a link there leads nowhere.
    Unreadable(String),
}

/// Something in the settings that cannot be carried out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Complaint {
    /// Where it was written.
    pub origin: Origin,
    /// What is wrong, in one clause.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Merges all layers into one policy.
///
/// # Errors
///
/// Every [`Complaint`], not only the first one.
pub fn resolve(
    settings: &Settings,
    place: &Place,
    look: &dyn Fn(&Path) -> Seen,
) -> Result<Policy, Vec<Complaint>> {
    if !settings.has_project() {
        return build(settings, place, look);
    }
    // The project's file is the only untrusted layer there is: no file is trusted yet.
    let without = build(&settings.without_project(), place, look)?;
    let with = build(settings, place, look)?;
    if with.only_tracks() && !without.only_tracks() {
        // Without this, whatever the file narrows besides would be lost with it.
        let lifted = Ignored {
            what: "no restrictions at all".to_owned(),
            origin: with.preset.origin,
        };
        let with = build(&settings.with_project_restricted(), place, look)?;
        let mut policy = without.narrowed_by(with);
        policy.ignored.insert(0, lifted);
        return Ok(policy);
    }
    Ok(without.narrowed_by(with))
}

fn build(
    settings: &Settings,
    place: &Place,
    look: &dyn Fn(&Path) -> Seen,
) -> Result<Policy, Vec<Complaint>> {
    let mut notes = Vec::new();
    let preset = preset(settings, place, &mut notes);
    let tmp = tmp(settings, &preset);
    let mut builder = Builder {
        settings,
        place,
        look,
        preset: preset.value,
        aliases: Vec::new(),
        tmp: tmp.value,
        temporaries: Vec::new(),
        settled: Settled::default(),
        absent: RefCell::default(),
        unseen: Vec::new(),
        complaints: Vec::new(),
    };
    let git = builder.git();
    let sockets = builder.sockets();
    let files = builder.files(&preset, git.value);
    let policy = Policy {
        kind: place.kind,
        project: place.project.clone(),
        network: builder.network(&preset),
        environment: builder.environment(&preset, &sockets),
        limits: builder.limits(),
        on_gap: builder
            .word(|keys| &keys.on_gap)
            .unwrap_or_else(|| Located::built_in(OnGap::Refuse, BuiltIn::Preset(preset.value))),
        unsandboxed: builder
            .word(|keys| &keys.agent.sandbox_permissions.allow_unsandboxed)
            .unwrap_or_else(|| Located::built_in(false, BuiltIn::Preset(preset.value))),
        preset,
        files,
        aliases: std::mem::take(&mut builder.aliases),
        sockets,
        git,
        tmp,
        notes,
        ignored: Vec::new(),
    };
    if builder.complaints.is_empty() {
        Ok(policy)
    } else {
        Err(builder.complaints)
    }
}

/// The strongest word that was written.
fn strongest<T: Clone>(settings: &Settings, key: impl Fn(&Keys) -> &Key<T>) -> Option<Located<T>> {
    settings
        .layers()
        .rev()
        .find_map(|keys| key(keys).written().cloned())
}

fn preset(settings: &Settings, place: &Place, notes: &mut Vec<Note>) -> Located<Preset> {
    let enabled = strongest(settings, |keys| &keys.terminal.sandbox.enabled);
    if let Some(enabled) = enabled.filter(|enabled| !enabled.value) {
        notes.push(Note::Disabled);
        return Located::new(Preset::Track, enabled.origin);
    }
    let apply_to: Option<Located<ApplyTo>> =
        strongest(settings, |keys| &keys.terminal.sandbox.apply_to);
    if let Some(apply_to) = apply_to.filter(|apply_to| !apply_to.value.includes(place.kind)) {
        notes.push(Note::KindNotCovered(place.kind));
        return Located::new(Preset::Track, apply_to.origin);
    }
    strongest(settings, |keys| &keys.preset).unwrap_or_else(|| {
        let preset = place.kind.default_preset();
        Located::built_in(preset, BuiltIn::Preset(preset))
    })
}

fn tmp(settings: &Settings, preset: &Located<Preset>) -> Located<Tmp> {
    let by_preset = match preset.value {
        Preset::Track => return Located::new(Tmp::Host, preset.origin.clone()),
        Preset::Agent | Preset::Strict => Tmp::Private,
        // A person's shell is where people look into what they left in `/tmp`.
        Preset::Terminal => Tmp::Host,
    };
    strongest(settings, |keys| &keys.tmp)
        .unwrap_or_else(|| Located::new(by_preset, preset.origin.clone()))
}

/// A key that lists paths.
type Paths = fn(&Keys) -> &Key<List<SettingPath>>;

/// What to do with a rule whose path is not there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OnAbsent {
    /// Complain: somebody asked for exactly this.
    Complain,
    /// Keep the rule, which came from a list of what is hidden; what cannot even be looked up is
    /// hidden by the kernel, unless the command could open it up.
    Hide,
    /// Keep the rule: it is the name that is protected.
    Keep,
    /// Leave it out: it came from a list.
    Skip,
}

struct Builder<'a> {
    settings: &'a Settings,
    place: &'a Place,
    look: &'a dyn Fn(&Path) -> Seen,
    preset: Preset,
    aliases: Vec<Alias>,
    tmp: Tmp,
    /// Temporary directories that the session has its own of.
    temporaries: Vec<AbsPath>,
    settled: Settled,
    /// Where directories really are that something absent was looked for in.
    absent: RefCell<HashMap<AbsPath, Option<AbsPath>>>,
    /// Hidden paths that could not be looked up, and why.
    unseen: Vec<(AbsPath, Origin, String)>,
    complaints: Vec<Complaint>,
}

impl Builder<'_> {
    fn word<T: Clone>(&self, key: impl Fn(&Keys) -> &Key<T>) -> Option<Located<T>> {
        strongest(self.settings, key)
    }

    /// Every entry of a list that adds up over layers.
    fn entries<T: Clone>(&self, key: impl Fn(&Keys) -> &Key<List<T>>) -> List<T> {
        let layers = self.settings.layers();
        layers
            .filter_map(|keys| key(keys).written())
            .flat_map(|list| list.value.clone())
            .collect()
    }

    fn rule(&mut self, path: &Path, access: Access, origin: Origin, on_absent: OnAbsent) {
        let (path, found) = match ((self.look)(path), on_absent) {
            (Seen::At(seen, found), _) => {
                self.alias(path, &seen, access, &origin);
                (seen, found)
            }
            (Seen::Absent, OnAbsent::Hide | OnAbsent::Keep) => match self.name_of_absent(path) {
                Ok(path) => (path, Found::Absent),
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
        let rule = FileRule {
            content: self.content(&path, &origin),
            path,
            access,
            origin,
            found,
        };
        self.settle(rule);
    }

    /// Remembers the name that a grant was written with, if it is not the canonical one.
    fn alias(&mut self, written: &Path, path: &AbsPath, access: Access, origin: &Origin) {
        let granted = access != Access::None && origin.layer() != Layer::BuiltIn;
        let name = AbsPath::parse(written).ok();
        if let Some(name) = name.filter(|name| granted && name != path) {
            let path = path.clone();
            self.aliases.push(Alias { name, path });
        }
    }

    /// Where something would appear if it were created: links above it lead where they lead.
    fn name_of_absent(&self, path: &Path) -> Result<AbsPath, PathError> {
        let lexical = AbsPath::lexical(path)?;
        let mut above = lexical.parent();
        while let Some(directory) = above {
            let mut known = self.absent.borrow_mut();
            let seen = known.entry(directory.clone()).or_insert_with(|| {
                match (self.look)(directory.as_path()) {
                    Seen::At(canonical, _) => Some(canonical),
                    Seen::Absent | Seen::Unreadable(_) => None,
                }
            });
            if let Some(canonical) = seen {
                let rest = lexical.as_path().strip_prefix(&directory);
                return Ok(rest.map_or_else(|_| lexical.clone(), |rest| canonical.below(rest)));
            }
            above = directory.parent();
        }
        Ok(lexical)
    }

    /// Whose files are seen at a path.
    fn content(&self, path: &AbsPath, origin: &Origin) -> Content {
        for (tree, _, content) in lists::session_trees(self.place.os) {
            let tree = Path::new(tree);
            // The trees themselves are never the host's, whoever grants them; single devices of
            // the host can be granted, single processes cannot.
            let inside = *content == Content::Processes && path.as_path().starts_with(tree);
            if inside || path.as_path() == tree {
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
    fn settle(&mut self, rule: FileRule) {
        let origin = rule.origin.clone();
        if let Err(contradiction) = self.settled.settle(rule) {
            self.complain(
                origin,
                contradiction,
                Some("keep one of the two".to_owned()),
            );
        }
    }

    fn complain(&mut self, origin: Origin, message: String, help: Option<String>) {
        self.complaints.push(Complaint {
            origin,
            message,
            help,
        });
    }

    /// A rule from a built-in list; `~/` is the home.
    fn listed(&mut self, text: &str, access: Access, list: BuiltIn) {
        let path = match (text.strip_prefix("~/"), &self.place.home) {
            (None, _) => PathBuf::from(text),
            (Some(rest), Some(home)) => home.as_path().join(rest),
            (Some(_), None) => return,
        };
        let on_absent = if list == BuiltIn::Secrets {
            OnAbsent::Hide
        } else {
            OnAbsent::Skip
        };
        self.rule(&path, access, Origin::BuiltIn(list), on_absent);
    }

    fn files(&mut self, preset: &Located<Preset>, git: GitLevel) -> FileRules {
        let default = match preset.value {
            Preset::Track => Access::Write,
            Preset::Agent | Preset::Strict | Preset::Terminal => Access::None,
        };
        if preset.value != Preset::Track {
            self.temporaries();
            self.system_paths();
            self.preset_paths();
            self.project_paths(git);
            self.additional_paths();
            self.hidden_project();
        }
        let rules = std::mem::take(&mut self.settled).into_rules();
        let files = FileRules::new(default, preset.origin.clone(), rules);
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
        if rule.path != *project && (rule.origin == elsewhere || rule.origin == runtime) {
            return;
        }
        let message = format!(
            "the project {project} is hidden, by the rule for {}",
            rule.path
        );
        let origin = rule.origin.clone();
        let help = "start in another directory, or name the hidden one in `secrets.show`";
        self.complain(origin, message, Some(help.to_owned()));
    }

    fn system_paths(&mut self) {
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

    fn preset_paths(&mut self) {
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
        for path in lists::SECRETS {
            self.listed(path, Access::None, BuiltIn::Secrets);
        }
        for own in self.place.own.clone() {
            let origin = Origin::BuiltIn(BuiltIn::Secrets);
            self.rule(own.as_path(), Access::None, origin, OnAbsent::Hide);
        }
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

    fn project_paths(&mut self, git: GitLevel) {
        let project = self.place.project.clone();
        let origin = Origin::BuiltIn(BuiltIn::Project);
        self.rule(project.as_path(), Access::Write, origin, OnAbsent::Complain);
        let allowed = self.entries(|keys| &keys.protect.allow);
        for (name, _) in lists::PROTECTED {
            if !allowed.iter().any(|allow| allow.value.0 == Path::new(name)) {
                let origin = Origin::BuiltIn(BuiltIn::Protected);
                self.name(&project, Path::new(name), Access::Execute, origin);
            }
        }
        for name in self.entries(|keys| &keys.protect.add) {
            self.name(&project, &name.value.0, Access::Execute, name.origin);
        }
        for name in allowed {
            if name.value.0.starts_with(".git") {
                let message = "git metadata cannot be allowed here".to_owned();
                let help = "use the key `git`, which says how much of it may be used".to_owned();
                self.complain(name.origin, message, Some(help));
                continue;
            }
            self.name(&project, &name.value.0, Access::Write, name.origin);
        }
        let origin = Origin::BuiltIn(BuiltIn::Git);
        let access = match git {
            GitLevel::Hidden => Access::None,
            GitLevel::Read => Access::Read,
            GitLevel::Write | GitLevel::Full => Access::Write,
        };
        self.name(&project, Path::new(".git"), access, origin.clone());
        let directory = project.below(".git");
        let linked = matches!(
            (self.look)(directory.as_path()),
            Seen::At(_, Found::File | Found::Other)
        );
        if git == GitLevel::Write && !linked {
            for knob in lists::GIT_KNOBS {
                self.name(&directory, Path::new(knob), Access::Execute, origin.clone());
            }
        }
    }

    /// A rule for a name in the project, whatever stands there.
    ///
    /// Whoever made the project chose its links, so a link never carries a grant to where it
    /// leads; and a link in a writable directory can be replaced, so it cannot be protected.
    fn name(&mut self, directory: &AbsPath, name: &Path, access: Access, origin: Origin) {
        let path = directory.below(name);
        let target = match (self.look)(path.as_path()) {
            Seen::At(target, _) => target,
            Seen::Absent => self
                .name_of_absent(path.as_path())
                .unwrap_or_else(|_| path.clone()),
            Seen::Unreadable(_) => path.clone(),
        };
        if target == path {
            self.rule(path.as_path(), access, origin, OnAbsent::Keep);
        } else if access != Access::Write {
            let message = format!("{path} is protected by name, but a link leads to {target}");
            let help = "the command could replace the link: put what it leads to in its place, \
                        or allow its name in `protect.allow` (for git metadata: `git: full`)";
            self.complain(origin, message, Some(help.to_owned()));
        }
    }

    fn additional_paths(&mut self) {
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
                self.rule(
                    &entry.value.0,
                    Access::Write,
                    entry.origin,
                    OnAbsent::Complain,
                );
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

    fn git(&self) -> Located<GitLevel> {
        if self.preset == Preset::Track {
            return Located::built_in(GitLevel::Full, BuiltIn::Preset(Preset::Track));
        }
        if let Some(written) = self.word(|keys| &keys.git) {
            return written;
        }
        let seed = self.word(|keys| &keys.agent.sandbox_permissions.allow_git_access);
        match (self.place.kind, seed) {
            (Kind::Tool, Some(seed)) if seed.value => Located::new(GitLevel::Write, seed.origin),
            _ => {
                let level = match self.preset {
                    // A person's shell is where people commit.
                    Preset::Terminal | Preset::Track => GitLevel::Full,
                    Preset::Agent | Preset::Strict => GitLevel::Hidden,
                };
                Located::built_in(level, BuiltIn::Preset(self.preset))
            }
        }
    }

    fn network(&self, preset: &Located<Preset>) -> Network {
        let mut hosts = self.entries(|keys| &keys.network.hosts);
        let mut all_hosts = None;
        if self.place.kind == Kind::Tool {
            hosts.extend(self.entries(|keys| &keys.agent.sandbox_permissions.network_hosts));
            all_hosts = self.word(|keys| &keys.agent.sandbox_permissions.allow_all_hosts);
        }
        let listed = self
            .word(|keys| &keys.network.hosts)
            .map(|list| list.origin)
            .or_else(|| hosts.first().map(|host| host.origin.clone()));
        let by_preset = match preset.value {
            Preset::Agent | Preset::Strict => NetworkMode::None,
            Preset::Terminal | Preset::Track => NetworkMode::All,
        };
        let allow = self.word(|keys| &keys.terminal.sandbox.allow_network);
        let mode = if let Some(mode) = self.word(|keys| &keys.network.mode) {
            mode
        } else if let Some(no) = allow.as_ref().filter(|allow| !allow.value) {
            Located::new(NetworkMode::None, no.origin.clone())
        } else if let Some(all) = all_hosts.filter(|all| all.value) {
            Located::new(NetworkMode::All, all.origin)
        } else if let Some(origin) = listed {
            // An empty list is a list: it names nothing, so nothing may be reached.
            Located::new(NetworkMode::Hosts, origin)
        } else if let Some(yes) = allow {
            Located::new(NetworkMode::All, yes.origin)
        } else {
            Located::new(by_preset, preset.origin.clone())
        };
        Network {
            mode,
            hosts,
            loopback_in: self.entries(|keys| &keys.network.loopback_in),
            loopback_out: self.entries(|keys| &keys.network.loopback_out),
        }
    }

    fn sockets(&mut self) -> Vec<SocketGrant> {
        let mut grants = Vec::new();
        for entry in self.entries(|keys| &keys.unix_sockets) {
            let (name, path) = match entry.value {
                SocketName::Path(path) => (None, path),
                SocketName::Known(name) => {
                    let sockets = &self.place.sockets;
                    let known = sockets.iter().find(|(known, _)| *known == name);
                    let Some((_, path)) = known else {
                        let message = format!("there is no {name} socket here");
                        self.complain(entry.origin, message, None);
                        continue;
                    };
                    (Some(name), path.clone())
                }
            };
            match (self.look)(&path) {
                Seen::At(path, Found::Other) => grants.push(SocketGrant {
                    name,
                    path,
                    origin: entry.origin,
                }),
                Seen::At(..) | Seen::Absent | Seen::Unreadable(_) => {
                    let shown = crate::text::printable_path(&path);
                    self.complain(entry.origin, format!("{shown} is not a socket"), None);
                }
            }
        }
        grants
    }

    fn environment(&self, preset: &Located<Preset>, sockets: &[SocketGrant]) -> Environment {
        let written = self.word(|keys| &keys.terminal.sandbox.allowed_env_vars);
        let (passing, origin) = match (preset.value, written) {
            (Preset::Track, _) => (Passing::Everything, preset.origin.clone()),
            (_, written) => {
                let (mut listed, origin) = match written {
                    Some(written) => (written.value, written.origin),
                    None => (
                        self.default_variables(),
                        Origin::BuiltIn(BuiltIn::Environment),
                    ),
                };
                listed.extend(self.entries(|keys| &keys.env.allow));
                (Passing::Listed(listed), origin)
            }
        };
        let layers = self.settings.layers();
        let set = layers
            .filter_map(|keys| keys.env.set.written())
            .flat_map(|set| set.value.clone())
            .collect();
        Environment {
            passing,
            passing_origin: origin,
            set,
            sockets: sockets.iter().filter_map(|grant| grant.name).collect(),
        }
    }

    fn default_variables(&self) -> List<super::EnvPattern> {
        let for_tools = self.preset != Preset::Terminal;
        lists::TERMINAL_VARIABLES
            .iter()
            .filter(|name| !(for_tools && lists::NOT_FOR_TOOLS.contains(name)))
            .chain(lists::PLAIN_VARIABLES)
            .filter_map(|name| name.parse().ok())
            .map(|pattern| Located::built_in(pattern, BuiltIn::Environment))
            .collect()
    }

    fn limits(&self) -> Limits {
        let tool = self.place.kind == Kind::Tool && self.preset != Preset::Track;
        let default = |bound: Option<u64>| {
            let bound = bound.filter(|_| tool);
            Located::built_in(bound.map_or(Limit::Unlimited, Limit::At), BuiltIn::Limits)
        };
        macro_rules! limit {
            ($key:ident, $default:expr) => {
                self.word(|keys| &keys.limits.$key)
                    .map(|written| Located::new(written.value.0, written.origin))
                    .unwrap_or_else(|| default($default))
            };
        }
        Limits {
            wall: limit!(wall, None),
            cpu: limit!(cpu, None),
            processes: limit!(processes, Some(lists::TOOL_PROCESSES)),
            memory: limit!(memory, None),
            files: limit!(files, None),
            file_size: limit!(file_size, None),
            tmp_size: limit!(tmp_size, Some(lists::TOOL_TMP)),
        }
    }
}

/// Where something would appear if it were created: links above it lead where they lead.
///
/// # Errors
///
/// If the path is not absolute, or is no path at all.
pub fn name_of_absent(path: &Path, look: &dyn Fn(&Path) -> Seen) -> Result<AbsPath, PathError> {
    let lexical = AbsPath::lexical(path)?;
    let mut above = lexical.parent();
    while let Some(directory) = above {
        if let Seen::At(canonical, _) = look(directory.as_path()) {
            let rest = lexical.as_path().strip_prefix(&directory);
            return Ok(rest.map_or_else(|_| lexical.clone(), |rest| canonical.below(rest)));
        }
        above = directory.parent();
    }
    Ok(lexical)
}
