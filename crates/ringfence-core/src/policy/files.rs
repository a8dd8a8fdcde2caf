//! File rules: which subtree may be used how.
//!
//! The most specific rule wins. Rules for the same path were settled before they got here, so
//! there is exactly one rule for a path, and their order does not matter.

use std::fmt;

use serde::Serialize;

use crate::origin::{Layer, Origin};
use crate::path::AbsPath;

/// How a path may be used, least first. Each level contains the ones before it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Not at all: contents can be neither read nor written.
    None,
    /// Read.
    Read,
    /// Read, and run programs.
    Execute,
    /// Read, run and write.
    Write,
}

/// What stood at a path when its rule was made.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// Nothing; the rule protects the name.
    Absent,
    /// A directory: the rule holds for all that is below.
    Directory,
    /// A regular file.
    File,
    /// A socket, a device, a pipe.
    Other,
}

/// Whose files are seen in a subtree.
///
/// An access level speaks of what is seen. So a rule must also say what that is: writing to a
/// directory of the session's own is no access to the host's directory of that name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// The few devices that every program expects, and terminals of the session's own.
    Devices,
    /// The host's.
    Host,
    /// A directory of the session's own, empty at the start and gone at the end.
    Memory,
    /// The processes of the session.
    Processes,
}

impl Content {
    /// Whether nothing of the host's is seen.
    pub fn is_own(self) -> bool {
        match self {
            Self::Devices | Self::Memory | Self::Processes => true,
            Self::Host => false,
        }
    }
}

/// One subtree and how it may be used.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct FileRule {
    /// The root of the subtree; canonical, unless there is nothing there.
    pub path: AbsPath,
    /// How it may be used.
    pub access: Access,
    /// Who says so.
    pub origin: Origin,
    /// What stood there.
    pub found: Found,
    /// What is seen there.
    pub content: Content,
}

impl FileRule {
    /// Whether it is for a directory of the host's that somebody gave for writing, beside the project.
    pub(super) fn is_given(&self, project: &AbsPath) -> bool {
        self.access == Access::Write
            && self.found == Found::Directory
            && self.content == Content::Host
            && self.origin.layer() != Layer::BuiltIn
            && !project.covers(&self.path)
    }
}

/// What a look-up answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileVerdict<'a> {
    /// How the path may be used.
    pub access: Access,
    /// Who says so.
    pub origin: &'a Origin,
    /// The rule that decided; `None` if it was the default.
    pub rule: Option<&'a FileRule>,
}

impl FileVerdict<'_> {
    /// What is seen at the path.
    pub fn content(&self) -> Content {
        self.rule.map_or(Content::Host, |rule| rule.content)
    }
}

/// All file rules of a policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileRules {
    default: Access,
    default_origin: Origin,
    /// In the order of the paths, so that a subtree is one run.
    rules: Vec<FileRule>,
    /// For each rule, the nearest rule above it.
    parents: Vec<Option<usize>>,
}

impl FileRules {
    /// Puts rules in order. Of two rules for one path the stricter one stays.
    pub fn new(default: Access, default_origin: Origin, mut rules: Vec<FileRule>) -> Self {
        rules.sort_by(|a, b| a.path.cmp(&b.path).then_with(|| a.access.cmp(&b.access)));
        rules.dedup_by(|later, earlier| later.path == earlier.path);
        Self::in_order(default, default_origin, rules)
    }

    /// The same for rules of which each has a path of its own: in place, since nothing is equal.
    pub(super) fn of_settled(
        default: Access,
        default_origin: Origin,
        mut rules: Vec<FileRule>,
    ) -> Self {
        rules.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Self::in_order(default, default_origin, rules)
    }

    fn in_order(default: Access, default_origin: Origin, rules: Vec<FileRule>) -> Self {
        let mut parents = Vec::with_capacity(rules.len());
        let mut above: Vec<usize> = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            while let Some(&last) = above.last() {
                if rules[last].path.covers(&rule.path) {
                    break;
                }
                above.pop();
            }
            parents.push(above.last().copied());
            above.push(index);
        }
        Self {
            default,
            default_origin,
            rules,
            parents,
        }
    }

    /// How a path may be used, and who says so.
    ///
    /// The path is taken as it is: whoever asks about a link asks about the link. Resolve it
    /// first to ask about what it leads to.
    pub fn access(&self, path: &AbsPath) -> FileVerdict<'_> {
        // Everything between a rule and a path below it in the order is below that rule too. So
        // the last rule not behind the path is the one that decides, or lies below that one.
        let behind = self.rules.partition_point(|rule| rule.path <= *path);
        let mut candidate = behind.checked_sub(1);
        while let Some(index) = candidate {
            let rule = &self.rules[index];
            if rule.path.covers(path) {
                return FileVerdict {
                    access: rule.access,
                    origin: &rule.origin,
                    rule: Some(rule),
                };
            }
            candidate = self.parents[index];
        }
        FileVerdict {
            access: self.default,
            origin: &self.default_origin,
            rule: None,
        }
    }

    /// What holds where no rule does.
    pub fn default_access(&self) -> Access {
        self.default
    }

    /// Who says so.
    pub fn default_origin(&self) -> &Origin {
        &self.default_origin
    }

    /// Every rule, parents before children.
    pub fn rules(&self) -> &[FileRule] {
        &self.rules
    }

    /// Every rule with what holds just above it.
    pub fn with_surroundings(&self) -> impl Iterator<Item = (&FileRule, Access)> {
        self.rules.iter().zip(&self.parents).map(|(rule, parent)| {
            let above = parent.map_or(self.default, |parent| self.rules[parent].access);
            (rule, above)
        })
    }

    /// Every rule with the nearest rule above it.
    pub(crate) fn with_parents(&self) -> impl Iterator<Item = (&FileRule, Option<&FileRule>)> {
        let parents = self.parents.iter();
        let parents = parents.map(|parent| parent.map(|parent| &self.rules[parent]));
        self.rules.iter().zip(parents)
    }

    /// Rules that allow exactly what both allow.
    ///
    /// What is the session's own in one of the two is its own in both: the other one's access to
    /// the host's files of that name is no part of what both allow.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        // Between two neighbouring rules of the union neither side changes, so settling each of
        // the union's paths settles everything.
        let mut rules: Vec<FileRule> = Vec::with_capacity(self.rules.len() + other.rules.len());
        for rule in self.rules.iter().chain(&other.rules) {
            let (mine, theirs) = (self.access(&rule.path), other.access(&rule.path));
            let (own, other) = (mine.content(), theirs.content());
            let narrows = theirs.access < mine.access
                || (theirs.access == mine.access && other.is_own() && !own.is_own());
            let strict = if narrows { theirs } else { mine };
            rules.push(FileRule {
                path: rule.path.clone(),
                access: strict.access,
                origin: strict.origin.clone(),
                found: rule.found,
                content: if own.is_own() { own } else { other },
            });
        }
        let (default, origin) = if other.default < self.default {
            (other.default, &other.default_origin)
        } else {
            (self.default, &self.default_origin)
        };
        Self::new(default, origin.clone(), rules)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "hidden",
            Self::Read => "read",
            Self::Execute => "read and execute",
            Self::Write => "read, execute and write",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(path: &str, access: Access) -> FileRule {
        FileRule {
            path: AbsPath::parse(path).unwrap(),
            access,
            origin: Origin::Library,
            found: Found::Directory,
            content: Content::Host,
        }
    }

    fn rules(list: &[(&str, Access)]) -> FileRules {
        let list = list.iter().map(|(path, access)| rule(path, *access));
        FileRules::new(Access::None, Origin::Library, list.collect())
    }

    fn access(rules: &FileRules, path: &str) -> Access {
        rules.access(&AbsPath::parse(path).unwrap()).access
    }

    #[test]
    fn the_most_specific_rule_wins() {
        let rules = rules(&[
            ("/", Access::Read),
            ("/w", Access::Write),
            ("/w/.git", Access::None),
            ("/w/.git/objects", Access::Write),
        ]);

        assert_eq!(access(&rules, "/"), Access::Read);
        assert_eq!(access(&rules, "/etc"), Access::Read);
        assert_eq!(access(&rules, "/w/src/main.rs"), Access::Write);
        assert_eq!(access(&rules, "/w/.git"), Access::None);
        assert_eq!(access(&rules, "/w/.git/hooks/pre-commit"), Access::None);
        assert_eq!(access(&rules, "/w/.git/objects/aa"), Access::Write);
        assert_eq!(access(&rules, "/w/.gitignore"), Access::Write);
        assert_eq!(access(&rules, "/w-evil/x"), Access::Read);
        assert_eq!(access(&rules, "/w.d"), Access::Read);
    }

    #[test]
    fn of_two_rules_for_one_path_the_stricter_stays() {
        let rules = rules(&[("/a", Access::Write), ("/a", Access::None)]);
        assert_eq!(access(&rules, "/a/b"), Access::None);
    }

    fn any_access() -> impl Strategy<Value = Access> {
        prop_oneof![
            Just(Access::None),
            Just(Access::Read),
            Just(Access::Execute),
            Just(Access::Write)
        ]
    }

    fn any_path() -> impl Strategy<Value = String> {
        // Names around the byte of the slash, where a wrong order would show.
        let name = prop_oneof![Just("a"), Just("a-"), Just("a."), Just("a0"), Just("b")];
        proptest::collection::vec(name, 0..4).prop_map(|names| format!("/{}", names.join("/")))
    }

    fn any_rules() -> impl Strategy<Value = Vec<(String, Access)>> {
        proptest::collection::vec((any_path(), any_access()), 0..12)
    }

    fn built(list: &[(String, Access)], default: Access) -> FileRules {
        let list = list.iter().map(|(path, access)| rule(path, *access));
        FileRules::new(default, Origin::Library, list.collect())
    }

    /// The definition, without any cleverness.
    fn by_definition(list: &[(String, Access)], default: Access, path: &str) -> Access {
        let path = AbsPath::parse(path).unwrap();
        list.iter()
            .map(|(rule, access)| (AbsPath::parse(rule).unwrap(), *access))
            .filter(|(rule, _)| rule.covers(&path))
            .max_by(|(a, x), (b, y)| a.depth().cmp(&b.depth()).then_with(|| y.cmp(x)))
            .map_or(default, |(_, access)| access)
    }

    proptest! {
        #[test]
        fn look_ups_agree_with_the_definition(
            list in any_rules(), default in any_access(), path in any_path(),
        ) {
            let rules = built(&list, default);
            prop_assert_eq!(access(&rules, &path), by_definition(&list, default, &path));
        }

        #[test]
        fn the_order_of_rules_does_not_matter(
            list in any_rules(), default in any_access(),
        ) {
            let mut reversed = list.clone();
            reversed.reverse();
            prop_assert_eq!(built(&list, default), built(&reversed, default));
        }

        #[test]
        fn a_meeting_allows_what_both_allow(
            a in any_rules(), b in any_rules(), x in any_access(), y in any_access(),
            path in any_path(),
        ) {
            let (a, b) = (built(&a, x), built(&b, y));
            let expected = access(&a, &path).min(access(&b, &path));
            prop_assert_eq!(access(&a.meet(&b), &path), expected);
        }
    }
}
