//! The start of a sandbox's command, on the thread that will serve its session.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use crate::command::{Inherit, SpawnError, Stdio, Wanted};
use crate::launch::{self, Ahead, Decider, Given, LaunchError, NewTerminal, Size, Stream, Streams};
use crate::report::{Planned, SessionName};
use crate::sandbox::Sandbox;

/// Everything that is known about a command before its policy is made.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) sandbox: Sandbox,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// Seen from the project, which it is without this.
    pub(crate) directory: Option<PathBuf>,
    /// Whether the caller's variables are offered to the policy, and which are not.
    pub(crate) inherit: Inherit,
    pub(crate) removed: Vec<OsString>,
    /// Those that pass in any case.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Its three streams; `None` for the session's own terminal.
    pub(crate) streams: [Option<Stdio>; 3],
    pub(crate) terminal: Option<Size>,
    pub(crate) decider: Option<Arc<dyn Decider>>,
    /// Whether the session's first process is born before the policy is made. Whoever starts the
    /// thread says so: while that has not gone to sleep yet, no processor seems to be free.
    pub(crate) ahead: bool,
}

/// What a session was started with.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) command: launch::Command,
    pub(crate) planned: Planned,
    pub(crate) name: SessionName,
    /// The caller's ends of the streams that are pipes.
    pub(crate) ends: [Option<OwnedFd>; 3],
}

impl Start {
    /// Has a thread of its own make the policy, hold the command by it, and serve the session.
    pub(crate) fn serve(self) -> Result<(launch::Served, Begun), SpawnError> {
        let wanted = self.ahead;
        // Whatever refuses it will refuse the launch as well, and be explained then.
        let begin = move || wanted.then(|| Ahead::begin_anyway().ok()).flatten();
        launch::serve(begin, move |ahead| self.run(ahead))
    }

    fn run(mut self, ahead: Option<Ahead>) -> Result<(launch::Running, Begun), SpawnError> {
        let (streams, ends) = self.open().map_err(SpawnError::Stream)?;
        let (running, (command, planned, name)) = match ahead {
            None => self.attempt(streams, None)?,
            Some(ahead) => {
                let spare = streams.try_clone().map_err(SpawnError::Stream)?;
                match self.attempt(streams, Some(ahead)) {
                    // The host has mounted something since. This can only happen to one born ahead.
                    Err(SpawnError::Launch(LaunchError::Changed)) => self.attempt(spare, None)?,
                    other => other?,
                }
            }
        };
        let begun = Begun {
            command,
            planned,
            name,
            ends,
        };
        Ok((running, begun))
    }

    fn attempt(
        &self,
        streams: Streams,
        ahead: Option<Ahead>,
    ) -> Result<(launch::Running, (launch::Command, Planned, SessionName)), SpawnError> {
        let walls = self.sandbox.walls()?;
        let project = walls.place.project.as_path();
        let command = launch::Command {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            directory: match &self.directory {
                None => project.to_owned(),
                Some(directory) => project.join(directory),
            },
            environment: self.offered(),
        };
        let given = Given {
            variables: self.variables.clone(),
            ahead,
            ..Given::from(streams)
        };
        let options = self.sandbox.options(&command, &walls);
        let name = options.session_name();
        let prepared = launch::prepare_with(&walls.policy, &walls.plan, &command, options, given)?;
        let prepared = match &self.decider {
            Some(decider) => prepared.asking(Arc::clone(decider)),
            None => prepared,
        };
        let planned = Planned::new(&walls.policy, &walls.plan);
        let explained =
            |error: LaunchError| error.explained(&walls.policy, &command, &self.variables);
        let running = prepared.spawn().map_err(explained)?;
        Ok((running, (command, planned, name)))
    }

    /// The caller's variables, as far as they are offered.
    fn offered(&self) -> Vec<(OsString, OsString)> {
        if self.inherit == Inherit::Nothing {
            return Vec::new();
        }
        std::env::vars_os()
            .filter(|(name, _)| !self.removed.contains(name))
            .collect()
    }

    /// Opens the streams; also returns the caller's ends of those that are pipes.
    fn open(&mut self) -> io::Result<(Streams, [Option<OwnedFd>; 3])> {
        let [input, output, error] = std::mem::take(&mut self.streams);
        let mut ends = [const { None }; 3];
        let [to_input, from_output, from_error] = &mut ends;
        let streams = Streams {
            input: open(input, |reader, writer| (reader, writer), to_input)?,
            output: open(output, |reader, writer| (writer, reader), from_output)?,
            error: open(error, |reader, writer| (writer, reader), from_error)?,
            terminal: self.terminal.map(NewTerminal::new),
        };
        Ok((streams, ends))
    }
}

/// Opens a stream. Of a pipe's ends, reader and writer, `sides` says which is the command's, and
/// which the caller's: that goes to `end`.
fn open(
    stream: Option<Stdio>,
    sides: fn(OwnedFd, OwnedFd) -> (OwnedFd, OwnedFd),
    end: &mut Option<OwnedFd>,
) -> io::Result<Stream> {
    let Some(Stdio(wanted)) = stream else {
        return Ok(Stream::Terminal);
    };
    Ok(match wanted {
        Wanted::File(file) => Stream::Given(file),
        Wanted::Inherit => Stream::Inherited,
        Wanted::Null => {
            let null = File::options().read(true).write(true).open("/dev/null")?;
            Stream::Given(null.into())
        }
        Wanted::Pipe => {
            // Both are closed by exec in whatever the caller starts besides.
            let (reader, writer) = io::pipe()?;
            let (inner, outer) = sides(reader.into(), writer.into());
            *end = Some(outer);
            Stream::Given(inner)
        }
    })
}
