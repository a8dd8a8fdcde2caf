//! Plan –prepare→ prepared: all opening, allocating and looking up.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use ringfence_core::plan::{Act, Engine, LimitName, NetworkNamespace, Plan, Step};
use ringfence_core::policy::Policy;
use ringfence_core::seccomp;
use ringfence_sys::files::{self, CWD};
use ringfence_sys::namespaces::{IdMap, Namespaces};
use ringfence_sys::process::LimitedResource;
use ringfence_sys::seccomp::SockFilter;
use ringfence_sys::{Errno, keyring, sockets};
use rustix::pipe::{PipeFlags, pipe_with};

use super::acts::{Acts, LandlockBuild, Ready, c_path};
use super::ahead::Ahead;
use super::bounds::{Announced, announced, exactly};
use super::bwrap::{Bwrap, Taken};
use super::gate::{self, Opening};
use super::held::Held;
use super::helper::Hands;
use super::init::{Boundary, Inside, Unborn, Voice, Words};
use super::names::Unnamed;
use super::root::{self, RootBuild, Text};
use super::seat::{self, Seat};
use super::shares::{self, Shares};
use super::streams;
use super::tmp::SessionTmp;
use crate::approve::bound::Captured;
use crate::git::Walking;
use crate::indexes::Indexes;
use crate::launch::words::{arguments, directory, environment, programs};
use crate::launch::{Command, Given, Helping, LaunchError, Linger, Options, Timeline};
use crate::sessions::{About, Entry};
use crate::track::group::SessionGroup;

/// A launch with nothing left to look up.
#[derive(Debug)]
#[must_use = "nothing has started yet"]
pub struct Prepared {
    pub(super) start: Start,
    pub(super) namespaces: Namespaces,
    pub(super) failure: OwnedFd,
    pub(super) end: OwnedFd,
    pub(super) wall: Option<u64>,
    pub(super) names: Unnamed,
    pub(super) indexes: Indexes,
    pub(super) plan: Plan,
    pub(super) program: PathBuf,
    pub(super) tmp: Option<SessionTmp>,
    pub(super) timeline: Option<OwnedFd>,
    /// Sockets of the host that were granted.
    pub(super) sockets: Vec<OwnedFd>,
    pub(super) asked_over: Option<OwnedFd>,
    pub(super) gate: Option<Opening>,
    pub(super) terminal: Option<seat::Outer>,
    pub(super) held: Held,
    pub(super) registry: Option<(PathBuf, About)>,
    pub(super) linger: Linger,
    pub(super) walking: Option<Walking>,
    /// On its way out since it was not wanted: waited for when the command runs.
    pub(super) _unwanted: Option<Ahead>,
}

/// Who makes the session.
#[derive(Debug)]
pub(super) enum Start {
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
        let becoming = becoming.map_err(|errno| {
            let cut = errno == Errno::FBIG;
            refused(
                if cut {
                    FIRST_PROGRAM_CUT
                } else {
                    FIRST_PROGRAM
                },
                errno,
            )
        })?;
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
        streams::check(policy, plan.engine(), &seat)?;
    }
    let (voice, Ears { failure, timeline }) = voice(&options)?;
    let mut environment = environment(policy, command, &given.variables)?;
    gate::add_variables(&mut environment, policy, gate::hosts(plan));
    let Announced { entry, marked } = announced(&options, plan, boundary)?;
    let mut gathered = Gathered::new(policy, plan, &mut environment, entry, &options)?;
    gathered.consider(given.ahead, Ahead::fits(plan, options.testing));
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
        // Inside another session nobody can ask for a key, and nobody started there: a filter is for good.
        if step == Step::Keyring && boundary == Boundary::Descent && keyring::is_refused() {
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
    gathered.settle(options.linger)?;
    let directory = directory(policy, &command.directory)?;
    let programs = programs(command, &environment)?;
    let (end, end_inside) = pipe("open a pipe")?;
    let inside = Inside {
        boundary,
        going: gathered.going(boundary),
        hands: gathered.hands(options.testing.helper),
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
        names: Unnamed::new(policy, options.testing.danger_without),
        indexes: Indexes::remember(policy),
        plan: plan.clone(),
        program: PathBuf::from(&command.program),
        tmp: gathered.tmp,
        timeline,
        sockets: pin_sockets(policy)?,
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
        walking: given.walking,
        _unwanted: gathered.unwanted,
    })
}

/// What the acts of a plan come to, act by act.
pub(super) struct Gathered {
    pub(super) engine: Engine,
    pub(super) acts: Acts,
    namespaces: Namespaces,
    pub(super) wall: Option<u64>,
    pub(super) tmp: Option<SessionTmp>,
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
    /// One that is not wanted, on its way out. It is waited for when the command runs.
    unwanted: Option<Ahead>,
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
            texts: gate::name_files(gate::hosts(plan)),
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
            unwanted: None,
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
                let common = self.ahead.as_ref().and_then(Ahead::root);
                if let Some(mut ready) = ready(other, &self.texts, &self.granted, common)? {
                    self.complete(&mut ready, other)?;
                    self.acts.push((step, ready));
                }
            }
        }
        Ok(())
    }

    /// Takes a first process that is there already, if it fits.
    fn consider(&mut self, ahead: Option<Ahead>, fits: bool) {
        self.ahead = ahead;
        if !fits {
            self.dismiss();
        }
    }

    /// Has nothing for it to do.
    fn dismiss(&mut self) {
        self.unwanted = self.ahead.take();
        if let Some(unwanted) = &self.unwanted {
            unwanted.dismiss();
        }
    }

    /// Who sets the session up.
    fn hands(&self, asked: Helping) -> Hands {
        let own_network = self.bwrap.is_none() && self.namespaces.contains(Namespaces::NET);
        if own_network && self.ahead.is_none() {
            Hands::of(asked)
        } else {
            Hands::One
        }
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
            (Ready::Root(build), _) if !build.is_begun() && self.ahead.is_some() => self.dismiss(),
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

/// What cannot be done without.
const FIRST_PROGRAM: &str = "lay out the first process's program in memory (not possible where the \
     sysctl `vm.memfd_noexec` is 2)";
const FIRST_PROGRAM_CUT: &str = "lay out the first process's program in memory, which a limit on the \
     size of files (`ulimit -f`) forbids";

pub(super) fn refused(what: &str, errno: Errno) -> LaunchError {
    LaunchError::Prepare {
        what: what.to_owned(),
        source: errno.into(),
    }
}

/// Holds the sockets that were granted, by which they are known from here on.
fn pin_sockets(policy: &Policy) -> Result<Vec<OwnedFd>, LaunchError> {
    let pinned = policy.sockets().iter().map(|grant| {
        let path = c_path(grant.path.as_path())?;
        files::pin_exact(CWD, &path).map_err(|errno| refused("hold a granted socket", errno))
    });
    pinned.collect()
}

/// Whether a step is done, or asked for, by the supervisor: the first process cannot fail there.
fn before_birth(step: Step) -> bool {
    matches!(
        step,
        Step::Environment | Step::Names | Step::Cgroup | Step::Namespaces
    )
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

/// Where the first process is heard.
struct Ears {
    failure: OwnedFd,
    timeline: Option<OwnedFd>,
}

/// Lays out how the first process will say what it has done.
fn voice(options: &Options) -> Result<(Arc<Voice>, Ears), LaunchError> {
    let (failure, failure_inside) = pipe("open a pipe")?;
    let (timeline, timeline_inside) = match options.timeline {
        Timeline::Off => (None, None),
        Timeline::On => {
            let (outer, inner) = pipe("open a pipe")?;
            (Some(outer), Some(inner))
        }
    };
    let voice = Voice {
        failure: failure_inside,
        timeline: timeline_inside,
        fail_at: options.testing.fail_at,
    };
    Ok((Arc::new(voice), Ears { failure, timeline }))
}

fn pipe(what: &str) -> Result<(OwnedFd, OwnedFd), LaunchError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| refused(what, errno))
}
