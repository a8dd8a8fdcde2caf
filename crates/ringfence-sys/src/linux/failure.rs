//! The words a dying child leaves for its parent.
//!
//! One message of fixed size through a close-on-exec pipe: it arrives whole or not at all,
//! and a pipe that closes in silence means that exec succeeded.

use std::os::fd::AsFd;

use rustix::io::{Errno, read, retry_on_intr, write};

/// Which act failed, what the kernel said, and one number of detail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Failure {
    /// Which act, by the sender's own numbering.
    pub act: u16,
    /// What the kernel answered.
    pub errno: Errno,
    /// Whatever helps to name the object: an index into the plan, say.
    pub detail: u32,
}

/// The size of a message: far below what a pipe writes in one piece.
pub const FAILURE_BYTES: usize = 12;

/// Begins every message; noise that was written by mistake is not taken for one.
const MARK: [u8; 4] = *b"rffl";

impl Failure {
    /// The message as it travels.
    pub const fn to_bytes(self) -> [u8; FAILURE_BYTES] {
        let [m0, m1, m2, m3] = MARK;
        let [a0, a1] = self.act.to_ne_bytes();
        // Linux error numbers end at 4095.
        let [e0, e1, ..] = self.errno.raw_os_error().to_le_bytes();
        let [d0, d1, d2, d3] = self.detail.to_ne_bytes();
        [m0, m1, m2, m3, a0, a1, e0, e1, d0, d1, d2, d3]
    }

    /// Decodes, or `None` for bytes that [`to_bytes`](Self::to_bytes) never makes: the sender
    /// may no longer be ours.
    pub fn from_bytes(bytes: [u8; FAILURE_BYTES]) -> Option<Self> {
        let [m0, m1, m2, m3, a0, a1, e0, e1, d0, d1, d2, d3] = bytes;
        let errno = u16::from_le_bytes([e0, e1]);
        ([m0, m1, m2, m3] == MARK && matches!(errno, 1..=4095)).then(|| Self {
            act: u16::from_ne_bytes([a0, a1]),
            errno: Errno::from_raw_os_error(i32::from(errno)),
            detail: u32::from_ne_bytes([d0, d1, d2, d3]),
        })
    }

    /// Sends the message from the child.
    ///
    /// # Errors
    ///
    /// Those of writing. The child must exit with a failure status either way.
    pub fn send(self, pipe: impl AsFd) -> Result<(), Errno> {
        let bytes = self.to_bytes();
        match retry_on_intr(|| write(pipe.as_fd(), &bytes))? {
            FAILURE_BYTES => Ok(()),
            _ => Err(Errno::IO),
        }
    }

    /// Reads what the child left: `None` if it closed the pipe without a word.
    ///
    /// # Errors
    ///
    /// Those of reading; [`Errno::BADMSG`] for anything but one whole message.
    pub fn receive(pipe: impl AsFd) -> Result<Option<Self>, Errno> {
        let mut bytes = [0; FAILURE_BYTES];
        match retry_on_intr(|| read(pipe.as_fd(), &mut bytes))? {
            0 => Ok(None),
            FAILURE_BYTES => Self::from_bytes(bytes).map(Some).ok_or(Errno::BADMSG),
            _ => Err(Errno::BADMSG),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_survives_the_trip() {
        for errno in [1, 13, 38, 4095] {
            let failure = Failure {
                act: 7,
                errno: Errno::from_raw_os_error(errno),
                detail: 0xdead_beef,
            };
            assert_eq!(Failure::from_bytes(failure.to_bytes()), Some(failure));
        }
    }

    #[test]
    fn foreign_bytes_are_no_message() {
        let good = Failure {
            act: 1,
            errno: Errno::PERM,
            detail: 0,
        }
        .to_bytes();
        for index in 0..4 {
            let mut bad = good;
            bad[index] ^= 1;
            assert_eq!(Failure::from_bytes(bad), None);
        }
        let mut no_errno = good;
        no_errno[6] = 0;
        assert_eq!(Failure::from_bytes(no_errno), None);
        let mut wild_errno = good;
        wild_errno[7] = 0xff;
        assert_eq!(Failure::from_bytes(wild_errno), None);
    }
}
