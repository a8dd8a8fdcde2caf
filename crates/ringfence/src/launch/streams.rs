//! What a command gets as standard input, output and error, and as its terminal.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;

use rustix::termios::Termios;

/// What a command gets from its caller besides its policy.
#[derive(Debug, Default)]
pub struct Given {
    /// Its standard streams, and its terminal.
    pub streams: Streams,
    /// Variables that it gets whatever the policy says of the caller's own.
    pub variables: Vec<(OsString, OsString)>,
    /// A first process that was started before it was known what for, if there is one.
    pub ahead: Option<super::Ahead>,
    /// A walk that must find the repositories that the policy was made of before anything starts.
    #[cfg(target_os = "linux")]
    pub walking: Option<crate::git::Walking>,
}

impl Given {
    /// Whether the policy was made of something that has not been seen to be there yet. It must not
    /// be used again without this.
    pub fn is_presumed(&self) -> bool {
        #[cfg(target_os = "linux")]
        let presumed = self.walking.is_some();
        #[cfg(not(target_os = "linux"))]
        let presumed = false;
        presumed
    }
}

impl From<Streams> for Given {
    fn from(streams: Streams) -> Self {
        Self {
            streams,
            ..Self::default()
        }
    }
}

/// One of the three standard streams.
#[derive(Debug, Default)]
#[non_exhaustive]
pub enum Stream {
    /// This one, and nobody else keeps it open on our side.
    Given(OwnedFd),
    /// The caller's own.
    #[default]
    Inherited,
    /// The session's terminal; without one, what is inherited.
    Terminal,
}

impl Stream {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Given(file) => Self::Given(file.try_clone()?),
            Self::Inherited => Self::Inherited,
            Self::Terminal => Self::Terminal,
        })
    }
}

/// Whether one of the three is the session's terminal.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    Other,
    Terminal,
}

/// The three standard streams, and the terminal of a session that has one of its own.
#[derive(Debug, Default)]
pub struct Streams {
    /// Standard input.
    pub input: Stream,
    /// Standard output.
    pub output: Stream,
    /// Standard error.
    pub error: Stream,
    /// The terminal that the session gets, if any. It controls the session whatever the streams are:
    /// `/dev/tty` is this one.
    pub terminal: Option<NewTerminal>,
}

impl Streams {
    /// The same, for another try. Whoever reads what a session prints hears of its end only once
    /// these are dropped.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            input: self.input.try_clone()?,
            output: self.output.try_clone()?,
            error: self.error.try_clone()?,
            terminal: self.terminal.clone(),
        })
    }

    /// All three from a terminal of the session's own.
    pub fn terminal(terminal: NewTerminal) -> Self {
        Self {
            input: Stream::Terminal,
            output: Stream::Terminal,
            error: Stream::Terminal,
            terminal: Some(terminal),
        }
    }
}

/// How a session's own terminal begins.
#[derive(Clone, Debug)]
pub struct NewTerminal {
    /// How large it is.
    pub size: Size,
    /// Its modes; `None` for those of a new terminal.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "macos")),
        expect(dead_code, reason = "there are no sessions here")
    )]
    pub(crate) modes: Option<Termios>,
}

impl NewTerminal {
    /// A terminal of this size, with the modes of a new one.
    pub fn new(size: Size) -> Self {
        Self { size, modes: None }
    }
}

/// How large a terminal is, in characters.
///
/// # Examples
///
/// ```
/// use ringfence::Size;
///
/// assert_eq!(Size::default(), Size { rows: 24, columns: 80 });
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Size {
    /// Lines of text.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Default for Size {
    /// The size that terminals always had.
    fn default() -> Self {
        Self {
            rows: 24,
            columns: 80,
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
impl From<Size> for ringfence_sys::terminal::Size {
    fn from(size: Size) -> Self {
        let Size { rows, columns } = size;
        Self { rows, columns }
    }
}
