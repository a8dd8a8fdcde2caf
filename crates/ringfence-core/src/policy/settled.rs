//! One rule for each path.
//!
//! Several lists and layers may speak of the same path. Which of them stands is decided here, and
//! does not depend on the order in which they arrive.

use std::collections::hash_map::Entry;
use std::ops::Range;

use super::files::{Access, FileRule};
use crate::origin::{BuiltIn, Layer, Origin};
use crate::path::AbsPath;
use foldhash::HashMap;
use foldhash::fast::RandomState;

/// Rules that were let in so far.
#[derive(Debug)]
pub(super) struct Settled {
    rules: Vec<FileRule>,
    /// Where the rule for a path is.
    places: HashMap<AbsPath, usize>,
}

impl Default for Settled {
    fn default() -> Self {
        // Enough for the built-in lists: growing on the way would move everything several times.
        const USUAL: usize = 640;
        Self {
            rules: Vec::with_capacity(USUAL),
            places: HashMap::with_capacity_and_hasher(USUAL, RandomState::default()),
        }
    }
}

impl Settled {
    /// Makes room for so many more.
    pub(super) fn expect(&mut self, more: usize) {
        self.rules.reserve(more);
        self.places.reserve(more);
    }

    /// Lets a rule in, against what already stands for the same path.
    ///
    /// The stronger layer stays, and within a layer the stricter rule. Two rules of one file (or of
    /// one command line) that cannot both be meant are a contradiction; the text says which.
    pub(super) fn settle(&mut self, rule: FileRule) -> Result<(), String> {
        let known = match self.places.entry(rule.path.clone()) {
            Entry::Vacant(free) => {
                free.insert(self.rules.len());
                self.rules.push(rule);
                return Ok(());
            }
            Entry::Occupied(place) => &mut self.rules[*place.get()],
        };
        let contradiction = contradicts(known, &rule).then(|| {
            format!(
                "{} is given twice: as {} and as {} ({})",
                rule.path, rule.access, known.access, known.origin
            )
        });
        let (new, old) = (strength(&rule.origin), strength(&known.origin));
        if new > old || (new == old && rule.access < known.access) {
            *known = rule;
        }
        contradiction.map_or(Ok(()), Err)
    }

    /// Gives more access to some of them, by somebody's word.
    pub(super) fn raise(
        &mut self,
        access: Access,
        origin: &Origin,
        which: impl Fn(&FileRule) -> bool,
    ) {
        for rule in self.rules.iter_mut().filter(|rule| which(rule)) {
            if rule.access < access {
                rule.access = access;
                rule.origin = origin.clone();
            }
        }
    }

    /// The rules that cover a path, nearest last.
    pub(super) fn covering(&self, path: &AbsPath) -> Vec<&FileRule> {
        let mut above: Vec<&FileRule> = std::iter::successors(Some(path.clone()), AbsPath::parent)
            .filter_map(|path| self.places.get(&path))
            .map(|place| &self.rules[*place])
            .collect();
        above.reverse();
        above
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    /// The rules for directories beside the project that somebody gave for writing.
    pub(super) fn given(&self, project: &AbsPath) -> impl Iterator<Item = &FileRule> {
        self.rules.iter().filter(|rule| rule.is_given(project))
    }

    /// Has ringfence's own rules among these, by their order of arrival, give no more than what somebody says of
    /// a place around them, if that counts.
    pub(super) fn bound(&mut self, which: Range<usize>, counts: impl Fn(&FileRule) -> bool) {
        let is_own = |rule: &FileRule| rule.origin.layer() == Layer::BuiltIn;
        let counts = |rule: &FileRule| !is_own(rule) && counts(rule);
        // Nearly always nobody says anything.
        if !self.rules.iter().any(&counts) {
            return;
        }
        for index in which {
            let rule = &self.rules[index];
            let around = self.covering(&rule.path).into_iter();
            let nearest = around
                .filter(|around| around.path != rule.path)
                .rfind(|around| !is_own(around));
            let less = nearest
                .filter(|around| is_own(rule) && around.access < rule.access && counts(around));
            if let Some((access, origin)) = less.map(|less| (less.access, less.origin.clone())) {
                let rule = &mut self.rules[index];
                rule.access = access;
                rule.origin = origin;
            }
        }
    }

    /// All of them, in the order of arrival.
    pub(super) fn rules(&self) -> &[FileRule] {
        &self.rules
    }

    /// All of them, in the order of arrival. None is left.
    pub(super) fn take_rules(&mut self) -> Vec<FileRule> {
        self.places.clear();
        std::mem::take(&mut self.rules)
    }
}

/// Which of two rules for one path stands: layers first, and among ringfence's own the one that
/// protects more.
fn strength(origin: &Origin) -> (Layer, u8) {
    let Origin::BuiltIn(list) = origin else {
        return (origin.layer(), 0);
    };
    let rank = match list {
        BuiltIn::Drives
        | BuiltIn::Homes
        | BuiltIn::Program
        | BuiltIn::Runtime
        | BuiltIn::Secrets => 3,
        BuiltIn::Closed | BuiltIn::Git | BuiltIn::Protected => 2,
        BuiltIn::Project | BuiltIn::Session => 1,
        BuiltIn::Dotfiles
        | BuiltIn::Environment
        | BuiltIn::Limits
        | BuiltIn::Preset(_)
        | BuiltIn::SystemPaths
        | BuiltIn::Tmp
        | BuiltIn::Toolchains => 0,
    };
    (Layer::BuiltIn, rank)
}

fn contradicts(known: &FileRule, new: &FileRule) -> bool {
    let layer = new.origin.layer();
    layer != Layer::BuiltIn && layer == known.origin.layer() && known.access != new.access
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Content, Found};
    use proptest::prelude::*;

    fn rule(access: Access, origin: Origin) -> FileRule {
        FileRule {
            path: AbsPath::root().below("a"),
            access,
            origin,
            found: Found::Directory,
            content: Content::Host,
        }
    }

    fn standing(rules: &[FileRule]) -> (Access, Layer) {
        let mut settled = Settled::default();
        for rule in rules {
            let _ = settled.settle(rule.clone());
        }
        let all = settled.take_rules();
        assert_eq!(all.len(), 1);
        (all[0].access, all[0].origin.layer())
    }

    const HIDE: Origin = Origin::BuiltIn(BuiltIn::Secrets);
    const PROJECT: Origin = Origin::BuiltIn(BuiltIn::Project);
    const FLAG: Origin = Origin::Flag { name: "--write" };

    #[test]
    fn a_secret_stays_hidden_even_if_it_is_the_project() {
        let (hidden, project) = (rule(Access::None, HIDE), rule(Access::Write, PROJECT));
        let expected = (Access::None, Layer::BuiltIn);
        assert_eq!(standing(&[hidden.clone(), project.clone()]), expected);
        assert_eq!(standing(&[project, hidden]), expected);
    }

    #[test]
    fn one_layer_that_says_two_things_is_a_contradiction() {
        let mut settled = Settled::default();
        assert_eq!(settled.settle(rule(Access::Write, FLAG)), Ok(()));
        assert_eq!(settled.settle(rule(Access::Write, FLAG)), Ok(()));
        let answer = settled.settle(rule(Access::Read, FLAG));
        assert_eq!(
            answer.unwrap_err(),
            "/a is given twice: as read and as read, execute and write (flag --write)"
        );
        assert_eq!(settled.take_rules()[0].access, Access::Read);
    }

    proptest! {
        #[test]
        fn what_stands_does_not_depend_on_the_order(
            rules in proptest::collection::vec(
                (
                    prop_oneof![
                        Just(Access::None), Just(Access::Read),
                        Just(Access::Execute), Just(Access::Write),
                    ],
                    prop_oneof![
                        Just(HIDE), Just(PROJECT), Just(FLAG),
                        Just(Origin::Environment { name: "RINGFENCE_RW" }),
                        Just(Origin::BuiltIn(BuiltIn::SystemPaths)),
                    ],
                ).prop_map(|(access, origin)| rule(access, origin)),
                1..8,
            ),
        ) {
            let mut reversed = rules.clone();
            reversed.reverse();
            prop_assert_eq!(standing(&rules), standing(&reversed));
        }
    }
}
