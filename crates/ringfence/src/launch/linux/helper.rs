//! A second pair of hands while a session is set up, where a processor is free for it.
//!
//! Two things take the kernel as long as all mounts together, and nobody needs them before the
//! command starts: making a network namespace, and letting go of the old root. So a helper that
//! lives only for this makes the namespace, with its loopback interface up, while the first
//! process builds the root; once the first process has joined it, the helper takes the old root
//! off. The command starts when the helper has ended well, and not otherwise.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use ringfence_sys::mounts::{self, CoveredRoot};
use ringfence_sys::namespaces::{self, Namespaces};
use ringfence_sys::spawn::{Beside, Memory, Spawn};
use ringfence_sys::wait::Ended;
use ringfence_sys::{Errno, Subject, descriptors, loopback};
use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

use super::acts::{Kept, Ready, Refused};
use super::ahead;
use crate::launch::Helping;

/// Who sets a session up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Hands {
    /// The first process alone.
    One,
    /// A helper makes the network namespace, with which the first process is not born then.
    Two,
}

impl Hands {
    pub(super) fn of(asked: Helping) -> Self {
        match asked {
            Helping::Always => Self::Two,
            Helping::WherePossible if is_worth_it() => Self::Two,
            Helping::Never | Helping::WherePossible => Self::One,
        }
    }
}

/// Whether a helper would soon have a processor to itself. On a busy machine it would have to wait for
/// its turn, and the first process for it.
pub(super) fn is_worth_it() -> bool {
    let Ok(ours) = rustix::thread::sched_getaffinity(None) else {
        return false;
    };
    // One thread too many is nothing to wait for: mostly it takes down what the session before has left.
    ours.count() > 1 && running().is_some_and(|running| running <= ours.count())
}

/// How many threads of the machine run or could run at this moment, this one among them.
fn running() -> Option<u32> {
    // Three averages, and then "running/all"; only the number of this moment says what is free now.
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let (running, _) = text.split_whitespace().nth(3)?.split_once('/')?;
    running.parse().ok()
}

/// What the helper is doing.
pub(super) enum Help {
    /// Nothing: there is none, and the first process does everything itself.
    None,
    /// Nothing: the first process has done some of the acts itself, ahead of its orders.
    Ahead,
    /// It makes the network namespace. By and by there is a root to uncover.
    Making(Helper, Option<CoveredRoot>),
    /// It takes the old root off.
    Uncovering(Uncovering),
}

impl Help {
    /// Begins. Runs in the first process, before it has given anything up.
    pub(super) fn begin(subject: &Subject, hands: Hands) -> Result<Self, Errno> {
        match hands {
            Hands::One => Ok(Self::None),
            Hands::Two => Helper::begin(subject).map(|it| Self::Making(it, None)),
        }
    }

    /// Carries an act out, with the helper where it is of use.
    pub(super) fn carry_out(
        &mut self,
        subject: &Subject,
        act: &Ready,
        keep: Kept<'_>,
    ) -> Result<(), Refused> {
        match (act, std::mem::replace(self, Self::None)) {
            (Ready::Root(build), Self::Making(helper, _)) => {
                let covered = build.swap(subject);
                *self = Self::Making(helper, covered.ok());
                covered.map(|_covered| ())
            }
            (Ready::Network, Self::Making(helper, covered)) => {
                let (rest, joined) = helper.join(subject, covered);
                *self = Self::Uncovering(rest);
                joined.map_err(|errno| (0, errno))
            }
            (act, Self::Ahead) => {
                *self = Self::Ahead;
                ahead::carry_out(subject, act, keep)
            }
            (act, as_before) => {
                *self = as_before;
                act.carry_out(subject, keep)
            }
        }
    }

    /// Waits until the helper has ended, which has to be in any case, and well.
    pub(super) fn finish(self) -> Result<(), Errno> {
        match self {
            Self::None | Self::Ahead => Ok(()),
            // Nobody joined the network namespace: the command would have the host's.
            Self::Making(helper, _) => helper.dismiss().and(Err(Errno::INVAL)),
            Self::Uncovering(rest) => rest.finish(),
        }
    }
}

/// A helper that makes a network namespace.
pub(super) struct Helper {
    beside: Beside,
    answer: OwnedFd,
    order: OwnedFd,
}

/// A helper that takes the old root off, if there is one.
#[must_use = "the old root can be reached until it has ended"]
pub(super) struct Uncovering {
    beside: Beside,
}

/// What the helper hears and says, by number: it has a copy of every descriptor.
#[derive(Clone, Copy)]
struct Ends {
    tell: RawFd,
    hear: RawFd,
    /// The first process's own end.
    order: RawFd,
}

impl Helper {
    fn begin(subject: &Subject) -> Result<Self, Errno> {
        let (answer, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        let (hear, order) = pipe_with(PipeFlags::CLOEXEC)?;
        let ends = Ends {
            tell: tell.as_raw_fd(),
            hear: hear.as_raw_fd(),
            order: order.as_raw_fd(),
        };
        let beside = Spawn::new(Memory::Shared).start_beside(subject, ends, help)?;
        Ok(Self {
            beside,
            answer,
            order,
        })
    }

    /// Waits until the network namespace is made, joins it, and leaves the old root to the helper.
    fn join(
        self,
        subject: &Subject,
        covered: Option<CoveredRoot>,
    ) -> (Uncovering, Result<(), Errno>) {
        let Self {
            beside,
            answer,
            order,
        } = self;
        let joined = join(subject, &beside, &answer).and_then(|()| match covered {
            Some(covered) => write(&order, &covered.to_bytes()).map(|_count| ()),
            None => Ok(()),
        });
        (Uncovering { beside }, joined)
    }

    /// Has nothing for the helper to do any more.
    fn dismiss(self) -> Result<(), Errno> {
        let Self { beside, order, .. } = self;
        drop(order);
        Uncovering { beside }.finish()
    }
}

fn join(subject: &Subject, beside: &Beside, answer: &OwnedFd) -> Result<(), Errno> {
    let mut made = [0; 4];
    let count = retry_on_intr(|| read(answer, &mut made))?;
    if count != made.len() {
        return Err(Errno::CHILD);
    }
    match i32::from_ne_bytes(made) {
        0 => namespaces::join(subject, beside.as_fd(), Namespaces::NET),
        number => Err(Errno::from_raw_os_error(number)),
    }
}

impl Uncovering {
    /// Waits until nothing of the old root can be reached.
    fn finish(self) -> Result<(), Errno> {
        match self.beside.wait()? {
            Ended::Exited(0) => Ok(()),
            Ended::Exited(number) => Err(Errno::from_raw_os_error(i32::from(number))),
            Ended::Killed { .. } => Err(Errno::CHILD),
        }
    }
}

/// The life of the helper. Its status is zero, or what the kernel answered.
fn help(subject: &Subject, ends: &mut Ends) -> u8 {
    match make_and_uncover(subject, *ends) {
        Ok(()) => 0,
        Err(errno) => u8::try_from(errno.raw_os_error()).unwrap_or(u8::MAX),
    }
}

fn make_and_uncover(subject: &Subject, ends: Ends) -> Result<(), Errno> {
    // With our own copy open, the end of the orders would never be heard.
    let order = ends.order.unsigned_abs();
    descriptors::close_between(subject, order, order)?;
    let (tell, hear) = (
        descriptors::own(subject, ends.tell),
        descriptors::own(subject, ends.hear),
    );
    let made = namespaces::unshare(subject, Namespaces::NET)
        .and_then(|()| loopback::bring_up(subject))
        .map_or_else(Errno::raw_os_error, |()| 0);
    write(&tell, &made.to_ne_bytes())?;
    let mut order = [0; 8];
    let count = retry_on_intr(|| read(&hear, &mut order))?;
    if count != order.len() {
        // There is no old root to take off, or nobody who would want it.
        return Ok(());
    }
    mounts::uncover_root(subject, CoveredRoot::from_bytes(order))
}
