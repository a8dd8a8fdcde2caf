//! The words a dying child leaves for its parent.
//!
//! One message of fixed size through a close-on-exec pipe: it arrives whole or not at all,
//! and a pipe that closes in silence means that exec succeeded.

use std::os::fd::AsFd;

use rustix::io::{Errno, read, retry_on_intr, write};

pub use super::init::wire::FAILURE_BYTES;
use super::init::wire::{failure_bytes, read_failure};

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

impl Failure {
    /// The message as it travels.
    pub fn to_bytes(self) -> [u8; FAILURE_BYTES] {
        // Linux error numbers end at 4095.
        let [e0, e1, ..] = self.errno.raw_os_error().to_le_bytes();
        failure_bytes(self.act, u16::from_le_bytes([e0, e1]), self.detail)
    }

    /// Decodes, or `None` for bytes that [`to_bytes`](Self::to_bytes) never makes: the sender
    /// may no longer be ours.
    pub fn from_bytes(bytes: [u8; FAILURE_BYTES]) -> Option<Self> {
        let (act, errno, detail) = read_failure(bytes)?;
        Some(Self {
            act,
            errno: Errno::from_raw_os_error(i32::from(errno)),
            detail,
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
