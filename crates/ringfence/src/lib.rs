//! Runs a command so that it can only touch what it was given, and so that nothing it started
//! survives.
//!
//! A [`Policy`] says what may be done, a [`Sandbox`] holds it on this host or fails, a [`Command`]
//! runs in it as [`std::process::Command`] would, and a [`Running`] session ends when its handle
//! does:
//!
//! ```no_run
//! use ringfence::{Policy, Sandbox};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(Policy::agent("/home/me/project"))?;
//! let report = sandbox.command("make").arg("test").status()?;
//! assert!(report.success());
//! # Ok(())
//! # }
//! ```
//!
//! The calling program is never restricted, re-parented or otherwise changed, and may have any number
//! of threads. A program that starts processes itself uses [`Sandbox::wrap`] and begins with
//! [`shim::run_if_asked`]. With the feature `tokio` sessions can be waited for on its runtime.
//!
//! [`probe`] says what this host can enforce, [`sessions`] lists and ends what runs, and
//! [`words`] has what policies are written with; [`core`] is the pure part of all this, which
//! touches no machine. What else this crate makes public is what the `ringfence` binary is made of:
//! it is described in the source, and may change in any version.
//!
//! Outside Unix there is nothing here but the pure types: on Windows ringfence runs inside WSL.
#![forbid(unsafe_code)]

#[cfg(unix)]
#[doc(hidden)]
pub mod account;
#[cfg(unix)]
#[doc(hidden)]
pub mod approve;
#[cfg(all(unix, feature = "tokio"))]
mod asynchronous;
#[cfg(unix)]
#[doc(hidden)]
pub mod audit;
#[cfg(unix)]
#[doc(hidden)]
pub mod changes;
#[cfg(unix)]
mod command;
#[cfg(unix)]
#[doc(hidden)]
pub mod decision;
#[cfg(unix)]
#[doc(hidden)]
pub mod dotfiles;
#[cfg(unix)]
#[doc(hidden)]
pub mod elf;
#[cfg(unix)]
pub mod event;
#[cfg(unix)]
#[doc(hidden)]
pub mod git;
#[cfg(unix)]
#[doc(hidden)]
pub mod grants;
#[cfg(unix)]
mod indexes;
#[cfg(unix)]
#[doc(hidden)]
pub mod launch;
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[doc(hidden)]
pub mod linger;
#[cfg(unix)]
mod listing;
#[cfg(unix)]
#[doc(hidden)]
pub mod load;
#[cfg(target_os = "linux")]
mod local;
#[cfg(unix)]
mod lookout;
#[cfg(unix)]
#[doc(hidden)]
pub mod place;
#[cfg(unix)]
#[doc(hidden)]
pub mod planned;
#[cfg(unix)]
mod policy;
#[cfg(unix)]
pub mod probe;
#[cfg(target_os = "linux")]
mod procfs;
#[cfg(unix)]
#[doc(hidden)]
pub mod programs;
#[cfg(unix)]
#[doc(hidden)]
pub mod report;
#[cfg(unix)]
mod sandbox;
#[cfg(unix)]
mod session;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod sessions;
#[doc(hidden)]
pub mod shell;
#[cfg(unix)]
pub mod shim;
#[cfg(unix)]
mod start;
#[cfg(unix)]
#[doc(hidden)]
pub mod store;
#[cfg(target_os = "linux")]
mod track;
#[cfg(unix)]
mod variables;

pub use ringfence_core as core;

#[cfg(unix)]
#[doc(inline)]
pub use audit::{Denial, Denied};
#[cfg(unix)]
#[doc(inline)]
pub use changes::{
    Changes, FileChange, GitLink, GitLinks, Listed, NewRepository, ProgramChanges, ReferenceChange,
    ReferenceChanges,
};
#[cfg(unix)]
pub use command::{Command, Output, SpawnError, Stdio};
#[cfg(unix)]
#[doc(inline)]
pub use event::{Event, Happened};
#[cfg(unix)]
pub use indexes::{IndexFound, IndexState};
#[cfg(unix)]
#[doc(inline)]
pub use launch::{Cause, HelperFault, LaunchError, NameFound, Part, Report, Size, StepName};
#[cfg(unix)]
#[doc(inline)]
pub use place::PlaceError;
#[cfg(unix)]
pub use policy::{Policy, SettingsFiles};
#[cfg(unix)]
#[doc(no_inline)]
pub use rustix::process::Signal;
#[cfg(unix)]
pub use sandbox::{Sandbox, SandboxError};
#[cfg(unix)]
pub use session::{Events, Running, Terminal};

#[cfg(target_os = "linux")]
mod wrap;
#[cfg(target_os = "linux")]
pub use wrap::{WrapError, Wrapped};

/// What sessions try to reach, and who is asked about it.
///
/// ```no_run
/// use ringfence::{Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::agent(".").host("crates.io"))?;
/// let report = sandbox.command("cargo").arg("update").status()?;
/// for attempt in &report.network.attempts {
///     println!("{}:{} {:?}", attempt.host, attempt.port, attempt.verdict);
/// }
/// # Ok(())
/// # }
/// ```
#[cfg(unix)]
pub mod network {
    #[doc(inline)]
    pub use crate::launch::{Answer, Attempt, Decider, Destination, Network, Outcome, Way};
}

/// The words of a policy.
///
/// ```
/// use ringfence::Policy;
/// use ringfence::words::{Engine, EngineChoice, GitLevel, NetworkMode, OnGap, Preset, Tmp};
///
/// let policy = Policy::with_preset(Preset::Strict, "/home/me/project")
///     .git(GitLevel::Read)
///     .network(NetworkMode::None)
///     .tmp(Tmp::Private)
///     .engine(EngineChoice::Named(Engine::Namespaces))
///     .on_gap(OnGap::Refuse);
/// ```
pub mod words {
    #[doc(no_inline)]
    pub use ringfence_core::plan::{Engine, EngineChoice, Gap, Plan};
    #[doc(no_inline)]
    pub use ringfence_core::settings::{GitLevel, NetworkMode, OnGap, Preset, Tmp};
}
