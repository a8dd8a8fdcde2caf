//! How a supervisor learns that something has appeared where a protected name is.
//!
//! The kernel tells a listener at once. But letting go of a listener takes it some 15 ms, which is
//! longer than many a command; and a user can have only so many of them
//! (`fs.inotify.max_user_instances`, often 128) on only so many directories, and none on a directory
//! that may be written and not read. Whoever has none looks at the names again and again, and a
//! session has none until it has shown that it is a long one.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringfence_sys::Errno;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::time::{ClockId, clock_gettime};

use super::guard::folded;
use super::names::Name;

/// How a session's names are watched.
#[derive(Debug)]
pub(super) enum Watch {
    /// The kernel tells.
    Listening(Listener),
    /// Somebody has to look.
    Looking(Looking),
}

impl Watch {
    /// Listens, if that is possible.
    pub(super) fn listening(names: &[Name]) -> Self {
        Listener::new(names).map_or_else(|_| Self::looking(), Self::Listening)
    }

    /// Looks, as long as listening is not worth it or not possible.
    pub(super) fn looking() -> Self {
        Self::Looking(Looking::new())
    }
}

/// Hears of what is made in the directories that protected names are in.
#[derive(Debug)]
pub(super) struct Listener {
    inotify: OwnedFd,
    directories: HashMap<i32, PathBuf>,
}

impl Listener {
    /// Listens for these names.
    ///
    /// # Errors
    ///
    /// Not all of them can be heard of.
    pub(super) fn new(names: &[Name]) -> Result<Self, Errno> {
        let mut listener = Self {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            directories: HashMap::new(),
        };
        listener.follow(names)?;
        Ok(listener)
    }

    /// Listens at every directory above each name that can be replaced, and at the nearest one that
    /// is there.
    ///
    /// # Errors
    ///
    /// Not all of them can be heard of.
    pub(super) fn follow(&mut self, names: &[Name]) -> Result<(), Errno> {
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        let mut known: HashSet<&Path> = HashSet::new();
        for name in names {
            for directory in name.path.ancestors().skip(1) {
                if known.contains(directory) {
                    break;
                }
                match inotify::add_watch(&self.inotify, directory, flags) {
                    Ok(number) => {
                        self.directories.insert(number, directory.to_owned());
                        known.insert(directory);
                        if directory == name.within {
                            break;
                        }
                    }
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(errno) => return Err(errno),
                }
            }
        }
        Ok(())
    }

    /// Which of the names may have appeared, by their indices.
    pub(super) fn heard(&self, names: &[Name]) -> Vec<usize> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut heard = Vec::new();
        while let Ok(event) = reader.next() {
            let all = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let directory = self.directories.get(&event.wd());
            let path = directory.zip(event.file_name()).map(|(directory, name)| {
                let name = folded(name.to_bytes());
                (directory, name)
            });
            for (index, name) in names.iter().enumerate() {
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
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// After a call was let through that makes something.
const SOON: Duration = Duration::from_millis(1);
/// While only the host can make anything.
const OFTEN: Duration = Duration::from_millis(10);
/// Looking takes no more than this part of a processor, however many names there are.
const SHARE: u32 = 20;
/// A session that has been watched for so long is worth a listener; and how often it is tried again
/// whether somebody has let go of one.
const LONG: Duration = Duration::from_secs(1);

/// When to look at the names next.
#[derive(Debug)]
pub(super) struct Looking {
    last: Instant,
    took: Duration,
    /// When to try to have somebody listen.
    listen: Instant,
    /// Whether something was let through since the last look.
    stirred: bool,
}

impl Looking {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            last: now,
            took: Duration::ZERO,
            listen: now + LONG,
            stirred: false,
        }
    }

    /// A call was let through that makes something.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// How long until the next look.
    pub(super) fn due(&self) -> Duration {
        self.pace().saturating_sub(self.last.elapsed())
    }

    fn pace(&self) -> Duration {
        let pace = if self.stirred { SOON } else { OFTEN };
        pace.max(self.took.saturating_mul(SHARE))
    }

    /// Whether it is time to try to have somebody listen; then it counts as tried.
    pub(super) fn should_listen(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.listen;
        if due {
            self.listen = now + LONG;
        }
        due
    }

    /// A look is over that began when this thread had [`worked`] so long.
    pub(super) fn looked(&mut self, began: Duration) {
        self.last = Instant::now();
        self.took = worked().saturating_sub(began);
        self.stirred = false;
    }
}

/// How long this thread has worked: on a busy machine it waits much longer than that.
pub(super) fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_is_quicker_after_a_call_and_never_takes_the_whole_processor() {
        let mut looking = Looking::new();
        assert_eq!(looking.pace(), OFTEN);
        looking.stir();
        assert_eq!(looking.pace(), SOON);
        looking.took = Duration::from_millis(3);
        assert_eq!(looking.pace(), Duration::from_millis(60));
        looking.looked(worked());
        assert!(!looking.stirred);
    }
}
