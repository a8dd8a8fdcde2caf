//! What the first process of a session tells its supervisor.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ringfence_core::plan::Step;

use ringfence_sys::Errno;
use ringfence_sys::init::wire::{MARK_BYTES, WORD_BYTES, Word, mark_bytes, read_mark};
use rustix::io::{read, retry_on_intr, write};
use rustix::time::{ClockId, clock_gettime};

/// Reads what is said about the command; `None` if the first process went without a word.
pub(super) fn receive_word(pipe: impl AsFd) -> Result<Option<Word>, Errno> {
    let mut message = [0; WORD_BYTES];
    let count = retry_on_intr(|| read(pipe.as_fd(), &mut message))?;
    Ok(Word::from_bytes(message).filter(|_| count == WORD_BYTES))
}

/// The number of a step, as it travels: there are far fewer than 256.
pub(super) fn number(step: Step) -> u8 {
    let position = Step::ALL.iter().position(|known| *known == step);
    position
        .and_then(|position| u8::try_from(position).ok())
        .unwrap_or(u8::MAX)
}

/// The monotonic clock, which all processes share.
pub(super) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(
        now.tv_sec.unsigned_abs(),
        now.tv_nsec.try_into().unwrap_or(0),
    )
}

/// Says when a step was done.
pub(super) fn send_mark(pipe: BorrowedFd<'_>, step: Step, done: Duration) {
    let nanoseconds = u64::try_from(done.as_nanos()).unwrap_or(u64::MAX);
    let message = mark_bytes(number(step), nanoseconds);
    let _ = retry_on_intr(|| write(pipe, &message));
}

/// Reads every mark that was sent.
pub(super) fn receive_marks(pipe: impl AsFd) -> Vec<(Step, Duration)> {
    let mut marks = Vec::new();
    let mut message = [0; MARK_BYTES];
    while let Ok(MARK_BYTES) = retry_on_intr(|| read(pipe.as_fd(), &mut message)) {
        let (position, nanoseconds) = read_mark(message);
        if let Some(step) = Step::ALL.get(usize::from(position)) {
            marks.push((*step, Duration::from_nanos(nanoseconds)));
        }
    }
    marks
}
