//! Whether something changed since a moment, told by the time of its last change.
//!
//! That time comes from a clock that ticks every few milliseconds, so that what is written in a session
//! can have a time from before it. Either what is a little too old counts as well, and then somebody is
//! blamed for what was written right before; or the session waits until that clock has gone past the
//! moment ([`Since::settle`]), and then the time alone tells.

use std::time::{Duration, SystemTime};

use rustix::fs::Stat;

use super::stamp;

/// More than any clock of a file system needs for one tick.
pub(super) const TICK: Duration = Duration::from_millis(20);
/// A clock that stands still for so long is not waited for.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_millis(100);

/// A moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    at: SystemTime,
    slack: Duration,
}

impl Since {
    pub(super) fn now() -> Self {
        Self {
            at: SystemTime::now(),
            slack: TICK,
        }
    }

    pub(super) fn at(&self) -> SystemTime {
        self.at
    }

    /// Whether something changed since; in doubt it did.
    pub(super) fn includes(&self, status: &Stat) -> bool {
        let stamp = stamp(status);
        let nanoseconds = stamp
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .subsec_nanos();
        stamp + self.slack.max(coarseness(nanoseconds)) >= self.at
    }

    /// Waits until whatever is written from now on has a later time than this moment: for a tick at most,
    /// and mostly less, since others have worked meanwhile. Nothing of the session may run yet.
    #[cfg(target_os = "linux")]
    pub(super) fn settle(&mut self) {
        use rustix::time::{ClockId, clock_gettime};
        let started = std::time::Instant::now();
        loop {
            // What the kernel takes the times of files from.
            let files = clock_gettime(ClockId::RealtimeCoarse);
            let files = Duration::try_from(files).unwrap_or_default();
            if SystemTime::UNIX_EPOCH + files > self.at {
                self.slack = Duration::ZERO;
                return;
            }
            if started.elapsed() > PATIENCE {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Nothing is known here of the clock that files have their times from.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn settle(&mut self) {
        self.slack = TICK;
    }
}

/// By how much a time may have been cut off: some file systems keep whole or even seconds, or hundredths,
/// or tenths of microseconds.
fn coarseness(nanoseconds: u32) -> Duration {
    match nanoseconds {
        0 => Duration::from_secs(2),
        cut if cut % 1_000_000 == 0 => TICK,
        _ => Duration::from_nanos(100),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn times_that_were_cut_off_are_given_back_what_they_lost() {
        assert_eq!(coarseness(0), Duration::from_secs(2));
        assert_eq!(coarseness(120_000_000), TICK);
        assert_eq!(coarseness(123_456_700), Duration::from_nanos(100));
    }

    /// Both ways, again and again: where in a tick it happens is chance.
    #[test]
    fn right_before_is_before_and_right_after_is_after() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: String| {
            let path = place.path().join(name);
            fs::write(&path, "x").unwrap();
            move || rustix::fs::lstat(&path).unwrap()
        };
        for round in 0..50 {
            let before = write(format!("before-{round}"));
            // Whoever asks for a time gets the next one from a finer clock.
            before();
            fs::write(place.path().join(format!("before-{round}")), "y").unwrap();
            let mut since = Since::now();
            assert!(since.includes(&before()), "in doubt it did");
            let meanwhile = write(format!("meanwhile-{round}"));
            assert!(since.includes(&meanwhile()));
            since.settle();
            if cfg!(target_os = "linux") {
                assert!(!since.includes(&before()), "round {round}");
            }
            let after = write(format!("after-{round}"));
            assert!(since.includes(&after()), "round {round}");
            fs::write(place.path().join(format!("before-{round}")), "z").unwrap();
            assert!(since.includes(&before()), "round {round}");
        }
    }
}
