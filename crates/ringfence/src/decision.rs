//! A decision about a request, as the audit trail and the reports tell it.

use ringfence_core::permission::Permissions;
use ringfence_core::request::{Answer, Request, Scope};
use serde::Serialize;

/// What somebody, or something that was written before, said to a request.
///
/// # Examples
///
/// ```
/// fn show(planned: &ringfence::event::Planned) {
///     for decision in &planned.decisions {
///         println!("{}: {}, by {}", decision.request, decision.answer, decision.by);
///     }
/// }
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// What was asked for, in words.
    pub request: String,
    /// What came of it. Of permissions: one word of [`Outcome`]; of commands: what the rules say.
    pub answer: String,
    /// Who gave the answer, or is asked for it.
    pub by: String,
    /// What was asked for, one by one; a command is none.
    #[serde(skip_serializing_if = "Permissions::is_empty")]
    pub permissions: Permissions,
    /// For how long the answer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The thread that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The words of whoever asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// Somebody is asked; another decision tells what they said.
    Asked,
    /// No.
    Denied,
    /// Yes.
    Granted,
    /// The sandbox is tried once more.
    Retried,
    /// Nobody was asked: the answer was known.
    Stands,
    /// Something was taken back.
    Taken,
    /// There was an answer, and what it was for has changed meanwhile.
    Void,
}

impl Outcome {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Denied => "denied",
            Self::Granted => "granted",
            Self::Retried => "retried",
            Self::Stands => "stands",
            Self::Taken => "taken back",
            Self::Void => "void",
        }
    }
}

impl Decision {
    /// About permissions.
    #[doc(hidden)]
    pub fn new(request: &Request, outcome: Outcome, by: impl Into<String>) -> Self {
        Self {
            request: request.permissions.to_string(),
            answer: outcome.word().to_owned(),
            by: by.into(),
            permissions: request.permissions.clone(),
            scope: None,
            thread: None,
            reason: request.reason.clone(),
        }
    }

    /// What somebody answered.
    #[doc(hidden)]
    pub fn answered(request: &Request, answer: Answer, by: impl Into<String>) -> Self {
        let (outcome, scope) = match answer {
            Answer::Allow(scope) => (Outcome::Granted, Some(scope)),
            Answer::Deny(scope) => (Outcome::Denied, Some(scope)),
            Answer::Retry => (Outcome::Retried, None),
        };
        Self {
            scope,
            ..Self::new(request, outcome, by)
        }
    }

    /// About a command, by rules.
    #[doc(hidden)]
    pub fn of_command(command: &str, answer: &str, by: impl Into<String>) -> Self {
        Self {
            request: command.to_owned(),
            answer: answer.to_owned(),
            by: by.into(),
            permissions: Permissions::new(),
            scope: None,
            thread: None,
            reason: None,
        }
    }

    /// About a host, while the command runs.
    #[doc(hidden)]
    pub fn of_host(host: &impl ToString, outcome: Outcome, by: impl Into<String>) -> Self {
        Self::of_command(&host.to_string(), outcome.word(), by)
    }

    /// In a thread.
    #[must_use]
    #[doc(hidden)]
    pub fn in_thread(mut self, thread: Option<impl ToString>) -> Self {
        self.thread = thread.map(|thread| thread.to_string());
        self
    }
}
