//! Signals that are meant for a session and reach its supervisor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use ringfence_sys::Signal;
use ringfence_sys::signals::{Mask, SentBy, SignalFd, is_ignored};

use super::beside::Nothing;
use super::{Observer, Report, Running};

/// What was blocked before anybody listened.
static BEFORE: OnceLock<Mask> = OnceLock::new();

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
    /// What the program ignores stays ignored: whoever called it by `nohup`, or as a background job,
    /// means the session.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn listen() -> io::Result<Self> {
        let mut mask = Mask::EMPTY;
        for signal in Self::PASSED_ON
            .into_iter()
            .filter(|signal| is_heard(*signal))
        {
            mask = mask.with(signal.as_raw());
        }
        let before = mask.block()?;
        BEFORE.get_or_init(|| before);
        Ok(Self(SignalFd::new(mask)?))
    }

    /// Has a file that is too large for this program (`ulimit -f`) be an error like any other, in place of
    /// its end: the audit trail is written when the command has its status. A command is killed by
    /// it as ever.
    #[cfg(target_os = "linux")]
    #[doc(hidden)]
    pub fn outlive_file_size() {
        // Whoever cannot is ended by it, as before.
        let _ = ringfence_sys::signals::outlive_file_size();
    }

    /// Lets them do to the calling thread what they did before anybody listened: for whoever started
    /// nothing after all, and goes on without a session that could be told.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn give_back() -> io::Result<()> {
        let before = BEFORE.get().copied();
        Ok(before.map_or(Ok(()), Mask::restore)?)
    }

    /// Passes on what has arrived. Says which signal asks the session to end, if one does: a
    /// command that goes on all the same is ended after a while.
    pub(super) fn pass_on(&self, session: &Running) -> io::Result<Option<i32>> {
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

/// Whether a signal is for the session: one that the program was told to ignore is for nobody.
pub(super) fn is_heard(signal: Signal) -> bool {
    let does_nothing = [Signal::CONT, Signal::WINCH].contains(&signal);
    does_nothing || !is_ignored(signal.as_raw())
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

    /// The first that has arrived and asks a program to end, if one does.
    pub(super) fn ask_to_end(&self) -> io::Result<Option<i32>> {
        let mut asked = None;
        while let Some(arrived) = self.0.take()? {
            let asks = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM]
                .iter()
                .any(|signal| signal.as_raw() == arrived.signal);
            asked = asked.or_else(|| asks.then_some(arrived.signal));
        }
        Ok(asked)
    }
}

impl Running {
    /// Waits until the session is over, and passes on the signals that ask a program to end.
    ///
    /// For a program whose whole purpose is this session: the signals stay blocked in the calling
    /// thread.
    ///
    /// # Errors
    ///
    /// The kernel's answer; the session has been ended.
    pub fn wait_passing_signals(self, signals: &Signals) -> io::Result<Report> {
        self.wait_passing_signals_observed(signals, &mut ())
    }

    /// The same, with somebody who is told how far it is.
    ///
    /// # Errors
    ///
    /// The kernel's answer; the session has been ended.
    pub fn wait_passing_signals_observed(
        self,
        signals: &Signals,
        observer: &mut dyn Observer,
    ) -> io::Result<Report> {
        self.watch(Some(signals), &mut Nothing, observer)
    }
}
