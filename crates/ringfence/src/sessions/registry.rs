//! The directory in which sessions are written down.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_sys::{Errno, Pid};
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat,
};

use super::record::{
    About, Apart, DirectoryIdentity, LARGEST, ProcessIdentity, Record, VERSION, World,
};
#[cfg(target_os = "linux")]
use super::sweep::{GroupIdentity, Mark};
use super::{Session, State, sweep};
use crate::launch::Linger;
use crate::place::{Lookout, Surroundings};

/// How long a supervisor may take to note that its session was ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why sessions cannot be written down, or read.
///
/// # Examples
///
/// ```
/// use ringfence::sessions::{Registry, RegistryError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let directory = std::env::temp_dir().join(format!("registry-{}", std::process::id()));
/// let registry = Registry::open(&directory)?;
/// assert!(matches!(registry.kill("web"), Err(RegistryError::NoSuch { .. })));
/// # std::fs::remove_dir(&directory)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The directory cannot be used.
    #[error("the directory of sessions {} cannot be used", path.display())]
    Directory {
        /// Where it is.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// Others than the user could write there.
    #[error("{} is not a directory of the user's own that nobody else can enter", path.display())]
    NotOwn {
        /// Where it is.
        path: PathBuf,
    },
    /// There is no place for such a directory.
    #[error(
        "there is nowhere to write sessions down: the user has neither a runtime directory nor a home"
    )]
    Nowhere,
    /// There is no session of that name.
    #[error("there is no session called {name:?}")]
    NoSuch {
        /// As it was asked for.
        name: String,
    },
    /// A session belongs to another pid namespace, where its numbers mean something else.
    #[error("the session {name:?} runs in another pid namespace")]
    Elsewhere {
        /// Its name.
        name: String,
    },
    /// Something of a session could not be ended.
    #[error("not all of the session {name:?} could be ended")]
    Survivors {
        /// Its name.
        name: String,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// What anybody but the owner may do with a file.
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// Opens a file of a directory by its one name. No link is followed.
fn open_in(directory: &OwnedFd, name: &CStr, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    if name.to_bytes().contains(&b'/') {
        return Err(Errno::INVAL);
    }
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, mode)
}

/// Where sessions are written down.
///
/// # Examples
///
/// ```no_run
/// use ringfence::sessions::Registry;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::of_user()?;
/// for session in registry.sessions()? {
///     println!("{} {}", session.name, session.command);
/// }
/// registry.kill("web")?;
/// // What killed supervisors have left.
/// registry.clean()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Registry {
    path: PathBuf,
    directory: Arc<OwnedFd>,
}

impl Registry {
    /// The sessions of the user who runs this program: those of `ringfence`, and of every program
    /// that uses this library.
    ///
    /// # Errors
    ///
    /// See [`RegistryError`].
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = ringfence::sessions::Registry::of_user()?;
    /// println!("{}", registry.path().display());
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_user() -> Result<Self, RegistryError> {
        let found = Surroundings::of_user(&Lookout::new());
        let found = found.map_err(|error| RegistryError::Directory {
            path: PathBuf::new(),
            source: io::Error::other(error),
        })?;
        Self::open(&found.sessions().ok_or(RegistryError::Nowhere)?)
    }

    /// Opens the directory, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// See [`RegistryError`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::sessions::Registry;
    /// # let directory = std::env::temp_dir().join(format!("registry-open-{}", std::process::id()));
    /// let registry = Registry::open(&directory)?;
    /// assert!(registry.sessions()?.is_empty());
    /// # std::fs::remove_dir(&directory)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(path: &Path) -> Result<Self, RegistryError> {
        match Self::existing(path) {
            Err(RegistryError::Directory { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                let mut made = std::fs::DirBuilder::new();
                made.recursive(true).mode(0o700);
                made.create(path)
                    .map_err(|source| RegistryError::Directory {
                        path: path.to_owned(),
                        source,
                    })?;
                Self::existing(path)
            }
            other => other,
        }
    }

    /// Opens the directory, if it is there.
    ///
    /// # Errors
    ///
    /// See [`RegistryError`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::sessions::Registry;
    /// # let directory = std::env::temp_dir().join(format!("registry-existing-{}", std::process::id()));
    /// assert!(Registry::existing(&directory).is_err());
    /// Registry::open(&directory)?;
    /// assert!(Registry::existing(&directory).is_ok());
    /// # std::fs::remove_dir(&directory)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn existing(path: &Path) -> Result<Self, RegistryError> {
        let refused = |source| RegistryError::Directory {
            path: path.to_owned(),
            source,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty());
        let directory = directory.map_err(|errno| refused(errno.into()))?;
        let found = fstat(&directory).map_err(|errno| refused(errno.into()))?;
        let own = found.st_uid == rustix::process::geteuid().as_raw()
            && !Mode::from_raw_mode(found.st_mode).intersects(OTHERS);
        if !own {
            let path = path.to_owned();
            return Err(RegistryError::NotOwn { path });
        }
        Ok(Self {
            path: path.to_owned(),
            directory: Arc::new(directory),
        })
    }

    /// Where it is.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::sessions::Registry;
    /// # let directory = std::env::temp_dir().join(format!("registry-path-{}", std::process::id()));
    /// let registry = Registry::open(&directory)?;
    /// assert_eq!(registry.path(), directory);
    /// # std::fs::remove_dir(&directory)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes down a session that has started, and keeps it so until the entry goes.
    pub(crate) fn begin(&self, about: &About, first: i32, linger: Linger) -> Result<Entry, Errno> {
        let mut entry = self.announce(about)?;
        entry.started(first, linger)?;
        Ok(entry)
    }

    /// Makes an entry for a session that is about to start. It is empty until something is about to be
    /// made: an empty one tells of nothing, and goes with the next start.
    pub(crate) fn announce(&self, about: &About) -> Result<Entry, Errno> {
        let record = Record::new(about, World::here()?);
        let name = CString::new(format!("{}.{}", record.supervisor, record.id));
        let name = name.map_err(|_| Errno::INVAL)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = open_in(&self.directory, &name, flags, Mode::RUSR | Mode::WUSR)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Entry {
            registry: self.clone(),
            name,
            file,
            record,
            length: 0,
            written: false,
        })
    }

    /// Every session that is written down.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn sessions(&self) -> Result<Vec<Session>, RegistryError> {
        let stats = sweep::all_processes();
        let mut sessions = Vec::new();
        for found in self.records()? {
            let state = match found.lock() {
                Ok(()) => State::LeftBehind,
                Err(_) => State::Live,
            };
            sessions.push(sweep::describe(&found.record, state, &stats));
        }
        sessions.sort_by_key(|session| session.started);
        Ok(sessions)
    }

    /// Ends a live session now, by its name or its id: everything in it.
    ///
    /// # Errors
    ///
    /// See [`RegistryError`].
    pub fn kill(&self, name: &str) -> Result<usize, RegistryError> {
        let known = |record: &Record| record.name == name || record.id == name;
        let mut count = 0;
        for found in self.records()? {
            if known(&found.record) {
                self.end(&found)?;
                count += 1;
            }
        }
        if count == 0 {
            let name = name.to_owned();
            return Err(RegistryError::NoSuch { name });
        }
        Ok(count)
    }

    fn end(&self, found: &FoundRecord) -> Result<(), RegistryError> {
        let name = || found.record.name.clone();
        let apart = found.record.apart();
        if apart != Ok(Apart::Not) {
            return Err(RegistryError::Elsewhere { name: name() });
        }
        if found.lock().is_ok() {
            // Its supervisor is gone already; what is left goes the same way.
            return self.remove(found).map(|_| ());
        }
        sweep::end(&found.record).map_err(|errno| RegistryError::Survivors {
            name: name(),
            source: errno.into(),
        })?;
        found.wait_for_supervisor();
        Ok(())
    }

    /// Removes what killed supervisors have left, and returns what that was.
    ///
    /// # Errors
    ///
    /// See [`RegistryError`]; all that could be removed was.
    pub fn clean(&self) -> Result<Vec<Session>, RegistryError> {
        let stats = sweep::all_processes();
        let mut cleaned = Vec::new();
        let mut refusal = None;
        self.remove_stillborn();
        for found in self.records()? {
            if found.lock().is_err() {
                continue;
            }
            let session = sweep::describe(&found.record, State::LeftBehind, &stats);
            match self.remove(&found) {
                Ok(true) => cleaned.push(session),
                Ok(false) => {}
                Err(error) => refusal = Some(error),
            }
        }
        refusal.map_or(Ok(cleaned), Err)
    }

    /// The same for a start, which has no time to lose: looks only at those whose supervisor's
    /// number is free.
    pub(crate) fn clean_quickly(&self) {
        let Ok(names) = self.names() else { return };
        for name in names {
            let number = name.to_str().ok().and_then(|name| name.split_once('.'));
            let number = number.and_then(|(number, _)| number.parse().ok());
            let taken = number
                .and_then(Pid::from_raw)
                .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH));
            if taken {
                continue;
            }
            match self.read(&name) {
                // What cannot be removed now is tried again by the next start.
                Some(found) if found.lock().is_ok() => {
                    let _ = self.remove(&found);
                }
                Some(_) => {}
                None => self.remove_if_stillborn(&name),
            }
        }
    }

    fn remove_stillborn(&self) {
        for name in self.names().unwrap_or_default() {
            if self.read(&name).is_none() {
                self.remove_if_stillborn(&name);
            }
        }
    }

    /// Removes the file of a supervisor that was killed before it wrote anything: nothing was made
    /// by then. Whatever else is no record is left alone.
    fn remove_if_stillborn(&self, name: &CStr) {
        let text = name.to_str().unwrap_or_default();
        let Some((supervisor, id)) = text.split_once('.') else {
            return;
        };
        let ours = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let supervisor = supervisor.parse().ok().and_then(Pid::from_raw);
        let gone = supervisor
            .is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(Errno::SRCH));
        if !ours || !gone {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let opened = open_in(&self.directory, name, flags, Mode::empty());
        let empty = opened.is_ok_and(|file| {
            flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
                && fstat(&file).is_ok_and(|stat| stat.st_size == 0)
        });
        if empty {
            // Gone by now is as good.
            let _ = unlinkat(&*self.directory, name, AtFlags::empty());
        }
    }

    /// Removes what a session has left, whose record is locked by us. `false` if its numbers mean
    /// nothing here.
    fn remove(&self, found: &FoundRecord) -> Result<bool, RegistryError> {
        let apart = found.record.apart();
        let swept = match apart {
            // Since the machine was started anew, none of its processes or groups can be there.
            Ok(Apart::Earlier) => sweep::remove_directory(&found.record),
            Ok(Apart::Not) => sweep::remove(&found.record),
            Ok(Apart::Elsewhere) | Err(_) => return Ok(false),
        };
        swept.map_err(|errno| RegistryError::Survivors {
            name: found.record.name.clone(),
            source: errno.into(),
        })?;
        // Gone by now is as good.
        let _ = unlinkat(&*self.directory, &found.name, AtFlags::empty());
        Ok(true)
    }

    fn names(&self) -> Result<Vec<CString>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&*self.directory)? {
            let entry = entry?;
            if !entry.file_name().to_bytes().starts_with(b".") {
                names.push(entry.file_name().to_owned());
            }
        }
        Ok(names)
    }

    fn records(&self) -> Result<Vec<FoundRecord>, RegistryError> {
        let names = self.names().map_err(|errno| RegistryError::Directory {
            path: self.path.clone(),
            source: errno.into(),
        })?;
        Ok(names
            .into_iter()
            .filter_map(|name| self.read(&name))
            .collect())
    }

    /// Reads a record; what is none is left alone.
    fn read(&self, name: &CStr) -> Option<FoundRecord> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = open_in(&self.directory, name, flags, Mode::empty()).ok()?;
        let found = fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        if !is_file || found.st_uid != rustix::process::geteuid().as_raw() {
            return None;
        }
        let mut text = String::new();
        let file = File::from(file);
        (&file).take(LARGEST).read_to_string(&mut text).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        (record.version == VERSION).then(|| FoundRecord {
            name: name.to_owned(),
            file,
            record,
        })
    }
}

/// A record that was found.
struct FoundRecord {
    name: CString,
    file: File,
    record: Record,
}

impl FoundRecord {
    /// Takes the lock, which only works if the supervisor is gone.
    fn lock(&self) -> Result<(), Errno> {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive)
    }

    /// Waits until the supervisor has taken note of the end and let go: whoever ends a session may
    /// start another of its name at once. One that does not listen is not waited for any longer.
    fn wait_for_supervisor(&self) {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        if self.record.supervisor == own {
            // It cannot note anything while it waits here.
            return;
        }
        let deadline = Instant::now() + PATIENCE;
        while self.lock().is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The record of a session that this process watches over. It goes with the entry.
#[derive(Debug)]
pub(crate) struct Entry {
    registry: Registry,
    name: CString,
    /// Locked for as long as it is open.
    file: OwnedFd,
    record: Record,
    /// How long what was written last is.
    length: usize,
    /// Whether everything that is known was written.
    written: bool,
}

impl Entry {
    /// What people call the session.
    pub(crate) fn name(&self) -> &str {
        &self.record.name
    }

    /// What the session's processes bear. It is written with whatever comes next.
    #[cfg(target_os = "linux")]
    pub(crate) fn bear(&mut self, mark: Mark) {
        self.record.mark = Some(mark);
        self.written = false;
    }

    /// Whether its processes can be found without the number of the first.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_borne(&self) -> bool {
        self.record.mark.is_some()
    }

    /// Writes down what is about to be made.
    pub(crate) fn expect(&mut self, making: Making) -> Result<(), Errno> {
        self.make(making);
        self.write()
    }

    /// What was made. It is written with whatever comes next, or by [`settle`](Self::settle): what is
    /// only expected is removed while nothing is in it.
    pub(crate) fn make(&mut self, made: Making) {
        match made {
            Making::Directory(tmp) => self.record.tmp = Some(tmp),
            #[cfg(target_os = "linux")]
            Making::Group(group) => self.record.group = Some(group),
        }
        self.written = false;
    }

    /// Writes everything that is known, if it was not written yet. Nothing may start before.
    #[cfg(target_os = "linux")]
    pub(crate) fn settle(&mut self) -> Result<(), Errno> {
        if self.written {
            return Ok(());
        }
        self.write()
    }

    /// Writes down the first process.
    pub(crate) fn started(&mut self, first: i32, linger: Linger) -> Result<(), Errno> {
        self.record.world = self.record.world.clone().now()?;
        self.record.first = ProcessIdentity::of(first);
        self.record.linger = linger == Linger::Yes;
        self.write()
    }

    fn write(&mut self) -> Result<(), Errno> {
        let broken = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let mut text = serde_json::to_vec(&self.record).map_err(|error| broken(error.into()))?;
        text.push(b'\n');
        if rustix::io::pwrite(&self.file, &text, 0)? != text.len() {
            return Err(Errno::IO);
        }
        // A record is read whole or not at all: the end of a longer one must not stay.
        if text.len() < self.length {
            rustix::fs::ftruncate(&self.file, u64::try_from(text.len()).unwrap_or(u64::MAX))?;
        }
        self.length = text.len();
        self.written = true;
        Ok(())
    }
}

/// Something that a session could leave behind.
#[derive(Debug)]
pub(crate) enum Making {
    /// Its temporary directory, or its own.
    Directory(DirectoryIdentity),
    /// Its cgroup.
    #[cfg(target_os = "linux")]
    Group(GroupIdentity),
}

impl Drop for Entry {
    fn drop(&mut self) {
        // If it cannot be removed, the next start finds it unlocked.
        let _ = unlinkat(&*self.registry.directory, &self.name, AtFlags::empty());
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
#[path = "registry_tests.rs"]
mod tests;
