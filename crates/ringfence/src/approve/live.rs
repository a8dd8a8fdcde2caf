//! Asking about a host while the command runs.
//!
//! Only a program is asked: the terminal belongs to the command by then, which could draw a question
//! of its own. One question at a time; the rest wait, and die with the session.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ringfence_core::host::HostPattern;
use ringfence_core::permission::{Permission, Permissions};
use ringfence_core::policy::Policy;
use ringfence_core::request::{Answer, Request, Scope};
use ringfence_gate::Destination;
use ringfence_gate::judge::{self, Decider};

use super::bound::bind;
use super::{Approver, Question};
use crate::decision::{Decision, Outcome};
use crate::grants::threads::ThreadId;

/// What is remembered of answers, and told of them.
pub trait Memory: Send + Sync {
    /// What was answered before: yes, no, or nothing yet.
    fn standing(&self, permissions: &Permissions) -> Option<bool>;

    /// Keeps an answer; `false` if that failed, and then it is a no.
    fn keep(&self, answer: Answer, permissions: &Permissions) -> bool;

    /// Tells of a decision.
    fn note(&self, decision: Decision);
}

/// Asks a program about hosts on nobody's list.
pub struct LiveDecider {
    /// Who is asked.
    pub approver: Mutex<Box<dyn Approver>>,
    /// The command, word by word.
    pub command: Vec<OsString>,
    /// Where it was started.
    pub directory: PathBuf,
    /// The policy that it runs under.
    pub policy: Policy,
    /// The thread that an answer can be kept for.
    pub thread: Option<ThreadId>,
    /// What was answered before, and where answers go.
    pub memory: Box<dyn Memory>,
}

impl std::fmt::Debug for LiveDecider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveDecider").finish_non_exhaustive()
    }
}

impl Decider for LiveDecider {
    fn decide(&self, destination: &Destination) -> judge::Answer {
        let host = match &destination.host {
            ringfence_core::host::Host::Ip(std::net::IpAddr::V6(address)) => format!("[{address}]"),
            other => other.to_string(),
        };
        let pattern = format!("{host}:{}", destination.port).parse::<HostPattern>();
        let Ok(pattern) = pattern else {
            return judge::Answer::Deny;
        };
        let permissions: Permissions = [Permission::Host(pattern)].into_iter().collect();
        let request = Request {
            permissions,
            reason: None,
        };
        // One question at a time; whoever waited may find that it was answered meanwhile.
        let approver = self.approver.lock();
        let mut approver = approver.unwrap_or_else(PoisonError::into_inner);
        let thread = self.thread.as_ref();
        let note = |decision: Decision| self.memory.note(decision.in_thread(thread));
        if let Some(yes) = self.memory.standing(&request.permissions) {
            let outcome = if yes {
                Outcome::Stands
            } else {
                Outcome::Denied
            };
            note(Decision::new(&request, outcome, "what was kept"));
            return if yes {
                judge::Answer::Allow
            } else {
                judge::Answer::Deny
            };
        }
        let question = Question {
            binding: bind(
                &self.command,
                &self.directory,
                &self.policy,
                &request.permissions,
            ),
            command: &self.command,
            directory: &self.directory,
            request: &request,
            paths: &[],
            thread,
            longest: Scope::Always,
            obstacle: None,
        };
        note(Decision::new(&request, Outcome::Asked, approver.who()));
        let answer = approver.ask(&question);
        let answer = match answer {
            Ok(answer) if self.memory.keep(answer, &request.permissions) => answer,
            Ok(_) => {
                note(Decision::new(
                    &request,
                    Outcome::Denied,
                    "the answer could not be kept",
                ));
                return judge::Answer::Deny;
            }
            Err(error) => {
                note(Decision::new(&request, Outcome::Denied, error.to_string()));
                return judge::Answer::Deny;
            }
        };
        note(Decision::answered(&request, answer, approver.who()));
        match answer {
            Answer::Allow(_) => judge::Answer::Allow,
            Answer::Deny(_) | Answer::Retry => judge::Answer::Deny,
        }
    }
}
