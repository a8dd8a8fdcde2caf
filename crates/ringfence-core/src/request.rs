//! What a command asks for beyond its policy, and what can be answered.
//!
//! A [`Request`] names permissions and carries somebody's reason, which is shown as their words and
//! decides nothing. An [`Answer`] is a yes or a no and for how long it holds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::permission::{Permission, Permissions};
use crate::policy::{Policy, Unsandboxed};
use crate::settings::Word;

/// What a command asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Request {
    /// What it asks for.
    pub permissions: Permissions,
    /// Why, in the words of whoever asks. Nobody checked them.
    pub reason: Option<String>,
}

/// How long an answer holds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// For this command.
    Once,
    /// For every command of the same thread.
    Thread,
    /// Until it is taken back: it is written to the user's settings.
    Always,
}

impl Word for Scope {
    const WHAT: &'static str = "scope";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("once", Self::Once),
        ("thread", Self::Thread),
        ("always", Self::Always),
    ];
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "for this command",
            Self::Thread => "for this thread",
            Self::Always => "always",
        })
    }
}

/// A yes or a no.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// Yes, for as long as that.
    Allow(Scope),
    /// No, for as long as that; [`Scope::Always`] is taken for [`Scope::Thread`].
    Deny(Scope),
    /// Neither: try once more to make the sandbox that could not be made.
    Retry,
}

impl Answer {
    /// The word that programs use for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow(Scope::Once) => "once",
            Self::Allow(Scope::Thread) => "thread",
            Self::Allow(Scope::Always) => "always",
            Self::Deny(Scope::Once) => "deny",
            Self::Deny(Scope::Thread | Scope::Always) => "deny-thread",
            Self::Retry => "retry",
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow(scope) => write!(f, "allowed {scope}"),
            Self::Deny(Scope::Once) => f.write_str("denied"),
            Self::Deny(Scope::Thread | Scope::Always) => f.write_str("denied for this thread"),
            Self::Retry => f.write_str("tried again"),
        }
    }
}

/// Why something cannot be granted, whoever is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Forbidden {
    /// The settings say `allow_unsandboxed: "never"`.
    #[error("the settings forbid running outside the sandbox (`allow_unsandboxed: \"never\"`)")]
    Unsandboxed,
}

impl Request {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.permissions.is_empty()
    }

    /// What is left to be asked: what neither the policy allows nor somebody has granted.
    #[must_use]
    pub fn unanswered(&self, policy: &Policy, granted: &Permissions) -> Self {
        Self {
            permissions: self.permissions.missing(policy, granted),
            reason: self.reason.clone(),
        }
    }

    /// Whether nobody may be asked for this at all.
    ///
    /// # Errors
    ///
    /// What forbids it.
    pub fn check(&self, policy: &Policy) -> Result<(), Forbidden> {
        let never = policy.unsandboxed().value == Unsandboxed::Never;
        let outside = [Permission::Unsandboxed, Permission::Fallback];
        if never && outside.iter().any(|one| self.permissions.contains(one)) {
            return Err(Forbidden::Unsandboxed);
        }
        Ok(())
    }

    /// For how long this may be granted at most.
    ///
    /// Nobody can keep a fallback for ever: it would be a sandbox that is never missed. And where
    /// somebody hides a path, a command that could always run outside would see it, and one that
    /// falls back would see it without anybody being asked again.
    pub fn longest(&self, policy: &Policy) -> Scope {
        let outside = self.permissions.contains(&Permission::Unsandboxed);
        let fallback = self.permissions.contains(&Permission::Fallback);
        match (fallback, outside, policy.hidden_by_word().is_some()) {
            (true, _, true) => Scope::Once,
            (true, _, false) | (false, true, true) => Scope::Thread,
            (false, true, false) | (false, false, _) => Scope::Always,
        }
    }
}
