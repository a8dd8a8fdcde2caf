//! What a launch can be asked for where there are sessions: types without values, so that whoever asks has to
//! say what he does where there is none.

use std::io;

use super::{Report, Streams};

/// A terminal that could be lent to nobody.
#[derive(Debug)]
pub struct Relay(std::convert::Infallible);

/// What a user is shown of what a command prints.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Shown {
    /// All of it.
    #[default]
    AsIs,
    /// Text and colours.
    Sanitized,
}

/// Pipes that nothing could be printed to.
#[derive(Debug)]
pub struct Filter(std::convert::Infallible);

impl Filter {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`io::ErrorKind::Unsupported`].
    pub fn new(_shown: Shown) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never called: there is no such value.
    pub fn streams(&mut self) -> Streams {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn unwritten(&self) -> Option<(&'static str, io::Error)> {
        match self.0 {}
    }
}

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
    pub fn new(_shown: Shown) -> Result<Self, RelayError> {
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
    Ended(Box<io::Result<Report>>),
    /// Something happened.
    Happened(crate::event::Event),
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
    pub fn bell(&self) -> std::os::fd::BorrowedFd<'_> {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn news(&mut self) -> Option<News> {
        match self.0 {}
    }

    /// Never called: there is no such value.
    pub fn try_news(&mut self) -> Option<News> {
        match self.0 {}
    }
}

impl std::os::fd::AsFd for Served {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self.0 {}
    }
}
