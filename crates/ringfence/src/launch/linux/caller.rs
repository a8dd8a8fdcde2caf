//! What a caller means: paths in its memory, seen from where it stands.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_sys::files::{self, OpenFlags, Resolve};
use ringfence_sys::notify::read_memory;
use ringfence_sys::{Errno, Pid};
use rustix::fs::{Mode, readlinkat};

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

/// What a caller means by a path.
#[derive(Debug)]
pub(super) enum Means {
    /// This place, as the session names it, and how the path gets there.
    At(PathBuf, Start),
    /// What one of the caller's descriptors, or its own link, leads to: it is there. By the link of
    /// `/proc` that leads to it for us.
    There(String),
    /// Something that starts in a directory which has no name: it was removed, or its path is too
    /// long. By a link to the directory.
    From(String),
    /// It cannot be told.
    Unknown,
}

/// Where a path starts.
#[derive(Debug)]
pub(super) enum Start {
    /// At the root: whoever may not search a directory on the way is stopped there.
    Root,
    /// Where one of the caller's descriptors leads, by the link of `/proc`. The caller is there already, and
    /// needs no leave to search what lies above.
    There(String),
}

/// What a caller means by a path that starts in one of its directories.
pub(super) fn meant(thread: Pid, directory: i32, path: &[u8]) -> Means {
    let path = Path::new(OsStr::from_bytes(path));
    if !path.is_absolute() {
        let entry = if directory == AT_FDCWD {
            "cwd".to_owned()
        } else {
            format!("fd/{directory}")
        };
        return below(link_of(thread, &entry), path);
    }
    let Some((whose, rest)) = own_entry(path) else {
        return Means::At(path.to_owned(), Start::Root);
    };
    let mut parts = rest.iter();
    let entry = match parts.next().and_then(OsStr::to_str) {
        Some("cwd") => "cwd".to_owned(),
        Some("root") => {
            return Means::At(Path::new("/").join(parts.as_path()), Start::Root);
        }
        Some("fd") => match descriptor(parts.next()) {
            Some(descriptor) => format!("fd/{descriptor}"),
            None => return Means::Unknown,
        },
        _ => return Means::At(path.to_owned(), Start::Root),
    };
    let owner = match whose {
        Whose::Process => process_of(thread),
        Whose::Thread => Ok(thread),
    };
    match owner {
        Ok(owner) => below(link_of(owner, &entry), parts.as_path()),
        Err(_) => Means::Unknown,
    }
}

/// Whose directory and descriptors a name of the kernel's stands for. A thread may have parted with those of
/// its process (`unshare`).
enum Whose {
    /// The first thread's, whichever asks.
    Process,
    /// Those of the thread that asks.
    Thread,
}

/// What comes behind a name that means something else to each process.
fn own_entry(path: &Path) -> Option<(Whose, PathBuf)> {
    if let Ok(rest) = path.strip_prefix("/proc/thread-self") {
        return Some((Whose::Thread, rest.to_owned()));
    }
    if let Ok(rest) = path.strip_prefix("/proc/self") {
        return Some((Whose::Process, rest.to_owned()));
    }
    // A link to `/proc/self/fd`.
    let rest = path.strip_prefix("/dev/fd").ok()?;
    let names_one = !rest.as_os_str().is_empty();
    names_one.then(|| (Whose::Process, Path::new("fd").join(rest)))
}

/// The link of `/proc` that leads where one of a thread's own does.
fn link_of(thread: Pid, entry: &str) -> String {
    format!("/proc/{}/{entry}", thread.as_raw_nonzero())
}

/// The process that a thread belongs to, which has the number of its first thread.
pub(super) fn process_of(thread: Pid) -> Result<Pid, Errno> {
    let status = std::fs::read_to_string(link_of(thread, "status")).map_err(|_| Errno::PERM)?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let number = line.and_then(|number| number.trim().parse().ok());
    number.and_then(Pid::from_raw).ok_or(Errno::PERM)
}

fn descriptor(part: Option<&OsStr>) -> Option<u32> {
    part?.to_str()?.parse().ok()
}

/// What lies below where a link of `/proc` leads.
fn below(link: String, path: &Path) -> Means {
    if path.as_os_str().is_empty() {
        return Means::There(link);
    }
    match path_of(&link) {
        Some(base) if base.as_os_str().len() + path.as_os_str().len() + 1 < LONGEST_PATH => {
            Means::At(base.join(path), Start::There(link))
        }
        _ => Means::From(link),
    }
}

/// What the kernel puts behind the path of something that was removed. From there `..` still leads to
/// where it was, which no path says.
const REMOVED: &[u8] = b" (deleted)";

/// Where a link of `/proc` leads, as a path of the namespace that it leads to.
pub(super) fn path_of(link: &str) -> Option<PathBuf> {
    let target = readlinkat(files::CWD, link, Vec::new()).ok()?;
    let bytes = target.to_bytes();
    let path = Path::new(OsStr::from_bytes(bytes));
    // A name may end like that, too.
    let is_there = || rustix::fs::stat(link).is_ok_and(|found| found.st_nlink > 0);
    let named = path.is_absolute() && (!bytes.ends_with(REMOVED) || is_there());
    named.then(|| path.to_owned())
}

/// Whether a path stays below a directory that has no name, so that nothing with a name comes of it.
pub(super) fn stays_below(base: &str, path: &[u8]) -> bool {
    let as_the_kernel_says = |error| matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS);
    let flags = OpenFlags::PATH | OpenFlags::DIRECTORY;
    // The only link that is followed is the kernel's own.
    let opened = CString::new(base)
        .map_err(|_| Errno::INVAL)
        .and_then(|base| files::openat2(files::CWD, &base, flags, Mode::empty(), Resolve::empty()));
    let base = match opened {
        Ok(base) => base,
        Err(error) => return as_the_kernel_says(error),
    };
    let open = |directory: &OwnedFd, path: &[u8], flags: OpenFlags| {
        let path = CString::new(path).map_err(|_| Errno::INVAL)?;
        let below = Resolve::BENEATH | Resolve::NO_SYMLINKS;
        files::openat2(directory.as_fd(), &path, flags, Mode::empty(), below)
    };
    let parent = match parent_part(path) {
        b"/" if !path.starts_with(b"/") => b".",
        parent => parent,
    };
    let last = OpenFlags::PATH | OpenFlags::NOFOLLOW;
    let found = open(&base, parent, flags).and_then(|parent| open(&parent, last_part(path), last));
    match found.and_then(|found| files::identify(&found)) {
        Ok(identity) => identity.kind != files::Kind::Symlink,
        Err(error) => as_the_kernel_says(error),
    }
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
