//! Landlock's part of a plan.
//!
//! Landlock only ever allows: a rule can add rights to a subtree and never take them away inside
//! one. What needs taking away is a mount's work, or a gap.

use std::fmt;

use foldhash::HashMap;
use serde::Serialize;

use super::facts::HostFacts;
use super::linux::ABI_UNIX_PATHS;
use crate::path::AbsPath;
use crate::policy::{Access, Content, Found, Policy};
use crate::settings::NetworkMode;

/// A ruleset: what is handled, and what is then allowed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LandlockPlan {
    /// The interface version it is made for: all file rights of that version are handled.
    pub abi: u32,
    /// Subtrees that may be used.
    pub rules: Vec<LandlockRule>,
    /// Unix sockets of the host that may be connected to, where Landlock tells them from others (ABI 9).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<AbsPath>,
    /// Whether TCP is handled.
    pub tcp: TcpRules,
    /// Whether signals and abstract sockets are kept inside.
    pub scopes: Scopes,
    /// Whether directories that no rule names may be listed.
    pub listing: Listing,
}

/// What Landlock does about listing directories that no rule names.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Listing {
    /// Names can be listed: in a root built from nothing they are the grants and what leads there.
    Allowed,
    /// Only what a rule names can be listed.
    Refused,
}

/// One subtree that may be used.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LandlockRule {
    /// Its root.
    pub path: AbsPath,
    /// How it may be used; never [`Access::None`].
    pub access: Access,
    /// What stands there: some rights make sense for directories only.
    pub found: Found,
}

/// What Landlock does about TCP, and from version 10 about UDP.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TcpRules {
    /// No port may be bound or connected to.
    Refused,
    /// TCP is left alone: the network namespace holds it, or all of the network is allowed.
    Unhandled,
}

/// What Landlock keeps inside.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scopes {
    /// This kernel cannot (ABI 6).
    None,
    /// Signals and abstract unix sockets.
    SignalsAndAbstractSockets,
}

/// Whether the session sees the host's tree or its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tree {
    /// A root built of mounts.
    Own,
    /// The host's.
    Host,
}

/// Devices of the host that carry nothing from one user to another.
const HARMLESS_DEVICES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];

/// Lays the rules of a policy out for Landlock.
pub(super) fn ruleset(policy: &Policy, facts: &HostFacts, tree: Tree) -> LandlockPlan {
    let mut rules: Vec<LandlockRule> = Vec::new();
    let mut granted: HashMap<AbsPath, Access> = HashMap::default();
    let mut add = |path: &AbsPath, access: Access, found: Found| {
        // Rights add up on the way down, so what is granted above need not be granted again.
        let covered = std::iter::successors(Some(path.clone()), AbsPath::parent)
            .filter_map(|above| granted.get(&above))
            .any(|known| *known >= access);
        if !covered {
            let path = path.clone();
            granted.insert(path.clone(), access);
            rules.push(LandlockRule {
                path,
                access,
                found,
            });
        }
    };
    if policy.files().default_access() != Access::None {
        let access = policy.files().default_access();
        add(&AbsPath::root(), access, Found::Directory);
    }
    for (rule, parent) in policy.files().with_parents() {
        if rule.access == Access::None || rule.found == Found::Absent {
            continue;
        }
        let inside = parent.is_some_and(|parent| parent.content == rule.content);
        if rule.content.is_own() && inside {
            // Parts of a tree of the session's own are not there before the command makes them.
            continue;
        }
        match (tree, rule.content) {
            (_, Content::Host) | (Tree::Own, _) => add(&rule.path, rule.access, rule.found),
            // The host's `/dev` holds other people's terminals, its `/tmp` other people's files.
            (Tree::Host, Content::Devices) => {
                for device in HARMLESS_DEVICES {
                    add(&rule.path.below(device), rule.access, Found::Other);
                }
            }
            // Without its own `/proc` hardly any runtime starts; what shows through is a gap.
            (Tree::Host, Content::Processes) => add(&rule.path, Access::Read, rule.found),
            (Tree::Host, Content::Memory) => {}
        }
    }
    let refuse_tcp = tree == Tree::Host
        && policy.network().mode() == NetworkMode::None
        && facts.landlock.abi >= 4;
    let sockets = policy.sockets().iter().map(|grant| grant.path.clone());
    LandlockPlan {
        abi: facts.landlock.abi,
        rules,
        sockets: sockets
            .filter(|_| facts.landlock.abi >= ABI_UNIX_PATHS)
            .collect(),
        tcp: if refuse_tcp {
            TcpRules::Refused
        } else {
            TcpRules::Unhandled
        },
        listing: match tree {
            Tree::Own => Listing::Allowed,
            Tree::Host => Listing::Refused,
        },
        scopes: if facts.landlock.abi >= 6 {
            Scopes::SignalsAndAbstractSockets
        } else {
            Scopes::None
        },
    }
}

impl fmt::Display for LandlockPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (abi, rules) = (self.abi, self.rules.len());
        write!(f, "let Landlock {abi} hold files with {rules} rules")?;
        if self.scopes == Scopes::SignalsAndAbstractSockets {
            f.write_str(", and keep signals and abstract sockets inside")?;
        }
        if self.tcp == TcpRules::Refused {
            f.write_str(", and refuse TCP")?;
        }
        Ok(())
    }
}
