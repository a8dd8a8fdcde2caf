//! A session that runs, seen from outside.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ringfence_core::plan::{Plan, Step};
use ringfence_gate::serve::Gate;
use ringfence_sys::failure::Failure;
use ringfence_sys::files::{self, CWD};
use ringfence_sys::process::fill_random;
use ringfence_sys::signals::{Mask, SentBy, SignalFd};
use ringfence_sys::wait::{Child, Ended};
use ringfence_sys::{Errno, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{RenameFlags, renameat_with};
use rustix::process::pidfd_send_signal;

use super::acts::Ready;
use super::broker::Broker;
use super::bwrap::Outside;
use super::gate::Opening;
use super::init::{Boundary, SEAT};
use super::tmp::SessionTmp;
use super::wire::{self, Word};
use crate::launch::{Cause, LaunchError, NameFound, Network, Report, StepName};

/// How long a first process may take to end its descendants.
const PATIENCE: Duration = Duration::from_secs(2);

/// A session: its first process, and through it everything the command started.
///
/// Dropping it ends the session.
#[derive(Debug)]
pub struct Running {
    first: Child,
    /// The first process inside, if it is not the one that we started ourselves.
    inner: Option<OwnedFd>,
    boundary: Boundary,
    /// Its closing tells the first process that nobody waits any more.
    end: Option<OwnedFd>,
    wall: Option<u64>,
    started: Instant,
    started_at: SystemTime,
    names: Vec<PathBuf>,
    plan: Plan,
    _tmp: Option<SessionTmp>,
    pub(super) timeline: Vec<(Step, Duration)>,
    broker: Option<Broker>,
    /// The session has no other network, so with this it has none.
    gate: Option<Gate>,
    /// The outer end of the session's own terminal.
    pub(super) terminal: Option<OwnedFd>,
    reaped: bool,
}

impl Running {
    pub(super) fn new(
        first: Child,
        boundary: Boundary,
        end: OwnedFd,
        wall: Option<u64>,
        names: Vec<PathBuf>,
        plan: Plan,
        tmp: Option<SessionTmp>,
    ) -> Self {
        Self {
            first,
            inner: None,
            boundary,
            end: Some(end),
            wall,
            started: Instant::now(),
            started_at: SystemTime::now(),
            names,
            plan,
            _tmp: tmp,
            timeline: Vec::new(),
            broker: None,
            gate: None,
            terminal: None,
            reaped: false,
        }
    }

    /// Serves the session's network gate, if it has one.
    pub(super) fn open_gate(&mut self, opening: Option<Opening>) -> Result<(), LaunchError> {
        self.gate = opening.map(Opening::open).transpose()?.flatten();
        Ok(())
    }

    /// Answers what the filter asks.
    pub(super) fn ask(&mut self, broker: Broker) {
        self.broker = Some(match &self.gate {
            Some(gate) => broker.carrying(gate.carrier()),
            None => broker,
        });
    }

    /// Waits until the command runs, or something has refused.
    pub(super) fn started(
        mut self,
        failure: &OwnedFd,
        acts: &[(Step, Ready)],
        program: &Path,
    ) -> Result<Self, LaunchError> {
        let refused = Failure::receive(failure);
        let error = match refused {
            Ok(None) => return Ok(self),
            Ok(Some(failure)) => explain(failure, acts, program),
            Err(errno) => LaunchError::Prepare {
                what: "hear from the session's first process".to_owned(),
                source: errno.into(),
            },
        };
        self.kill();
        Err(error)
    }

    /// Waits until a second stage is there, and learns which process it is.
    ///
    /// Also returns the devices of the file systems that only the session has.
    pub(super) fn greeted(
        mut self,
        outside: &Outside,
        failure: &OwnedFd,
        acts: &[(Step, Ready)],
    ) -> Result<(Self, Vec<(u32, u32)>), LaunchError> {
        let error = match outside.greeting() {
            Ok(greeting) => {
                self.inner = Some(greeting.process);
                return Ok((self, greeting.private));
            }
            // It may have said why before it went.
            Err(error) => match Failure::receive(failure) {
                Ok(Some(failure)) => explain(failure, acts, Path::new("")),
                Ok(None) | Err(_) => error,
            },
        };
        self.kill();
        Err(error)
    }

    /// How long each step of the launch took, if that was asked for.
    pub fn timeline(&self) -> &[(Step, Duration)] {
        &self.timeline
    }

    /// The number of the session's first process on this host.
    pub fn id(&self) -> i32 {
        self.first.pid().as_raw_nonzero().get()
    }

    /// Ends the session now: everything in it, whatever it does about signals.
    pub fn kill(&mut self) {
        if self.reaped {
            return;
        }
        if self.boundary == Boundary::Descent {
            // The first process has to end the others before it may go itself.
            self.end = None;
            self.first_ends_within(PATIENCE);
        }
        self.end_inner();
        if !self.reaped {
            // Already gone is as good as ended.
            let _ = self.first.signal(Signal::KILL);
            self.reaped = self.first.wait().is_ok();
        }
    }

    /// Ends the first process inside and waits until it is gone, and all others inside with it.
    fn end_inner(&self) {
        let Some(inner) = &self.inner else {
            return;
        };
        // Already gone is as good as ended.
        let _ = pidfd_send_signal(inner, Signal::KILL);
        let mut watched = [PollFd::new(inner, PollFlags::IN)];
        while let Err(Errno::INTR) = poll(&mut watched, None) {}
    }

    fn signal_first(&self, signal: Signal) -> Result<(), Errno> {
        match &self.inner {
            Some(inner) => pidfd_send_signal(inner, signal),
            None => self.first.signal(signal),
        }
    }

    fn first_ends_within(&mut self, patience: Duration) {
        let timeout = timespec(patience);
        let mut watched = [PollFd::new(&self.first, PollFlags::IN)];
        let ended = poll(&mut watched, Some(&timeout)).is_ok_and(|count| count > 0);
        if ended {
            self.reaped = self.first.wait().is_ok();
        }
    }

    /// Passes a signal on to the command.
    ///
    /// # Errors
    ///
    /// The session is over.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(self.signal_first(signal)?)
    }

    /// Waits until the session is over.
    ///
    /// # Errors
    ///
    /// The kernel's answer; the session has been ended.
    pub fn wait(self) -> io::Result<Report> {
        self.watch(None, &mut Nothing)
    }

    /// Takes the outer end of the session's own terminal, if it has one: what is written to it is
    /// typed, and what is read from it is shown.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// Waits until the session is over, and passes on the signals that ask a program to end.
    ///
    /// For a program whose whole purpose is this session: the signals stay blocked in the calling
    /// thread.
    ///
    /// # Errors
    ///
    /// The kernel's answer; the session has been ended.
    pub fn wait_passing_signals(self, signals: &Signals) -> io::Result<Report> {
        self.watch(Some(signals), &mut Nothing)
    }

    /// Waits until the session is over, and serves something else meanwhile.
    pub(super) fn watch(
        mut self,
        signals: Option<&Signals>,
        beside: &mut dyn Beside,
    ) -> io::Result<Report> {
        let cause = loop {
            let left = self.time_left();
            if left == Some(Duration::ZERO) {
                self.kill();
                break Cause::WallTime;
            }
            let patience = beside.patience();
            if patience == Some(Duration::ZERO) {
                self.kill();
                break Cause::Ended;
            }
            let sooner = left.into_iter().chain(patience).min();
            let news = self.sleep(sooner, signals, beside)?;
            beside.serve(&self)?;
            if let Some(signals) = signals {
                signals.pass_on(&self)?;
            }
            match news {
                News::Ended => match self.heard()? {
                    Some(cause) => break cause,
                    None => beside.stopped(&self)?,
                },
                News::Asked => {
                    if let Some(broker) = &self.broker {
                        broker.serve();
                    }
                }
                News::NobodyAsks => self.broker = None,
                News::Nothing => {}
            }
        };
        let names = std::mem::take(&mut self.names);
        let report = Report {
            engine: self.plan.engine(),
            cause,
            gaps: self.plan.gaps().to_vec(),
            names: names.iter().filter_map(|name| put_aside(name)).collect(),
            network: self.attempts(),
            timeline: std::mem::take(&mut self.timeline),
            started: self.started_at,
            ended: SystemTime::now(),
        };
        if signals.is_some() {
            // This program ends with the session. All that is left of it is its first process,
            // on its way out, and waiting for that would only make the user wait.
            self.reaped = true;
        }
        Ok(report)
    }

    /// What the session tried to reach up to now.
    pub fn attempts(&self) -> Network {
        let (attempts, not_kept) = self.gate.as_ref().map(Gate::attempts).unwrap_or_default();
        Network { attempts, not_kept }
    }

    /// Sleeps until something happens.
    fn sleep(
        &self,
        left: Option<Duration>,
        signals: Option<&Signals>,
        beside: &dyn Beside,
    ) -> io::Result<News> {
        let timeout = left.map(timespec);
        let first = PollFd::new(&self.first, PollFlags::IN);
        // What is not there is watched as the first process once more.
        let mut watched = vec![
            first.clone(),
            self.end
                .as_ref()
                .map_or_else(|| first.clone(), |end| PollFd::new(end, PollFlags::IN)),
            self.broker.as_ref().map_or_else(
                || first.clone(),
                |broker| PollFd::new(broker, PollFlags::IN),
            ),
            signals.map_or_else(
                || first.clone(),
                |signals| PollFd::new(&signals.0, PollFlags::IN),
            ),
        ];
        beside.watched(&mut watched);
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut ready = watched.iter().map(PollFd::revents);
        let mut next = || ready.next().unwrap_or(PollFlags::empty());
        let (first, end, broker) = (next(), next(), next());
        Ok(if !first.is_empty() || !end.is_empty() {
            News::Ended
        } else if broker.contains(PollFlags::IN) {
            News::Asked
        } else if !broker.is_empty() {
            News::NobodyAsks
        } else {
            News::Nothing
        })
    }

    fn time_left(&self) -> Option<Duration> {
        let wall = Duration::from_secs(self.wall?);
        Some(wall.saturating_sub(self.started.elapsed()))
    }

    /// How the command ended. By the time it says so, nothing else is left in the session.
    ///
    /// `None` if it was only stopped.
    fn heard(&mut self) -> io::Result<Option<Cause>> {
        let message = match &self.end {
            Some(end) => wire::receive_word(end)?,
            None => None,
        };
        Ok(Some(match message {
            Some(Word::Ended(Ended::Exited(status))) => Cause::Exited { status },
            Some(Word::Ended(Ended::Killed { signal })) => Cause::Killed { signal },
            Some(Word::Stopped(_)) => return Ok(None),
            None => Cause::Ended,
        }))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a supervisor serves beside the session itself.
///
/// Nothing here may wait: the session's own end, its limits and its broker would wait with it.
pub(super) trait Beside {
    /// Adds what there is to wait for.
    fn watched<'a>(&'a self, watched: &mut Vec<PollFd<'a>>);
    /// How long until the session is to be ended, if it is.
    fn patience(&self) -> Option<Duration>;
    /// Does what can be done now.
    fn serve(&mut self, session: &Running) -> io::Result<()>;
    /// The command was stopped.
    fn stopped(&mut self, session: &Running) -> io::Result<()>;
}

/// Nothing else to serve.
struct Nothing;

impl Beside for Nothing {
    fn watched<'a>(&'a self, _watched: &mut Vec<PollFd<'a>>) {}

    fn patience(&self) -> Option<Duration> {
        None
    }

    fn serve(&mut self, _session: &Running) -> io::Result<()> {
        Ok(())
    }

    fn stopped(&mut self, _session: &Running) -> io::Result<()> {
        Ok(())
    }
}

/// What woke a supervisor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum News {
    /// A call waits for the broker.
    Asked,
    /// The session is over.
    Ended,
    /// Nobody is left who could ask the broker.
    NobodyAsks,
    /// Something else.
    Nothing,
}

/// Signals that a program whose whole purpose is one session passes on to it.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    const PASSED_ON: [Signal; 7] = [
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::TERM,
        Signal::USR1,
        Signal::USR2,
        Signal::WINCH,
    ];

    /// Blocks them in the calling thread and listens. Call it before anything is started.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn listen() -> io::Result<Self> {
        let mut mask = Mask::EMPTY;
        for signal in Self::PASSED_ON {
            mask = mask.with(signal.as_raw());
        }
        mask.block()?;
        Ok(Self(SignalFd::new(mask)?))
    }

    fn pass_on(&self, session: &Running) -> io::Result<()> {
        while let Some(arrived) = self.0.take()? {
            // What the terminal sends goes to its whole foreground group, the command included.
            if arrived.sent_by == SentBy::Kernel {
                continue;
            }
            if let Some(signal) = Signal::from_named_raw(arrived.signal) {
                let _ = session.signal_first(signal);
            }
        }
        Ok(())
    }
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

fn explain(failure: Failure, acts: &[(Step, Ready)], program: &Path) -> LaunchError {
    let step = Step::ALL
        .get(usize::from(failure.act))
        .copied()
        .unwrap_or(Step::Init);
    let source = io::Error::from(failure.errno);
    let program = || program.to_owned();
    match (step, failure.detail, failure.errno) {
        (Step::Command, 1, Errno::NOENT | Errno::NOTDIR) => {
            LaunchError::NotFound { program: program() }
        }
        (Step::Init, SEAT, _) => LaunchError::Prepare {
            what: "give the command its streams and its terminal".to_owned(),
            source,
        },
        (Step::Command, 1, _) => LaunchError::NotExecutable {
            program: program(),
            source,
        },
        _ => LaunchError::Act {
            step: StepName(step),
            object: acts
                .iter()
                .find(|(known, _)| *known == step)
                .and_then(|(_, act)| act.describe(failure.detail)),
            source,
        },
    }
}

/// Puts a protected name that the session made out of the way, so that nothing outside obeys it.
///
/// The session may have made any directory above it a link, to have something renamed that it
/// cannot reach itself. So the directory is opened without following any; where there is one, the
/// topmost is what is put aside.
fn put_aside(path: &Path) -> Option<NameFound> {
    std::fs::symlink_metadata(path).ok()?;
    let is_link =
        |path: &&Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let above = path.ancestors().skip(1).filter(is_link).last();
    let path = above.unwrap_or(path).to_owned();
    let moved_to = rename_aside(&path).ok();
    Some(NameFound { path, moved_to })
}

/// Renames within one directory, over nothing that is there, and to a name that the session could
/// not take before.
fn rename_aside(path: &Path) -> Result<PathBuf, Errno> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL);
    };
    let parent = std::ffi::CString::new(parent.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    let directory = files::pin_exact(CWD, &parent)?;
    let mut moved = name.to_owned();
    moved.push(".refused-by-ringfence");
    let mut answer = rename_to(&directory, name, &moved);
    if answer == Err(Errno::EXIST) {
        let mut random = [0; 8];
        fill_random(&mut random)?;
        moved.push(format!("-{:016x}", u64::from_ne_bytes(random)));
        answer = rename_to(&directory, name, &moved);
    }
    answer.map(|()| path.with_file_name(moved))
}

fn rename_to(directory: &OwnedFd, name: &OsStr, moved: &OsStr) -> Result<(), Errno> {
    renameat_with(directory, name, directory, moved, RenameFlags::NOREPLACE)
}
