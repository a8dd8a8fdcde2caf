//! What programs read about a session: events, one JSON object a line, and the report.
//!
//! The report is the last event of a session, in a file of its own. Every object says which
//! version of this format it has; within a version fields are added and never changed. A status of
//! 125 that the command ended with and one that ringfence ended with cannot be confused: only the
//! latter has the cause `refused`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ringfence_core::plan::{Engine, Gap, LimitName, Plan, Step};
use ringfence_core::policy::{Ignored, Policy};
use ringfence_shell::{Judgement, RuleSet};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Serialize, Serializer};

use crate::audit::Denial;
use crate::changes::Changes;
use crate::decision::Decision;
#[doc(no_inline)]
pub use crate::event::SessionName;
pub use crate::indexes::Index;
use crate::launch::{Attempt, Cause, NameFound, Report};
use crate::probe::guarantee::layers_of;

/// What a pipe that can be written to takes at once: `PIPE_BUF`, by POSIX at least.
const LEAST_ROOM: usize = 512;

/// The version of the format.
pub const VERSION: u32 = 1;

/// Something that happened to a session.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
#[non_exhaustive]
pub enum Event<'a> {
    /// The command goes on after it was stopped.
    Continue {
        /// When.
        time: Time,
    },
    /// Somebody asked for more than the policy gives, and somebody answered.
    Decision(Decided<'a>),
    /// The session wanted something that it did not get, and ringfence itself said no.
    Denial {
        /// When.
        time: Time,
        /// What, and what would grant it.
        #[serde(flatten)]
        denial: &'a Denial,
    },
    /// The session is over.
    End(End<'a>),
    /// The command used more of something than its limit, and was ended for it.
    Limit {
        /// When.
        time: Time,
        /// Of what.
        limit: LimitName,
    },
    /// Nothing was started.
    Refused(Refused<'a>),
    /// The command runs.
    Start(Start<'a>),
    /// A signal has stopped the command.
    Stop {
        /// When.
        time: Time,
        /// Which one.
        signal: i32,
    },
}

/// What was planned, as far as it had come.
///
/// # Examples
///
/// ```
/// use ringfence::{Happened, Policy, Sandbox, words::Engine};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// let mut session = sandbox.command("true").spawn()?;
/// if let Some(Happened::Started(started)) = session.try_event()?.map(|event| event.happened) {
///     assert_eq!(started.planned.engine, Some(Engine::Track));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Planned {
    /// What holds the walls up.
    pub engine: Option<Engine>,
    /// What that is worth, in one line.
    pub guarantee: Option<String>,
    /// Rules that do not hold here.
    pub gaps: Vec<Gap>,
    /// What a project's file asked for and did not get.
    pub ignored: Vec<Ignored>,
    /// What was decided about it, in order.
    pub decisions: Vec<Decision>,
    /// What was said of the command before it was started, if it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_policy: Option<ShellPolicy>,
}

/// What the shell policy said of a command.
///
/// # Examples
///
/// ```
/// // Only `ringfence run --shell-policy` reads commands before it starts them.
/// fn show(planned: &ringfence::event::Planned) {
///     if let Some(read) = &planned.shell_policy {
///         println!("{} was read: {:?}", read.command, read.judgement);
///     }
/// }
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct ShellPolicy {
    /// The rules it was judged by, besides those of the settings.
    pub rules: RuleSet,
    /// The command as it was read; places are bytes of it.
    pub command: String,
    /// What was said.
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl Planned {
    /// All of it.
    #[doc(hidden)]
    pub fn new(policy: &Policy, plan: &Plan) -> Self {
        Self {
            engine: Some(plan.engine()),
            guarantee: Some(guarantee(plan)),
            gaps: plan.gaps().to_vec(),
            ignored: policy.ignored().to_vec(),
            decisions: Vec::new(),
            shell_policy: None,
        }
    }
}

/// What a plan is worth, in one line.
pub fn guarantee(plan: &Plan) -> String {
    let layers = layers_of(plan);
    match (plan.engine(), plan.gaps().len()) {
        (Engine::Track, 0) => format!("{layers}: nothing is restricted, and nothing survives"),
        (_, 0) => format!("{layers}: all promises hold"),
        (_, 1) => format!("{layers}: one rule does not hold"),
        (_, count) => format!("{layers}: {count} rules do not hold"),
    }
}

/// A decision, and when it was made.
#[derive(Clone, Debug, Serialize)]
pub struct Decided<'a> {
    /// What was decided.
    #[serde(flatten)]
    pub decision: Cow<'a, Decision>,
    /// When.
    pub time: Time,
}

/// A command that runs.
#[derive(Clone, Debug, Serialize)]
pub struct Start<'a> {
    /// What was planned.
    #[serde(flatten)]
    pub planned: &'a Planned,
    /// The command.
    pub command: Vec<Text<'a>>,
    /// Where it runs.
    pub directory: Text<'a>,
    /// The number of the session's first process on this host.
    pub process: i32,
    /// When it started.
    pub started: Time,
}

/// A session that is over.
#[derive(Clone, Debug, Serialize)]
pub struct End<'a> {
    /// What was planned.
    #[serde(flatten)]
    pub planned: &'a Planned,
    /// How the command ended; what ended the session if it lingered and was ended.
    #[serde(flatten)]
    pub cause: Cause,
    /// What a shell is told.
    pub exit_status: u8,
    /// Protected names that appeared, and where they were put.
    pub names: Vec<Name<'a>>,
    /// Protected names that could be held no longer, or not be looked at in the end.
    pub names_not_held: Vec<Text<'a>>,
    /// Protected names that somebody inside tried to make.
    pub tried: Vec<Text<'a>>,
    /// Git indexes that it left and that somebody should know of.
    pub indexes: Vec<Index<'a>>,
    /// What became of the project, if somebody looked before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<&'a Changes>,
    /// What ringfence itself did not let the session have.
    pub denials: &'a [Denial],
    /// What it tried to reach through the network gate.
    pub network: Vec<Attempted<'a>>,
    /// How many more attempts there were than are listed.
    pub network_not_kept: u64,
    /// How long each step of the launch took.
    pub timeline: Vec<Took>,
    /// When it started.
    pub started: Time,
    /// When it was over.
    pub ended: Time,
}

impl<'a> End<'a> {
    /// From what the session's supervisor reports.
    pub fn new(planned: &'a Planned, report: &'a Report) -> Self {
        let took = |(step, took): &(Step, Duration)| Took {
            step: *step,
            microseconds: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        };
        Self {
            planned,
            cause: report.cause,
            exit_status: report.cause.exit_status(),
            names: report.names.iter().map(Name::new).collect(),
            names_not_held: texts(&report.not_held),
            tried: texts(&report.tried),
            indexes: report.indexes.iter().map(Index::new).collect(),
            changes: report.changes.as_deref(),
            denials: &report.denials,
            network: report.network.attempts.iter().map(Attempted::new).collect(),
            network_not_kept: report.network.not_kept,
            timeline: report.timeline.iter().map(took).collect(),
            started: Time(report.started),
            ended: Time(report.ended),
        }
    }
}

fn texts(paths: &[PathBuf]) -> Vec<Text<'_>> {
    paths.iter().map(|path| Text(path.as_os_str())).collect()
}

/// A session that never was.
#[derive(Clone, Debug, Serialize)]
pub struct Refused<'a> {
    /// What was planned, as far as it had come.
    #[serde(flatten)]
    pub planned: &'a Planned,
    /// Always `refused`.
    pub cause: RefusedCause,
    /// What a shell is told.
    pub exit_status: u8,
    /// Why, in words.
    pub error: &'a str,
    /// When it was asked for.
    pub started: Time,
    /// When it was refused.
    pub ended: Time,
}

/// The cause of a session that never was.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedCause {
    /// ringfence started nothing.
    #[default]
    Refused,
}

/// A protected name that a session made.
#[derive(Clone, Debug, Serialize)]
pub struct Name<'a> {
    /// The name.
    pub path: Text<'a>,
    /// Where it was put out of the way; `null` if it could not be.
    pub moved_to: Option<Text<'a>>,
    /// Whether it was removed instead.
    pub removed: bool,
}

impl<'a> Name<'a> {
    /// From what the session's supervisor found.
    pub fn new(found: &'a NameFound) -> Self {
        Self {
            path: Text(found.path.as_os_str()),
            moved_to: found.moved_to.as_deref().map(|path| Text(path.as_os_str())),
            removed: found.removed,
        }
    }
}

/// What a session tried to reach, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Attempted<'a> {
    /// When it began.
    pub time: Time,
    /// The rest.
    #[serde(flatten)]
    pub attempt: &'a Attempt,
}

impl<'a> Attempted<'a> {
    fn new(attempt: &'a Attempt) -> Self {
        let time = Time(attempt.at);
        Self { time, attempt }
    }
}

/// How long a step took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Took {
    /// Which step.
    pub step: Step,
    /// On the clock.
    pub microseconds: u64,
}

/// A text of the operating system. What is not Unicode in it is replaced: JSON has no other text.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a OsStr);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string_lossy())
    }
}

/// A moment, as `2026-01-31T23:59:59.123Z`.
#[derive(Clone, Copy, Debug)]
pub struct Time(pub SystemTime);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nobody starts sessions before 1970; a clock that says so is wrong.
        let since = self.0.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.unwrap_or(Duration::ZERO);
        let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let millis = since.subsec_millis();
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
        )
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The date that is so many days after 1970 began.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from a first of March, a leap day is the last day of its year; 400 years are one
    // round of the calendar.
    let days = days.saturating_add(719_468);
    let (round, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = round * 400 + year + u64::from(month <= 2);
    (year, month, day_of_month)
}

/// An event with the version of the format, and with whose it is.
#[derive(Serialize)]
struct Versioned<'a> {
    version: u32,
    #[serde(flatten)]
    session: &'a SessionName,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

impl Event<'_> {
    /// As one line, without its end.
    ///
    /// # Errors
    ///
    /// None that is known of; the format's own.
    pub fn to_json(&self, session: &SessionName) -> io::Result<String> {
        let versioned = Versioned {
            version: VERSION,
            session,
            event: self,
        };
        Ok(serde_json::to_string(&versioned)?)
    }

    fn line(&self, session: &SessionName) -> io::Result<Vec<u8>> {
        let mut line = self.to_json(session)?.into_bytes();
        line.push(b'\n');
        Ok(line)
    }
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The descriptor cannot be written to.
    #[error("nothing can be written to descriptor {number}")]
    Descriptor {
        /// Its number.
        number: u32,
        /// What the kernel answered.
        source: io::Error,
    },
    /// There is something that is not the caller's own file.
    #[error("{} is not a plain file of the caller's own", path.display())]
    NotOwn {
        /// The path.
        path: PathBuf,
    },
    /// The file cannot be opened.
    #[error("the report cannot be written to {}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// A file for the report, opened before anything runs.
///
/// From then on only the descriptor is used: whatever the session does to the name, the report
/// goes where it was meant to go, and nowhere else.
#[derive(Debug)]
pub struct ReportFile(File);

impl ReportFile {
    /// Makes the file, or empties the caller's own. Never follows a link.
    ///
    /// # Errors
    ///
    /// See [`ReportError`]; what is not the caller's own plain file was not changed.
    pub fn open(path: &Path) -> Result<Self, ReportError> {
        let refused = |source| ReportError::Open {
            path: path.to_owned(),
            source,
        };
        let mut made = OpenOptions::new();
        made.write(true).create_new(true).mode(0o600);
        match made.open(path) {
            Ok(file) => return Ok(Self(file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refused(error)),
        }
        let flags = rustix::fs::OFlags::NOFOLLOW
            | rustix::fs::OFlags::NONBLOCK
            | rustix::fs::OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let mut own = OpenOptions::new();
        own.write(true).custom_flags(flags);
        let not_own = || ReportError::NotOwn {
            path: path.to_owned(),
        };
        let file = own.open(path).map_err(|error| {
            if rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::LOOP) {
                not_own()
            } else {
                refused(error)
            }
        })?;
        let found = file.metadata().map_err(refused)?;
        let own = found.uid() == rustix::process::geteuid().as_raw();
        // A second name may be somebody else's.
        if !found.is_file() || !own || found.nlink() != 1 {
            return Err(not_own());
        }
        file.set_len(0).map_err(refused)?;
        let private = std::fs::Permissions::from_mode(0o600);
        file.set_permissions(private).map_err(refused)?;
        Ok(Self(file))
    }

    /// Writes the last event of a session, over whatever is in the file.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn write(&mut self, session: &SessionName, last: &Event<'_>) -> io::Result<()> {
        let line = last.line(session)?;
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(&line)
    }
}

/// A descriptor that somebody left open to read events from.
///
/// What happens while the session runs is written as far as the reader takes it, and the rest with
/// the next event: a reader who does not read must not keep a session from being ended. The last
/// event is waited for.
#[derive(Debug)]
pub struct EventStream {
    file: File,
    /// Written when there is room; whoever tells of events bounds how many there are.
    unread: Vec<u8>,
}

impl EventStream {
    /// Takes a copy of what is open under a number.
    ///
    /// Call it before anything else is opened, or the number may be one of our own. The command
    /// does not get it: no descriptor above standard error is ever passed on.
    ///
    /// # Errors
    ///
    /// See [`ReportError`].
    pub fn inherited(number: u32) -> Result<Self, ReportError> {
        let refused = |source| ReportError::Descriptor { number, source };
        let file = copy_of(number).map_err(refused)?;
        let mode = rustix::fs::fcntl_getfl(&file).map_err(|errno| refused(errno.into()))?;
        if mode & rustix::fs::OFlags::RWMODE == rustix::fs::OFlags::RDONLY {
            return Err(refused(rustix::io::Errno::BADF.into()));
        }
        let unread = Vec::new();
        Ok(Self { file, unread })
    }

    /// Writes one event.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn write(&mut self, session: &SessionName, event: &Event<'_>) -> io::Result<()> {
        self.unread.extend_from_slice(&event.line(session)?);
        if matches!(event, Event::End(_) | Event::Refused(_)) {
            let all = std::mem::take(&mut self.unread);
            return self.file.write_all(&all);
        }
        while !self.unread.is_empty() && self.has_room() {
            // Where there is room at all, a pipe or socket takes this much without waiting.
            let end = self.unread.len().min(LEAST_ROOM);
            let written = self.file.write(self.unread.get(..end).unwrap_or_default());
            match written {
                Ok(count) => drop(self.unread.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // Nobody reads any more.
                    self.unread.clear();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        let now = rustix::event::Timespec::default();
        let mut watched = [PollFd::new(&self.file, PollFlags::OUT)];
        poll(&mut watched, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn copy_of(number: u32) -> io::Result<File> {
    Ok(ringfence_sys::descriptors::copy_of(number)?.into())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn copy_of(number: u32) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .open(format!("/dev/fd/{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Network;
    use std::os::unix::fs::symlink;

    fn report(cause: Cause) -> Report {
        Report {
            engine: Engine::Namespaces,
            cause,
            gaps: Vec::new(),
            names: vec![NameFound {
                path: PathBuf::from("/p/.envrc"),
                moved_to: None,
                removed: true,
            }],
            not_held: vec![PathBuf::from("/p/.idea")],
            tried: vec![PathBuf::from("/p/.git")],
            indexes: Vec::new(),
            changes: None,
            denials: Vec::new(),
            network: Network::default(),
            timeline: vec![(Step::Root, Duration::from_micros(1500))],
            started: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
            ended: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_001),
        }
    }

    fn session() -> SessionName {
        SessionName::new("0123456789abcdef".to_owned(), "web".to_owned())
    }

    fn json(cause: Cause) -> serde_json::Value {
        let report = report(cause);
        let planned = Planned {
            engine: Some(Engine::Namespaces),
            guarantee: Some("namespaces: all promises hold".to_owned()),
            ..Planned::default()
        };
        let event = Event::End(End::new(&planned, &report));
        serde_json::from_str(&event.to_json(&session()).unwrap()).unwrap()
    }

    #[test]
    fn an_end_has_every_field_of_its_version() {
        assert_eq!(
            json(Cause::Exited { status: 125 }),
            serde_json::json!({
                "version": 1,
                "session": "0123456789abcdef",
                "name": "web",
                "event": "end",
                "engine": "namespaces",
                "guarantee": "namespaces: all promises hold",
                "gaps": [],
                "ignored": [],
                "decisions": [],
                "cause": "exited",
                "status": 125,
                "exit_status": 125,
                "names": [{"path": "/p/.envrc", "moved_to": null, "removed": true}],
                "names_not_held": ["/p/.idea"],
                "tried": ["/p/.git"],
                "indexes": [],
                "denials": [],
                "network": [],
                "network_not_kept": 0,
                "timeline": [{"step": "root", "microseconds": 1500}],
                "started": "2023-11-14T22:13:20.123Z",
                "ended": "2023-11-14T22:13:21.000Z",
            })
        );
        let killed = json(Cause::Killed { signal: 9 });
        assert_eq!(killed["cause"], "killed");
        assert_eq!(
            (&killed["signal"], &killed["exit_status"]),
            (&9.into(), &137.into())
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            let time = Time(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(time.to_string(), expected);
        }
    }

    #[test]
    fn a_report_is_written_to_ones_own_plain_file_only() {
        let world = tempfile::tempdir().unwrap();
        let at = |name: &str| world.path().join(name);
        let write = |path: &Path| {
            let report = report(Cause::Ended);
            let planned = Planned::default();
            let event = Event::End(End::new(&planned, &report));
            ReportFile::open(path).map(|mut file| file.write(&session(), &event).unwrap())
        };
        write(&at("new")).unwrap();
        std::fs::write(at("own"), "x".repeat(100_000)).unwrap();
        write(&at("own")).unwrap();
        for name in ["new", "own"] {
            let text = std::fs::read_to_string(at(name)).unwrap();
            let _: serde_json::Value = serde_json::from_str(&text).unwrap();
            let mode = std::fs::metadata(at(name)).unwrap().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }

        std::fs::write(at("target"), "kept").unwrap();
        symlink("target", at("link")).unwrap();
        std::fs::write(at("twice"), "kept").unwrap();
        std::fs::hard_link(at("twice"), at("again")).unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), 0o600.into()).unwrap();
        for name in ["link", "twice", "directory", "pipe", "absent/file"] {
            assert!(write(&at(name)).is_err(), "{name}");
        }
        for name in ["target", "twice"] {
            assert_eq!(std::fs::read_to_string(at(name)).unwrap(), "kept");
        }
    }

    #[test]
    fn events_go_to_a_descriptor_that_can_be_written() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let (mut read, write) = io::pipe().unwrap();
        let number = |fd: i32| u32::try_from(fd).unwrap();
        let mut stream = EventStream::inherited(number(write.as_raw_fd())).unwrap();
        assert!(EventStream::inherited(number(read.as_raw_fd())).is_err());
        assert!(EventStream::inherited(999_999).is_err());
        let planned = Planned::default();
        let now = Time(SystemTime::now());
        let refused = Event::Refused(Refused {
            planned: &planned,
            cause: RefusedCause::Refused,
            exit_status: 125,
            error: "a line\nbreak",
            started: now,
            ended: now,
        });
        stream.write(&session(), &refused).unwrap();
        drop((stream, write));
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 1);
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&line["event"], &line["cause"]),
            (&"refused".into(), &"refused".into())
        );
    }
}
