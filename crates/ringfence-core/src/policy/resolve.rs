//! Settings –resolve→ policy.
//!
//! Layers are merged here and nowhere else. A stronger layer's word replaces a weaker one's; lists
//! of additional things add up; a rule for the same path from a stronger layer replaces the
//! weaker one's. Nothing is opened: what stands at a path is asked of the caller, through `look`.

mod elsewhere;
mod git;
mod grants;
mod links;
mod obeyed;
mod own;
mod paths;
mod pointers;
mod reach;
mod rules;
mod secrets;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::settled::Settled;
use super::{Access, Alias, Found, Ignored, Note, Policy, Unsandboxed, lists};
use crate::git::Repository;
use crate::origin::{BuiltIn, Layer, Located, Origin};
use crate::path::{AbsPath, PathError};
use crate::permission::Permission;
use crate::settings::{
    ApplyTo, GitLevel, Key, Keys, Kind, List, NetworkMode, OnGap, Os, Preset, ProjectTrust,
    SettingPath, Settings, Tmp,
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
    /// The home that the user database has for the caller, canonical, if it is another one: `HOME`
    /// can be set to anything, and the keys are still there.
    pub account_home: Option<AbsPath>,
    /// The project's root, canonical.
    pub project: AbsPath,
    /// Directories of ringfence's own: settings and state.
    pub own: Vec<AbsPath>,
    /// The program that will be the supervisor, canonical, where it can be told.
    pub program: Option<AbsPath>,
    /// Where the usual sockets are on this host, by the names that settings use.
    pub sockets: Vec<(&'static str, PathBuf)>,
    /// Variables of [`lists::TOOLCHAIN_VARIABLES`] that the caller has.
    pub toolchains: Vec<(&'static str, OsString)>,
    /// Paths that variables of [`lists::SECRET_VARIABLES`] name, absolute.
    pub secrets: Vec<(&'static str, PathBuf)>,
    /// Runtime directories, absolute: where the service manager and the bus of the caller's look for what to
    /// start.
    pub runtimes: Vec<PathBuf>,
    /// Git repositories in and around the project, as far as somebody looked for them.
    pub repositories: Vec<Repository>,
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

/// Looks at paths for whoever makes a policy.
pub trait Look {
    /// What stands at a path, links followed.
    fn look(&self, path: &Path) -> Seen;

    /// What a link says that stands at a path itself, if one does.
    ///
    /// Without an answer nobody knows whose a link is, and none carries a grant.
    fn link(&self, _path: &Path) -> Option<PathBuf> {
        None
    }
}

impl<F: Fn(&Path) -> Seen> Look for F {
    fn look(&self, path: &Path) -> Seen {
        self(path)
    }
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
    look: &dyn Look,
) -> Result<Policy, Vec<Complaint>> {
    let mut policy = with_project(settings, place, look)?;
    // One by one: none may take back what another says.
    for keys in settings.around() {
        let wide = build(&settings.with_around(keys), place, look)?;
        policy = policy.narrowed_around(wide);
    }
    Ok(policy)
}

fn with_project(
    settings: &Settings,
    place: &Place,
    look: &dyn Look,
) -> Result<Policy, Vec<Complaint>> {
    if !settings.has_project() || settings.trust() == ProjectTrust::Trusted {
        return build(settings, place, look);
    }
    // The project's file is the only untrusted layer there is.
    let without = build(&settings.without_project(), place, look)?;
    let allowances = settings.shell_rules().ignored.into_iter();
    let allowances = allowances.map(|rule| Ignored {
        what: format!("shell rule: allow {}", rule.value),
        origin: rule.origin,
    });
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
        policy.ignored.extend(allowances);
        return Ok(policy);
    }
    let mut policy = without.narrowed_by(with);
    policy.ignored.extend(allowances);
    Ok(policy)
}

fn build(settings: &Settings, place: &Place, eyes: &dyn Look) -> Result<Policy, Vec<Complaint>> {
    let look = |path: &Path| eyes.look(path);
    let mut notes = Vec::new();
    if place.home.is_none() {
        notes.push(Note::Homeless);
    }
    let preset = preset(settings, place.kind, &mut notes);
    let tmp = tmp(settings, &preset);
    let mut builder = Builder {
        settings,
        place,
        look: &look,
        eyes,
        preset: preset.value,
        aliases: Vec::new(),
        followed: Vec::new(),
        linked_sockets: Vec::new(),
        linkless: Vec::new(),
        tmp: tmp.value,
        temporaries: Vec::new(),
        settled: Settled::default(),
        straight: None,
        unseen: Vec::new(),
        notes: Vec::new(),
        complaints: Vec::new(),
    };
    // What a project that nobody trusts lifts is not lifted: see `resolve`.
    let lifts =
        preset.origin.layer() != Layer::Project || settings.trust() == ProjectTrust::Trusted;
    if preset.value == Preset::Track && lifts {
        builder.idle_flags(&preset.origin);
    }
    let git = git(settings, place.kind, preset.value);
    let sockets = builder.sockets();
    let files = builder.files(&preset, git.value, &sockets);
    builder.followed_sockets(&files, &sockets);
    notes.append(&mut builder.notes);
    if preset.value != Preset::Track {
        let drives = builder.drives();
        let written = files
            .rules()
            .iter()
            .filter(|rule| rule.access == Access::Write);
        let mut written =
            written.filter(|rule| drives.iter().any(|drive| drive.covers(&rule.path)));
        notes.extend(written.next().map(|rule| Note::Drive(rule.path.clone())));
    }
    let policy = Policy {
        kind: place.kind,
        project: place.project.clone(),
        network: builder.granted_network(&preset),
        environment: builder.environment(&preset, &sockets),
        limits: builder.limits(),
        on_gap: builder
            .word(|keys| &keys.on_gap)
            .unwrap_or_else(|| Located::built_in(OnGap::Refuse, BuiltIn::Preset(preset.value))),
        unsandboxed: builder
            .word(|keys| &keys.agent.sandbox_permissions.allow_unsandboxed)
            .map_or_else(
                || Located::built_in(Unsandboxed::Ask, BuiltIn::Preset(preset.value)),
                |written| Located::new(written.value.0, written.origin),
            ),
        preset,
        files: files.into(),
        aliases: std::mem::take(&mut builder.aliases),
        sockets,
        git,
        linkless: std::mem::take(&mut builder.linkless),
        tmp,
        notes,
        shell_rules: settings.shell_rules().rules,
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

/// Every entry of a list that adds up over layers.
fn entries<T: Clone>(settings: &Settings, key: impl Fn(&Keys) -> &Key<List<T>>) -> List<T> {
    let layers = settings.layers();
    layers
        .filter_map(|keys| key(keys).written())
        .flat_map(|list| list.value.clone())
        .collect()
}

fn preset(settings: &Settings, kind: Kind, notes: &mut Vec<Note>) -> Located<Preset> {
    let written = strongest(settings, |keys| &keys.preset);
    // Who names a preset for this one command wants it, whatever a file switches off.
    let flag = |origin: &Origin| origin.layer() == Layer::Flag;
    let named = written.as_ref().is_some_and(|it| flag(&it.origin));
    let outranked = |origin: &Origin| named && !flag(origin);
    let enabled = strongest(settings, |keys| &keys.terminal.sandbox.enabled);
    if let Some(enabled) = enabled.filter(|it| !it.value && !outranked(&it.origin)) {
        notes.push(Note::Disabled);
        return Located::new(Preset::Track, enabled.origin);
    }
    let apply_to: Option<Located<ApplyTo>> =
        strongest(settings, |keys| &keys.terminal.sandbox.apply_to);
    if let Some(apply_to) = apply_to.filter(|it| !it.value.includes(kind) && !outranked(&it.origin))
    {
        notes.push(Note::KindNotCovered(kind));
        return Located::new(Preset::Track, apply_to.origin);
    }
    written.unwrap_or_else(|| {
        let preset = kind.default_preset();
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
    /// What looks there, and can tell a link from what it leads to.
    eyes: &'a dyn Look,
    preset: Preset,
    aliases: Vec<Alias>,
    /// Grants that were written with a link in them, until it is known whose link that is.
    followed: Vec<links::Followed>,
    /// Sockets of which the same is true, as they were written and as they are.
    linked_sockets: Vec<(PathBuf, AbsPath)>,
    /// What a user should know, and no mistake.
    notes: Vec<Note>,
    /// Git directories that may be written, but get no links.
    linkless: Vec<AbsPath>,
    tmp: Tmp,
    /// Temporary directories that the session has its own of.
    temporaries: Vec<AbsPath>,
    settled: Settled,
    /// See [`name_beside`].
    straight: Option<AbsPath>,
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
        entries(self.settings, key)
    }

    /// Complains of flags that would restrict the command, where somebody chose that nothing does, or switched
    /// everything off.
    fn idle_flags(&mut self, track: &Origin) {
        if track.layer() == Layer::Grant {
            // The answer to a question, which said so.
            return;
        }
        let hidden = self.entries(|keys| &keys.secrets.hide);
        // Elsewhere these also take away writing.
        let lesser = [
            self.entries(|keys| &keys.terminal.sandbox.additional_read_only_paths),
            self.entries(|keys| &keys.terminal.sandbox.additional_executable_paths),
        ];
        let hosts = self.entries(|keys| &keys.network.hosts);
        let mode = self.word(|keys| &keys.network.mode);
        let tmp = self.word(|keys| &keys.tmp);
        let git = self.word(|keys| &keys.git);
        let origins = hidden
            .into_iter()
            .chain(lesser.into_iter().flatten())
            .map(|it| it.origin)
            .chain(hosts.into_iter().map(|it| it.origin))
            .chain(
                mode.filter(|it| it.value != NetworkMode::All)
                    .map(|it| it.origin),
            )
            .chain(tmp.filter(|it| it.value != Tmp::Host).map(|it| it.origin))
            .chain(
                git.filter(|it| it.value != GitLevel::Full)
                    .map(|it| it.origin),
            );
        for origin in origins.filter(|origin| origin.layer() == Layer::Flag) {
            self.complain(
                origin,
                format!("the preset track restricts nothing, so this would not hold ({track})"),
                Some("leave it out, or choose another preset with `--preset`".to_owned()),
            );
        }
    }

    fn complain(&mut self, origin: Origin, message: String, help: Option<String>) {
        let complaint = Complaint {
            origin,
            message,
            help,
        };
        // One flag can be several keys.
        if !self.complaints.contains(&complaint) {
            self.complaints.push(complaint);
        }
    }
}

/// How much git metadata may be used, with what was granted.
fn git(settings: &Settings, kind: Kind, preset: Preset) -> Located<GitLevel> {
    grants::granted_git(settings, written_git(settings, kind, preset))
}

fn written_git(settings: &Settings, kind: Kind, preset: Preset) -> Located<GitLevel> {
    if preset == Preset::Track {
        return Located::built_in(GitLevel::Full, BuiltIn::Preset(Preset::Track));
    }
    if let Some(written) = strongest(settings, |keys| &keys.git) {
        return written;
    }
    let seed = strongest(settings, |keys| {
        &keys.agent.sandbox_permissions.allow_git_access
    });
    match (kind, seed) {
        (Kind::Tool, Some(seed)) if seed.value => Located::new(GitLevel::Write, seed.origin),
        _ => {
            let level = match preset {
                // A person's shell is where people commit.
                Preset::Terminal | Preset::Track => GitLevel::Full,
                Preset::Agent | Preset::Strict => GitLevel::Hidden,
            };
            Located::built_in(level, BuiltIn::Preset(preset))
        }
    }
}

/// The git level that settings lead to, so that whoever gathers facts knows how far to look.
pub fn git_level(settings: &Settings, kind: Kind) -> GitLevel {
    let level = |settings: &Settings| {
        let preset = preset(settings, kind, &mut Vec::new());
        git(settings, kind, preset.value).value
    };
    let around = settings.around().iter();
    let around = around.map(|keys| level(&settings.with_around(keys)));
    let own = if settings.has_project() {
        level(settings).min(level(&settings.without_project()))
    } else {
        level(settings)
    };
    around.fold(own, GitLevel::min)
}

/// The paths that settings give for writing, so that whoever gathers facts can look at what they are. A
/// project's file that nobody trusts gives nothing.
pub fn written_paths(settings: &Settings, kind: Kind) -> Vec<PathBuf> {
    if settings.has_project() && settings.trust() != ProjectTrust::Trusted {
        return written_paths(&settings.without_project(), kind);
    }
    let given = entries(settings, |keys| {
        &keys.terminal.sandbox.additional_read_write_paths
    });
    let mut paths: Vec<PathBuf> = given.into_iter().map(|path| path.value.0).collect();
    let system = strongest(settings, |keys| {
        &keys.terminal.sandbox.system_paths.read_write
    });
    let system = system.into_iter().flat_map(|written| written.value);
    paths.extend(system.map(|path| path.value.0));
    if kind == Kind::Tool {
        let given = entries(settings, |keys| &keys.agent.sandbox_permissions.write_paths);
        paths.extend(given.into_iter().map(|path| path.value.0));
    }
    for grant in settings.grants() {
        if let Permission::Write(path) = &grant.value {
            paths.push(path.as_path().to_owned());
        }
    }
    paths
}

/// Which hosts may be reached at all by what was written, before anything is granted.
pub fn network_mode(settings: &Settings, kind: Kind) -> NetworkMode {
    let preset = preset(settings, kind, &mut Vec::new());
    reach::network(settings, kind, &preset).mode.value
}

/// Where something would appear if it were created: links above it lead where they lead.
///
/// # Errors
///
/// If the path is not absolute, or is no path at all.
pub fn name_of_absent(path: &Path, look: &dyn Fn(&Path) -> Seen) -> Result<AbsPath, PathError> {
    AbsPath::lexical(path).map(|path| name_beside(path, look, &mut None))
}

/// The same for many: neighbours come one after the other, and `straight` is the directory that was
/// found under its own name the last time.
fn name_beside(
    lexical: AbsPath,
    look: &dyn Fn(&Path) -> Seen,
    straight: &mut Option<AbsPath>,
) -> AbsPath {
    if straight
        .as_ref()
        .is_some_and(|above| lexical.is_right_in(above))
    {
        return lexical;
    }
    for directory in lexical.above() {
        let is_straight = |found: &AbsPath| found.as_path().as_os_str() == directory.as_os_str();
        if straight.as_ref().is_some_and(is_straight) {
            break;
        }
        if let Seen::At(canonical, _) = look(directory) {
            if is_straight(&canonical) {
                *straight = Some(canonical);
                break;
            }
            let rest = lexical.as_path().strip_prefix(directory);
            return rest.map_or_else(|_| lexical.clone(), |rest| canonical.below(rest));
        }
    }
    lexical
}
