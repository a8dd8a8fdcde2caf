//! The bare system call, for what rustix does not have.
//!
//! Nothing here knows what a call means. Each caller states why its own arguments are what
//! the kernel demands.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

#[path = "../../init/bare.rs"]
pub(super) mod bare;

/// Makes one system call and turns its answer into a value.
///
/// Allocation-free and lock-free, and `errno` is left alone: a child that shares our memory would
/// write ours.
///
/// # Safety
///
/// Whatever the kernel demands of `number`: every word that it reads as a pointer must be
/// valid for the access it makes, and the effect of the call must not break memory that Rust
/// code relies on.
pub(super) unsafe fn call(number: libc::c_long, words: [usize; 6]) -> Result<usize, Errno> {
    let number = usize::try_from(number).map_err(|_| Errno::NOSYS)?;
    // SAFETY: passed on to the caller, whose demands are the same.
    answered(unsafe { bare::system_call(number, words) })
}

/// The kernel's answer: a value, or the negative of an error.
pub(super) fn answered(answer: isize) -> Result<usize, Errno> {
    usize::try_from(answer)
        .map_err(|_| i32::try_from(-answer).map_or(Errno::OVERFLOW, Errno::from_raw_os_error))
}

/// As [`call`], for calls that answer with a new descriptor.
///
/// # Safety
///
/// As [`call`]; and on success the kernel must return a descriptor that is open and belongs
/// to nobody else.
pub(super) unsafe fn call_for_fd(
    number: libc::c_long,
    words: [usize; 6],
) -> Result<OwnedFd, Errno> {
    // SAFETY: passed on to the caller, whose demands are the same.
    let answer = unsafe { call(number, words) }?;
    let fd = RawFd::try_from(answer).map_err(|_| Errno::OVERFLOW)?;
    // SAFETY: the caller vouches that a successful answer is a fresh descriptor of ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A descriptor as the kernel wants it in a register.
pub(super) fn fd_word(fd: BorrowedFd<'_>) -> usize {
    int_word(fd.as_raw_fd())
}

/// An `int` as the kernel wants it in a register: it looks at the low half only.
pub(super) fn int_word(value: i32) -> usize {
    value.cast_unsigned() as usize
}

/// The address of a value that the kernel only reads.
pub(super) fn address<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<u8>().expose_provenance()
}

/// The address of a value that the kernel writes.
///
/// The provenance is exposed, because the pointer travels as a plain word.
pub(super) fn address_mut<T: ?Sized>(value: &mut T) -> usize {
    std::ptr::from_mut(value).cast::<u8>().expose_provenance()
}
