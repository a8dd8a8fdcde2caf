//! Launching where ringfence cannot enforce anything yet: every launch is refused.

use std::io;
use std::time::Duration;

use ringfence_core::plan::{Plan, Step};
use ringfence_core::policy::Policy;

use super::{Command, Given, LaunchError, Options, Report, Streams};

/// A launch that cannot exist here.
#[derive(Debug)]
pub struct Prepared(std::convert::Infallible);

/// A session that cannot exist here.
#[derive(Debug)]
pub struct Running(std::convert::Infallible);

/// Signals that nothing could be passed on to.
#[derive(Debug)]
pub struct Signals(std::convert::Infallible);

/// Refuses.
///
/// # Errors
///
/// Always [`LaunchError::Engine`].
pub fn prepare(
    _policy: &Policy,
    plan: &Plan,
    _command: &Command,
    _options: Options,
) -> Result<Prepared, LaunchError> {
    Err(LaunchError::Engine {
        engine: plan.engine(),
    })
}

/// Refuses.
///
/// # Errors
///
/// Always [`LaunchError::Engine`].
pub fn prepare_with(
    policy: &Policy,
    plan: &Plan,
    command: &Command,
    options: Options,
    _given: Given,
) -> Result<Prepared, LaunchError> {
    prepare(policy, plan, command, options)
}

/// A terminal that could be lent to nobody.
#[derive(Debug)]
pub struct Relay(std::convert::Infallible);

/// What would restore that terminal.
#[derive(Debug)]
pub struct Rescue(std::convert::Infallible);

/// Why a command cannot be given a terminal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// Nobody sits in front of one.
    #[error("neither standard input, output nor error is a terminal")]
    NoTerminal,
    /// There are no sessions here.
    #[error("the terminal cannot be used")]
    Refused(#[source] io::Error),
}

impl Relay {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`RelayError::Refused`].
    pub fn new() -> Result<Self, RelayError> {
        Err(RelayError::Refused(io::ErrorKind::Unsupported.into()))
    }

    /// Never called: there is no such value.
    pub fn streams(&self) -> Streams {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    pub fn rescue(&self) -> io::Result<Rescue> {
        match self.0 {}
    }
}

impl Rescue {
    /// Never called: there is no such value.
    pub fn restore(&self) {
        match self.0 {}
    }
}

/// What a session that cannot exist would tell.
#[derive(Debug)]
#[non_exhaustive]
pub enum News {
    /// It is over.
    Ended(io::Result<Report>),
    /// The command was stopped.
    Stopped,
}

/// A session that cannot exist here.
#[derive(Debug)]
pub struct Served(std::convert::Infallible);

impl Served {
    /// Never called: there is no such value.
    pub fn id(&self) -> i32 {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn take_terminal(&mut self) -> Option<std::os::fd::OwnedFd> {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn end(&self) {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn signal(&self, _signal: rustix::process::Signal) {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn next(&self) -> Option<News> {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn try_next(&self) -> Option<News> {
        match self.0 {}
    }
}

impl std::os::fd::AsFd for Served {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self.0 {}
    }
}

impl Prepared {
    /// Never called.
    #[must_use]
    pub fn asking(self, _decider: std::sync::Arc<dyn super::Decider>) -> Self {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    pub fn serve(self) -> Result<Served, LaunchError> {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    pub fn spawn(self) -> Result<Running, LaunchError> {
        match self.0 {}
    }
}

impl Running {
    /// Never called.
    pub fn attempts(&self) -> super::Network {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn id(&self) -> i32 {
        match self.0 {}
    }

    /// Never called.
    pub fn timeline(&self) -> &[(Step, Duration)] {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    pub fn wait(self) -> io::Result<Report> {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    pub fn wait_passing_signals(self, _signals: &Signals) -> io::Result<Report> {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    pub fn wait_relaying(self, _relay: Relay) -> io::Result<Report> {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn take_terminal(&mut self) -> Option<std::os::fd::OwnedFd> {
        match self.0 {}
    }
}

impl Signals {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`io::ErrorKind::Unsupported`].
    pub fn listen() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
