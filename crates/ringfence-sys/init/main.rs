//! The program that the first process of a session becomes.
//!
//! A session's first process is inside every restriction and lives as long as the session does.
//! As a copy of the supervisor it would carry the supervisor's memory into the sandbox, and making
//! the copy would take longer the larger the supervisor is. So it becomes this program instead:
//! no C library, no allocator, nothing in its memory but its orders.
//!
//! It is built by the build script of `ringfence-sys`, lies in the library as bytes, and is run
//! from a sealed memory file (`ringfence_sys::init`). Arguments: a name, and [the orders](wire::Orders).
//! Environment, which nobody else can read: the names of the program to run, the command's arguments,
//! an empty string, and the command's variables.
#![no_std]
#![no_main]

mod bare;
mod calls;
mod life;
mod memory;
#[expect(dead_code, reason = "half of it is for the other end")]
mod wire;

use core::arch::global_asm;

use life::{FAILED, Life};
use wire::{ORDERS_BYTES, Orders};

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {begin}",
    "ud2",
    begin = sym begin,
);
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x0, sp",
    "bl {begin}",
    "brk #1",
    begin = sym begin,
);

/// The first Rust code. `start` is the stack as the kernel laid it out.
extern "C" fn begin(start: *const usize) -> ! {
    // SAFETY: the kernel lays the number of arguments there, then as many pointers and a null,
    // then pointers to variables and a null.
    let count = unsafe { *start };
    // SAFETY: as above: the pointers follow the count.
    let arguments = unsafe { start.add(1) }.cast::<*const u8>();
    calls::exit(live(count, arguments))
}

fn live(count: usize, arguments: *const *const u8) -> u8 {
    if count != 2 {
        return FAILED;
    }
    // SAFETY: there are two arguments.
    let text = unsafe { arguments.add(1) };
    // SAFETY: as above.
    let Some(orders) = orders(unsafe { *text }) else {
        return FAILED;
    };
    // SAFETY: the environment begins behind the arguments' null pointer.
    let programs = unsafe { arguments.add(count + 1) };
    let (names, words) = (orders.programs as usize, orders.arguments as usize);
    if length(programs) <= names.saturating_add(words) {
        return FAILED;
    }
    // SAFETY: no more than the environment has, as was counted above.
    let rest = unsafe { programs.add(names) };
    // SAFETY: as above.
    let end = unsafe { rest.add(words) };
    // SAFETY: there is one more, which only keeps the place; it lies in our own stack, which can be
    // written.
    unsafe { end.cast_mut().write(core::ptr::null()) };
    // SAFETY: not beyond the null pointer that the environment ends in.
    let environment = unsafe { end.add(1) };
    let life = Life {
        orders,
        programs,
        arguments: rest,
        environment,
    };
    life.live(|| {
        forget(arguments);
        forget(programs);
        forget(environment);
    })
}

/// How many strings an array has.
fn length(strings: *const *const u8) -> usize {
    let mut count = 0;
    loop {
        // SAFETY: the array ends in a null pointer, at which this ends.
        let string = unsafe { strings.add(count) };
        // SAFETY: as above.
        if unsafe { *string }.is_null() {
            return count;
        }
        count += 1;
    }
}

/// Reads the orders from the argument that they are.
fn orders(text: *const u8) -> Option<Orders> {
    let mut bytes = [0; ORDERS_BYTES];
    for (index, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: the kernel lays every argument out with its NUL, at which this ends.
        let place = unsafe { text.add(index) };
        // SAFETY: as above.
        *byte = unsafe { *place };
        if *byte == 0 {
            return None;
        }
    }
    // SAFETY: none of the bytes before is the NUL.
    let end = unsafe { text.add(ORDERS_BYTES) };
    // SAFETY: as above.
    let end = unsafe { *end };
    Orders::from_text(&bytes).filter(|_| end == 0)
}

/// Overwrites strings that are not needed any more.
fn forget(mut strings: *const *const u8) {
    loop {
        // SAFETY: the array ends in a null pointer, at which this ends.
        let mut byte = unsafe { *strings }.cast_mut();
        if byte.is_null() {
            return;
        }
        // SAFETY: every string ends in a NUL, at which this ends; they lie in our own stack, which
        // can be written.
        while unsafe { byte.read_volatile() } != 0 {
            // SAFETY: as above.
            unsafe { byte.write_volatile(0) };
            // SAFETY: not beyond the string's own NUL.
            byte = unsafe { byte.add(1) };
        }
        // SAFETY: not beyond the null pointer.
        strings = unsafe { strings.add(1) };
    }
}

/// Nothing here panics; if it did, the session would end.
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    calls::exit(FAILED)
}
