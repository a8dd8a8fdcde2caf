//! Why a command was not started, in types and in words.

use std::io;
use std::path::{Path, PathBuf};

use ringfence_core::plan::{Engine, Gap, LimitName, Step};

/// Why a command was not started. When this is returned, none of its code has run.
///
/// # Examples
///
/// ```
/// use ringfence::{LaunchError, Policy, Sandbox, SpawnError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// match sandbox.command("/etc/passwd").status() {
///     Err(SpawnError::Launch(error @ LaunchError::NotExecutable { .. })) => {
///         assert_eq!(error.exit_status(), 126);
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The kernel refused one act of the plan.
    #[error("could not {step}{}", object.as_ref().map(|object| format!(" ({object})")).unwrap_or_default())]
    Act {
        /// Which act, in words.
        step: StepName,
        /// Which part of it.
        object: Option<String>,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The project has other repositories, or the host other mounts, than this launch began with.
    #[error("the project's repositories or the host's mounts have changed meanwhile")]
    Changed,
    /// The directory is outside the grants.
    #[error("the working directory {} cannot be used: the policy hides it", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
    },
    /// The policy asks for more than this host can enforce.
    #[error("this host cannot enforce the policy")]
    Gaps {
        /// Every rule that would not hold.
        gaps: Vec<Gap>,
    },
    /// A limit leaves too little to start anything with.
    #[error("could not {step} within the limit {limit}={bound}")]
    Limit {
        /// Which one.
        limit: LimitName,
        /// As it was set.
        bound: u64,
        /// Which act ran into it, in words.
        step: StepName,
        /// What the kernel answered, or would have.
        source: io::Error,
    },
    /// Something that a launch needs could not be had.
    #[error("could not {what}")]
    Prepare {
        /// What was being done.
        what: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The program is not there, on the host either.
    #[error("{}: command not found", called(program))]
    NotFound {
        /// As it was asked for.
        program: PathBuf,
    },
    /// The program is there, and the command cannot see it, or what runs it.
    #[error("{}: command not found: the policy hides {part}{}", program.display(), link.as_ref().unwrap_or(file).display())]
    Hidden {
        /// As it was asked for.
        program: PathBuf,
        /// Which part of it is hidden.
        part: Part,
        /// That file, links followed: granted as a program, it can be run.
        file: PathBuf,
        /// The link it was called by, if that is hidden: then the file has to be called by its own name.
        link: Option<PathBuf>,
    },
    /// The program is there, and what would run it is not.
    #[error("{}: command not found: its interpreter {} is not there", program.display(), interpreter.display())]
    NoInterpreter {
        /// As it was asked for.
        program: PathBuf,
        /// What its first line names, or what a compiled program names as its loader.
        interpreter: PathBuf,
    },
    /// The program is there and cannot be run.
    #[error("{}: cannot be run", program.display())]
    NotExecutable {
        /// As it was asked for.
        program: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The program is there, and the policy lets it, or what runs it, be read and not run.
    #[error("{}: cannot be run: {} may only be read ({origin})", program.display(), file.display())]
    NotToBeRun {
        /// As it was asked for.
        program: PathBuf,
        /// The file, links followed: granted as a program, it can be run.
        file: PathBuf,
        /// Who says so.
        origin: Box<ringfence_core::origin::Origin>,
        /// What the kernel answered.
        source: io::Error,
    },
    /// Standard input, output or error would lead around the policy.
    #[error("{name} cannot be used: it is {danger}")]
    Stream {
        /// Which of the three.
        name: &'static str,
        /// What it is, and why that matters.
        danger: &'static str,
    },
    /// A program that ringfence needs cannot be used.
    #[error("{} cannot be used: {why}", path.display())]
    Helper {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        why: HelperFault,
    },
    /// The calling program cannot be started again as a second stage.
    #[error(
        "this program does not begin with `ringfence::shim::run_if_asked()`, so it cannot be its own second stage"
    )]
    Shim,
    /// A name or value that cannot be passed to a program.
    #[error("{what} holds a zero byte")]
    Nul {
        /// What it is.
        what: &'static str,
    },
    /// A session that lingers could not be written down, so that nobody would ever find it again.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    #[error("a session that lingers is not started where it cannot be written down")]
    Unfindable {
        /// What stands in the way.
        source: crate::sessions::RegistryError,
    },
    /// This engine cannot launch anything here.
    #[error("the engine `{engine}` cannot start commands in this version")]
    Engine {
        /// Which engine.
        engine: Engine,
    },
}

/// What of a program the policy hides.
///
/// # Examples
///
/// ```
/// use ringfence::{LaunchError, Part};
///
/// let hidden = LaunchError::Hidden {
///     program: "deploy".into(),
///     part: Part::Interpreter,
///     file: "/home/me/.secret/python".into(),
///     link: None,
/// };
/// assert_eq!(
///     hidden.to_string(),
///     "deploy: command not found: the policy hides its interpreter /home/me/.secret/python"
/// );
/// assert_eq!(hidden.exit_status(), 127);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// What runs it.
    Interpreter,
    /// The program itself.
    Program,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Interpreter => "its interpreter ",
            Self::Program => "",
        })
    }
}

/// Why ringfence does not run another program, even one of the system.
///
/// # Examples
///
/// ```
/// use ringfence::HelperFault;
///
/// // Why the engine `bwrap` does not use a bubblewrap that the project could have made.
/// assert_eq!(HelperFault::InProject.to_string(), "it lies in the project");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HelperFault {
    /// It is not there, or is not a plain file under its own name.
    #[error("it is not there")]
    Absent,
    /// It would gain capabilities by being run.
    #[error("it carries capabilities")]
    Capabilities,
    /// The project could have made it.
    #[error("it lies in the project")]
    InProject,
    /// Somebody else than root could have made it.
    #[error("it, or a directory above it, does not belong to root")]
    Owner,
    /// It would run as somebody else.
    #[error("it is setuid or setgid")]
    Setuid,
    /// Somebody else than root could change it.
    #[error("others may write to it, or to a directory above it")]
    Writable,
}

/// A program as it was asked for; two quotes where that is nothing at all.
fn called(program: &Path) -> std::path::Display<'_> {
    if program.as_os_str().is_empty() {
        Path::new("''").display()
    } else {
        program.display()
    }
}

/// A step of a plan, in the words of a message.
///
/// # Examples
///
/// ```
/// use ringfence::{LaunchError, StepName};
/// use ringfence::core::plan::Step;
///
/// assert_eq!(StepName(Step::Landlock).to_string(), "apply Landlock");
/// let refused = LaunchError::Act {
///     step: StepName(Step::Landlock),
///     object: Some("/opt".to_owned()),
///     source: std::io::ErrorKind::PermissionDenied.into(),
/// };
/// assert_eq!(refused.to_string(), "could not apply Landlock (/opt)");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StepName(pub Step);

impl std::fmt::Display for StepName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Step::Environment => "build the environment",
            Step::Names => "watch protected names",
            Step::Cgroup => "start in a cgroup",
            Step::Namespaces => "enter new namespaces",
            Step::Keyring => "join an empty keyring",
            Step::Ids => "map the user and group",
            Step::Root => "build the new root",
            Step::Loopback => "bring up the loopback interface",
            Step::Gate => "open the network gate",
            Step::Descriptors => "close descriptors",
            Step::Limits => "set limits",
            Step::Capabilities => "drop capabilities",
            Step::Privileges => "give up privileges",
            Step::Landlock => "apply Landlock",
            Step::Seccomp => "load the seccomp filter",
            Step::Seatbelt => "apply the Seatbelt profile",
            Step::Init => "start the first process",
            Step::Command => "start the command",
            _ => "carry out the plan",
        })
    }
}

impl LaunchError {
    /// The exit status that tells a shell about it.
    ///
    /// ```
    /// let missing = ringfence::LaunchError::NotFound { program: "cc".into() };
    /// assert_eq!(missing.exit_status(), 127);
    /// ```
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Hidden { .. } | Self::NoInterpreter { .. } | Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } | Self::NotToBeRun { .. } => 126,
            _ => 125,
        }
    }
}
