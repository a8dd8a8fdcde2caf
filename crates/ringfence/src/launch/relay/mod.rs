//! Between the user's terminal and the one of a session.
//!
//! Every key goes to the session's terminal as it was typed, and that terminal makes signals, lines
//! and echoes of it; everything shown comes back as it is. So programs inside find a terminal of
//! their own, and the user's has nothing of it left when the session is over.
//!
//! Nothing here waits for anybody. Both directions have one small buffer; whoever does not read is
//! not read from either. A user who has stopped the output, or a command that never reads, cannot
//! keep a session from being ended.

mod buffer;
mod filter;
#[cfg(target_os = "linux")]
mod guardian;
#[cfg(not(target_os = "linux"))]
#[path = "unguarded.rs"]
mod guardian;
mod show;
mod user;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ringfence_sys::ready::{PollFd, PollFlags, poll};
use ringfence_sys::signals::{Mask, SentBy, SignalFd};
use ringfence_sys::terminal::{self, Modes};
use ringfence_sys::{Errno, Signal};
use rustix::fs::{OFlags, fcntl_setfl};

use self::buffer::{Buffer, Flow};
pub use self::filter::Filter;
use self::show::Output;
pub use self::show::Shown;
use self::user::UserTerminal;
use super::beside::{Beside, timespec};
use super::passing::is_heard;
use super::streams::Use;
use super::{NewTerminal, Observer, Report, Running, Stream, Streams};

/// What is typed is rarely more than a paste.
const TYPED: usize = 4 << 10;
/// How long a command may take to end after it was asked to, before it is ended.
const GRACE: Duration = Duration::from_secs(1);
/// How long the last output may take without any of it being shown.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a terminal may take to answer.
const ANSWER: Duration = Duration::from_millis(250);

/// Why a command cannot be given a terminal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// Nobody sits in front of one.
    #[error("neither standard input, output nor error is a terminal")]
    NoTerminal,
    /// The kernel refused.
    #[error("the terminal cannot be used")]
    Refused(#[source] io::Error),
}

/// The user's terminal, to be lent to a session.
///
/// For a program whose whole purpose is one session, and which has a terminal: its signals stay
/// blocked in the calling thread, and the program stops and continues with the command.
#[derive(Debug)]
pub struct Relay {
    user: UserTerminal,
    signals: SignalFd,
    /// The outer end of the session's terminal.
    session: Option<OwnedFd>,
    typed: Buffer,
    shown: Output,
    /// When the session is ended, if it does not end by itself.
    deadline: Option<Instant>,
}

/// Gives the user's terminal its modes back, from wherever: for a hook that runs when a program
/// panics and nothing is dropped any more.
#[derive(Debug)]
pub struct Rescue {
    terminal: OwnedFd,
    modes: Modes,
}

impl Rescue {
    /// Does it. Nothing can be done about a failure.
    pub fn restore(&self) {
        let _ = terminal::restore(&self.terminal, &self.modes);
    }
}

/// What the user's terminal, shell or system tells a job.
const SIGNALS: [Signal; 11] = [
    Signal::CONT,
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
];

impl Relay {
    /// Finds the user's terminal and listens for signals. Call it before anything is started.
    ///
    /// # Errors
    ///
    /// [`RelayError::NoTerminal`] if there is none. Nothing has been changed but the signals that
    /// are blocked.
    pub fn new(shown: Shown) -> Result<Self, RelayError> {
        let found = UserTerminal::find().map_err(RelayError::Refused)?;
        let user = found.ok_or(RelayError::NoTerminal)?;
        let mut mask = Mask::EMPTY;
        for signal in SIGNALS.into_iter().filter(|signal| is_heard(*signal)) {
            mask = mask.with(signal.as_raw());
        }
        let signals = mask.block().and_then(|_before| SignalFd::new(mask));
        Ok(Self {
            user,
            signals: signals.map_err(|errno| RelayError::Refused(errno.into()))?,
            session: None,
            typed: Buffer::new(TYPED),
            shown: Output::new(shown),
            deadline: None,
        })
    }

    /// The streams for the command: what is the user's terminal becomes the session's own, and what
    /// is a file or a pipe passes as it is.
    pub fn streams(&self) -> Streams {
        let [input, output, error] = self.user.streams.map(|used| match used {
            Use::Other => Stream::Inherited,
            Use::Terminal => Stream::Terminal,
        });
        let terminal = NewTerminal {
            size: self.user.size(),
            modes: self.user.modes(),
        };
        Streams {
            input,
            output,
            error,
            terminal: Some(terminal),
        }
    }

    /// What restores the terminal where nothing is dropped.
    ///
    /// # Errors
    ///
    /// For want of descriptors.
    pub fn rescue(&self) -> io::Result<Rescue> {
        let (terminal, modes) = self.user.rescue()?;
        Ok(Rescue { terminal, modes })
    }

    fn resize(&self) {
        if let Some(session) = &self.session {
            // A session that is over has no use for it.
            let _ = terminal::set_size(session, self.user.size().into());
        }
    }

    /// Lends the terminal to the session, once it is ours to lend.
    fn take_terminal(&mut self) -> io::Result<()> {
        self.user.take()?;
        self.resize();
        Ok(())
    }

    /// Gives the terminal back and stops with the rest of the job, until somebody continues it.
    fn pause(&mut self) -> io::Result<()> {
        self.show();
        self.user.give_back();
        terminal::stop_job(Signal::TSTP)?;
        self.take_terminal()
    }

    /// Nobody is at the terminal any more.
    fn hang_up(&mut self, session: &Running) {
        if self.deadline.is_none() {
            let _ = session.signal(Signal::HUP);
            self.deadline = Some(Instant::now() + GRACE);
        }
        // Its programs are told by the kernel, as those of every terminal that goes away.
        self.session = None;
        self.typed.clear();
        self.shown.clear();
    }

    fn take_signals(&mut self, session: &Running) -> io::Result<()> {
        while let Some(arrived) = self.signals.take()? {
            let Some(signal) = Signal::from_named_raw(arrived.signal) else {
                continue;
            };
            if signal == Signal::WINCH {
                self.resize();
            } else if signal == Signal::CONT {
                self.take_terminal()?;
            } else if [Signal::TSTP, Signal::TTIN, Signal::TTOU].contains(&signal) {
                self.pause()?;
            } else if signal == Signal::HUP && arrived.sent_by == SentBy::Kernel {
                self.hang_up(session);
            } else {
                // The command is in no job of the user's shell, so it hears of it by us alone.
                let _ = session.signal(signal);
                if [Signal::HUP, Signal::TERM].contains(&signal) && self.deadline.is_none() {
                    self.deadline = Some(Instant::now() + GRACE);
                }
            }
        }
        Ok(())
    }

    /// Brings what was typed to the session.
    fn type_in(&mut self, session: &Running) -> io::Result<()> {
        if self.typed.has_room()
            && let Some(input) = self.user.input()
            && self.session.is_some()
        {
            match self.typed.fill(input) {
                Flow::Moved => {}
                Flow::Closed(_) if self.user.is_away() => self.take_terminal()?,
                Flow::Waits if !self.user.is_gone() => {}
                Flow::Closed(_) | Flow::Waits => self.hang_up(session),
            }
        }
        if let Some(terminal) = &self.session
            && let Flow::Closed(_) = self.typed.drain(terminal)
        {
            // Nobody inside will read it.
            self.typed.clear();
        }
        Ok(())
    }

    /// Brings what the session shows to the user; says whether anything moved.
    fn show(&mut self) -> Flow {
        let mut moved = Flow::Waits;
        if let Some(terminal) = &self.session
            && self.shown.fill(terminal) == Flow::Moved
        {
            moved = Flow::Moved;
            // Before it is done, so that it is undone whenever we are killed.
            self.user.remember(self.shown.undo());
        }
        match self.user.screen().map(|screen| self.shown.drain(screen)) {
            Some(Flow::Moved) => Flow::Moved,
            Some(Flow::Waits) => moved,
            Some(closed @ Flow::Closed(_)) => closed,
            None => Flow::Closed(Errno::IO),
        }
    }

    /// Shows what is left when the session is over, unless nobody looks.
    fn finish(&mut self) {
        // What is left in the session's terminal first, then what undoes it.
        while self.session.is_some() {
            match self.show() {
                Flow::Moved => {}
                Flow::Waits if self.shown.has_room() => self.session = None,
                Flow::Waits if self.show_rest() == Rest::Given => {}
                Flow::Waits | Flow::Closed(_) => return self.leave(),
            }
        }
        self.shown.finish();
        if self.show_rest() == Rest::Given && self.shown.was_asked() {
            self.wait_for_answers();
        }
        self.leave();
    }

    /// Gives the terminal back.
    fn leave(&mut self) {
        self.user.flush(LAST_WORDS);
        self.user.discard_input();
        self.user.give_back();
    }

    /// A terminal answers as if somebody typed, and late: what the command asked it would be left
    /// for the user's shell. It answers in order, so behind one more answer there is none of those.
    fn wait_for_answers(&mut self) {
        const QUESTION: &[u8] = b"\x1b[5n";
        let (Some(screen), Some(input)) = (self.user.screen(), self.user.input()) else {
            return;
        };
        if rustix::io::write(screen, QUESTION).is_err() {
            return;
        }
        let deadline = Instant::now() + ANSWER;
        let mut typed = Vec::new();
        let mut chunk = [0; 256];
        while !typed.ends_with(b"\x1b[0n") {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut watched = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
            let ready = poll(&mut watched, Some(&timespec(left)));
            if left.is_zero() || ready != Ok(1) {
                return;
            }
            match rustix::io::read(input, &mut chunk) {
                // Only its end matters, and somebody may be leaning on a key.
                Ok(count @ 1..) => {
                    typed.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    let old = typed.len().saturating_sub(8);
                    typed.drain(..old);
                }
                Ok(0) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Shows what is on its way, unless nobody looks.
    fn show_rest(&mut self) -> Rest {
        let mut patience = Instant::now() + LAST_WORDS;
        loop {
            match self.show() {
                Flow::Closed(_) => return Rest::Abandoned,
                Flow::Moved => patience = Instant::now() + LAST_WORDS,
                Flow::Waits if self.shown.is_empty() => return Rest::Given,
                Flow::Waits => {}
            }
            let left = patience.saturating_duration_since(Instant::now());
            // Whoever asks us to end now does not want to wait for the screen.
            if left.is_zero() || self.is_told_to_end() {
                self.user.abandon_output();
                return Rest::Abandoned;
            }
            let Some(screen) = self.user.screen() else {
                return Rest::Abandoned;
            };
            let signals = self.signals.as_fd();
            let mut watched = [
                PollFd::from_borrowed_fd(screen, PollFlags::OUT),
                PollFd::from_borrowed_fd(signals, PollFlags::IN),
            ];
            // Whatever wakes us, the loop looks again.
            let _ = poll(&mut watched, Some(&timespec(left)));
        }
    }

    fn is_told_to_end(&self) -> bool {
        while let Ok(Some(arrived)) = self.signals.take() {
            let ends = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];
            if ends.iter().any(|signal| signal.as_raw() == arrived.signal) {
                return true;
            }
        }
        false
    }
}

/// Whether somebody was there to be shown the rest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rest {
    Abandoned,
    Given,
}

impl Beside for Relay {
    fn watched<'a>(&'a self, watched: &mut Vec<PollFd<'a>>) {
        watched.push(PollFd::new(&self.signals, PollFlags::IN));
        let Some(session) = &self.session else {
            return;
        };
        let mut about = PollFlags::empty();
        if self.shown.has_room() {
            about |= PollFlags::IN;
        }
        if !self.typed.is_empty() {
            about |= PollFlags::OUT;
        }
        watched.push(PollFd::new(session, about));
        if let Some(input) = self.user.input().filter(|_| self.typed.has_room()) {
            watched.push(PollFd::from_borrowed_fd(input, PollFlags::IN));
        }
        if let Some(screen) = self.user.screen().filter(|_| !self.shown.is_empty()) {
            watched.push(PollFd::from_borrowed_fd(screen, PollFlags::OUT));
        }
    }

    fn patience(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    fn serve(&mut self, session: &Running) -> io::Result<()> {
        self.take_signals(session)?;
        self.type_in(session)?;
        if self.session.is_some()
            && let Flow::Closed(_) = self.show()
        {
            self.hang_up(session);
        }
        Ok(())
    }

    fn stopped(&mut self, session: &Running) -> io::Result<()> {
        self.pause()?;
        // Also where nobody could stop us. It may have been killed meanwhile.
        let _ = session.signal(Signal::CONT);
        Ok(())
    }
}

impl Running {
    /// Waits until the session is over, with the user's terminal lent to it.
    ///
    /// The terminal has its own modes again when this returns, whatever it returns.
    ///
    /// # Errors
    ///
    /// The kernel's answer; the session has been ended.
    pub fn wait_relaying(self, relay: Relay) -> io::Result<Report> {
        self.wait_relaying_observed(relay, &mut ())
    }

    /// The same, with somebody who is told how far it is.
    ///
    /// # Errors
    ///
    /// The kernel's answer; the session has been ended.
    pub fn wait_relaying_observed(
        mut self,
        mut relay: Relay,
        observer: &mut dyn Observer,
    ) -> io::Result<Report> {
        if let Some(terminal) = self.take_terminal() {
            fcntl_setfl(&terminal, OFlags::RDWR | OFlags::NONBLOCK)?;
            relay.session = Some(terminal);
        }
        relay.take_terminal()?;
        let report = self.watch(None, &mut relay, observer);
        relay.finish();
        report
    }
}
