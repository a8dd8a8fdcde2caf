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
//! Below that, this crate is where the pure types of [`ringfence_core`] meet a machine: it finds out where
//! it is called from ([`place`]), which repositories are there ([`git`]), reads settings ([`load`], [`shell`]), asks the host what it can enforce
//! ([`probe`]), plans for it ([`planned`]) and starts commands ([`launch`]).
//!
//! Outside Unix there is nothing here but the pure types: on Windows ringfence runs inside WSL.
#![forbid(unsafe_code)]

#[cfg(unix)]
pub mod approve;
#[cfg(all(unix, feature = "tokio"))]
mod asynchronous;
#[cfg(unix)]
pub mod audit;
#[cfg(unix)]
pub mod changes;
#[cfg(unix)]
mod command;
#[cfg(unix)]
pub mod decision;
#[cfg(unix)]
pub mod dotfiles;
#[cfg(unix)]
pub mod elf;
#[cfg(unix)]
pub mod event;
#[cfg(unix)]
pub mod git;
#[cfg(unix)]
pub mod grants;
#[cfg(unix)]
pub mod launch;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod linger;
#[cfg(unix)]
mod listing;
#[cfg(unix)]
pub mod load;
#[cfg(target_os = "linux")]
mod local;
#[cfg(unix)]
mod lookout;
#[cfg(unix)]
pub mod place;
#[cfg(unix)]
pub mod planned;
#[cfg(unix)]
mod policy;
#[cfg(unix)]
pub mod probe;
#[cfg(unix)]
pub mod programs;
#[cfg(unix)]
pub mod report;
#[cfg(unix)]
mod sandbox;
#[cfg(unix)]
mod session;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod sessions;
pub mod shell;
#[cfg(unix)]
pub mod shim;
#[cfg(unix)]
pub mod store;
#[cfg(target_os = "linux")]
mod track;

pub use ringfence_core as core;

#[cfg(unix)]
pub use command::{Command, Output, SpawnError, Stdio};
#[cfg(unix)]
pub use event::{Event, Happened};
#[cfg(unix)]
pub use launch::{Cause, LaunchError, NameFound, Report, Size};
#[cfg(unix)]
pub use policy::{Policy, SettingsFiles};
#[cfg(unix)]
pub use rustix::process::Signal;
#[cfg(unix)]
pub use sandbox::{Sandbox, SandboxError};
#[cfg(unix)]
pub use session::{Events, Running, Terminal};

#[cfg(target_os = "linux")]
mod wrap;
#[cfg(target_os = "linux")]
pub use wrap::{WrapError, Wrapped};

/// The words of a policy.
pub mod words {
    pub use ringfence_core::plan::{Engine, EngineChoice, Gap, Plan};
    pub use ringfence_core::settings::{GitLevel, NetworkMode, OnGap, Preset, Tmp};
}
