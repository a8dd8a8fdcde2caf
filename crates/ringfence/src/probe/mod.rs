//! What this machine can enforce.
//!
//! Two ways to find out. [`quick`] is for every launch: a handful of system calls, no process, and
//! the dear things (user namespaces) assumed to work, because the launch itself tries them first
//! and refuses if they do not; where they were refused, `without_namespaces` finds out with one
//! process what is left. [`thorough`] tries each thing in a child that ends at once, says
//! why what does not work does not, and what to type to make it work. [`examine`] tries a whole
//! launch on top.
//!
//! Nothing is concluded from a version number, and nothing is changed: every probe leaves the
//! machine and the calling process as they were.

pub mod guarantee;
pub mod report;
mod trial;

pub use trial::examine;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::{bwrap, cgroup, quick, thorough, without_namespaces};

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub use macos::{bwrap, cgroup, quick, thorough, without_namespaces};

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod unsupported;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub use unsupported::{bwrap, cgroup, quick, thorough, without_namespaces};

use std::fmt;

use ringfence_core::plan::{Arch, Engine, Feature, HostFacts};
use serde::Serialize;

/// Everything that thorough probing found.
///
/// # Examples
///
/// ```
/// use ringfence::probe::{Probed, thorough};
///
/// let findings = thorough();
/// if let Some(landlock) = findings.of(Probed::Landlock) {
///     println!("Landlock: {:?}", landlock.state);
/// }
/// for cause in findings.causes() {
///     println!("{} is missing: {:?}", cause.probed, cause.state);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Findings {
    /// What a plan is compiled against: what this version of ringfence can enforce here.
    pub facts: HostFacts,
    /// Each thing that was tried.
    pub findings: Vec<Finding>,
    /// What is around us that explains the findings.
    pub circumstances: Vec<Circumstance>,
}

impl Findings {
    /// What was found out about one thing.
    pub fn of(&self, probed: Probed) -> Option<&Finding> {
        self.findings
            .iter()
            .find(|finding| finding.probed == probed)
    }

    /// What does not work of itself, and an engine cannot do without.
    pub fn causes(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.probed.needed() == Needed::ByAnEngine)
            .filter(|finding| !finding.state.works() && finding.follows.is_none())
    }
}

/// One thing that was tried.
///
/// # Examples
///
/// ```
/// use ringfence::core::plan::Feature;
///
/// for finding in ringfence::probe::thorough().findings {
///     if let Feature::Missing { why, fix } = finding.state {
///         println!("{}: {why}; {fix}", finding.probed);
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// What was tried.
    pub probed: Probed,
    /// Whether it works, and if not, why and what would make it work.
    pub state: Feature,
    /// More about what works: a version, a place.
    pub detail: Option<String>,
    /// What it could not be tried without, if that is why it is missing.
    pub follows: Option<Probed>,
}

/// A thing that is tried.
///
/// # Examples
///
/// ```
/// use ringfence::probe::{Needed, Probed};
///
/// assert_eq!(Probed::MountApi.to_string(), "mounts by descriptor");
/// assert_eq!(Probed::MountApi.needed_by(), "engine namespaces");
/// assert_eq!(Probed::MountApi.needed(), Needed::ByAnEngine);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Probed {
    /// A user namespace with the caller mapped into it.
    UserNamespace,
    /// A mount namespace.
    MountNamespace,
    /// A pid namespace.
    PidNamespace,
    /// An ipc namespace.
    IpcNamespace,
    /// A uts namespace.
    UtsNamespace,
    /// A cgroup namespace.
    CgroupNamespace,
    /// A network namespace with its loopback up.
    NetworkNamespace,
    /// A fresh `/proc` in a pid namespace.
    ProcMount,
    /// Mounting by descriptor.
    MountApi,
    /// Landlock, and that it denies.
    Landlock,
    /// A seccomp filter, and that it answers.
    Seccomp,
    /// A seccomp filter with a listener.
    SeccompListener,
    /// A bound on processes without a cgroup.
    ProcessLimit,
    /// A cgroup of a session's own.
    Cgroup,
    /// A mark that all processes of a session inherit.
    Mark,
    /// The tunnel device.
    Tun,
    /// A bubblewrap of the system.
    Bwrap,
    /// The sandbox of macOS.
    Seatbelt,
    /// A whole launch of the default preset, up to the command.
    Launch,
}

/// Whether an engine could not work without a thing.
///
/// # Examples
///
/// ```
/// use ringfence::probe::{Needed, Probed};
///
/// assert_eq!(Probed::Tun.needed(), Needed::Otherwise);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Needed {
    /// It could not.
    ByAnEngine,
    /// It is for single rules or for later.
    Otherwise,
}

impl Probed {
    /// What needs it, in words.
    pub fn needed_by(self) -> &'static str {
        match self {
            Self::UserNamespace
            | Self::MountNamespace
            | Self::PidNamespace
            | Self::IpcNamespace
            | Self::UtsNamespace
            | Self::CgroupNamespace
            | Self::ProcMount
            | Self::MountApi => "engine namespaces",
            Self::NetworkNamespace => "engine namespaces, unless --net all",
            Self::Landlock | Self::Seccomp => "every engine",
            Self::Launch => "ringfence run",
            Self::ProcessLimit => "--limit processes",
            Self::Cgroup => "--limit memory; preset track",
            Self::Mark => "preset track, engine landlock",
            Self::SeccompListener => "unix sockets inside",
            Self::Tun => "nothing in this version",
            Self::Bwrap => "engine bwrap",
            Self::Seatbelt => "engine seatbelt",
        }
    }

    /// Whether an engine could not work without it.
    pub fn needed(self) -> Needed {
        match self {
            Self::UserNamespace
            | Self::MountNamespace
            | Self::PidNamespace
            | Self::IpcNamespace
            | Self::UtsNamespace
            | Self::CgroupNamespace
            | Self::ProcMount
            | Self::MountApi
            | Self::NetworkNamespace
            | Self::Landlock
            | Self::Launch
            | Self::Seccomp
            | Self::Seatbelt => Needed::ByAnEngine,
            Self::Bwrap
            | Self::Cgroup
            | Self::Mark
            | Self::ProcessLimit
            | Self::SeccompListener
            | Self::Tun => Needed::Otherwise,
        }
    }
}

impl fmt::Display for Probed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserNamespace => "user namespace",
            Self::MountNamespace => "mount namespace",
            Self::PidNamespace => "pid namespace",
            Self::IpcNamespace => "ipc namespace",
            Self::UtsNamespace => "uts namespace",
            Self::CgroupNamespace => "cgroup namespace",
            Self::NetworkNamespace => "network namespace",
            Self::ProcMount => "fresh /proc",
            Self::MountApi => "mounts by descriptor",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp filter",
            Self::SeccompListener => "seccomp listener",
            Self::ProcessLimit => "process limit",
            Self::Cgroup => "own cgroup",
            Self::Mark => "inherited mark",
            Self::Tun => "TUN device",
            Self::Bwrap => "bwrap",
            Self::Seatbelt => "Seatbelt",
            Self::Launch => "whole launch",
        })
    }
}

/// Something around us that explains what works and what does not.
///
/// # Examples
///
/// ```
/// for circumstance in ringfence::probe::thorough().circumstances {
///     println!("{circumstance}");
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "circumstance")]
#[non_exhaustive]
pub enum Circumstance {
    /// A container, by the mark that its manager leaves.
    Container {
        /// Whose: `docker`, `podman`, `lxc`, ...
        manager: String,
        /// Where it says so.
        mark: &'static str,
    },
    /// Not all user ids exist here: a user namespace of somebody's.
    ForeignUserNamespace,
    /// A seccomp filter was in force before us.
    OuterFilter,
    /// The first process here is a session of ringfence's own.
    RingfenceSession,
    /// A switch of the kernel's that matters for what was found.
    Switch {
        /// As `sysctl` names it.
        name: &'static str,
        /// What it is set to.
        value: u64,
    },
    /// The first Windows Subsystem for Linux, which has none of this.
    Wsl1,
    /// The second Windows Subsystem for Linux.
    Wsl2,
}

impl fmt::Display for Circumstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Container { manager, mark } => {
                write!(f, "inside a container: {manager} ({mark})")
            }
            Self::ForeignUserNamespace => {
                f.write_str("inside a user namespace (/proc/self/uid_map does not map every user)")
            }
            Self::OuterFilter => f.write_str(
                "under a seccomp filter of somebody else's (Seccomp is 2 in /proc/self/status)",
            ),
            Self::RingfenceSession => {
                f.write_str("inside a ringfence session (its first process is here as pid 1)")
            }
            Self::Switch { name, value } => write!(f, "{name} is {value}"),
            Self::Wsl1 => f.write_str("inside WSL 1"),
            Self::Wsl2 => f.write_str("inside WSL 2"),
        }
    }
}

/// Whether a launch could use this engine at all, so that no fact leads to one that it could not.
pub(crate) fn can_start(engine: Engine) -> bool {
    match engine {
        Engine::Bwrap | Engine::Landlock | Engine::Namespaces => cfg!(target_os = "linux"),
        Engine::Seatbelt => cfg!(target_os = "macos"),
        Engine::Track => true,
        _ => false,
    }
}

const fn this_arch() -> Arch {
    if cfg!(target_arch = "x86_64") {
        Arch::X86_64
    } else if cfg!(target_arch = "aarch64") {
        Arch::Aarch64
    } else {
        Arch::Other
    }
}
