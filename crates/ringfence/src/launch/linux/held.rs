//! What holds a session together from outside, and what it tells at the end.

use ringfence_core::plan::{Act, LimitName};
use ringfence_sys::Signal;

use super::running::{PATIENCE, Running};
use crate::launch::Cause;
use crate::sessions::{About, Entry, Registry};
use crate::track::group::SessionGroup;
use crate::track::mark::Mark;

/// What holds a session together from outside.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) group: Option<SessionGroup>,
    pub(super) mark: Option<Mark>,
    pub(super) entry: Option<Entry>,
}

impl Running {
    /// Writes the session down, and removes what killed supervisors have left, while the command
    /// runs and nobody waits.
    pub(super) fn register(&mut self, registry: Option<(Registry, About)>) {
        let Some((registry, about)) = registry else {
            return;
        };
        let (first, linger) = (self.id(), self.linger);
        // A session that nobody can be told of is held by its supervisor all the same.
        match &mut self.held.entry {
            Some(entry) => {
                let _ = entry.started(first, linger);
            }
            entry @ None => *entry = registry.begin(&about, Some((first, linger))).ok(),
        }
        registry.clean_quickly();
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
        let limited = |name: LimitName| {
            self.plan.acts().iter().any(|act| {
                matches!(act, Act::Limits { bounds } if bounds.iter().any(|(set, _)| *set == name))
            })
        };
        let limit = if signal == Signal::XCPU.as_raw() {
            LimitName::Cpu
        } else if signal == Signal::XFSZ.as_raw() {
            LimitName::FileSize
        } else {
            let over = self.over_memory();
            return over.unwrap_or(Cause::Killed { signal });
        };
        if limited(limit) {
            Cause::Limit { limit, signal }
        } else {
            Cause::Killed { signal }
        }
    }

    pub(super) fn over_memory(&self) -> Option<Cause> {
        let group = self.held.group.as_ref()?;
        group.ran_out_of_memory().then(|| Cause::Limit {
            limit: LimitName::Memory,
            signal: Signal::KILL.as_raw(),
        })
    }
}
