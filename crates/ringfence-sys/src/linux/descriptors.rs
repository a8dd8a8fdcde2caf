//! Descriptors of the calling process: closing the rest, and putting some in fixed places.
//!
//! Closing descriptors by number is only sound where nothing else holds them, which is why
//! these functions want a [`Subject`]: values of the caller that own descriptors are never
//! used again in a child.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

use super::raw;
use super::subject::Subject;

/// Closes every descriptor from `first` on.
///
/// # Errors
///
/// [`Errno::NOSYS`] before Linux 5.9: the launch must be refused, or the numbers walked.
pub fn close_from(_subject: &Subject, first: u32) -> Result<(), Errno> {
    close_range(first, u32::MAX, 0)
}

/// Closes every descriptor from `first` to `last`, both included.
///
/// # Errors
///
/// As [`close_from`].
pub fn close_between(_subject: &Subject, first: u32, last: u32) -> Result<(), Errno> {
    close_range(first, last, 0)
}

/// Marks every descriptor from `first` on to be closed by exec.
///
/// # Errors
///
/// [`Errno::INVAL`] before Linux 5.11.
pub fn close_from_at_exec(_subject: &Subject, first: u32) -> Result<(), Errno> {
    const CLOSE_RANGE_CLOEXEC: usize = 4;
    close_range(first, u32::MAX, CLOSE_RANGE_CLOEXEC)
}

fn close_range(first: u32, last: u32, flags: usize) -> Result<(), Errno> {
    // SAFETY: takes integers only. The descriptors that go away belonged to values of the
    // process this one was made from; the `Subject` that every caller demands says that those
    // are not used here again.
    unsafe {
        raw::call(
            libc::SYS_close_range,
            [first as usize, last as usize, flags, 0, 0, 0],
        )
    }
    .map(|_zero| ())
}

/// A copy, closed by exec, of what is open under `number`.
///
/// For descriptors that are known by their numbers alone: those that a starter left open, and
/// those that a user names. The number itself is left as it is.
///
/// # Errors
///
/// [`Errno::BADF`] if nothing is open under that number.
pub fn copy_of(number: u32) -> Result<OwnedFd, Errno> {
    const ABOVE_STANDARD: usize = 3;
    let words = [
        number as usize,
        raw::int_word(libc::F_DUPFD_CLOEXEC),
        ABOVE_STANDARD,
        0,
        0,
        0,
    ];
    // SAFETY: takes integers only, and answers with a descriptor that nobody had before. What is
    // open under `number` is neither closed nor taken over, so it may belong to anybody.
    unsafe { raw::call_for_fd(libc::SYS_fcntl, words) }
}

/// Takes over what is open under `number`, in a child that has its own copy of every descriptor and
/// was told of this one by number.
pub fn own(_subject: &Subject, number: RawFd) -> OwnedFd {
    // SAFETY: the descriptors of a new child are copies that no value of its own owns yet, and its
    // `Subject` says that the values it was made from are not used here again. A number under
    // which nothing is open is answered by every call with an error.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Makes `number` refer to the same open file as `source`, inherited by exec.
///
/// Whatever was open under that number is closed. When `source` already has that number only
/// its close-on-exec mark is taken off. To place several, see [`place_standard`].
///
/// # Errors
///
/// [`Errno::BADF`] for a number beyond the limit.
pub fn place(_subject: &Subject, source: BorrowedFd<'_>, number: RawFd) -> Result<(), Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    if source.as_raw_fd() == number {
        return fcntl_setfd(source, FdFlags::empty());
    }
    // SAFETY: takes integers only. What was open under `number` goes away, as with
    // `close_range` above.
    unsafe {
        raw::call(
            libc::SYS_dup3,
            [raw::fd_word(source), raw::int_word(number), 0, 0, 0, 0],
        )
    }
    .map(|_number| ())
}

/// Puts three descriptors in the places of standard input, output and error.
///
/// They may have any numbers, those of each other included: all are first moved out of the
/// way. Copies are left above 2, close-on-exec.
///
/// # Errors
///
/// For want of descriptors; 0 to 2 may then be partly replaced.
pub fn place_standard(subject: &Subject, streams: [BorrowedFd<'_>; 3]) -> Result<(), Errno> {
    const ABOVE_STANDARD: RawFd = 3;
    let [input, output, error] = streams;
    let input = ManuallyDrop::new(fcntl_dupfd_cloexec(input, ABOVE_STANDARD)?);
    let output = ManuallyDrop::new(fcntl_dupfd_cloexec(output, ABOVE_STANDARD)?);
    let error = ManuallyDrop::new(fcntl_dupfd_cloexec(error, ABOVE_STANDARD)?);
    for (number, stream) in (0..).zip([&input, &output, &error]) {
        place(subject, stream.as_fd(), number)?;
    }
    Ok(())
}
