//! How ringfence ends.

use std::process::ExitCode;

/// How ringfence ends when it does not end as the command did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// All went well.
    Success,
    /// The arguments or the settings are wrong; nothing ran.
    Usage,
    /// ringfence refused or failed; nothing ran.
    Refused,
}

impl Exit {
    /// As the shell sees it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Usage => 2,
            Self::Refused => 125,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
