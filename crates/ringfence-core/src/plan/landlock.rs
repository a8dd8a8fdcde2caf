//! Landlock's part of a plan.
//!
//! Landlock only ever allows: a rule can add rights to a subtree and never take them away inside
//! one. What needs taking away is a mount's work, or a gap.

use std::fmt;

use serde::Serialize;

use super::facts::HostFacts;
use crate::origin::{BuiltIn, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Found, Policy};
use crate::settings::{NetworkMode, Tmp};

/// A ruleset: what is handled, and what is then allowed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LandlockPlan {
    /// The interface version it is made for: all file rights of that version are handled.
    pub abi: u32,
    /// Subtrees that may be used.
    pub rules: Vec<LandlockRule>,
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

/// What Landlock does about TCP.
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

/// Lays the rules of a policy out for Landlock.
pub(super) fn ruleset(policy: &Policy, facts: &HostFacts, tree: Tree) -> LandlockPlan {
    let mut rules: Vec<LandlockRule> = Vec::new();
    let mut add = |path: &AbsPath, access: Access, found: Found| {
        // Rights add up on the way down, so what is granted above need not be granted again.
        let covered = rules
            .iter()
            .any(|known| known.path.covers(path) && known.access >= access);
        if !covered {
            let path = path.clone();
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
    let dev = AbsPath::root().below("dev");
    for rule in policy.files().rules() {
        let private_tmp =
            rule.origin == Origin::BuiltIn(BuiltIn::Tmp) && policy.tmp().value == Tmp::Private;
        // On the host's own tree temporary directories are not private, so none is granted; and
        // the host's `/dev` holds other people's terminals.
        let host_only = tree == Tree::Host && (private_tmp || dev.covers(&rule.path));
        if rule.access != Access::None && rule.found != Found::Absent && !host_only {
            add(&rule.path, rule.access, rule.found);
        }
    }
    match tree {
        Tree::Own => {
            add(&dev, Access::Write, Found::Directory);
            add(
                &AbsPath::root().below("proc"),
                Access::Read,
                Found::Directory,
            );
        }
        Tree::Host => {
            for device in ["full", "null", "random", "tty", "urandom", "zero"] {
                add(&dev.below(device), Access::Write, Found::Other);
            }
            add(
                &AbsPath::root().below("proc"),
                Access::Read,
                Found::Directory,
            );
        }
    }
    let refuse_tcp = tree == Tree::Host
        && policy.network().mode() == NetworkMode::None
        && facts.landlock.abi >= 4;
    LandlockPlan {
        abi: facts.landlock.abi,
        rules,
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
