//! What is allowed, fully resolved, no operating system named.
//!
//! A policy is immutable. [`resolve`] makes it from settings, and nothing else does: so whatever
//! holds a `Policy` knows that layers were merged, that the project's file only narrowed, and
//! that every value can say where it came from.

mod environment;
mod files;
pub mod lists;
mod narrow;
mod network;
mod resolve;
mod settled;

pub use environment::{
    EnvPattern, EnvPatternError, EnvVerdict, Environment, Passing, SOCKET_VARIABLES,
};
pub use files::{Access, Content, FileRule, FileRules, FileVerdict, Found};
pub use narrow::Ignored;
pub use network::{HostVerdict, Network, Reachable, SocketGrant};
pub use resolve::{
    Complaint, Look, Place, Seen, git_level, name_of_absent, network_mode, resolve, written_paths,
};

use std::sync::Arc;

use serde::Serialize;

use crate::origin::Located;
use crate::path::AbsPath;
use crate::settings::{GitLevel, Kind, Limit, List, OnGap, Preset, ShellRule, Tmp};

/// What one session may do.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) kind: Kind,
    pub(crate) preset: Located<Preset>,
    pub(crate) project: AbsPath,
    pub(crate) files: Arc<FileRules>,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) network: Network,
    pub(crate) sockets: Vec<SocketGrant>,
    pub(crate) environment: Environment,
    pub(crate) limits: Limits,
    pub(crate) git: Located<GitLevel>,
    pub(crate) linkless: Vec<AbsPath>,
    pub(crate) on_gap: Located<OnGap>,
    pub(crate) tmp: Located<Tmp>,
    pub(crate) unsandboxed: Located<Unsandboxed>,
    pub(crate) shell_rules: List<ShellRule>,
    pub(crate) notes: Vec<Note>,
    pub(crate) ignored: Vec<Ignored>,
}

/// A name under which something was granted that stands elsewhere.
///
/// Rules hold for canonical paths. Whoever granted a path through a link will use that name, and
/// so will a loader that knows a library by it: where nothing of the host is seen the links on the
/// way have to be made.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Alias {
    /// The name, with links in it.
    pub name: AbsPath,
    /// Where it leads.
    pub path: AbsPath,
}

/// Bounds, each with its origin.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Limits {
    /// Seconds on the clock.
    pub wall: Located<Limit>,
    /// Seconds on the processor, for each process.
    pub cpu: Located<Limit>,
    /// Processes and threads at once.
    pub processes: Located<Limit>,
    /// Bytes of memory of the whole session.
    pub memory: Located<Limit>,
    /// Open files of each process.
    pub files: Located<Limit>,
    /// Bytes in each file.
    pub file_size: Located<Limit>,
    /// Bytes in the private temporary directories.
    pub tmp_size: Located<Limit>,
}

/// What happens to a command that asks to run outside the sandbox, strictest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsandboxed {
    /// It does not run, whoever is asked.
    Never,
    /// Somebody is asked.
    Ask,
    /// It runs.
    Allowed,
}

/// Something a user should know about how settings were understood.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// `enabled: false`: nothing is restricted, only tracked.
    Disabled,
    /// Something on a drive of Windows may be written.
    Drive(AbsPath),
    /// Nobody knows where the caller's home is.
    Homeless,
    /// `apply_to` leaves this kind out: nothing is restricted, only tracked.
    KindNotCovered(Kind),
    /// `protect.allow` has a name that is not protected, and is but a slip away from one that is.
    Slip {
        /// As it was written, shown safely.
        name: String,
        /// What was probably meant.
        meant: &'static str,
        /// Where it was written.
        origin: crate::origin::Origin,
    },
}

impl Note {
    /// Whether it matters only to whoever looks at the settings: everything that was asked for is done.
    pub fn is_minor(&self) -> bool {
        matches!(self, Self::Slip { .. })
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Disabled => f.write_str(
                "`enabled` is false, so nothing is restricted; the session is only tracked",
            ),
            Self::Drive(path) => write!(
                f,
                "{path} is on a drive of Windows, which does not tell capital letters from small ones: protected and hidden names in it have other spellings that no rule holds"
            ),
            Self::Homeless => f.write_str(
                "no home is known, neither by HOME nor by the user database: unless XDG_CONFIG_HOME says where they are, the user's settings are not read, and unless XDG_STATE_HOME does, there is no audit trail",
            ),
            Self::Slip {
                name,
                meant,
                origin,
            } => write!(
                f,
                "`protect.allow` has `{name}`, which is no protected name ({origin}); did you mean `{meant}`?"
            ),
            Self::KindNotCovered(kind) => write!(
                f,
                "`apply_to` leaves out {kind}, so nothing is restricted; the session is only tracked"
            ),
        }
    }
}

impl Policy {
    /// Whose command it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where the policy started from.
    pub fn preset(&self) -> &Located<Preset> {
        &self.preset
    }

    /// The project's root.
    pub fn project(&self) -> &AbsPath {
        &self.project
    }

    /// Which subtree may be used how.
    pub fn files(&self) -> &FileRules {
        &self.files
    }

    /// The same, for whoever keeps them longer than the policy.
    pub fn shared_files(&self) -> Arc<FileRules> {
        Arc::clone(&self.files)
    }

    /// Names that lead to granted paths through links.
    pub fn aliases(&self) -> &[Alias] {
        &self.aliases
    }

    /// What may be reached.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Sockets of the host that may be connected to.
    pub fn sockets(&self) -> &[SocketGrant] {
        &self.sockets
    }

    /// What the command finds in its environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Bounds on time, memory and numbers.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How much of the project's git metadata may be used.
    pub fn git(&self) -> &Located<GitLevel> {
        &self.git
    }

    /// Git directories that may be written, but get no symbolic links: git writes through those.
    pub fn linkless(&self) -> impl Iterator<Item = &AbsPath> {
        let written = |path: &&AbsPath| self.files.access(path).access == Access::Write;
        self.linkless.iter().filter(written)
    }

    /// Directories of the host's that somebody gave for writing, beside the project.
    pub fn given(&self) -> impl Iterator<Item = &AbsPath> {
        let rules = self.files.rules().iter();
        let given = rules.filter(|rule| rule.is_given(&self.project));
        given.map(|rule| &rule.path)
    }

    /// What to do when the host cannot enforce a rule.
    pub fn on_gap(&self) -> &Located<OnGap> {
        &self.on_gap
    }

    /// Which temporary directories the command sees.
    pub fn tmp(&self) -> &Located<Tmp> {
        &self.tmp
    }

    /// Whether a command that asks for it may run outside the sandbox.
    pub fn unsandboxed(&self) -> &Located<Unsandboxed> {
        &self.unsandboxed
    }

    /// A path that somebody hides, if anybody does: not a built-in list, but a file or a flag.
    pub fn hidden_by_word(&self) -> Option<&FileRule> {
        self.files.rules().iter().find(|rule| {
            rule.access == Access::None && rule.origin.layer() != crate::origin::Layer::BuiltIn
        })
    }

    /// What is said of shell commands before they run. The examples in them were not checked here.
    pub fn shell_rules(&self) -> &[Located<ShellRule>] {
        &self.shell_rules
    }

    /// What a user should know about how the settings were understood.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What the project's file tried to widen.
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }

    /// Whether nothing is restricted, only tracked.
    pub fn only_tracks(&self) -> bool {
        self.preset.value == Preset::Track
    }
}
