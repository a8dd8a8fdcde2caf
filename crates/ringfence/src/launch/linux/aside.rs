//! Protected names that a session made, put out of the way.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_sys::Errno;
use ringfence_sys::files::{self, CWD};
use ringfence_sys::process::fill_random;
use rustix::fs::{AtFlags, Mode, RenameFlags, fstat, renameat_with};
use rustix::process::geteuid;

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
    let moved_to = rename_aside(&path).or_else(|error| match error {
        Errno::ACCESS | Errno::PERM => {
            open_up(&path);
            rename_aside(&path)
        }
        error => Err(error),
    });
    Some(NameFound {
        path,
        moved_to: moved_to.ok(),
    })
}

/// Opens the directories above a name as far as it takes to put the name aside: whoever is inside
/// may close those of the user, so that nobody can look or rename there.
///
/// None of them was closed when the session began, or it would not have begun.
pub(super) fn open_up(path: &Path) {
    const ENTER: Mode = Mode::XUSR;
    let parent = path.parent();
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    for directory in above {
        let wanted = if Some(directory) == parent {
            ENTER | Mode::WUSR
        } else {
            ENTER
        };
        if add_rights(directory, wanted).is_err() {
            return;
        }
    }
}

/// Gives the owner of a directory more rights to it, if we are that.
fn add_rights(directory: &Path, wanted: Mode) -> Result<(), Errno> {
    let directory = pinned(directory)?;
    let status = fstat(&directory)?;
    let mode = Mode::from_raw_mode(status.st_mode);
    if mode.contains(wanted) || status.st_uid != geteuid().as_raw() {
        return Ok(());
    }
    // What is only pinned is changed by its link in `/proc`, which nobody can exchange.
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    rustix::fs::chmodat(CWD, link, mode | wanted, AtFlags::empty())
}

fn pinned(directory: &Path) -> Result<OwnedFd, Errno> {
    let directory = CString::new(directory.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    files::pin_exact(CWD, &directory)
}

/// Renames within one directory, over nothing that is there, and to a name that the session could
/// not take before.
fn rename_aside(path: &Path) -> Result<PathBuf, Errno> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL);
    };
    let directory = pinned(parent)?;
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
