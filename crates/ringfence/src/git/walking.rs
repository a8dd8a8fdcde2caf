//! Finding repositories while a large tree is still walked.

use std::collections::HashSet;
use std::sync::Arc;

use ringfence_core::git::Repository;
use ringfence_core::path::AbsPath;

use super::asking::Asking;
use super::cache::{Memory, Tree};
use super::scan::{self, Changed, Incomplete, Place};
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
    let (memory, tree) = match Remembered::of(search) {
        Remembered {
            memory,
            tree: Some(tree),
        } if tree.repositories() >= WORTH_A_THREAD => (memory, tree),
        remembered => return Ok((finder.walked(remembered)?, None)),
    };
    let asking = Asking::new(&search.project, tree).map_err(|why| unsearchable(search, &why))?;
    let asking = Arc::new(asking);
    help(&asking);
    let walking = Walking {
        presumed: asking.presumed(),
        project: search.project.clone(),
        memory,
        asking,
    };
    let mut found = finder.outermost();
    finder.all_within(&walking.presumed, &mut found);
    Ok((found, Some(walking)))
}

/// Has a thread ask meanwhile. If there is none, whoever wants the answer asks everybody.
fn help(asking: &Arc<Asking>) {
    let asking = Arc::clone(asking);
    #[cfg(target_os = "linux")]
    let ours = ringfence_sys::processors::Processors::ours();
    let helper = move || {
        #[cfg(target_os = "linux")]
        if let Ok(ours) = ours {
            // It was only put elsewhere to begin; a helper that stays there is as good.
            let _ = ours.take_back();
        }
        asking.help();
    };
    // Signals are for whoever waits for them.
    #[cfg(unix)]
    let blocked = ringfence_sys::mask::Mask::block_all();
    let helper = std::thread::Builder::new().spawn(helper);
    #[cfg(unix)]
    if let Ok(before) = blocked {
        // They were so a moment ago.
        let _ = before.restore();
    }
    #[cfg(target_os = "linux")]
    if let Ok(helper) = &helper {
        ringfence_sys::processors::leave_this_one(helper);
    }
    // It ends by itself, and soon: once everybody was asked there is nothing for it to begin with.
    drop(helper);
}

/// A walk that goes on while something is made of what was there the last time.
#[derive(Debug)]
#[must_use = "what was presumed holds only if the walk finds the same"]
pub struct Walking {
    asking: Arc<Asking>,
    memory: Option<Memory>,
    project: AbsPath,
    presumed: Vec<Place>,
}

impl Walking {
    /// Walks to the end. `false` if anything else was found, or not everything could be looked at:
    /// then all of it has to be found once more.
    pub fn finds_the_same(self) -> bool {
        self.asking.ask_the_rest();
        if self.asking.all_as_they_were() {
            return true;
        }
        let Ok((places, listed, tree)) = scan::walk_on(&self.project, &self.asking) else {
            return false;
        };
        let known = self.asking.tree.nodes.len();
        keep(self.memory.as_ref(), &self.project, known, listed, &tree);
        are_same(&places, &self.presumed)
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
        let memory = search.state.as_deref();
        let memory = memory.map(|state| Memory::new(state, "trees"));
        let bytes = memory
            .as_ref()
            .and_then(|memory| memory.bytes(&search.project));
        Self {
            tree: bytes.and_then(|bytes| Tree::from_bytes(&bytes, &search.project)),
            memory,
        }
    }
}

/// The directories of the project in which something was found, and all of them.
pub(super) fn tree(
    search: &Search,
    remembered: Remembered,
) -> Result<(Vec<Place>, Tree), Unsearchable> {
    let Remembered { memory, tree } = remembered;
    let known = tree.as_ref().map_or(0, |tree| tree.nodes.len());
    let walked = scan::walk(&search.project, tree);
    let (places, listed, tree) = walked.map_err(|why| unsearchable(search, &why))?;
    keep(memory.as_ref(), &search.project, known, listed, &tree);
    Ok((places, tree))
}

/// Remembers a tree, of which so much was known, if that is worth it.
fn keep(
    memory: Option<&Memory>,
    project: &AbsPath,
    known: usize,
    Changed(listed): Changed,
    tree: &Tree,
) {
    // Writing it all again for a handful of changes would cost more than listing those again.
    let worth = tree.nodes.len() >= WORTH_REMEMBERING
        && (known == 0 || listed > WORTH_REMEMBERING + known / 50);
    if let Some(memory) = memory.filter(|_| worth) {
        memory.keep(project, &tree.to_bytes(project));
    }
}

fn unsearchable(search: &Search, why: &Incomplete) -> Unsearchable {
    Unsearchable {
        project: search.project.clone(),
        why: why.to_string(),
    }
}
