//! The caller's standard streams, while a command has them.
//!
//! Whether a stream waits and whether it appends is said by its description, which the command
//! shares with whoever called ringfence. A command that leaves a terminal not waiting breaks the
//! shell behind it, and one that takes a log's appending away has the next line written over it.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::stdio::{stderr, stdin, stdout};

/// How the streams were. Dropping it makes them so again.
pub(crate) struct Lent([Option<OFlags>; 3]);

impl Lent {
    /// Remembers how they are.
    pub(crate) fn now() -> Self {
        Self(flags())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        for ((before, now), stream) in self.0.into_iter().zip(flags()).zip(streams()) {
            if let Some(before) = before.filter(|_| before != now) {
                // Whoever refuses this has taken the stream away.
                let _ = fcntl_setfl(stream, before);
            }
        }
    }
}

/// None of one that is closed.
fn flags() -> [Option<OFlags>; 3] {
    streams().map(|stream| fcntl_getfl(stream).ok())
}

fn streams() -> [rustix::fd::BorrowedFd<'static>; 3] {
    [stdin(), stdout(), stderr()]
}
