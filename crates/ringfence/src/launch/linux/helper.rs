//! A second pair of hands while a session is set up, where a processor is free for it.
//!
//! Two things take the kernel as long as all mounts together, and nobody needs them before the
//! command starts: making a network namespace, and letting go of the old root. So a helper that
//! lives only for this makes the namespace, with its loopback interface up, while the first
//! process builds the root; once the first process has joined it, the helper takes the old root
//! off. The command starts when the helper has ended well, and not otherwise.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use ringfence_sys::mounts::{self, CoveredRoot};
use ringfence_sys::namespaces::{self, Namespaces};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::{self, Child, Ended};
use ringfence_sys::{Errno, Pid, Subject, descriptors, loopback};
use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

use super::acts::{Kept, Ready, Refused};
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

/// Whether a helper would have a processor to itself. On a busy machine it would have to wait for
/// its turn, and the first process for it.
fn is_worth_it() -> bool {
    // The kernel gives loads as fractions of this.
    const ONE: u64 = 1 << 16;
    let Ok(ours) = rustix::thread::sched_getaffinity(None) else {
        return false;
    };
    let processors = u64::from(ours.count());
    let [last_minute, ..] = rustix::system::sysinfo().loads;
    processors > 1 && last_minute < processors * ONE
}

/// What the helper is doing.
pub(super) enum Help {
    /// Nothing: there is none, and the first process does everything itself.
    None,
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
                let covered = build.swap(subject)?;
                *self = Self::Making(helper, Some(covered));
                Ok(())
            }
            (Ready::Network, Self::Making(helper, covered)) => {
                let rest = helper.join(subject, covered).map_err(|errno| (0, errno))?;
                *self = Self::Uncovering(rest);
                Ok(())
            }
            (act, as_before) => {
                *self = as_before;
                act.carry_out(subject, keep)
            }
        }
    }

    /// Waits until the helper has ended well.
    pub(super) fn finish(self) -> Result<(), Errno> {
        match self {
            Self::None => Ok(()),
            // Nobody joined the network namespace: the command would have the host's.
            Self::Making(..) => Err(Errno::INVAL),
            Self::Uncovering(rest) => rest.finish(),
        }
    }
}

/// A helper that makes a network namespace.
pub(super) struct Helper {
    child: Child,
    answer: OwnedFd,
    order: OwnedFd,
}

/// A helper that takes the old root off, if there is one.
#[must_use = "the old root can be reached until it has ended"]
pub(super) struct Uncovering {
    pid: Pid,
}

/// What the helper hears and says.
struct Ends {
    tell: OwnedFd,
    hear: OwnedFd,
    /// The first process's own end, of which the helper has a copy at birth.
    order: OwnedFd,
}

impl Helper {
    fn begin(_subject: &Subject) -> Result<Self, Errno> {
        let (answer, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        let (hear, order) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut ends = Ends { tell, hear, order };
        let child = Spawn::new(Memory::Copied).start(&mut ends, help)?;
        Ok(Self {
            child,
            answer,
            order: ends.order,
        })
    }

    /// Waits until the network namespace is made, joins it, and leaves the old root to the helper.
    fn join(self, subject: &Subject, covered: Option<CoveredRoot>) -> Result<Uncovering, Errno> {
        let mut answer = [0; 4];
        let count = retry_on_intr(|| read(&self.answer, &mut answer))?;
        if count != answer.len() {
            return Err(Errno::CHILD);
        }
        match i32::from_ne_bytes(answer) {
            0 => {}
            number => return Err(Errno::from_raw_os_error(number)),
        }
        namespaces::join(subject, self.child.as_fd(), Namespaces::NET)?;
        if let Some(covered) = covered {
            write(&self.order, &covered.to_bytes())?;
        }
        let pid = self.child.pid();
        Ok(Uncovering { pid })
    }
}

impl Uncovering {
    /// Waits until nothing of the old root can be reached.
    fn finish(self) -> Result<(), Errno> {
        loop {
            match wait::wait_any()? {
                (pid, Ended::Exited(0)) if pid == self.pid => return Ok(()),
                (pid, Ended::Exited(number)) if pid == self.pid => {
                    return Err(Errno::from_raw_os_error(i32::from(number)));
                }
                (pid, Ended::Killed { .. }) if pid == self.pid => return Err(Errno::CHILD),
                // Whoever that was, it is not what is waited for.
                _ => {}
            }
        }
    }
}

/// The life of the helper. Its status is zero, or what the kernel answered.
fn help(subject: &Subject, ends: &mut Ends) -> u8 {
    let made = namespaces::unshare(subject, Namespaces::NET)
        .and_then(|()| loopback::bring_up(subject))
        .map_or_else(Errno::raw_os_error, |()| 0);
    let done = write(&ends.tell, &made.to_ne_bytes()).and_then(|_| {
        // With our own copy open, the end of the orders would never be heard.
        let order = ends.order.as_raw_fd().unsigned_abs();
        descriptors::close_between(subject, order, order)?;
        let mut order = [0; 8];
        let count = retry_on_intr(|| read(&ends.hear, &mut order))?;
        if count != order.len() {
            // There is no old root to take off, or nobody who would want it.
            return Ok(());
        }
        mounts::uncover_root(subject, CoveredRoot::from_bytes(order))
    });
    match done {
        Ok(()) => 0,
        Err(errno) => u8::try_from(errno.raw_os_error()).unwrap_or(u8::MAX),
    }
}
