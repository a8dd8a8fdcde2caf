//! A first process that is born before its orders.
//!
//! Making namespaces takes the kernel about as long as it takes to read settings and to make a plan
//! of them, and it needs to know nothing of either. So where a processor is free, a launcher has
//! its first process started before it has read a single setting; that makes the namespaces every
//! session of the engine `namespaces` has, and waits. It builds the root as soon as that is laid
//! out, while the rest of the plan is being prepared.
//!
//! It is a guess. If the plan turns out to want anything else, the process is ended, and another
//! one is born as the plan says. And it is a guess about the host: if that has mounted anything
//! since, everything is made once more.
//!
//! What runs here runs in the memory of a supervisor that goes on meanwhile, with its table of
//! descriptors: see [`ringfence_sys::ahead`].

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use ringfence_core::plan::{Act, Engine, NetworkNamespace, Plan, Step};
use ringfence_sys::ahead::{self, Orders};
use ringfence_sys::namespaces::{self, IdMap, Namespaces, map_ids};
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Child;
use ringfence_sys::{Errno, Subject, capabilities, keyring, loopback, signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{getegid, geteuid};

use super::acts::{Acts, Kept, Ready, Refused};
use super::helper::{self, Help};
use super::init::{self, Unborn, Voice, live_on};
use super::root::{self, RootBuild};
use super::shares;
use super::wire;
use crate::launch::beside::timespec;
use crate::launch::{LaunchError, Testing};

/// A first process that waits for its orders. Dropping it ends it.
///
/// It belongs to the thread that has begun it, and goes when that thread ends.
#[derive(Debug)]
pub struct Ahead {
    process: ahead::Ahead<Common, First, Unborn>,
    pub(super) begun: Duration,
    /// The mounts that the root was begun with: this tells of changes since.
    mounts: OwnedFd,
}

/// What the process is told first: everything up to the new root.
#[derive(Debug)]
pub(super) struct First {
    acts: Acts,
    voice: Arc<Voice>,
}

/// The status of one that was not wanted after all; nobody reads it.
pub(super) const UNWANTED: u8 = 125;

/// The last step that belongs to the first orders.
const LAST: Step = Step::Loopback;

/// Without these nobody may make the others, and nobody can enter them later.
const AT_BIRTH: Namespaces = Namespaces::USER.union(Namespaces::PID);
/// These it makes itself, since making them takes time.
const AT_ONCE: Namespaces = Namespaces::NET
    .union(Namespaces::IPC)
    .union(Namespaces::UTS)
    .union(Namespaces::CGROUP);
/// And this when somebody looks out for changes of the mounts that it copies.
const AFTERWARDS: Namespaces = Namespaces::MOUNT;

impl Ahead {
    /// Starts it, where a processor is free for it. Whatever refuses it will refuse the launch as well, and
    /// be explained then.
    pub fn begin() -> Option<io::Result<Self>> {
        Self::is_worth_it().then(Self::begin_anyway)
    }

    /// Whether a processor is free for it at this moment.
    pub(crate) fn is_worth_it() -> bool {
        helper::is_worth_it()
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    #[doc(hidden)]
    pub fn begin_anyway() -> io::Result<Self> {
        let begun = wire::now();
        let spawn = Spawn::new(Memory::Shared).namespaces(AT_BIRTH);
        let mut process = ahead::Ahead::start(&spawn, live)?;
        // Those of this thread, which may have others than its program has.
        let mounts = File::open("/proc/thread-self/mountinfo")?.into();
        // Laid out while it makes its network namespace.
        process.begin(Box::new(Common {
            user: IdMap::same(geteuid().as_raw()),
            group: IdMap::same(getegid().as_raw()),
            root: root::lay_out_common()?,
        }));
        Ok(Self {
            process,
            begun,
            mounts,
        })
    }

    /// Whether the host has the mounts that the root was begun with. What the policy says is about
    /// those that there are.
    pub(super) fn is_current(&self) -> bool {
        let mut watched = [PollFd::new(&self.mounts, PollFlags::PRI)];
        poll(&mut watched, Some(&timespec(Duration::ZERO))) == Ok(0)
    }

    /// Has nothing for it to do any more. It goes by itself; dropping this waits for it.
    pub(super) fn dismiss(&self) {
        self.process.dismiss();
    }

    /// Whether one would become what a plan wants.
    pub(crate) fn suits(plan: &Plan) -> bool {
        Self::fits(plan, Testing::default())
    }

    /// Whether it has become what a plan wants.
    pub(super) fn fits(plan: &Plan, testing: Testing) -> bool {
        let namespaces = Act::Namespaces {
            network: NetworkNamespace::Own,
        };
        // What it has done cannot be undone.
        let done = [
            namespaces,
            Act::Keyring,
            Act::Ids,
            Act::Loopback,
            Act::Capabilities,
        ];
        // One is born in its cgroup, or not at all.
        let grouped = plan.acts().iter().any(|act| act.step() == Step::Cgroup);
        // The bounds of a user namespace are set with its ids, or when they are asked about.
        plan.engine() == Engine::Namespaces
            && shares::are_asked_about(plan)
            && done.iter().all(|act| plan.acts().contains(act))
            && !grouped
            && testing.danger_without.is_none()
    }

    /// What it has built.
    pub(super) fn root(&self) -> Option<&RootBuild> {
        self.process.context().map(|common| &common.root)
    }

    /// Whether a step belongs to its first orders.
    pub(super) fn is_first(step: Step) -> bool {
        step <= LAST
    }

    /// Gives it its first orders, which it carries out at once.
    pub(super) fn order(&mut self, acts: Acts, voice: &Arc<Voice>) {
        let voice = Arc::clone(voice);
        self.process.order(Box::new(First { acts, voice }));
    }

    /// Gives it the rest, does something else meanwhile, and waits until it is its own program, or has
    /// failed. Returns the first acts, which explain failures.
    ///
    /// # Errors
    ///
    /// That of what was done meanwhile: the process has gone without becoming its own program.
    pub(super) fn finish<T>(
        self,
        unborn: &mut Unborn,
        meanwhile: impl FnOnce() -> Result<T, LaunchError>,
    ) -> Result<(Child, Acts, T), LaunchError> {
        let (child, first, done) = self.process.finish(unborn, meanwhile)?;
        let acts = first.map(|first| first.acts).unwrap_or_default();
        Ok((child, acts, done))
    }
}

/// What is known from the beginning.
#[derive(Debug)]
struct Common {
    /// Who the session's user will be.
    user: IdMap,
    group: IdMap,
    /// What its root will have.
    root: RootBuild,
}

/// The life of the process until it is its own program.
fn live(subject: &Subject, mut orders: Orders<'_, Common, First, Unborn>) -> u8 {
    let made = make(subject, &orders);
    let made_at = wire::now();
    let Some(First { acts, voice }) = orders.first() else {
        return UNWANTED;
    };
    if let Err((step, errno)) = made {
        return voice.fail(step, 0, errno);
    }
    voice.mark_at(Step::Namespaces, made_at);
    let none = Default::default();
    match init::carry_out(subject, voice, acts, none, &mut Help::Ahead) {
        Ok(()) => match orders.rest() {
            Some((unborn, leave)) => live_on(subject, unborn, leave),
            None => UNWANTED,
        },
        Err(status) => status,
    }
}

/// Makes and does what every session of this engine has.
fn make(
    subject: &Subject,
    orders: &Orders<'_, Common, First, Unborn>,
) -> Result<(), (Step, Errno)> {
    let at = |step: Step| move |errno: Errno| (step, errno);
    namespaces::unshare(subject, AT_ONCE).map_err(at(Step::Namespaces))?;
    let common = orders.context();
    let common = common.ok_or((Step::Namespaces, Errno::CANCELED))?;
    namespaces::unshare(subject, AFTERWARDS).map_err(at(Step::Namespaces))?;
    keyring::join_new_session(subject).map_err(at(Step::Keyring))?;
    let proc_dir = ProcDir::open().map_err(at(Step::Ids))?;
    map_ids(subject, &proc_dir, common.user, common.group).map_err(at(Step::Ids))?;
    drop(proc_dir);
    loopback::bring_up(subject).map_err(at(Step::Loopback))?;
    // What it has now it keeps: this is about what it, or anybody after it, could get.
    capabilities::drop_bounding(subject).map_err(at(Step::Capabilities))?;
    signals::reset_dispositions(subject).map_err(at(Step::Init))?;
    let begun = common.root.begin(subject);
    begun.map_err(|(_, errno)| (Step::Root, errno))
}

/// Carries out what is left of an act.
pub(super) fn carry_out(subject: &Subject, act: &Ready, keep: Kept<'_>) -> Result<(), Refused> {
    let whole = |result: Result<(), Errno>| result.map_err(|errno| (0, errno));
    match act {
        Ready::Keyring | Ready::Network | Ready::Ids { shares: None, .. } => Ok(()),
        // Nobody can set them any more where `/proc` was: see `fits`.
        Ready::Ids { .. } => Err((0, Errno::INVAL)),
        Ready::Capabilities => whole(capabilities::clear(subject)),
        other => other.carry_out(subject, keep),
    }
}
