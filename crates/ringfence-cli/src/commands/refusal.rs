//! Why nothing was started, and what would help.

use ringfence::launch::LaunchError;

use super::with_causes;
use crate::exit::Exit;
use crate::output::complain;

/// Says it; the result is the status that tells a shell about it.
pub(super) fn explain_refusal(error: &LaunchError) -> Exit {
    let text = with_causes(error);
    let hint = match error {
        LaunchError::Directory { .. } => {
            Some("start it somewhere else, or grant the directory with `--read` or `--write`")
        }
        LaunchError::Act { .. } => Some("`ringfence explain --plan` shows every act"),
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        LaunchError::Unfindable { .. } => Some(super::linger::WHERE_TO_BE_FOUND),
        _ => None,
    };
    complain(&text, hint);
    match error {
        LaunchError::NotExecutable { .. } => Exit::NotExecutable,
        LaunchError::NotFound { .. } => Exit::NotFound,
        _ => Exit::Refused,
    }
}
