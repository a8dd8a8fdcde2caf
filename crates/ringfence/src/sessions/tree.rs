//! Removing a directory that somebody hostile has filled.
//!
//! No link is followed, and what was closed to its own user goes too. It may be as deep as anybody
//! likes: no path is ever longer than one name, and neither the stack nor the number of
//! descriptors grows, since what lies deeper is moved up to the top first.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ringfence_sys::Errno;
use ringfence_sys::fdpath::FdPath;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmod, open, openat, renameat, rmdir, unlinkat};

const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes a directory with all that is in it.
pub(crate) fn remove_all(path: &Path) -> Result<(), Errno> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    // Most have nothing in them, and that is said at once.
    if let Ok(()) = rmdir(&name) {
        return Ok(());
    }
    empty(&hold(CWD, &name)?)?;
    rmdir(&name)
}

/// Removes all that is in a directory, which need not be open for reading.
pub(super) fn empty(held: &OwnedFd) -> Result<(), Errno> {
    let top = opened(held)?;
    let mut moved = 0;
    while each(top.as_fd(), |name| {
        if !unlinked(top.as_fd(), name)? {
            dissolve(top.as_fd(), name, &mut moved)?;
        }
        Ok(())
    })? {}
    Ok(())
}

/// Removes a directory at the top; the directories in it that are not empty come to lie beside it.
fn dissolve(top: BorrowedFd<'_>, name: &CStr, moved: &mut u64) -> Result<(), Errno> {
    let directory = opened(&hold(top, name)?)?;
    let directory = directory.as_fd();
    while each(directory, |below| {
        if unlinked(directory, below)? {
            return Ok(());
        }
        // Whoever moves a directory changes it.
        opened(&hold(directory, below)?)?;
        loop {
            *moved += 1;
            let to = CString::new(format!("moved-{moved}")).map_err(|_| Errno::INVAL)?;
            match renameat(directory, below, top, &to) {
                // Somebody has thought of that.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                other => return other,
            }
        }
    })? {}
    unlinkat(top, name, AtFlags::REMOVEDIR)
}

/// Removes what is no directory, or an empty one; whether it is gone.
fn unlinked(directory: BorrowedFd<'_>, name: &CStr) -> Result<bool, Errno> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(true),
        // One answer is this kernel's, the other everybody else's.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    match unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Whatever has this name now, if it is a directory.
fn hold(at: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    openat(at, name, OFlags::PATH | DIRECTORY, Mode::empty())
}

/// Opens a directory, and to its user first.
fn opened(held: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = FdPath::new(held.as_fd());
    chmod(path.as_c_str(), Mode::RWXU)?;
    // The name of a descriptor is a link.
    let flags = OFlags::RDONLY | DIRECTORY.difference(OFlags::NOFOLLOW);
    open(path.as_c_str(), flags, Mode::empty())
}

/// Does something with every name in a directory; whether there was one.
fn each(
    directory: BorrowedFd<'_>,
    mut act: impl FnMut(&CStr) -> Result<(), Errno>,
) -> Result<bool, Errno> {
    let mut any = false;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            any = true;
            act(name)?;
        }
    }
    Ok(any)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// As deep as a command likes, without a path to the bottom.
    fn dig(top: &Path, levels: usize) {
        let mut at = OwnedFd::from(fs::File::open(top).unwrap());
        for _ in 0..levels {
            rustix::fs::mkdirat(&at, c"d", Mode::RWXU).unwrap();
            at = openat(&at, c"d", OFlags::RDONLY | DIRECTORY, Mode::empty()).unwrap();
        }
        rustix::fs::symlinkat(c"/etc", &at, c"link").unwrap();
    }

    #[test]
    fn a_tree_that_is_deeper_than_any_path_goes() {
        let around = tempfile::tempdir().unwrap();
        let top = around.path().join("top");
        fs::create_dir(&top).unwrap();
        dig(&top, 2500);
        // Less than any thread has that serves a session.
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let gone = thread.spawn(move || remove_all(&top)).unwrap();
        gone.join().unwrap().unwrap();
        assert_eq!(fs::read_dir(around.path()).unwrap().count(), 0);
    }

    #[test]
    fn closed_and_crossed_trees_go_and_nothing_else() {
        let around = tempfile::tempdir().unwrap();
        let outside = around.path().join("outside");
        let top = around.path().join("top");
        for directory in [&outside, &top.join("a/b/c"), &top.join("moved-1/x")] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(outside.join("file"), "kept").unwrap();
        fs::write(top.join("moved-2"), "in the way").unwrap();
        fs::write(top.join("a/b/c/file"), "gone").unwrap();
        symlink(&outside, top.join("a/link")).unwrap();
        symlink(&outside, top.join("a/b/link")).unwrap();
        for directory in [top.join("a/b/c"), top.join("a/b"), top.clone()] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_all(&top).unwrap();
        assert!(!top.try_exists().unwrap());
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
        let mode = fs::metadata(&outside).unwrap().permissions().mode();
        assert_ne!(mode & 0o077, 0);
        // Neither is a link itself.
        symlink(&outside, &top).unwrap();
        assert!(remove_all(&top).is_err());
    }
}
