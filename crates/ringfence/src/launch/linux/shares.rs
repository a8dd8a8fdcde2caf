//! What all processes of a user share, of which one session gets a half.
//!
//! Inotify instances and watches, queued signals and message queues are counted for each user, in
//! every user namespace up to the host's. Whoever may take all of them inside leaves none outside:
//! editors would hear of no change any more, and no timer could be made. A session has bounds of
//! its own instead.
//!
//! Limits cost nothing. The switches of a new user namespace cost the kernel some 50 µs each, and few
//! commands ever listen: where a supervisor is asked anyway, it is also asked about the first inotify
//! instance, and sets them then.

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use ringfence_core::plan::{Act, Plan};
use ringfence_core::seccomp::{Creating, Syscall};
use ringfence_sys::Subject;
use ringfence_sys::namespaces::{self, Namespaces};
use ringfence_sys::notify::Notification;
use ringfence_sys::process::{self, Limit, LimitedResource};
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::spawn::{Memory, Spawn};

use super::bounds::exactly;

/// What stands in the switches of a user namespace that nobody has bounded.
const UNBOUNDED: u64 = 0x7fff_ffff;

/// Bounds of a user namespace, and where the host's own stands.
const COUNTED: [(&CStr, &str, &str); 2] = [
    (
        c"sys/user/max_inotify_instances",
        "/proc/sys/user/max_inotify_instances",
        "/proc/sys/fs/inotify/max_user_instances",
    ),
    (
        c"sys/user/max_inotify_watches",
        "/proc/sys/user/max_inotify_watches",
        "/proc/sys/fs/inotify/max_user_watches",
    ),
];

/// The bounds of a session's user namespace, as they are written.
#[derive(Debug)]
pub(super) struct Shares([Option<String>; 2]);

impl Shares {
    /// Finds out what there is to share.
    pub(super) fn find() -> Self {
        Self(COUNTED.map(|(_, ours, of_all)| {
            let ours = number(ours)?;
            let bound = if ours < UNBOUNDED {
                ours
            } else {
                ours.min(number(of_all)?)
            };
            Some(half(bound).to_string())
        }))
    }

    /// Bounds the user namespace of the calling process, which must own it.
    ///
    /// A container may show these switches read-only, or not at all. Then the session can use up
    /// what its user may have, as any program of the user's can, and that is no reason not to start.
    pub(super) fn bound(&self, proc_dir: &ProcDir) {
        for ((file, ..), bound) in COUNTED.iter().zip(&self.0) {
            if let Some(bound) = bound {
                let _ = proc_dir.write_file(file, bound.as_bytes());
            }
        }
    }
}

/// Whether the supervisor hears of a session's first inotify instance.
pub(super) fn are_asked_about(plan: &Plan) -> bool {
    let asks = |act: &Act| matches!(act, Act::Seccomp(spec) if spec.creating == Creating::Asked);
    plan.acts().iter().any(asks)
}

/// Whether a call is the one that is asked about.
pub(super) fn are_taken_by(call: &Notification) -> bool {
    let arch = super::guard::arch();
    let calls = [Syscall::InotifyInit, Syscall::InotifyInit1];
    let mut numbers = calls.into_iter().filter_map(|call| call.number(arch));
    numbers.any(|number| i32::from(number) == call.number)
}

/// Bounds the user namespace of a session that runs already.
///
/// In a process of its own, for nobody comes back from a user namespace. As at the start, a host
/// that does not let us is no reason to refuse the call.
pub(super) fn bound(user: &OwnedFd) {
    let mut order = (user, Shares::find());
    if let Ok(child) = Spawn::new(Memory::Copied).start(&mut order, bound_from_inside) {
        let _ = child.wait();
    }
}

fn bound_from_inside(subject: &Subject, (user, shares): &mut (&OwnedFd, Shares)) -> u8 {
    let done = namespaces::enter(subject, user.as_fd(), Namespaces::USER)
        .and_then(|()| ProcDir::open())
        .map(|proc_dir| shares.bound(&proc_dir));
    u8::from(done.is_err())
}

/// Limits on what is counted for each user, a half of what this process may have.
pub(super) fn limits() -> impl Iterator<Item = (LimitedResource, Limit)> {
    let counted = [LimitedResource::Sigpending, LimitedResource::Msgqueue];
    counted.into_iter().filter_map(|resource| {
        let bound = process::limit(resource).current?;
        Some((resource, exactly(half(bound))))
    })
}

/// The larger one: whoever may have only one can have it.
fn half(bound: u64) -> u64 {
    bound.div_ceil(2)
}

fn number(file: &str) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
