//! What the first process of a session tells its supervisor.

use std::os::fd::{AsFd, BorrowedFd};

use ringfence_sys::Errno;
use ringfence_sys::wait::Ended;
use rustix::io::{read, retry_on_intr, write};

/// How the command ended, as it travels: two bytes of mark, the manner, the number.
const BYTES: usize = 4;
const MARK: [u8; 2] = *b"rf";
const EXITED: u8 = 0;
const KILLED: u8 = 1;

/// Sends how the command ended. Nothing can be done if the supervisor is gone.
pub(super) fn send_end(pipe: BorrowedFd<'_>, ended: Ended) {
    let (manner, number) = match ended {
        Ended::Exited(status) => (EXITED, status),
        Ended::Killed { signal } => (KILLED, signal.to_le_bytes()[0]),
    };
    let message = [MARK[0], MARK[1], manner, number];
    let _ = retry_on_intr(|| write(pipe, &message));
}

/// Reads how the command ended; `None` if the first process went without a word.
pub(super) fn receive_end(pipe: impl AsFd) -> Result<Option<Ended>, Errno> {
    let mut message = [0; BYTES];
    let count = retry_on_intr(|| read(pipe.as_fd(), &mut message))?;
    let [m0, m1, manner, number] = message;
    if count != BYTES || [m0, m1] != MARK {
        return Ok(None);
    }
    Ok(match manner {
        EXITED => Some(Ended::Exited(number)),
        KILLED => Some(Ended::Killed {
            signal: i32::from(number),
        }),
        _ => None,
    })
}
