//! Asking somebody, and holding the answer to what was shown.
//!
//! A [`Question`] is everything that is shown; an [`Approver`] shows it and brings an answer: a
//! person at the terminal ([`terminal`]), or a program ([`program`]). Whatever goes wrong on the way
//! is a no. Nothing here grants anything: that is done by whoever asked, after looking again
//! whether everything is still as it was shown ([`bound`]).

pub mod bound;
pub mod live;
pub mod program;
pub mod terminal;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_core::binding::Binding;
use ringfence_core::path::AbsPath;
use ringfence_core::permission::Permission;
use ringfence_core::request::{Answer, Request, Scope};
use ringfence_core::shown::{Shown, shown_bytes, shown_host, shown_word};

use crate::grants::threads::ThreadId;

/// How long somebody is waited for, unless the caller says otherwise.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// What somebody is asked.
#[derive(Debug)]
pub struct Question<'a> {
    /// What the answer has to be for.
    pub binding: Binding,
    /// The command, word by word.
    pub command: &'a [OsString],
    /// Where it starts, or runs.
    pub directory: &'a Path,
    /// What is asked for: only what is not granted yet.
    pub request: &'a Request,
    /// Paths as they were asked for, where that is not where they lead.
    pub paths: &'a [(PathBuf, AbsPath)],
    /// The thread that an answer can be kept for.
    pub thread: Option<&'a ThreadId>,
    /// For how long it may be granted at most.
    pub longest: Scope,
    /// Why the sandbox cannot be made, if that is what this is about.
    pub obstacle: Option<Obstacle<'a>>,
}

/// What keeps a sandbox from being made.
#[derive(Clone, Copy, Debug)]
pub struct Obstacle<'a> {
    /// In words, of ringfence's own and of the kernel's.
    pub why: &'a str,
    /// How often it was tried.
    pub tried: u32,
    /// Whether it can be tried again.
    pub again: bool,
}

impl Question<'_> {
    /// For how long it can be granted.
    pub fn scopes(&self) -> Vec<Scope> {
        let mut scopes = vec![Scope::Once];
        if self.thread.is_some() && self.longest >= Scope::Thread {
            scopes.push(Scope::Thread);
        }
        if self.longest == Scope::Always {
            scopes.push(Scope::Always);
        }
        scopes
    }

    /// Every answer that counts.
    pub fn answers(&self) -> Vec<Answer> {
        let again = self.obstacle.is_some_and(|obstacle| obstacle.again);
        let retry = again.then_some(Answer::Retry);
        let allow = self.scopes().into_iter().map(Answer::Allow);
        let never = self.thread.map(|_| Answer::Deny(Scope::Thread));
        let deny = [Answer::Deny(Scope::Once)].into_iter().chain(never);
        retry.into_iter().chain(allow).chain(deny).collect()
    }

    /// The answer that a word means, if it is one of those that were offered.
    fn offered(&self, word: &str) -> Result<Answer, AskError> {
        let mut answers = self.answers().into_iter();
        let answer = answers.find(|answer| answer.word() == word);
        answer.ok_or(AskError::Answer {
            why: "this was not one of the choices",
        })
    }

    /// The command as it is shown.
    pub fn shown_command(&self) -> Shown {
        let mut out = Shown::default();
        for word in self.command {
            if !out.text.is_empty() {
                out.text.push(' ');
            }
            out.push(&shown_word(word));
        }
        out
    }

    /// What is asked for, as it is shown.
    pub fn shown_permissions(&self) -> Vec<Shown> {
        let each = self.request.permissions.iter();
        each.map(|permission| self.shown_permission(permission))
            .collect()
    }

    fn shown_permission(&self, permission: &Permission) -> Shown {
        let with = |what: &str, shown: Shown| Shown {
            text: format!("{what} {}", shown.text),
            marks: shown.marks,
        };
        match permission {
            Permission::Host(pattern) => with("reach", shown_host(pattern)),
            Permission::Write(path) => {
                let bytes = path.as_path().as_os_str().as_encoded_bytes();
                let mut out = with("write", shown_bytes(bytes));
                let asked = self.paths.iter().find(|(_, leads)| leads == path);
                if let Some((asked, _)) = asked {
                    let asked = shown_bytes(asked.as_os_str().as_encoded_bytes());
                    out.text.push_str(" (asked for as ");
                    out.push(&asked);
                    out.text.push(')');
                }
                out
            }
            other => Shown {
                text: other.to_string(),
                marks: Vec::new(),
            },
        }
    }
}

/// Why there is no answer. It is a no in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The answer cannot be taken for one.
    #[error("the answer cannot be used: {why}")]
    Answer {
        /// What is wrong with it.
        why: &'static str,
    },
    /// Whoever was asked has gone.
    #[error("whoever was asked has gone away")]
    Gone,
    /// The kernel refused.
    #[error("nobody could be asked")]
    Kernel {
        /// What it answered.
        source: io::Error,
    },
    /// There is nobody.
    #[error("there is nobody to ask")]
    Nobody,
    /// Nobody answered in time.
    #[error("nobody answered in time")]
    TimedOut,
}

/// Somebody who can be asked.
pub trait Approver: Send {
    /// Shows the question and waits for the answer.
    ///
    /// # Errors
    ///
    /// See [`AskError`]; each means no.
    fn ask(&mut self, question: &Question<'_>) -> Result<Answer, AskError>;

    /// Who that is, for the audit trail.
    fn who(&self) -> &'static str;

    /// What ends whoever is still being asked when it goes, if that is ours to end.
    fn leash(&self) -> Option<program::Leash> {
        None
    }
}
