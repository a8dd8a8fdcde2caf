//! Launching where ringfence cannot enforce anything yet: every launch is refused.

use std::io;
use std::time::Duration;

use ringfence_core::plan::{Plan, Step};
use ringfence_core::policy::Policy;

use super::nowhere::{Filter, Relay, Served};
use super::{Command, Given, LaunchError, Options, Report};

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

impl LaunchError {
    /// Nothing is ever looked for here.
    #[must_use]
    pub fn explained(
        self,
        _policy: &Policy,
        _command: &Command,
        _variables: &[(std::ffi::OsString, std::ffi::OsString)],
    ) -> Self {
        self
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
    pub fn spawn(self) -> Result<Running, LaunchError> {
        match self.0 {}
    }

    /// The same.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    #[doc(hidden)]
    pub fn spawn_while(self, _meanwhile: impl FnOnce()) -> Result<Running, LaunchError> {
        match self.0 {}
    }
}

/// Refuses what `start` does not refuse itself.
///
/// # Errors
///
/// Those of `start`, which always has one.
pub(crate) fn serve<T, E>(
    start: impl FnOnce() -> Result<(Running, T), E>,
) -> Result<(Served, T), E> {
    let (running, _more) = start()?;
    match running.0 {}
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
    pub fn wait_filtering(self, _filter: &mut Filter, _signals: &Signals) -> io::Result<Report> {
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
