//! Plan –prepare→ prepared: all opening, allocating and looking up.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_core::path::AbsPath;
use ringfence_core::plan::{Act, Engine, LimitName, NetworkNamespace, Plan, Step};
use ringfence_core::policy::{Access, EnvVerdict, Policy};
use ringfence_core::seccomp::{self, UnixSockets};
use ringfence_sys::exec::StringArray;
use ringfence_sys::namespaces::{IdMap, Namespaces};
use ringfence_sys::process::LimitedResource;
use ringfence_sys::seccomp::SockFilter;
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::start::StartArea;
use ringfence_sys::{Errno, sockets};
use rustix::pipe::{PipeFlags, pipe_with};

use super::acts::{LandlockBuild, Ready};
use super::bounds::exactly;
use super::broker::Broker;
use super::bwrap::{Bwrap, Taken};
use super::held::Held;
use super::init::{Boundary, Inside};
use super::root;
use super::running::Running;
use super::streams;
use super::tmp::SessionTmp;
use super::wire;
use crate::launch::{Command, LaunchError, Linger, Options, Timeline};
use crate::sessions::{About, Entry, Registry};
use crate::track::group::SessionGroup;
use crate::track::mark::Mark;

/// A launch with nothing left to look up.
#[derive(Debug)]
#[must_use = "nothing has started yet"]
pub struct Prepared {
    inside: Inside,
    namespaces: Namespaces,
    failure: OwnedFd,
    end: OwnedFd,
    wall: Option<u64>,
    names: Vec<PathBuf>,
    plan: Plan,
    program: PathBuf,
    tmp: Option<SessionTmp>,
    timeline: Option<OwnedFd>,
    asked_over: Option<OwnedFd>,
    bwrap: Option<Bwrap>,
    held: Held,
    registry: Option<(PathBuf, About)>,
    linger: Linger,
}

/// Opens, allocates and looks up everything that a launch needs.
///
/// # Errors
///
/// Every [`LaunchError`]; nothing has been started or changed.
pub fn prepare(
    policy: &Policy,
    plan: &Plan,
    command: &Command,
    options: Options,
) -> Result<Prepared, LaunchError> {
    if !plan.may_launch() {
        return Err(LaunchError::Gaps {
            gaps: plan.gaps().to_vec(),
        });
    }
    let boundary = boundary(plan.engine())?;
    if plan.engine() != Engine::Track {
        streams::check(policy)?;
    }
    let mut environment = environment(policy, command)?;
    let leaves = plan.acts().contains(&Act::Cgroup) || boundary == Boundary::Descent;
    let mut entry = match &options.registry {
        // Before anything is made that could be left behind.
        Some((path, about)) if leaves => {
            let registry = Registry::open(path).ok();
            registry.and_then(|registry| registry.begin(about, None).ok())
        }
        _ => None,
    };
    let marked = match boundary {
        Boundary::Descent => Mark::draw().map_err(|errno| refused("draw a mark", errno))?,
        Boundary::PidNamespace => None,
    };
    if let (Some(entry), Some((mark, _))) = (&mut entry, &marked) {
        // Who cannot be found later is tracked by its supervisor all the same.
        let _ = entry.expect(Some(*mark), None, None);
    }
    let mut gathered = Gathered::new(policy, plan, &mut environment, entry)?;
    for act in plan.acts() {
        let step = act.step();
        if options.danger_without == Some(step) {
            continue;
        }
        if options.fail_at == Some(step) && before_birth(step) {
            return Err(LaunchError::Act {
                step: crate::launch::StepName(step),
                object: None,
                source: Errno::IO.into(),
            });
        }
        gathered.take(act)?;
    }
    gathered.finish();
    let directory = directory(policy, &command.directory)?;
    let programs = programs(command, &environment)?;
    let (failure, failure_inside) = pipe("open a pipe")?;
    let (end, end_inside) = pipe("open a pipe")?;
    let (timeline, timeline_inside) = match options.timeline {
        Timeline::Off => (None, None),
        Timeline::On => {
            let (outer, inner) = pipe("open a pipe")?;
            (Some(outer), Some(inner))
        }
    };
    let own_network = gathered.bwrap.is_none() && gathered.namespaces.contains(Namespaces::NET);
    let inside = Inside {
        boundary,
        network: if own_network {
            NetworkNamespace::Own
        } else {
            NetworkNamespace::Shared
        },
        start: StartArea::of_this_program().map_err(|errno| LaunchError::Prepare {
            what: "find the arguments of this program in /proc".to_owned(),
            source: errno.into(),
        })?,
        timeline: timeline_inside,
        acts: gathered.acts,
        mark: marked.map(|(_, limit)| limit),
        linger: options.linger,
        fail_at: options.fail_at,
        directory,
        programs,
        arguments: arguments(command)?,
        environment: StringArray::new(environment),
        failure: failure_inside,
        end: end_inside,
        outer: Some([failure.as_raw_fd(), end.as_raw_fd()]),
    };
    Ok(Prepared {
        bwrap: gathered.bwrap,
        inside,
        namespaces: gathered.namespaces,
        failure,
        end,
        wall: gathered.wall,
        names: gathered.names,
        plan: plan.clone(),
        program: PathBuf::from(&command.program),
        tmp: gathered.tmp,
        timeline,
        asked_over: gathered.asked_over,
        held: Held {
            group: gathered.group,
            mark: marked.map(|(mark, _)| mark),
            entry: gathered.entry,
            ..Held::default()
        },
        registry: options.registry,
        linger: options.linger,
    })
}

/// What the acts of a plan come to, act by act.
pub(super) struct Gathered {
    pub(super) engine: Engine,
    pub(super) acts: Vec<(Step, Ready)>,
    namespaces: Namespaces,
    pub(super) wall: Option<u64>,
    names: Vec<PathBuf>,
    tmp: Option<SessionTmp>,
    /// Over which the filter's listener will come.
    asked_over: Option<OwnedFd>,
    bwrap: Option<Bwrap>,
    pub(super) group: Option<SessionGroup>,
    pub(super) entry: Option<Entry>,
    /// The limits that nothing can hold for the whole session.
    pub(super) unbounded: Vec<LimitName>,
}

impl Gathered {
    fn new(
        policy: &Policy,
        plan: &Plan,
        environment: &mut Vec<CString>,
        mut entry: Option<Entry>,
    ) -> Result<Self, LaunchError> {
        let engine = plan.engine();
        let tmp =
            (engine == Engine::Landlock).then(|| SessionTmp::new(environment, entry.as_mut()));
        let bwrap = (engine == Engine::Bwrap).then(|| Bwrap::new(policy.project()));
        Ok(Self {
            engine,
            acts: Vec::new(),
            namespaces: Namespaces::empty(),
            wall: None,
            names: Vec::new(),
            tmp: tmp.transpose()?,
            asked_over: None,
            bwrap: bwrap.transpose()?,
            group: None,
            entry,
            unbounded: plan.unbounded(),
        })
    }

    fn take(&mut self, act: &Act) -> Result<(), LaunchError> {
        let step = act.step();
        if let Some(bwrap) = &mut self.bwrap {
            match bwrap.take(act)? {
                Taken::ButFor(ready) => {
                    self.acts.push((step, ready));
                    return Ok(());
                }
                Taken::No => {}
                Taken::Whole => return Ok(()),
            }
        }
        match act {
            Act::Namespaces { network } => self.namespaces = namespaces(*network),
            Act::Names { absent } => self.names = free_names(absent)?,
            Act::Cgroup => self.group = Some(self.new_group()?),
            Act::Limits { bounds } => self.limits(bounds)?,
            other => {
                if let Some(mut ready) = ready(other)? {
                    self.complete(&mut ready, other)?;
                    self.acts.push((step, ready));
                }
            }
        }
        Ok(())
    }

    /// Adds what only this session has.
    fn complete(&mut self, ready: &mut Ready, act: &Act) -> Result<(), LaunchError> {
        match (ready, act) {
            (Ready::Landlock(build), _) => {
                if let Some(tmp) = &self.tmp {
                    build.allow_writing(tmp.path())?;
                }
            }
            (Ready::Seccomp(_, inner), Act::Seccomp(spec))
                if spec.unix == UnixSockets::Brokered =>
            {
                let pair = sockets::pair().map_err(|errno| refused("open a socket", errno))?;
                let (outer_end, inner_end) = pair;
                *inner = Some(inner_end);
                self.asked_over = Some(outer_end);
            }
            _ => {}
        }
        Ok(())
    }

    /// Every restricted session has a limit on dumps, whatever the plan says of limits.
    fn finish(&mut self) {
        if self.engine == Engine::Track {
            return;
        }
        // Exactly one: a host that pipes dumps into a program skips those of this size only, and
        // no handler outside may be made to look at what runs inside.
        let no_dumps = (LimitedResource::Core, exactly(1));
        let limits = self.acts.iter_mut().find_map(|(_, act)| match act {
            Ready::Limits(limits) => Some(limits),
            _ => None,
        });
        if let Some(limits) = limits {
            limits.push(no_dumps);
        } else {
            self.acts
                .push((Step::Limits, Ready::Limits(vec![no_dumps])));
            self.acts.sort_by_key(|(step, _)| *step);
        }
    }
}

fn namespaces(network: NetworkNamespace) -> Namespaces {
    let always = Namespaces::USER
        | Namespaces::MOUNT
        | Namespaces::PID
        | Namespaces::IPC
        | Namespaces::UTS
        | Namespaces::CGROUP;
    match network {
        NetworkNamespace::Own => always | Namespaces::NET,
        NetworkNamespace::Shared => always,
    }
}

impl Prepared {
    /// Starts the session and returns once the command runs.
    ///
    /// The calling process is not restricted and may have threads. The session ends when the
    /// calling thread does, so call this from one that lives long enough.
    ///
    /// # Errors
    ///
    /// On any [`LaunchError`] no code of the command has run, and nothing is left.
    pub fn spawn(mut self) -> Result<Running, LaunchError> {
        let asked = wire::now();
        if let Some(bwrap) = self.bwrap.take() {
            return self.spawn_through(bwrap, asked);
        }
        // The network's is made beside the root, by `network`.
        let namespaces = self.namespaces.difference(Namespaces::NET);
        let mut spawn = Spawn::new(Memory::Copied).namespaces(namespaces);
        if let Some(group) = &self.held.group {
            spawn = spawn.cgroup(group.as_fd());
        }
        let born = spawn.start(&mut self.inside, super::init::live);
        let child = born.map_err(|errno| LaunchError::Act {
            step: crate::launch::StepName(Step::Namespaces),
            object: None,
            source: errno.into(),
        })?;
        let Self {
            inside,
            failure,
            end,
            wall,
            names,
            plan,
            program,
            tmp,
            timeline,
            asked_over,
            namespaces,
            bwrap: _,
            held,
            registry,
            linger,
        } = self;
        let boundary = inside.boundary;
        // Our copies of the inside's ends must go, or their silence would never be heard.
        let acts = inside.release();
        let mut running = Running::new(child, boundary, end, wall, names, plan, tmp);
        running.held = held;
        running.linger = linger;
        let mut running = running.started(&failure, &acts, &program)?;
        if let Some(socket) = asked_over {
            running.broker = Some(broker(&socket, namespaces)?);
        }
        if let Some(timeline) = timeline {
            running.timeline = marks(asked, &timeline);
        }
        running.expect_registration(registry);
        Ok(running)
    }

    fn spawn_through(self, bwrap: Bwrap, asked: Duration) -> Result<Running, LaunchError> {
        let started = bwrap.start(&self.inside, self.held.group.as_ref())?;
        let boundary = self.inside.boundary;
        let acts = self.inside.release();
        let mut running = Running::new(
            started.child,
            boundary,
            self.end,
            self.wall,
            self.names,
            self.plan,
            self.tmp,
        );
        running.held = self.held;
        running.linger = self.linger;
        let (running, own) = running.greeted(&started.outside, &self.failure, &acts)?;
        let mut running = running.started(&self.failure, &acts, &self.program)?;
        if let Some(socket) = self.asked_over {
            running.broker = Some(broker(&socket, self.namespaces)?.also(own));
        }
        if let Some(timeline) = self.timeline {
            running.timeline = marks(asked, &timeline);
        }
        running.expect_registration(self.registry);
        Ok(running)
    }
}

/// Receives the calls that the filter asks about.
fn broker(socket: &OwnedFd, namespaces: Namespaces) -> Result<Broker, LaunchError> {
    let mut message = [0; 1];
    let received = sockets::receive(socket, &mut message)
        .map_err(|errno| refused("receive the filter's listener", errno))?;
    let [listener, ..] = received.descriptors;
    let listener =
        listener.ok_or_else(|| refused("receive the filter's listener", Errno::BADMSG))?;
    let network = if namespaces.contains(Namespaces::NET) {
        NetworkNamespace::Own
    } else {
        NetworkNamespace::Shared
    };
    Ok(Broker::new(listener, network))
}

pub(super) fn refused(what: &str, errno: Errno) -> LaunchError {
    LaunchError::Prepare {
        what: what.to_owned(),
        source: errno.into(),
    }
}

/// The names that must not appear, none of which is there now.
///
/// A link that leads nowhere looks like nothing until the session makes what it leads to. It is
/// somebody else's, so it cannot be put aside afterwards either.
fn free_names(absent: &[AbsPath]) -> Result<Vec<PathBuf>, LaunchError> {
    let mut names = Vec::with_capacity(absent.len());
    for name in absent {
        if std::fs::symlink_metadata(name.as_path()).is_ok() {
            return Err(LaunchError::Prepare {
                what: format!("protect {name}, from where a link leads to nothing"),
                source: std::io::ErrorKind::AlreadyExists.into(),
            });
        }
        names.push(name.as_path().to_owned());
    }
    Ok(names)
}

/// Whether a step is done, or asked for, by the supervisor: the first process cannot fail there.
fn before_birth(step: Step) -> bool {
    matches!(
        step,
        Step::Environment | Step::Names | Step::Cgroup | Step::Namespaces
    )
}

/// How long each step took, from the request to the command.
fn marks(asked: Duration, timeline: &OwnedFd) -> Vec<(Step, Duration)> {
    let mut before = asked;
    let mut marks = wire::receive_marks(timeline);
    marks.push((Step::Command, wire::now()));
    for (_, mark) in &mut marks {
        let took = mark.saturating_sub(before);
        before = *mark;
        *mark = took;
    }
    marks
}

fn boundary(engine: Engine) -> Result<Boundary, LaunchError> {
    match engine {
        Engine::Bwrap | Engine::Namespaces => Ok(Boundary::PidNamespace),
        Engine::Landlock | Engine::Track => {
            // Without this list the first process could not find those it has to end.
            std::fs::metadata("/proc/thread-self/children").map_err(|source| {
                LaunchError::Prepare {
                    what: "find the children of a process in /proc".to_owned(),
                    source,
                }
            })?;
            Ok(Boundary::Descent)
        }
        other => Err(LaunchError::Engine { engine: other }),
    }
}

fn ready(act: &Act) -> Result<Option<Ready>, LaunchError> {
    Ok(Some(match act {
        Act::Keyring => Ready::Keyring,
        Act::Ids => Ready::Ids {
            user: IdMap::same(rustix::process::geteuid().as_raw()),
            group: IdMap::same(rustix::process::getegid().as_raw()),
        },
        Act::Root { base, mounts } => {
            let build = root::lay_out(*base, mounts).map_err(|source| LaunchError::Prepare {
                what: "lay out the new root".to_owned(),
                source,
            })?;
            Ready::Root(build)
        }
        Act::Loopback => Ready::Network,
        Act::Descriptors => Ready::Descriptors,
        Act::Capabilities => Ready::Capabilities,
        Act::Privileges => Ready::Privileges,
        Act::Landlock(plan) => Ready::Landlock(LandlockBuild::new(plan)?),
        Act::Seccomp(spec) => {
            let program = seccomp::compile(*spec);
            let instructions = program.instructions().iter();
            let filter = instructions.map(|instruction| SockFilter {
                code: instruction.code,
                jt: instruction.jt,
                jf: instruction.jf,
                k: instruction.k,
            });
            Ready::Seccomp(filter.collect(), None)
        }
        // Done elsewhere: before the birth, or by being born.
        _ => return Ok(None),
    }))
}

/// The variables that pass and those that are set, as `NAME=VALUE`.
fn environment(policy: &Policy, command: &Command) -> Result<Vec<CString>, LaunchError> {
    let rules = policy.environment();
    let mut out: Vec<CString> = Vec::new();
    let mut names: Vec<&OsStr> = Vec::new();
    let mut push = |name: &OsStr, value: &OsStr| {
        let mut text = Vec::with_capacity(name.len() + value.len() + 1);
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        let text = CString::new(text).map_err(|_| LaunchError::Nul { what: "a variable" })?;
        out.push(text);
        Ok(())
    };
    for (name, value) in &command.environment {
        // Of two variables with one name programs see the first, so only that one counts.
        if names.contains(&name.as_os_str()) || name.is_empty() {
            continue;
        }
        names.push(name);
        // A name that is not text is on nobody's list.
        let verdict = name.to_str().map(|name| rules.verdict(name));
        if matches!(verdict, Some(EnvVerdict::Passes(_)))
            || (verdict.is_none() && policy.only_tracks())
        {
            push(name, value)?;
        }
    }
    for (name, value) in rules.set() {
        push(OsStr::new(name), OsStr::new(&value.value))?;
    }
    Ok(out)
}

fn directory(policy: &Policy, directory: &Path) -> Result<CString, LaunchError> {
    let hidden = || LaunchError::Directory {
        directory: directory.to_owned(),
    };
    let path = AbsPath::parse(directory).map_err(|_| hidden())?;
    if policy.files().access(&path).access == Access::None {
        return Err(hidden());
    }
    CString::new(directory.as_os_str().as_bytes()).map_err(|_| LaunchError::Nul {
        what: "the working directory",
    })
}

fn arguments(command: &Command) -> Result<StringArray, LaunchError> {
    std::iter::once(&command.program)
        .chain(&command.arguments)
        .map(|argument| {
            CString::new(argument.as_bytes()).map_err(|_| LaunchError::Nul {
                what: "an argument",
            })
        })
        .collect()
}

/// Where the program may be, in the order in which a shell would look.
fn programs(command: &Command, environment: &[CString]) -> Result<Vec<CString>, LaunchError> {
    let nul = |_| LaunchError::Nul {
        what: "the program's name",
    };
    let name = command.program.as_bytes();
    if name.is_empty() || name.contains(&b'/') {
        return Ok(vec![CString::new(name).map_err(nul)?]);
    }
    let path = environment
        .iter()
        .find_map(|variable| variable.to_bytes().strip_prefix(b"PATH="))
        .unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    path.split(|byte| *byte == b':')
        .map(|directory| {
            // An empty entry means the working directory.
            let directory = if directory.is_empty() {
                b"."
            } else {
                directory
            };
            let path = Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(name));
            CString::new(path.as_os_str().as_bytes()).map_err(nul)
        })
        .collect()
}

fn pipe(what: &str) -> Result<(OwnedFd, OwnedFd), LaunchError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| refused(what, errno))
}
