//! What is done when the sandbox cannot be made: try again, go on without it, or stop.
//!
//! Never silently: somebody has to say so, for this command or for its thread, and it is printed
//! and written down. Without anybody to ask nothing is started.

use std::io::IsTerminal;

use ringfence::approve::bound::bind;
use ringfence::approve::{Approver, AskError, Obstacle, Question};
use ringfence::decision::{Decision, Outcome};
use ringfence::launch::LaunchError;
use ringfence_core::permission::Permission;
use ringfence_core::plan::Step;
use ringfence_core::policy::Policy;
use ringfence_core::request::{Answer, Request, Scope};

use super::approve::{
    CHANGED, approver, ask, keep, keep_no, refuse_forbidden, standing, unanswered,
};
use super::bare::outside;
use super::grants::command_to_paste;
use super::run::Job;
use crate::asking::RequestFlags;
use crate::exit::Exit;
use crate::load::Scene;
use crate::output::{complain, tell, visible};
use crate::record::Journal;

/// How often it is tried before trying again is no choice any more: a program could say so for ever.
const MOST_TRIED: u32 = 10;
/// How often somebody is asked about one command that keeps changing.
const MOST_ASKED: usize = 3;

/// What to do.
#[derive(Debug)]
pub(super) enum Choice {
    /// Try once more.
    Retry,
    /// Run it under this policy, which only tracks.
    Without(Box<Policy>),
}

/// Somebody who can be asked what to do.
pub(super) struct Fallback<'a> {
    job: &'a Job<'a>,
    again: &'a dyn Fn() -> Result<Scene, Exit>,
    journal: Journal,
    tried: u32,
}

impl<'a> Fallback<'a> {
    pub(super) fn new(
        job: &'a Job<'a>,
        again: &'a dyn Fn() -> Result<Scene, Exit>,
        journal: &Journal,
    ) -> Self {
        Self {
            job,
            again,
            journal: journal.clone(),
            tried: 0,
        }
    }

    /// Says what to do about a sandbox that cannot be made. Everything that is not a yes is a no.
    pub(super) fn choose(&mut self, why: &str, policy: &Policy) -> Result<Choice, Exit> {
        self.tried = self.tried.saturating_add(1);
        // Where nothing is held back there is nothing to go without.
        if policy.only_tracks() {
            return Err(Exit::Refused);
        }
        let flags = &self.job.flags.request;
        let request = Request {
            permissions: [Permission::Fallback].into_iter().collect(),
            reason: None,
        };
        let decided = |decision: Decision| {
            self.journal
                .decided(decision.in_thread(flags.thread.as_ref()));
        };
        // Nobody is asked for what would not hold anyway.
        outside(&mut (self.again)()?, self.job)?;
        let mut approver = somebody(flags)?;
        for _ in 0..MOST_ASKED {
            let mut scene = (self.again)()?;
            let kept = standing(&mut scene, flags.thread.as_ref())?;
            let before = scene.policy()?;
            refuse_forbidden(&request, &before, &scene, flags.thread.as_ref()).inspect_err(
                |_| {
                    let by = "what was decided before";
                    decided(Decision::new(&request, Outcome::Denied, by));
                },
            )?;
            let longest = request.longest(&before);
            if kept.covers(&Permission::Fallback) && longest >= Scope::Thread {
                let by = "what was granted to this thread";
                decided(Decision::new(&request, Outcome::Stands, by));
                return without(&mut scene, self.job);
            }
            let directory = scene.surroundings.current.as_path().to_owned();
            let bound =
                |policy: &Policy| bind(self.job.command, &directory, policy, &request.permissions);
            let question = Question {
                binding: bound(&before),
                command: self.job.command,
                directory: &directory,
                request: &request,
                paths: &[],
                thread: flags.thread.as_ref(),
                longest,
                obstacle: Some(Obstacle {
                    why,
                    tried: self.tried,
                    again: self.tried < MOST_TRIED,
                }),
            };
            let (answer, who) = ask(approver.as_deref_mut(), &question, &self.journal);
            let scope = match answer {
                Ok(Answer::Allow(scope)) => scope,
                Ok(answer @ Answer::Retry) => {
                    decided(Decision::answered(&request, answer, who));
                    return Ok(Choice::Retry);
                }
                Ok(answer @ Answer::Deny(_)) => {
                    decided(Decision::answered(&request, answer, who));
                    let thread = flags.thread.as_ref();
                    keep_no(&scene.surroundings, thread, answer, &request)?;
                    return Err(refused("the answer was no", None, &request));
                }
                Err(error) => {
                    decided(Decision::new(
                        &request,
                        Outcome::Denied,
                        unanswered(who, &error),
                    ));
                    let help = who_could_say(&error, &request, flags);
                    return Err(refused(&error.to_string(), help.as_deref(), &request));
                }
            };
            // Everything is looked at once more: the answer was for what was shown.
            let mut scene = (self.again)()?;
            standing(&mut scene, flags.thread.as_ref())?;
            if bound(&scene.policy()?) != question.binding {
                decided(Decision::new(&request, Outcome::Void, who));
                tell(CHANGED);
                continue;
            }
            let thread = flags.thread.as_ref();
            keep(&scene.surroundings, thread, scope, &request.permissions)?;
            decided(Decision::answered(&request, Answer::Allow(scope), who));
            return without(&mut scene, self.job);
        }
        complain("the command changed each time somebody was asked", None);
        Err(Exit::Refused)
    }
}

fn without(scene: &mut Scene, job: &Job<'_>) -> Result<Choice, Exit> {
    let policy = outside(scene, job)?;
    tell(
        "ringfence: this command runs OUTSIDE the sandbox, which could not be made; it is only tracked\n",
    );
    Ok(Choice::Without(Box::new(policy)))
}

/// As for requests; but the terminal only where it is also what the refusal was written to: nobody
/// who looks at a log answers.
fn somebody(flags: &RequestFlags) -> Result<Option<Box<dyn Approver>>, Exit> {
    let named = flags.approve_fd.is_some() || flags.approve_cmd.is_some();
    if named || std::io::stderr().is_terminal() {
        return approver(flags);
    }
    Ok(None)
}

/// What would have somebody say yes, unless somebody has just not done so.
fn who_could_say(error: &AskError, request: &Request, flags: &RequestFlags) -> Option<String> {
    match (&flags.thread, error) {
        (Some(thread), _) => Some(format!(
            "to go on without the sandbox in this thread: {}",
            command_to_paste(&request.permissions, Some(thread))
        )),
        (None, AskError::Nobody) => Some(
            "at a terminal, or with `--approve-cmd`, somebody is asked whether to go on without it"
                .to_owned(),
        ),
        (None, _) => None,
    }
}

fn refused(why: &str, help: Option<&str>, request: &Request) -> Exit {
    let needed = serde_json::to_string(request).unwrap_or_default();
    complain(
        &format!("the sandbox cannot be made, and {why}: nothing was started"),
        help,
    );
    tell(&visible(&format!("ringfence: needed {needed}\n")));
    Exit::Refused
}

/// Whether a launch failed because the sandbox could not be made, and for no other reason.
///
/// A source that was exchanged meanwhile is somebody's doing and no reason to go without a sandbox;
/// a program that is not there would not be there outside either.
pub(super) fn is_unmade(error: &LaunchError) -> bool {
    match error {
        LaunchError::Act { step, source, .. } => {
            let stale = rustix::io::Errno::from_io_error(source) == Some(rustix::io::Errno::STALE);
            !stale && step.0 < Step::Command
        }
        LaunchError::Engine { .. } | LaunchError::Gaps { .. } | LaunchError::Helper { .. } => true,
        _ => false,
    }
}
