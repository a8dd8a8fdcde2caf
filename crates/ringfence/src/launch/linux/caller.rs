//! What a caller means: paths in its memory, seen from where it stands.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_sys::files;
use ringfence_sys::notify::read_memory;
use ringfence_sys::{Errno, Pid};
use rustix::fs::readlinkat;

/// `PATH_MAX`.
const LONGEST_PATH: usize = 4096;
/// Most paths are shorter than this.
const USUAL_PATH: usize = 256;

/// The directory that the caller is in.
pub(super) const AT_FDCWD: i32 = -100;
const AF_UNIX: u16 = 1;

/// The kernel reads descriptors as 32-bit integers.
pub(super) fn low_half(word: u64) -> i32 {
    let [a, b, c, d, ..] = word.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Copies a path; `None` for an empty one, which makes nothing.
pub(super) fn read_path(thread: Pid, address: u64) -> Result<Option<Vec<u8>>, Errno> {
    let mut path = Vec::with_capacity(USUAL_PATH);
    let mut next = address;
    while path.len() < LONGEST_PATH {
        let mut part = [0; USUAL_PATH];
        let read = read_memory(thread, next, &mut part).map_err(|_| Errno::FAULT)?;
        let part = part.get(..read).filter(|part| !part.is_empty());
        let part = part.ok_or(Errno::FAULT)?;
        if let Some((end, _)) = part.iter().enumerate().find(|(_, byte)| **byte == 0) {
            path.extend(part.iter().take(end));
            return Ok((!path.is_empty()).then_some(path));
        }
        path.extend_from_slice(part);
        let read = u64::try_from(read).map_err(|_| Errno::FAULT)?;
        next = next.checked_add(read).ok_or(Errno::FAULT)?;
    }
    Err(Errno::NAMETOOLONG)
}

/// The path in the address of a socket, if it has one.
pub(super) fn socket_path(
    thread: Pid,
    address: u64,
    length: u64,
) -> Result<Option<Vec<u8>>, Errno> {
    let mut bytes = [0; 110];
    let length = usize::try_from(low_half(length)).unwrap_or_default();
    let bytes = bytes.get_mut(..length.min(110)).unwrap_or_default();
    if read_memory(thread, address, bytes) != Ok(bytes.len()) {
        return Err(Errno::FAULT);
    }
    let Some((family, name)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let path = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_path = u16::from_ne_bytes(*family) == AF_UNIX && !path.is_empty();
    Ok(is_path.then(|| path.to_vec()))
}

/// A path from the root, with the directory that it starts in put before it.
pub(super) fn whole(thread: Pid, directory: i32, path: &[u8]) -> Option<PathBuf> {
    let number = thread.as_raw_nonzero();
    let path = Path::new(OsStr::from_bytes(path));
    if !path.is_absolute() {
        let base = if directory == AT_FDCWD {
            path_of(&format!("/proc/{number}/cwd"))
        } else {
            path_of(&format!("/proc/{number}/fd/{directory}"))
        };
        return Some(base?.join(path));
    }
    // Names that mean something else to each process.
    for own in ["/proc/self", "/proc/thread-self"] {
        let Ok(rest) = path.strip_prefix(own) else {
            continue;
        };
        let mut parts = rest.iter();
        let link = match parts.next().and_then(OsStr::to_str) {
            Some("cwd") => format!("/proc/{number}/cwd"),
            Some("root") => return Some(Path::new("/").join(parts.as_path())),
            Some("fd") => {
                let descriptor: u32 = parts.next()?.to_str()?.parse().ok()?;
                format!("/proc/{number}/fd/{descriptor}")
            }
            _ => continue,
        };
        return Some(path_of(&link)?.join(parts.as_path()));
    }
    if let Ok(rest) = path.strip_prefix("/dev/fd") {
        let mut parts = rest.iter();
        if let Some(descriptor) = parts.next() {
            let descriptor: u32 = descriptor.to_str()?.parse().ok()?;
            let base = path_of(&format!("/proc/{number}/fd/{descriptor}"))?;
            return Some(base.join(parts.as_path()));
        }
    }
    Some(path.to_owned())
}

/// Where a link of `/proc` leads, as a path of the namespace that it leads to.
pub(super) fn path_of(link: &str) -> Option<PathBuf> {
    let target = readlinkat(files::CWD, link, Vec::new()).ok()?;
    let path = PathBuf::from(OsStr::from_bytes(target.to_bytes()));
    path.is_absolute().then_some(path)
}

/// What stands behind the last slash that something stands behind.
pub(super) fn last_part(path: &[u8]) -> &[u8] {
    let end = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |at| at + 1);
    let path = path.get(..end).unwrap_or_default();
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// What stands before it.
pub(super) fn parent_part(path: &[u8]) -> &[u8] {
    let end = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |at| at + 1);
    let path = path.get(..end).unwrap_or_default();
    let start = path
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |at| at + 1);
    match path.get(..start) {
        Some([] | b"/") | None => b"/",
        Some(parent) => parent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_where_the_kernel_splits_them() {
        for (path, parent, last) in [
            ("a", "/", "a"),
            ("/a", "/", "a"),
            ("/a/", "/", "a"),
            ("a/b//", "a/", "b"),
            ("//x//.git", "//x//", ".git"),
            ("/", "/", ""),
            ("a/..", "a/", ".."),
        ] {
            assert_eq!(last_part(path.as_bytes()), last.as_bytes(), "{path}");
            assert_eq!(parent_part(path.as_bytes()), parent.as_bytes(), "{path}");
        }
    }
}
