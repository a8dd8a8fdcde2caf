//! A command line for programs that insist on starting processes themselves.
//!
//! A terminal emulator has its own way of starting a shell, and wants a program and arguments for it.
//! [`Sandbox::wrap`] gives it those: the emulator's own program (or the `ringfence` binary), which
//! calls [`run_if_asked`](crate::shim::run_if_asked) first, reads the policy and the command from a
//! descriptor, and becomes the session's supervisor. Neither is ever seen in arguments or in an
//! environment, and the descriptor is a sealed memory file: what is read is what was written.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use ringfence_core::policy::Place;
use ringfence_sys::{Errno, descriptors, events};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

use crate::launch::{
    self, LaunchError, Relay, RelayError, Report, Running, Shown, Signals, Streams,
};
use crate::place::{Lookout, Surroundings};
use crate::planned::Planned;
use crate::policy::Policy;
use crate::sandbox::{Sandbox, SandboxError, options, resolve};
use crate::shim;

/// Which form of a request this is. Both sides may be different programs.
const VERSION: u32 = 1;
/// No request is larger: arguments end at a few megabytes.
const LARGEST: u64 = 16 << 20;
/// The status of a session that was refused.
const REFUSED: u8 = 125;

/// Why a command cannot be wrapped.
///
/// # Examples
///
/// ```
/// use ringfence::{Policy, Sandbox, WrapError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// // This program did not begin with `ringfence::shim::run_if_asked()`.
/// assert!(matches!(sandbox.wrap(["true"]), Err(WrapError::Shim)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WrapError {
    /// There is nothing to run.
    #[error("there is no command to wrap")]
    Empty,
    /// The policy cannot be enforced any more.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The calling program would not know what it was started for.
    #[error(
        "this program does not begin with `ringfence::shim::run_if_asked()`; wrap through the `ringfence` binary"
    )]
    Shim,
    /// The kernel refused.
    #[error("the request cannot be handed over")]
    Handover(#[source] io::Error),
}

/// A program and arguments that run a command in a sandbox.
///
/// Start them with the environment, directory, streams and terminal that the command is to have: the
/// policy decides which variables pass, and a terminal is lent to one of the session's own. The
/// descriptors must be inherited under the numbers they have; they are open for that, so start the
/// process soon and drop this afterwards.
///
/// # Examples
///
/// ```
/// use ringfence::{Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// let wrapped = sandbox.wrap_through("/usr/bin/ringfence", ["bash", "-l"])?;
/// // Neither the policy nor the command is seen in the arguments.
/// assert_eq!(wrapped.arguments.len(), 2);
/// assert_eq!(wrapped.descriptors.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Wrapped {
    /// What to start.
    pub program: PathBuf,
    /// Its arguments, without the program's name.
    pub arguments: Vec<OsString>,
    /// What it must inherit.
    pub descriptors: Vec<OwnedFd>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Request {
    version: u32,
    policy: Policy,
    command: Vec<OsString>,
}

impl Sandbox {
    /// Wraps a command for a program that starts it itself, as itself.
    ///
    /// # Errors
    ///
    /// [`WrapError::Shim`] unless the calling program began with
    /// [`run_if_asked`](crate::shim::run_if_asked).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use ringfence::{Policy, Sandbox};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// ringfence::shim::run_if_asked();
    /// let sandbox = Sandbox::new(Policy::terminal("/home/me/project"))?;
    /// let wrapped = sandbox.wrap(["bash", "-l"])?;
    /// let status = std::process::Command::new(&wrapped.program)
    ///     .args(&wrapped.arguments)
    ///     .status()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wrap<S: AsRef<OsStr>>(
        &self,
        command: impl IntoIterator<Item = S>,
    ) -> Result<Wrapped, WrapError> {
        if !shim::can_be_asked() {
            return Err(WrapError::Shim);
        }
        let own = std::env::current_exe().map_err(WrapError::Handover)?;
        self.wrap_through(own, command)
    }

    /// Wraps a command for a program that starts it itself, through the `ringfence` binary or any
    /// other that begins with [`run_if_asked`](crate::shim::run_if_asked).
    ///
    /// # Errors
    ///
    /// [`WrapError`]; nothing was started.
    ///
    /// ```no_run
    /// use ringfence::{Policy, Sandbox};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sandbox = Sandbox::new(Policy::terminal("."))?;
    /// let wrapped = sandbox.wrap_through("/usr/bin/ringfence", ["bash", "-l"])?;
    /// let mut shell = std::process::Command::new(&wrapped.program);
    /// shell.args(&wrapped.arguments).spawn()?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wrap_through<S: AsRef<OsStr>>(
        &self,
        program: impl Into<PathBuf>,
        command: impl IntoIterator<Item = S>,
    ) -> Result<Wrapped, WrapError> {
        let command: Vec<OsString> = command
            .into_iter()
            .map(|word| word.as_ref().to_owned())
            .collect();
        if command.is_empty() {
            return Err(WrapError::Empty);
        }
        // Better said here than by a process that somebody else has started.
        self.plan()?;
        let request = Request {
            version: VERSION,
            policy: self.absolute_policy(),
            command,
        };
        let orders = sealed(&request).map_err(WrapError::Handover)?;
        let number = orders.as_raw_fd().to_string();
        Ok(Wrapped {
            program: program.into(),
            arguments: vec![shim::SESSION.into(), number.into()],
            descriptors: vec![orders],
        })
    }
}

/// A request as a file in memory that nobody can change any more, and that exec leaves open.
fn sealed(request: &Request) -> io::Result<OwnedFd> {
    let mut file = File::from(events::memory_file(c"ringfence-request")?);
    file.write_all(&serde_json::to_vec(request)?)?;
    file.rewind()?;
    events::seal(&file)?;
    fcntl_setfd(&file, FdFlags::empty())?;
    Ok(file.into())
}

/// Reads what was written by [`sealed`]; anything else is no request.
fn read(number: Option<u32>) -> io::Result<Request> {
    let file = descriptors::copy_of(number.ok_or(Errno::INVAL)?)?;
    if !events::is_sealed(&file)? {
        return Err(Errno::PERM.into());
    }
    let mut file = File::from(file);
    // Others who have it open may have read it before.
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    let request: Request = serde_json::from_slice(&bytes)?;
    if request.version != VERSION {
        return Err(io::Error::other("it has another version"));
    }
    Ok(request)
}

/// Runs the session that a descriptor asks for; the status to end with.
pub(crate) fn live(number: Option<u32>) -> u8 {
    let request = match read(number) {
        Ok(request) => request,
        Err(error) => return refuse(&io::Error::other(format!("no request: {error}"))),
    };
    match run(&request) {
        Ok(report) => report.cause.exit_status(),
        Err(Refusal::Launch(error)) => {
            refuse(&error);
            error.exit_status()
        }
        Err(Refusal::Sandbox(error)) => refuse(&error),
    }
}

/// Says why nothing was started, where the command would have complained.
fn refuse(error: &dyn std::error::Error) -> u8 {
    let mut text = format!("ringfence: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text = ringfence_core::text::printable(&text);
    // Whoever cannot be told still gets the status.
    let _ = writeln!(io::stderr(), "{text}");
    REFUSED
}

enum Refusal {
    Launch(LaunchError),
    Sandbox(SandboxError),
}

impl From<LaunchError> for Refusal {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<SandboxError> for Refusal {
    fn from(error: SandboxError) -> Self {
        Self::Sandbox(error)
    }
}

fn run(request: &Request) -> Result<Report, Refusal> {
    let policy = &request.policy;
    let surroundings = Surroundings::of_process(&Lookout::new()).map_err(SandboxError::Place)?;
    surroundings.make_state();
    let (resolved, place) = resolve(policy, &surroundings)?;
    let choice = policy.engine_choice();
    let mut planned = Planned::new(&resolved, choice);
    // Three times at most: a plan that was made thoroughly is never reconsidered.
    loop {
        let plan = planned.plan();
        if !plan.may_launch() {
            let gaps = plan.gaps().to_vec();
            return Err(SandboxError::Gaps { gaps }.into());
        }
        let refusal = match session(&resolved, plan, &request.command, &surroundings, &place) {
            Ok(report) => return Ok(report),
            Err(refusal) => refusal,
        };
        let Some(again) = planned.reconsidered(&refusal, &resolved, choice) else {
            return Err(refusal.into());
        };
        planned = again;
    }
}

fn session(
    policy: &ringfence_core::policy::Policy,
    plan: &ringfence_core::plan::Plan,
    words: &[OsString],
    surroundings: &Surroundings,
    place: &Place,
) -> Result<Report, LaunchError> {
    let refused = |what: &str, source: io::Error| LaunchError::Prepare {
        what: what.to_owned(),
        source,
    };
    let mut words = words.iter();
    let command = launch::Command {
        program: words.next().cloned().unwrap_or_default(),
        arguments: words.cloned().collect(),
        directory: Path::to_owned(surroundings.current.as_path()),
        environment: std::env::vars_os().collect(),
    };
    let relay = match Relay::new(Shown::AsIs) {
        Ok(relay) => Some(relay),
        Err(RelayError::NoTerminal) => None,
        Err(error) => return Err(refused("use the terminal", io::Error::other(error))),
    };
    let start = |streams: Streams| -> Result<Running, LaunchError> {
        let options = options(surroundings, &command, place, plan);
        let prepared = launch::prepare_with(policy, plan, &command, options, streams.into())?;
        let running = prepared.spawn();
        running.map_err(|error| error.explained(policy, &command, &[]))
    };
    let waited = if let Some(relay) = relay {
        start(relay.streams())?.wait_relaying(relay)
    } else {
        let signals = Signals::listen().map_err(|error| refused("listen for signals", error))?;
        start(Streams::default())?.wait_passing_signals(&signals)
    };
    waited.map_err(|error| refused("wait for the session", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            version: VERSION,
            policy: Policy::agent("/project").read("/opt").host("example.org"),
            command: vec!["sh".into(), "-c".into()],
        }
    }

    fn number(file: &OwnedFd) -> Option<u32> {
        u32::try_from(file.as_raw_fd()).ok()
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let file = sealed(&request()).unwrap();
        for _ in 0..2 {
            let again = read(number(&file)).unwrap();
            assert_eq!(
                format!("{:?}", again.policy),
                format!("{:?}", request().policy)
            );
            assert_eq!(again.command, request().command);
        }
    }

    #[test]
    fn a_file_that_somebody_can_change_is_no_request() {
        let mut file = File::from(events::memory_file(c"test").unwrap());
        file.write_all(&serde_json::to_vec(&request()).unwrap())
            .unwrap();
        assert!(read(number(&file.into())).is_err());
        assert!(read(None).is_err());
        assert!(read(Some(999_999)).is_err());
    }

    #[test]
    fn another_version_and_unknown_words_are_no_request() {
        let seal = |text: &str| {
            let mut file = File::from(events::memory_file(c"test").unwrap());
            file.write_all(text.as_bytes()).unwrap();
            events::seal(&file).unwrap();
            OwnedFd::from(file)
        };
        let good = serde_json::to_string(&request()).unwrap();
        assert!(read(number(&seal(&good))).is_ok());
        for bad in [
            good.replace("\"version\":1", "\"version\":2"),
            good.replace("\"files\":", "\"more\":1,\"files\":"),
            good.replace("agent", "open"),
            String::new(),
        ] {
            assert!(read(number(&seal(&bad))).is_err(), "{bad}");
        }
    }
}
