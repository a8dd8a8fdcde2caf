//! Any call by its number, for tests of what a filter answers.
//!
//! Only with the feature `testing`, which no release has. The call is made in a child that is a
//! copy of this process and does nothing else: whatever it does to memory, descriptors, rights or
//! namespaces ends with that child.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

use super::raw;
use super::spawn::{Memory, Spawn};
use super::subject::Subject;
use super::wait::Ended;

/// Through which door the kernel is entered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Entry {
    /// The one every program uses.
    Native,
    /// The one of 32-bit programs, whose numbers differ. Arguments are left to chance.
    #[cfg(target_arch = "x86_64")]
    Interrupt,
}

/// One argument of a call.
#[derive(Clone, Copy, Debug)]
pub enum Word<'a> {
    /// As it is.
    Number(u64),
    /// The address of a text.
    Text(&'a CStr),
    /// The address of some bytes.
    Bytes(&'a [u8]),
}

impl Word<'_> {
    fn value(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Text(text) => text.as_ptr().expose_provenance() as u64,
            Self::Bytes(bytes) => bytes.as_ptr().expose_provenance() as u64,
        }
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It succeeded and returned this.
    Returned(u64),
    /// It failed.
    Failed(Errno),
    /// It ended the process that made it.
    Killed {
        /// The number of the signal.
        signal: i32,
    },
    /// The process that made it could not tell.
    Silent,
}

struct Context {
    entry: Entry,
    number: u64,
    words: [u64; 6],
    answer: OwnedFd,
}

/// Makes one call in a child and says what became of it.
///
/// # Errors
///
/// No child could be had.
pub fn call_in_child(entry: Entry, number: u64, words: [Word<'_>; 6]) -> Result<Answer, Errno> {
    let (heard, answer) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut context = Context {
        entry,
        number,
        words: words.map(Word::value),
        answer,
    };
    let child = Spawn::new(Memory::Copied).start(&mut context, make_call)?;
    drop(context);
    let mut bytes = [0; 8];
    let count = retry_on_intr(|| read(&heard, &mut bytes))?;
    if let Ended::Killed { signal } = child.wait()? {
        return Ok(Answer::Killed { signal });
    }
    if count != bytes.len() {
        return Ok(Answer::Silent);
    }
    let value = i64::from_ne_bytes(bytes);
    let failed = i32::try_from(-value)
        .ok()
        .filter(|errno| (1..4096).contains(errno));
    Ok(failed.map_or_else(
        || Answer::Returned(value.cast_unsigned()),
        |errno| Answer::Failed(Errno::from_raw_os_error(errno)),
    ))
}

fn make_call(_subject: &Subject, context: &mut Context) -> u8 {
    let value = match context.entry {
        Entry::Native => native(context.number, context.words),
        #[cfg(target_arch = "x86_64")]
        Entry::Interrupt => interrupt(context.number),
    };
    // If the call closed the pipe nobody can be told.
    let _ = write(context.answer.as_fd(), &value.to_ne_bytes());
    0
}

fn native(number: u64, words: [u64; 6]) -> i64 {
    // Both are 64 bits wide on the architectures of this crate.
    let words = words.map(|word| usize::from_ne_bytes(word.to_ne_bytes()));
    // SAFETY: nothing is known about the call, and nothing needs to be: this process is a copy
    // made for it, holds no value that anybody will drop or read again, and ends right after. The
    // original shares no memory with it.
    let answer = unsafe { raw::call(number.cast_signed(), words) };
    match answer {
        Ok(value) => (value as u64).cast_signed(),
        Err(errno) => -i64::from(errno.raw_os_error()),
    }
}

#[cfg(target_arch = "x86_64")]
fn interrupt(number: u64) -> i64 {
    let answer: u64;
    // SAFETY: as for `native`: whatever the call does, it does to a copy that ends right after.
    // The kernel preserves every register of this entry but `rax` and, on old kernels, r8 to r11.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("rax") number => answer,
            lateout("r8") _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("r11") _,
        );
    }
    // A 32-bit answer, sign and all.
    let low = answer & 0xffff_ffff;
    i64::from(u32::try_from(low).unwrap_or(u32::MAX).cast_signed())
}
