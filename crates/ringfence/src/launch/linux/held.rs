//! What holds a session together from outside, and what it tells at the end.

use std::path::PathBuf;
use std::time::Duration;

use ringfence_core::plan::{Act, LimitName};
use ringfence_sys::Signal;

use super::running::{PATIENCE, Running};
use crate::launch::Cause;
use crate::sessions::{About, Entry, Registry, RegistryError};
use crate::track::group::SessionGroup;
use crate::track::mark::Mark;

/// What holds a session together from outside.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) group: Option<SessionGroup>,
    pub(super) mark: Option<Mark>,
    pub(super) entry: Option<Entry>,
    /// Where the session is to be written down, once it is worth it.
    pub(super) pending: Option<(PathBuf, About)>,
    pub(super) unregistered: Option<RegistryError>,
}

/// What is over before this is not written down: nobody could see it in time, and it would cost
/// more than everything else that happens outside.
pub(super) const MOMENT: Duration = Duration::from_millis(100);

impl Running {
    /// Remembers where the session is to be written down. One that could leave something behind is
    /// there already. Its processes are found by their mark, so the number of the first has time
    /// until the session is worth it; without a mark it is all there is.
    pub(super) fn expect_registration(&mut self, registry: Option<(PathBuf, About)>) {
        if !self.held.entry.as_ref().is_none_or(Entry::is_borne) {
            self.say_who_is_first();
        }
        self.held.pending = registry;
    }

    fn say_who_is_first(&mut self) {
        let (first, linger) = (self.id(), self.linger);
        if let Some(entry) = &mut self.held.entry {
            // A session that nobody can be told of is held by its supervisor all the same.
            let _ = entry.started(first, linger);
        }
    }

    /// Writes the session down.
    pub(super) fn register(&mut self) {
        let Some((path, about)) = self.held.pending.take() else {
            return;
        };
        let registry = match Registry::open(&path) {
            Ok(registry) => registry,
            Err(error) => {
                self.held.unregistered = Some(error);
                return;
            }
        };
        if self.held.entry.is_some() {
            self.say_who_is_first();
        } else {
            match registry.begin(&about, self.id(), self.linger) {
                Ok(entry) => self.held.entry = Some(entry),
                Err(errno) => {
                    let source = errno.into();
                    self.held.unregistered = Some(RegistryError::Directory { path, source });
                }
            }
        }
    }

    /// Removes what killed supervisors have left. A session may be too short to be written down.
    pub(super) fn clean_others(&self) {
        // Where there is no directory, nobody has left anything.
        if let Some((path, _)) = &self.held.pending
            && let Ok(registry) = Registry::existing(path)
        {
            registry.clean_quickly();
        }
    }

    /// Why the session could not be written down, if it could not.
    pub fn unregistered(&self) -> Option<&RegistryError> {
        self.held.unregistered.as_ref()
    }

    /// The name by which others find the session, if it is written down.
    pub fn name(&self) -> Option<&str> {
        self.held.entry.as_ref().map(Entry::name)
    }

    /// Ends whoever is left, by the mark: those that got away from everything else.
    pub(super) fn sweep(&self) {
        if let (true, Some(mark)) = (self.ran, self.held.mark) {
            // Whoever cannot be ended now is found again by the next start.
            let _ = mark.end_all(PATIENCE);
        }
    }

    /// What a signal that ended the command means where there are limits.
    pub(super) fn killed(&self, signal: i32) -> Cause {
        let limit = if signal == Signal::XCPU.as_raw() {
            LimitName::Cpu
        } else if signal == Signal::XFSZ.as_raw() {
            LimitName::FileSize
        } else {
            let over = self.over_memory();
            return over.unwrap_or(Cause::Killed { signal });
        };
        if self.is_limited(limit) {
            Cause::Limit { limit, signal }
        } else {
            Cause::Killed { signal }
        }
    }

    fn is_limited(&self, name: LimitName) -> bool {
        self.plan.acts().iter().any(|act| {
            matches!(act, Act::Limits { bounds } if bounds.iter().any(|(set, _)| *set == name))
        })
    }

    pub(super) fn over_memory(&self) -> Option<Cause> {
        let group = self.held.group.as_ref()?;
        let over = self.is_limited(LimitName::Memory) && group.ran_out_of_memory();
        over.then(|| Cause::Limit {
            limit: LimitName::Memory,
            signal: Signal::KILL.as_raw(),
        })
    }
}
