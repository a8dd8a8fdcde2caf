//! Whether anybody inside holds what the host has put at a protected name.
//!
//! A mount closes a path. Who opened what lies there before the mount came keeps it: a descriptor, a
//! working directory, a mapping and another name for the file lead past every mount. So whatever the host
//! makes or replaces is looked for in all processes of the session, once it is mounted over and nobody
//! can open it any more.
//!
//! Everybody is looked at several times, so that what is handed round is met. Where so many come and go, or
//! have so much, that no look sees all of it in time, they are stopped for one look; not before, since shells
//! see who is stopped, and say so. Nobody else is protected meanwhile, so all of it has its time, and who
//! cannot be looked at in that time counts as one who holds it.
//!
//! The session's own `/proc` lists all of its processes. One that hides its memory cannot be looked at by a
//! plain user, and so counts, too.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};
use ringfence_sys::Errno;
use ringfence_sys::files::{self, OpenFlags};
use rustix::fs::{AtFlags, Dir, Mode, Stat, major, minor, openat, statat};
use rustix::process::{Signal, pidfd_send_signal};

/// So often in a row nobody may be found to hold anything. Who hands a descriptor to and fro between two
/// processes all the time is missed by one look in four.
const LOOKS: usize = 8;
const BETWEEN: Duration = Duration::from_micros(500);
/// How long that may take before they are stopped, and how long the rest.
const RUNNING: Duration = Duration::from_millis(30);
const STOPPED: Duration = Duration::from_millis(150);
/// What is larger is given up, as if it were held.
const MOST_FILES: usize = 1 << 14;

/// Whether anybody holds what stands at a path, or may do so for all that is known. `root` is the session's.
pub(super) fn is_held(root: &OwnedFd, path: &Path) -> bool {
    let deadline = Instant::now() + RUNNING;
    let (mut nobody, mut sent) = (0, 0);
    while Instant::now() < deadline {
        match look(root, path, deadline) {
            Ok(Found::Nobody) => nobody += 1,
            Ok(Found::Less) => nobody = 0,
            Ok(Found::Sent) => (nobody, sent) = (0, sent + 1),
            Ok(Found::Somebody) => return true,
            Err(_) => break,
        }
        if sent == LOOKS {
            return true;
        }
        if nobody == LOOKS {
            return false;
        }
        std::thread::sleep(BETWEEN);
    }
    let deadline = Instant::now() + STOPPED;
    let Ok(stopped) = Stopped::of(root, deadline) else {
        return true;
    };
    // Whoever ran again meanwhile may have handed it on.
    look(root, path, deadline) != Ok(Found::Nobody) || !stopped.still(root)
}

/// Looks for what is there now: the host may be in the middle of making it.
fn look(root: &OwnedFd, path: &Path, deadline: Instant) -> Result<Found, Errno> {
    let contents = Contents::of(path, deadline)?;
    contents.look(root)
}

/// Everybody inside, stopped; those who ran before run again when it is dropped.
struct Stopped {
    processes: OwnedFd,
    /// By number, in the order in which they were stopped.
    by_us: Vec<(u32, OwnedFd)>,
}

impl Stopped {
    fn of(root: &OwnedFd, deadline: Instant) -> Result<Self, Errno> {
        let mut stopped = Self {
            processes: processes(root)?,
            by_us: Vec::new(),
        };
        while Instant::now() < deadline {
            let mut all = true;
            for number in others(&stopped.processes)? {
                let Ok(process) = directory(&stopped.processes, &number.to_string()) else {
                    // Gone: and nobody knows whether somebody came in its place.
                    all = false;
                    continue;
                };
                let asked = stopped.by_us.iter().any(|(asked, _)| *asked == number);
                if stands(&process, asked) {
                    continue;
                }
                all = false;
                if !asked && pidfd_send_signal(&process, Signal::STOP).is_ok() {
                    stopped.by_us.push((number, process));
                }
            }
            if all {
                return Ok(stopped);
            }
            std::thread::sleep(BETWEEN);
        }
        Err(Errno::TIMEDOUT)
    }

    /// Whether nobody runs, or has come.
    fn still(&self, root: &OwnedFd) -> bool {
        let Ok(processes) = processes(root) else {
            return false;
        };
        let all = others(&processes).unwrap_or_default();
        all.into_iter().all(|number| {
            let asked = self.by_us.iter().any(|(asked, _)| *asked == number);
            directory(&processes, &number.to_string()).is_ok_and(|process| stands(&process, asked))
        })
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Children first: a shell that finds its child stopped takes the terminal away from it.
        for (_, process) in self.by_us.iter().rev() {
            let _ = pidfd_send_signal(process, Signal::CONT);
        }
    }
}

/// Whether a process does nothing, with all of its threads: the first can have ended before the others. One that
/// was told to stop and waits in the kernel (for its child, say) stops before it does anything else.
fn stands(process: &OwnedFd, told: bool) -> bool {
    let stands = |task: u32| {
        let task = directory(process, &format!("task/{task}"));
        match task.and_then(|task| state(&task)) {
            Ok('T' | 'Z' | 'X') => true,
            Ok('D') => told,
            Ok(_) | Err(_) => false,
        }
    };
    let tasks = directory(process, "task").and_then(|tasks| numbers(&tasks));
    tasks.is_ok_and(|tasks| tasks.into_iter().all(stands))
}

/// What a look at everybody has found, least first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Found {
    Nobody,
    /// Somebody was gone before all that he had was seen.
    Less,
    /// Descriptors were sent to a socket that nobody has taken out of it yet: they could be anything.
    Sent,
    Somebody,
}

/// The files at and below a path.
struct Contents {
    /// By device and number.
    files: HashSet<(u64, u64)>,
    deadline: Instant,
}

impl Contents {
    fn of(path: &Path, deadline: Instant) -> Result<Self, Errno> {
        let mut files = HashSet::default();
        let mut left = vec![path.to_owned()];
        while let Some(at) = left.pop() {
            let found = match std::fs::symlink_metadata(&at) {
                Ok(found) => found,
                // The host has taken it away again.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(_) => return Err(Errno::ACCESS),
            };
            files.insert((found.dev(), found.ino()));
            if files.len() > MOST_FILES || Instant::now() > deadline {
                return Err(Errno::TOOBIG);
            }
            if found.is_file() && found.nlink() > 1 && !is_object(path, &at) {
                // Its other name may be one that the session has given it.
                return Err(Errno::MLINK);
            }
            if found.is_dir() {
                let entries = std::fs::read_dir(&at).map_err(|_| Errno::ACCESS)?;
                for entry in entries {
                    left.push(entry.map_err(|_| Errno::ACCESS)?.path());
                }
            }
        }
        Ok(Self { files, deadline })
    }

    fn has(&self, found: &Stat) -> bool {
        self.files.contains(&(found.st_dev, found.st_ino))
    }

    /// Looks at every process.
    fn look(&self, root: &OwnedFd) -> Result<Found, Errno> {
        let processes = processes(root)?;
        let mut seen = HashSet::default();
        let mut found = Found::Nobody;
        // Until nobody has come meanwhile.
        loop {
            let mut came = others(&processes)?;
            came.retain(|process| seen.insert(*process));
            if came.is_empty() {
                return Ok(found);
            }
            for process in came {
                match self.look_at(&processes, process) {
                    Ok(Found::Somebody) => return Ok(Found::Somebody),
                    Ok(seen) => found = found.max(seen),
                    Err(Errno::TIMEDOUT) => return Err(Errno::TIMEDOUT),
                    Err(_) => found = found.max(Found::Less),
                }
            }
        }
    }

    fn look_at(&self, processes: &OwnedFd, process: u32) -> Result<Found, Errno> {
        let process = directory(processes, &process.to_string())?;
        let tasks = directory(&process, "task")?;
        let (mut found, mut mapped) = (Found::Nobody, false);
        let mut seen = HashSet::default();
        // Threads come as processes do, and may have descriptors of their own.
        loop {
            let mut came = numbers(&tasks)?;
            came.retain(|task| seen.insert(*task));
            if came.is_empty() {
                return Ok(found);
            }
            for task in came {
                let Ok(task) = directory(&tasks, &task.to_string()) else {
                    found = found.max(Found::Less);
                    continue;
                };
                match self.look_at_task(&task, mapped) {
                    Ok(Found::Somebody) => return Ok(Found::Somebody),
                    Ok(seen) => {
                        mapped = true;
                        found = found.max(seen);
                    }
                    Err(Errno::TIMEDOUT) => return Err(Errno::TIMEDOUT),
                    // The first thread can end before the others.
                    Err(_) if has_ended(&task).unwrap_or(false) => {}
                    Err(_) => found = found.max(Found::Less),
                }
            }
        }
    }

    /// A thread can have descriptors and a directory of its own, but no memory.
    fn look_at_task(&self, task: &OwnedFd, mapped: bool) -> Result<Found, Errno> {
        if !mapped && self.is_mapped(task)? {
            return Ok(Found::Somebody);
        }
        for link in ["cwd", "root", "exe"] {
            if self.has(&statat(task, link, AtFlags::empty())?) {
                return Ok(Found::Somebody);
            }
        }
        let open = directory(task, "fd")?;
        let about = directory(task, "fdinfo")?;
        let mut found = Found::Nobody;
        for descriptor in numbers(&open)? {
            if Instant::now() > self.deadline {
                return Err(Errno::TIMEDOUT);
            }
            let name = descriptor.to_string();
            match statat(&open, name.as_str(), AtFlags::empty()) {
                Ok(held) if self.has(&held) => return Ok(Found::Somebody),
                Ok(held) if is_socket(&held) && has_some_on_its_way(&about, &name)? => {
                    found = found.max(Found::Sent);
                }
                Ok(_) => {}
                // Closed meanwhile, or handed to somebody else.
                Err(_) => found = found.max(Found::Less),
            }
        }
        Ok(found)
    }

    /// What is mapped needs no descriptor.
    fn is_mapped(&self, task: &OwnedFd) -> Result<bool, Errno> {
        let mut devices: HashMap<u64, Vec<(u32, u32)>> = HashMap::default();
        for (device, number) in &self.files {
            let device = (major(*device), minor(*device));
            devices.entry(*number).or_default().push(device);
        }
        for line in BufReader::new(file(task, "maps")?).split(b'\n') {
            if Instant::now() > self.deadline {
                return Err(Errno::TIMEDOUT);
            }
            let line = line.map_err(|_| Errno::SRCH)?;
            let line = String::from_utf8_lossy(&line);
            let mut words = line.split_ascii_whitespace().skip(3);
            let (device, number) = (words.next(), words.next());
            let number = number.and_then(|number| number.parse().ok());
            let known = number.and_then(|number: u64| devices.get(&number));
            let device = device.and_then(|device| device.split_once(':'));
            let device = device.and_then(|(high, low)| {
                let part = |part| u32::from_str_radix(part, 16).ok();
                Some((part(high)?, part(low)?))
            });
            let (Some(known), Some(device)) = (known, device) else {
                continue;
            };
            // Without a disk of its own (0) a file system can say another device here than to `stat`.
            let same = |known: &(u32, u32)| *known == device || (known.0, device.0) == (0, 0);
            if known.iter().any(same) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Of what git never writes again, one file may have many names: clones share it.
fn is_object(name: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(name).ok();
    let mut parts = below.into_iter().flat_map(Path::iter);
    name.file_name().is_some_and(|name| name == ".git") && parts.any(|part| part == "objects")
}

/// The session's own list of its processes.
fn processes(root: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenFlags::RDONLY | OpenFlags::DIRECTORY;
    let inside = files::Resolve::IN_ROOT | files::Resolve::NO_SYMLINKS;
    files::openat2(root.as_fd(), c"proc", flags, Mode::empty(), inside)
}

/// All but the first, which is ours and holds nothing.
fn others(processes: &OwnedFd) -> Result<Vec<u32>, Errno> {
    let mut others = numbers(processes)?;
    others.retain(|process| *process != 1);
    Ok(others)
}

fn directory(base: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OpenFlags::RDONLY | OpenFlags::DIRECTORY | OpenFlags::CLOEXEC;
    openat(base, name, flags, Mode::empty())
}

fn file(base: &OwnedFd, name: &str) -> Result<File, Errno> {
    let flags = OpenFlags::RDONLY | OpenFlags::CLOEXEC;
    openat(base, name, flags, Mode::empty()).map(File::from)
}

/// The entries of a directory that are numbers.
fn numbers(directory: &OwnedFd) -> Result<Vec<u32>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_str().ok();
        found.extend(name.and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(found)
}

fn is_socket(found: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Socket
}

/// Whether descriptors were sent to a socket that nobody has taken out of it yet.
fn has_some_on_its_way(about: &OwnedFd, descriptor: &str) -> Result<bool, Errno> {
    let mut text = String::new();
    let read = file(about, descriptor)?.read_to_string(&mut text);
    read.map_err(|_| Errno::SRCH)?;
    let count = text.lines().find_map(|line| line.strip_prefix("scm_fds:"));
    Ok(count.is_some_and(|count| count.trim() != "0"))
}

/// Whether a process or thread has ended and only was not asked for yet.
fn has_ended(process: &OwnedFd) -> Result<bool, Errno> {
    state(process).map(|state| matches!(state, 'Z' | 'X'))
}

/// What the kernel says that a process does.
fn state(process: &OwnedFd) -> Result<char, Errno> {
    let mut text = Vec::new();
    let read = file(process, "stat")?.read_to_end(&mut text);
    read.map_err(|_| Errno::SRCH)?;
    // The name before it can have anything in it.
    let text = String::from_utf8_lossy(&text);
    let state = text
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.ok_or(Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_git_shares_may_have_another_name() {
        let object = |name: &str, path: &str| is_object(Path::new(name), Path::new(path));
        assert!(object("/p/.git", "/p/.git/objects/ab/cd"));
        assert!(object("/p/.git", "/p/.git/modules/a/objects/pack/x.pack"));
        assert!(!object("/p/.git", "/p/.git/config"));
        assert!(!object("/objects/p/.npmrc", "/objects/p/.npmrc"));
        assert!(!object("/p/.vscode", "/p/.vscode/objects/x"));
    }

    /// There is nobody to be stopped for who has the time to be looked at.
    #[test]
    fn what_is_open_is_found_and_what_was_closed_is_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let look = || {
            let contents = Contents::of(&path, Instant::now() + Duration::from_mins(1)).unwrap();
            let here = directory(&directory_of("/proc"), "thread-self").unwrap();
            contents.look_at_task(&here, true).unwrap()
        };
        assert_ne!(look(), Found::Somebody);
        let open = File::open(&path).unwrap();
        assert_eq!(look(), Found::Somebody);
        drop(open);
        assert_ne!(look(), Found::Somebody);
        std::fs::hard_link(&path, place.path().join("other")).unwrap();
        assert!(Contents::of(&path, Instant::now() + Duration::from_mins(1)).is_err());
    }

    fn directory_of(path: &str) -> OwnedFd {
        File::open(path).unwrap().into()
    }
}
