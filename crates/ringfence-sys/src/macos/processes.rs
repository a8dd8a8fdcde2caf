//! The process table, as bytes; `ringfence_core::kinfo` knows how to read them.

use std::io;
use std::ptr;

/// Every process of a user.
///
/// # Errors
///
/// The kernel's answer.
pub fn of_user(uid: u32) -> io::Result<Vec<u8>> {
    table(libc::KERN_PROC_UID, uid.cast_signed())
}

/// One process, or nothing if there is none of that number.
///
/// # Errors
///
/// The kernel's answer.
pub fn of_number(pid: i32) -> io::Result<Vec<u8>> {
    table(libc::KERN_PROC_PID, pid)
}

/// More than ever start between two calls.
const ROOM: usize = 64 << 10;

fn table(kind: libc::c_int, of: libc::c_int) -> io::Result<Vec<u8>> {
    let mut name = [libc::CTL_KERN, libc::KERN_PROC, kind, of];
    loop {
        let mut size = 0;
        // SAFETY: the name has as many parts as is said; without a buffer only the size is written,
        // to a live number; nothing is set.
        let status = unsafe {
            libc::sysctl(
                name.as_mut_ptr(),
                4,
                ptr::null_mut(),
                &raw mut size,
                ptr::null_mut(),
                0,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut bytes = vec![0_u8; size + ROOM];
        let mut size = bytes.len();
        // SAFETY: as above, and the buffer has as many bytes as is said.
        let status = unsafe {
            libc::sysctl(
                name.as_mut_ptr(),
                4,
                bytes.as_mut_ptr().cast(),
                &raw mut size,
                ptr::null_mut(),
                0,
            )
        };
        if status == 0 {
            bytes.truncate(size);
            return Ok(bytes);
        }
        let error = io::Error::last_os_error();
        // It grew in between.
        if error.raw_os_error() != Some(libc::ENOMEM) {
            return Err(error);
        }
    }
}
