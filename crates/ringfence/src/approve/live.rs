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
use crate::grants::threads::ThreadId;

/// What is done with a yes that holds longer than the session.
pub type Keep = dyn Fn(Scope, &Permissions) -> bool + Send + Sync;

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
    /// Keeps a yes; `false` if that failed, and then it is a no.
    pub keep: Box<Keep>,
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
            thread: self.thread.as_ref(),
            longest: Scope::Always,
        };
        let approver = self.approver.lock();
        let mut approver = approver.unwrap_or_else(PoisonError::into_inner);
        match approver.ask(&question) {
            Ok(Answer::Allow(scope)) if (self.keep)(scope, &request.permissions) => {
                judge::Answer::Allow
            }
            Ok(Answer::Allow(_) | Answer::Deny(_)) | Err(_) => judge::Answer::Deny,
        }
    }
}
