//! Answers that hold for a thread.

use std::path::{Path, PathBuf};

use ringfence_core::binding::Hash;
use ringfence_core::permission::{Permission, Permissions};
use serde::{Deserialize, Serialize};

use crate::store::{Store, StoreError, now};

const VERSION: u32 = 1;
/// Where Linux says which start of the machine this is.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Longer than any name that somebody gives a conversation.
const LONGEST: usize = 256;

/// The name of a thread: whatever a caller uses to tell conversations apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ThreadId(String);

impl std::str::FromStr for ThreadId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.len() > LONGEST {
            return Err("a thread's name has 1 to 256 bytes");
        }
        if text.chars().any(ringfence_core::text::is_hidden) {
            return Err("a thread's name cannot have characters that are not seen");
        }
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Display for ThreadId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One answer that is kept.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Kept {
    /// What it is about.
    #[serde(flatten)]
    pub permission: Permission,
    /// When it was given, in seconds since 1970.
    pub given: u64,
}

/// Everything that is kept of a thread.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Thread {
    version: u32,
    /// Its name.
    pub thread: String,
    /// The start of the machine that it belongs to.
    boot: Option<String>,
    /// What was granted.
    pub granted: Vec<Kept>,
    /// What was refused.
    pub denied: Vec<Kept>,
}

impl Thread {
    /// What was granted.
    pub fn permissions(&self) -> Permissions {
        let granted = self.granted.iter();
        granted.map(|kept| kept.permission.clone()).collect()
    }

    /// What was refused, if it is part of this.
    pub fn refused<'a>(&self, wanted: &'a Permissions) -> Option<&'a Permission> {
        wanted.iter().find(|wanted| {
            let denied = self.denied.iter();
            denied.clone().any(|kept| wanted.covers(&kept.permission))
        })
    }

    fn keep(list: &mut Vec<Kept>, permission: &Permission, given: u64) {
        if list.iter().any(|kept| kept.permission.covers(permission)) {
            return;
        }
        list.retain(|kept| !permission.covers(&kept.permission));
        list.push(Kept {
            permission: permission.clone(),
            given,
        });
    }
}

/// The threads of this machine's current run.
#[derive(Clone, Debug)]
pub struct Threads {
    directory: PathBuf,
}

impl Threads {
    /// Kept in this directory, which is made when something is.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// The file in which what belongs to a thread is kept.
    pub fn path(&self, id: &ThreadId) -> PathBuf {
        self.store(id).path()
    }

    fn store(&self, id: &ThreadId) -> Store {
        // A hash: a name may hold slashes, and some filesystems do not tell `A` from `a`.
        let name = Hash::of(id.0.as_bytes()).to_string();
        Store::new(&self.directory, format!("{name}.json"))
    }

    /// What is kept of a thread; nothing if it was never heard of, or is from before the machine
    /// was last started.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn read(&self, id: &ThreadId) -> Result<Thread, StoreError> {
        let store = self.store(id);
        let thread: Option<Thread> = store.read()?;
        let Some(thread) = thread.filter(|thread| thread.boot == boot()) else {
            return Ok(Thread::default());
        };
        check(&store, &thread)?;
        Ok(thread)
    }

    /// Keeps a yes; what was refused before and is now granted is forgotten.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn grant(&self, id: &ThreadId, permissions: &Permissions) -> Result<(), StoreError> {
        self.change(id, |thread| {
            for permission in permissions {
                thread
                    .denied
                    .retain(|kept| !permission.covers(&kept.permission));
                Thread::keep(&mut thread.granted, permission, now());
            }
        })
    }

    /// Keeps a no.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn deny(&self, id: &ThreadId, permissions: &Permissions) -> Result<(), StoreError> {
        self.change(id, |thread| {
            for permission in permissions {
                let known = thread
                    .denied
                    .iter()
                    .any(|kept| kept.permission == *permission);
                if !known {
                    thread.denied.push(Kept {
                        permission: permission.clone(),
                        given: now(),
                    });
                }
            }
        })
    }

    /// Takes a yes or a no back. `false` if there was none.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn revoke(&self, id: &ThreadId, permission: &Permission) -> Result<bool, StoreError> {
        if self.read(id)?.thread.is_empty() {
            return Ok(false);
        }
        self.change(id, |thread| {
            let before = thread.granted.len() + thread.denied.len();
            thread.granted.retain(|kept| kept.permission != *permission);
            thread.denied.retain(|kept| kept.permission != *permission);
            before != thread.granted.len() + thread.denied.len()
        })
    }

    /// Forgets a thread.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn forget(&self, id: &ThreadId) -> Result<(), StoreError> {
        self.store(id).remove()
    }

    /// Every thread of which something is kept.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn all(&self) -> Result<Vec<Thread>, StoreError> {
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                let path = self.directory.clone();
                return Err(StoreError::Kernel { path, source });
            }
        };
        let mut out = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            if Path::new(name)
                .extension()
                .is_none_or(|extension| extension != "json")
            {
                continue;
            }
            let store = Store::new(&self.directory, name);
            let thread: Option<Thread> = store.read()?;
            if let Some(thread) = thread.filter(|thread| thread.boot == boot()) {
                check(&store, &thread)?;
                out.push(thread);
            }
        }
        out.sort_by(|a, b| a.thread.cmp(&b.thread));
        Ok(out)
    }

    fn change<R>(
        &self,
        id: &ThreadId,
        change: impl FnOnce(&mut Thread) -> R,
    ) -> Result<R, StoreError> {
        self.read(id)?;
        self.store(id).change(|thread: &mut Thread| {
            if thread.boot != boot() {
                *thread = Thread::default();
            }
            thread.version = VERSION;
            thread.thread.clone_from(&id.0);
            thread.boot = boot();
            change(thread)
        })
    }
}

fn check(store: &Store, thread: &Thread) -> Result<(), StoreError> {
    if thread.version == VERSION {
        return Ok(());
    }
    Err(StoreError::Corrupt {
        path: store.path(),
        why: format!(
            "it has version {}, and this ringfence knows {VERSION}",
            thread.version
        ),
    })
}

/// Which start of the machine this is; nothing where nobody says so, and then the directory's own
/// life is what ends threads.
fn boot() -> Option<String> {
    let text = std::fs::read_to_string(BOOT).ok()?;
    Some(text.trim().to_owned())
}
