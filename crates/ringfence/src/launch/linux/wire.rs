//! What the first process of a session tells its supervisor.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ringfence_core::plan::Step;

use ringfence_sys::Errno;
use ringfence_sys::wait::{Ended, Turn};
use rustix::io::{read, retry_on_intr, write};
use rustix::time::{ClockId, clock_gettime};

/// How the command ended, as it travels: two bytes of mark, the manner, the number.
const BYTES: usize = 4;
const MARK: [u8; 2] = *b"rf";
const EXITED: u8 = 0;
const KILLED: u8 = 1;
const STOPPED: u8 = 2;
const CONTINUED: u8 = 3;

/// What a first process says about the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Word {
    /// It is over, and nothing is left of it.
    Ended(Ended),
    /// It goes on.
    Continued,
    /// This signal has stopped it.
    Stopped(i32),
}

/// Sends how the command ended. Nothing can be done if the supervisor is gone.
pub(super) fn send_end(pipe: BorrowedFd<'_>, ended: Ended) {
    match ended {
        Ended::Exited(status) => send(pipe, EXITED, status),
        Ended::Killed { signal } => send(pipe, KILLED, signal.to_le_bytes()[0]),
    }
}

/// Says that a signal has stopped the command, or that it goes on.
pub(super) fn send_turn(pipe: BorrowedFd<'_>, turn: Turn) {
    match turn {
        Turn::Continued => send(pipe, CONTINUED, 0),
        Turn::Stopped { signal } => send(pipe, STOPPED, signal.to_le_bytes()[0]),
    }
}

fn send(pipe: BorrowedFd<'_>, manner: u8, number: u8) {
    let message = [MARK[0], MARK[1], manner, number];
    let _ = retry_on_intr(|| write(pipe, &message));
}

/// Reads what is said about the command; `None` if the first process went without a word.
pub(super) fn receive_word(pipe: impl AsFd) -> Result<Option<Word>, Errno> {
    let mut message = [0; BYTES];
    let count = retry_on_intr(|| read(pipe.as_fd(), &mut message))?;
    let [m0, m1, manner, number] = message;
    if count != BYTES || [m0, m1] != MARK {
        return Ok(None);
    }
    Ok(match manner {
        EXITED => Some(Word::Ended(Ended::Exited(number))),
        KILLED => Some(Word::Ended(Ended::Killed {
            signal: i32::from(number),
        })),
        STOPPED => Some(Word::Stopped(i32::from(number))),
        CONTINUED => Some(Word::Continued),
        _ => None,
    })
}

/// When a step was done, as it travels: the step, then nanoseconds on the monotonic clock.
const MARK_BYTES: usize = 9;

/// The monotonic clock, which all processes share.
pub(super) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(
        now.tv_sec.unsigned_abs(),
        now.tv_nsec.try_into().unwrap_or(0),
    )
}

/// Says that a step is done.
pub(super) fn send_mark(pipe: BorrowedFd<'_>, step: Step) {
    let position = Step::ALL.iter().position(|known| *known == step);
    let position = position.and_then(|position| u8::try_from(position).ok());
    let nanoseconds = u64::try_from(now().as_nanos()).unwrap_or(u64::MAX);
    let [n0, n1, n2, n3, n4, n5, n6, n7] = nanoseconds.to_ne_bytes();
    let message = [position.unwrap_or(u8::MAX), n0, n1, n2, n3, n4, n5, n6, n7];
    let _ = retry_on_intr(|| write(pipe, &message));
}

/// Reads every mark that was sent.
pub(super) fn receive_marks(pipe: impl AsFd) -> Vec<(Step, Duration)> {
    let mut marks = Vec::new();
    let mut message = [0; MARK_BYTES];
    while let Ok(MARK_BYTES) = retry_on_intr(|| read(pipe.as_fd(), &mut message)) {
        let [position, n0, n1, n2, n3, n4, n5, n6, n7] = message;
        let nanoseconds = u64::from_ne_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        if let Some(step) = Step::ALL.get(usize::from(position)) {
            marks.push((*step, Duration::from_nanos(nanoseconds)));
        }
    }
    marks
}
