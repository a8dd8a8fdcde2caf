//! A cgroup of a session's own.
//!
//! It is made below a group that is ours to make groups in: the one this process is in, or the
//! nearest above it that is delegated to the user. One group serves one session: it is ended whole,
//! waited for and removed, whatever way the session took. Held by descriptor throughout.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringfence_core::plan::LimitName;
use ringfence_sys::cgroup::{self, Group};
use ringfence_sys::files::{self, OpenFlags, Resolve};
use ringfence_sys::mountinfo::unescaped;
use ringfence_sys::process::fill_random;
use ringfence_sys::{Errno, Pid, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, accessat, unlinkat};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::procfs;

/// How the names of sessions' groups begin.
const PREFIX: &str = "ringfence-";

/// Why no group can be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NoSite {
    /// No version 2 tree is mounted.
    NoTree,
    /// Our own group cannot be opened.
    Own(Errno),
    /// No group from ours upwards lets us make one.
    NotOurs(Errno),
}

/// A group in which sessions' groups can be made.
#[derive(Debug)]
pub(crate) struct Site {
    group: Group,
    path: PathBuf,
    controllers: Vec<String>,
}

impl Site {
    /// Finds the one, from the group of this process upwards, that can bound a session by most of
    /// these controllers; among equals the nearest.
    pub(crate) fn find(wanted: &[&str]) -> Result<Self, NoSite> {
        let (tree, own) = own_group()?;
        let mut best: Option<(usize, Self)> = None;
        let mut refusal = NoSite::NotOurs(Errno::ACCESS);
        for path in own.ancestors().take_while(|path| path.starts_with(&tree)) {
            match Self::at(path) {
                Ok(site) => {
                    let has = wanted.iter().filter(|name| site.has(name)).count();
                    if has == wanted.len() {
                        return Ok(site);
                    }
                    if best.as_ref().is_none_or(|(most, _)| has > *most) {
                        best = Some((has, site));
                    }
                }
                Err(errno) if path == own && errno != Errno::ACCESS && errno != Errno::ROFS => {
                    return Err(NoSite::Own(errno));
                }
                Err(errno) if path == own => refusal = NoSite::NotOurs(errno),
                Err(_) => {}
            }
        }
        best.map(|(_, site)| site).ok_or(refusal)
    }

    fn at(path: &Path) -> Result<Self, Errno> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        let group = Group::open(&name)?;
        let ours = |name: &CStr, access| accessat(&group, name, access, AtFlags::EACCESS);
        ours(c".", Access::WRITE_OK | Access::EXEC_OK)?;
        // Whoever moves between two groups must be allowed to in the one that holds both.
        ours(c"cgroup.procs", Access::WRITE_OK)?;
        let mut buffer = [0; 512];
        let controllers = group.read(c"cgroup.subtree_control", &mut buffer);
        let controllers = String::from_utf8_lossy(controllers.unwrap_or_default())
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        Ok(Self {
            group,
            path: path.to_owned(),
            controllers,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Which controllers could bound a session.
    pub(crate) fn controllers(&self) -> &[String] {
        &self.controllers
    }

    fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|known| known == controller)
    }
}

/// Where the version 2 tree is mounted, and where our own group is in it.
fn own_group() -> Result<(PathBuf, PathBuf), NoSite> {
    let groups = procfs::whole("/proc/self/cgroup").map_err(|_| NoSite::NoTree)?;
    let own = cgroup::own_path(&groups).ok_or(NoSite::NoTree)?;
    let mounts;
    let (tree, below) = if let Some((tree, below)) = cgroup::usual_mount(own) {
        (PathBuf::from(os(tree.to_bytes())), below)
    } else {
        mounts = procfs::whole("/proc/self/mountinfo").map_err(|_| NoSite::NoTree)?;
        let (tree, below) = cgroup::mount(&mounts, own).ok_or(NoSite::NoTree)?;
        let tree: Vec<u8> = unescaped(tree.point).collect();
        (PathBuf::from(os(&tree)), below)
    };
    let own = if below.is_empty() {
        tree.clone()
    } else {
        tree.join(os(below))
    };
    Ok((tree, own))
}

fn os(bytes: &[u8]) -> &std::ffi::OsStr {
    std::ffi::OsStr::from_bytes(bytes)
}

/// Whether `memory.events` tells of processes that were ended because this group reached its bound.
/// Those that the whole machine, or a group above, had no memory for are counted as ended, too.
fn out_of_memory(events: &str) -> bool {
    let some = |name: &str| {
        let mut fields = events.lines().filter_map(|line| line.split_once(' '));
        let count = fields.find_map(|(key, count)| (key == name).then_some(count));
        count.is_some_and(|count| count.parse().is_ok_and(|count: u64| count > 0))
    };
    some("oom") && some("oom_kill")
}

/// A group, told from every other that ever has its name.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct GroupIdentity {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// The kernel's number for it, which is not used twice; zero until it is made.
    pub(crate) number: u64,
}

/// The group of a session. Dropping it ends whatever is in it and removes it.
#[derive(Debug)]
pub(crate) struct SessionGroup {
    site: Site,
    name: CString,
    group: Group,
    number: u64,
    removed: bool,
}

impl SessionGroup {
    /// A name for a group that nobody has.
    pub(crate) fn draw_name() -> Result<CString, Errno> {
        let mut random = [0; 8];
        fill_random(&mut random)?;
        let number = u64::from_ne_bytes(random);
        CString::new(format!("{PREFIX}{number:016x}")).map_err(|_| Errno::INVAL)
    }

    /// Makes it.
    pub(crate) fn create(site: Site, name: CString) -> Result<Self, Errno> {
        let group = site.group.create(&name)?;
        let number = files::identify(&group).map(|identity| identity.inode);
        let number = match number {
            Ok(number) => number,
            Err(errno) => {
                // Nothing of ours may stay.
                let _ = site.group.remove(&name);
                return Err(errno);
            }
        };
        Ok(Self {
            site,
            name,
            group,
            number,
            removed: false,
        })
    }

    /// One that is about to be made.
    pub(crate) fn planned(site: &Site, name: &CStr) -> GroupIdentity {
        GroupIdentity {
            path: site.path.join(os(name.to_bytes())),
            number: 0,
        }
    }

    /// Which one it is.
    pub(crate) fn identity(&self) -> GroupIdentity {
        GroupIdentity {
            path: self.site.path.join(os(self.name.to_bytes())),
            number: self.number,
        }
    }

    /// Opens a group that somebody left behind, if it is still that one.
    pub(crate) fn reopen(identity: &GroupIdentity) -> Result<Self, Errno> {
        let (Some(parent), Some(name)) = (identity.path.parent(), identity.path.file_name()) else {
            return Err(Errno::INVAL);
        };
        let site = Site::at(parent)?;
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        if !name.to_bytes().starts_with(PREFIX.as_bytes()) {
            return Err(Errno::INVAL);
        }
        let path = CString::new(identity.path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        let group = Group::open(&path)?;
        let number = files::identify(&group)?.inode;
        if identity.number == 0 {
            // It was never finished, so nothing of ours is in it: it goes if it is empty.
            let _ = site.group.remove(&name);
            return Err(Errno::NOENT);
        }
        if number != identity.number {
            return Err(Errno::STALE);
        }
        Ok(Self {
            site,
            name,
            group,
            number,
            removed: false,
        })
    }

    /// Whether a limit can be held here.
    pub(crate) fn can_bound(&self, limit: LimitName) -> bool {
        limit.controller().is_some_and(|name| self.site.has(name))
    }

    /// Bounds all that will be in it.
    pub(crate) fn bound(&self, limit: LimitName, bound: u64) -> Result<(), Errno> {
        let text = bound.to_string();
        match limit {
            LimitName::Memory => {
                self.group.write(c"memory.max", text.as_bytes())?;
                // Where nothing can be swapped there is no bound on swapping. The session ends whole
                // or not at all; before Linux 4.19 it could not be asked to.
                for (file, value) in [(c"memory.swap.max", b"0"), (c"memory.oom.group", b"1")] {
                    match self.group.write(file, value) {
                        Ok(()) | Err(Errno::NOENT) => {}
                        Err(errno) => return Err(errno),
                    }
                }
                Ok(())
            }
            LimitName::Processes => self.group.write(c"pids.max", text.as_bytes()),
            _ => Err(Errno::INVAL),
        }
    }

    /// Whether the kernel has ended something in it for reaching its own bound.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let mut buffer = [0; 512];
        let events = self.group.read(c"memory.events", &mut buffer);
        out_of_memory(&String::from_utf8_lossy(events.unwrap_or_default()))
    }

    /// Ends every process in it, and returns when none is left.
    ///
    /// # Errors
    ///
    /// [`Errno::TIMEDOUT`] if somebody is still there after `patience`.
    pub(crate) fn end(&self, patience: Duration) -> Result<(), Errno> {
        let until = Instant::now() + patience;
        match self.group.kill() {
            Ok(()) => {}
            // Before Linux 5.14, or removed meanwhile.
            Err(Errno::NOENT) => match self.end_one_by_one(until) {
                Err(Errno::NOENT | Errno::NODEV) => return Ok(()),
                other => other?,
            },
            Err(Errno::NODEV) => return Ok(()),
            Err(errno) => return Err(errno),
        }
        self.wait_until_empty(until)
    }

    /// Stops them all, so that nobody forks, and ends each; once more for those that were on
    /// their way in.
    fn end_one_by_one(&self, until: Instant) -> Result<(), Errno> {
        // A few at a time: descriptors are not without end.
        const AT_ONCE: usize = 64;
        self.group.freeze()?;
        while self.group.is_populated()? {
            for some in self.processes()?.chunks(AT_ONCE) {
                let held = some
                    .iter()
                    .map(|pid| (*pid, pidfd_open(*pid, PidfdFlags::empty())));
                let held: Vec<_> = held.collect();
                // A number may be somebody else's by now, unless it is still in here.
                let still = self.processes()?;
                for (pid, held) in held {
                    if let (true, Ok(held)) = (still.contains(&pid), held) {
                        let _ = pidfd_send_signal(&held, Signal::KILL);
                    }
                }
            }
            if Instant::now() > until {
                return Err(Errno::TIMEDOUT);
            }
        }
        Ok(())
    }

    /// The processes in it and below.
    pub(crate) fn processes(&self) -> Result<Vec<Pid>, Errno> {
        let mut found = Vec::new();
        members(self.group.as_fd(), &mut found)?;
        Ok(found)
    }

    fn wait_until_empty(&self, until: Instant) -> Result<(), Errno> {
        // Nobody is in a group that somebody else has removed.
        let gone = |errno| matches!(errno, Errno::NOENT | Errno::NODEV);
        let events = match self.group.events() {
            Err(errno) if gone(errno) => return Ok(()),
            other => other?,
        };
        loop {
            match self.group.is_populated() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(errno) if gone(errno) => return Ok(()),
                Err(errno) => return Err(errno),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Errno::TIMEDOUT);
            }
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Lets go of a group that somebody else will remove.
    pub(crate) fn leave(mut self) {
        self.removed = true;
    }

    /// Removes it, and whatever groups were made below it.
    pub(crate) fn remove(&mut self) -> Result<(), Errno> {
        if self.removed {
            return Ok(());
        }
        match self.site.group.remove(&self.name) {
            Err(Errno::BUSY | Errno::NOTEMPTY) => {
                remove_below(self.group.as_fd())?;
                self.site.group.remove(&self.name)?;
            }
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        self.removed = true;
        Ok(())
    }
}

impl AsFd for SessionGroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }
}

impl Drop for SessionGroup {
    fn drop(&mut self) {
        if self.remove().is_ok() {
            return;
        }
        // Whoever is in it has no business any more. What stays is found by the next start.
        let _ = self.end(Duration::from_secs(2));
        let _ = self.remove();
    }
}

fn members(group: BorrowedFd<'_>, found: &mut Vec<Pid>) -> Result<(), Errno> {
    let file = open_below(group, c"cgroup.procs", OpenFlags::RDONLY)?;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::fs::File::from(file), &mut text)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    // Zero stands for a process of another pid namespace.
    found.extend(
        text.lines()
            .filter_map(|line| Pid::from_raw(line.parse().ok()?)),
    );
    for below in directories(group)? {
        members(below.1.as_fd(), found)?;
    }
    Ok(())
}

fn remove_below(group: BorrowedFd<'_>) -> Result<(), Errno> {
    for (name, below) in directories(group)? {
        remove_below(below.as_fd())?;
        unlinkat(group, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

fn directories(group: BorrowedFd<'_>) -> Result<Vec<(CString, OwnedFd)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(group)? {
        let entry = entry?;
        let name = entry.file_name();
        let own = name == c"." || name == c"..";
        if entry.file_type() == FileType::Directory && !own {
            let flags = OpenFlags::RDONLY | OpenFlags::DIRECTORY;
            match open_below(group, name, flags) {
                Ok(below) => found.push((name.to_owned(), below)),
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(found)
}

fn open_below(group: BorrowedFd<'_>, name: &CStr, flags: OpenFlags) -> Result<OwnedFd, Errno> {
    let inside = Resolve::BENEATH | Resolve::NO_SYMLINKS | Resolve::NO_XDEV;
    files::openat2(group, name, flags, Mode::empty(), inside)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A group with two processes in it, one in a group below; `None` where none can be made.
    fn populated() -> Option<(SessionGroup, [Child; 2])> {
        let site = Site::find(&[]).ok()?;
        let group = SessionGroup::create(site, SessionGroup::draw_name().unwrap()).unwrap();
        let path = group.identity().path;
        std::fs::create_dir_all(path.join("below/deeper")).unwrap();
        let child = |at: &Path| {
            let child = Command::new("sleep").arg("60").spawn().unwrap();
            std::fs::write(at.join("cgroup.procs"), child.id().to_string()).unwrap();
            child
        };
        let children = [child(&path), child(&path.join("below/deeper"))];
        Some((group, children))
    }

    #[test]
    fn only_ones_own_bound_is_a_limit() {
        let own = "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n";
        assert!(out_of_memory(own));
        // Refused and nobody ended; ended for want of memory elsewhere; nothing said.
        assert!(!out_of_memory("max 12\noom 1\noom_kill 0\n"));
        assert!(!out_of_memory("max 0\noom 0\noom_kill 3\n"));
        assert!(!out_of_memory("oom_kill 3\n"));
        assert!(!out_of_memory(""));
    }

    #[test]
    fn a_group_ends_and_goes_with_all_below_it() {
        let Some((group, children)) = populated() else {
            return;
        };
        assert_eq!(group.processes().unwrap().len(), 2);
        let path = group.identity().path;
        drop(group);
        for mut child in children {
            assert!(!child.wait().unwrap().success());
        }
        assert!(!path.is_dir(), "{path:?}");
    }

    #[test]
    fn a_kernel_without_the_switch_ends_them_one_by_one() {
        let Some((group, children)) = populated() else {
            return;
        };
        let until = Instant::now() + Duration::from_mins(1);
        let reaper = std::thread::spawn(|| {
            for mut child in children {
                assert!(!child.wait().unwrap().success());
            }
        });
        group.end_one_by_one(until).unwrap();
        reaper.join().unwrap();
    }

    #[test]
    fn only_the_same_group_is_opened_again() {
        let Ok(site) = Site::find(&[]) else { return };
        let name = SessionGroup::draw_name().unwrap();
        let mut first = SessionGroup::create(site, name.clone()).unwrap();
        let identity = first.identity();
        assert_eq!(
            SessionGroup::reopen(&identity).unwrap().identity(),
            identity
        );
        // Dropping the one that was opened again has removed it; another takes its name.
        first.removed = true;
        let second = SessionGroup::create(Site::find(&[]).unwrap(), name).unwrap();
        assert_ne!(second.identity(), identity);
        assert_eq!(
            SessionGroup::reopen(&identity).err(),
            Some(Errno::STALE),
            "a name alone is nobody"
        );
    }
}
