//! `ringfence run`.

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use ringfence::changes::Before;
use ringfence::git::Search;
use ringfence::launch::{
    Command, Filter, Given, LaunchError, Linger, Options, Relay, RelayError, Report, Rescue,
    Running, Shown, Signals, StepName, Streams, Timeline,
};
use ringfence::planned::Planned;
use ringfence_core::origin::Layer;
use ringfence_core::plan::{Gap, Plan, Tracking};
use ringfence_core::policy::Policy;
use ringfence_core::settings::Kind;
use ringfence_shell::command_line;

#[cfg(target_os = "linux")]
use super::ahead::Waiting;
use super::fallback::{Choice, Fallback, is_unmade};
use super::judged::Judged;
#[cfg(any(target_os = "linux", target_os = "macos"))]
use super::linger;
use super::refusal::{explain_gaps, explain_refusal};
use super::{approve, preview, with_causes};
use crate::args::{RunArguments, SessionArguments};
use crate::exit::Exit;
use crate::flags::Flags;
use crate::lent::Lent;
use crate::load::{Purpose, Scene};
use crate::output::{complain, tell, visible};
use crate::print::grant::Asker;
use crate::print::plan::{and_more, gaps_by_reason};
use crate::print::{ending, missing};
use crate::record::Record;

/// How much of what is ignored is said before every run.
const MOST_IGNORED: usize = 10;

pub(super) fn run(
    arguments: &RunArguments,
    #[cfg(target_os = "linux")] ahead: Option<&Waiting>,
) -> ExitCode {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    if arguments.linger && arguments.lingering.is_none() {
        return linger::in_front();
    }
    let terminal = if arguments.tty {
        Terminal::Required
    } else {
        Terminal::None
    };
    start(&Job {
        kind: Kind::Tool,
        flags: &arguments.session,
        command: &arguments.command,
        terminal,
        linger: if arguments.linger {
            Linger::Yes
        } else {
            Linger::No
        },
        lingering: arguments.lingering,
        #[cfg(target_os = "linux")]
        ahead,
    })
}

/// One command to be confined, whoever asks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) kind: Kind,
    pub(super) flags: &'a SessionArguments,
    pub(super) command: &'a [OsString],
    pub(super) terminal: Terminal,
    pub(super) linger: Linger,
    /// Where whoever waits for the command of a lingering session listens.
    pub(super) lingering: Option<u32>,
    /// A first process that was started on the chance that this is what it is for.
    #[cfg(target_os = "linux")]
    pub(super) ahead: Option<&'a Waiting>,
}

/// Whether a command gets a terminal of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Terminal {
    /// If there is one to lend.
    IfThere,
    /// It has the caller's streams as they are.
    None,
    /// Or it is not started.
    Required,
}

/// Starts it and waits for its end; says what came of it.
pub(super) fn start(job: &Job<'_>) -> ExitCode {
    let mut record = match Record::open(job.flags) {
        Ok(record) => record,
        Err(error) => {
            complain(&with_causes(&error), None);
            return Exit::Refused.into();
        }
    };
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    match linger::behind(job.lingering) {
        Ok(behind) => record.behind = behind,
        Err(exit) => {
            record.refused(exit);
            return exit.into();
        }
    }
    // What lingers may outlast whoever has the streams by then; the one in front sees to them.
    let _lent = job.lingering.is_none().then(Lent::now);
    match prepare(job, &mut record) {
        Ok(Ran::Command(report)) => {
            let lost = record.lost_output;
            record.end(&report);
            match report.cause.exit_status() {
                0 if lost => Exit::No.into(),
                status => ExitCode::from(status),
            }
        }
        Ok(Ran::Nothing(exit)) => exit.into(),
        Err(exit) => {
            record.refused(exit);
            exit.into()
        }
    }
}

/// What came of a run that nothing was wrong with.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one in the life of a process"
)]
enum Ran {
    /// The command was started, and has ended.
    Command(Report),
    /// Nothing was to be started.
    Nothing(Exit),
}

fn prepare(job: &Job<'_>, record: &mut Record) -> Result<Ran, Exit> {
    let arguments = job.flags;
    let set = || {
        Scene::set(
            job.kind,
            if arguments.dry_run {
                Purpose::Preview
            } else {
                Purpose::Start
            },
            &Flags {
                place: &arguments.place,
                files: Some(&arguments.files),
                network: Some(&arguments.network),
                environment: Some(&arguments.environment),
                limits: Some(&arguments.limits),
                engine: Some(&arguments.engine),
            },
        )
    };
    let scene = set()?;
    // Both live as long as the process: giving them back piece by piece would be the last thing
    // between the command's end and ours.
    if !arguments.dry_run {
        record.scene(&scene, arguments.name.as_deref(), job.command);
    }
    #[cfg(target_os = "linux")]
    let mut walking = None;
    let (scene, policy) = if arguments.request.is_used() {
        // Somebody is asked, which takes a while: it would be out of date.
        #[cfg(target_os = "linux")]
        drop(job.ahead.and_then(Waiting::take));
        let settled = approve::settle(scene, &set, job, &arguments.request, record.journal());
        let (scene, policy, approved) = settled.inspect_err(|_| {
            record.because("the command asks for more than it may");
        })?;
        record.approved = approved;
        (scene, policy)
    } else {
        #[cfg(target_os = "linux")]
        let policy = if arguments.dry_run || arguments.shell_policy.is_some() {
            scene.policy()?
        } else {
            let (policy, walk) = scene.presumed()?;
            walking = walk;
            policy
        };
        #[cfg(not(target_os = "linux"))]
        let policy = scene.policy()?;
        (scene, policy)
    };
    let scene = ManuallyDrop::new(scene);
    let mut policy = ManuallyDrop::new(policy);
    if let Some(rules) = arguments.shell_policy {
        let judged = Judged::new(job.command, rules, &policy)?;
        let objection = judged.objection();
        record.judged(judged, objection.as_deref());
        if let Some(objection) = objection {
            record.because(objection);
            return Err(Exit::Refused);
        }
    }
    if arguments.dry_run {
        return preview::answer(job, &policy).map(Ran::Nothing);
    }
    say_what_matters(&policy, arguments.verbose);
    let search = scene.surroundings.search(&scene.place);
    let mut fallback = Fallback::new(job, &set, record.journal());
    let mut bare: Option<Box<Policy>> = None;
    loop {
        let wanted = bare.as_deref().unwrap_or(&policy);
        let given = Given {
            #[cfg(target_os = "linux")]
            ahead: job.ahead.and_then(Waiting::take),
            #[cfg(target_os = "linux")]
            walking: walking.take(),
            ..Given::default()
        };
        let mut outdated = given.is_presumed();
        let unmade = match launch(wanted, &scene, &search, job, record, given) {
            Ok(report) => return Ok(Ran::Command(report)),
            Err(Stopped::Changed) => {
                outdated = true;
                None
            }
            Err(Stopped::Refused(exit)) => return Err(exit),
            Err(Stopped::Unmade(why)) => Some(why),
        };
        // Whoever is asked can be waited for in vain, and then we must be ended as any program.
        #[cfg(target_os = "linux")]
        if let Err(error) = Signals::give_back() {
            complain(&format!("signals cannot be given back: {error}"), None);
            return Err(Exit::Refused);
        }
        if let Some(unmade) = unmade {
            match fallback.choose(&unmade, wanted)? {
                Choice::Retry => {}
                Choice::Without(policy) => bare = Some(policy),
            }
        }
        if outdated {
            // Made once more, of what is there: the walk that it hung on has gone.
            policy = ManuallyDrop::new(set()?.policy()?);
        }
    }
}

/// Why a launch did not come to anything. What stands in the way was said.
enum Stopped {
    /// The policy was made of something that is not there any more, or not of everything.
    Changed,
    /// It is over.
    Refused(Exit),
    /// The sandbox could not be made, in words.
    Unmade(String),
}

/// What a user must know even without `-v`: what was asked for and is not done.
fn say_what_matters(policy: &Policy, verbose: u8) {
    let notes = policy.notes().iter();
    for note in notes.filter(|note| verbose > 0 || !note.is_minor()) {
        tell(&format!("ringfence: {note}\n"));
    }
    for entry in policy.ignored().iter().take(MOST_IGNORED) {
        tell(&visible(&format!(
            "ringfence: ignored, since a project's file can only narrow: {} ({})\n",
            entry.what, entry.origin
        )));
    }
    if policy.ignored().len() > MOST_IGNORED {
        tell("ringfence: and more, see `ringfence settings show`\n");
    }
}

/// Said whenever nothing but descent holds a session together.
const TRACKED_BY_DESCENT: &str = "ringfence: processes are tracked by descent only: a command that kills the session's first process can leave others behind (`ringfence doctor` says why there is no cgroup)\n";

/// Starts the command and waits for its end. The exit status is the command's own.
fn launch(
    policy: &Policy,
    scene: &Scene,
    search: &Search,
    job: &Job<'_>,
    record: &mut Record,
    given: Given,
) -> Result<Report, Stopped> {
    let options = job.flags;
    let presumed = given.is_presumed();
    let mut given = Some(given);
    #[cfg(target_os = "linux")]
    let refused = job.ahead.is_some_and(Waiting::is_refused);
    #[cfg(not(target_os = "linux"))]
    let refused = false;
    let plan = if refused {
        Planned::after_refusal
    } else {
        Planned::new
    };
    let mut planned = ManuallyDrop::new(plan(policy, options.engine.engine));
    // Three times at most: a plan that was made thoroughly is never reconsidered.
    let report = loop {
        record.planned(policy, planned.plan());
        if let Some(weaker) = options.engine.weaker_than_required(planned.plan()) {
            complain(&weaker, Some("`ringfence doctor` says why"));
            record.because(weaker);
            return Err(Stopped::Refused(Exit::Refused));
        }
        if !planned.plan().may_launch() {
            record.because("this host cannot enforce the policy");
            let why = explain_gaps(&planned);
            let project = |gap: &Gap| gap.origin.layer() == Layer::Project;
            if planned.plan().gaps().iter().all(project) {
                // Or a project could have commands run without a sandbox by asking for too much.
                let what = "the project's own settings are all that stands in the way, which is no reason to go without a sandbox";
                complain(what, Some("change them, or see `ringfence explain --plan`"));
                return Err(Stopped::Refused(Exit::Refused));
            }
            // Nobody is asked to go without a sandbox for a limit, which would not hold there either, nor
            // for a grant: without it everything holds.
            let gaps = planned.plan().gaps();
            if gaps.iter().all(|gap| gap.is_limit() || gap.is_grant()) {
                return Err(Stopped::Refused(Exit::Refused));
            }
            return Err(Stopped::Unmade(why));
        }
        if planned.plan().tracking() == Tracking::Descent {
            tell(TRACKED_BY_DESCENT);
        }
        // What was begun is used up by the first attempt, or undone.
        let given = given.take().unwrap_or_default();
        let refusal = match session(policy, planned.plan(), search, job, record, given) {
            Ok(report) => break report,
            Err(LaunchError::Changed) => return Err(Stopped::Changed),
            Err(refusal) => refusal,
        };
        let Some(again) = planned.reconsidered(&refusal, policy, options.engine.engine) else {
            let why = with_causes(&refusal);
            record.because(why.clone());
            let exit = explain_refusal(&refusal);
            return Err(if is_unmade(&refusal) {
                Stopped::Unmade(why)
            } else {
                Stopped::Refused(exit)
            });
        };
        if presumed {
            return Err(Stopped::Changed);
        }
        planned = ManuallyDrop::new(again);
    };
    let told = ending::told(&report) + &ending::refused_hosts(&report.network.attempts);
    if !told.is_empty() {
        tell(&told);
    }
    say_what_was_missing(policy, scene, job, &report);
    if options.verbose > 0 {
        tell(&ending::in_detail(&report));
    }
    Ok(report)
}

/// Says to a command that failed what it was not given.
fn say_what_was_missing(policy: &Policy, scene: &Scene, job: &Job<'_>, report: &Report) {
    let verbose = job.flags.verbose > 0;
    // Whoever sits in it sees what fails, and what the last command of a shell came to is no failure.
    if job.terminal != Terminal::None && !verbose {
        return;
    }
    let settings = scene.surroundings.user_settings();
    let words: Option<Vec<&str>> = job.command.iter().map(|word| word.to_str()).collect();
    let told = missing::Told {
        policy,
        asker: Asker {
            place: &scene.place,
            settings: settings.as_deref(),
        },
        // What is not UTF-8 says nothing here.
        text: &command_line(words.unwrap_or_default()),
        directory: &scene.surroundings.current,
    };
    if let Some(line) = missing::line(told, report) {
        tell(&visible(&line));
    }
    if let Some(line) = missing::variables(policy, report).filter(|_| verbose) {
        tell(&visible(&line));
    }
}

fn session(
    policy: &Policy,
    plan: &Plan,
    search: &Search,
    job: &Job<'_>,
    record: &mut Record,
    mut given: Given,
) -> Result<Report, LaunchError> {
    let options = job.flags;
    let refused = |what: &str, source| LaunchError::Prepare {
        what: what.to_owned(),
        source,
    };
    let mut words = job.command.iter();
    let command = Command {
        program: words.next().cloned().unwrap_or_default(),
        arguments: words.cloned().collect(),
        directory: std::env::current_dir()
            .map_err(|source| refused("find the working directory", source))?,
        environment: std::env::vars_os().collect(),
    };
    let mut asked = Options::default();
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        asked.registry = record.registry(plan);
    }
    asked.linger = job.linger;
    asked.granted = std::sync::Arc::clone(&record.approved.captured);
    if options.verbose > 1 || record.is_wanted() {
        asked.timeline = Timeline::On;
    }
    let shown = if options.sanitize {
        Shown::Sanitized
    } else {
        Shown::AsIs
    };
    // Looking at a large project takes time, so only for somebody who reads what it comes to.
    let wanted = options.verbose > 0 || record.is_wanted();
    let mut before = wanted.then(|| Before::look_beside(search, policy.given()));
    let mut front = Front::new(job.terminal, shown)?;
    given.streams = front.streams();
    let presumed = given.is_presumed();
    let prepared = ringfence::launch::prepare_with(policy, plan, &command, asked, given);
    // What was presumed and is not there is no reason to refuse anything.
    let refused_as = |error| {
        if presumed {
            LaunchError::Changed
        } else {
            error
        }
    };
    let mut prepared = prepared.map_err(refused_as)?;
    if let Some(decider) = &record.approved.decider {
        prepared = prepared.asking(std::sync::Arc::clone(decider));
    }
    // By now the session has a hold of its own on every path: it must be the one that was granted.
    if let Some(moved) = record.approved.captured.iter().find(|path| !path.holds()) {
        let source = std::io::Error::other("something else stands there now");
        return Err(refused(
            &format!("use {} as it was granted", moved.path()),
            source,
        ));
    }
    if let Some(before) = &mut before {
        before.settle();
    }
    let running = prepared.spawn_while(|| {
        record.warn_of_secrets(policy);
        record.make_ready();
    });
    let running = running.map_err(|error| error.explained(policy, &command, &[]))?;
    record.start(&running, job.command, &command.directory, plan);
    say_how_it_holds(plan, &running, options.verbose);
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    let waited = match front {
        Front::Filter(mut filter, signals) => {
            let waited = running.wait_filtering_observed(&mut filter, &signals, record);
            say_unwritten(&filter, record);
            waited
        }
        Front::Signals(signals) => running.wait_passing_signals_observed(&signals, record),
        Front::Terminal(relay) => running.wait_relaying_observed(*relay, record),
    };
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    let waited = match front {
        Front::Filter(mut filter, signals) => running.wait_filtering(&mut filter, &signals),
        Front::Signals(signals) => running.wait_passing_signals(&signals),
        Front::Terminal(relay) => running.wait_relaying(*relay),
    };
    let mut report = waited.map_err(|source| refused("wait for the session", source))?;
    report.changes = before.map(|before| Box::new(before.compare()));
    Ok(report)
}

/// Says which rules do not hold, and, to who wants to know, what holds the others.
fn say_how_it_holds(plan: &Plan, running: &Running, verbose: u8) {
    let mut lines = String::new();
    for group in gaps_by_reason(plan) {
        if let Some(gap) = group.first() {
            let line = format!(
                "ringfence: does not hold here: {}{}: {}\n",
                gap.rule,
                and_more(&group),
                gap.lost
            );
            lines.push_str(&visible(&line));
        }
    }
    // All at once: the command runs beside this, and may be over soon.
    tell(&lines);
    if verbose > 0 {
        tell(&format!(
            "ringfence: {} holds, tracked by {}\n",
            plan.engine(),
            plan.tracking()
        ));
    }
    let timeline = running.timeline().iter();
    for (step, took) in timeline.filter(|_| verbose > 1) {
        tell(&format!("ringfence: {:>9.1?} {}\n", took, StepName(*step)));
    }
}

/// The command was told that all it printed was taken, and we have lost it: a status of zero would be
/// a lie.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn say_unwritten(filter: &Filter, record: &mut Record) {
    if let Some((name, error)) = filter.unwritten() {
        tell(&format!("ringfence: {name} cannot be written: {error}\n"));
        record.lost_output = true;
    }
}

/// What stands between the caller and the session.
enum Front {
    /// What the command prints comes through us; signals are passed on.
    Filter(Box<Filter>, Signals),
    /// The caller's streams are the command's; only signals are passed on.
    Signals(Signals),
    /// The caller's terminal is lent to the session.
    Terminal(Box<Relay>),
}

impl Front {
    /// Listens for signals, so nothing may have been started before.
    fn new(wanted: Terminal, shown: Shown) -> Result<Self, LaunchError> {
        let refused = |what: &str, source| LaunchError::Prepare {
            what: what.to_owned(),
            source,
        };
        let relay = match wanted {
            Terminal::None => Err(RelayError::NoTerminal),
            Terminal::IfThere | Terminal::Required => Relay::new(shown),
        };
        match relay {
            Ok(relay) => {
                let rescue = relay.rescue();
                let rescue =
                    rescue.map_err(|source| refused("keep the terminal's modes", source))?;
                restore_on_panic(rescue);
                Ok(Self::Terminal(Box::new(relay)))
            }
            Err(RelayError::NoTerminal) if wanted != Terminal::Required => {
                let signals = Signals::listen();
                let signals = signals.map_err(|source| refused("listen for signals", source))?;
                if shown == Shown::AsIs {
                    return Ok(Self::Signals(signals));
                }
                let filter = Filter::new(shown);
                let filter = filter.map_err(|source| refused("filter the output", source))?;
                Ok(Self::Filter(Box::new(filter), signals))
            }
            Err(error) => Err(refused(
                "give the command a terminal",
                std::io::Error::other(error),
            )),
        }
    }

    fn streams(&mut self) -> Streams {
        match self {
            Self::Filter(filter, _) => filter.streams(),
            Self::Signals(_) => Streams::default(),
            Self::Terminal(relay) => relay.streams(),
        }
    }
}

/// A program that panics does not drop anything, and would leave the user's terminal as it is.
fn restore_on_panic(rescue: Rescue) {
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        rescue.restore();
        otherwise(panic);
    }));
}
