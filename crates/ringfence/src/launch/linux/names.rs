//! The protected names of a session, watched while it runs.
//!
//! What exists is mounted over, and [`super::guard`] refuses calls that would make what does not.
//! Three things are left, and all of them show as a name that appears in a directory: a call that
//! was exchanged after the guard had looked, a host that replaces what is mounted over (which takes
//! the mount away), and a host that makes a protected name itself. So the directories are watched.
//!
//! What the session made is put aside at once, and the session is over: whoever races with the
//! guard is hostile. What the host made gets its mount, as it would have had at the start; where
//! that cannot be done the session is over, too.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_core::path::AbsPath;
use ringfence_core::plan::{Act, Mount, MountKind, Plan, Step};
use ringfence_core::policy::{Access, Policy};
use ringfence_sys::Errno;
use ringfence_sys::files;
use rustix::fs::FileType;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::aside::put_aside;
use super::cover::{self, Session};
use super::guard::{Guard, Makes, folded};
use crate::launch::{LaunchError, NameFound};

/// A command that has ended by then is short.
const SHORT: Duration = Duration::from_millis(20);

/// How often a name is mounted over before the session is given up.
const MOST_TRIES: usize = 8;

/// A protected name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Name {
    pub(super) path: PathBuf,
    /// What may be done with it once it is there.
    pub(super) access: Access,
    pub(super) at_start: AtStart,
}

/// Whether something stood there when the session started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AtStart {
    Absent,
    Mounted,
}

/// The protected names of a plan.
///
/// # Errors
///
/// A link that leads nowhere looks like nothing until the session makes what it leads to. It is
/// somebody else's, so it cannot be put aside afterwards either.
pub(super) fn of_plan(
    policy: &Policy,
    plan: &Plan,
    without: Option<Step>,
) -> Result<Vec<Name>, LaunchError> {
    let mut names = Vec::new();
    if without == Some(Step::Names) {
        return Ok(names);
    }
    for act in plan.acts() {
        match act {
            Act::Names { absent } => {
                for name in absent {
                    if std::fs::symlink_metadata(name.as_path()).is_ok() {
                        return Err(LaunchError::Prepare {
                            what: format!("protect {name}, from where a link leads to nothing"),
                            source: io::ErrorKind::AlreadyExists.into(),
                        });
                    }
                    names.push(named(policy, name, AtStart::Absent));
                }
            }
            Act::Root { mounts, .. } if without != Some(Step::Root) => {
                let kinds: HashMap<&Path, &MountKind> = mounts
                    .iter()
                    .map(|mount| (mount.at.as_path(), &mount.kind))
                    .collect();
                let inside = mounts
                    .iter()
                    .filter(|mount| is_inside_a_grant(mount, &kinds));
                names.extend(inside.map(|mount| named(policy, &mount.at, AtStart::Mounted)));
            }
            _ => {}
        }
    }
    Ok(names)
}

fn named(policy: &Policy, path: &AbsPath, at_start: AtStart) -> Name {
    Name {
        path: path.as_path().to_owned(),
        access: policy.files().access(path).access,
        at_start,
    }
}

/// Whether a mount takes something away inside one that may be written.
fn is_inside_a_grant(mount: &Mount, kinds: &HashMap<&Path, &MountKind>) -> bool {
    let narrow = match mount.kind {
        MountKind::Mask { .. } => true,
        MountKind::Bind { access } => access != Access::Write,
        _ => false,
    };
    let mut above = mount.at.as_path().ancestors().skip(1);
    let around = above.find_map(|directory| kinds.get(directory));
    let written = around.is_some_and(|around| {
        matches!(
            around,
            MountKind::Bind {
                access: Access::Write
            }
        )
    });
    narrow && written
}

/// What a look at the names found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Holds {
    /// The session must end.
    No,
    /// Every name is as it should be.
    Yes,
}

/// Watches the names of one session.
#[derive(Debug)]
pub(super) struct Names {
    all: Vec<Name>,
    /// Where the session is, if it said so.
    session: Option<Session>,
    watch: Option<Watch>,
    /// What was put aside.
    found: Vec<NameFound>,
    /// Names that the host made, and that were mounted over then.
    covered: Vec<PathBuf>,
}

#[derive(Debug)]
struct Watch {
    inotify: OwnedFd,
    directories: HashMap<i32, PathBuf>,
}

impl Names {
    pub(super) fn new(names: Vec<Name>) -> Self {
        Self {
            all: names,
            session: None,
            watch: None,
            found: Vec::new(),
            covered: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The names in a form that the guard can ask.
    pub(super) fn guard(&self, session: &Session) -> Result<Guard, Errno> {
        let root = files::pin(session.root.as_fd(), c".")?;
        let names = self.all.iter().map(|name| name.path.clone());
        Ok(Guard::new(names, root))
    }

    /// Says where the session is.
    pub(super) fn hold(&mut self, session: Option<Session>) {
        self.session = session;
    }

    /// How long until the names have to be watched, if they are not yet.
    ///
    /// Nothing can be made inside before the first call is answered, so until then only the host
    /// can, and a look at the names when listening begins finds what it did. Letting go of a watch
    /// takes the kernel longer than a short command takes altogether, so that one has none.
    pub(super) fn unwatched(&self, since: Duration) -> Option<Duration> {
        let waits = self.watch.is_none() && !self.all.is_empty();
        waits.then(|| SHORT.saturating_sub(since))
    }

    /// Listens from now on, and looks at every name once.
    pub(super) fn watch(&mut self, guard: Option<&Guard>) -> Holds {
        if self.watch.is_some() || self.all.is_empty() {
            return Holds::Yes;
        }
        let Ok(inotify) = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) else {
            return Holds::No;
        };
        self.watch = Some(Watch {
            inotify,
            directories: HashMap::new(),
        });
        self.check(guard)
    }

    /// Watches the nearest directory that is there, above each name.
    fn add_directories(&mut self) -> Result<(), Errno> {
        let Some(watch) = &mut self.watch else {
            return Ok(());
        };
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        let mut known: HashSet<&Path> = HashSet::new();
        for name in &self.all {
            for directory in name.path.ancestors().skip(1) {
                if known.contains(directory) {
                    break;
                }
                match inotify::add_watch(&watch.inotify, directory, flags) {
                    Ok(number) => {
                        watch.directories.insert(number, directory.to_owned());
                        known.insert(directory);
                        break;
                    }
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    // What cannot be seen cannot be written either.
                    Err(Errno::ACCESS) => break,
                    Err(errno) => return Err(errno),
                }
            }
        }
        Ok(())
    }

    /// Hears what has appeared; `guard` knows what the session could have made.
    pub(super) fn hear(&mut self, guard: Option<&Guard>) -> Holds {
        let heard = self.heard();
        // First those that were named: until they are out of the way somebody may obey them.
        for index in &heard {
            if let Some(name) = self.all.get(*index).cloned()
                && self.appeared(&name, guard) == Holds::No
            {
                return Holds::No;
            }
        }
        if heard.is_empty() {
            Holds::Yes
        } else {
            self.check(guard)
        }
    }

    /// The names that may have appeared.
    fn heard(&self) -> Vec<usize> {
        let Some(watch) = &self.watch else {
            return Vec::new();
        };
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&watch.inotify, &mut buffer);
        let mut heard = Vec::new();
        while let Ok(event) = reader.next() {
            let all = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let directory = watch.directories.get(&event.wd());
            let path = directory.zip(event.file_name()).map(|(directory, name)| {
                let name = folded(name.to_bytes());
                (directory, name)
            });
            for (index, name) in self.all.iter().enumerate() {
                let concerned = path.as_ref().is_some_and(|(directory, appeared)| {
                    let rest = name.path.strip_prefix(directory);
                    let next = rest.ok().and_then(|rest| rest.iter().next());
                    next.is_some_and(|next| folded(next.as_bytes()) == *appeared)
                });
                if (all || concerned) && !heard.contains(&index) {
                    heard.push(index);
                }
            }
        }
        heard
    }

    /// Looks at every name.
    pub(super) fn check(&mut self, guard: Option<&Guard>) -> Holds {
        if self.add_directories().is_err() {
            return Holds::No;
        }
        let mut holds = Holds::Yes;
        for index in 0..self.all.len() {
            let Some(name) = self.all.get(index).cloned() else {
                continue;
            };
            if self.appeared(&name, guard) == Holds::No {
                holds = Holds::No;
            }
        }
        holds
    }

    fn appeared(&mut self, name: &Name, guard: Option<&Guard>) -> Holds {
        let Ok(status) = rustix::fs::lstat(&name.path) else {
            return Holds::Yes;
        };
        let (Some(guard), Some(session)) = (guard, self.session.as_ref()) else {
            // Nobody was asked before it was made, so whoever made it need not be hostile.
            if name.at_start == AtStart::Absent {
                self.found.extend(put_aside(&name.path));
            }
            return Holds::Yes;
        };
        if session.is_covered(&name.path) {
            return Holds::Yes;
        }
        let kind = FileType::from_raw_mode(status.st_mode);
        let makes: &[Makes] = match kind {
            FileType::Directory => &[Makes::Directory, Makes::Moved],
            FileType::RegularFile => &[Makes::File, Makes::Moved, Makes::Other],
            _ => &[Makes::Moved, Makes::Other],
        };
        // A mount point cannot be replaced from inside: whoever took the mount away was the host.
        if name.at_start == AtStart::Absent && guard.may_have_made(makes) {
            self.found.extend(put_aside(&name.path));
            return Holds::No;
        }
        // The host may be replacing it once more at this very moment.
        for _ in 0..MOST_TRIES {
            let covered = cover::mount(session, &name.path, name.access);
            if session.is_covered(&name.path) {
                if !self.covered.contains(&name.path) {
                    self.covered.push(name.path.clone());
                }
                return Holds::Yes;
            }
            if covered == Err(Errno::NOENT) && rustix::fs::lstat(&name.path).is_err() {
                return Holds::Yes;
            }
        }
        Holds::No
    }

    /// The last look, when nothing of the session is left.
    pub(super) fn finish(&mut self) -> Vec<NameFound> {
        let mut found = std::mem::take(&mut self.found);
        if self.watch.is_none() {
            // No call that makes anything was ever answered: whatever is there is the host's.
            return found;
        }
        for name in &self.all {
            if name.at_start == AtStart::Absent && !self.covered.contains(&name.path) {
                found.extend(put_aside(&name.path));
            }
        }
        found
    }

    /// Readable when something appeared that may concern a name.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.watch.as_ref()?.inotify.as_fd())
    }
}
