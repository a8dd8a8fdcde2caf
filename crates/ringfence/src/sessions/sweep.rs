//! Ending and removing what belongs to a session, found by what the kernel says of it.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use ringfence_sys::files::{self, CWD, OpenFlags, Resolve};
use ringfence_sys::process::fill_random;
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::{Errno, Pid, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, Stat, unlinkat};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

use super::record::{DirectoryIdentity, ProcessIdentity, Record};
use super::{Session, State, tree};
use crate::procfs;
pub(super) use crate::track::group::GroupIdentity;
use crate::track::group::SessionGroup;
pub(super) use crate::track::mark::Mark;

/// How long the processes of a session may take to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Numbers that nobody can guess.
pub(super) fn random() -> Result<[u8; 8], Errno> {
    let mut random = [0; 8];
    fill_random(&mut random)?;
    Ok(random)
}

/// The kernel's name for this start of the machine.
pub(super) fn boot() -> Result<String, Errno> {
    let boot = procfs::whole("/proc/sys/kernel/random/boot_id")
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let boot = str::from_utf8(&boot).map_err(|_| Errno::IO)?;
    Ok(boot.trim().to_owned())
}

/// How long the machine runs.
pub(super) fn running_for() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(time.tv_sec).map(Duration::from_secs).ok()
}

/// The number of the pid namespace.
pub(super) fn pids() -> Result<u64, Errno> {
    Ok(rustix::fs::stat("/proc/self/ns/pid")?.st_ino)
}

/// The device that holds a file.
pub(super) fn device(found: &Stat) -> (u32, u32) {
    let device = found.st_dev;
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// When a process started, if it is there.
pub(super) fn start_of(pid: i32) -> Option<u64> {
    Some(ProcessStat::of(pid)?.start)
}

/// What is of interest in `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ProcessStat {
    pub(super) parent: i32,
    pub(super) start: u64,
    pub(super) resident_pages: u64,
    pub(super) is_dead: bool,
}

impl ProcessStat {
    pub(super) fn of(pid: i32) -> Option<Self> {
        Self::parse(&procfs::whole(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &[u8]) -> Option<Self> {
        // The name may hold anything, brackets and blanks too.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            is_dead: matches!(*words.first()?, "Z" | "X"),
            parent: words.get(1)?.parse().ok()?,
            start: words.get(19)?.parse().ok()?,
            resident_pages: words.get(21)?.parse().unwrap_or(0),
        })
    }
}

/// Every process there is, by its number.
pub(super) fn all_processes() -> HashMap<i32, ProcessStat> {
    let mut stats = HashMap::new();
    if let Ok(proc_dir) = ProcDir::open() {
        // Half a list is better than none: it is for people to look at.
        let _ = proc_dir.each_process(|pid| {
            let pid = pid.as_raw_nonzero().get();
            if let Some(stat) = ProcessStat::of(pid) {
                stats.insert(pid, stat);
            }
        });
    }
    stats
}

/// A session for people to look at.
pub(super) fn describe(
    record: &Record,
    state: State,
    stats: &HashMap<i32, ProcessStat>,
) -> Session {
    let first = record.first.filter(|first| {
        let stat = stats.get(&first.pid);
        stat.is_some_and(|stat| stat.start == first.start)
    });
    let belongs = |pid: i32| -> bool {
        let Some(first) = first else { return false };
        let mut pid = pid;
        // No chain is longer than there are processes.
        for _ in 0..stats.len() {
            if pid == first.pid {
                return true;
            }
            match stats.get(&pid) {
                Some(stat) if stat.parent > 0 => pid = stat.parent,
                _ => return false,
            }
        }
        false
    };
    let mut members: Vec<i32> = stats.keys().copied().filter(|pid| belongs(*pid)).collect();
    for pid in record
        .mark
        .into_iter()
        .flat_map(|mark| mark.bearers().unwrap_or_default())
    {
        let pid = pid.as_raw_nonzero().get();
        if !members.contains(&pid) {
            members.push(pid);
        }
    }
    let alive = members
        .iter()
        .filter_map(|pid| stats.get(pid))
        .filter(|stat| !stat.is_dead);
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let processes = alive.clone().count();
    let memory = alive.map(|stat| stat.resident_pages * page).sum();
    record.describe(state, processes, memory)
}

/// Ends every process of a session; whoever watches over it does the rest.
pub(super) fn end(record: &Record) -> Result<(), Errno> {
    if let Some(identity) = &record.group {
        match SessionGroup::reopen(identity) {
            // Removing is for its supervisor.
            Ok(group) => {
                let ended = group.end(PATIENCE);
                group.leave();
                ended?;
            }
            Err(errno) if is_gone(errno) => {}
            Err(errno) => return Err(errno),
        }
    }
    end_first(record)?;
    end_marked(record)
}

/// Ends what is left of a session without a supervisor, and removes what it has made.
pub(super) fn remove(record: &Record) -> Result<(), Errno> {
    if let Some(identity) = &record.group {
        match SessionGroup::reopen(identity) {
            Ok(mut group) => {
                group.end(PATIENCE)?;
                group.remove()?;
            }
            Err(errno) if is_gone(errno) => {}
            Err(errno) => return Err(errno),
        }
    }
    end_first(record)?;
    end_marked(record)?;
    remove_directory(record)
}

/// Whether there is no such group any more, or another has its name.
fn is_gone(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT | Errno::STALE | Errno::NODEV | Errno::NOTDIR
    )
}

/// Ends the first process, and with it the pid namespace that it may be the first of.
fn end_first(record: &Record) -> Result<(), Errno> {
    let Some(first) = record.first else {
        return Ok(());
    };
    let Some(pid) = Pid::from_raw(first.pid) else {
        return Err(Errno::INVAL);
    };
    let held = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(held) => held,
        Err(Errno::SRCH) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    // From here on the number may change hands, the descriptor never does.
    if ProcessIdentity::of(first.pid) != Some(first) {
        return Ok(());
    }
    match pidfd_send_signal(&held, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(errno) => return Err(errno),
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&held, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn end_marked(record: &Record) -> Result<(), Errno> {
    match record.mark {
        Some(mark) => mark.end_all(PATIENCE).map(|_| ()),
        None => Ok(()),
    }
}

/// Removes the temporary directory of a session, if it is still that one.
pub(super) fn remove_directory(record: &Record) -> Result<(), Errno> {
    match &record.tmp {
        Some(identity) => remove_tree(identity),
        None => Ok(()),
    }
}

/// Removes a directory with all that is in it, and nothing that only has its name.
fn remove_tree(identity: &DirectoryIdentity) -> Result<(), Errno> {
    let (Some(parent), Some(name)) = (identity.path.parent(), identity.path.file_name()) else {
        return Err(Errno::INVAL);
    };
    let c_string =
        |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL);
    let flags = OpenFlags::RDONLY | OpenFlags::DIRECTORY | OpenFlags::NOFOLLOW;
    let exact = Resolve::NO_SYMLINKS | Resolve::NO_MAGICLINKS;
    let parent = match files::openat2(CWD, &c_string(parent)?, flags, Mode::empty(), exact) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let name = c_string(Path::new(name))?;
    // It may be closed to its own user.
    let held = flags.difference(OpenFlags::RDONLY) | OpenFlags::PATH;
    let directory = match rustix::fs::openat(&parent, &name, held, Mode::empty()) {
        Ok(directory) => directory,
        // Gone, or something else by that name.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let found = DirectoryIdentity::of(identity.path.clone(), &directory)?;
    if identity.inode != 0 && found != *identity {
        return Ok(());
    }
    // One that was never finished goes only if it is empty.
    if identity.inode != 0 {
        tree::empty(&directory)?;
    }
    match unlinkat(&parent, &name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_more_than_its_number() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let identity = ProcessIdentity::of(own).unwrap();
        assert_eq!(ProcessIdentity::of(own), Some(identity));
        let other = ProcessIdentity {
            start: identity.start + 1,
            ..identity
        };
        assert_ne!(ProcessIdentity::of(own), Some(other));
        let stat = ProcessStat::parse(b"7 (a) b) S 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 99 0 5 0");
        let stat = stat.unwrap();
        assert_eq!((stat.parent, stat.start, stat.resident_pages), (3, 99, 5));
    }
}
