//! The sessions of a user: which there are, ending one by name, and what killed supervisors left.
//!
//! Each session is written down in one small file, which its supervisor keeps locked: the kernel
//! lets go of the lock when the supervisor does, whatever ended it, so a file that can be locked
//! belongs to a session that is over. Nothing is ever found by a path alone: a process is known by
//! its number, its start and the mark it bears, a cgroup and a directory by the kernel's number.
//!
//! A session that could leave something behind (a cgroup, a temporary directory, processes without
//! a pid namespace) is written down before that is made, and one that lingers before it starts: nobody
//! else could find it again. Any other is written down after its command has started, where nobody waits for it. On macOS each session has a keeper that outlives its supervisor, so there
//! none is written down before.

mod record;
mod registry;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod sweep;
#[cfg(target_os = "linux")]
mod tree;

#[doc(hidden)]
pub use record::About;
pub(crate) use record::DirectoryIdentity;
pub(crate) use registry::{Entry, Making};
pub use registry::{Registry, RegistryError};
#[cfg(target_os = "linux")]
pub(crate) use tree::remove_all;

use std::path::PathBuf;
use std::time::SystemTime;

use serde::Serialize;

/// A session that is written down.
///
/// # Examples
///
/// ```no_run
/// use ringfence::sessions::Registry;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// for session in Registry::of_user()?.sessions()? {
///     println!("{} in {}: {} processes", session.name, session.project.display(), session.processes);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Session {
    /// What nobody else is called.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Whether anybody watches over it.
    pub state: State,
    /// Whose it is.
    pub supervisor: i32,
    /// The project's root.
    pub project: PathBuf,
    /// Where the command was started.
    pub directory: PathBuf,
    /// The command, as one line.
    pub command: String,
    /// What holds the walls up.
    pub engine: String,
    /// Whether it stays when its command has ended.
    pub linger: bool,
    /// When it started.
    #[serde(serialize_with = "as_time")]
    pub started: SystemTime,
    /// How many processes it has.
    pub processes: usize,
    /// How much memory they have in use, in bytes; what they share is counted for each.
    pub memory: u64,
}

/// Whether a session has a supervisor.
///
/// # Examples
///
/// ```no_run
/// use ringfence::sessions::{Registry, State};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sessions = Registry::of_user()?.sessions()?;
/// let live = sessions.iter().filter(|session| session.state == State::Live);
/// println!("{} of {} live", live.count(), sessions.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It has one.
    Live,
    /// Its supervisor was killed; the next start removes what is left.
    LeftBehind,
}

fn as_time<S: serde::Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&crate::report::Time(*time))
}
