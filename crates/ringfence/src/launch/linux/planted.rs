//! Symbolic links in the git directories of a session.
//!
//! Git writes some files of its directories in place (`COMMIT_EDITMSG`, `FETCH_HEAD`, logs), and
//! through a link if there is one: who leaves a link there has the host's next commit overwrite what
//! it leads to. Git itself makes no links there, so at level `write` nobody inside may, nor in a bare
//! repository that was given for writing. As with all that [`super::guard`] answers, the look is at a copy and can be raced: what is made all the same
//! is not put aside, but told at the end.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_core::policy::Policy;
use ringfence_core::seccomp::Syscall;
use ringfence_sys::files::{self, OpenFlags};
use ringfence_sys::notify::Notification;
use ringfence_sys::{Errno, Pid};
use rustix::fs::FileType;

use super::caller::{
    AT_FDCWD, Means, Start, last_part, low_half, meant, parent_part, path_of, read_path,
};
use super::guard::{Guard, RENAME_EXCHANGE};

/// The git directories in which nobody inside makes a link.
pub(super) fn linkless(policy: &Policy) -> Vec<PathBuf> {
    let directories = policy.linkless();
    directories.map(|path| path.as_path().to_owned()).collect()
}

/// Where a call keeps a path: which argument is the directory, none for the current one, and which
/// is the path.
type Place = (Option<usize>, usize);

/// What a call puts where.
struct Puts {
    /// What is there already and gets another name; a new link if there is none.
    source: Option<Place>,
    name: Place,
}

fn puts(syscall: Syscall) -> Option<Puts> {
    let (source, name) = match syscall {
        Syscall::Symlink => (None, (None, 1)),
        Syscall::Symlinkat => (None, (Some(1), 2)),
        Syscall::Link | Syscall::Rename => (Some((None, 0)), (None, 1)),
        Syscall::Linkat | Syscall::Renameat | Syscall::Renameat2 => {
            (Some((Some(0), 1)), (Some(2), 3))
        }
        _ => return None,
    };
    Some(Puts { source, name })
}

impl Guard {
    /// The name by which a call would put a link into a git directory, if it would.
    ///
    /// # Errors
    ///
    /// What to answer to a call that cannot be looked at.
    pub(super) fn planted(
        &self,
        thread: Pid,
        syscall: Syscall,
        call: &Notification,
    ) -> Result<Option<PathBuf>, Errno> {
        let puts = puts(syscall).filter(|_| !self.linkless().is_empty());
        let Some(Puts { source, name }) = puts else {
            return Ok(None);
        };
        let argument = |index: usize| call.arguments.get(index).copied().unwrap_or_default();
        let read = |(directory, path): Place| {
            let directory = directory.map_or(AT_FDCWD, |index| low_half(argument(index)));
            let path = read_path(thread, argument(path))?;
            Ok::<_, Errno>(path.map(|path| (directory, path)))
        };
        let one = |source: Option<Place>, name: Place| {
            // An empty name makes nothing.
            let name = read(name)?;
            let name =
                name.and_then(|(directory, path)| self.name_in_git(thread, directory, &path));
            let (Some(name), Some(source)) = (&name, source) else {
                return Ok(name);
            };
            // A descriptor alone, without a path, may be one of a link.
            let harmless = read(source)?.is_some_and(|(directory, path)| {
                match meant(thread, directory, &path) {
                    Means::At(path, start) => self.is_harmless(&path, &start),
                    Means::There(link) => is_file(&link),
                    Means::From(_) | Means::Unknown => false,
                }
            });
            Ok((!harmless).then(|| name.clone()))
        };
        // Both names of an exchange are made.
        let exchange = syscall == Syscall::Renameat2 && argument(4) & RENAME_EXCHANGE != 0;
        match (one(source, name), source) {
            (Ok(None), Some(source)) if exchange => one(Some(name), source),
            (answer, _) => answer,
        }
    }

    /// A name in a git directory, if it is one, as the session sees it.
    fn name_in_git(&self, thread: Pid, directory: i32, path: &[u8]) -> Option<PathBuf> {
        let (path, start) = match meant(thread, directory, path) {
            Means::At(path, start) => (path, start),
            // It is there, so it is not made.
            Means::There(_) => return None,
            // It cannot be told where this leads.
            Means::From(_) | Means::Unknown => return Some(PathBuf::from(OsStr::from_bytes(path))),
        };
        let bytes = path.as_os_str().as_bytes();
        let parent = Path::new(OsStr::from_bytes(parent_part(bytes)));
        let opened = match self.open(parent, OpenFlags::PATH | OpenFlags::DIRECTORY) {
            Ok(opened) => opened,
            // As with every other name: see [`Guard`].
            Err(_) if self.enters_proc(parent) => return Some(path),
            Err(errno) if is_answer(errno, &start) => return None,
            Err(_) => return Some(path),
        };
        let Some(real) = path_of(&format!("/proc/self/fd/{}", opened.as_raw_fd())) else {
            return Some(path);
        };
        let name = real.join(OsStr::from_bytes(last_part(bytes)));
        self.is_in_git(&name).then_some(name)
    }

    fn is_in_git(&self, path: &Path) -> bool {
        self.linkless()
            .iter()
            .any(|directory| path.starts_with(directory))
    }

    /// Whether what stands at a path brings no link along: a file, or a directory of git's own.
    fn is_harmless(&self, path: &Path, start: &Start) -> bool {
        let found = match self.open(path, OpenFlags::PATH | OpenFlags::NOFOLLOW) {
            Ok(found) => found,
            // Nothing gets a name, or something that has none yet, which is a file.
            Err(errno) => return is_answer(errno, start),
        };
        match files::identify(&found).map(|identity| identity.kind) {
            Ok(files::Kind::Directory) => {
                let real = path_of(&format!("/proc/self/fd/{}", found.as_raw_fd()));
                real.is_some_and(|real| self.is_in_git(&real))
            }
            Ok(files::Kind::Symlink) | Err(_) => false,
            Ok(_) => true,
        }
    }
}

/// Whether a call will be told the same as we were, who went from the root. Whoever starts elsewhere may be
/// past the directory that is closed to us.
fn is_answer(errno: Errno, start: &Start) -> bool {
    match errno {
        Errno::NOENT | Errno::NOTDIR => true,
        Errno::ACCESS => matches!(start, Start::Root),
        _ => false,
    }
}

/// Whether a link of `/proc` leads to a file that has no name yet, or another one.
fn is_file(link: &str) -> bool {
    let found = rustix::fs::stat(link);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
}
