//! How ringfence ends.

use std::process::ExitCode;

/// How ringfence ends when it does not end as the command did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// All went well.
    Success,
    /// All went well, and the answer is no.
    No,
    /// The arguments or the settings are wrong; nothing ran.
    Usage,
    /// ringfence refused or failed; nothing ran.
    Refused,
    /// The program is there and cannot be run.
    NotExecutable,
    /// There is no such program.
    NotFound,
}

impl Exit {
    /// As the shell sees it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Refused => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
