//! The four functions that compiled code expects to find, which a C library would bring.
//!
//! Every access is volatile: otherwise the compiler would recognise the loop, and call the function
//! that it is in.

/// # Safety
///
/// `count` bytes can be read from `from` and written to `to`, and do not overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    for index in 0..count {
        // SAFETY: within the bytes that the caller vouches for.
        unsafe { copy_one(to, from, index) };
    }
    to
}

/// # Safety
///
/// As for `memcpy`, but the bytes may overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    if to.addr() <= from.addr() {
        // SAFETY: in this order no byte is overwritten before it was read.
        return unsafe { memcpy(to, from, count) };
    }
    for index in (0..count).rev() {
        // SAFETY: within the bytes that the caller vouches for.
        unsafe { copy_one(to, from, index) };
    }
    to
}

/// # Safety
///
/// `count` bytes can be written to `to`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    for index in 0..count {
        // SAFETY: within the bytes that the caller vouches for.
        let place = unsafe { to.add(index) };
        // SAFETY: as above.
        unsafe { place.write_volatile(byte.to_le_bytes()[0]) };
    }
    to
}

/// # Safety
///
/// `count` bytes can be read from both.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(first: *const u8, second: *const u8, count: usize) -> i32 {
    for index in 0..count {
        // SAFETY: within the bytes that the caller vouches for.
        let first = unsafe { read_one(first, index) };
        // SAFETY: as above.
        let second = unsafe { read_one(second, index) };
        if first != second {
            return i32::from(first) - i32::from(second);
        }
    }
    0
}

/// # Safety
///
/// There is such a byte in both.
unsafe fn copy_one(to: *mut u8, from: *const u8, index: usize) {
    // SAFETY: the caller vouches for it.
    let byte = unsafe { read_one(from, index) };
    // SAFETY: the caller vouches for it.
    let place = unsafe { to.add(index) };
    // SAFETY: as above.
    unsafe { place.write_volatile(byte) };
}

/// # Safety
///
/// There is such a byte.
unsafe fn read_one(from: *const u8, index: usize) -> u8 {
    // SAFETY: the caller vouches for it.
    let place = unsafe { from.add(index) };
    // SAFETY: as above.
    unsafe { place.read_volatile() }
}
