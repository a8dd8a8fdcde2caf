//! A session that runs, seen from outside.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ringfence_core::plan::{Plan, Step};
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
use super::held::{Held, MOMENT};
use super::init::Boundary;
use super::tmp::SessionTmp;
use super::wire;
use crate::audit::Denial;
use crate::launch::{Cause, LaunchError, Linger, NameFound, Report, Settled, StepName};

/// How long a command may take to end once it was asked to.
const GRACE: Duration = Duration::from_millis(1500);

/// How long the processes of a session may take to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

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
    pub(super) plan: Plan,
    _tmp: Option<SessionTmp>,
    pub(super) timeline: Vec<(Step, Duration)>,
    pub(super) broker: Option<Broker>,
    reaped: bool,
    /// Whether any code of the command can have run.
    pub(super) ran: bool,
    denials: Vec<Denial>,
    /// When somebody asked the session to end, and by which signal.
    asked: Option<(Instant, i32)>,
    /// How the command ended, once it has.
    command: Option<Cause>,
    pub(super) linger: Linger,
    /// Last, so that what it names is gone before it goes itself.
    pub(super) held: Held,
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
            reaped: false,
            ran: false,
            denials: Vec::new(),
            asked: None,
            command: None,
            linger: Linger::No,
            held: Held::default(),
        }
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
            Ok(None) => {
                self.ran = true;
                return Ok(self);
            }
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
        let ended = self.held.group.as_ref().map(|group| group.end(PATIENCE));
        if self.boundary == Boundary::Descent && ended != Some(Ok(())) {
            // The first process has to end the others before it may go itself.
            self.end = None;
            let _ = self.first.signal(Signal::CONT);
            self.first_ends_within(PATIENCE);
        }
        self.end_inner();
        if !self.reaped {
            // Already gone is as good as ended.
            let _ = self.first.signal(Signal::KILL);
            self.reaped = self.first.wait().is_ok();
        }
        self.sweep();
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
        }?;
        if self.boundary == Boundary::Descent {
            // The command may have stopped it, so that it would never be heard.
            self.first.signal(Signal::CONT)?;
        }
        Ok(())
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
        self.watch(None)
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
        self.watch(Some(signals))
    }

    /// Waits until the command has ended. A session that lingers goes on; any other is over.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn command_ended(&mut self, signals: Option<&Signals>) -> io::Result<Cause> {
        loop {
            if let Some(cause) = self.ended_within(Duration::MAX, signals)? {
                return Ok(cause);
            }
        }
    }

    /// Waits a moment. If the command runs after it, the session is written down, and from then on
    /// others can find it.
    ///
    /// Whoever waits for the session anyway need not call it.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn settled(&mut self, signals: Option<&Signals>) -> io::Result<Settled> {
        // What lingers is to be found from the beginning.
        if self.linger == Linger::No && self.ended_within(MOMENT, signals)?.is_some() {
            return Ok(Settled::Ended);
        }
        self.register();
        Ok(Settled::Runs)
    }

    /// How the command ended, if that is before so much time has passed since its start.
    fn ended_within(
        &mut self,
        moment: Duration,
        signals: Option<&Signals>,
    ) -> io::Result<Option<Cause>> {
        let cause = loop {
            if let Some(cause) = self.command {
                return Ok(Some(cause));
            }
            let left = self.time_left();
            if left == Some(Duration::ZERO) {
                self.kill();
                break match self.asked {
                    Some((_, signal)) => Cause::Killed { signal },
                    None => Cause::WallTime,
                };
            }
            let patience = moment.saturating_sub(self.started.elapsed());
            if patience.is_zero() {
                return Ok(None);
            }
            let left = (moment != Duration::MAX)
                .then_some(left.map_or(patience, |left| left.min(patience)))
                .or(left);
            let news = self.sleep(left, signals)?;
            if let Some(signals) = signals
                && let Some(signal) = signals.pass_on(self)?
            {
                self.asked.get_or_insert_with(|| (Instant::now(), signal));
            }
            match news {
                News::Ended => break self.ended()?,
                other => self.attend(other),
            }
        };
        self.command = Some(cause);
        Ok(Some(cause))
    }

    /// Waits until nobody is left of those that linger, or somebody wants the session to end.
    fn linger_on(&mut self, signals: Option<&Signals>) -> io::Result<()> {
        while !self.reaped {
            let left = self.time_left();
            let news = self.sleep(left, signals)?;
            let asked = match signals {
                Some(signals) => signals.ask_to_end()?,
                None => false,
            };
            if asked || left == Some(Duration::ZERO) {
                self.kill();
                return Ok(());
            }
            match news {
                News::Ended => {
                    self.reaped = self.first.wait().is_ok();
                    return Ok(());
                }
                other => self.attend(other),
            }
        }
        Ok(())
    }

    fn attend(&mut self, news: News) {
        match news {
            News::Asked => {
                if let Some(broker) = &self.broker {
                    broker.serve();
                }
            }
            News::NobodyAsks => {
                if let Some(broker) = self.broker.take() {
                    self.denials = broker.denials();
                }
            }
            News::Ended | News::Nothing => {}
        }
    }

    fn watch(mut self, signals: Option<&Signals>) -> io::Result<Report> {
        if self.held.pending.is_some() {
            self.settled(signals)?;
        }
        let cause = self.command_ended(signals)?;
        if self.linger == Linger::Yes {
            self.linger_on(signals)?;
        }
        self.clean_others();
        let names = std::mem::take(&mut self.names);
        if let Some(broker) = &self.broker {
            self.denials = broker.denials();
        }
        let report = Report {
            engine: self.plan.engine(),
            cause,
            gaps: self.plan.gaps().to_vec(),
            names: names.iter().filter_map(|name| put_aside(name)).collect(),
            denials: std::mem::take(&mut self.denials),
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

    /// Sleeps until something happens.
    fn sleep(&self, left: Option<Duration>, signals: Option<&Signals>) -> io::Result<News> {
        let timeout = left.map(timespec);
        let first = PollFd::new(&self.first, PollFlags::IN);
        // What is not there is watched as the first process once more.
        let mut watched = [
            first.clone(),
            self.end
                .as_ref()
                .filter(|_| self.command.is_none())
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
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let [first, end, broker, _] = watched.map(|watched| watched.revents());
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

    /// How long the session may go on: until its limit, or until it has had time to do as it was
    /// asked.
    fn time_left(&self) -> Option<Duration> {
        if let Some((asked, _)) = self.asked {
            return Some(GRACE.saturating_sub(asked.elapsed()));
        }
        let wall = Duration::from_secs(self.wall?);
        Some(wall.saturating_sub(self.started.elapsed()))
    }

    /// How the command ended. By the time it says so, nothing else is left in the session.
    fn ended(&mut self) -> io::Result<Cause> {
        let message = match &self.end {
            Some(end) => wire::receive_end(end)?,
            None => None,
        };
        Ok(match message {
            Some(Ended::Exited(status)) => Cause::Exited { status },
            Some(Ended::Killed { signal }) => self.killed(signal),
            None => {
                // It went without a word, or was made to: nobody has ended the others.
                let _ = self.held.group.as_ref().map(|group| group.end(PATIENCE));
                self.reaped = self.first.wait().is_ok();
                self.sweep();
                self.over_memory().unwrap_or(Cause::Ended)
            }
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
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

    /// Passes on what has arrived. Says which signal asks the session to end, if one does: a
    /// command that goes on all the same is ended after a while.
    fn pass_on(&self, session: &Running) -> io::Result<Option<i32>> {
        let mut asked = None;
        while let Some(arrived) = self.0.take()? {
            if [Signal::HUP, Signal::TERM]
                .iter()
                .any(|signal| signal.as_raw() == arrived.signal)
            {
                asked = Some(arrived.signal);
            }
            // What the terminal sends goes to its whole foreground group, the command included.
            if arrived.sent_by == SentBy::Kernel {
                continue;
            }
            if let Some(signal) = Signal::from_named_raw(arrived.signal) {
                let _ = session.signal_first(signal);
            }
        }
        Ok(asked)
    }
}

impl AsFd for Signals {
    /// Readable when one has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Signals {
    /// Takes one that has arrived, without waiting.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn take(&self) -> io::Result<Option<Signal>> {
        while let Some(arrived) = self.0.take()? {
            if let Some(signal) = Signal::from_named_raw(arrived.signal) {
                return Ok(Some(signal));
            }
        }
        Ok(None)
    }

    /// Whether one has arrived that asks a program to end.
    fn ask_to_end(&self) -> io::Result<bool> {
        let mut asked = false;
        while let Some(arrived) = self.0.take()? {
            asked |= [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM]
                .iter()
                .any(|signal| signal.as_raw() == arrived.signal);
        }
        Ok(asked)
    }
}

fn timespec(duration: Duration) -> Timespec {
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
