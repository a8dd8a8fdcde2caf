//! Launching on macOS.
//!
//! The profile is applied by a second stage: this program started again, which restricts itself and
//! becomes the command. So the caller is never restricted, may have threads, and nothing but one mark
//! on two descriptors happens between fork and exec. A third copy keeps the session: it waits until the
//! supervisor is gone, whatever the reason, and ends what is left.
//!
//! None of this has been run on a Mac yet: docs/MACOS.md says what has to be tried.

mod desk;
mod gate;
mod orders;
mod running;
mod stage;
mod table;

pub use running::Running;
pub(crate) use stage::live_as_second_stage;
pub(crate) use table::Table;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use ringfence_core::path::AbsPath;
use ringfence_core::plan::{Act, LimitName, Plan, Step};
use ringfence_core::policy::{Policy, Seen};
use ringfence_core::seatbelt::{Own, Profile, SessionDirectory};
use ringfence_sys::descriptors;

use self::desk::Made;
use self::gate::Opening;
use self::orders::{Bound, Failure, Orders, Task};
use self::running::Group;
use super::pipes::pipe;
use super::words::{arguments, directory, environment, programs};
use super::{Command, Decider, Given, LaunchError, Linger, Options, StepName, Stream};
use crate::indexes::Indexes;
use crate::place::Lookout;
use crate::sessions::About;

/// Everything that a launch needs, made and looked up.
#[derive(Debug)]
pub struct Prepared {
    orders: Orders,
    session: Session,
    streams: [Stream; 3],
    desk: Option<Made>,
    gate: Option<Opening>,
    wall: Option<u64>,
    plan: Plan,
    indexes: Indexes,
    program: PathBuf,
    linger: Linger,
    registry: Option<(PathBuf, About)>,
}

/// The directory of a session. It goes with the last process that could use it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) directory: SessionDirectory,
}

impl Drop for Session {
    fn drop(&mut self) {
        // What cannot be removed is found by its name the next time.
        let _ = fs::remove_dir_all(self.directory.path().as_path());
    }
}

/// Makes and looks up everything that a launch needs.
///
/// # Errors
///
/// Every [`LaunchError`]; nothing has been started, and nothing is left.
pub fn prepare(
    policy: &Policy,
    plan: &Plan,
    command: &Command,
    options: Options,
) -> Result<Prepared, LaunchError> {
    prepare_with(policy, plan, command, options, Given::default())
}

/// The same, with other standard streams than the caller's, or with variables that the policy has no
/// say in.
///
/// # Errors
///
/// As [`prepare`].
pub fn prepare_with(
    policy: &Policy,
    plan: &Plan,
    command: &Command,
    options: Options,
    given: Given,
) -> Result<Prepared, LaunchError> {
    if !plan.may_launch() {
        return Err(LaunchError::Gaps {
            gaps: plan.gaps().to_vec(),
        });
    }
    if !crate::shim::can_be_asked() {
        return Err(LaunchError::Shim);
    }
    let profile = plan.acts().iter().find_map(|act| match act {
        Act::Seatbelt(profile) => Some(profile),
        _ => None,
    });
    // A plan without a profile could neither restrict nor find anything again.
    let Some(profile) = profile.filter(|_| options.testing.fail_at != Some(Step::Seatbelt)) else {
        return Err(refused_profile("the plan has no profile"));
    };
    options.findable()?;
    let session = Session::make()?;
    let mut environment = environment(policy, command, &given.variables)?;
    if !policy.only_tracks() {
        let tmp = session.directory.tmp();
        environment.retain(|variable| !is_temporary(variable.to_bytes()));
        for name in TEMPORARY {
            let mut text = format!("{name}=").into_bytes();
            text.extend(tmp.as_path().as_os_str().as_bytes());
            let nul = |_| LaunchError::Nul { what: "a variable" };
            environment.push(std::ffi::CString::new(text).map_err(nul)?);
        }
    }
    let gate = Opening::new(plan, policy, command)?;
    if let Some(gate) = &gate {
        gate.add_variables(&mut environment, policy);
    }
    let desk = given.streams.terminal.as_ref().map(Made::new).transpose();
    let desk = desk.map_err(|source| LaunchError::Prepare {
        what: "make a terminal for the session".to_owned(),
        source,
    })?;
    let bytes = |text: std::ffi::CString| text.into_bytes();
    let candidates = programs(command, &environment)?;
    let (limits, wall) = limits(plan);
    let mut orders = Orders {
        programs: candidates.into_iter().map(bytes).collect(),
        arguments: arguments(command)?.into_iter().map(bytes).collect(),
        environment: environment.into_iter().map(bytes).collect(),
        directory: directory(policy, &command.directory)?.into_bytes(),
        limits,
        ..Orders::default()
    };
    let own = Own {
        gate_port: gate.as_ref().map(Opening::port),
        terminal: desk.as_ref().map(|desk| desk.path.clone()),
    };
    session.bind(profile, &own, &mut orders)?;
    let streams = given.streams;
    Ok(Prepared {
        orders,
        session,
        streams: [streams.input, streams.output, streams.error],
        desk,
        gate,
        wall,
        plan: plan.clone(),
        indexes: Indexes::remember(policy),
        program: PathBuf::from(&command.program),
        linger: options.linger,
        registry: options.registry,
    })
}

/// The variables that programs find a temporary directory by.
const TEMPORARY: [&str; 3] = ["TEMP", "TMP", "TMPDIR"];

fn is_temporary(variable: &[u8]) -> bool {
    let name = variable.split(|byte| *byte == b'=').next();
    TEMPORARY.iter().any(|known| name == Some(known.as_bytes()))
}

fn limits(plan: &Plan) -> (Vec<(Bound, u64)>, Option<u64>) {
    let mut limits = Vec::new();
    let mut wall = None;
    for act in plan.acts() {
        let Act::Limits { bounds } = act else {
            continue;
        };
        for (name, bound) in bounds {
            match name {
                LimitName::Wall => wall = Some(*bound),
                LimitName::Cpu => limits.push((Bound::Cpu, *bound)),
                LimitName::FileSize => limits.push((Bound::FileSize, *bound)),
                LimitName::Files => limits.push((Bound::Files, *bound)),
                // A plan for macOS has no other.
                _ => {}
            }
        }
    }
    (limits, wall)
}

impl Session {
    /// Makes the directory, which nobody else may look into.
    fn make() -> Result<Self, LaunchError> {
        let refused = |source| LaunchError::Prepare {
            what: "make a directory for the session".to_owned(),
            source,
        };
        let parent = std::env::temp_dir();
        let parent = match Lookout::new().look(&parent) {
            Seen::At(path, _) => path,
            Seen::Absent | Seen::Unreadable(_) => {
                return Err(refused(io::ErrorKind::NotFound.into()));
            }
        };
        let mut number = [0; 16];
        let mut random = File::open("/dev/urandom").map_err(refused)?;
        random.read_exact(&mut number).map_err(refused)?;
        let directory = SessionDirectory::new(&parent, u128::from_ne_bytes(number));
        let mut private = DirBuilder::new();
        private.mode(0o700);
        let make = |path: &AbsPath| private.create(path.as_path());
        make(directory.path()).map_err(refused)?;
        let session = Self { directory };
        make(&session.directory.tmp()).map_err(refused)?;
        make(&session.directory.points().allowed).map_err(refused)?;
        Ok(session)
    }

    fn bind(&self, profile: &Profile, own: &Own, orders: &mut Orders) -> Result<(), LaunchError> {
        let bound = profile.bind(&self.directory, own);
        let bound = bound.map_err(|error| refused_profile(&error.to_string()))?;
        orders.profile = bound.text;
        orders.parameters = bound.parameters;
        Ok(())
    }
}

fn refused_profile(reason: &str) -> LaunchError {
    LaunchError::Act {
        step: StepName(Step::Seatbelt),
        object: None,
        source: io::Error::other(reason.to_owned()),
    }
}

impl Prepared {
    /// Has somebody asked about hosts on nobody's list.
    #[must_use]
    pub fn asking(self, decider: Arc<dyn Decider>) -> Self {
        Self {
            gate: self.gate.map(|gate| gate.ask(decider)),
            ..self
        }
    }

    /// Starts the command and returns once it is confined and runs.
    ///
    /// # Errors
    ///
    /// On any [`LaunchError`] no code of the command has run, and nothing is left.
    pub fn spawn(self) -> Result<Running, LaunchError> {
        self.spawn_while(|| ())
    }

    /// The same; does something while the command is being started, which may still come to nothing.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    #[doc(hidden)]
    pub fn spawn_while(mut self, meanwhile: impl FnOnce()) -> Result<Running, LaunchError> {
        let refused = |what: &str| {
            let what = what.to_owned();
            move |source| LaunchError::Prepare { what, source }
        };
        let gate = self.gate.map(Opening::open).transpose()?;
        let (failure, failure_inside) = pipe().map_err(refused("open a pipe"))?;
        self.orders.failure = failure_inside.as_raw_fd();
        let mut stage = Stage::new().map_err(refused("prepare the second stage"))?;
        let mut stdio = Vec::new();
        for stream in self.streams {
            let stream = match (stream, &self.desk) {
                (Stream::Given(descriptor), _) => Stdio::from(descriptor),
                (Stream::Terminal, Some(desk)) => {
                    Stdio::from(desk.stream().map_err(refused("copy a stream"))?)
                }
                (Stream::Inherited | Stream::Terminal, _) => Stdio::inherit(),
            };
            stdio.push(stream);
        }
        if let Ok([input, output, error]) = <[Stdio; 3]>::try_from(stdio) {
            stage.process.stdin(input).stdout(output).stderr(error);
        }
        let mut passed = vec![failure_inside];
        let (group, waiting) = match self.desk {
            Some(desk) => {
                let handed = desk.hand_over().map_err(refused("open a pipe"))?;
                let (inside, waiting) = handed;
                self.orders.desk = Some(inside.numbers());
                passed.extend(inside.into_all());
                (Group::Desk, Some(waiting))
            }
            None => (Group::of_streams(), None),
        };
        group.set(&mut stage.process);
        let (child, orders) = stage
            .start(passed)
            .map_err(refused("start the second stage"))?;
        let mut running = Running::new(child, group, self.session, self.wall, self.plan);
        running.indexes = self.indexes;
        running.linger = self.linger;
        running.pending = self.registry;
        running.gate = gate;
        // It waits for its orders, so nothing of the command has run: a session that nobody keeps
        // would outlive its supervisor.
        if let Err(source) = running.keep() {
            running.abandon();
            return Err(refused("start the keeper of the session")(source));
        }
        let told = tell(orders, &Task::Become(self.orders));
        meanwhile();
        let answer = orders::receive::<Failure>(File::from(failure));
        let refusal = match (told, answer) {
            (Ok(()), Ok(None)) => match waiting.map(desk::Waiting::started).transpose() {
                Ok(outer) => {
                    running.desk = outer;
                    return Ok(running);
                }
                Err(source) => refused("hear from the session's terminal")(source),
            },
            (_, Ok(Some(failure))) => explained(failure, self.program),
            (Err(source), Ok(None)) | (_, Err(source)) => {
                refused("hear from the second stage")(source)
            }
        };
        running.abandon();
        Err(refusal)
    }
}

/// Says what to do, and that this is all.
fn tell(orders: OwnedFd, task: &Task) -> io::Result<()> {
    let text = serde_json::to_vec(task)?;
    File::from(orders).write_all(&text)
}

/// A copy of this program that is about to be started.
struct Stage {
    process: Process,
    orders: (OwnedFd, OwnedFd),
}

impl Stage {
    fn new() -> io::Result<Self> {
        let orders = pipe()?;
        let mut process = Process::new(std::env::current_exe()?);
        let number = orders.0.as_raw_fd().to_string();
        process.arg(crate::shim::ASKED).arg(number).env_clear();
        Ok(Self { process, orders })
    }

    /// Starts it with some descriptors besides the one that its orders will come over.
    fn start(mut self, with: Vec<OwnedFd>) -> io::Result<(Child, OwnedFd)> {
        let (inside, outside) = self.orders;
        let mut kept = vec![inside.as_fd()];
        kept.extend(with.iter().map(OwnedFd::as_fd));
        let child = descriptors::start_with(&mut self.process, &kept)?;
        // Our copies of the inside's ends must go, or their silence would never be heard.
        drop((inside, with));
        Ok((child, outside))
    }
}

fn explained(failure: Failure, program: PathBuf) -> LaunchError {
    let source = |errno: Option<i32>| {
        errno.map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error)
    };
    match failure {
        Failure::NotExecutable { errno } => LaunchError::NotExecutable {
            program,
            source: source(errno),
        },
        Failure::NotFound => LaunchError::NotFound { program },
        Failure::Prepare { what, errno } => LaunchError::Prepare {
            what,
            source: source(errno),
        },
        Failure::Profile { reason } => refused_profile(&reason),
    }
}

/// A string of bytes as the operating system has it.
pub(super) fn os(bytes: Vec<u8>) -> std::ffi::OsString {
    std::ffi::OsString::from_vec(bytes)
}

/// Now, for a report.
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}
