//! `ringfence run --linger`.

use std::ffi::OsString;
use std::process::ExitCode;

use ringfence::linger::{Behind, Front};

use crate::exit::Exit;
use crate::lent::Lent;
use crate::output::complain;

/// What is to be done where a session cannot be written down.
pub(super) const WHERE_TO_BE_FOUND: &str = "let XDG_RUNTIME_DIR name a directory of your own, or unset it and have a home to write to; without `--linger` it ends with its command";

/// Starts the supervisor of what lingers, and waits until its command has ended.
pub(super) fn in_front() -> ExitCode {
    let _lent = Lent::now();
    let status = Front::new().and_then(|front| {
        let number = front.number().to_string();
        // `run` comes first; what follows it is as it was typed.
        let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
        let after_run = words.len().min(1);
        words.splice(after_run..after_run, ["--lingering".into(), number.into()]);
        front.wait(words)
    });
    match status {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            complain(&format!("cannot start a lingering session: {error}"), None);
            Exit::Refused.into()
        }
    }
}

/// Takes over what the front left open; says what went wrong.
pub(super) fn behind(number: Option<u32>) -> Result<Option<Behind>, Exit> {
    let inherited = number.map(Behind::inherited).transpose();
    inherited.map_err(|error| {
        complain(
            &format!("cannot become the supervisor of a lingering session: {error}"),
            None,
        );
        Exit::Refused
    })
}
