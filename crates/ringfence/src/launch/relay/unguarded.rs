//! No guardian: where a supervisor is killed the user's terminal stays as it is.

use std::os::fd::BorrowedFd;

use ringfence_sys::Errno;
use ringfence_sys::terminal::Modes;

/// What a guardian would read.
#[derive(Debug)]
pub(super) struct Undo;

#[expect(
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "the same shape as where there is one"
)]
impl Undo {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self)
    }

    pub(super) fn remember(&mut self, _undo: Vec<u8>) {}
}

/// There is none here.
#[derive(Debug)]
pub(super) enum Guardian {}

impl Guardian {
    pub(super) fn start(
        _terminal: BorrowedFd<'_>,
        _before: &Modes,
        _raw: &Modes,
        _undo: &Undo,
    ) -> Result<Self, Errno> {
        Err(Errno::NOSYS)
    }
}
