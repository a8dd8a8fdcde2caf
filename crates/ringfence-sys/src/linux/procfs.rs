//! `/proc`, checked to be what it says.
//!
//! Id maps and their like are written through a descriptor on a directory that was verified
//! to be the root of a procfs, and no mount below it is crossed: a file bound over
//! `/proc/self/uid_map` makes the write fail instead of landing elsewhere.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::process::Pid;

use super::files::{self, CWD, PROC_MAGIC};

/// The root directory of a procfs.
#[derive(Debug)]
pub struct ProcDir(OwnedFd);

/// The root of every procfs has this inode number, and nothing else in it has.
const ROOT_INODE: u64 = 1;

impl ProcDir {
    /// Opens `/proc`.
    ///
    /// # Errors
    ///
    /// [`Errno::NODEV`] if it is not the root of a procfs.
    pub fn open() -> Result<Self, Errno> {
        let fd = files::openat2(
            CWD,
            c"/proc",
            OFlags::PATH | OFlags::DIRECTORY,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )?;
        Self::verified(fd)
    }

    /// Takes a descriptor that should be the root of a procfs, such as one fresh from
    /// `fsmount`.
    ///
    /// # Errors
    ///
    /// [`Errno::NODEV`] if it is not.
    pub fn verified(fd: OwnedFd) -> Result<Self, Errno> {
        let is_root = files::filesystem(&fd)?.magic == PROC_MAGIC
            && files::identify(&fd)?.inode == ROOT_INODE;
        if is_root {
            Ok(Self(fd))
        } else {
            Err(Errno::NODEV)
        }
    }

    /// Opens a file below, crossing neither a mount nor a magic link.
    ///
    /// # Errors
    ///
    /// [`Errno::XDEV`] if something was mounted over it.
    pub fn open_file(&self, path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        files::openat2(
            self.0.as_fd(),
            path,
            flags | OFlags::NOCTTY,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV,
        )
    }

    /// Writes `text` to a file below, in one piece, as the kernel demands of its switches.
    ///
    /// # Errors
    ///
    /// Those of [`open_file`](Self::open_file) and the kernel's opinion of the text;
    /// [`Errno::IO`] if it took only a part.
    pub fn write_file(&self, path: &CStr, text: &[u8]) -> Result<(), Errno> {
        let file = self.open_file(path, OFlags::WRONLY)?;
        if retry_on_intr(|| write(&file, text))? == text.len() {
            Ok(())
        } else {
            Err(Errno::IO)
        }
    }

    /// Reads a file below into `buffer`, and returns what it held.
    ///
    /// # Errors
    ///
    /// [`Errno::NOBUFS`] if it holds more than fits: half an answer is none.
    pub fn read_file<'b>(&self, path: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        let file = self.open_file(path, OFlags::RDONLY)?;
        read_whole(file.as_fd(), buffer)
    }

    /// Calls `each` with every process that is listed at this moment.
    ///
    /// Nothing is remembered between two of them, so it takes no memory however many there are.
    ///
    /// # Errors
    ///
    /// The kernel's answer; some have then been seen already.
    pub fn each_process(&self, mut each: impl FnMut(Pid)) -> Result<(), Errno> {
        let root = self.open_file(c".", OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(root, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let number = std::str::from_utf8(entry.file_name().to_bytes()).ok();
            let number = number.and_then(|name| name.parse().ok());
            if let Some(pid) = number.and_then(Pid::from_raw) {
                each(pid);
            }
        }
        Ok(())
    }

    /// How many threads the calling process has.
    pub(super) fn thread_count(&self) -> Result<usize, Errno> {
        let tasks = self.open_file(c"self/task", OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut entries = RawDir::new(tasks, &mut buffer);
        let mut count = 0;
        while let Some(entry) = entries.next() {
            if !entry?.file_name().to_bytes().starts_with(b".") {
                count += 1;
            }
        }
        Ok(count)
    }
}

impl AsFd for ProcDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads all that `file` has into `buffer`.
///
/// # Errors
///
/// [`Errno::NOBUFS`] if there is more than fits.
pub fn read_whole<'b>(file: BorrowedFd<'_>, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match retry_on_intr(|| read(file, &mut *rest))? {
            0 => return Ok(buffer.get(..filled).unwrap_or_default()),
            count => filled += count,
        }
    }
    // The buffer is full: only an empty read now proves that nothing was cut off.
    match retry_on_intr(|| read(file, &mut [0_u8; 1]))? {
        0 => Ok(buffer),
        _ => Err(Errno::NOBUFS),
    }
}
