//! Protected names that a session made, put out of the way.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_sys::Errno;
use ringfence_sys::files::{self, CWD};
use ringfence_sys::process::fill_random;
use rustix::fs::{RenameFlags, renameat_with};

use crate::launch::NameFound;

/// Puts a protected name that the session made out of the way, so that nothing outside obeys it.
///
/// The session may have made any directory above it a link, to have something renamed that it
/// cannot reach itself. So the directory is opened without following any; where there is one, the
/// topmost is what is put aside.
pub(super) fn put_aside(path: &Path) -> Option<NameFound> {
    std::fs::symlink_metadata(path).ok()?;
    let is_link =
        |path: &&Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let above = path.ancestors().skip(1).filter(is_link).last();
    let path = above.unwrap_or(path).to_owned();
    let moved_to = rename_aside(&path).ok();
    Some(NameFound { path, moved_to })
}

/// Renames within one directory, over nothing that is there, and to a name that the session could
/// not take before.
fn rename_aside(path: &Path) -> Result<PathBuf, Errno> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL);
    };
    let parent = std::ffi::CString::new(parent.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    let directory = files::pin_exact(CWD, &parent)?;
    let mut moved = name.to_owned();
    moved.push(".refused-by-ringfence");
    let mut answer = rename_to(&directory, name, &moved);
    if answer == Err(Errno::EXIST) {
        let mut random = [0; 8];
        fill_random(&mut random)?;
        moved.push(format!("-{:016x}", u64::from_ne_bytes(random)));
        answer = rename_to(&directory, name, &moved);
    }
    answer.map(|()| path.with_file_name(moved))
}

fn rename_to(directory: &OwnedFd, name: &OsStr, moved: &OsStr) -> Result<(), Errno> {
    renameat_with(directory, name, directory, moved, RenameFlags::NOREPLACE)
}
