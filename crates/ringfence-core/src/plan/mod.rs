//! Policy –compile→ plan.
//!
//! A plan is the ordered list of acts that enforce a policy on a host, and the gaps it cannot
//! close. Compiling is pure: the host arrives as [`HostFacts`], so every plan can be built and
//! read anywhere.

mod facts;
mod gate;
mod landlock;
mod linux;
mod macos;
mod mounts;
mod order;

pub use facts::{Arch, Bwrap, CgroupFacts, Feature, HostFacts, LandlockFacts, MountApi};
pub use gate::{GatePlan, Hosts};
pub use landlock::{LandlockPlan, LandlockRule, Listing, Scopes, TcpRules};
pub use mounts::{Base, DEVICES, Mount, MountKind, pins};
pub use order::Step;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::origin::Origin;
use crate::path::AbsPath;
use crate::policy::{Note, Policy};
use crate::settings::{Limit, NetworkMode, OnGap, Os};

/// What holds the walls up.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Engine {
    /// The same as `namespaces`, through a packaged bubblewrap.
    Bwrap,
    /// Landlock and seccomp alone.
    Landlock,
    /// User, mount, pid, ipc, uts, cgroup and network namespaces, Landlock and seccomp.
    Namespaces,
    /// The sandbox of macOS.
    Seatbelt,
    /// Nothing is restricted; the session is only tracked.
    Track,
}

/// Which engine to use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EngineChoice {
    /// The strongest one that works here.
    #[default]
    Auto,
    /// This one.
    Named(Engine),
}

/// One thing that is done to confine a command.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Act {
    /// Build the environment from the policy.
    Environment,
    /// Watch names that must not appear.
    Names {
        /// The names, none of which exists.
        absent: Vec<AbsPath>,
    },
    /// Start in a cgroup of its own.
    Cgroup,
    /// Enter new namespaces.
    Namespaces {
        /// Whether the network is among them.
        network: NetworkNamespace,
    },
    /// Join an empty session keyring.
    Keyring,
    /// Map the caller's user and group to themselves.
    Ids,
    /// Build the new root, mount by mount, and enter it.
    Root {
        /// What it starts from.
        base: Base,
        /// What is mounted on it, parents first.
        mounts: Vec<Mount>,
    },
    /// Bring up the loopback interface.
    Loopback,
    /// Open the ways out of that network that the policy allows.
    Gate(GatePlan),
    /// Close every descriptor above standard error.
    Descriptors,
    /// Bound what the processes may use.
    Limits {
        /// Each limit by its name in the settings.
        bounds: Vec<(LimitName, u64)>,
    },
    /// Empty every set of capabilities.
    Capabilities,
    /// Never gain privileges again.
    Privileges,
    /// Let Landlock hold the files.
    Landlock(LandlockPlan),
    /// Let seccomp hold the system calls.
    Seccomp(crate::seccomp::FilterSpec),
    /// Apply a Seatbelt profile.
    Seatbelt(crate::seatbelt::Profile),
    /// Be the first process inside: reap, pass signals on, and end everything at the end.
    Init,
    /// Become the command.
    Command,
}

/// Whether a session has a network of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkNamespace {
    /// It uses the host's.
    Shared,
    /// It has its own, with nothing but a loopback in it.
    Own,
}

/// What finds every process of a session again when it has to end, strongest first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Tracking {
    /// A cgroup: the kernel ends all of it at once, also those that became somebody else's.
    Cgroup,
    /// A pid namespace, whose first process takes all others with it.
    PidNamespace,
    /// A mark that every process inherits: whoever bears it is ended, until a pass finds nobody.
    Mark,
    /// Descent alone: orphans become children of the first process, which ends them.
    #[default]
    Descent,
}

impl fmt::Display for Tracking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup => "a cgroup of its own",
            Self::PidNamespace => "a pid namespace",
            Self::Mark => "a mark that every process inherits",
            Self::Descent => "descent from the first process",
        })
    }
}

/// A limit, by its name in the settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LimitName {
    /// Seconds on the clock.
    Wall,
    /// Seconds on the processor.
    Cpu,
    /// Processes and threads.
    Processes,
    /// Bytes of memory.
    Memory,
    /// Open files.
    Files,
    /// Bytes in a file.
    FileSize,
}

/// A rule that this host cannot enforce.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Gap {
    /// The rule, in words.
    pub rule: String,
    /// Who wrote it.
    pub origin: Origin,
    /// What would not hold.
    pub lost: String,
    /// What would close the gap.
    pub fix: String,
}

/// What gives a session a cgroup of its own.
pub const DELEGATE: &str = "start it as `systemd-run --user --scope -p Delegate=yes ringfence ...`";

/// What the rules of grants are called.
const HOSTS: &str = "network hosts";
const PORT: &str = "loopback port";
const SOCKET: &str = "unix socket";

impl Gap {
    /// Whether it is a grant that cannot be given here, so that nothing holds less without it.
    pub fn is_grant(&self) -> bool {
        let grants = [HOSTS, PORT, SOCKET];
        grants.iter().any(|grant| self.rule.starts_with(grant))
    }

    /// Whether it is a limit that nothing here can hold: without the sandbox nothing could either.
    pub fn is_limit(&self) -> bool {
        let limits = [
            LimitName::Wall,
            LimitName::Cpu,
            LimitName::Processes,
            LimitName::Memory,
            LimitName::Files,
            LimitName::FileSize,
        ];
        limits.into_iter().any(|limit| limit.rule() == self.rule)
    }
}

/// The ordered acts that enforce a policy on a host, and the gaps they leave.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    engine: Engine,
    acts: Vec<Act>,
    gaps: Vec<Gap>,
    tracking: Tracking,
    on_gap: OnGap,
    #[serde(skip)]
    controlled: Vec<LimitName>,
}

impl Plan {
    /// What holds the walls up.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The acts, in order.
    pub fn acts(&self) -> &[Act] {
        &self.acts
    }

    /// What would not hold.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The limits that only a controller of the session's cgroup holds, and one must.
    pub fn controlled(&self) -> &[LimitName] {
        &self.controlled
    }

    /// What finds every process of the session again.
    pub fn tracking(&self) -> Tracking {
        self.tracking
    }

    /// Whether a launcher may go on with this plan.
    pub fn may_launch(&self) -> bool {
        self.gaps.is_empty() || self.on_gap == OnGap::Report
    }
}

/// Builds the plan for a policy on a host.
pub fn compile(policy: &Policy, facts: &HostFacts, choice: EngineChoice) -> Plan {
    let mut draft = Draft::default();
    let engine = match facts.os {
        Os::Linux => linux::compile(policy, facts, choice, &mut draft),
        Os::Macos => macos::compile(policy, facts, choice, &mut draft),
        Os::Windows => {
            draft.gap(
                policy,
                "every rule",
                "nothing can be restricted or tracked on Windows",
                "run ringfence inside WSL 2",
            );
            Engine::Track
        }
    };
    for note in policy.notes() {
        if let Note::Drive(path) = note {
            draft.gap(
                policy,
                &format!("names inside {path}"),
                &note.to_string(),
                "keep the project in the file system of Linux, below the home for one",
            );
        }
    }
    draft.acts.sort_by_key(Act::step);
    Plan {
        engine,
        acts: draft.acts,
        gaps: draft.gaps,
        tracking: draft.tracking,
        on_gap: policy.on_gap().value,
        controlled: draft.controlled,
    }
}

/// A plan being made.
#[derive(Debug, Default)]
struct Draft {
    acts: Vec<Act>,
    gaps: Vec<Gap>,
    tracking: Tracking,
    controlled: Vec<LimitName>,
}

impl Draft {
    /// A gap in the policy as a whole.
    fn gap(&mut self, policy: &Policy, rule: &str, lost: &str, fix: &str) {
        self.gap_of(policy.preset().origin.clone(), rule, lost, fix);
    }

    fn gap_of(
        &mut self,
        origin: Origin,
        rule: impl Into<String>,
        lost: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.gaps.push(Gap {
            rule: rule.into(),
            origin,
            lost: lost.into(),
            fix: fix.into(),
        });
    }
}

impl Act {
    /// Its place in the order.
    pub fn step(&self) -> Step {
        match self {
            Self::Environment => Step::Environment,
            Self::Names { .. } => Step::Names,
            Self::Cgroup => Step::Cgroup,
            Self::Namespaces { .. } => Step::Namespaces,
            Self::Keyring => Step::Keyring,
            Self::Ids => Step::Ids,
            Self::Root { .. } => Step::Root,
            Self::Loopback => Step::Loopback,
            Self::Gate(_) => Step::Gate,
            Self::Descriptors => Step::Descriptors,
            Self::Limits { .. } => Step::Limits,
            Self::Capabilities => Step::Capabilities,
            Self::Privileges => Step::Privileges,
            Self::Landlock(_) => Step::Landlock,
            Self::Seccomp(_) => Step::Seccomp,
            Self::Seatbelt(_) => Step::Seatbelt,
            Self::Init => Step::Init,
            Self::Command => Step::Command,
        }
    }
}

/// In words, as `explain --plan` prints it.
impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("keep only the allowed variables"),
            Self::Names { absent } => {
                write!(
                    f,
                    "watch {} protected names that do not exist",
                    absent.len()
                )
            }
            Self::Cgroup => f.write_str("start in a cgroup of its own"),
            Self::Namespaces {
                network: NetworkNamespace::Own,
            } => f.write_str("enter new user, mount, pid, ipc, uts, cgroup and network namespaces"),
            Self::Namespaces {
                network: NetworkNamespace::Shared,
            } => f.write_str("enter new user, mount, pid, ipc, uts and cgroup namespaces"),
            Self::Keyring => f.write_str("join an empty session keyring"),
            Self::Ids => f.write_str("map the user and group to themselves, and nobody else"),
            Self::Root { base, mounts } => {
                write!(
                    f,
                    "build a new root from {base} with {} mounts",
                    mounts.len()
                )
            }
            Self::Loopback => f.write_str("bring up a loopback interface of its own"),
            Self::Gate(plan) => plan.fmt(f),
            Self::Descriptors => f.write_str("close every descriptor above standard error"),
            Self::Limits { bounds } => {
                f.write_str("set limits:")?;
                for (index, (name, bound)) in bounds.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma} {name} {bound}")?;
                }
                Ok(())
            }
            Self::Capabilities => f.write_str("drop every capability"),
            Self::Privileges => f.write_str("set no_new_privs"),
            Self::Landlock(plan) => plan.fmt(f),
            Self::Seccomp(_) => f.write_str("load the seccomp filter"),
            Self::Seatbelt(profile) => {
                write!(
                    f,
                    "apply a Seatbelt profile of {} rules",
                    profile.rules.len()
                )
            }
            Self::Init => f.write_str("start an init that reaps and passes signals on"),
            Self::Command => f.write_str("become the command"),
        }
    }
}

impl LimitName {
    /// The cgroup controller that can hold it for a whole session.
    pub fn controller(self) -> Option<&'static str> {
        match self {
            Self::Memory => Some("memory"),
            Self::Processes => Some("pids"),
            Self::Cpu | Self::FileSize | Self::Files | Self::Wall => None,
        }
    }

    /// The rule that it is, as a gap names it.
    fn rule(self) -> String {
        format!("limit {self}")
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Processes => "processes",
            Self::Memory => "memory",
            Self::Files => "files",
            Self::FileSize => "file-size",
        })
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bwrap => "bwrap",
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
            Self::Seatbelt => "seatbelt",
            Self::Track => "track",
        })
    }
}

/// A word that names no engine.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} is not an engine; write `auto`, `namespaces`, `landlock` or `bwrap`")]
pub struct UnknownEngine(String);

impl FromStr for EngineChoice {
    type Err = UnknownEngine;

    fn from_str(word: &str) -> Result<Self, UnknownEngine> {
        Ok(match word {
            "auto" => Self::Auto,
            "bwrap" => Self::Named(Engine::Bwrap),
            "landlock" => Self::Named(Engine::Landlock),
            "namespaces" => Self::Named(Engine::Namespaces),
            other => return Err(UnknownEngine(other.to_owned())),
        })
    }
}

/// Limits that are set, by name.
fn bounds(policy: &Policy) -> Vec<(LimitName, u64, Origin)> {
    let limits = policy.limits();
    [
        (LimitName::Wall, &limits.wall),
        (LimitName::Cpu, &limits.cpu),
        (LimitName::Processes, &limits.processes),
        (LimitName::Memory, &limits.memory),
        (LimitName::Files, &limits.files),
        (LimitName::FileSize, &limits.file_size),
    ]
    .into_iter()
    .filter_map(|(name, limit)| match limit.value {
        Limit::At(bound) => Some((name, bound, limit.origin.clone())),
        Limit::Unlimited => None,
    })
    .collect()
}

/// Whether a policy needs a network of its own to hold.
fn network_namespace(policy: &Policy) -> NetworkNamespace {
    match policy.network().mode() {
        NetworkMode::All => NetworkNamespace::Shared,
        NetworkMode::None | NetworkMode::Hosts => NetworkNamespace::Own,
    }
}
