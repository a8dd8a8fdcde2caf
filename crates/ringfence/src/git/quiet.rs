//! Which configurations are known to make git obey nothing.
//!
//! Nearly all do. The kernel changes a file's change time whenever it is written and lets nobody set
//! it, so a file with the same number and time says the same, and one that said nothing of
//! interest needs not be read again.
//!
//! There is one exception. Whoever has mapped a file into memory can go on writing it without another
//! time until the kernel writes it back, which takes half a minute. So only what has not changed for
//! much longer is remembered, and nothing on a file system that is never written back.

use std::cell::{Cell, RefCell};
use std::time::{Duration, SystemTime};

use ringfence_core::git::config::{self, Variable};
use ringfence_core::path::AbsPath;
use rustix::fs::Stat;

use super::Search;
use super::cache::{self, Memory, Stamp};

const MAGIC: &[u8; 16] = b"ringfence quiet1";

/// What is known of the configurations of a project's repositories.
#[derive(Debug)]
pub(super) struct Quiet {
    memory: Option<Memory>,
    project: AbsPath,
    /// The project's file system, whose times are believed.
    device: Option<u64>,
    begun: SystemTime,
    /// In order.
    known: Vec<Stamp>,
    /// Those that were found to be quiet this time, known or not.
    found: RefCell<Vec<Stamp>>,
    learnt: Cell<usize>,
}

impl Quiet {
    /// What was known after the last time. It is `begun` now.
    pub(super) fn recall(search: &Search, begun: SystemTime) -> Self {
        let memory = search.state.as_deref();
        let memory = memory
            .filter(|_| cache::writes_back(&search.project))
            .map(|state| Memory::new(state, "configurations"));
        let bytes = memory
            .as_ref()
            .and_then(|memory| memory.bytes(&search.project));
        let known = bytes.and_then(|bytes| from_bytes(&bytes, &search.project));
        let root = rustix::fs::lstat(search.project.as_path());
        Self {
            memory,
            project: search.project.clone(),
            device: root.ok().map(|status| Stamp::of(&status).device),
            begun,
            known: known.unwrap_or_default(),
            found: RefCell::default(),
            learnt: Cell::new(0),
        }
    }

    /// Whether a file is known to say nothing that git obeys. It need not be opened then.
    pub(super) fn knows(&self, path: &AbsPath) -> bool {
        if self.known.is_empty() {
            return false;
        }
        let Ok(status) = rustix::fs::lstat(path.as_path()) else {
            return false;
        };
        let stamp = Stamp::of(&status);
        let known = Some(stamp.device) == self.device && self.known.binary_search(&stamp).is_ok();
        if known {
            self.found.borrow_mut().push(stamp);
        }
        known
    }

    /// Takes note of what a file says that was read.
    pub(super) fn learn(&self, status: &Stat, variables: &[Variable]) {
        let stamp = Stamp::of(status);
        if variables.iter().all(is_quiet)
            && Some(stamp.device) == self.device
            && stamp.is_older_than(self.begun, OLD)
        {
            self.learnt.set(self.learnt.get() + 1);
            self.found.borrow_mut().push(stamp);
        }
    }

    /// Remembers it for the next time, if that is worth it.
    pub(super) fn keep(&self) {
        // As with trees: not for a handful of changes.
        if self.learnt.get() > WORTH_KEEPING + self.known.len() / 50
            && let Some(memory) = &self.memory
        {
            let found = self.found.borrow();
            memory.keep(&self.project, &to_bytes(&found, &self.project));
        }
    }
}

/// How long a file must have been as it is.
const OLD: Duration = Duration::from_hours(1);
/// So many more are read in a moment.
const WORTH_KEEPING: usize = 8;

/// Whether nothing follows from a variable, here or for other files.
fn is_quiet(variable: &Variable) -> bool {
    config::obeyed(&variable.key).is_none() && !config::is_about_more_files(&variable.key)
}

fn to_bytes(stamps: &[Stamp], project: &AbsPath) -> Vec<u8> {
    let mut stamps = stamps.to_vec();
    stamps.sort_unstable();
    stamps.dedup();
    let mut out = head(project);
    for stamp in stamps {
        stamp.put(&mut out);
    }
    out
}

/// What a file of ours begins with.
fn head(project: &AbsPath) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&config::GENERATION.to_le_bytes());
    cache::put_path(&mut out, project);
    out
}

/// `None` if these are no bytes of ours, or about another project.
fn from_bytes(bytes: &[u8], project: &AbsPath) -> Option<Vec<Stamp>> {
    let mut rest = bytes.strip_prefix(&head(project)[..])?;
    let mut stamps: Vec<Stamp> = Vec::with_capacity(rest.len() / Stamp::BYTES);
    while !rest.is_empty() {
        let stamp = Stamp::take(&mut rest)?;
        if stamps.last().is_some_and(|last| *last >= stamp) {
            return None;
        }
        stamps.push(stamp);
    }
    Some(stamps)
}

// Nothing is remembered elsewhere.
#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::{Finder, Reach, Remembered, WORTH_A_THREAD};
    use super::*;
    use crate::lookout::Lookout;
    use proptest::prelude::*;

    fn project() -> AbsPath {
        AbsPath::root().below("project")
    }

    fn stamps() -> impl Strategy<Value = Vec<Stamp>> {
        let stamp = any::<(u64, u64, i64, u32)>().prop_map(|(device, inode, seconds, nanos)| {
            let mut bytes = Vec::new();
            bytes.extend_from_slice(&device.to_le_bytes());
            bytes.extend_from_slice(&inode.to_le_bytes());
            bytes.extend_from_slice(&seconds.to_le_bytes());
            bytes.extend_from_slice(&nanos.to_le_bytes());
            Stamp::take(&mut &bytes[..]).unwrap()
        });
        proptest::collection::vec(stamp, 0..20)
    }

    /// A project with many repositories, all with the same configuration.
    struct World {
        _guard: tempfile::TempDir,
        search: Search,
    }

    const QUIET: &str = "[core]\n\tbare = false \n";
    const HARMFUL: &str = "[core]\n\thooksPath = h\n";
    const COUNT: usize = 2 * WORTH_A_THREAD;

    impl World {
        fn new(above: &str, text: &str) -> Self {
            let guard = tempfile::tempdir_in(above).unwrap();
            let root = AbsPath::parse(std::fs::canonicalize(guard.path()).unwrap()).unwrap();
            let mut search = Search::new(root.below("p"));
            search.state = Some(root.below("state").as_path().to_owned());
            let world = Self {
                _guard: guard,
                search,
            };
            for number in 0..COUNT {
                let config = world.config(number);
                std::fs::create_dir_all(config.parent().unwrap()).unwrap();
                std::fs::write(config, text).unwrap();
            }
            world
        }

        fn config(&self, number: usize) -> PathBuf {
            let path = format!("d{number}/.git/config");
            self.search.project.below(path).as_path().to_owned()
        }

        /// What is obeyed, in a start that takes place so much later.
        fn obeyed(&self, later: Duration) -> Vec<AbsPath> {
            let lookout = Lookout::new();
            let finder = Finder::new(&self.search, Reach::Tree, &lookout);
            let quiet = Quiet::recall(&self.search, SystemTime::now() + later);
            finder.quiet.set(quiet).unwrap();
            let found = finder.walked(Remembered::of(&self.search)).unwrap();
            let all = found.into_iter().flat_map(|found| found.obeyed);
            let mut all: Vec<AbsPath> = all.collect();
            all.sort();
            all
        }

        /// How many configurations are remembered.
        fn remembered(&self) -> usize {
            Quiet::recall(&self.search, SystemTime::now()).known.len()
        }
    }

    /// Written back sooner or later, unlike the temporary directory of many a machine.
    const ON_DISK: &str = "/var/tmp";
    const LATER: Duration = Duration::from_hours(2);

    /// What said nothing of interest is remembered, and what has changed since is read, however it was
    /// changed.
    #[test]
    fn a_configuration_that_changed_is_read_again() {
        let world = World::new(ON_DISK, QUIET);
        std::fs::remove_file(world.config(5)).unwrap();
        assert!(world.obeyed(LATER).is_empty());
        assert_eq!(world.remembered(), COUNT - 1);
        assert!(world.obeyed(LATER).is_empty());
        // As long as it was, and as old.
        let before = std::fs::metadata(world.config(1)).unwrap();
        assert_eq!(HARMFUL.len(), QUIET.len());
        std::fs::write(world.config(1), HARMFUL).unwrap();
        let file = std::fs::File::options().write(true).open(world.config(1));
        let modified = before.modified().unwrap();
        file.unwrap().set_modified(modified).unwrap();
        // Replaced by another file.
        let other = world.search.project.below("other");
        std::fs::write(other.as_path(), HARMFUL).unwrap();
        std::fs::rename(other.as_path(), world.config(2)).unwrap();
        // Longer, and one that is new.
        std::fs::write(world.config(3), format!("{QUIET}{HARMFUL}")).unwrap();
        std::fs::write(world.config(5), HARMFUL).unwrap();
        let hooks = [1, 2, 3, 5].map(|number| world.search.project.below(format!("d{number}/h")));
        // The second time, too: what is harmful is never remembered.
        for _ in 0..2 {
            assert_eq!(world.obeyed(LATER), hooks);
        }
    }

    /// A file that is mapped somewhere can be written without another time for a while.
    #[test]
    fn what_may_still_be_written_unnoticed_is_not_remembered() {
        let young = World::new(ON_DISK, QUIET);
        assert!(young.obeyed(Duration::from_mins(59)).is_empty());
        assert_eq!(young.remembered(), 0, "it changed within an hour");
        assert!(young.obeyed(LATER).is_empty());
        assert_eq!(young.remembered(), COUNT);
        let in_memory = World::new("/dev/shm", QUIET);
        assert!(in_memory.obeyed(LATER).is_empty());
        assert_eq!(in_memory.remembered(), 0, "it is never written back");
    }

    /// What is remembered is what is believed: so it matters that only quiet ones are.
    #[test]
    fn a_file_that_is_known_is_not_read_again() {
        let world = World::new(ON_DISK, HARMFUL);
        assert_eq!(world.obeyed(LATER).len(), COUNT);
        assert_eq!(world.remembered(), 0);
        let stamps: Vec<Stamp> = (0..COUNT)
            .map(|number| Stamp::of(&rustix::fs::lstat(world.config(number)).unwrap()))
            .collect();
        let project = &world.search.project;
        let memory = Memory::new(world.search.state.as_deref().unwrap(), "configurations");
        memory.keep(project, &to_bytes(&stamps, project));
        assert_eq!(world.obeyed(LATER).len(), 0, "none was read");
        std::fs::write(world.config(3), HARMFUL).unwrap();
        let written = world.obeyed(LATER);
        assert_eq!(written.len(), 1, "it is another one");
    }

    proptest! {
        #[test]
        fn what_is_kept_comes_back_for_its_own_project_only(stamps in stamps()) {
            let bytes = to_bytes(&stamps, &project());
            let mut sorted = stamps;
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(from_bytes(&bytes, &project()), Some(sorted));
            prop_assert_eq!(from_bytes(&bytes, &AbsPath::root().below("other")), None);
        }

        #[test]
        fn damaged_bytes_are_in_order_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut whole = head(&project());
            whole.extend_from_slice(&bytes);
            if let Some(stamps) = from_bytes(&whole, &project()) {
                prop_assert!(stamps.is_sorted());
            }
        }
    }
}
