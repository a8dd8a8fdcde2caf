//! What a supervisor serves in its one loop beside the session itself.

use std::io;
use std::time::Duration;

use ringfence_sys::ready::{PollFd, Timespec};

use super::Running;

/// What a supervisor serves beside the session itself.
///
/// Nothing here may wait: the session's own end, its limits and its broker would wait with it.
pub(super) trait Beside {
    /// Adds what there is to wait for.
    fn watched<'a>(&'a self, watched: &mut Vec<PollFd<'a>>);
    /// How long until the session is to be ended, if it is.
    fn patience(&self) -> Option<Duration>;
    /// Does what can be done now.
    fn serve(&mut self, session: &Running) -> io::Result<()>;
    /// The command was stopped.
    fn stopped(&mut self, session: &Running) -> io::Result<()>;
}

/// Nothing else to serve.
pub(super) struct Nothing;

impl Beside for Nothing {
    fn watched<'a>(&'a self, _watched: &mut Vec<PollFd<'a>>) {}

    fn patience(&self) -> Option<Duration> {
        None
    }

    fn serve(&mut self, _session: &Running) -> io::Result<()> {
        Ok(())
    }

    fn stopped(&mut self, _session: &Running) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
