//! Plan –prepare→ prepared: all opening, allocating and looking up.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringfence_core::plan::{Act, Engine, LimitName, NetworkNamespace, Plan, Step};
use ringfence_core::policy::Policy;
use ringfence_core::seccomp;
use ringfence_sys::namespaces::{IdMap, Namespaces};
use ringfence_sys::process::LimitedResource;
use ringfence_sys::seccomp::SockFilter;
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Child;
use ringfence_sys::{Errno, sockets};
use rustix::pipe::{PipeFlags, pipe_with};

use super::acts::{LandlockBuild, Ready};
use super::ahead::Ahead;
use super::bounds::{Announced, announced, exactly};
use super::broker::Broker;
use super::bwrap::{Bwrap, Taken};
use super::cover::Session;
use super::gate::{self, Opening};
use super::held::Held;
use super::helper::Hands;
use super::init::{Boundary, Inside, Unborn, Voice, Words};
use super::names::{self, Name};
use super::root::{self, RootBuild, Text};
use super::running::Running;
use super::seat::{self, Seat};
use super::shares::{self, Shares};
use super::streams;
use super::tmp::SessionTmp;
use super::wire;
use crate::approve::bound::Captured;
use crate::launch::words::{arguments, directory, environment, programs};
use crate::launch::{Command, Decider, Given, LaunchError, Linger, Options, Timeline};
use crate::sessions::{About, Entry};
use crate::track::group::SessionGroup;

/// A launch with nothing left to look up.
#[derive(Debug)]
#[must_use = "nothing has started yet"]
pub struct Prepared {
    start: Start,
    namespaces: Namespaces,
    failure: OwnedFd,
    end: OwnedFd,
    wall: Option<u64>,
    names: Vec<Name>,
    plan: Plan,
    program: PathBuf,
    tmp: Option<SessionTmp>,
    timeline: Option<OwnedFd>,
    asked_over: Option<OwnedFd>,
    gate: Option<Opening>,
    terminal: Option<seat::Outer>,
    held: Held,
    registry: Option<(PathBuf, About)>,
    linger: Linger,
}

/// Who makes the session.
#[derive(Debug)]
enum Start {
    /// A first process of ours, which may be there already.
    Own(Box<Unborn>, Option<Ahead>),
    /// Another program, which becomes the first process.
    Through(Bwrap, Box<Inside>),
}

impl Start {
    fn of(
        mut inside: Inside,
        bwrap: Option<Bwrap>,
        ahead: Option<Ahead>,
    ) -> Result<Self, LaunchError> {
        if let Some(bwrap) = bwrap {
            return Ok(Self::Through(bwrap, Box::new(inside)));
        }
        let becoming = inside.becoming();
        let becoming = becoming.map_err(|errno| refused(FIRST_PROGRAM, errno))?;
        Ok(Self::Own(Box::new(Unborn { inside, becoming }), ahead))
    }
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
    prepare_with(policy, plan, command, options, Given::default())
}

/// The same, with other standard streams than the caller's, with a terminal of the session's own, or
/// with variables that the policy has no say in.
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
    let boundary = boundary(plan.engine())?;
    let (seat, terminal) = Seat::new(given.streams)?;
    if plan.engine() != Engine::Track {
        streams::check(policy, &seat)?;
    }
    let (failure, failure_inside) = pipe("open a pipe")?;
    let (timeline, timeline_inside) = match options.timeline {
        Timeline::Off => (None, None),
        Timeline::On => {
            let (outer, inner) = pipe("open a pipe")?;
            (Some(outer), Some(inner))
        }
    };
    let voice = Arc::new(Voice {
        failure: failure_inside,
        timeline: timeline_inside,
        fail_at: options.testing.fail_at,
    });
    let mut environment = environment(policy, command, &given.variables)?;
    gate::add_variables(&mut environment, policy, gate::hosts(plan));
    let Announced { entry, marked } = announced(&options, plan, boundary)?;
    let mut gathered = Gathered::new(policy, plan, &mut environment, entry, &options)?;
    let ahead = given.ahead;
    gathered.ahead = ahead.filter(|_| Ahead::fits(plan, &options.testing));
    let mut first = true;
    for act in plan.acts() {
        let step = act.step();
        if first && !Ahead::is_first(step) {
            first = false;
            gathered.order(&voice);
        }
        if options.testing.danger_without == Some(step) {
            continue;
        }
        if options.testing.fail_at == Some(step) && before_birth(step) {
            return Err(LaunchError::Act {
                step: crate::launch::StepName(step),
                object: None,
                source: Errno::IO.into(),
            });
        }
        if let Act::Gate(plan) = act {
            let (opening, making) = Opening::new(plan, policy, command)?;
            gathered.gate = Some(opening);
            gathered.acts.push((step, Ready::Gate(making)));
            continue;
        }
        gathered.take(act)?;
    }
    if options.testing.danger_without != Some(Step::Limits) {
        gathered.finish();
    }
    let directory = directory(policy, &command.directory)?;
    let programs = programs(command, &environment)?;
    let (end, end_inside) = pipe("open a pipe")?;
    let own_network = gathered.bwrap.is_none() && gathered.namespaces.contains(Namespaces::NET);
    let hands = if own_network && gathered.ahead.is_none() {
        Hands::of(options.testing.helper)
    } else {
        Hands::One
    };
    let inside = Inside {
        boundary,
        hands,
        seat,
        acts: gathered.acts,
        mark: marked.map(|(_, limit)| limit),
        linger: options.linger,
        directory,
        command: Words {
            programs,
            arguments: arguments(command)?,
            environment,
        },
        voice,
        end: end_inside,
        outer: Some([failure.as_raw_fd(), end.as_raw_fd()]),
    };
    let start = Start::of(inside, gathered.bwrap, gathered.ahead)?;
    Ok(Prepared {
        start,
        namespaces: gathered.namespaces,
        failure,
        end,
        wall: gathered.wall,
        names: names::of_plan(policy, plan, options.testing.danger_without)?,
        plan: plan.clone(),
        program: PathBuf::from(&command.program),
        tmp: gathered.tmp,
        timeline,
        asked_over: gathered.asked_over,
        gate: gathered.gate,
        terminal,
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
    tmp: Option<SessionTmp>,
    /// Over which the filter's listener will come.
    asked_over: Option<OwnedFd>,
    gate: Option<Opening>,
    /// Files of the session's own in the new root.
    texts: Vec<Text>,
    bwrap: Option<Bwrap>,
    pub(super) group: Option<SessionGroup>,
    pub(super) entry: Option<Entry>,
    /// The limits that the group must hold.
    pub(super) controlled: Vec<LimitName>,
    /// What was held when somebody granted it.
    granted: Arc<[Captured]>,
    bounds: Bounds,
    /// A first process that is there already.
    ahead: Option<Ahead>,
}

/// When the bounds of a new user namespace are set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Bounds {
    /// With its ids.
    AtBirth,
    /// When somebody inside first needs them, which the supervisor hears of.
    WhenNeeded,
}

impl Gathered {
    fn new(
        policy: &Policy,
        plan: &Plan,
        environment: &mut Vec<CString>,
        mut entry: Option<Entry>,
        options: &Options,
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
            tmp: tmp.transpose()?,
            asked_over: None,
            gate: None,
            texts: gate::resolver_file(gate::hosts(plan))
                .map(|at| Text {
                    at,
                    bytes: gate::resolver_text(),
                })
                .into_iter()
                .collect(),
            bwrap: bwrap.transpose()?,
            group: None,
            entry,
            controlled: plan.controlled().to_vec(),
            granted: Arc::clone(&options.granted),
            bounds: if shares::are_asked_about(plan) {
                Bounds::WhenNeeded
            } else {
                Bounds::AtBirth
            },
            ahead: None,
        })
    }

    fn take(&mut self, act: &Act) -> Result<(), LaunchError> {
        let step = act.step();
        if let Some(bwrap) = &mut self.bwrap {
            match bwrap.take(act, &self.texts, &self.granted)? {
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
            // Put together from the whole plan.
            Act::Names { .. } => {}
            Act::Cgroup => self.group = Some(self.new_group()?),
            Act::Limits { bounds } => self.limits(bounds)?,
            other => {
                let common = self.ahead.as_ref().map(Ahead::root);
                if let Some(mut ready) = ready(other, &self.texts, &self.granted, common)? {
                    self.complete(&mut ready, other)?;
                    self.acts.push((step, ready));
                }
            }
        }
        Ok(())
    }

    /// Lets a first process that is there already begin with the acts so far.
    fn order(&mut self, voice: &Arc<Voice>) {
        if let Some(ahead) = &mut self.ahead {
            ahead.order(std::mem::take(&mut self.acts), voice);
        }
    }

    /// Adds what only this session has.
    fn complete(&mut self, ready: &mut Ready, act: &Act) -> Result<(), LaunchError> {
        match (ready, act) {
            (Ready::Landlock(build), _) => {
                if let Some(tmp) = &self.tmp {
                    build.allow_writing(tmp.path())?;
                }
                for text in &self.texts {
                    build.allow_reading(text.at.as_path())?;
                }
            }
            // It has built something that this session does not want.
            (Ready::Root(build), _) if !build.is_begun() => self.ahead = None,
            // What the session may take of what its user has only so much of.
            (Ready::Ids { shares, .. }, _) if self.bounds == Bounds::AtBirth => {
                *shares = Some(Shares::find());
            }
            (Ready::Seccomp(_, inner), Act::Seccomp(spec)) if spec.asks() => {
                let pair = sockets::pair().map_err(|errno| refused("open a socket", errno))?;
                let (outer_end, inner_end) = pair;
                *inner = Some(inner_end);
                self.asked_over = Some(outer_end);
            }
            _ => {}
        }
        Ok(())
    }

    /// Every restricted session has a limit on dumps, and on what its user has only so much of,
    /// whatever the plan says of limits.
    fn finish(&mut self) {
        if self.engine == Engine::Track {
            return;
        }
        // Exactly one: a host that pipes dumps into a program skips those of this size only, and
        // no handler outside may be made to look at what runs inside.
        let no_dumps = (LimitedResource::Core, exactly(1));
        let always = std::iter::once(no_dumps).chain(shares::limits());
        let limits = self.acts.iter_mut().find_map(|(_, act)| match act {
            Ready::Limits(limits) => Some(limits),
            _ => None,
        });
        if let Some(limits) = limits {
            limits.extend(always);
        } else {
            let limits = Ready::Limits(always.collect());
            self.acts.push((Step::Limits, limits));
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
    /// Has somebody asked about hosts on nobody's list; without this they are refused.
    ///
    /// A connection is held while somebody is asked. Silence means no.
    pub fn asking(mut self, decider: Arc<dyn Decider>) -> Self {
        self.gate = self.gate.map(|gate| gate.ask(decider));
        self
    }

    /// Whether a first process is there already, with its first orders.
    #[doc(hidden)]
    pub fn is_ahead(&self) -> bool {
        matches!(self.start, Start::Own(_, Some(_)))
    }

    /// Starts the session and returns once the command runs.
    ///
    /// The calling process is not restricted and may have threads. The session ends when the
    /// calling thread does, so call this from one that lives long enough.
    ///
    /// # Errors
    ///
    /// On any [`LaunchError`] no code of the command has run, and nothing is left.
    pub fn spawn(self) -> Result<Running, LaunchError> {
        let asked = wire::now();
        let mut acts = Vec::new();
        let (child, inside, outside) = match self.start {
            Start::Own(mut unborn, Some(ahead)) => {
                let (child, first) = ahead.finish(&mut unborn);
                acts = first;
                (child, unborn.inside, None)
            }
            Start::Own(unborn, None) => {
                let (child, inside) = born(*unborn, self.namespaces, self.held.group.as_ref())?;
                (child, inside, None)
            }
            Start::Through(bwrap, inside) => {
                let started = bwrap.start(&inside, self.held.group.as_ref())?;
                (started.child, *inside, Some(started.outside))
            }
        };
        let boundary = inside.boundary;
        // Our copies of the inside's ends must go, or their silence would never be heard.
        acts.extend(inside.release());
        let mut running = Running::new(
            child, boundary, self.end, self.wall, self.names, self.plan, self.tmp,
        );
        running.held = self.held;
        running.linger = self.linger;
        let mut own_filesystems = Vec::new();
        if let Some(outside) = outside {
            (running, own_filesystems) = running.greeted(&outside, &self.failure, &acts)?;
        }
        running.open_gate(self.gate)?;
        running.terminal = receive(self.terminal)?;
        // From here on the first process becomes its own program and starts the command, so whatever
        // else there is to do is done before that is waited for.
        if let Some(socket) = self.asked_over {
            let asked = broker(&socket, self.namespaces, boundary, running.id());
            let (broker, session) = match asked {
                Ok(asked) => asked,
                // It may have said why before it went.
                Err(error) => {
                    running.started(&self.failure, &acts, &self.program)?;
                    return Err(error);
                }
            };
            running.ask(broker.also(own_filesystems));
            running.session = Some(session);
        }
        let running = running.watching_names()?;
        let mut running = running.started(&self.failure, &acts, &self.program)?;
        if let Some(timeline) = self.timeline {
            running.timeline = marks(asked, &timeline);
        }
        running.expect_registration(self.registry);
        Ok(running)
    }
}

/// Starts a first process of ours.
fn born(
    mut unborn: Unborn,
    namespaces: Namespaces,
    group: Option<&SessionGroup>,
) -> Result<(Child, Inside), LaunchError> {
    let at_birth = match unborn.inside.hands {
        Hands::One => namespaces,
        // The helper makes the network's.
        Hands::Two => namespaces.difference(Namespaces::NET),
    };
    let mut spawn = Spawn::new(Memory::Shared).namespaces(at_birth);
    if let Some(group) = group {
        spawn = spawn.cgroup(group.as_fd());
    }
    let born = spawn.start(&mut unborn, super::init::live);
    let child = born.map_err(|errno| LaunchError::Act {
        step: crate::launch::StepName(Step::Namespaces),
        object: None,
        source: errno.into(),
    })?;
    Ok((child, unborn.inside))
}

/// What cannot be done without.
const FIRST_PROGRAM: &str = "lay out the first process's program in memory (not possible where the \
     sysctl `vm.memfd_noexec` is 2)";

/// Receives the outer end of the session's terminal.
fn receive(terminal: Option<seat::Outer>) -> Result<Option<OwnedFd>, LaunchError> {
    let received = terminal.map(seat::Outer::receive).transpose();
    let received = received.map_err(|errno| refused("receive the session's terminal", errno))?;
    Ok(received.flatten())
}

/// Receives the calls that the filter asks about, and where the session is.
fn broker(
    socket: &OwnedFd,
    namespaces: Namespaces,
    boundary: Boundary,
    first: i32,
) -> Result<(Broker, Session), LaunchError> {
    let mut message = [0; 1];
    let received = sockets::receive(socket, &mut message)
        .map_err(|errno| refused("receive the filter's listener", errno))?;
    let [Some(listener), Some(root), Some(user), Some(mount), ..] = received.descriptors else {
        return Err(refused("receive the filter's listener", Errno::BADMSG));
    };
    let network = if namespaces.contains(Namespaces::NET) {
        NetworkNamespace::Own
    } else {
        NetworkNamespace::Shared
    };
    let changes = std::fs::File::open(format!("/proc/{first}/mountinfo"));
    let session = Session {
        root,
        user,
        mount,
        changes: changes.ok().map(OwnedFd::from),
    };
    let mut broker = Broker::new(listener, network);
    if boundary == Boundary::PidNamespace {
        let user = session.user.try_clone();
        broker = broker.sharing(user.map_err(|source| LaunchError::Prepare {
            what: "hold the session's user namespace".to_owned(),
            source,
        })?);
    }
    Ok((broker, session))
}

pub(super) fn refused(what: &str, errno: Errno) -> LaunchError {
    LaunchError::Prepare {
        what: what.to_owned(),
        source: errno.into(),
    }
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

fn ready(
    act: &Act,
    texts: &[Text],
    granted: &[Captured],
    common: Option<&RootBuild>,
) -> Result<Option<Ready>, LaunchError> {
    Ok(Some(match act {
        Act::Keyring => Ready::Keyring,
        Act::Ids => Ready::Ids {
            user: IdMap::same(rustix::process::geteuid().as_raw()),
            group: IdMap::same(rustix::process::getegid().as_raw()),
            shares: None,
        },
        Act::Root { base, mounts } => {
            let build = root::lay_out(*base, mounts, texts, granted, common);
            let build = build.map_err(|source| LaunchError::Prepare {
                what: "lay out the new root".to_owned(),
                source,
            })?;
            Ready::Root(build)
        }
        Act::Loopback => Ready::Network,
        Act::Descriptors => Ready::Descriptors,
        Act::Capabilities => Ready::Capabilities,
        Act::Privileges => Ready::Privileges,
        Act::Landlock(plan) => {
            let mut build = LandlockBuild::new(plan)?;
            build.expect_granted(granted)?;
            Ready::Landlock(build)
        }
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

fn pipe(what: &str) -> Result<(OwnedFd, OwnedFd), LaunchError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| refused(what, errno))
}
