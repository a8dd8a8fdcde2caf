//! What a run asks for, who is asked, and what is done with the answer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringfence::approve::bound::{Captured, bind};
use ringfence::approve::live::{LiveDecider, Memory};
use ringfence::approve::program::{ByCommand, Leash, OverDescriptor};
use ringfence::approve::terminal::Terminal;
use ringfence::approve::{Approver, AskError, Question};
use ringfence::decision::{Decision, Outcome};
use ringfence::grants::always::Always;
use ringfence::grants::threads::{ThreadId, Threads};
use ringfence::launch::Decider;
use ringfence::place::Surroundings;
use ringfence_core::path::AbsPath;
use ringfence_core::permission::{Permission, Permissions};
use ringfence_core::policy::{Policy, Seen};
use ringfence_core::request::{Answer, Request, Scope};
use ringfence_core::text::printable_path;

use super::bare::outside;
use super::grants::{command_to_paste, flags_to_paste};
use super::run::Job;
use super::with_causes;
use crate::asking::{RequestFlags, WantedFlags};
use crate::exit::Exit;
use crate::flags::typed;
use crate::load::Scene;
use crate::output::{complain, tell, visible};
use crate::record::Journal;

/// How often somebody is asked about one command that keeps changing.
const MOST_ASKED: usize = 3;

/// Said when an answer was for something else than would run.
pub(super) const CHANGED: &str =
    "ringfence: something changed while you were asked, so the answer does not count\n";

/// What came of asking.
#[derive(Default)]
pub(crate) struct Approved {
    /// Paths that were granted, held open until the session has its own hold of them.
    pub(crate) captured: Arc<[Captured]>,
    /// Who is asked about hosts while the command runs.
    pub(crate) decider: Option<Arc<dyn Decider>>,
    /// Ends whoever is still being asked when the run is over.
    leash: Option<Leash>,
}

impl std::fmt::Debug for Approved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approved")
            .field("captured", &self.captured)
            .field("leash", &self.leash)
            .finish_non_exhaustive()
    }
}

/// The policy of a run with everything that was granted for it, before or now.
pub(super) fn settle(
    mut scene: Scene,
    again: &dyn Fn() -> Result<Scene, Exit>,
    job: &Job<'_>,
    flags: &RequestFlags,
    journal: &Journal,
) -> Result<(Scene, Policy, Approved), Exit> {
    let decided = |decision: Decision| journal.decided(decision.in_thread(flags.thread.as_ref()));
    let mut approver = approver(flags)?;
    for _ in 0..MOST_ASKED {
        let (request, paths) = request(flags, &scene)?;
        let standing = standing(&mut scene, flags.thread.as_ref())?;
        let policy = scene.policy()?;
        let missing = request.unanswered(&policy, &standing);
        for known in known(&request, &missing, &standing) {
            decided(known);
        }
        if missing.is_empty() {
            return finish(scene, job, flags, &request, approver, Vec::new(), journal);
        }
        let refused = |by: &str| decided(Decision::new(&missing, Outcome::Denied, by));
        refuse_forbidden(&missing, &policy, &scene, flags.thread.as_ref())
            .inspect_err(|_| refused("what was decided before"))?;
        refuse_in_vain(&missing, again, job)
            .inspect_err(|_| refused("a flag, a variable or a rule"))?;
        let directory = scene.surroundings.current.as_path().to_owned();
        let binding = bind(job.command, &directory, &policy, &missing.permissions);
        let captured = Captured::all(&missing.permissions).map_err(|path| {
            complain(&format!("{path} is a link, or is gone"), None);
            Exit::Refused
        })?;
        let question = Question {
            binding,
            command: job.command,
            directory: &directory,
            request: &missing,
            paths: &paths,
            thread: flags.thread.as_ref(),
            longest: missing.longest(&policy),
            obstacle: None,
        };
        let (answer, who) = ask(approver.as_deref_mut(), &question, journal);
        let scope = match answer {
            Ok(Answer::Allow(scope)) => scope,
            Ok(answer @ (Answer::Deny(_) | Answer::Retry)) => {
                decided(Decision::answered(&missing, answer, who));
                keep_no(&scene.surroundings, flags.thread.as_ref(), answer, &missing)?;
                return Err(denied(&missing, "the answer was no", flags));
            }
            Err(error) => {
                decided(Decision::new(
                    &missing,
                    Outcome::Denied,
                    unanswered(who, &error),
                ));
                return Err(denied(&missing, &error.to_string(), flags));
            }
        };
        // Everything is looked at once more: the answer was for what was shown.
        scene = again()?;
        let (same, _) = self::request(flags, &scene)?;
        self::standing(&mut scene, flags.thread.as_ref())?;
        let now = bind(
            job.command,
            &directory,
            &scene.policy()?,
            &missing.permissions,
        );
        if same != request || now != binding || !captured.iter().all(Captured::holds) {
            decided(Decision::new(&missing, Outcome::Void, who));
            tell(CHANGED);
            scene = again()?;
            continue;
        }
        keep(
            &scene.surroundings,
            flags.thread.as_ref(),
            scope,
            &missing.permissions,
        )?;
        let granted = Answer::Allow(scope);
        decided(Decision::answered(&missing, granted, who));
        scene.loaded.grant(&missing.permissions, scope);
        tell(&visible(&format!(
            "ringfence: granted {scope}: {}\n",
            missing.permissions
        )));
        return finish(scene, job, flags, &request, approver, captured, journal);
    }
    complain("the command changed each time somebody was asked", None);
    Err(Exit::Refused)
}

/// Shows a question to whoever answers, and tells of it.
pub(super) fn ask(
    approver: Option<&mut (dyn Approver + 'static)>,
    question: &Question<'_>,
    journal: &Journal,
) -> (Result<Answer, AskError>, &'static str) {
    let Some(approver) = approver else {
        return (Err(AskError::Nobody), "nobody");
    };
    let who = approver.who();
    let asked = Decision::new(question.request, Outcome::Asked, who);
    journal.decided(asked.in_thread(question.thread));
    (approver.ask(question), who)
}

/// Who did not answer, and why not.
pub(super) fn unanswered(who: &str, error: &AskError) -> String {
    match error {
        AskError::Nobody => who.to_owned(),
        other => format!("{who}: {other}"),
    }
}

/// What was asked for and needed nobody: it was granted before.
fn known(request: &Request, missing: &Request, standing: &Permissions) -> Vec<Decision> {
    let known = request.permissions.iter();
    let known = known.filter(|permission| !missing.permissions.contains(permission));
    known
        .map(|permission| {
            let by = if standing.covers(permission) {
                "what was granted to this thread"
            } else {
                "the policy"
            };
            let alone = Request {
                permissions: [permission.clone()].into_iter().collect(),
                reason: request.reason.clone(),
            };
            Decision::new(&alone, Outcome::Stands, by)
        })
        .collect()
}

fn finish(
    mut scene: Scene,
    job: &Job<'_>,
    flags: &RequestFlags,
    request: &Request,
    approver: Option<Box<dyn Approver>>,
    captured: Vec<Captured>,
    journal: &Journal,
) -> Result<(Scene, Policy, Approved), Exit> {
    let policy = if request.permissions.contains(&Permission::Unsandboxed) {
        let policy = outside(&mut scene, job)?;
        tell("ringfence: this command runs OUTSIDE the sandbox, only tracked\n");
        policy
    } else {
        scene.policy()?
    };
    let by_program = flags.approve_fd.is_some() || flags.approve_cmd.is_some();
    let approver = approver.filter(|_| by_program);
    let leash = approver.as_ref().and_then(|approver| approver.leash());
    let decider = approver.map(|approver| {
        let memory = Kept {
            surroundings: scene.surroundings.clone(),
            thread: flags.thread.clone(),
            journal: journal.clone(),
        };
        let decider: Arc<dyn Decider> = Arc::new(LiveDecider {
            approver: Mutex::new(approver),
            command: job.command.to_vec(),
            directory: scene.surroundings.current.as_path().to_owned(),
            policy: policy.clone(),
            thread: flags.thread.clone(),
            memory: Box::new(memory),
        });
        decider
    });
    let approved = Approved {
        captured: captured.into(),
        decider,
        leash,
    };
    Ok((scene, policy, approved))
}

/// What is known about hosts while a command runs.
struct Kept {
    surroundings: Surroundings,
    thread: Option<ThreadId>,
    journal: Journal,
}

impl Memory for Kept {
    fn standing(&self, permissions: &Permissions) -> Option<bool> {
        let (id, threads) = self.thread.as_ref().zip(threads(&self.surroundings))?;
        let Ok(kept) = threads.read(id) else {
            return Some(false);
        };
        if kept.refused(permissions).is_some() {
            return Some(false);
        }
        let granted = kept.permissions();
        let all = permissions.iter().all(|wanted| granted.covers(wanted));
        all.then_some(true)
    }

    fn keep(&self, answer: Answer, permissions: &Permissions) -> bool {
        let thread = self.thread.as_ref();
        let kept = match answer {
            Answer::Allow(scope) => keep(&self.surroundings, thread, scope, permissions),
            Answer::Deny(_) | Answer::Retry => {
                let missing = Request {
                    permissions: permissions.clone(),
                    reason: None,
                };
                keep_no(&self.surroundings, thread, answer, &missing)
            }
        };
        kept.is_ok()
    }

    fn note(&self, decision: Decision) {
        self.journal.decided(decision);
        self.journal.flush();
    }
}

/// Who is asked: a program if one was named, else whoever sits at the terminal.
pub(super) fn approver(flags: &RequestFlags) -> Result<Option<Box<dyn Approver>>, Exit> {
    let patience = Duration::from_secs(flags.approve_timeout);
    if let Some(number) = flags.approve_fd {
        let over = OverDescriptor::inherited(number, patience).map_err(|error| {
            complain(
                &format!("--approve-fd {number} cannot be used: {error}"),
                None,
            );
            Exit::Refused
        })?;
        return Ok(Some(Box::new(over)));
    }
    if let Some(command) = &flags.approve_cmd {
        return Ok(Some(Box::new(ByCommand::new(command, patience))));
    }
    if flags.no_prompt {
        return Ok(None);
    }
    Ok(Terminal::open(patience)
        .ok()
        .map(|terminal| Box::new(terminal) as Box<dyn Approver>))
}

/// What is asked for, with every path where it leads.
fn request(
    flags: &RequestFlags,
    scene: &Scene,
) -> Result<(Request, Vec<(PathBuf, AbsPath)>), Exit> {
    let mut links = Vec::new();
    let WantedFlags {
        request_host,
        request_all_hosts,
        request_git,
        request_write,
        request_write_all,
        request_unsandboxed,
    } = &flags.wanted;
    let mut permissions = Permissions::new();
    for path in request_write {
        let asked = typed(path, &scene.surroundings);
        let canonical = existing(&asked, scene)?;
        if canonical.as_path() != asked {
            links.push((path.clone(), canonical.clone()));
        }
        permissions.insert(Permission::Write(canonical));
    }
    for host in request_host {
        permissions.insert(Permission::Host(host.clone()));
    }
    for (wanted, permission) in [
        (*request_all_hosts, Permission::AnyHost),
        (*request_write_all, Permission::WriteAll),
        (*request_unsandboxed, Permission::Unsandboxed),
    ] {
        if wanted {
            permissions.insert(permission);
        }
    }
    if let Some(level) = request_git {
        permissions.insert(Permission::Git(*level));
    }
    let reason = flags.reason.clone();
    Ok((
        Request {
            permissions,
            reason,
        },
        links,
    ))
}

/// Where a path leads, if something is there and its name can be written down.
pub(super) fn existing(path: &Path, scene: &Scene) -> Result<AbsPath, Exit> {
    let shown = printable_path(path);
    let refused = |why: String| {
        complain(&why, None);
        Exit::Usage
    };
    let canonical = match scene.lookout.look(path) {
        Seen::At(canonical, _) => canonical,
        Seen::Absent => return Err(refused(format!("{shown} does not exist"))),
        Seen::Unreadable(why) => {
            return Err(refused(format!("{shown} cannot be looked up: {why}")));
        }
    };
    if canonical.as_path().to_str().is_none() {
        return Err(refused(format!(
            "{shown} is not text, and so cannot be granted"
        )));
    }
    Ok(canonical)
}

/// Lets in what the thread was granted before; paths only as far as they are what they were.
pub(super) fn standing(scene: &mut Scene, thread: Option<&ThreadId>) -> Result<Permissions, Exit> {
    let Some((id, threads)) = thread.zip(threads(&scene.surroundings)) else {
        return Ok(Permissions::new());
    };
    let kept = threads.read(id).map_err(|error| {
        complain(&with_causes(&error), Some(&error.help()));
        Exit::Refused
    })?;
    let mut standing = Permissions::new();
    for permission in &kept.permissions() {
        if let Permission::Write(path) = permission {
            let what = match scene.lookout.look(path.as_path()) {
                Seen::At(canonical, _) if canonical == *path => None,
                Seen::At(canonical, _) => Some(format!("it now leads to {canonical}")),
                Seen::Absent => Some("it is gone".to_owned()),
                Seen::Unreadable(why) => Some(why),
            };
            if let Some(what) = what {
                tell(&visible(&format!(
                    "ringfence: the grant to write {path} does not count: {what}\n"
                )));
                continue;
            }
        }
        standing.insert(permission.clone());
    }
    scene.loaded.grant(&standing, Scope::Thread);
    Ok(standing)
}

pub(super) fn refuse_forbidden(
    missing: &Request,
    policy: &Policy,
    scene: &Scene,
    thread: Option<&ThreadId>,
) -> Result<(), Exit> {
    if let Err(forbidden) = missing.check(policy) {
        complain(&forbidden.to_string(), None);
        return Err(Exit::Refused);
    }
    let Some((id, threads)) = thread.zip(threads(&scene.surroundings)) else {
        return Ok(());
    };
    let kept = threads.read(id).unwrap_or_default();
    if let Some(denied) = kept.refused(&missing.permissions) {
        let help = "`ringfence grants list` shows it, `ringfence grants revoke` takes it back";
        complain(&format!("this thread was told not to {denied}"), Some(help));
        return Err(Exit::Refused);
    }
    Ok(())
}

/// Nobody is asked for what would not hold anyway.
fn refuse_in_vain(
    missing: &Request,
    again: &dyn Fn() -> Result<Scene, Exit>,
    job: &Job<'_>,
) -> Result<(), Exit> {
    if missing.permissions.contains(&Permission::Unsandboxed) {
        outside(&mut again()?, job)?;
    }
    let mut trial = again()?;
    standing(&mut trial, job.flags.request.thread.as_ref())?;
    trial.loaded.grant(&missing.permissions, Scope::Once);
    let policy = trial.policy()?;
    let outside = [Permission::Unsandboxed].into_iter().collect();
    let still = missing.unanswered(&policy, &outside);
    if let Some(permission) = still.permissions.iter().next() {
        let what = format!("nobody can grant this here: {permission}");
        complain(
            &what,
            Some(
                "a flag, a variable or a rule for exactly this says otherwise; see `ringfence explain`",
            ),
        );
        return Err(Exit::Refused);
    }
    Ok(())
}

fn threads(surroundings: &Surroundings) -> Option<Threads> {
    surroundings.threads().map(Threads::new)
}

/// The user's settings, for writing to.
pub(super) fn always(surroundings: &Surroundings) -> Option<Always> {
    let file = surroundings.user_settings()?;
    let state = surroundings.state.as_ref()?;
    Some(Always::new(&file, state, surroundings.home.as_ref()))
}

pub(super) fn keep(
    surroundings: &Surroundings,
    thread: Option<&ThreadId>,
    scope: Scope,
    permissions: &Permissions,
) -> Result<(), Exit> {
    let kept = match scope {
        Scope::Once => return Ok(()),
        Scope::Thread => thread.zip(threads(surroundings)).map(|(id, threads)| {
            threads
                .grant(id, permissions)
                .map_err(|error| (with_causes(&error), None))
        }),
        Scope::Always => always(surroundings).map(|always| {
            always
                .grant(permissions)
                .map_err(|error| (with_causes(&error), error.help()))
        }),
    };
    match kept {
        Some(Ok(())) => Ok(()),
        Some(Err((why, help))) => {
            complain(&format!("the answer could not be kept: {why}"), help);
            Err(Exit::Refused)
        }
        None => {
            complain("there is no place to keep the answer: set HOME", None);
            Err(Exit::Refused)
        }
    }
}

/// Remembers a no for as long as was said.
pub(super) fn keep_no(
    surroundings: &Surroundings,
    thread: Option<&ThreadId>,
    answer: Answer,
    missing: &Request,
) -> Result<(), Exit> {
    let kept = thread
        .zip(threads(surroundings))
        .filter(|_| matches!(answer, Answer::Deny(Scope::Thread | Scope::Always)));
    let Some((id, threads)) = kept else {
        return Ok(());
    };
    threads.deny(id, &missing.permissions).map_err(|error| {
        complain(&with_causes(&error), Some(&error.help()));
        Exit::Refused
    })
}

/// Says what would have been needed, for people and for programs.
fn denied(missing: &Request, why: &str, flags: &RequestFlags) -> Exit {
    let needed = serde_json::to_string(missing).unwrap_or_default();
    let kept = command_to_paste(&missing.permissions, flags.thread.as_ref());
    let kept = match &flags.thread {
        Some(_) => format!("in this thread: {kept}"),
        None => format!("always, in every project: {kept}"),
    };
    let help = match flags_to_paste(&missing.permissions) {
        Some(once) => format!("to grant it once: `{once}`; {kept}"),
        None => format!("to grant it {kept}"),
    };
    complain(
        &format!(
            "the command asks for more than it may, and {why}: {}",
            missing.permissions
        ),
        Some(&help),
    );
    tell(&visible(&format!("ringfence: needed {needed}\n")));
    Exit::Refused
}
