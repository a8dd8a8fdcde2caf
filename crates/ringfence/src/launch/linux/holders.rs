//! Whether anybody inside holds what the host has put at a protected name.
//!
//! A mount closes a path. Who opened what lies there before the mount came keeps it: a descriptor, a
//! working directory, a mapping and another name for the file lead past every mount. So whatever the host
//! makes or replaces is looked for in all processes of the session, once it is mounted over and nobody
//! can open it any more.
//!
//! Everybody is looked at several times, so that what is handed round is met. Where so many come and go that
//! no look sees all of them, they are stopped for one look; not before, since shells see who is stopped, and
//! say so.
//!
//! The session's own `/proc` lists all of its processes. They can hide nothing from whoever has made their
//! user namespace, who has every right in it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use foldhash::HashSet;
use ringfence_sys::Errno;
use ringfence_sys::files::{self, OpenFlags};
use rustix::fs::{AtFlags, Dir, Mode, Stat, openat, statat};
use rustix::process::{Signal, pidfd_send_signal};

/// So often in a row nobody may be found to hold anything. Who hands a descriptor to and fro between two
/// processes all the time is missed by one look in four.
const LOOKS: usize = 8;
/// How often that is tried before they are stopped.
const MOST_LOOKS: usize = 16;
/// How often it is tried to stop everybody.
const MOST_STOPS: usize = 100;
const BETWEEN: Duration = Duration::from_micros(500);
/// What is larger is given up, as if it were held.
const MOST_FILES: usize = 1 << 14;
/// Of what git never writes again, one file may have many names: clones share it.
const SHARED: &str = "objects";

/// Whether anybody holds what stands at a path, or may do so for all that is known. `root` is the session's.
pub(super) fn is_held(root: &OwnedFd, path: &Path) -> bool {
    let (mut nobody, mut sent) = (0, 0);
    for _ in 0..MOST_LOOKS {
        match look(root, path) {
            Ok(Found::Nobody) => nobody += 1,
            Ok(Found::Less) => nobody = 0,
            Ok(Found::Sent) => (nobody, sent) = (0, sent + 1),
            Ok(Found::Somebody) | Err(_) => return true,
        }
        if sent == LOOKS {
            return true;
        }
        if nobody == LOOKS {
            return false;
        }
        std::thread::sleep(BETWEEN);
    }
    match Stopped::of(root) {
        Ok(_stopped) => look(root, path) != Ok(Found::Nobody),
        Err(_) => true,
    }
}

/// Looks for what is there now: the host may be in the middle of making it.
fn look(root: &OwnedFd, path: &Path) -> Result<Found, Errno> {
    let contents = Contents::of(path)?;
    Ok(contents.look(root).unwrap_or(Found::Less))
}

/// Everybody inside, stopped; those who ran before run again when it is dropped.
struct Stopped(Vec<OwnedFd>);

impl Stopped {
    fn of(root: &OwnedFd) -> Result<Self, Errno> {
        let processes = processes(root)?;
        let mut stopped = Self(Vec::new());
        for _ in 0..MOST_STOPS {
            let mut all = true;
            for process in others(&processes)? {
                let Ok(process) = directory(&processes, &process.to_string()) else {
                    // Gone: and nobody knows whether somebody came in its place.
                    all = false;
                    continue;
                };
                if !matches!(state(&process), Ok('T' | 't' | 'Z' | 'X')) {
                    all = false;
                    if pidfd_send_signal(&process, Signal::STOP).is_ok() {
                        stopped.0.push(process);
                    }
                }
            }
            if all {
                return Ok(stopped);
            }
            std::thread::sleep(BETWEEN);
        }
        Err(Errno::BUSY)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for process in &self.0 {
            let _ = pidfd_send_signal(process, Signal::CONT);
        }
    }
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

/// The files at and below a path, by device and number.
#[derive(Debug, Default)]
struct Contents {
    files: HashSet<(u64, u64)>,
    numbers: HashSet<u64>,
}

impl Contents {
    fn of(path: &Path) -> Result<Self, Errno> {
        let mut contents = Self::default();
        let mut left = vec![path.to_owned()];
        while let Some(path) = left.pop() {
            let found = match std::fs::symlink_metadata(&path) {
                Ok(found) => found,
                // The host has taken it away again.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(_) => return Err(Errno::ACCESS),
            };
            contents.files.insert((found.dev(), found.ino()));
            contents.numbers.insert(found.ino());
            if contents.files.len() > MOST_FILES {
                return Err(Errno::TOOBIG);
            }
            let shared = path.iter().any(|part| part == SHARED);
            if found.is_file() && found.nlink() > 1 && !shared {
                // Its other name may be one that the session has given it.
                return Err(Errno::MLINK);
            }
            if found.is_dir() {
                let entries = std::fs::read_dir(&path).map_err(|_| Errno::ACCESS)?;
                for entry in entries {
                    left.push(entry.map_err(|_| Errno::ACCESS)?.path());
                }
            }
        }
        Ok(contents)
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
                    Err(_) => found = found.max(Found::Less),
                }
            }
        }
    }

    fn look_at(&self, processes: &OwnedFd, process: u32) -> Result<Found, Errno> {
        let process = directory(processes, &process.to_string())?;
        let tasks = directory(&process, "task")?;
        let (mut found, mut mapped) = (Found::Nobody, false);
        for task in numbers(&tasks)? {
            let task = directory(&tasks, &task.to_string())?;
            match self.look_at_task(&task, mapped) {
                Ok(Found::Somebody) => return Ok(Found::Somebody),
                Ok(seen) => {
                    mapped = true;
                    found = found.max(seen);
                }
                // The first thread can end before the others.
                Err(_) if has_ended(&task)? => {}
                Err(_) => found = found.max(Found::Less),
            }
        }
        Ok(found)
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

    /// What is mapped needs no descriptor. The list has another number for the device than others have on
    /// some file systems, so only that of the file counts.
    fn is_mapped(&self, task: &OwnedFd) -> Result<bool, Errno> {
        for line in BufReader::new(file(task, "maps")?).split(b'\n') {
            let line = line.map_err(|_| Errno::SRCH)?;
            let line = String::from_utf8_lossy(&line);
            let number = line.split_ascii_whitespace().nth(4);
            let number = number.and_then(|number| number.parse().ok());
            if number.is_some_and(|number: u64| self.numbers.contains(&number)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
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
