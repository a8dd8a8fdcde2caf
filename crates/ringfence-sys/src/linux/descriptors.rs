//! Descriptors of the calling process: closing the rest, and putting some in fixed places.
//!
//! Closing descriptors by number is only sound where nothing else holds them, which is why
//! these functions want a [`Subject`]: values of the caller that own descriptors are never
//! used again in a child.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags, RawDir, open};
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

/// Gives this process a table of descriptors of its own, if it has that of somebody else: what it
/// closes and replaces from now on is its own affair.
///
/// # Errors
///
/// The kernel's answer.
pub fn part(_subject: &Subject) -> Result<(), Errno> {
    const CLONE_FILES: usize = 0x400;
    // SAFETY: takes one integer. Every descriptor stays what it is, here and elsewhere.
    unsafe { raw::call(libc::SYS_unshare, [CLONE_FILES, 0, 0, 0, 0, 0]) }.map(|_zero| ())
}

/// Marks every descriptor from `first` on to be closed by exec.
///
/// # Errors
///
/// Before Linux 5.11 those of listing `/proc/self/fd`, where the open ones are looked up.
pub fn close_from_at_exec(_subject: &Subject, first: u32) -> Result<(), Errno> {
    const CLOSE_RANGE_CLOEXEC: usize = 4;
    match close_range(first, u32::MAX, CLOSE_RANGE_CLOEXEC) {
        // Linux 5.9 and 5.10 have the call and do not know the flag.
        Err(Errno::INVAL) => mark_one_by_one(first),
        other => other,
    }
}

fn mark_one_by_one(first: u32) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = open(c"/proc/self/fd", flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&listed, &mut buffer);
    while let Some(entry) = entries.next() {
        let name = entry?;
        // The two names that are not numbers are the directory itself and the one above.
        let number = name
            .file_name()
            .to_str()
            .ok()
            .and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|number| *number >= first) {
            mark(number)?;
        }
    }
    Ok(())
}

fn mark(number: u32) -> Result<(), Errno> {
    let words = [
        number as usize,
        raw::int_word(libc::F_SETFD),
        raw::int_word(libc::FD_CLOEXEC),
        0,
        0,
        0,
    ];
    // SAFETY: takes integers only. Nothing is closed before an exec, after which no value of this
    // process is left that could use the descriptor.
    unsafe { raw::call(libc::SYS_fcntl, words) }.map(|_zero| ())
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::fcntl_getfd;

    /// Linux 5.10 has no better way; tests/kernels/run goes it there.
    #[test]
    fn without_the_flag_each_descriptor_is_marked() {
        // Far from those that other tests hold at this moment.
        const FAR: RawFd = 700;
        let null = open(c"/dev/null", OFlags::RDONLY, Mode::empty()).unwrap();
        let [below, above] = [FAR, FAR + 50].map(|number| {
            let copy = fcntl_dupfd_cloexec(&null, number).unwrap();
            fcntl_setfd(&copy, FdFlags::empty()).unwrap();
            copy
        });
        mark_one_by_one(above.as_raw_fd().unsigned_abs()).unwrap();
        assert_eq!(fcntl_getfd(&above), Ok(FdFlags::CLOEXEC));
        assert_eq!(fcntl_getfd(&below), Ok(FdFlags::empty()));
    }
}
