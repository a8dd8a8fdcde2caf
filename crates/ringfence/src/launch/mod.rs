//! Plan –prepare→ [`Prepared`] –spawn→ [`Running`] –wait→ [`Report`].
//!
//! Preparing does all opening, allocating and looking up; between fork and exec only code that
//! cannot allocate, lock, log or panic runs. The caller is never restricted: every act happens in
//! a child. When any of these stages fails, no code of the command has run.

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod beside;
mod error;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod explained;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod passing;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) mod pipes;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod proxy;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod relay;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod served;
mod streams;
mod testing;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod words;
pub use error::{HelperFault, LaunchError, Part, StepName};
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use passing::Signals;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use relay::{Filter, Relay, RelayError, Rescue, Shown};
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) use served::serve;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use served::{News, Served};
pub use streams::{Given, NewTerminal, Size, Stream, Streams};
#[doc(hidden)]
pub use testing::{Helping, Testing};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::live_as_second_stage;
#[cfg(target_os = "linux")]
pub use linux::{Ahead, Prepared, Running, prepare, prepare_with, system_bwrap};

#[cfg(not(target_os = "linux"))]
mod behind;
#[cfg(not(target_os = "linux"))]
pub use behind::Ahead;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod nowhere;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub use nowhere::{Filter, News, Relay, RelayError, Rescue, Served, Shown};

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub use macos::{Prepared, Running, prepare, prepare_with};
#[cfg(target_os = "macos")]
pub(crate) use macos::{Table, live_as_second_stage};

// What crosses to the second stage is data, and tested everywhere.
#[cfg(all(test, not(target_os = "macos")))]
#[path = "macos/orders.rs"]
mod orders;
// So is the gate on the loopback, with real clients.
#[cfg(all(test, target_os = "linux"))]
#[path = "macos/gate.rs"]
mod loopback;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod unsupported;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) use unsupported::serve;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub use unsupported::{Prepared, Running, Signals, prepare, prepare_with};

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ringfence_core::plan::{Engine, Gap, LimitName, Step};
pub use ringfence_gate::Destination;
pub use ringfence_gate::event::{Attempt, Outcome, Way};
pub use ringfence_gate::judge::{Answer, Decider};
use serde::Serialize;

use crate::approve::bound::Captured;
use crate::audit::Denial;
use crate::changes::Changes;
use crate::event::{Event, SessionName};
use crate::indexes::IndexFound;

/// What to run.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program: a path, or a name that is looked up in the command's own `PATH`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub arguments: Vec<OsString>,
    /// Where it starts.
    pub directory: PathBuf,
    /// The caller's variables; the policy decides which pass.
    pub environment: Vec<(OsString, OsString)>,
}

/// How a session ended.
///
/// # Examples
///
/// ```
/// use ringfence::Cause;
///
/// assert_eq!(Cause::Exited { status: 3 }.exit_status(), 3);
/// assert_eq!(Cause::WallTime.exit_status(), 124);
/// assert_eq!(Cause::Killed { signal: 9 }.exit_status(), 137);
/// assert_eq!(Cause::WallTime.limit().map(|limit| limit.to_string()).as_deref(), Some("wall"));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "cause")]
#[non_exhaustive]
pub enum Cause {
    /// The command exited.
    Exited {
        /// Its status.
        status: u8,
    },
    /// A signal ended the command.
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// The session was ended from outside, before the command had ended or while it lingered.
    Ended,
    /// A protected name was made inside in spite of everything, so the session was ended.
    NameMade,
    /// A protected name could be held no longer, so the session was ended: the host made or replaced
    /// what cannot be mounted over, or nobody can look there any more.
    NameNotHeld,
    /// The command used more of something than its limit, and was ended for it.
    Limit {
        /// Of what.
        limit: LimitName,
        /// The signal that ended it.
        signal: i32,
    },
    /// It took longer than its limit.
    WallTime,
}

impl Cause {
    /// The limit that has ended the command, if one has.
    pub fn limit(self) -> Option<LimitName> {
        match self {
            Self::Limit { limit, .. } => Some(limit),
            Self::WallTime => Some(LimitName::Wall),
            _ => None,
        }
    }

    /// The exit status that tells a shell about it.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Exited { status } => status,
            // Signals end at 64.
            Self::Killed { signal } | Self::Limit { signal, .. } => {
                128_u8.wrapping_add(signal.to_le_bytes()[0])
            }
            Self::Ended | Self::NameMade | Self::NameNotHeld => 137,
            Self::WallTime => 124,
        }
    }
}

/// How a session ended, and what happened in it; [`crate::report`] has it as JSON.
///
/// # Examples
///
/// ```no_run
/// use ringfence::{Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let report = Sandbox::new(Policy::agent("."))?.command("make").status()?;
/// for denial in &report.denials {
///     println!("{} was denied {} times: {}", denial.target, denial.count, denial.fix);
/// }
/// assert!(report.is_fully_enforced());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    /// What held the walls up.
    pub engine: Engine,
    /// How the command ended; what ended the session if it lingered and was ended.
    pub cause: Cause,
    /// Rules that did not hold, where that was allowed.
    pub gaps: Vec<Gap>,
    /// Protected names that appeared during the session, and where they were put.
    pub names: Vec<NameFound>,
    /// Protected names that could be held no longer, or not be looked at in the end.
    pub not_held: Vec<PathBuf>,
    /// Protected names that somebody inside tried to make, and was refused.
    pub tried: Vec<PathBuf>,
    /// Git indexes that the session left and that somebody should know of, and where they were put.
    pub indexes: Vec<IndexFound>,
    /// What became of the project, if somebody looked before and after.
    pub changes: Option<Box<Changes>>,
    /// What ringfence itself did not let the session have.
    pub denials: Vec<Denial>,
    /// What happened at the network gate, if there was one.
    pub network: Network,
    /// How long each step of the launch took, if that was asked for.
    pub timeline: Vec<(Step, Duration)>,
    /// When the command started.
    pub started: SystemTime,
    /// When the session was over.
    pub ended: SystemTime,
}

/// What a session tried to reach.
///
/// # Examples
///
/// ```
/// fn show(report: &ringfence::Report) {
///     for attempt in &report.network.attempts {
///         println!("{}:{}: {:?}", attempt.host, attempt.port, attempt.verdict);
///     }
///     println!("and {} more", report.network.not_kept);
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Each attempt, in order.
    pub attempts: Vec<Attempt>,
    /// How many more there were.
    pub not_kept: u64,
}

/// A protected name that the session made.
///
/// # Examples
///
/// ```no_run
/// use ringfence::{Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let report = Sandbox::new(Policy::agent("."))?.command("make").status()?;
/// for found in &report.names {
///     println!("{} was made, and put at {:?}", found.path.display(), found.moved_to);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NameFound {
    /// The name.
    pub path: PathBuf,
    /// Where it was put out of the way; `None` if it could not be.
    pub moved_to: Option<PathBuf>,
    /// Whether it was removed instead, since there was no room for another name.
    pub removed: bool,
}

/// Whether a launch is measured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Timeline {
    /// It is not.
    #[default]
    Off,
    /// Each step says when it is done.
    On,
}

/// What becomes of background processes when the command has ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Linger {
    /// They end with it.
    #[default]
    No,
    /// They stay until the last of them has ended, or the session is ended from outside.
    Yes,
}

/// Somebody who is told how far a session is while it is waited for.
pub trait Observer {
    /// It takes longer than a moment: from now on others can find it.
    fn settled(&mut self, session: &Running);
    /// The command has ended. A session that lingers goes on; any other is over.
    fn command_ended(&mut self, session: &Running, cause: Cause);
    /// Something happened in it. Whoever waits here makes the session wait.
    fn happened(&mut self, _event: &Event) {}
}

/// Somebody who does not care.
impl Observer for () {
    fn settled(&mut self, _session: &Running) {}

    fn command_ended(&mut self, _session: &Running, _cause: Cause) {}
}

/// Things a caller may ask of a launch that are not policy.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Whether to measure how long each step takes.
    pub timeline: Timeline,
    /// What becomes of background processes when the command has ended.
    pub linger: Linger,
    /// Paths that somebody granted for this command, held since that was asked: what the session
    /// gets there is the very file that was held, or it is not started.
    pub granted: Arc<[Captured]>,
    /// Where the session is written down, and as what. Without it nobody else finds the session,
    /// and what a killed supervisor leaves of it stays.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    pub registry: Option<(PathBuf, crate::sessions::About)>,
    /// What only tests ask for.
    #[doc(hidden)]
    pub testing: Testing,
}

impl Options {
    /// What the session is called, where others find it.
    pub(crate) fn session_name(&self) -> SessionName {
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        if let Some((_, about)) = &self.registry {
            return SessionName::new(about.id.clone(), about.name.clone());
        }
        SessionName::default()
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
impl Options {
    /// Opens the place where a session that lingers is written down; nothing for any other. That one
    /// ends with its supervisor, and whoever looks for it has that.
    fn findable(
        &self,
    ) -> Result<Option<(crate::sessions::Registry, &crate::sessions::About)>, LaunchError> {
        use crate::sessions::{Registry, RegistryError};
        if self.linger == Linger::No {
            return Ok(None);
        }
        let place = self.registry.as_ref().ok_or(RegistryError::Nowhere);
        place
            .and_then(|(path, about)| Ok(Some((Registry::open(path)?, about))))
            .map_err(|source| LaunchError::Unfindable { source })
    }
}
