//! A session while it runs, and its end.
//!
//! One thread waits for the command, one for signals; this one decides. However it ends, the session's
//! processes are ended by their fingerprint before its directory goes: also when the handle is dropped,
//! and also when the program that holds it is about to exit, because the clean-up runs on the thread
//! that drops.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use ringfence_core::cleanup::end_session;
use ringfence_core::plan::{Plan, Step};
use ringfence_core::seatbelt::SessionDirectory;
use ringfence_sys::signals::Set;
use rustix::process::{Pid, Signal, kill_process};

use super::orders::{Keep, Task};
use super::table::Table;
use super::{Session, Stage, now, pipe, tell};
use crate::launch::nowhere::{Filter, Relay};
use crate::launch::{Cause, Network, Report};

/// Whether a session begins with a process group of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Group {
    /// It does, and all who stay in it can be ended at once.
    Own,
    /// It is in the caller's: a terminal talks to one group at a time.
    Callers,
}

impl Group {
    /// What suits the standard streams of this process.
    pub(super) fn of_streams() -> Self {
        let terminal =
            io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
        if terminal { Self::Callers } else { Self::Own }
    }

    pub(super) fn set(self, command: &mut Command) {
        if self == Self::Own {
            command.process_group(0);
        }
    }
}

/// A session that runs.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    group: Group,
    child: Option<Child>,
    session: Session,
    wall: Option<u64>,
    plan: Plan,
    started: Instant,
    started_at: SystemTime,
    /// Who ends the session if this process cannot, and what it waits for.
    keeper: Option<(Child, OwnedFd)>,
}

/// Signals that are passed on to a session instead of ending its supervisor.
#[derive(Debug)]
pub struct Signals {
    set: Set,
}

/// Signals that people and programs end others with.
const PASSED_ON: [Signal; 5] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
];

impl Signals {
    /// Keeps signals from ending this process, from now on. Call it before other threads are started:
    /// those have masks of their own.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn listen() -> io::Result<Self> {
        let set = Set::new(&PASSED_ON.map(Signal::as_raw));
        set.block()?;
        Ok(Self { set })
    }
}

/// Something that happened.
enum News {
    Ended(io::Result<ExitStatus>),
    Signal(i32),
}

impl Running {
    pub(super) fn new(
        child: Child,
        group: Group,
        session: Session,
        wall: Option<u64>,
        plan: Plan,
    ) -> Self {
        Self {
            pid: child.id().cast_signed(),
            group,
            child: Some(child),
            session,
            wall,
            plan,
            started: Instant::now(),
            started_at: now(),
            keeper: None,
        }
    }

    /// Starts the process that ends the session if this one dies first.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        let (lifeline_inside, lifeline) = pipe()?;
        let directory = self.session.directory.path().as_path();
        let parent = directory.parent().unwrap_or(directory);
        let name = directory.file_name().and_then(|name| name.to_str());
        let number = name.and_then(SessionDirectory::number_in);
        let task = Task::Keep(Keep {
            parent: parent.as_os_str().as_bytes().to_vec(),
            number: number.ok_or(io::ErrorKind::InvalidData)?.to_string(),
            group: self.own_group().map(Pid::as_raw_nonzero).map(Into::into),
            lifeline: lifeline_inside.as_raw_fd(),
        });
        let mut stage = Stage::new()?;
        // Whatever is typed at a terminal is not for it, and it holds nobody's streams open.
        stage.process.process_group(0);
        stage
            .process
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (child, orders) = stage.start(lifeline_inside)?;
        self.keeper = Some((child, lifeline));
        tell(orders, &task)
    }

    fn own_group(&self) -> Option<Pid> {
        match self.group {
            Group::Own => Pid::from_raw(self.pid),
            Group::Callers => None,
        }
    }

    /// Ends a second stage that did not become its command.
    pub(super) fn abandon(mut self) {
        if let Some(child) = &mut self.child {
            // It has ended, or will not do anything any more.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.child = None;
    }

    /// What a session tried to reach: without a gate nobody knows.
    pub fn attempts(&self) -> Network {
        Network::default()
    }

    /// The number of the session's first process on this host.
    pub fn id(&self) -> i32 {
        self.pid
    }

    /// How long each step took: not measured here.
    pub fn timeline(&self) -> &[(Step, Duration)] {
        &[]
    }

    /// The session's own terminal: it has none.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        None
    }

    /// Waits for the end of the session.
    ///
    /// # Errors
    ///
    /// The kernel's answer. Then the session's processes were ended as far as they could be found.
    pub fn wait(self) -> io::Result<Report> {
        let (sender, receiver) = channel();
        self.supervise(sender, &receiver)
    }

    /// The same, and signals that were sent to this process reach the command.
    ///
    /// # Errors
    ///
    /// As [`Running::wait`].
    pub fn wait_passing_signals(self, signals: &Signals) -> io::Result<Report> {
        let (sender, receiver) = channel();
        let (to_us, set) = (sender.clone(), signals.set);
        std::thread::Builder::new().spawn(move || {
            // Ends with the process, or when nobody listens any more.
            while let Ok(signal) = set.wait() {
                if to_us.send(News::Signal(signal)).is_err() {
                    break;
                }
            }
        })?;
        self.supervise(sender, &receiver)
    }

    /// Never called: there is no such filter.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    #[expect(clippy::needless_pass_by_value, reason = "as where there is one")]
    pub fn wait_filtering(self, filter: Filter, _signals: &Signals) -> io::Result<Report> {
        filter.never()
    }

    /// Never called: there is no such terminal.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    #[expect(clippy::needless_pass_by_value, reason = "as where there is one")]
    pub fn wait_relaying(self, relay: Relay) -> io::Result<Report> {
        relay.never()
    }

    fn supervise(mut self, sender: Sender<News>, news: &Receiver<News>) -> io::Result<Report> {
        let Some(mut child) = self.child.take() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        std::thread::Builder::new().spawn(move || {
            let _ = sender.send(News::Ended(child.wait()));
        })?;
        let deadline = self
            .wall
            .and_then(|wall| self.started.checked_add(Duration::from_secs(wall)));
        let cause = loop {
            match next(news, deadline) {
                Ok(News::Ended(status)) => break cause(status?),
                Ok(News::Signal(signal)) => self.pass_on(signal),
                Err(RecvTimeoutError::Timeout) => break Cause::WallTime,
                Err(RecvTimeoutError::Disconnected) => break Cause::Ended,
            }
        };
        self.end_everybody()?;
        Ok(Report {
            engine: self.plan.engine(),
            cause,
            gaps: self.plan.gaps().to_vec(),
            names: Vec::new(),
            not_held: Vec::new(),
            tried: Vec::new(),
            changes: None,
            denials: Vec::new(),
            network: Network::default(),
            timeline: Vec::new(),
            started: self.started_at,
            ended: now(),
        })
    }

    fn pass_on(&self, signal: i32) {
        let signal = PASSED_ON.into_iter().find(|known| known.as_raw() == signal);
        if let (Some(pid), Some(signal)) = (Pid::from_raw(self.pid), signal) {
            // It may have ended.
            let _ = kill_process(pid, signal);
        }
    }

    fn end_everybody(&self) -> io::Result<()> {
        let mut table = Table::new(&self.session.directory, self.own_group());
        end_session(&mut table)
            .map(|_| ())
            .map_err(|error| io::Error::other(error.to_string()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever lets go of a session ends it. What is left is said by the next one that looks.
        let _ = self.end_everybody();
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
        if let Some((mut keeper, lifeline)) = self.keeper.take() {
            drop(lifeline);
            let _ = keeper.wait();
        }
    }
}

fn next(news: &Receiver<News>, deadline: Option<Instant>) -> Result<News, RecvTimeoutError> {
    match deadline {
        Some(deadline) => news.recv_timeout(deadline.saturating_duration_since(Instant::now())),
        None => news.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

fn cause(status: ExitStatus) -> Cause {
    match (status.code(), status.signal()) {
        (Some(code), _) => Cause::Exited {
            status: u8::try_from(code & 0xff).unwrap_or(u8::MAX),
        },
        (None, Some(signal)) => Cause::Killed { signal },
        (None, None) => Cause::Ended,
    }
}
