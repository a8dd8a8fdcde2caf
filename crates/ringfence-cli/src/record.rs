//! What a run leaves for programs: `--report` and `--json-fd`.
//!
//! Both are opened before anything else happens, so that nothing runs without its record; and
//! whatever way a run takes, its last event is written exactly once.

use std::ffi::OsString;
use std::path::Path;
use std::time::SystemTime;

use ringfence::launch::{Report, Running};
use ringfence::report::{
    End, Event, EventStream, Planned, Refused, RefusedCause, ReportError, ReportFile, ShellPolicy,
    Start, Text, Time,
};
use ringfence_core::plan::Plan;
use ringfence_core::policy::Policy;

use crate::args::SessionArguments;
use crate::commands::approve::Approved;
use crate::commands::judged::Judged;
use crate::exit::Exit;
use crate::output::tell;

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

    /// Remembers what was said of the command before it was started.
    pub(crate) fn judged(&mut self, judged: Judged) {
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
    pub(crate) fn start(&mut self, running: &Running, command: &[OsString], directory: &Path) {
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
    pub(crate) fn end(self, report: &Report) {
        let planned = self.planned.clone();
        self.last(&Event::End(End::new(&planned, report)));
    }

    /// Nothing was started.
    pub(crate) fn refused(self, exit: Exit) {
        let planned = self.planned.clone();
        let error = self.error.clone();
        let error = error.unwrap_or_else(|| "see standard error".to_owned());
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
