//! Small files of ringfence's own, which many processes may change at once.
//!
//! A store is a file of mode 0600 in a directory of mode 0700, opened without following links. A
//! change is made under a lock, on what stands at that moment, into a new file that takes the old
//! one's name: whoever is killed on the way leaves the old store or the new one, never a part of
//! either. A store that does not read is left as it is, and nothing goes on without it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ringfence_core::text::printable_path;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, fsync, openat,
    renameat, unlinkat,
};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How long to wait for somebody else who is writing.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any store holds.
const LARGEST: u64 = 1 << 20;
const PRIVATE_DIRECTORY: Mode = Mode::from_raw_mode(0o700);
const PRIVATE_FILE: Mode = Mode::from_raw_mode(0o600);
/// What anybody but the owner may do.
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// Why a store cannot be used. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else has been writing for too long.
    #[error("{} is being changed by another process", printable_path(.path))]
    Busy {
        /// The store.
        path: PathBuf,
    },
    /// Its contents make no sense.
    #[error("{} does not read: {why}", printable_path(.path))]
    Corrupt {
        /// The store.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It is not a plain file of the user's own.
    #[error("{} is not a plain file or directory of your own", printable_path(.path))]
    Foreign {
        /// The store, or its directory.
        path: PathBuf,
    },
    /// The kernel refused.
    #[error("{} cannot be used", printable_path(.path))]
    Kernel {
        /// The store, or its directory.
        path: PathBuf,
        /// What it answered.
        source: io::Error,
    },
}

impl StoreError {
    /// What would mend it.
    pub fn help(&self) -> String {
        match self {
            Self::Corrupt { path, .. } => {
                let path = printable_path(path);
                format!("nothing in it was changed; to start anew: mv '{path}' '{path}.old'")
            }
            Self::Busy { .. } => "try again".to_owned(),
            Self::Foreign { .. } | Self::Kernel { .. } => {
                "it must be a plain file, in a plain directory, that belongs to you".to_owned()
            }
        }
    }
}

/// One store.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    name: String,
}

impl Store {
    /// Names a store. Nothing is opened or made yet.
    pub fn new(directory: impl Into<PathBuf>, name: impl Into<String>) -> Self {
        Self {
            directory: directory.into(),
            name: name.into(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// What it holds; `None` if it was never written.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        match self.opened() {
            Ok(Some(directory)) => self.contents(&directory),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes what it holds, under a lock; the directory and the store are made if they are absent.
    ///
    /// # Errors
    ///
    /// See [`StoreError`]; the store is as it was.
    pub fn change<T, R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, StoreError>
    where
        T: Default + DeserializeOwned + Serialize,
    {
        let (directory, _lock) = self.locked()?;
        let mut value: T = self.contents(&directory)?.unwrap_or_default();
        let result = change(&mut value);
        let mut bytes = serde_json::to_vec_pretty(&value).map_err(|error| self.corrupt(&error))?;
        bytes.push(b'\n');
        replace(&directory, &self.name, PRIVATE_FILE, &bytes)
            .map_err(|errno| self.kernel(errno))?;
        Ok(result)
    }

    /// Takes the store away, whatever it holds.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn remove(&self) -> Result<(), StoreError> {
        let (directory, _lock) = self.locked()?;
        match unlinkat(&directory, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.kernel(errno)),
        }
    }

    /// Keeps everybody else from changing it for as long as the answer lives.
    pub(crate) fn lock(&self) -> Result<Lock, StoreError> {
        self.locked().map(|(_, lock)| lock)
    }

    fn locked(&self) -> Result<(OwnedFd, Lock), StoreError> {
        let mut made = std::fs::DirBuilder::new();
        let made = made.recursive(true).mode(0o700).create(&self.directory);
        made.map_err(|source| StoreError::Kernel {
            path: self.directory.clone(),
            source,
        })?;
        let directory = self.opened()?.ok_or_else(|| self.kernel(Errno::NOENT))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = openat(
            &directory,
            format!(".{}.lock", self.name),
            flags,
            PRIVATE_FILE,
        );
        let lock = lock.map_err(|errno| self.kernel(errno))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok((directory, Lock(lock))),
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(Errno::WOULDBLOCK) => {
                    let path = self.path();
                    return Err(StoreError::Busy { path });
                }
                Err(errno) => return Err(self.kernel(errno)),
            }
        }
    }

    /// The directory, if it is there and nobody else's.
    fn opened(&self) -> Result<Option<OwnedFd>, StoreError> {
        let foreign = || StoreError::Foreign {
            path: self.directory.clone(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match openat(CWD, &self.directory, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(foreign()),
            Err(errno) => return Err(self.kernel(errno)),
        };
        let status = fstat(&directory).map_err(|errno| self.kernel(errno))?;
        if status.st_uid != rustix::process::geteuid().as_raw() {
            return Err(foreign());
        }
        if Mode::from_raw_mode(status.st_mode).intersects(OTHERS) {
            // Ours, and made by somebody with another umask.
            fchmod(&directory, PRIVATE_DIRECTORY).map_err(|errno| self.kernel(errno))?;
        }
        Ok(Some(directory))
    }

    fn contents<T: DeserializeOwned>(&self, directory: &OwnedFd) -> Result<Option<T>, StoreError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(directory, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(self.foreign()),
            Err(errno) => return Err(self.kernel(errno)),
        };
        let status = fstat(&file).map_err(|errno| self.kernel(errno))?;
        let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        if !regular || status.st_uid != rustix::process::geteuid().as_raw() {
            return Err(self.foreign());
        }
        let mut bytes = Vec::new();
        let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
        read.map_err(|source| StoreError::Kernel {
            path: self.path(),
            source,
        })?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST) {
            return Err(self.corrupt(&"it is larger than 1 MiB"));
        }
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| self.corrupt(&error))
    }

    fn corrupt(&self, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Corrupt {
            path: self.path(),
            why: why.to_string(),
        }
    }

    fn foreign(&self) -> StoreError {
        StoreError::Foreign { path: self.path() }
    }

    fn kernel(&self, errno: Errno) -> StoreError {
        StoreError::Kernel {
            path: self.path(),
            source: errno.into(),
        }
    }
}

/// Nobody else changes the store while this lives.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "closing it lets go")] OwnedFd);

/// Gives a file new contents, all at once. Whoever calls this holds the lock.
pub(crate) fn replace(
    directory: &OwnedFd,
    name: &str,
    mode: Mode,
    bytes: &[u8],
) -> Result<(), Errno> {
    // One name is enough under the lock, and what a killed writer left is not kept.
    let new = format!(".{name}.new");
    match unlinkat(directory, &new, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(directory, &new, flags, PRIVATE_FILE)?);
    let written = file
        .write_all(bytes)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        .and_then(|()| fchmod(&file, mode))
        .and_then(|()| fsync(&file))
        .and_then(|()| renameat(directory, &new, directory, name));
    if let Err(errno) = written {
        // The old contents stand; the half-written file must not stay.
        let _ = unlinkat(directory, &new, AtFlags::empty());
        return Err(errno);
    }
    fsync(directory)
}

/// Seconds since 1970, for people to see how old something is.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The directory of a file, opened, and the file's name.
pub(crate) fn parent(path: &Path) -> Result<(OwnedFd, String), StoreError> {
    let refused = |errno: Errno| StoreError::Kernel {
        path: path.to_owned(),
        source: errno.into(),
    };
    let directory = path.parent().ok_or_else(|| refused(Errno::INVAL))?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| refused(Errno::INVAL))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, directory, flags, Mode::empty()).map_err(refused)?;
    Ok((opened, name.to_owned()))
}
