//! A session that runs, seen from outside.
// Long: one poll loop, and everything that it can be woken by.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ringfence_core::plan::{Act, Plan, Step};
use ringfence_core::seccomp::UnixSockets;
use ringfence_gate::serve::Gate;
use ringfence_sys::failure::Failure;
use ringfence_sys::init::wire::{NO_PROGRAM, SEAT, Word};
use ringfence_sys::wait::{Child, Ended};
use ringfence_sys::{Errno, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::pidfd_send_signal;

use super::acts::Ready;
use super::aside::HANDS;
use super::broker::Broker;
use super::bwrap::Outside;
use super::cover::Session;
use super::gate::Opening;
use super::guard::Guard;
use super::held::{Held, MOMENT};
use super::init::Boundary;
use super::leaving::end_inner;
use super::names::{Holds, Names};
use super::orphans;
use super::telling::{Told, tell_limit};
use super::tmp::SessionTmp;
use super::wire;
use crate::audit::Denial;
use crate::event::Happened;
use crate::indexes::Indexes;
use crate::launch::beside::{Beside, Nothing, timespec};
use crate::launch::{Cause, LaunchError, Linger, Network, Observer, Report, Signals, StepName};

/// How long a command may take to end once it was asked to.
const GRACE: Duration = Duration::from_millis(1500);

/// How long the processes of a session may take to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// A session: its first process, and through it everything the command started.
///
/// Dropping it ends the session.
#[derive(Debug)]
pub struct Running {
    pub(super) first: Child,
    /// The first process inside, if it is not the one that we started ourselves.
    pub(super) inner: Option<OwnedFd>,
    boundary: Boundary,
    /// Its closing tells the first process that nobody waits any more.
    end: Option<OwnedFd>,
    wall: Option<u64>,
    started: Instant,
    started_at: SystemTime,
    names: Names,
    pub(super) indexes: Indexes,
    pub(super) plan: Plan,
    tmp: Option<SessionTmp>,
    pub(super) timeline: Vec<(Step, Duration)>,
    pub(super) session: Option<Session>,
    /// What knows about names that were tried, once nobody asks any more.
    guard: Option<Guard>,
    pub(super) broker: Option<Broker>,
    /// The session has no other network, so with this it has none.
    pub(super) gate: Option<Gate>,
    pub(super) told: Told,
    /// The outer end of the session's own terminal.
    pub(super) terminal: Option<OwnedFd>,
    pub(super) reaped: bool,
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
        names: Names,
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
            indexes: Indexes::default(),
            plan,
            tmp,
            timeline: Vec::new(),
            broker: None,
            session: None,
            guard: None,
            gate: None,
            told: Told::default(),
            terminal: None,
            reaped: false,
            ran: false,
            denials: Vec::new(),
            asked: None,
            command: None,
            linger: Linger::No,
            held: Held::default(),
        }
    }

    /// Serves the session's network gate, if it has one.
    pub(super) fn open_gate(&mut self, opening: Option<Opening>) -> Result<(), LaunchError> {
        self.told.decisions = opening.as_ref().and_then(Opening::decisions);
        self.gate = opening.map(Opening::open).transpose()?.flatten();
        Ok(())
    }

    /// Answers what the filter asks.
    pub(super) fn ask(&mut self, broker: Broker) {
        let held =
            |act: &Act| matches!(act, Act::Seccomp(spec) if spec.unix == UnixSockets::Passed);
        let broker = broker.unix_held(self.plan.acts().iter().any(held));
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
        end_inner(self.inner.as_ref());
        if self.inner.is_some() {
            // Bubblewrap reaps the one inside, and goes by itself.
            self.first_ends_within(PATIENCE);
        }
        if !self.reaped {
            // Already gone is as good as ended.
            let _ = self.first.signal(Signal::KILL);
            self.reaped = self.first.wait().is_ok();
        }
        self.sweep();
    }

    pub(in crate::launch) fn signal_first(&self, signal: Signal) -> Result<(), Errno> {
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
        if self.is_first_gone_within(patience) {
            self.reaped = self.first.wait().is_ok();
        }
    }

    fn is_first_gone_within(&self, patience: Duration) -> bool {
        let timeout = timespec(patience);
        let mut watched = [PollFd::new(&self.first, PollFlags::IN)];
        poll(&mut watched, Some(&timeout)).is_ok_and(|count| count > 0)
    }

    /// A cgroup goes when nobody is in it, and the first process is the last: it is on its way out
    /// while the session's directory is removed. Ending it would take longer than waiting for it.
    fn let_go_of_group(&mut self) {
        if self.boundary == Boundary::Descent && self.held.group.is_some() {
            self.tmp = None;
            self.is_first_gone_within(GRACE);
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
        self.watch(None, &mut Nothing, &mut ())
    }

    /// Takes the outer end of the session's own terminal, if it has one: what is written to it is
    /// typed, and what is read from it is shown.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// Waits until the session is over, and serves something else meanwhile.
    pub(in crate::launch) fn watch(
        mut self,
        signals: Option<&Signals>,
        beside: &mut dyn Beside,
        observer: &mut dyn Observer,
    ) -> io::Result<Report> {
        self.attend_to_its_end(signals, beside, observer)
    }

    /// The same. What is left then is the first process alone, on its way out.
    pub(in crate::launch) fn attend_to_its_end(
        &mut self,
        signals: Option<&Signals>,
        beside: &mut dyn Beside,
        observer: &mut dyn Observer,
    ) -> io::Result<Report> {
        // While the command is on its way: at its end somebody waits.
        self.clean_others();
        let reaped_by_others = signals.is_some() && !orphans::are_left_lying();
        let mut cause = self.until_command_ends(signals, beside, observer)?;
        if self.linger == Linger::No {
            // Whoever lets go of a session's mounts last waits until the kernel has taken all of
            // them down. The first process stays for that long, and nobody waits for it.
            self.names.hold(None);
        }
        self.tell(observer);
        tell_limit(cause, observer);
        self.command = Some(cause);
        observer.command_ended(self, cause);
        if self.linger == Linger::Yes {
            let ended = self.linger_on(signals, beside, observer)?;
            self.tell(observer);
            if let Some(ended) = ended {
                tell_limit(ended, observer);
                cause = ended;
            }
        }
        if let Some(broker) = &self.broker {
            self.denials = broker.denials();
        }
        let tried = self.names_tried();
        let files = self.with_names(|_, guard| Some(guard?.unwritable().after(0)));
        let files = files.unwrap_or_default();
        self.denials
            .extend(files.iter().map(|file| Denial::of_file(file)));
        let outcome = self.with_names(|names, guard| names.finish(guard.as_deref()));
        let report = Report {
            engine: self.plan.engine(),
            cause,
            gaps: self.plan.gaps().to_vec(),
            names: outcome.found,
            not_held: outcome.not_held,
            tried,
            indexes: self.indexes.look(&HANDS),
            changes: None,
            network: self.attempts(),
            denials: std::mem::take(&mut self.denials),
            timeline: std::mem::take(&mut self.timeline),
            started: self.started_at,
            ended: SystemTime::now(),
        };
        if reaped_by_others {
            // This program ends with the session. All that is left of it is its first process,
            // on its way out, and waiting for that would only make the user wait.
            self.reaped = true;
            self.let_go_of_group();
        }
        Ok(report)
    }

    fn until_command_ends(
        &mut self,
        signals: Option<&Signals>,
        beside: &mut dyn Beside,
        observer: &mut dyn Observer,
    ) -> io::Result<Cause> {
        loop {
            let left = self.time_left();
            if left == Some(Duration::ZERO) {
                self.kill();
                return Ok(self.out_of_time());
            }
            let patience = beside.patience();
            if patience == Some(Duration::ZERO) {
                self.kill();
                return Ok(Cause::Ended);
            }
            let moment = self.moment();
            if moment == Some(Duration::ZERO) {
                // It takes longer than a moment: from now on others can find it.
                self.register();
                observer.settled(self);
                continue;
            }
            let due = match self.attend_names() {
                Ok(due) => due,
                Err(cause) => {
                    self.kill();
                    return Ok(cause);
                }
            };
            let soon = patience.into_iter().chain(moment).chain(due);
            let sooner = left.into_iter().chain(soon).min();
            let news = self.sleep(sooner, signals, beside)?;
            beside.serve(self)?;
            if let Some(signals) = signals
                && let Some(signal) = signals.pass_on(self)?
            {
                self.asked.get_or_insert_with(|| (Instant::now(), signal));
            }
            match news {
                News::Ended => match self.heard()? {
                    Heard::Ended(cause) => return Ok(cause),
                    Heard::Continued => self.tell_turn(Happened::Continued, observer),
                    Heard::Stopped { signal } => {
                        self.tell_turn(Happened::Stopped { signal }, observer);
                        beside.stopped(self)?;
                    }
                },
                other => {
                    if let Some(cause) = self.attend(other).broken() {
                        self.kill();
                        return Ok(cause);
                    }
                }
            }
            self.tell(observer);
        }
    }

    /// How long until the session is worth being written down, if it is not yet. What lingers is to
    /// be found from the beginning.
    fn moment(&self) -> Option<Duration> {
        self.held.pending.as_ref()?;
        Some(match self.linger {
            Linger::No => MOMENT.saturating_sub(self.started.elapsed()),
            Linger::Yes => Duration::ZERO,
        })
    }

    /// Waits until nobody is left of those that linger, or somebody wants the session to end: what
    /// ended it then.
    fn linger_on(
        &mut self,
        signals: Option<&Signals>,
        beside: &mut dyn Beside,
        observer: &mut dyn Observer,
    ) -> io::Result<Option<Cause>> {
        while !self.reaped {
            let left = self.time_left();
            let due = match self.attend_names() {
                Ok(due) => due,
                Err(cause) => {
                    self.kill();
                    return Ok(Some(cause));
                }
            };
            let sooner = left.into_iter().chain(due).min();
            let news = self.sleep(sooner, signals, beside)?;
            beside.serve(self)?;
            let asked = match signals {
                Some(signals) => signals.ask_to_end()?,
                None => None,
            };
            let over = match (asked, left) {
                (Some(signal), _) => Some(Cause::Killed { signal }),
                (None, Some(Duration::ZERO)) => Some(self.out_of_time()),
                _ => None,
            };
            if over.is_some() {
                self.kill();
                return Ok(over);
            }
            match news {
                News::Ended => return Ok(self.gone()),
                other => {
                    if let Some(cause) = self.attend(other).broken() {
                        self.kill();
                        return Ok(Some(cause));
                    }
                }
            }
            self.tell(observer);
        }
        Ok(None)
    }

    /// The first process of those that lingered has gone: by itself, which is when nobody else is
    /// left, or it was made to, and this is by what.
    fn gone(&mut self) -> Option<Cause> {
        let ended = self.first.wait();
        self.reaped = ended.is_ok();
        if ended == Ok(Ended::Exited(0)) {
            return None;
        }
        // Nobody has ended the others.
        let _ = self.held.group.as_ref().map(|group| group.end(PATIENCE));
        self.sweep();
        Some(self.over_memory().unwrap_or(Cause::Ended))
    }

    /// Does what there is to do; whether the protected names still hold.
    fn attend(&mut self, news: News) -> Holds {
        match news {
            News::Appeared => return self.with_names(Names::hear),
            News::Asked => {
                let holds = self.with_names(Names::before_an_answer);
                if let Some(broker) = self.broker.as_ref().filter(|_| holds == Holds::Yes) {
                    broker.serve();
                    self.names.stir();
                }
                return holds;
            }
            News::NobodyAsks => self.forget_broker(),
            News::Ended | News::Nothing => {}
        }
        Holds::Yes
    }

    /// Starts to hold the protected names, before the first call inside that could make one is
    /// answered.
    pub(super) fn watching_names(mut self) -> Result<Self, LaunchError> {
        if self.names.is_empty() {
            return Ok(self);
        }
        let watched = self.watch_names();
        if let Err(errno) = watched {
            // Nobody has heard yet whether the command runs.
            self.ran = true;
            self.kill();
            return Err(LaunchError::Prepare {
                what: "watch the protected names of the project".to_owned(),
                source: errno.into(),
            });
        }
        Ok(self)
    }

    fn watch_names(&mut self) -> Result<(), Errno> {
        let session = self.session.take();
        if let (Some(broker), Some(session)) = (&self.broker, &session) {
            broker.guard_names(self.names.guard(session)?);
        }
        let guarded = self.broker.is_some() && session.is_some();
        self.names.hold(session);
        // What the host did while the session was being built.
        let looked = if guarded {
            self.with_names(|names, guard| names.first_look(guard.as_deref()))
        } else {
            // Nobody is asked before something is made.
            self.with_names(Names::begin)
        };
        match looked {
            Holds::Yes => Ok(()),
            Holds::Made | Holds::NoLonger => Err(Errno::EXIST),
        }
    }

    /// Does what is due about the names, and says when it is again.
    fn attend_names(&mut self) -> Result<Option<Duration>, Cause> {
        if self.names.due(self.started.elapsed()) == Some(Duration::ZERO)
            && let Some(cause) = self.with_names(Names::attend).broken()
        {
            return Err(cause);
        }
        Ok(self.names.due(self.started.elapsed()))
    }

    fn with_names<R>(&mut self, act: impl FnOnce(&mut Names, Option<&mut Guard>) -> R) -> R {
        match &self.broker {
            Some(broker) => act(&mut self.names, broker.guard().as_mut()),
            None => act(&mut self.names, self.guard.as_mut()),
        }
    }

    /// Nobody is left who could ask. What was tried is remembered.
    fn forget_broker(&mut self) {
        if let Some(broker) = self.broker.take() {
            self.denials = broker.denials();
            self.guard = broker.into_guard();
        }
    }

    fn names_tried(&mut self) -> Vec<PathBuf> {
        let tried = self.with_names(|_, guard| Some(guard?.tried().to_vec()));
        tried.unwrap_or_default()
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
                .filter(|_| self.command.is_none())
                .map_or_else(|| first.clone(), |end| PollFd::new(end, PollFlags::IN)),
            self.broker.as_ref().map_or_else(
                || first.clone(),
                |broker| PollFd::new(broker, PollFlags::IN),
            ),
            self.names.appeared().unwrap_or_else(|| first.clone()),
            self.names.uncovered().unwrap_or_else(|| first.clone()),
            signals.map_or_else(
                || first.clone(),
                |signals| PollFd::new(signals, PollFlags::IN),
            ),
        ];
        self.bells(&mut watched);
        beside.watched(&mut watched);
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut ready = watched.iter().map(PollFd::revents);
        let mut next = || ready.next().unwrap_or(PollFlags::empty());
        let (first, end, broker) = (next(), next(), next());
        let appeared = next() | next();
        Ok(if !first.is_empty() || !end.is_empty() {
            News::Ended
        } else if !appeared.is_empty() {
            // First: whoever asks much must not keep us from seeing what was made.
            News::Appeared
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

    /// What it means that there is no time left.
    fn out_of_time(&self) -> Cause {
        match self.asked {
            Some((_, signal)) => Cause::Killed { signal },
            None => Cause::WallTime,
        }
    }

    /// What became of the command. By the time it says that it has ended, nothing else is left in the
    /// session.
    fn heard(&mut self) -> io::Result<Heard> {
        let message = match &self.end {
            Some(end) => wire::receive_word(end)?,
            None => None,
        };
        Ok(Heard::Ended(match message {
            Some(Word::Exited(status)) => Cause::Exited { status },
            Some(Word::Killed(signal)) => self.killed(signal.into()),
            Some(Word::Continued) => return Ok(Heard::Continued),
            Some(Word::Stopped(signal)) => {
                return Ok(Heard::Stopped {
                    signal: signal.into(),
                });
            }
            None => {
                // It went without a word, or was made to: nobody has ended the others.
                let _ = self.held.group.as_ref().map(|group| group.end(PATIENCE));
                self.reaped = self.first.wait().is_ok();
                self.sweep();
                self.over_memory().unwrap_or(Cause::Ended)
            }
        }))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What became of a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Heard {
    Continued,
    Ended(Cause),
    Stopped { signal: i32 },
}

/// What woke a supervisor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum News {
    /// Something appeared beside a protected name.
    Appeared,
    /// A call waits for the broker.
    Asked,
    /// The session is over.
    Ended,
    /// Nobody is left who could ask the broker.
    NobodyAsks,
    /// Something else.
    Nothing,
}

fn explain(failure: Failure, acts: &[(Step, Ready)], program: &Path) -> LaunchError {
    let step = Step::ALL
        .get(usize::from(failure.act))
        .copied()
        .unwrap_or(Step::Init);
    let source = io::Error::from(failure.errno);
    let program = || program.to_owned();
    match (step, failure.detail, failure.errno) {
        (Step::Command, NO_PROGRAM, Errno::NOENT | Errno::NOTDIR) => {
            LaunchError::NotFound { program: program() }
        }
        (Step::Init, SEAT, _) => LaunchError::Prepare {
            what: "give the command its streams and its terminal".to_owned(),
            source,
        },
        (Step::Command, NO_PROGRAM, _) => LaunchError::NotExecutable {
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
