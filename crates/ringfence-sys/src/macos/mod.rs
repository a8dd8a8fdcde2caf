//! macOS: the sandbox, the process table, signals, terminals.
//!
//! None of this has been run yet: it is type checked for macOS, and docs/MACOS.md says what a person
//! with a Mac has to try.

pub mod descriptors;
pub mod processes;
pub mod ready;
pub mod seatbelt;
pub mod signals;
pub(crate) mod tty;

pub use rustix::io::Errno;
pub use rustix::process::{Pid, Signal};

/// The calling process, when it is one that exists to be confined.
///
/// Whoever has one may restrict this process; so it is only made by a second stage, which was started
/// for nothing else.
#[derive(Debug)]
pub struct Subject(());

impl Subject {
    /// This process, which must be a second stage that has one thread and nothing to lose.
    pub fn second_stage() -> Self {
        Self(())
    }
}
