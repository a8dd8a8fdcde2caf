//! Finding repositories while a large tree is still walked.

use std::collections::HashSet;
use std::thread::JoinHandle;

use ringfence_core::git::Repository;

use super::cache::{Memory, Tree};
use super::scan::{self, Changed, Place};
use super::{Finder, Reach, Search, Unsearchable};
use crate::lookout::Lookout;

/// From this many repositories on they are read beside the walk.
pub(super) const WORTH_A_THREAD: usize = 16;
/// Trees below this size are walked faster than their memory is read.
const WORTH_REMEMBERING: usize = 64;

/// Finds repositories.
///
/// # Errors
///
/// If the tree is too large to be walked whole, or its root cannot be listed.
pub fn find(
    search: &Search,
    reach: Reach,
    lookout: &Lookout,
) -> Result<Vec<Repository>, Unsearchable> {
    find_then(search, reach, lookout, |found| found)
}

/// Finds repositories and makes something of them.
///
/// Where a large tree is remembered, `make` is given what was there the last time while the tree is
/// still walked. If the walk then finds anything else, what was made is dropped and made once more:
/// nothing that is returned was made of anything but what is there.
///
/// # Errors
///
/// As [`find`].
pub fn find_then<T>(
    search: &Search,
    reach: Reach,
    lookout: &Lookout,
    mut make: impl FnMut(Vec<Repository>) -> T,
) -> Result<T, Unsearchable> {
    let seen_before = lookout.memory();
    let (found, walking) = presume(search, reach, lookout)?;
    let made = make(found);
    if walking.is_none_or(Walking::finds_the_same) {
        return Ok(made);
    }
    drop(made);
    lookout.restore(seen_before);
    let finder = Finder::new(search, reach, lookout);
    finder.walked(Remembered::of(search)).map(make)
}

/// Finds repositories; where a large tree is remembered, those that were there the last time, while
/// the tree is still walked.
///
/// Nothing may come of them before [`Walking::finds_the_same`] has said so.
///
/// # Errors
///
/// As [`find`].
pub fn presume(
    search: &Search,
    reach: Reach,
    lookout: &Lookout,
) -> Result<(Vec<Repository>, Option<Walking>), Unsearchable> {
    let finder = Finder::new(search, reach, lookout);
    if reach == Reach::Own {
        return Ok((finder.outermost(), None));
    }
    let remembered = Remembered::of(search);
    let presumed = remembered.tree.as_ref().map(scan::presumed);
    let presumed = presumed.unwrap_or_default();
    if presumed.len() < WORTH_A_THREAD {
        return Ok((finder.walked(remembered)?, None));
    }
    let owned = search.clone();
    #[cfg(target_os = "linux")]
    let ours = ringfence_sys::processors::Processors::ours();
    let walk = move || {
        #[cfg(target_os = "linux")]
        if let Ok(ours) = ours {
            // It was only put elsewhere to begin; a walk that stays there is as good.
            let _ = ours.take_back();
        }
        tree(&owned, remembered).map(|(places, _)| places)
    };
    // Signals are for whoever waits for them.
    #[cfg(unix)]
    let blocked = ringfence_sys::mask::Mask::block_all();
    let walk = std::thread::Builder::new().spawn(walk);
    #[cfg(unix)]
    if let Ok(before) = blocked {
        // They were so a moment ago.
        let _ = before.restore();
    }
    let Ok(walk) = walk else {
        return Ok((finder.walked(Remembered::of(search))?, None));
    };
    #[cfg(target_os = "linux")]
    ringfence_sys::processors::leave_this_one(&walk);
    let mut found = finder.outermost();
    finder.all_within(&presumed, &mut found);
    Ok((found, Some(Walking { walk, presumed })))
}

/// A walk that goes on while something is made of what was there the last time.
#[derive(Debug)]
#[must_use = "what was presumed holds only if the walk finds the same"]
pub struct Walking {
    walk: JoinHandle<Result<Vec<Place>, Unsearchable>>,
    presumed: Vec<Place>,
}

impl Walking {
    /// Waits until the walk has ended. `false` if it has found anything else, or could not look
    /// everywhere: then all of it has to be found once more.
    pub fn finds_the_same(self) -> bool {
        match self.walk.join() {
            Ok(Ok(places)) => are_same(&places, &self.presumed),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

fn are_same(a: &[Place], b: &[Place]) -> bool {
    // A directory is in neither twice.
    let all: HashSet<&Place> = a.iter().collect();
    a.len() == b.len() && b.iter().all(|place| all.contains(place))
}

/// What is known of a tree from the last time.
pub(super) struct Remembered {
    memory: Option<Memory>,
    tree: Option<Tree>,
}

impl Remembered {
    pub(super) fn of(search: &Search) -> Self {
        let memory = search.state.as_deref().map(Memory::new);
        let tree = memory.as_ref();
        Self {
            tree: tree.and_then(|memory| memory.recall(&search.project)),
            memory,
        }
    }
}

/// The directories of the project in which something was found, and all of them.
pub(super) fn tree(
    search: &Search,
    remembered: Remembered,
) -> Result<(Vec<Place>, Tree), Unsearchable> {
    let project = &search.project;
    let Remembered { memory, tree } = remembered;
    let (known, remembered) = (tree.as_ref().map_or(0, |tree| tree.nodes.len()), tree);
    let (places, Changed(listed), tree) =
        scan::walk(project, remembered).map_err(|why| Unsearchable {
            project: project.clone(),
            why: why.to_string(),
        })?;
    // Writing it all again for a handful of changes would cost more than listing those again.
    let worth = tree.nodes.len() >= WORTH_REMEMBERING
        && (known == 0 || listed > WORTH_REMEMBERING + known / 50);
    if let Some(memory) = memory.filter(|_| worth) {
        memory.keep(project, &tree);
    }
    Ok((places, tree))
}
