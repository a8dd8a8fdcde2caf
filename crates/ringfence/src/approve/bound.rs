//! What an answer is bound to, as this machine sees it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringfence_core::binding::{Binding, Bound, FileIdentity};
use ringfence_core::path::AbsPath;
use ringfence_core::permission::{Permission, Permissions};
use ringfence_core::policy::{Policy, Seen};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

use crate::place::Lookout;

/// How many words of a command are looked at as files.
const MOST_WORDS: usize = 1024;

/// Binds an answer to a command as it would be run now.
///
/// Files that the command names go in with their identity and the time of their last change: the
/// program itself, and every word that is the name of a file, as a script's is.
pub fn bind(
    command: &[OsString],
    directory: &Path,
    policy: &Policy,
    permissions: &Permissions,
) -> Binding {
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let lookout = Lookout::new();
    let nowhere = || FileIdentity {
        path: AbsPath::root(),
        device: 0,
        inode: 0,
        changed: (0, 0),
        size: 0,
    };
    let mut files = Vec::new();
    if let Some(program) = command.first().and_then(|word| find(word, directory)) {
        files.extend(identity(&program, &lookout));
    }
    for word in command.iter().take(MOST_WORDS) {
        files.extend(identity(&directory.join(word), &lookout));
    }
    let paths = permissions
        .iter()
        .filter_map(|permission| match permission {
            Permission::Write(path) => {
                Some(identity(path.as_path(), &lookout).unwrap_or_else(nowhere))
            }
            _ => None,
        });
    Binding::new(&Bound {
        command: command.iter().map(OsString::as_os_str).collect(),
        directory: identity(directory, &lookout).unwrap_or_else(nowhere),
        environment: environment
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
            .collect(),
        paths: paths.collect(),
        files,
        policy,
    })
}

/// The program that a name means.
fn find(name: &OsStr, directory: &Path) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(directory.join(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|part| directory.join(part).join(name))
        .find(|candidate| candidate.is_file())
}

fn identity(path: &Path, lookout: &Lookout) -> Option<FileIdentity> {
    let Seen::At(canonical, _) = lookout.look(path) else {
        return None;
    };
    let status = std::fs::metadata(canonical.as_path()).ok()?;
    let directory = status.is_dir();
    Some(FileIdentity {
        path: canonical,
        device: status.dev(),
        inode: status.ino(),
        changed: if directory {
            (0, 0)
        } else {
            (status.ctime(), status.ctime_nsec())
        },
        size: if directory { 0 } else { status.size() },
    })
}

/// A path as it was when somebody said yes, held open so that no other file can take its number.
#[derive(Debug)]
pub struct Captured {
    path: AbsPath,
    held: OwnedFd,
}

impl Captured {
    /// Takes hold of every path that may be written. Links at the end are not followed.
    ///
    /// # Errors
    ///
    /// The path that is not there, or is a link.
    pub fn all(permissions: &Permissions) -> Result<Vec<Self>, AbsPath> {
        let paths = permissions
            .iter()
            .filter_map(|permission| match permission {
                Permission::Write(path) => Some(path),
                _ => None,
            });
        paths
            .map(|path| {
                let held = hold(path).ok_or_else(|| path.clone())?;
                let path = path.clone();
                Ok(Self { path, held })
            })
            .collect()
    }

    /// Whether the same file still stands there.
    pub fn holds(&self) -> bool {
        let number = |fd: &OwnedFd| fstat(fd).ok().map(|status| (status.st_dev, status.st_ino));
        let now = hold(&self.path);
        now.is_some_and(|now| number(&now).is_some() && number(&now) == number(&self.held))
    }

    /// The path.
    pub fn path(&self) -> &AbsPath {
        &self.path
    }

    /// The hold on what stood at a path when somebody said yes, if it is one of these.
    pub fn find<'a>(all: &'a [Self], path: &Path) -> Option<BorrowedFd<'a>> {
        let found = all.iter().find(|known| known.path.as_path() == path);
        found.map(|known| known.held.as_fd())
    }
}

fn hold(path: &AbsPath) -> Option<OwnedFd> {
    // A link above it would have another canonical path.
    let Seen::At(canonical, _) = Lookout::new().look(path.as_path()) else {
        return None;
    };
    if canonical != *path {
        return None;
    }
    #[cfg(target_os = "linux")]
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path.as_path(), flags, Mode::empty()).ok()
}
