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
    /// What was known after the last time.
    pub(super) fn recall(search: &Search) -> Self {
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
            begun: SystemTime::now(),
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

/// How long a file must have been as it is. No change time can be set by a test, so there it is short.
const OLD: Duration = if cfg!(test) {
    Duration::from_millis(50)
} else {
    Duration::from_hours(1)
};
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

#[cfg(test)]
mod tests {
    use super::super::{Reach, WORTH_A_THREAD, find};
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

    /// What is remembered is what is believed: so it matters that only quiet ones are.
    #[test]
    fn a_file_that_is_known_is_not_read_again() {
        let guard = tempfile::tempdir().unwrap();
        let root = AbsPath::parse(std::fs::canonicalize(guard.path()).unwrap()).unwrap();
        let mut search = Search::new(root.below("p"));
        search.state = Some(root.below("state").as_path().to_owned());
        let count = WORTH_A_THREAD;
        let config = |number: usize| root.below(format!("p/d{number}/.git/config"));
        for number in 0..count {
            let directory = config(number).parent().unwrap();
            std::fs::create_dir_all(directory.as_path()).unwrap();
            std::fs::write(config(number).as_path(), "[core]\n\thooksPath = h\n").unwrap();
        }
        let obeyed = || {
            let found = find(&search, Reach::Tree, &Lookout::new()).unwrap();
            let all = found.iter().map(|found| found.obeyed.len());
            all.sum::<usize>()
        };
        assert_eq!(obeyed(), count);
        let stamps: Vec<Stamp> = (0..count)
            .map(|number| Stamp::of(&rustix::fs::lstat(config(number).as_path()).unwrap()))
            .collect();
        let memory = Memory::new(root.below("state").as_path(), "configurations");
        memory.keep(&search.project, &to_bytes(&stamps, &search.project));
        assert_eq!(obeyed(), 0, "none was read");
        let text = std::fs::read(config(3).as_path()).unwrap();
        std::fs::write(config(3).as_path(), text).unwrap();
        assert_eq!(obeyed(), 1, "written once more, it is another one");
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
