//! What a run leaves: `--report` and `--json-fd` for programs, and the audit trail.
//!
//! The first two are opened before anything else happens, so that nothing runs without its record;
//! and whatever way a run takes, its last event is written exactly once. The trail is opened when
//! the command runs already: nobody waits for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringfence::audit::{self, Denial, Trail};
use ringfence::launch::{Report, Running};
use ringfence::report::{
    End, Event, EventStream, Name, Planned, Refused, RefusedCause, ReportError, ReportFile,
    ShellPolicy, Start, Text, Time,
};
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
    stream: Option<EventStream>,
    asked: SystemTime,
    planned: Planned,
    error: Option<String>,
    /// What was approved for this run.
    pub(crate) approved: Approved,
    about: About,
    /// Whoever waits for the command of a lingering session.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    pub(crate) behind: Option<ringfence::linger::Behind>,
}

/// What the audit trail says of every event of this run.
#[derive(Debug, Default)]
struct About {
    session: String,
    name: String,
    project: PathBuf,
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    directory: PathBuf,
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    command: Vec<OsString>,
    /// Where sessions are written down.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    sessions: Option<PathBuf>,
    trail: Option<Trail>,
}

impl Record {
    /// Opens what was asked for. Nothing may have been opened before.
    pub(crate) fn open(arguments: &SessionArguments) -> Result<Self, ReportError> {
        let mut record = Self {
            file: None,
            stream: None,
            asked: SystemTime::now(),
            planned: Planned::default(),
            error: None,
            approved: Approved::default(),
            about: About::default(),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            behind: None,
        };
        if arguments.dry_run {
            return Ok(record);
        }
        if let Some(number) = arguments.json_fd {
            record.stream = Some(EventStream::inherited(number.unsigned_abs())?);
        }
        if let Some(path) = &arguments.report {
            record.file = Some(ReportFile::open(path)?);
        }
        Ok(record)
    }

    /// Whether anybody will read it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.file.is_some() || self.stream.is_some()
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
            // Where sessions cannot be found by others, this is all there is to call one by.
            name: name.unwrap_or_default().to_owned(),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            directory: scene.surroundings.current.as_path().to_owned(),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            command: command.to_vec(),
            trail: scene.surroundings.state.as_deref().map(Trail::below),
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            sessions: scene.surroundings.sessions(),
            ..About::default()
        };
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        if let Ok(named) = ringfence::sessions::About::new(name, command) {
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

    /// Notes an event for the audit trail.
    fn note(&mut self, event: &audit::Event<'_>) {
        let About {
            session,
            name,
            trail: Some(trail),
            ..
        } = &mut self.about
        else {
            return;
        };
        if let Err(error) = trail.note(session, name, event) {
            tell(&format!(
                "ringfence: an event could not be noted: {error}\n"
            ));
        }
    }

    /// Writes to the audit trail what was noted. The session goes on whether or not that works.
    pub(crate) fn flush(&mut self) {
        let flushed = self.about.trail.as_mut().map(Trail::flush);
        if let Some(Err(error)) = flushed {
            tell(&visible(&format!("ringfence: {}\n", with_causes(&error))));
            // Once is enough.
            self.about.trail = None;
        }
    }

    /// Remembers what was said of the command before it was started, and what was said against it.
    pub(crate) fn judged(&mut self, judged: Judged, objection: Option<&str>) {
        self.note(&audit::Event::Decision(audit::Decision {
            request: &judged.text,
            answer: objection.unwrap_or("allowed"),
            by: &format!("the shell policy, rules {}", judged.rules),
        }));
        self.planned.shell_policy = Some(ShellPolicy {
            rules: judged.rules,
            command: judged.text,
            judgement: judged.judgement,
        });
    }

    /// Remembers why nothing was started.
    pub(crate) fn because(&mut self, error: impl Into<String>) {
        self.error = Some(error.into());
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
        let Some(stream) = &mut self.stream else {
            return;
        };
        let event = Event::Start(Start {
            planned: &self.planned,
            command: command.iter().map(|word| Text(word)).collect(),
            directory: Text(directory.as_os_str()),
            process: running.id(),
            started: Time(SystemTime::now()),
        });
        said(stream.write(&event));
    }

    /// The session is over.
    pub(crate) fn end(mut self, report: &Report) {
        for denial in &report.denials {
            self.note(&audit::Event::Denial(denial));
        }
        for attempt in &report.network.attempts {
            if let Some(denial) = Denial::at_gate(attempt) {
                self.note(&audit::Event::Denial(&denial));
            }
        }
        let took = report.ended.duration_since(report.started);
        let took = took.unwrap_or_default().as_millis();
        self.note(&audit::Event::End(audit::End {
            cause: report.cause,
            exit_status: report.cause.exit_status(),
            names: report.names.iter().map(Name::new).collect(),
            milliseconds: u64::try_from(took).unwrap_or(u64::MAX),
        }));
        self.flush();
        let planned = self.planned.clone();
        self.last(&Event::End(End::new(&planned, report)));
    }

    /// Nothing was started.
    pub(crate) fn refused(mut self, exit: Exit) {
        let planned = self.planned.clone();
        let error = self.error.clone();
        let error = error.unwrap_or_else(|| "see standard error".to_owned());
        self.note(&audit::Event::Refused {
            exit_status: exit.code(),
            error: &error,
        });
        self.flush();
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
        if let Some(mut stream) = self.stream {
            said(stream.write(event));
        }
        if let Some(mut file) = self.file {
            said(file.write(event));
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
        self.flush();
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
}
