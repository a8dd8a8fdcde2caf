//! The system call instruction.
//!
//! Both the library and the first process's program compile this file. No C library is in between:
//! the first process has none, and a child that shares its parent's memory must not write to the
//! place where that keeps its last error.

use core::arch::asm;

/// Makes one system call. The answer is the kernel's: a value, or the negative of an error.
///
/// # Safety
///
/// Whatever the kernel demands of `number`: every word that it takes for a pointer must be valid
/// for the access it makes, and the effect of the call must not break memory that Rust code relies
/// on.
pub(crate) unsafe fn system_call(number: usize, words: [usize; 6]) -> isize {
    let [first, second, third, fourth, fifth, sixth] = words;
    let answer: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller vouches for the words. The kernel changes rax, rcx and r11 and preserves
    // the rest; it ignores registers that a call does not use.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            in("r8") fifth,
            in("r9") sixth,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as for x86-64; the kernel changes x0 alone.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") first => answer,
            in("x1") second,
            in("x2") third,
            in("x3") fourth,
            in("x4") fifth,
            in("x5") sixth,
            options(nostack),
        );
    }
    answer
}
