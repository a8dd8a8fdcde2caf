//! A session while it runs, and its end.
//!
//! One thread waits for a command that has no terminal of its own; this one decides, and serves whatever
//! stands beside the session. However it ends, the session's processes are ended by their fingerprint
//! before its directory goes: also when the handle is dropped, and also when the program that holds it is
//! about to exit, because the clean-up is waited for by whoever drops.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use ringfence_core::cleanup::{anybody_left, end_session};
use ringfence_core::plan::{Plan, Step};
use ringfence_core::seatbelt::SessionDirectory;
use ringfence_sys::ready::{PollFd, PollFlags, poll};
use ringfence_sys::{Errno, Pid, Signal};
use rustix::process::{kill_process, kill_process_group};

use super::desk::{self, Outer};
use super::gate::Opened;
use super::orders::{Keep, Task, Word};
use super::table::Table;
use super::{Session, Stage, now, tell};
use crate::indexes::{Hands, Indexes};
use crate::launch::beside::{Beside, Nothing, timespec};
use crate::launch::pipes::pipe;
use crate::launch::{Cause, Linger, NameFound, Network, Observer, Report, Signals};
use crate::sessions::{About, DirectoryIdentity, Entry, Making, Registry, RegistryError};

/// How long a command may take to end once it was asked to.
const GRACE: Duration = Duration::from_millis(1500);
/// What is over before this is nothing that others could find in time.
const MOMENT: Duration = Duration::from_millis(100);
/// How often it is looked whether anybody of a session that lingers is left.
const LOOK: Duration = Duration::from_millis(500);

/// Which process group a session begins with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Group {
    /// The caller's: a terminal talks to one group at a time.
    Callers,
    /// One in a session of its own, at a terminal of its own.
    Desk,
    /// One of its own, and all who stay in it can be ended at once.
    Own,
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

/// Nothing of the session is left by then, so nobody exchanges what is looked at.
const HANDS: Hands = Hands {
    open_up: |_| {},
    put_aside,
};

/// Renames a file, over nothing that is there.
fn put_aside(path: &Path) -> Option<NameFound> {
    let mut moved = path.as_os_str().to_owned();
    moved.push(".refused-by-ringfence");
    while std::fs::symlink_metadata(&moved).is_ok() {
        moved.push("-");
    }
    std::fs::symlink_metadata(path).ok()?;
    let moved_to = std::fs::rename(path, &moved).ok().map(|()| moved.into());
    Some(NameFound {
        path: path.to_owned(),
        moved_to,
        removed: false,
    })
}

/// A session that runs. Dropping it ends the session.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    group: Group,
    child: Option<Child>,
    /// The session's own terminal, if it has one.
    pub(super) desk: Option<Outer>,
    /// The only way out that the profile knows, so with this it has none.
    pub(super) gate: Option<Opened>,
    session: Session,
    wall: Option<u64>,
    plan: Plan,
    pub(super) indexes: Indexes,
    started: Instant,
    started_at: SystemTime,
    pub(super) linger: Linger,
    /// When somebody asked the session to end, and by which signal.
    asked: Option<(Instant, i32)>,
    /// Who ends the session if this process cannot, and what it waits for.
    keeper: Option<(Child, OwnedFd)>,
    /// Where the session is to be written down, once it is worth it.
    pub(super) pending: Option<(PathBuf, About)>,
    unregistered: Option<RegistryError>,
    /// Where it is written down.
    entry: Option<Entry>,
}

/// How the end of a command without a terminal of its own is heard.
struct Hearing {
    /// Ends when it has.
    bell: OwnedFd,
    status: Receiver<io::Result<ExitStatus>>,
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
            desk: None,
            gate: None,
            session,
            wall,
            plan,
            indexes: Indexes::default(),
            started: Instant::now(),
            started_at: now(),
            linger: Linger::No,
            asked: None,
            keeper: None,
            pending: None,
            unregistered: None,
            entry: None,
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
        let (child, orders) = stage.start(vec![lifeline_inside])?;
        self.keeper = Some((child, lifeline));
        tell(orders, &task)
    }

    /// Writes the session down, and removes what killed supervisors have left.
    fn register(&mut self) {
        let Some((path, about)) = self.pending.take() else {
            return;
        };
        let registered = self.written_down(&path, &about);
        match registered {
            Ok(entry) => self.entry = Some(entry),
            Err(error) => self.unregistered = Some(error),
        }
    }

    fn written_down(&self, path: &Path, about: &About) -> Result<Entry, RegistryError> {
        let registry = Registry::open(path)?;
        let refused = |source: io::Error| RegistryError::Directory {
            path: path.to_owned(),
            source,
        };
        let begin = || -> io::Result<Entry> {
            let directory = self.session.directory.path().as_path();
            let identity = DirectoryIdentity::of(directory.to_owned(), File::open(directory)?)?;
            let mut entry = registry.begin(about, self.pid, self.linger)?;
            entry.expect(Making::Directory(identity))?;
            Ok(entry)
        };
        let entry = begin().map_err(refused)?;
        registry.clean_quickly();
        Ok(entry)
    }

    /// Why the session could not be written down, if it could not.
    pub fn unregistered(&self) -> Option<&RegistryError> {
        self.unregistered.as_ref()
    }

    /// The name by which others find the session, if it is written down.
    pub fn name(&self) -> Option<&str> {
        self.entry.as_ref().map(Entry::name)
    }

    fn own_group(&self) -> Option<Pid> {
        match self.group {
            Group::Own => Pid::from_raw(self.pid),
            Group::Callers | Group::Desk => None,
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

    /// What the session tried to reach up to now.
    pub fn attempts(&self) -> Network {
        let opened = self.gate.as_ref();
        let (attempts, not_kept) = opened.map(|open| open.gate.attempts()).unwrap_or_default();
        Network { attempts, not_kept }
    }

    /// The number of the session's first process on this host.
    pub fn id(&self) -> i32 {
        self.pid
    }

    /// How long each step took: not measured here.
    pub fn timeline(&self) -> &[(Step, Duration)] {
        &[]
    }

    /// Takes the outer end of the session's own terminal, if it has one: what is written to it is
    /// typed, and what is read from it is shown.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.desk.as_mut()?.terminal.take()
    }

    /// Passes a signal on to the command.
    ///
    /// # Errors
    ///
    /// The session is over.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let command = match &self.desk {
            Some(desk) => Some(desk.command),
            None => Pid::from_raw(self.pid),
        };
        let command = command.ok_or(Errno::SRCH)?;
        // A whole job is continued, as a shell does it.
        if self.desk.is_some() && signal == Signal::CONT {
            return Ok(kill_process_group(command, signal)?);
        }
        Ok(kill_process(command, signal)?)
    }

    /// Passes on a signal that reached this process, unless the command has it already: a terminal's
    /// keys reach the whole group that both are in, and nobody says here who sent a signal.
    pub(in crate::launch) fn signal_first(&self, signal: Signal) -> io::Result<()> {
        let by_keys = [Signal::INT, Signal::QUIT, Signal::WINCH].contains(&signal);
        if self.group == Group::Callers && by_keys {
            return Ok(());
        }
        self.signal(signal)
    }

    /// Waits until the session is over.
    ///
    /// # Errors
    ///
    /// The kernel's answer. Then the session's processes were ended as far as they could be found.
    pub fn wait(self) -> io::Result<Report> {
        self.watch(None, &mut Nothing, &mut ())
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

    /// Lets go of a session that is over. Nothing is left to be waited for.
    pub(in crate::launch) fn leave(self) {
        drop(self);
    }

    /// The same as [`watch`](Self::watch).
    pub(in crate::launch) fn attend_to_its_end(
        &mut self,
        signals: Option<&Signals>,
        beside: &mut dyn Beside,
        observer: &mut dyn Observer,
    ) -> io::Result<Report> {
        let hearing = match self.desk {
            Some(_) => None,
            None => Some(self.listen()?),
        };
        let mut cause = self.until_command_ends(hearing.as_ref(), signals, beside, observer)?;
        observer.command_ended(self, cause);
        if self.linger == Linger::Yes {
            let ended = self.linger_on(signals, beside)?;
            cause = ended.unwrap_or(cause);
        }
        self.end_serving(beside)?;
        Ok(Report {
            engine: self.plan.engine(),
            cause,
            gaps: self.plan.gaps().to_vec(),
            names: Vec::new(),
            not_held: Vec::new(),
            tried: Vec::new(),
            indexes: self.indexes.look(&HANDS),
            changes: None,
            denials: Vec::new(),
            network: self.attempts(),
            timeline: Vec::new(),
            started: self.started_at,
            ended: now(),
        })
    }

    /// Has a thread wait for the command.
    fn listen(&mut self) -> io::Result<Hearing> {
        let Some(mut child) = self.child.take() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let (bell, ringing) = pipe()?;
        let (sender, status) = channel();
        std::thread::Builder::new().spawn(move || {
            // Nobody who listens is as good: the session is over then.
            let _ = sender.send(child.wait());
            drop(ringing);
        })?;
        Ok(Hearing { bell, status })
    }

    fn until_command_ends(
        &mut self,
        hearing: Option<&Hearing>,
        signals: Option<&Signals>,
        beside: &mut dyn Beside,
        observer: &mut dyn Observer,
    ) -> io::Result<Cause> {
        let mut settled = false;
        loop {
            let left = self.time_left();
            let patience = beside.patience();
            let over = match (left, patience) {
                (Some(Duration::ZERO), _) => Some(self.out_of_time()),
                (_, Some(Duration::ZERO)) => Some(Cause::Ended),
                _ => None,
            };
            if let Some(cause) = over {
                // Nothing of it stays.
                self.linger = Linger::No;
                return Ok(cause);
            }
            let moment = (!settled).then(|| match self.linger {
                Linger::No => MOMENT.saturating_sub(self.started.elapsed()),
                // What lingers is to be found from the beginning.
                Linger::Yes => Duration::ZERO,
            });
            if moment == Some(Duration::ZERO) {
                settled = true;
                self.register();
                if self.unregistered.is_some() {
                    // Nobody would find it again, so it ends with its command.
                    self.linger = Linger::No;
                }
                observer.settled(self);
                continue;
            }
            let soon = left.into_iter().chain(patience).chain(moment).min();
            let ended = self.sleep(soon, hearing, signals, beside)?;
            beside.serve(self)?;
            if let Some(signals) = signals
                && let Some(signal) = signals.pass_on(self)?
            {
                self.asked.get_or_insert_with(|| (Instant::now(), signal));
            }
            if ended {
                match self.heard(hearing)? {
                    Some(cause) => return Ok(cause),
                    None => beside.stopped(self)?,
                }
            }
        }
    }

    /// Sleeps until something happens; whether it is something about the command.
    fn sleep(
        &self,
        left: Option<Duration>,
        hearing: Option<&Hearing>,
        signals: Option<&Signals>,
        beside: &dyn Beside,
    ) -> io::Result<bool> {
        let told = match (&self.desk, hearing) {
            (_, Some(hearing)) => Some(&hearing.bell),
            (Some(desk), None) => Some(&desk.words),
            (None, None) => None,
        };
        let mut watched = Vec::new();
        watched.extend(told.map(|told| PollFd::new(told, PollFlags::IN)));
        watched.extend(signals.map(|signals| PollFd::new(signals, PollFlags::IN)));
        beside.watched(&mut watched);
        match poll(&mut watched, left.map(timespec).as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
        let first = watched.first().filter(|_| told.is_some());
        Ok(first.is_some_and(|told| !told.revents().is_empty()))
    }

    /// How the command ended; `None` if it was only stopped.
    fn heard(&self, hearing: Option<&Hearing>) -> io::Result<Option<Cause>> {
        if let Some(hearing) = hearing {
            return match hearing.status.recv() {
                Ok(status) => Ok(Some(cause(status?))),
                Err(_) => Ok(Some(Cause::Ended)),
            };
        }
        let word = match &self.desk {
            Some(desk) => desk::receive(&desk.words)?,
            None => None,
        };
        Ok(match word {
            Some(Word::Exited(status)) => Some(Cause::Exited { status }),
            Some(Word::Killed(signal)) => Some(Cause::Killed { signal }),
            Some(Word::Stopped) => None,
            // It went without a word, or was made to.
            Some(Word::Started(_)) | None => Some(Cause::Ended),
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

    /// Waits until nobody is left of those that linger, or somebody wants the session to end: what
    /// ended it then.
    fn linger_on(
        &mut self,
        signals: Option<&Signals>,
        beside: &mut dyn Beside,
    ) -> io::Result<Option<Cause>> {
        let mut table = self.table();
        while anybody_left(&mut table).map_err(unlisted)? {
            let left = self.time_left();
            if left == Some(Duration::ZERO) {
                return Ok(Some(self.out_of_time()));
            }
            if beside.patience() == Some(Duration::ZERO) {
                return Ok(Some(Cause::Ended));
            }
            let soon = left.map_or(LOOK, |left| left.min(LOOK));
            sleep_beside(soon, signals, beside)?;
            beside.serve(self)?;
            if let Some(signals) = signals
                && let Some(signal) = signals.ask_to_end()?
            {
                return Ok(Some(Cause::Killed { signal }));
            }
        }
        Ok(None)
    }

    fn table(&self) -> Table {
        Table::new(&self.session.directory, self.own_group())
    }

    /// Ends everybody, and serves what stands beside meanwhile: whoever has to go may first have to be
    /// rid of what it has shown.
    fn end_serving(&self, beside: &mut dyn Beside) -> io::Result<()> {
        let mut table = self.table();
        let (bell, ringing) = pipe()?;
        let ending = std::thread::Builder::new().spawn(move || {
            let ended = end_session(&mut table).map(|_| ()).map_err(unlisted);
            drop(ringing);
            ended
        })?;
        loop {
            let mut watched = vec![PollFd::new(&bell, PollFlags::IN)];
            beside.watched(&mut watched);
            match poll(&mut watched, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let over = watched
                .first()
                .is_some_and(|bell| !bell.revents().is_empty());
            beside.serve(self)?;
            if over {
                let gone = |_| {
                    Err(io::Error::other(
                        "the thread that ends the session has ended",
                    ))
                };
                return ending.join().unwrap_or_else(gone);
            }
        }
    }

    /// Ends the session now: everything in it, whatever it does about signals.
    pub fn kill(&mut self) {
        if let Some(desk) = &mut self.desk {
            // Whoever leads its session would wait for somebody to read what was shown.
            desk.terminal = None;
        }
        // What is left is said by the next one that looks.
        let _ = end_session(&mut self.table());
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
        self.child = None;
    }
}

/// Sleeps when nothing is to be heard of the command any more.
fn sleep_beside(left: Duration, signals: Option<&Signals>, beside: &dyn Beside) -> io::Result<()> {
    let mut watched = Vec::new();
    watched.extend(signals.map(|signals| PollFd::new(signals, PollFlags::IN)));
    beside.watched(&mut watched);
    match poll(&mut watched, Some(&timespec(left))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn unlisted(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever lets go of a session ends it.
        self.kill();
        if let Some((mut keeper, lifeline)) = self.keeper.take() {
            drop(lifeline);
            let _ = keeper.wait();
        }
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
