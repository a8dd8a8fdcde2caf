//! Sets of signals, and which of them a thread keeps from acting.

use rustix::io::Errno;

use crate::signals::{Bits, LAST, change};

/// The kernel's own signal set: one bit per signal, signal 1 lowest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mask(pub(crate) Bits);

impl Mask {
    /// No signal at all.
    pub const EMPTY: Self = Self(0);

    /// The same set with `signal` in it; numbers out of range change nothing.
    #[must_use]
    pub const fn with(self, signal: i32) -> Self {
        match signal {
            1..=LAST => Self(self.0 | 1 << (signal - 1)),
            _ => self,
        }
    }

    /// The same set without `signal`; numbers out of range change nothing.
    #[must_use]
    pub const fn without(self, signal: i32) -> Self {
        match signal {
            1..=LAST => Self(self.0 & !(1 << (signal - 1))),
            _ => self,
        }
    }

    /// Whether `signal` is in the set.
    pub const fn contains(self, signal: i32) -> bool {
        matches!(signal, 1..=LAST) && self.0 & 1 << (signal - 1) != 0
    }

    /// Blocks every signal for this thread and returns what was blocked before.
    ///
    /// # Errors
    ///
    /// Only those of an outer filter; the mask is then unchanged.
    pub fn block_all() -> Result<Self, Errno> {
        Self(Bits::MAX).swap()
    }

    /// Blocks the signals of this set, beside those that are, and returns what was blocked
    /// before: the first step towards reading them from a [`SignalFd`](crate::signals::SignalFd).
    ///
    /// # Errors
    ///
    /// As [`block_all`](Self::block_all).
    pub fn block(self) -> Result<Self, Errno> {
        let before = Self::current()?;
        Self(before.0 | self.0).swap()
    }

    /// What is blocked now.
    ///
    /// # Errors
    ///
    /// As [`block_all`](Self::block_all).
    pub fn current() -> Result<Self, Errno> {
        change(None)
    }

    /// Makes this the mask of the calling thread: the way back from [`block`](Self::block).
    ///
    /// # Errors
    ///
    /// As [`block_all`](Self::block_all).
    pub fn restore(self) -> Result<(), Errno> {
        self.swap().map(|_before| ())
    }

    fn swap(self) -> Result<Self, Errno> {
        change(Some(self))
    }
}
