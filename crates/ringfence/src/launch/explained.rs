//! What an answer of the kernel's means for whoever wanted a command started.
//!
//! A limit that is too small shows as whatever act needed one more. And the kernel says the same of a
//! program that is nowhere, of one that the policy hides, and of one whose interpreter is missing.
//! Which it is can be told from outside, once nothing was started. Nothing is said of files that
//! nobody could run: a script that names a key as its interpreter must not learn whether the key is
//! there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ringfence_core::origin::Origin;
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{LimitName, Step};
use ringfence_core::policy::{Access, Content, Found, Policy, Seen};
use ringfence_core::settings::Limit;
use rustix::io::Errno;

use super::words::{environment, programs};
use super::{Command, LaunchError, Part, StepName};
use crate::lookout::Lookout;
use crate::programs::{OnDisk, interpreter_of};

/// How many scripts may stand before a program; the kernel allows fewer.
const MOST_SCRIPTS: usize = 5;

impl LaunchError {
    /// The same with the reason, if it says only that there is no such program, or that there is no
    /// more of something that a limit bounds.
    #[doc(hidden)]
    #[must_use]
    pub fn explained(
        self,
        policy: &Policy,
        command: &Command,
        variables: &[(OsString, OsString)],
    ) -> Self {
        match self {
            Self::NotFound { program } => {
                let reason = reason(policy, command, variables);
                reason.unwrap_or(Self::NotFound { program })
            }
            Self::NotExecutable { program, source } => {
                let refused = Errno::from_io_error(&source) == Some(Errno::ACCESS);
                let read = refused.then(|| only_read(policy, command, variables));
                match read.flatten() {
                    Some((file, origin)) => Self::NotToBeRun {
                        program,
                        file,
                        origin: Box::new(origin),
                        source,
                    },
                    None => Self::NotExecutable { program, source },
                }
            }
            Self::Act {
                step,
                object,
                source,
            } => match limit_of(policy, step, &source) {
                Some((limit, bound)) => Self::Limit {
                    limit,
                    bound,
                    step,
                    source,
                },
                None => Self::Act {
                    step,
                    object,
                    source,
                },
            },
            other => other,
        }
    }
}

/// The limit that an act has run into.
fn limit_of(policy: &Policy, step: StepName, source: &io::Error) -> Option<(LimitName, u64)> {
    // Before they are set, something else is the reason.
    if step.0 < Step::Limits {
        return None;
    }
    let limits = policy.limits();
    let (name, limit) = match Errno::from_io_error(source)? {
        Errno::AGAIN => (LimitName::Processes, &limits.processes),
        Errno::MFILE => (LimitName::Files, &limits.files),
        Errno::NOMEM => (LimitName::Memory, &limits.memory),
        _ => return None,
    };
    match limit.value {
        Limit::At(bound) => Some((name, bound)),
        Limit::Unlimited => None,
    }
}

/// Why the first file that could have been meant was not run.
fn reason(
    policy: &Policy,
    command: &Command,
    variables: &[(OsString, OsString)],
) -> Option<LaunchError> {
    first(policy, command, variables, |outside, name, file| {
        outside.missing(command.program.as_ref(), name, file)
    })
}

/// What of the first file that could have been meant may be read and not run, and who says so.
fn only_read(
    policy: &Policy,
    command: &Command,
    variables: &[(OsString, OsString)],
) -> Option<(PathBuf, Origin)> {
    first(policy, command, variables, |outside, _, file| {
        outside.only_read(file)
    })
}

/// The first answer about a file that could have been meant.
fn first<T>(
    policy: &Policy,
    command: &Command,
    variables: &[(OsString, OsString)],
    about: impl Fn(&Outside<'_>, &Path, AbsPath) -> Option<T>,
) -> Option<T> {
    let environment = environment(policy, command, variables).ok()?;
    let candidates = programs(command, &environment).ok()?;
    let outside = Outside {
        policy,
        lookout: Lookout::new(),
    };
    candidates.iter().find_map(|candidate| {
        let name = Path::new(OsStr::from_bytes(candidate.to_bytes()));
        let name = command.directory.join(name);
        let file = outside.program(&name)?;
        about(&outside, &name, file)
    })
}

/// The host, and what a policy lets be seen of it.
struct Outside<'a> {
    policy: &'a Policy,
    lookout: Lookout,
}

impl Outside<'_> {
    /// The file of this name that somebody could run, links followed.
    fn program(&self, name: &Path) -> Option<AbsPath> {
        let Seen::At(file, Found::File) = self.lookout.look(name) else {
            return None;
        };
        let mode = std::fs::metadata(file.as_path()).ok()?.permissions().mode();
        (mode & 0o111 != 0).then_some(file)
    }

    /// Whether the command sees the host's file of this name.
    fn is_seen(&self, path: &AbsPath) -> bool {
        let verdict = self.policy.files().access(path);
        verdict.access != Access::None && verdict.content() == Content::Host
    }

    /// A program, or what runs it, that may be read and not run.
    fn only_read(&self, file: AbsPath) -> Option<(PathBuf, Origin)> {
        let mut file = file;
        for _ in 0..=MOST_SCRIPTS {
            let verdict = self.policy.files().access(&file);
            if verdict.access == Access::Read {
                return Some((file.as_path().to_owned(), verdict.origin.clone()));
            }
            let interpreter = interpreter_of(file.as_path(), &OnDisk)?;
            file = self.program(&interpreter)?;
        }
        None
    }

    /// What is missing of a program that is there: itself, or what runs it.
    fn missing(&self, program: &Path, name: &Path, file: AbsPath) -> Option<LaunchError> {
        let hidden = |part, file: AbsPath, link| LaunchError::Hidden {
            program: program.to_owned(),
            part,
            file: file.as_path().to_owned(),
            link,
        };
        let link = self.hidden_link(name, &file);
        if link.is_some() || !self.is_seen(&file) {
            return Some(hidden(Part::Program, file, link));
        }
        let mut script = file;
        for _ in 0..MOST_SCRIPTS {
            let interpreter = interpreter_of(script.as_path(), &OnDisk)?;
            let Some(file) = self.program(&interpreter) else {
                return Some(LaunchError::NoInterpreter {
                    program: program.to_owned(),
                    interpreter,
                });
            };
            let link = self.hidden_link(&interpreter, &file);
            if link.is_some() || !self.is_seen(&file) {
                return Some(hidden(Part::Interpreter, file, link));
            }
            script = file;
        }
        None
    }

    /// The name, if it is a link and is itself hidden: what it leads to can then be granted, and not
    /// be found by it.
    fn hidden_link(&self, name: &Path, file: &AbsPath) -> Option<PathBuf> {
        let (parent, last) = (name.parent()?, name.file_name()?);
        let Seen::At(parent, _) = self.lookout.look(parent) else {
            return None;
        };
        let own = AbsPath::lexical(parent.as_path().join(last)).ok()?;
        (own != *file && !self.is_seen(&own)).then(|| name.to_owned())
    }
}
