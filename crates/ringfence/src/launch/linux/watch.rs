//! How a supervisor learns that something has appeared where a protected name is.
//!
//! The kernel tells a listener at once. But letting go of a listener takes it some 15 ms, which is
//! longer than many a command; and a user can have only so many of them
//! (`fs.inotify.max_user_instances`, often 128) on only so many directories, and none on a directory
//! that may be written and not read. Whoever has none looks at the names again and again, and a
//! session has none until it has shown that it is a long one. Looks become seldom while nothing stirs:
//! what waits must cost next to nothing, or a few hundred sessions that wait take the whole machine.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};
use ringfence_sys::Errno;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::time::{ClockId, clock_gettime};

use super::guard::folded;
use super::names::{AtStart, Name};

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
            directories: HashMap::default(),
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
        let mut known: HashSet<&Path> = HashSet::default();
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
                    // Mounts that go are told of all the same.
                    Err(_) if name.at_start == AtStart::Hidden => break,
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
/// While something that was let through may still be on its way, or nobody else would tell.
const OFTEN: Duration = Duration::from_millis(10);
/// While only the host can make anything, and did not for a while. A look wakes a processor, and there
/// may be hundreds of sessions that do nothing but wait.
const SELDOM: Duration = Duration::from_millis(100);
/// Looking takes no more than this part of a processor, however many names there are.
const SHARE: u32 = 20;
/// A session that has been watched for so long is worth a listener; and how often it is tried again
/// whether somebody has let go of one.
const LONG: Duration = Duration::from_secs(1);

/// What a look leaves to be afraid of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mood {
    /// Nothing inside can make a name unless it asks first, and a host that puts something in the place of
    /// one is told of.
    Calm,
    /// Something may be made of which only a look would tell.
    Uneasy,
}

/// When to look at the names next.
#[derive(Debug)]
pub(super) struct Looking {
    last: Instant,
    took: Duration,
    /// How long to wait while nothing stirs.
    pause: Duration,
    /// When to try to have somebody listen.
    listen: Instant,
    /// Whether nobody could. Until that is known nobody is calm: a host that moves a name away first takes
    /// its mount along, which nobody tells of.
    unheard: bool,
    /// Whether something was let through since the last look.
    stirred: bool,
}

impl Looking {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            last: now,
            took: Duration::ZERO,
            pause: Duration::ZERO,
            listen: now + LONG,
            unheard: false,
            stirred: false,
        }
    }

    /// A call was let through that makes something.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// The host did something: it may do more.
    pub(super) fn rouse(&mut self) {
        self.pause = Duration::ZERO;
    }

    /// How long until the next look.
    pub(super) fn due(&self) -> Duration {
        self.pace().saturating_sub(self.last.elapsed())
    }

    fn pace(&self) -> Duration {
        let pace = if self.stirred { SOON } else { self.pause };
        pace.max(self.took.saturating_mul(SHARE))
    }

    /// Whether it is time to try to have somebody listen; then it counts as tried.
    pub(super) fn should_listen(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.listen;
        if due {
            self.listen = now + LONG;
            // Or it is not asked again.
            self.unheard = true;
        }
        due
    }

    /// A look is over that began when this thread had [`worked`] so long.
    pub(super) fn looked(&mut self, began: Duration, mood: Mood) {
        self.last = Instant::now();
        self.took = worked().saturating_sub(began);
        self.stirred = false;
        self.pause = match mood {
            Mood::Calm if self.unheard => self.pause.saturating_mul(2).clamp(OFTEN, SELDOM),
            Mood::Calm | Mood::Uneasy => OFTEN,
        };
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

    /// How often somebody looks in a minute in which nothing happens.
    fn looks_in_a_minute(mood: Mood, unheard: bool) -> usize {
        let mut looking = Looking::new();
        looking.unheard = unheard;
        let (mut looks, mut passed) = (0, Duration::ZERO);
        while passed < Duration::from_mins(1) {
            looks += 1;
            looking.looked(worked(), mood);
            looking.took = Duration::ZERO;
            passed += looking.pace();
        }
        looks
    }

    #[test]
    fn a_session_in_which_nothing_stirs_is_looked_at_seldom() {
        let looks = looks_in_a_minute(Mood::Calm, true);
        assert!((595..=610).contains(&looks), "{looks}");
        // A long calm is over at once.
        let mut looking = Looking::new();
        looking.unheard = true;
        let look = |looking: &mut Looking, mood| {
            looking.looked(worked(), mood);
            looking.took = Duration::ZERO;
            looking.pace().as_millis()
        };
        let calm = [(); 7].map(|()| look(&mut looking, Mood::Calm));
        assert_eq!(calm, [10, 20, 40, 80, 100, 100, 100]);
        looking.stir();
        assert_eq!(looking.pace(), SOON);
        assert_eq!(look(&mut looking, Mood::Uneasy), 10);
        assert_eq!(look(&mut looking, Mood::Calm), 20);
        looking.rouse();
        assert_eq!(look(&mut looking, Mood::Calm), 10);
    }

    #[test]
    fn where_only_a_look_would_tell_nobody_waits_longer() {
        assert_eq!(looks_in_a_minute(Mood::Uneasy, true), 6000);
        // Nor where somebody may listen soon.
        assert_eq!(looks_in_a_minute(Mood::Calm, false), 6000);
    }

    #[test]
    fn looking_is_quicker_after_a_call_and_never_takes_the_whole_processor() {
        let mut looking = Looking::new();
        looking.looked(worked(), Mood::Uneasy);
        looking.took = Duration::ZERO;
        assert_eq!(looking.pace(), OFTEN);
        looking.stir();
        assert_eq!(looking.pace(), SOON);
        looking.took = Duration::from_millis(3);
        assert_eq!(looking.pace(), Duration::from_millis(60));
        looking.looked(worked(), Mood::Uneasy);
        assert!(!looking.stirred);
    }
}
