//! Commands of a sandbox, in the manner of [`std::process::Command`].

// Long: every method shows its use.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::launch::{Decider, LaunchError, Report, Size};
use crate::sandbox::{Sandbox, SandboxError};
use crate::session::Running;
use crate::start::Start;

/// How much of each stream [`Command::output`] keeps unless told otherwise.
const KEPT: usize = 16 << 20;

/// Why a command was not started. When this is returned, none of its code has run.
///
/// # Examples
///
/// ```
/// use ringfence::{LaunchError, Policy, Sandbox, SpawnError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// match sandbox.command("no-such-program").status() {
///     Err(SpawnError::Launch(LaunchError::NotFound { program })) => {
///         assert_eq!(program.to_str(), Some("no-such-program"));
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The launch failed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The policy cannot be enforced any more.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A stream could not be opened.
    #[error("a stream could not be opened")]
    Stream(#[source] io::Error),
    /// It was started, and could not be waited for; the session has been ended.
    #[error("the session could not be waited for")]
    Wait(#[source] io::Error),
}

/// What a standard stream of a command is.
///
/// # Examples
///
/// ```
/// use ringfence::Stdio;
///
/// # fn main() -> std::io::Result<()> {
/// let log = Stdio::from(std::fs::File::open("/dev/null")?);
/// let captured = Stdio::piped();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Stdio(pub(crate) Wanted);

#[derive(Debug)]
pub(crate) enum Wanted {
    File(OwnedFd),
    Inherit,
    Null,
    Pipe,
}

impl Stdio {
    /// The caller's own.
    ///
    /// ```
    /// // What the command prints is printed where this program prints.
    /// let stream = ringfence::Stdio::inherit();
    /// ```
    pub fn inherit() -> Self {
        Self(Wanted::Inherit)
    }

    /// Nothing: `/dev/null`.
    ///
    /// ```
    /// let nothing = ringfence::Stdio::null();
    /// ```
    pub fn null() -> Self {
        Self(Wanted::Null)
    }

    /// A pipe, whose other end [`Running`] has.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox, Stdio};
    /// use std::io::Write;
    ///
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let mut session = sandbox.command("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    /// if let Some(mut stdin) = session.stdin.take() {
    ///     stdin.write_all(b"some text")?;
    /// }
    /// assert!(session.wait()?.success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn piped() -> Self {
        Self(Wanted::Pipe)
    }
}

impl From<OwnedFd> for Stdio {
    fn from(file: OwnedFd) -> Self {
        Self(Wanted::File(file))
    }
}

impl From<File> for Stdio {
    fn from(file: File) -> Self {
        Self(Wanted::File(file.into()))
    }
}

/// A command to be run in a sandbox; see [`Sandbox::command`].
///
/// It is used as [`std::process::Command`] is, with four differences. The policy decides which of the
/// caller's variables pass; those set here pass in any case. It starts in the project unless told
/// otherwise. It may have a terminal of its own ([`pty`](Self::pty)). And whoever waits for it gets a
/// [`Report`] instead of a plain status.
///
/// Streams that are files and pipes are used up by the first [`spawn`](Self::spawn).
///
/// # Examples
///
/// ```
/// use ringfence::{Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// let output = sandbox
///     .command("sh")
///     .args(["-c", "echo $GREETING from $PWD"])
///     .env("GREETING", "hello")
///     .current_dir("/")
///     .output()?;
/// assert_eq!(output.stdout, b"hello from /\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Command {
    sandbox: Sandbox,
    program: OsString,
    arguments: Vec<OsString>,
    directory: Option<PathBuf>,
    inherit: Inherit,
    removed: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    streams: [Option<Stdio>; 3],
    terminal: Option<Size>,
    decider: Option<Arc<dyn Decider>>,
    kept: usize,
}

/// Whether the caller's variables are offered to the policy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Inherit {
    Nothing,
    Variables,
}

/// What a command printed, and how it ended; see [`Command::output`].
///
/// # Examples
///
/// ```no_run
/// use ringfence::{Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::agent("."))?;
/// let output = sandbox.command("ls").keep(1000).output()?;
/// let text = String::from_utf8_lossy(&output.stdout);
/// println!("{text}{}", if output.truncated { "and more" } else { "" });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// How it ended.
    pub report: Report,
    /// What it printed, as far as it was kept.
    pub stdout: Vec<u8>,
    /// What it complained about, as far as it was kept.
    pub stderr: Vec<u8>,
    /// Whether there was more than was kept.
    pub truncated: bool,
}

impl Command {
    pub(crate) fn new(sandbox: Sandbox, program: &OsStr) -> Self {
        Self {
            sandbox,
            program: program.to_owned(),
            arguments: Vec::new(),
            directory: None,
            inherit: Inherit::Variables,
            removed: Vec::new(),
            variables: Vec::new(),
            streams: [const { None }; 3],
            terminal: None,
            decider: None,
            kept: KEPT,
        }
    }

    /// Adds an argument.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let output = sandbox.command("printf").arg("%s|").arg("a b").output()?;
    /// assert_eq!(output.stdout, b"a b|");
    /// # Ok(())
    /// # }
    /// ```
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let output = sandbox.command("printf").args(["%s|", "a b", "c"]).output()?;
    /// assert_eq!(output.stdout, b"a b|c|");
    /// # Ok(())
    /// # }
    /// ```
    pub fn args<S: AsRef<OsStr>>(&mut self, arguments: impl IntoIterator<Item = S>) -> &mut Self {
        for argument in arguments {
            self.arg(argument);
        }
        self
    }

    /// Sets a variable, whatever the policy says of the caller's own.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let output = sandbox.command("printenv").arg("MODE").env("MODE", "test").output()?;
    /// assert_eq!(output.stdout, b"test\n");
    /// # Ok(())
    /// # }
    /// ```
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        let name = name.as_ref().to_owned();
        self.removed.retain(|removed| *removed != name);
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// Sets variables.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let variables = [("FIRST", "1"), ("SECOND", "2")];
    /// let output = sandbox.command("printenv").arg("SECOND").envs(variables).output()?;
    /// assert_eq!(output.stdout, b"2\n");
    /// # Ok(())
    /// # }
    /// ```
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        for (name, value) in variables {
            self.env(name, value);
        }
        self
    }

    /// Takes a variable away.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let report = sandbox.command("printenv").arg("HOME").env_remove("HOME").output()?.report;
    /// assert_eq!(report.cause.exit_status(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        let name = name.as_ref().to_owned();
        self.variables.retain(|(set, _)| *set != name);
        self.removed.push(name);
        self
    }

    /// Takes every variable away but those that are set from here on and those of the policy.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let output = sandbox.command("/usr/bin/printenv").env_clear().env("ONLY", "this").output()?;
    /// assert!(output.stdout.ends_with(b"ONLY=this\n"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn env_clear(&mut self) -> &mut Self {
        self.variables.clear();
        self.inherit = Inherit::Nothing;
        self
    }

    /// Where it starts. Without this it starts in the project.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let output = sandbox.command("pwd").current_dir("/").output()?;
    /// assert_eq!(output.stdout, b"/\n");
    /// # Ok(())
    /// # }
    /// ```
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Its standard input. Without this it is the caller's, and nothing with
    /// [`output`](Self::output).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox, Stdio};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let list = std::fs::File::open("/etc/passwd")?;
    /// let output = sandbox.command("wc").arg("-l").stdin(Stdio::from(list)).output()?;
    /// assert!(output.report.success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn stdin(&mut self, stream: Stdio) -> &mut Self {
        self.streams[0] = Some(stream);
        self
    }

    /// Its standard output. Without this it is the caller's, and a pipe with
    /// [`output`](Self::output).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox, Stdio};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let report = sandbox.command("ls").stdout(Stdio::null()).status()?;
    /// assert!(report.success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn stdout(&mut self, stream: Stdio) -> &mut Self {
        self.streams[1] = Some(stream);
        self
    }

    /// Its standard error. Without this it is the caller's, and a pipe with
    /// [`output`](Self::output).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox, Stdio};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let report = sandbox.command("ls").arg("/nowhere").stderr(Stdio::null()).status()?;
    /// assert!(!report.success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn stderr(&mut self, stream: Stdio) -> &mut Self {
        self.streams[2] = Some(stream);
        self
    }

    /// Gives it a terminal of its own. Every stream that is not set is that terminal, and
    /// [`Running::terminal`] is its other end.
    ///
    /// ```no_run
    /// # use ringfence::{Policy, Sandbox, Size};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = Sandbox::new(Policy::terminal("."))?;
    /// let size = Size { rows: 40, columns: 120 };
    /// let mut session = sandbox.command("bash").arg("-l").pty(size).spawn()?;
    /// let screen = session.terminal.take();
    /// # Ok(())
    /// # }
    /// ```
    pub fn pty(&mut self, size: Size) -> &mut Self {
        self.terminal = Some(size);
        self
    }

    /// Has somebody asked about hosts that the policy does not list, while the connection is held.
    ///
    /// Only where the policy lists hosts at all is there a network to ask about. Silence means no.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// use ringfence::network::{Answer, Decider, Destination};
    /// # use ringfence::{Policy, Sandbox};
    ///
    /// #[derive(Debug)]
    /// struct Colleague;
    ///
    /// impl Decider for Colleague {
    ///     fn decide(&self, destination: &Destination) -> Answer {
    ///         if destination.to_string() == "docs.rs:443" { Answer::Allow } else { Answer::Deny }
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sandbox = Sandbox::new(Policy::agent(".").host("crates.io"))?;
    /// let report = sandbox.command("cargo").arg("doc").asking(Arc::new(Colleague)).status()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn asking(&mut self, decider: Arc<dyn Decider>) -> &mut Self {
        self.decider = Some(decider);
        self
    }

    /// How many bytes of each stream [`output`](Self::output) keeps. What comes after them is read
    /// and forgotten, so that a flood neither fills the caller's memory nor makes the command wait.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let output = sandbox.command("seq").arg("100000").keep(4).output()?;
    /// assert_eq!(output.stdout, b"1\n2\n");
    /// assert!(output.truncated);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep(&mut self, bytes: usize) -> &mut Self {
        self.kept = bytes;
        self
    }

    /// Starts it. The session is served by a thread of its own until it is over, whether or not
    /// anybody waits.
    ///
    /// # Errors
    ///
    /// On any [`SpawnError`] no code of the command has run, and nothing is left.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let mut session = sandbox.command("sleep").arg("60").spawn()?;
    /// println!("it runs as {}", session.id());
    /// session.kill()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn(&mut self) -> Result<Running, SpawnError> {
        self.spawn_with(Wanted::Inherit, || Wanted::Inherit)
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn), and [`SpawnError::Wait`].
    ///
    /// ```no_run
    /// # use ringfence::{Policy, Sandbox};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let report = sandbox.command("cargo").arg("check").status()?;
    /// assert!(report.success(), "{:?}", report.cause);
    /// # Ok(())
    /// # }
    /// ```
    pub fn status(&mut self) -> Result<Report, SpawnError> {
        self.spawn()?.wait().map_err(SpawnError::Wait)
    }

    /// Runs it to its end and keeps what it prints; see [`keep`](Self::keep).
    ///
    /// # Errors
    ///
    /// As [`status`](Self::status).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let output = sandbox.command("echo").arg("done").output()?;
    /// assert!(output.report.success());
    /// assert_eq!(output.stdout, b"done\n");
    /// # Ok(())
    /// # }
    /// ```
    pub fn output(&mut self) -> Result<Output, SpawnError> {
        let (mut running, mut streams) = self.spawn_capturing()?;
        // Nothing survives the session, so both streams end with it.
        read_all(&mut streams).map_err(SpawnError::Wait)?;
        let report = running.wait().map_err(SpawnError::Wait)?;
        Ok(Output::new(report, streams))
    }

    /// Starts it with both streams to be read.
    pub(crate) fn spawn_capturing(&mut self) -> Result<(Running, [Captured; 2]), SpawnError> {
        let kept = self.kept;
        let mut running = self.spawn_with(Wanted::Null, || Wanted::Pipe)?;
        running.stdin = None;
        let stdout = running.stdout.take().map(OwnedFd::from);
        let stderr = running.stderr.take().map(OwnedFd::from);
        let streams = [Captured::new(stdout, kept), Captured::new(stderr, kept)];
        Ok((running, streams))
    }

    fn spawn_with(
        &mut self,
        input: Wanted,
        other: impl Fn() -> Wanted,
    ) -> Result<Running, SpawnError> {
        let streams = [input, other(), other()].map(Stdio);
        let mut streams = streams.into_iter().zip(&mut self.streams);
        let streams = std::array::from_fn(|_| {
            let (usual, asked) = streams.next()?;
            match (asked.take(), self.terminal) {
                (Some(asked), _) => Some(asked),
                (None, Some(_)) => None,
                (None, None) => Some(usual),
            }
        });
        let start = Start {
            sandbox: self.sandbox.clone(),
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            directory: self.directory.clone(),
            inherit: self.inherit,
            removed: self.removed.clone(),
            variables: self.variables.clone(),
            streams,
            terminal: self.terminal,
            decider: self.decider.clone(),
            ahead: self.sandbox.goes_ahead(),
        };
        let (served, begun) = start.serve()?;
        Ok(Running::new(served, begun))
    }
}

impl Output {
    pub(crate) fn new(report: Report, streams: [Captured; 2]) -> Self {
        let [stdout, stderr] = streams;
        Self {
            report,
            truncated: stdout.more || stderr.more,
            stdout: stdout.bytes,
            stderr: stderr.bytes,
        }
    }
}

/// A stream that is read to its end and kept in part.
pub(crate) struct Captured {
    pub(crate) source: Option<OwnedFd>,
    bytes: Vec<u8>,
    kept: usize,
    more: bool,
}

impl Captured {
    fn new(source: Option<OwnedFd>, kept: usize) -> Self {
        Self {
            source,
            bytes: Vec::new(),
            kept,
            more: false,
        }
    }

    /// Keeps what fits.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let room = self.kept - self.bytes.len();
        let fits = bytes.get(..bytes.len().min(room)).unwrap_or_default();
        self.bytes.extend_from_slice(fits);
        self.more |= fits.len() < bytes.len();
    }

    /// Reads once: something is there, or the other end is closed.
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<()> {
        let Some(source) = &self.source else {
            return Ok(());
        };
        match rustix::io::read(source, &mut *chunk) {
            Ok(0) => self.source = None,
            Ok(count) => self.take(chunk.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }
}

fn read_all(streams: &mut [Captured; 2]) -> io::Result<()> {
    let mut chunk = vec![0; 64 << 10];
    loop {
        let open: Vec<usize> = (0..streams.len())
            .filter(|index| streams.get(*index).is_some_and(|one| one.source.is_some()))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let mut watched: Vec<PollFd<'_>> = streams
            .iter()
            .filter_map(|one| {
                Some(PollFd::from_borrowed_fd(
                    one.source.as_ref()?.as_fd(),
                    PollFlags::IN,
                ))
            })
            .collect();
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ready: Vec<bool> = watched
            .iter()
            .map(|one| !one.revents().is_empty())
            .collect();
        for (index, ready) in open.into_iter().zip(ready) {
            if let Some(stream) = streams.get_mut(index).filter(|_| ready) {
                stream.read(&mut chunk)?;
            }
        }
    }
}
