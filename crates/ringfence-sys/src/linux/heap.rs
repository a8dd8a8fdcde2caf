//! The heap of a program that starts often and lives briefly.
//!
//! A start allocates and gives back some thousand times, nearly always with one thread. Where each
//! time is a call into the C library and back for a lock, the lock costs more than the memory.

use std::alloc::{GlobalAlloc, Layout};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::Dlmalloc;

/// An allocator for a whole program.
pub struct Heap(Mutex<Dlmalloc>);

impl Heap {
    /// One that has asked the kernel for nothing yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Dlmalloc::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Dlmalloc> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of what is in it: whoever writes this may need some of it.
        f.write_str("Heap")
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: every pointer comes from one heap and goes back to it, with the size and alignment it was asked
// for with; the heap is only used by whoever holds the lock, which neither allocates nor panics.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's own promises about the layout.
        unsafe { self.lock().malloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above, and the memory is of this heap and this layout.
        unsafe { self.lock().free(memory, layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's own promises about the layout.
        unsafe { self.lock().calloc(layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above, and the memory is of this heap and this layout.
        unsafe {
            self.lock()
                .realloc(memory, layout.size(), layout.align(), size)
        }
    }
}
