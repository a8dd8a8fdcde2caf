//! Files that a session tried to make or to write where nothing may be written.
//!
//! The kernel refuses that by itself, and tells only the program, which may say no more than that it
//! failed. Most programs ask to have a file made where they write one, and those calls pass the guard.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use ringfence_sys::files::Kind;
use rustix::fs::{Access, AtFlags, CWD, PROC_SUPER_MAGIC, StatVfsMountFlags};

use super::caller::path_of;

/// Files that are remembered; more of them say nothing new.
const MOST_TOLD: usize = 256;
/// How a file is opened: for reading, writing, or both.
const O_ACCMODE: u64 = 0o3;

/// What was seen of one session.
#[derive(Debug, Default)]
pub(super) struct Unwritable {
    files: RefCell<Vec<PathBuf>>,
    /// Whether the call that is looked at opens its file for writing.
    writes: Cell<bool>,
}

impl Unwritable {
    /// Those that came after so many.
    pub(super) fn after(&self, known: usize) -> Vec<PathBuf> {
        let files = self.files.borrow();
        files.get(known..).unwrap_or_default().to_vec()
    }

    /// The next call is looked at, which opens a file with these flags.
    pub(super) fn opened_with(&self, flags: u64) {
        self.writes.set(flags & O_ACCMODE != 0);
    }

    /// A file is to be made in a directory, as the session sees it: whatever the call wants of it.
    pub(super) fn absent(&self, directory: &OwnedFd, last: &[u8]) {
        if let Some(real) = self.is_news(directory) {
            let writable = rustix::fs::accessat(CWD, &real, Access::WRITE_OK, AtFlags::EACCESS);
            self.note(real.join(OsStr::from_bytes(last)), writable.is_ok());
        }
    }

    /// A call asks to have something made that is there.
    pub(super) fn present(&self, file: &OwnedFd, kind: Kind) {
        if self.writes.get()
            && kind == Kind::Regular
            && let Some(real) = self.is_news(file)
        {
            let writable = rustix::fs::accessat(CWD, &real, Access::WRITE_OK, AtFlags::EACCESS);
            self.note(real, writable.is_ok());
        }
    }

    /// Where it is, if it lies on a mount that cannot be written.
    fn is_news(&self, place: &OwnedFd) -> Option<PathBuf> {
        if self.files.borrow().len() >= MOST_TOLD {
            return None;
        }
        let facts = rustix::fs::fstatvfs(place).ok()?;
        if !facts.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return None;
        }
        let of_processes = rustix::fs::fstatfs(place).ok()?.f_type == PROC_SUPER_MAGIC;
        let path = || path_of(&format!("/proc/self/fd/{}", place.as_raw_fd()));
        (!of_processes).then(path)?
    }

    /// Only what whoever started the session could write: the rest has nothing to do with it.
    fn note(&self, file: PathBuf, writable_outside: bool) {
        let mut files = self.files.borrow_mut();
        if writable_outside && !files.contains(&file) {
            files.push(file);
        }
    }
}
