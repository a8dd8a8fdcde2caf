//! `/proc/self/fd/N` without an allocation.
//!
//! For the few calls that take no descriptor. The name is resolved by the kernel to the very
//! file that is open, so nothing is looked up twice; it needs a procfs at `/proc`.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

const PREFIX: &[u8] = b"/proc/self/fd/";
const DIGITS: usize = 10;
const BYTES: usize = PREFIX.len() + DIGITS + 1;

/// The path of an open descriptor, in a buffer of its own.
#[derive(Clone, Copy, Debug)]
pub struct FdPath {
    bytes: [u8; BYTES],
}

impl FdPath {
    /// The path by which `fd` can be named as long as it stays open.
    pub fn new(fd: BorrowedFd<'_>) -> Self {
        let mut bytes = [0; BYTES];
        let mut digits = [0; DIGITS];
        let text = decimal(fd.as_raw_fd().unsigned_abs(), &mut digits);
        let whole = PREFIX.iter().chain(text);
        for (slot, byte) in bytes.iter_mut().zip(whole) {
            *slot = *byte;
        }
        Self { bytes }
    }

    /// The path as the kernel takes it.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

/// Writes `value` in decimal at the end of `buffer` and returns the digits.
pub(super) fn decimal(mut value: u32, buffer: &mut [u8; DIGITS]) -> &[u8] {
    let mut length = 0;
    for slot in buffer.iter_mut().rev() {
        let [digit, ..] = (value % 10).to_le_bytes();
        *slot = b'0' + digit;
        length += 1;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    let start = DIGITS - length;
    buffer.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_out_as_written() {
        for value in [0, 1, 9, 10, 65_534, 100_000, u32::MAX] {
            let mut buffer = [0; DIGITS];
            assert_eq!(decimal(value, &mut buffer), value.to_string().as_bytes());
        }
    }

    #[test]
    fn path_names_the_open_file() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let path = FdPath::new(std::os::fd::AsFd::as_fd(&file));
        let expected = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(path.as_c_str().to_bytes(), expected.as_bytes());
        let target = std::fs::read_link(expected).unwrap();
        assert_eq!(target, std::path::Path::new("/dev/null"));
    }
}
