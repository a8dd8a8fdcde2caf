//! A stack for a child that shares our memory.

use std::ffi::c_void;
use std::ptr;

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Enough for unoptimised code with several page-sized buffers; pages that are not touched
/// cost nothing.
const USABLE: usize = 256 * 1024;

/// Covers every page size the two architectures use (4, 16 and 64 KiB).
const GUARD: usize = 64 * 1024;

/// Mapped memory with a guard below it, so that an overflow faults instead of spoiling the
/// heap of the process that waits.
#[derive(Debug)]
pub(super) struct Stack {
    base: *mut c_void,
}

impl Stack {
    pub(super) fn map() -> Result<Self, Errno> {
        // SAFETY: the address is the kernel's choice, so no existing mapping is replaced, and
        // the memory is private and anonymous: nothing else refers to it.
        let base = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                GUARD + USABLE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let stack = Self { base };
        // SAFETY: the range is the lower part of the mapping made above, aligned to any page
        // size in use, and nobody has a reference into it.
        unsafe { mprotect(stack.base, GUARD, MprotectFlags::empty()) }?;
        Ok(stack)
    }

    /// The lowest usable address, as `clone3` wants it.
    pub(super) fn bottom(&self) -> usize {
        self.base.expose_provenance() + GUARD
    }

    /// The address behind the highest usable byte.
    pub(super) fn top(&self) -> usize {
        self.bottom() + USABLE
    }

    /// Lays a value down below `top`, for the child to find; its place, and the top that is left.
    ///
    /// # Errors
    ///
    /// [`Errno::NOMEM`] for a value that leaves no room for anything else.
    pub(super) fn lay<T>(&self, top: usize, value: T) -> Result<(*mut T, usize), Errno> {
        // What both architectures want of a stack, and more than the values here want.
        const ALIGNED: usize = 16;
        const { assert!(align_of::<T>() <= ALIGNED) }
        let at = top
            .checked_sub(size_of::<T>())
            .map(|at| at & !(ALIGNED - 1))
            .filter(|at| top <= self.top() && *at >= self.bottom() + USABLE / 2)
            .ok_or(Errno::NOMEM)?;
        let place = self.base.with_addr(at).cast::<T>();
        // SAFETY: between `at` and `top`, inside of the mapping, where nothing lies yet; aligned.
        unsafe { place.write(value) };
        Ok((place, at))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: base and length are exactly those of the mapping made in `map`. The one user
        // of the memory is a child that the kernel has told us is done with it: with
        // CLONE_VFORK the spawning call returns only after the child's exec or exit, and a child
        // beside us has been waited for.
        let _unmapped = unsafe { munmap(self.base, GUARD + USABLE) };
    }
}
