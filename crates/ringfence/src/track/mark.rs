//! The mark of a session: a number that all of its processes inherit.
//!
//! It stands in the resource limit for file locks, which has bounded nothing since Linux 2.4: so
//! it restricts nobody, needs no right, survives every fork and exec, and can be read from outside
//! by the user it belongs to. It is drawn at random, so no other process bears it by accident; a
//! command could take it off only on purpose, and where a filter holds the session it cannot.

use std::ffi::CString;
use std::time::{Duration, Instant};

use ringfence_sys::process::{self, Limit, LimitedResource, fill_random};
use ringfence_sys::procfs::{ProcDir, read_whole};
use ringfence_sys::{Errno, Pid, Signal};
use rustix::fs::OFlags;
use rustix::process::{PidfdFlags, getpid, pidfd_open, pidfd_send_signal, setrlimit};
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;

/// A number that every process of a session bears.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Mark(u64);

/// Below this a limit may be one that somebody meant.
const LEAST: u64 = 1 << 40;

/// Where the mark stands.
const PLACE: LimitedResource = LimitedResource::Locks;

/// What came of ending all that bear a mark.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Swept {
    /// How often somebody was ended.
    pub(crate) ended: usize,
    /// Those that could not be ended: they have become somebody else's.
    pub(crate) out_of_reach: usize,
}

impl Mark {
    /// Whether a session of this process could be marked: the place is free, and the kernel lets it be
    /// written. Inside another session its filter does not, or the outer mark could be taken off.
    pub(crate) fn is_possible() -> bool {
        // As it is: nothing changes for the caller.
        Self::is_free() && setrlimit(PLACE, process::limit(PLACE)).is_ok()
    }

    /// Whether nobody has meant a limit by what stands in the place.
    pub(crate) fn is_free() -> bool {
        process::limit(PLACE)
            .maximum
            .is_none_or(|bound| bound >= LEAST)
    }

    /// Draws a mark, and the limit that carries it; `None` where the place is taken.
    ///
    /// A session inside another keeps the outer one's mark as its upper bound, so its processes
    /// bear both.
    pub(crate) fn draw() -> Result<Option<(Self, Limit)>, Errno> {
        if !Self::is_possible() {
            return Ok(None);
        }
        let mut random = [0; 8];
        fill_random(&mut random)?;
        let outer = process::limit(PLACE).maximum;
        let mark = number(outer, u64::from_ne_bytes(random));
        let limit = Limit {
            current: Some(mark),
            maximum: Some(outer.unwrap_or(mark)),
        };
        Ok(Some((Self(mark), limit)))
    }

    /// Ends every process that bears the mark, pass by pass, until a whole pass finds none.
    ///
    /// Each is ended on sight: it cannot fork any more, and what it forked before bears the mark
    /// too. Whoever is dead already, and only waits to be noticed by its parent, is not counted.
    ///
    /// # Errors
    ///
    /// [`Errno::TIMEDOUT`] if somebody is still there after `patience`.
    pub(crate) fn end_all(self, patience: Duration) -> Result<Swept, Errno> {
        let started = Instant::now();
        let proc_dir = ProcDir::open()?;
        let own = getpid();
        let mut swept = Swept::default();
        loop {
            let (mut ended, mut out_of_reach) = (0, 0);
            proc_dir.each_process(|pid| {
                if pid == own || !self.is_on(&proc_dir, pid) {
                    return;
                }
                match self.end(&proc_dir, pid) {
                    Ok(()) => ended += 1,
                    Err(Errno::PERM) => out_of_reach += 1,
                    // Gone by now.
                    Err(_) => {}
                }
            })?;
            swept.ended += ended;
            swept.out_of_reach = out_of_reach;
            if ended == 0 {
                return Ok(swept);
            }
            if started.elapsed() > patience {
                return Err(Errno::TIMEDOUT);
            }
            std::thread::yield_now();
        }
    }

    /// The processes that bear the mark and are alive.
    pub(crate) fn bearers(self) -> Result<Vec<Pid>, Errno> {
        let proc_dir = ProcDir::open()?;
        let mut found = Vec::new();
        proc_dir.each_process(|pid| {
            if self.is_on(&proc_dir, pid) && is_alive(&proc_dir, pid) {
                found.push(pid);
            }
        })?;
        Ok(found)
    }

    /// Ends one process that was seen to bear the mark, and no other that got its number since.
    fn end(self, proc_dir: &ProcDir, pid: Pid) -> Result<(), Errno> {
        let held = pidfd_open(pid, PidfdFlags::empty())?;
        // From here on the number may change hands, the descriptor never does.
        if !self.is_on(proc_dir, pid) || !is_alive(proc_dir, pid) {
            return Err(Errno::SRCH);
        }
        pidfd_send_signal(&held, Signal::KILL)
    }

    fn is_on(self, proc_dir: &ProcDir, pid: Pid) -> bool {
        let limit = match process::limit_of(pid, PLACE) {
            Ok(limit) => limit,
            // A program that runs as somebody else; its page can still be read.
            Err(Errno::PERM) => match written_limit(proc_dir, pid) {
                Ok(limit) => limit,
                Err(_) => return false,
            },
            Err(_) => return false,
        };
        limit.current == Some(self.0) || limit.maximum == Some(self.0)
    }
}

/// A mark between the largest number that a program could mean and infinity, or an outer mark.
fn number(outer: Option<u64>, random: u64) -> u64 {
    match outer {
        None => 1 << 62 | random >> 2,
        Some(outer) => outer / 2 + random % (outer / 2),
    }
}

/// The limit as `/proc/PID/limits` has it.
fn written_limit(proc_dir: &ProcDir, pid: Pid) -> Result<Limit, Errno> {
    let mut buffer = [0; 4096];
    let text = page(proc_dir, pid, "limits", &mut buffer)?;
    parse_limit(text).ok_or(Errno::BADMSG)
}

fn parse_limit(text: &[u8]) -> Option<Limit> {
    let text = std::str::from_utf8(text).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"))?;
    let mut words = line.split_ascii_whitespace().map(|word| word.parse().ok());
    Some(Limit {
        current: words.next()?,
        maximum: words.next()?,
    })
}

/// Whether any thread of a process still runs: one that nobody has waited for yet does not.
fn is_alive(proc_dir: &ProcDir, pid: Pid) -> bool {
    let mut buffer = [0; 4096];
    match page(proc_dir, pid, "stat", &mut buffer) {
        Ok(text) => lives(text),
        Err(Errno::NOENT | Errno::SRCH) => false,
        // Better once too often.
        Err(_) => true,
    }
}

/// Reads the state from `/proc/PID/stat`. A first thread that has gone, with others left, is alive.
fn lives(stat: &[u8]) -> bool {
    // The name may hold anything, brackets and blanks too.
    let Some(end) = stat.iter().rposition(|byte| *byte == b')') else {
        return true;
    };
    let rest = String::from_utf8_lossy(stat.get(end + 1..).unwrap_or_default()).into_owned();
    let mut words = rest.split_ascii_whitespace();
    let state = words.next();
    let threads = words.nth(16).and_then(|word| word.parse::<u32>().ok());
    !matches!(state, Some("Z" | "X")) || threads.is_some_and(|threads| threads > 1)
}

fn page<'b>(
    proc_dir: &ProcDir,
    pid: Pid,
    name: &str,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], Errno> {
    let path =
        CString::new(format!("{}/{name}", pid.as_raw_nonzero())).map_err(|_| Errno::INVAL)?;
    let file = proc_dir.open_file(&path, OFlags::RDONLY)?;
    read_whole(file.as_fd(), buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_process_is_found_and_ended_and_no_other() {
        let (mark, limit) = Mark::draw().unwrap().unwrap();
        let number = limit.current.unwrap();
        let start = |marked: &str| {
            std::process::Command::new("sh")
                .args(["-c", &format!("{marked}; sleep 60 & echo; wait")])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut ours = start(&format!("ulimit -x {number}"));
        let mut other = start("true");
        for child in [&mut ours, &mut other] {
            std::io::Read::read(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        }
        // Some shells know no such limit; then there is nothing to see here.
        if mark.bearers().unwrap().is_empty() {
            ours.kill().unwrap();
            ours.wait().unwrap();
        } else {
            assert_eq!(mark.bearers().unwrap().len(), 2, "the shell and its child");
            let swept = mark.end_all(Duration::from_mins(1)).unwrap();
            assert!(swept.ended >= 2, "{swept:?}");
            assert_eq!(mark.bearers().unwrap(), []);
            assert!(!ours.wait().unwrap().success());
        }
        assert_eq!(other.try_wait().unwrap(), None, "somebody else was ended");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn marks_inside_marks_are_both_borne() {
        for outer in [None, Some(1 << 62), Some(LEAST)] {
            for random in [0, 1, u64::MAX] {
                let mark = number(outer, random);
                assert!(mark >= LEAST / 2, "{mark}");
                assert!(outer.is_none_or(|outer| mark < outer), "{mark} {outer:?}");
            }
        }
    }

    #[test]
    fn pages_of_the_kernel_are_read() {
        let text = b"Limit   Soft Limit  Hard Limit  Units\nMax file locks   4611686018427400249  unlimited  locks\n";
        assert_eq!(
            parse_limit(text),
            Some(Limit {
                current: Some(4_611_686_018_427_400_249),
                maximum: None
            })
        );
        assert_eq!(parse_limit(b""), None);
        let stat = |name: &str, state: &str, threads: u32| {
            let zeros = "0 ".repeat(16);
            format!("7 ({name}) {state} {zeros}{threads} 0 0").into_bytes()
        };
        assert!(lives(&stat("a) Z (b", "S", 1)));
        assert!(!lives(&stat("sh", "Z", 1)));
        assert!(lives(&stat("sh", "Z", 2)), "a thread is left");
        let own = std::fs::read("/proc/self/stat").unwrap();
        assert!(lives(&own));
    }
}
