//! The process table, as bytes; `ringfence_core::kinfo` knows how to read them.

use std::io;
use std::mem::MaybeUninit;
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

/// The system's name for this start of the machine.
///
/// # Errors
///
/// The kernel's answer.
pub fn boot() -> io::Result<String> {
    let mut text = [0_u8; 64];
    let mut size = text.len();
    // SAFETY: the name ends in NUL; no more than the size said is written to a live buffer, and how
    // much that was to a live number; nothing is set.
    let status = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            text.as_mut_ptr().cast(),
            &raw mut size,
            ptr::null_mut(),
            0,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let text = text.get(..size).unwrap_or_default();
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    match std::str::from_utf8(text) {
        Ok(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// How much memory a process of this user has in use, in bytes.
pub fn resident(pid: i32) -> Option<u64> {
    let mut info = MaybeUninit::<libc::proc_taskinfo>::zeroed();
    let size = i32::try_from(size_of::<libc::proc_taskinfo>()).ok()?;
    // SAFETY: writes no more than the size said, to a live value of the layout that is asked for.
    let written = unsafe {
        libc::proc_pidinfo(
            pid,
            libc::PROC_PIDTASKINFO,
            0,
            info.as_mut_ptr().cast(),
            size,
        )
    };
    if written != size {
        return None;
    }
    // SAFETY: all of it was written, and any bits are numbers.
    Some(unsafe { info.assume_init() }.pti_resident_size)
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
