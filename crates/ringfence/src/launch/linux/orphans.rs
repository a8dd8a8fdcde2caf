//! Who reaps what a supervisor leaves behind.
//!
//! A supervisor that is a program of its own ends before its session's first process does, and
//! process 1 reaps that: waiting for it takes a tenth of a start. In a container process 1 may be
//! any program, and one that reaps nobody would collect an entry of every session there ever was.
//! Nobody can ask it; but one entry of an earlier session that lies there says enough.

use ringfence_sys::init::wire;

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

/// How many of its youngest children are looked at.
const MOST: usize = 32;

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
    let mut youngest = children.split_whitespace().rev().take(MOST);
    youngest.any(|child| {
        let status = procfs::whole(format!("/proc/{child}/stat")).unwrap_or_default();
        is_ended_first_process(&status)
    })
}

/// Whether these are the facts of a session's first process that has ended, and was not reaped.
fn is_ended_first_process(status: &[u8]) -> bool {
    // `number (name) state ...`
    let number = status
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let ended = [b" (", wire::NAME.to_bytes(), b") Z "].concat();
    number > 0 && status[number..].starts_with(&ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_first_process_that_has_ended_is_one() {
        for (status, expected) in [
            (&b"17 ((session)) Z 1 17 17 0 -1"[..], true),
            (b"17 ((session)) S 1 17 17 0 -1", false),
            (b"17 (session) Z 1 17 17 0 -1", false),
            (b"17 (x) Z 1 ((session)) Z 1", false),
            (b" ((session)) Z 1", false),
            (b"17", false),
            (b"", false),
        ] {
            assert_eq!(is_ended_first_process(status), expected);
        }
    }
}
