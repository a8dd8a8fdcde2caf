//! How ringfence ends.

use std::process::ExitCode;

/// How ringfence ends when it does not end as the command did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// All went well.
    Success,
    /// The arguments or the settings are wrong; nothing ran.
    Usage,
    /// The time limit ended the command.
    #[expect(dead_code, reason = "for the launcher")]
    TimeLimit,
    /// ringfence refused or failed; nothing ran.
    Refused,
    /// The command was found and cannot be run.
    #[expect(dead_code, reason = "for the launcher")]
    NotRunnable,
    /// The command was not found.
    #[expect(dead_code, reason = "for the launcher")]
    NotFound,
}

impl Exit {
    /// As the shell sees it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Usage => 2,
            Self::TimeLimit => 124,
            Self::Refused => 125,
            Self::NotRunnable => 126,
            Self::NotFound => 127,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
