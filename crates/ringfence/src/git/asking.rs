//! Asking the directories of a remembered tree whether they are as they were.
//!
//! Whoever has time asks the next few. Whoever wants the answer asks the rest, and once more those
//! that somebody else has begun with and not ended: nobody is ever waited for, so it does not matter
//! when a thread that only helps gets its turn, or whether it gets any.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use ringfence_core::path::AbsPath;
use rustix::fs::AtFlags;

use super::cache::{Paths, Stamp, Tree};
use super::reading;
use super::scan::{Incomplete, Place, What};

/// From this many on, directories are asked by several threads.
const WORTH_THREADS: usize = 2048;
/// So many are asked by one of them at a time.
const A_FEW: usize = 32;

/// Nobody has asked, or somebody has and does not know yet. Of two answers the higher one counts.
const UNKNOWN: u8 = 0;
const AS_IT_WAS: u8 = 1;
const CHANGED: u8 = 2;

/// A remembered tree, and what is known of its directories now.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) root: OwnedFd,
    pub(super) tree: Tree,
    paths: Paths,
    answers: Vec<AtomicU8>,
    /// The first that nobody has begun with.
    next: AtomicUsize,
}

impl Asking {
    pub(super) fn new(root: &AbsPath, tree: Tree) -> Result<Self, Incomplete> {
        let root = reading::directory(root).map_err(|_| Incomplete::Unreadable)?;
        let paths = tree.paths();
        let answers = paths.iter().map(|_| AtomicU8::new(UNKNOWN)).collect();
        Ok(Self {
            root,
            tree,
            paths,
            answers,
            next: AtomicUsize::new(0),
        })
    }

    /// What there was in the tree when it was last walked.
    pub(super) fn presumed(&self) -> Vec<Place> {
        let nodes = self.tree.nodes.iter().zip(self.paths.iter());
        nodes
            .filter(|(node, _)| node.what != What::Plain)
            .map(|(node, path)| Place {
                directory: path.to_owned(),
                what: node.what,
            })
            .collect()
    }

    /// Asks as long as there is somebody to ask.
    pub(super) fn help(&self) {
        // Each takes the next few: the one that has to share its processor takes fewer.
        while let Some(first) = self.begin() {
            self.ask(first, A_FEW);
        }
    }

    /// The first of a few that nobody has begun with.
    fn begin(&self) -> Option<usize> {
        let first = self.next.fetch_add(A_FEW, Ordering::Relaxed);
        (first < self.answers.len()).then_some(first)
    }

    /// Asks those that have not answered yet, of so many from the first on.
    fn ask(&self, first: usize, many: usize) {
        let nodes = self.tree.nodes.iter().zip(&self.answers).skip(first);
        for ((node, answer), path) in nodes.zip(self.paths.from(first)).take(many) {
            if answer.load(Ordering::Acquire) != UNKNOWN {
                continue;
            }
            let same = node.stamp != Stamp::default() && now(&self.root, path) == Some(node.stamp);
            let said = if same { AS_IT_WAS } else { CHANGED };
            // Two may ask the same one: whoever has seen a change is right.
            answer.fetch_max(said, Ordering::AcqRel);
        }
    }

    /// Asks all, with the help of other threads where that is worth it.
    pub(super) fn ask_all(&self) {
        // A thread that only waits for others is made ready for that first, at a price.
        if self.answers.len() >= WORTH_THREADS {
            std::thread::scope(|scope| {
                for _ in 1..processors().min(4) {
                    scope.spawn(|| self.help());
                }
                self.help();
            });
        }
        self.ask_the_rest();
    }

    /// Asks all that have not answered, whoever has begun with them.
    pub(super) fn ask_the_rest(&self) {
        self.help();
        self.ask(0, self.answers.len());
    }

    /// Which directories have neither changed nor been exchanged. One that was not asked has changed.
    ///
    /// Each is asked by its whole path. Should a directory on the way have become a link, then the one
    /// above it has changed, and nothing below that is believed.
    pub(super) fn is_as_it_was(&self, index: u32) -> bool {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let answer = self.answers.get(index);
        answer.is_some_and(|answer| answer.load(Ordering::Acquire) == AS_IT_WAS)
    }

    /// Whether there is a tree, and all of it is as it was.
    pub(super) fn all_as_they_were(&self) -> bool {
        let mut answers = self.answers.iter();
        !self.answers.is_empty()
            && answers.all(|answer| answer.load(Ordering::Acquire) == AS_IT_WAS)
    }
}

#[cfg(target_os = "linux")]
fn processors() -> usize {
    // The standard library would read a dozen files about quotas first.
    let all = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    usize::try_from(all).unwrap_or(1)
}

#[cfg(not(target_os = "linux"))]
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a directory below the root is now.
pub(super) fn now(root: &OwnedFd, path: &Path) -> Option<Stamp> {
    let status = if path.as_os_str().is_empty() {
        rustix::fs::fstat(root)
    } else {
        rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW)
    };
    status.ok().map(|status| Stamp::of(&status))
}

#[cfg(test)]
mod tests {
    use super::super::scan::{self, Changed};
    use super::*;

    /// More directories than are asked at a time, and what is remembered of them.
    fn remembered() -> (tempfile::TempDir, AbsPath, Tree) {
        let guard = tempfile::tempdir().unwrap();
        let root = AbsPath::parse(std::fs::canonicalize(guard.path()).unwrap()).unwrap();
        for number in 0..3 * A_FEW {
            std::fs::create_dir_all(root.below(format!("d{number}")).as_path()).unwrap();
        }
        std::fs::create_dir(root.below("d1/.git").as_path()).unwrap();
        // Nothing can change again within the same tick.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let (_, _, tree) = scan::walk(&root, None).unwrap();
        (guard, root, tree)
    }

    #[test]
    fn what_a_helper_has_begun_with_and_not_ended_is_asked() {
        let (_guard, root, tree) = remembered();
        let asking = Asking::new(&root, tree).unwrap();
        assert_eq!(asking.begin(), Some(0));
        assert_eq!(asking.begin(), Some(A_FEW));
        asking.help();
        assert!(!asking.all_as_they_were(), "two parts were not asked");
        asking.ask_the_rest();
        assert!(asking.all_as_they_were());
    }

    #[test]
    fn what_has_changed_is_found_whoever_has_begun_with_it() {
        let (_guard, root, tree) = remembered();
        let asking = Asking::new(&root, tree).unwrap();
        while asking.begin().is_some() {}
        std::fs::create_dir(root.below("d2/.git").as_path()).unwrap();
        asking.ask_the_rest();
        assert!(!asking.all_as_they_were());
        let (mut places, Changed(listed), _) = scan::walk_on(&root, &asking).unwrap();
        assert_eq!(listed, 1);
        places.sort_by(|a, b| a.directory.cmp(&b.directory));
        let found: Vec<&Path> = places
            .iter()
            .map(|place| place.directory.as_path())
            .collect();
        assert_eq!(found, [Path::new("d1"), Path::new("d2")]);
    }

    #[test]
    fn one_that_was_not_asked_is_not_believed() {
        let (_guard, root, tree) = remembered();
        let many = tree.nodes.len();
        let asking = Asking::new(&root, tree).unwrap();
        let (_, Changed(listed), _) = scan::walk_on(&root, &asking).unwrap();
        assert_eq!(listed, many);
    }

    #[test]
    fn several_ask_each_once_and_all_of_them() {
        let (_guard, root, tree) = remembered();
        let asking = Asking::new(&root, tree).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| asking.help());
            scope.spawn(|| asking.help());
        });
        assert!(asking.all_as_they_were(), "nothing is left");
        assert!(Asking::new(&root, Tree::default()).is_ok_and(|none| !none.all_as_they_were()));
    }
}
