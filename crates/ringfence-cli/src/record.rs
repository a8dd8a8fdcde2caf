//! What a run leaves: `--report` and `--json-fd` for programs, and the audit trail.
//!
//! The first two are opened before anything else happens, so that nothing runs without its record;
//! and whatever way a run takes, its last event is written exactly once. The trail is opened when
//! the command runs already: nobody waits for it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

#[cfg(any(target_os = "linux", target_os = "macos"))]
use ringfence::Happened;
use ringfence::audit::{self, Denial, Denied, Trail};
use ringfence::decision::Decision;
use ringfence::dotfiles::{self, Telling};
use ringfence::launch::{Report, Running};
use ringfence::report::{
    Decided, End, Event, EventStream, Index, Name, Planned, Refused, RefusedCause, ReportError,
    ReportFile, SessionName, ShellPolicy, Start, Text, Time,
};
use ringfence_core::path::AbsPath;
use ringfence_core::plan::Plan;
use ringfence_core::policy::Policy;

use crate::args::SessionArguments;
use crate::commands::approve::Approved;
use crate::commands::judged::Judged;
use crate::commands::with_causes;
use crate::exit::Exit;
use crate::load::Scene;
use crate::output::{tell, visible};

/// The record of one run.
#[derive(Debug)]
pub(crate) struct Record {
    file: Option<ReportFile>,
    journal: Journal,
    asked: SystemTime,
    planned: Planned,
    error: Option<String>,
    /// What was approved for this run.
    pub(crate) approved: Approved,
    /// Whether something that the command printed is lost, by us.
    pub(crate) lost_output: bool,
    about: About,
    /// Denials that are in the audit trail already.
    told: HashSet<(Denied, String)>,
    /// Whether the session has run for more than a moment, so that what happens in it is written
    /// down at once.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    settled: bool,
    /// Whoever waits for the command of a lingering session.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    pub(crate) behind: Option<ringfence::linger::Behind>,
}

/// Where events go, shared with whoever decides about hosts while the command runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    session: SessionName,
    trail: Option<Trail>,
    stream: Option<EventStream>,
    decisions: Vec<Decision>,
}

impl Journal {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of a decision, at once to whoever listens.
    pub(crate) fn decided(&self, decision: Decision) {
        let mut pages = self.pages();
        pages.note(&audit::Event::Decision(&decision));
        pages.say(&Event::Decision(Decided {
            decision: Cow::Borrowed(&decision),
            time: Time(SystemTime::now()),
        }));
        pages.decisions.push(decision);
    }

    /// Writes to the audit trail what was noted. The session goes on whether or not that works.
    pub(crate) fn flush(&self) {
        let mut pages = self.pages();
        let flushed = pages.trail.as_mut().map(Trail::flush);
        if let Some(Err(error)) = flushed {
            tell(&visible(&format!("ringfence: {}\n", with_causes(&error))));
            // Once is enough.
            pages.trail = None;
        }
    }
}

impl Pages {
    /// Notes an event for the audit trail.
    fn note(&mut self, event: &audit::Event<'_>) {
        let Self {
            session: SessionName { id, name, .. },
            trail: Some(trail),
            ..
        } = self
        else {
            return;
        };
        if let Err(error) = trail.note(id, name, event) {
            tell(&format!(
                "ringfence: an event could not be noted: {error}\n"
            ));
        }
    }

    /// Writes an event for a program.
    fn say(&mut self, event: &Event<'_>) {
        if let Some(stream) = &mut self.stream {
            said(stream.write(&self.session, event));
        }
    }
}

/// Writes a decision that belongs to no session into the audit trail.
pub(crate) fn decided_alone(state: Option<&Path>, name: &str, decision: Decision) {
    let journal = Journal::default();
    *journal.pages() = Pages {
        session: SessionName::new(String::new(), name.to_owned()),
        trail: state.map(Trail::below),
        ..Pages::default()
    };
    journal.decided(decision);
    journal.flush();
}

/// Where a run is, for others to find it.
#[derive(Debug, Default)]
struct About {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    session: String,
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    name: String,
    project: PathBuf,
    /// Where start-up files are, and where it is remembered what was said of them.
    startup: Option<(AbsPath, PathBuf)>,
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    directory: PathBuf,
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    command: Vec<OsString>,
    /// Where sessions are written down.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    sessions: Option<PathBuf>,
}

impl Record {
    fn empty() -> Self {
        Self {
            file: None,
            journal: Journal::default(),
            asked: SystemTime::now(),
            planned: Planned::default(),
            error: None,
            approved: Approved::default(),
            lost_output: false,
            about: About::default(),
            told: HashSet::new(),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            settled: false,
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            behind: None,
        }
    }

    /// Opens what was asked for. Nothing may have been opened before.
    pub(crate) fn open(arguments: &SessionArguments) -> Result<Self, ReportError> {
        let mut record = Self::empty();
        if arguments.dry_run {
            return Ok(record);
        }
        if let Some(number) = arguments.json_fd {
            record.journal.pages().stream = Some(EventStream::inherited(number.unsigned_abs())?);
        }
        if let Some(path) = &arguments.report {
            match ReportFile::open(path) {
                Ok(file) => record.file = Some(file),
                Err(error) => {
                    record.because(with_causes(&error));
                    record.refused(Exit::Refused);
                    return Err(error);
                }
            }
        }
        Ok(record)
    }

    /// Tells whoever listens at a descriptor that what was typed makes no sense. Where nobody does,
    /// nobody is told.
    pub(crate) fn of_mistake(number: u32, what: &str) {
        let Ok(stream) = EventStream::inherited(number) else {
            return;
        };
        let mut record = Self::empty();
        record.journal.pages().stream = Some(stream);
        record.because(what);
        record.refused(Exit::Usage);
    }

    /// Whether anybody will read it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.file.is_some() || self.journal.pages().stream.is_some()
    }

    /// Remembers what was planned.
    pub(crate) fn planned(&mut self, policy: &Policy, plan: &Plan) {
        if self.is_wanted() {
            let shell_policy = self.planned.shell_policy.take();
            self.planned = Planned {
                shell_policy,
                ..Planned::new(policy, plan)
            };
        }
    }

    /// Remembers where a run is, so that others can find it.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "macos")),
        expect(unused_variables, reason = "only there others can find it")
    )]
    pub(crate) fn scene(&mut self, scene: &Scene, name: Option<&str>, command: &[OsString]) {
        self.about = About {
            project: scene.place.project.as_path().to_owned(),
            startup: scene
                .surroundings
                .home
                .clone()
                .zip(scene.surroundings.state.clone()),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            directory: scene.surroundings.current.as_path().to_owned(),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            command: command.to_vec(),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            sessions: scene.surroundings.sessions(),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            session: String::new(),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            name: String::new(),
        };
        let mut pages = self.journal.pages();
        pages.trail = scene.surroundings.state.as_deref().map(Trail::below);
        // Where sessions cannot be found by others, this is all there is to call one by.
        name.unwrap_or_default().clone_into(&mut pages.session.name);
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        if let Ok(named) = ringfence::sessions::About::new(name, command) {
            pages.session = SessionName::new(named.id.clone(), named.name.clone());
            self.about.session = named.id;
            self.about.name = named.name;
        }
    }

    /// Where the session is written down, and as what.
    ///
    /// Without it the session is held all the same, and only `ringfence sessions` does not see it.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    pub(crate) fn registry(&self, plan: &Plan) -> Option<(PathBuf, ringfence::sessions::About)> {
        let registry = self.about.sessions.clone()?;
        let about = ringfence::sessions::About {
            id: self.about.session.clone(),
            name: self.about.name.clone(),
            project: self.about.project.clone(),
            directory: self.about.directory.clone(),
            command: self.about.command.clone(),
            engine: plan.engine().to_string(),
        };
        Some((registry, about))
    }

    /// Where events go.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    fn note(&self, event: &audit::Event<'_>) {
        self.journal.pages().note(event);
    }

    /// What was planned, and everything that was decided until now.
    fn whole(&self) -> Planned {
        Planned {
            decisions: self.journal.pages().decisions.clone(),
            ..self.planned.clone()
        }
    }

    /// Remembers what was said of the command before it was started, and what was said against it.
    pub(crate) fn judged(&mut self, judged: Judged, objection: Option<&str>) {
        self.journal.decided(Decision::of_command(
            &judged.text,
            objection.unwrap_or("allowed"),
            format!("the shell policy, rules {}", judged.rules),
        ));
        self.planned.shell_policy = Some(ShellPolicy {
            rules: judged.rules,
            command: judged.text,
            judgement: judged.judgement,
        });
    }

    /// Warns about secrets in start-up files that the command can read, once. The command runs
    /// already: nobody waits for this.
    pub(crate) fn warn_of_secrets(&self, policy: &Policy) {
        let Some((home, state)) = &self.about.startup else {
            return;
        };
        match dotfiles::unwarned(policy, home, state) {
            Ok(telling) => {
                for Telling { file, names } in telling {
                    tell(&visible(&format!(
                        "ringfence: commands can read {file}, which sets {}: keep such values elsewhere, or hide the file with `secrets.hide` (said once)\n",
                        names.join(", ")
                    )));
                }
            }
            Err(error) => tell(&visible(&format!("ringfence: {}\n", with_causes(&error)))),
        }
    }

    /// Remembers why nothing was started.
    pub(crate) fn because(&mut self, error: impl Into<String>) {
        self.error = Some(error.into());
    }

    /// Opens what is written to when the command has ended, and somebody waits.
    pub(crate) fn make_ready(&self) {
        if let Some(trail) = &mut self.journal.pages().trail {
            trail.make_ready();
        }
    }

    /// The command runs.
    pub(crate) fn start(
        &mut self,
        running: &Running,
        command: &[OsString],
        directory: &Path,
        plan: &Plan,
    ) {
        let project = self.about.project.clone();
        self.note(&audit::Event::Start(audit::Start {
            project: Text(project.as_os_str()),
            directory: Text(directory.as_os_str()),
            command: audit::Start::words(command),
            engine: plan.engine(),
            tracking: plan.tracking(),
            gaps: plan.gaps().iter().map(|gap| gap.rule.as_str()).collect(),
            process: running.id(),
        }));
        if self.journal.pages().stream.is_none() {
            return;
        }
        let planned = self.whole();
        let event = Event::Start(Start {
            planned: &planned,
            command: command.iter().map(|word| Text(word)).collect(),
            directory: Text(directory.as_os_str()),
            process: running.id(),
            started: Time(SystemTime::now()),
        });
        self.journal.pages().say(&event);
    }

    /// The session is over.
    pub(crate) fn end(self, report: &Report) {
        let attempts = report.network.attempts.iter();
        let hosts: Vec<Denial> = attempts.filter_map(Denial::at_gate).collect();
        for denial in report.denials.iter().chain(&hosts) {
            // It was noted when it happened; what came again is noted with how often.
            let known = (denial.what, denial.target.clone());
            if denial.count > 1 || !self.told.contains(&known) {
                self.note(&audit::Event::Denial(denial));
            }
        }
        let took = report.ended.duration_since(report.started);
        let took = took.unwrap_or_default().as_millis();
        self.note(&audit::Event::End(audit::End {
            cause: report.cause,
            exit_status: report.cause.exit_status(),
            names: report.names.iter().map(Name::new).collect(),
            indexes: report.indexes.iter().map(Index::new).collect(),
            milliseconds: u64::try_from(took).unwrap_or(u64::MAX),
        }));
        self.journal.flush();
        let planned = self.whole();
        self.last(&Event::End(End::new(&planned, report)));
    }

    /// Nothing was started.
    pub(crate) fn refused(self, exit: Exit) {
        let planned = self.whole();
        let error = self.error.clone();
        let first = || crate::output::first_complaint().map(str::to_owned);
        let error = error.or_else(first);
        let error = error.unwrap_or_else(|| "see standard error".to_owned());
        self.note(&audit::Event::Refused {
            exit_status: exit.code(),
            error: &error,
        });
        self.journal.flush();
        let asked = self.asked;
        self.last(&Event::Refused(Refused {
            planned: &planned,
            cause: RefusedCause::Refused,
            exit_status: exit.code(),
            error: &error,
            started: Time(asked),
            ended: Time(SystemTime::now()),
        }));
    }

    fn last(self, event: &Event<'_>) {
        let mut pages = self.journal.pages();
        pages.say(event);
        if let Some(mut file) = self.file {
            said(file.write(&pages.session, event));
        }
    }
}

/// The command has its own status by now, and keeps it; but nobody shall look for a record that is
/// not there.
fn said(written: std::io::Result<()>) {
    if let Err(error) = written {
        tell(&format!(
            "ringfence: the report could not be written: {error}\n"
        ));
    }
}

/// While the session is waited for: it is told when others can see it, and when its command ends.
#[cfg(any(target_os = "linux", target_os = "macos"))]
impl ringfence::launch::Observer for Record {
    fn settled(&mut self, session: &Running) {
        self.settled = true;
        self.journal.flush();
        if let Some(error) = session.unregistered() {
            tell(&visible(&format!("ringfence: {}\n", with_causes(error))));
        }
        if let (Some(name), Some(_)) = (session.name(), &self.behind) {
            tell(&format!(
                "ringfence: this session lingers; `ringfence sessions kill {name}` ends it\n"
            ));
        }
    }

    fn command_ended(&mut self, _session: &Running, cause: ringfence::launch::Cause) {
        if let Some(behind) = self.behind.take() {
            behind.tell(cause);
        }
    }

    fn happened(&mut self, event: &ringfence::Event) {
        match &event.happened {
            Happened::Denied(denial) => {
                self.note(&audit::Event::Denial(denial));
                self.told.insert((denial.what, denial.target.clone()));
                if self.settled {
                    self.journal.flush();
                }
            }
            // Whoever was asked tells of it, with more than is known here.
            Happened::Decided { .. } => return,
            _ => {}
        }
        self.journal.pages().say(&event.line());
    }
}
