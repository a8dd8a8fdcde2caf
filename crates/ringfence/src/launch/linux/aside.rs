//! Protected names that a session made, put out of the way.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_sys::Errno;
use ringfence_sys::files::{self, CWD};
use ringfence_sys::process::fill_random;
use rustix::fs::{AtFlags, Mode, RenameFlags, fstat, renameat_with, unlinkat};
use rustix::process::geteuid;

use crate::indexes::Hands;
use crate::launch::NameFound;

/// The same for other files of git's than those that have protected names.
pub(super) const HANDS: Hands = Hands { open_up, put_aside };

/// Puts a protected name that the session made out of the way, so that nothing outside obeys it.
///
/// The session may have made any directory above it a link, to have something renamed that it
/// cannot reach itself. So the directory is opened without following any; where there is one, the
/// topmost is what is put aside.
pub(super) fn put_aside(path: &Path) -> Option<NameFound> {
    let is_link =
        |path: &&Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let above = path.ancestors().skip(1).filter(is_link).last();
    let path = above.unwrap_or(path).to_owned();
    std::fs::symlink_metadata(&path).ok()?;
    let moved_to = rename_aside(&path).or_else(|error| match error {
        Errno::ACCESS | Errno::PERM => {
            open_up(&path);
            rename_aside(&path)
        }
        error => Err(error),
    });
    let moved_to = moved_to.ok();
    // A disk that is full has no room for another name.
    let removed = moved_to.is_none() && remove(&path).is_ok();
    Some(NameFound {
        path,
        moved_to,
        removed,
    })
}

/// Takes away what the session made. A directory may hold what somebody needs: it is closed, which takes no
/// room either, and said to be there.
fn remove(path: &Path) -> Result<(), Errno> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL);
    };
    match unlinkat(&pinned(parent)?, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {
            set_mode(&pinned(path)?, Mode::empty())?;
            Err(Errno::ISDIR)
        }
        other => other,
    }
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
    set_mode(&directory, mode | wanted)
}

/// What is only pinned is changed by its link in `/proc`, which nobody can exchange.
fn set_mode(pinned: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    let link = format!("/proc/self/fd/{}", pinned.as_raw_fd());
    rustix::fs::chmodat(CWD, link, mode, AtFlags::empty())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// Whatever keeps a name from being put aside: here that there is no longer one.
    #[test]
    fn what_cannot_be_put_aside_does_not_stay_as_it_is() {
        let guard = tempfile::tempdir().unwrap();
        let directory = fs::canonicalize(guard.path()).unwrap();
        let (file, closed) = (
            directory.join("f".repeat(255)),
            directory.join("d".repeat(255)),
        );
        fs::write(&file, "evil").unwrap();
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("kept"), "").unwrap();

        let found = put_aside(&file).unwrap();
        assert_eq!((found.moved_to, found.removed), (None, true));
        assert!(!file.try_exists().unwrap());
        let found = put_aside(&closed).unwrap();
        assert_eq!((found.moved_to, found.removed), (None, false));
        let mode = fs::metadata(&closed).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(closed.join("kept").try_exists().unwrap());

        // A link is taken away, and what it leads to is not touched.
        let link = directory.join("l".repeat(255));
        std::os::unix::fs::symlink(&closed, &link).unwrap();
        assert!(put_aside(&link).unwrap().removed);
        assert!(closed.join("kept").try_exists().unwrap());
    }
}
