//! Who reaps what a supervisor leaves behind.
//!
//! A supervisor that is a program of its own ends before its session's first process does, and
//! process 1 reaps that: waiting for it takes a tenth of a start. In a container process 1 may be
//! any program, and one that reaps nobody would collect an entry of every session there ever was.
//! Nobody can ask it; but one entry of an earlier session that lies there says enough.

use std::time::Duration;

use ringfence_sys::init::wire;
use rustix::time::{ClockId, clock_gettime};

use crate::procfs;

/// Programs whose purpose it is to reap, of which the process 1 of nearly every machine is one.
const REAPERS: [&str; 9] = [
    "catatonit",
    "docker-init",
    "dumb-init",
    "init",
    "procd",
    "runit",
    "s6-svscan",
    "systemd",
    "tini",
];

/// How long process 1 may take to reap: some do so only every few seconds.
const MOMENT: Duration = Duration::from_secs(5);

/// Whether process 1 leaves the first processes of sessions that are over where they are.
pub(super) fn are_left_lying() -> bool {
    let name = procfs::whole("/proc/1/comm").unwrap_or_default();
    if REAPERS
        .iter()
        .any(|known| name.trim_ascii() == known.as_bytes())
    {
        return false;
    }
    // Where the kernel does not list them, or nobody may look, there is nothing to be known.
    let children = procfs::whole("/proc/1/task/1/children").unwrap_or_default();
    let children = String::from_utf8_lossy(&children);
    let children: Vec<&str> = children.split_whitespace().collect();
    // Three tell enough, and looking at all would take longer than many a command: where nobody is
    // reaped, the youngest is one that was left, and soon so are most.
    let some = [0, children.len() / 2, children.len().saturating_sub(1)];
    some.iter().filter_map(|at| children.get(*at)).any(|child| {
        let status = procfs::whole(format!("/proc/{child}/stat")).unwrap_or_default();
        ended(&status).is_some_and(|began| running().saturating_sub(began) > MOMENT)
    })
}

/// When a process began, if these are the facts of a session's first process that has ended.
fn ended(status: &[u8]) -> Option<Duration> {
    /// What stands between the state and the time of the beginning.
    const BETWEEN: usize = 18;
    // `number (name) state ...`
    let status = std::str::from_utf8(status).ok()?;
    let rest = status.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let rest = rest.strip_prefix(" (")?;
    let rest = rest.strip_prefix(wire::NAME.to_str().ok()?)?;
    let rest = rest.strip_prefix(") Z ")?;
    let began: u64 = rest.split(' ').nth(BETWEEN)?.parse().ok()?;
    let a_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(
        began.saturating_mul(1000) / a_second.max(1),
    ))
}

/// How long the machine has been running.
fn running() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::from_secs(u64::try_from(now.tv_sec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_first_process_that_has_ended_is_one() {
        let facts = "1 17 17 0 -1 4228364 7 50 0 0 0 0 0 0 20 0 1 0 1234 0 0";
        for (head, expected) in [
            ("17 ((session)) Z", true),
            ("17 ((session)) S", false),
            ("17 (session) Z", false),
            ("17 (x) Z 1 ((session)) Z", false),
            ("((session)) Z", false),
            ("17", false),
            ("", false),
        ] {
            let status = format!("{head} {facts}");
            let began = Duration::from_millis(12_340);
            assert_eq!(
                ended(status.as_bytes()),
                expected.then_some(began),
                "{head}"
            );
        }
        assert_eq!(ended(b"17 ((session)) Z 1 17"), None);
    }

    #[test]
    fn the_time_is_where_the_kernel_writes_it() {
        let own = procfs::whole("/proc/self/stat").unwrap();
        let own = String::from_utf8(own).unwrap();
        let (_, rest) = own.rsplit_once(") ").unwrap();
        let ended = ended(format!("1 ((session)) Z {}", &rest[2..]).as_bytes());
        assert!(ended.is_some_and(|began| began <= running() + MOMENT));
        assert!(ended.is_some_and(|began| began + Duration::from_hours(1) > running()));
    }
}
