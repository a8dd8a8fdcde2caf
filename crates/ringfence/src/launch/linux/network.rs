//! The network namespace, made while the root is built.
//!
//! Making one takes the kernel about as long as all mounts together, and neither needs the
//! other. So a helper that lives only for this makes it, brings its loopback interface up and
//! waits; the first process builds the root in the meantime, joins, and ends the helper. Until
//! then nothing has run but the acts of the plan, so nothing can have used the network.

use std::os::fd::{AsFd, OwnedFd};

use ringfence_sys::namespaces::{self, Namespaces};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Child;
use ringfence_sys::{Errno, Signal, Subject, loopback};
use rustix::event::poll;
use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

/// A network namespace that somebody is making.
pub(super) struct Making {
    helper: Child,
    answer: OwnedFd,
}

impl Making {
    /// Begins. Runs in the first process, before it has given anything up.
    pub(super) fn begin(_subject: &Subject) -> Result<Self, Errno> {
        let (answer, mut tell) = pipe_with(PipeFlags::CLOEXEC)?;
        let helper = Spawn::new(Memory::Copied).start(&mut tell, make)?;
        Ok(Self { helper, answer })
    }

    /// Waits until it is made, and moves the calling process into it.
    pub(super) fn join(self, subject: &Subject) -> Result<(), Errno> {
        let mut answer = [0; 4];
        let count = retry_on_intr(|| read(&self.answer, &mut answer))?;
        if count != answer.len() {
            return Err(Errno::CHILD);
        }
        match i32::from_ne_bytes(answer) {
            0 => {}
            number => return Err(Errno::from_raw_os_error(number)),
        }
        namespaces::join(subject, self.helper.as_fd(), Namespaces::NET)?;
        self.helper.signal(Signal::KILL)?;
        self.helper.wait()?;
        Ok(())
    }
}

/// The life of the helper.
fn make(subject: &Subject, tell: &mut OwnedFd) -> u8 {
    let made = namespaces::unshare(subject, Namespaces::NET)
        .and_then(|()| loopback::bring_up(subject))
        .map_or_else(Errno::raw_os_error, |()| 0);
    if write(&*tell, &made.to_ne_bytes()).is_err() {
        return 1;
    }
    // It is ended by whoever joins; if that one goes first, the kernel ends both.
    loop {
        let _ = poll(&mut [], None);
    }
}
