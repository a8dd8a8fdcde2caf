//! The start of a sandbox's command, on the thread that will serve its session.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::command::SpawnError;
use crate::launch::{self, Ahead, Decider, Given, LaunchError, Streams};
use crate::report::Planned;
use crate::sandbox::Sandbox;

/// Everything that is known about a command before its policy is made.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) sandbox: Sandbox,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// Seen from the project, which it is without this.
    pub(crate) directory: Option<PathBuf>,
    /// The caller's variables; the policy decides which pass.
    pub(crate) offered: Vec<(OsString, OsString)>,
    /// Those that pass in any case.
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) streams: Streams,
    pub(crate) decider: Option<Arc<dyn Decider>>,
    /// Whether the session's first process is born before the policy is made. Whoever starts the
    /// thread says so: while that has not gone to sleep yet, no processor seems to be free.
    pub(crate) ahead: bool,
}

/// A session, and what it was started with.
type Begun = (launch::Running, (launch::Command, Planned));

impl Start {
    /// Makes the policy and holds the command by it.
    pub(crate) fn run(mut self) -> Result<Begun, SpawnError> {
        // Whatever refuses it will refuse the launch as well, and be explained then.
        if self.ahead
            && let Ok(ahead) = Ahead::begin_anyway()
        {
            let spare = self.streams.try_clone().map_err(SpawnError::Stream)?;
            match self.attempt(Some(ahead)) {
                // The host has mounted something since. This can only happen to one born ahead.
                Err(SpawnError::Launch(LaunchError::Changed)) => self.streams = spare,
                other => return other,
            }
        }
        self.attempt(None)
    }

    /// Takes the streams.
    fn attempt(&mut self, ahead: Option<Ahead>) -> Result<Begun, SpawnError> {
        let walls = self.sandbox.walls()?;
        let project = walls.place.project.as_path();
        let command = launch::Command {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            directory: match &self.directory {
                None => project.to_owned(),
                Some(directory) => project.join(directory),
            },
            environment: self.offered.clone(),
        };
        let given = Given {
            variables: self.variables.clone(),
            ahead,
            ..Given::from(std::mem::take(&mut self.streams))
        };
        let options = self.sandbox.options(&command, &walls);
        let prepared = launch::prepare_with(&walls.policy, &walls.plan, &command, options, given)?;
        let prepared = match &self.decider {
            Some(decider) => prepared.asking(Arc::clone(decider)),
            None => prepared,
        };
        let planned = Planned::new(&walls.policy, &walls.plan);
        Ok((prepared.spawn()?, (command, planned)))
    }
}
