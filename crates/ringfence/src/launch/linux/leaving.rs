//! What is left of a session when its report has been made.

use std::os::fd::OwnedFd;

use ringfence_sys::wait::Child;
use ringfence_sys::{Errno, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::pidfd_send_signal;

use super::running::Running;

/// The first process of a session that is over, and nobody else. Dropping this ends it, and waits
/// until it is gone.
#[derive(Debug)]
#[must_use = "somebody has to wait for it"]
pub(in crate::launch) struct Leaving {
    first: Option<Child>,
    /// The one inside, if that is another.
    inner: Option<OwnedFd>,
}

impl Running {
    /// Lets go of a session that is over, and returns what has to be ended and waited for. The kernel
    /// takes its time with taking down the mounts, and only whoever reaps needs to wait for that.
    pub(in crate::launch) fn leave(mut self) -> Leaving {
        // A group can only be removed when nobody is in it any more.
        let first = if self.reaped || self.held.group.is_some() {
            None
        } else {
            self.first.try_clone().ok()
        };
        let inner = self.inner.take_if(|_| first.is_some());
        self.reaped |= first.is_some();
        Leaving { first, inner }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        end_inner(self.inner.as_ref());
        if let Some(first) = &self.first {
            // It would go by itself once nobody holds the other end of its pipe, but whoever was
            // forked meanwhile holds it as well. Already gone, and reaped, is as good as ended.
            let _ = first.signal(Signal::KILL);
            let _ = first.wait();
        }
    }
}

/// Ends the first process inside and waits until it is gone, and all others inside with it.
pub(super) fn end_inner(inner: Option<&OwnedFd>) {
    let Some(inner) = inner else {
        return;
    };
    // Already gone is as good as ended.
    let _ = pidfd_send_signal(inner, Signal::KILL);
    let mut watched = [PollFd::new(inner, PollFlags::IN)];
    while let Err(Errno::INTR) = poll(&mut watched, None) {}
}
