//! What can be asked for and granted: single permissions, and sets of them.
//!
//! A [`Permission`] is one thing beyond a policy; [`Permissions`] is a set in which nothing stands
//! that something broader in it already covers. Who was asked, for how long an answer holds and
//! where it is kept is decided elsewhere: here is only what covers what.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::HostPattern;
use crate::path::AbsPath;
use crate::policy::{Access, Content, Policy, Unsandboxed};
use crate::settings::{GitLevel, NetworkMode};

/// One thing beyond a policy.
///
/// As JSON: `{"kind": "host", "value": "example.org"}`, `{"kind": "any-host"}`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(
    tag = "kind",
    content = "value",
    rename_all = "kebab-case",
    deny_unknown_fields
)]
pub enum Permission {
    /// To reach any host.
    AnyHost,
    /// To run without the sandbox if the sandbox cannot be made.
    Fallback,
    /// To use git metadata up to a level.
    Git(GitLevel),
    /// To reach the hosts of a pattern.
    Host(HostPattern),
    /// To run outside the sandbox, only tracked.
    Unsandboxed,
    /// To write a file, or a directory and everything below it.
    Write(AbsPath),
    /// To write everything that is neither hidden nor protected.
    WriteAll,
}

impl Permission {
    /// Whether whoever has this needs not ask for `other`.
    ///
    /// Hosts, files, git metadata, running outside and falling back are five different things: a
    /// permission never covers anything of another kind.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::AnyHost, Self::AnyHost | Self::Host(_))
            | (Self::Fallback, Self::Fallback)
            | (Self::Unsandboxed, Self::Unsandboxed)
            | (Self::WriteAll, Self::Write(_) | Self::WriteAll) => true,
            (Self::Git(mine), Self::Git(theirs)) => mine >= theirs,
            (Self::Host(mine), Self::Host(theirs)) => mine.covers(theirs),
            (Self::Write(mine), Self::Write(theirs)) => mine.covers(theirs),
            _ => false,
        }
    }

    /// Whether a policy already allows it.
    pub fn stands_in(&self, policy: &Policy) -> bool {
        let network = policy.network();
        match self {
            Self::AnyHost => network.mode() == NetworkMode::All,
            Self::Fallback => false,
            Self::Git(level) => policy.git().value >= *level,
            Self::Host(pattern) => match network.mode() {
                NetworkMode::All => true,
                NetworkMode::Hosts => network
                    .hosts()
                    .iter()
                    .any(|known| known.value.covers(pattern)),
                NetworkMode::None => false,
            },
            Self::Unsandboxed => {
                policy.unsandboxed().value == Unsandboxed::Allowed
                    && policy.hidden_by_word().is_none()
            }
            Self::Write(path) => {
                let verdict = policy.files().access(path);
                // A private directory of the same name is not the one that was asked for.
                verdict.access == Access::Write && verdict.content() == Content::Host
            }
            Self::WriteAll => {
                let verdict = policy.files().access(&AbsPath::root());
                verdict.access == Access::Write
            }
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnyHost => f.write_str("reach any host"),
            Self::Fallback => f.write_str("run without the sandbox, which cannot be made"),
            Self::Git(GitLevel::Hidden) => f.write_str("use no git metadata"),
            Self::Git(GitLevel::Read) => f.write_str("read git metadata"),
            Self::Git(GitLevel::Write) => f.write_str("read and write git metadata"),
            Self::Git(GitLevel::Full) => {
                f.write_str("change everything in git metadata, hooks included")
            }
            Self::Host(pattern) => write!(f, "reach {pattern}"),
            Self::Unsandboxed => f.write_str("run outside the sandbox"),
            Self::Write(path) => write!(f, "write {path}"),
            Self::WriteAll => f.write_str("write every file that is not hidden or protected"),
        }
    }
}

/// A set of permissions without those that another one in it covers.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Permissions(Vec<Permission>);

impl Permissions {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one. What it covers goes; if something covers it already, nothing changes.
    pub fn insert(&mut self, permission: Permission) {
        if self.covers(&permission) {
            return;
        }
        self.0.retain(|known| !permission.covers(known));
        self.0.push(permission);
    }

    /// Whether one of them covers this.
    pub fn covers(&self, permission: &Permission) -> bool {
        self.0.iter().any(|known| known.covers(permission))
    }

    /// Each of them, in the order in which they came.
    pub fn iter(&self) -> std::slice::Iter<'_, Permission> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether exactly this one is among them.
    pub fn contains(&self, permission: &Permission) -> bool {
        self.0.contains(permission)
    }

    /// Those that neither a policy allows nor somebody has granted.
    #[must_use]
    pub fn missing(&self, policy: &Policy, granted: &Self) -> Self {
        let left = self.0.iter();
        let left = left.filter(|wanted| !wanted.stands_in(policy) && !granted.covers(wanted));
        Self(left.cloned().collect())
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, permission) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{permission}")?;
        }
        Ok(())
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        let mut out = Self::new();
        for permission in permissions {
            out.insert(permission);
        }
        out
    }
}

impl<'a> IntoIterator for &'a Permissions {
    type Item = &'a Permission;
    type IntoIter = std::slice::Iter<'a, Permission>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;
