//! The proof that the calling process exists to be confined.

use rustix::io::Errno;

use super::procfs::ProcDir;

/// The calling process, when it is one that may be restricted.
///
/// Only two doors lead here: [`Spawn::start`](super::spawn::Spawn::start) hands one to the code
/// of a new child, and [`Subject::this_process`] gives one to a process that has a single
/// thread, such as a second stage that was executed for nothing else. Every function that
/// changes the process it runs in demands one, so a library call can never restrict, close or
/// redirect anything of its caller.
#[derive(Debug)]
pub struct Subject(());

impl Subject {
    /// For the body of a new child; the spawner is the only caller.
    pub(super) fn newborn() -> Self {
        Self(())
    }

    /// Claims the calling process, for a program that was started to confine itself.
    ///
    /// # Errors
    ///
    /// [`Errno::BUSY`] if the process has more than one thread: restrictions apply to single
    /// threads, and descriptors are shared between them. Otherwise the reason why
    /// `/proc/self/task` could not be counted.
    pub fn this_process() -> Result<Self, Errno> {
        match ProcDir::open()?.thread_count()? {
            1 => Ok(Self(())),
            _ => Err(Errno::BUSY),
        }
    }
}
