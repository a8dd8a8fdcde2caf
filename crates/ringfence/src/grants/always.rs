//! Grants that hold until they are taken back: keys of the user's own settings.
//!
//! Only the keys of a grant change; comments, order and formatting stay. A file with a mistake in it
//! is not touched, and neither is one that would have one afterwards.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ringfence_core::host::HostPattern;
use ringfence_core::origin::{Layer, Located, Source};
use ringfence_core::path::AbsPath;
use ringfence_core::permission::Permission;
use ringfence_core::policy::{git_level, network_mode};
use ringfence_core::settings::edit::{Change, EditError, edited, entries_of, is_written};
use ringfence_core::settings::{
    Base, GitLevel, Keys, Kind, NetworkMode, Os, Settings, SettingsFile, has_errors,
};
use rustix::fs::Mode;

use crate::load::{FileError, read_user};
use crate::store::{Store, StoreError, now, parent, replace};

/// Why a grant could not be written or taken back. The settings are as they were.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlwaysError {
    /// The change has no place in the file.
    #[error("{} cannot be changed", path.display())]
    Edit {
        /// The settings.
        path: PathBuf,
        /// What is in the way.
        source: EditError,
    },
    /// There is no home, and so no file.
    #[error("there is no settings file to write to: HOME is not set")]
    Homeless,
    /// This is never kept.
    #[error("this cannot be granted for always: {what}")]
    Never {
        /// What it is.
        what: String,
    },
    /// The path cannot be written down.
    #[error("{path} is not text, and so cannot be written to the settings")]
    NotText {
        /// The path.
        path: AbsPath,
    },
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The settings.
        path: PathBuf,
        /// Why not.
        source: FileError,
    },
    /// It has mistakes, or would have.
    #[error("{} has a mistake in it", path.display())]
    Unsound {
        /// The settings.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("the settings cannot be written")]
    Write {
        /// Why not.
        source: StoreError,
    },
}

impl AlwaysError {
    /// What would mend it, if that is known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Read { .. } | Self::Unsound { .. } => {
                Some("`ringfence settings check` shows what is wrong with it")
            }
            Self::Edit { .. }
            | Self::Homeless
            | Self::Never { .. }
            | Self::NotText { .. }
            | Self::Write { .. } => None,
        }
    }
}

/// The user's settings, for writing grants to.
#[derive(Clone, Debug)]
pub struct Always {
    file: PathBuf,
    lock: Store,
    /// When each grant was given: the settings themselves do not say so.
    given: Store,
    home: Option<PathBuf>,
    os: Os,
}

impl Always {
    /// The file, and ringfence's directory of state, where the lock is.
    pub fn new(file: &Path, state: &Path, home: Option<&AbsPath>) -> Self {
        Self {
            file: file.to_owned(),
            lock: Store::new(state, "settings"),
            given: Store::new(state, "given.json"),
            home: home.map(|home| home.as_path().to_owned()),
            os: crate::place::OS,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Writes grants. Narrower entries of the same list go, and what is granted already stays as it
    /// is written: a grant only ever adds.
    ///
    /// # Errors
    ///
    /// See [`AlwaysError`].
    pub fn grant<'a>(
        &self,
        permissions: impl IntoIterator<Item = &'a Permission>,
    ) -> Result<(), AlwaysError> {
        let permissions: Vec<&Permission> = permissions.into_iter().collect();
        let changed = self.change(|mut text| {
            for permission in &permissions {
                text = self.granted(&text, permission)?;
            }
            Ok(text)
        })?;
        if changed {
            self.remember(|given| {
                for permission in permissions {
                    given.insert(permission.to_string(), now());
                }
            });
        }
        Ok(())
    }

    /// When a grant was given, in seconds since 1970; `None` if somebody else wrote it.
    pub fn given(&self, permission: &Permission) -> Option<u64> {
        let given: Option<BTreeMap<String, u64>> = self.given.read().ok()?;
        given?.get(&permission.to_string()).copied()
    }

    /// Only for people to see how old a grant is: one without an age holds all the same.
    fn remember(&self, change: impl FnOnce(&mut BTreeMap<String, u64>)) {
        let _ = self.given.change(change);
    }

    /// Takes a grant back. `false` if it was not written.
    ///
    /// # Errors
    ///
    /// See [`AlwaysError`].
    pub fn revoke(&self, permission: &Permission) -> Result<bool, AlwaysError> {
        let revoked = self.change(|text| self.revoked(&text, permission))?;
        if revoked {
            self.remember(|given| {
                given.remove(&permission.to_string());
            });
        }
        Ok(revoked)
    }

    fn change(
        &self,
        change: impl FnOnce(String) -> Result<String, AlwaysError>,
    ) -> Result<bool, AlwaysError> {
        let write = |source| AlwaysError::Write { source };
        let _lock = self.lock.lock().map_err(write)?;
        // People keep their settings elsewhere and link to them: the link stays.
        let target = std::fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        let read = |source| AlwaysError::Read {
            path: self.file.clone(),
            source,
        };
        let before = read_user(&target).map_err(read)?;
        let mode = rustix::fs::stat(&target).map_or(Mode::RUSR | Mode::WUSR, |status| {
            Mode::from_raw_mode(status.st_mode) & Mode::from_raw_mode(0o777)
        });
        let before = before.unwrap_or_default();
        self.check(&before)?;
        let after = change(before.clone())?;
        if after == before {
            return Ok(false);
        }
        self.check(&after)?;
        if let Some(directory) = target.parent() {
            let mut made = std::fs::DirBuilder::new();
            let made = made.recursive(true).mode(0o700).create(directory);
            made.map_err(|source| {
                let path = directory.to_owned();
                write(StoreError::Kernel { path, source })
            })?;
        }
        let (directory, name) = parent(&target).map_err(write)?;
        replace(&directory, &name, mode, after.as_bytes()).map_err(|errno| {
            write(StoreError::Kernel {
                path: target.clone(),
                source: errno.into(),
            })
        })?;
        Ok(true)
    }

    fn check(&self, text: &str) -> Result<(), AlwaysError> {
        self.keys(text).map(|_| ())
    }

    /// What the file says here.
    fn keys(&self, text: &str) -> Result<Keys, AlwaysError> {
        let source = Source::new(Layer::User, &self.file, text);
        let base = Base {
            directory: self.file.parent().map(Path::to_owned).unwrap_or_default(),
            home: self.home.clone(),
            // Any place will do: nothing is looked up.
            project: Some(PathBuf::from("/")),
        };
        let (file, problems) = SettingsFile::read(&source, &base);
        if has_errors(&problems) {
            let path = self.file.clone();
            return Err(AlwaysError::Unsound { path });
        }
        Ok(file.on(self.os))
    }

    /// Whether this file alone lets a tool do more, or as much. To write down less would take that
    /// away: one host on a list is all that can be reached.
    fn exceeds(&self, text: &str, permission: &Permission) -> Result<bool, AlwaysError> {
        let settings = Settings::new().with(Layer::User, self.keys(text)?);
        Ok(match permission {
            Permission::Git(level) => git_level(&settings, Kind::Tool) >= *level,
            Permission::AnyHost | Permission::Host(_) => {
                network_mode(&settings, Kind::Tool) == NetworkMode::All
            }
            Permission::Fallback
            | Permission::Unsandboxed
            | Permission::Write(_)
            | Permission::WriteAll => false,
        })
    }

    fn granted(&self, text: &str, permission: &Permission) -> Result<String, AlwaysError> {
        let edit = |text: &str, key: &[&str], change: Change<'_>| {
            let key = self.key(text, key);
            edited(text, &key, &change).map_err(|source| AlwaysError::Edit {
                path: self.file.clone(),
                source,
            })
        };
        if self.exceeds(text, permission)? {
            return Ok(text.to_owned());
        }
        match permission {
            Permission::AnyHost => edit(text, &ANY_HOST, Change::Set("true")),
            Permission::WriteAll => edit(text, &WRITE_ALL, Change::Set("true")),
            Permission::Unsandboxed => edit(text, &UNSANDBOXED, Change::Set("true")),
            // The seed's key means one level, and ringfence's own key is stronger than it.
            Permission::Git(GitLevel::Write) if !is_written(text, &self.key(text, &GIT)) => {
                edit(text, &GIT_ACCESS, Change::Set("true"))
            }
            Permission::Git(level) => edit(text, &GIT, Change::Set(&format!("\"{level}\""))),
            Permission::Host(pattern) => {
                let mut text = text.to_owned();
                for known in entries_of(&text, &self.key(&text, &HOSTS)) {
                    let narrower = known.parse::<HostPattern>();
                    if narrower.is_ok_and(|known| known != *pattern && pattern.covers(&known)) {
                        text = edit(&text, &HOSTS, Change::Remove(&known))?;
                    }
                }
                edit(&text, &HOSTS, Change::Add(&pattern.to_string()))
            }
            Permission::Write(path) => {
                let written = path.as_path().to_str();
                let written = written.ok_or_else(|| AlwaysError::NotText { path: path.clone() })?;
                let mut text = text.to_owned();
                for known in entries_of(&text, &self.key(&text, &WRITE_PATHS)) {
                    // What is written with `~/` is somebody's own line, and stays.
                    let narrower = AbsPath::parse(&known);
                    if narrower.is_ok_and(|known| known != *path && path.covers(&known)) {
                        text = edit(&text, &WRITE_PATHS, Change::Remove(&known))?;
                    }
                }
                edit(&text, &WRITE_PATHS, Change::Add(written))
            }
            Permission::Fallback => Err(AlwaysError::Never {
                what: permission.to_string(),
            }),
        }
    }

    fn revoked(&self, text: &str, permission: &Permission) -> Result<String, AlwaysError> {
        let edit = |text: &str, key: &[&str], change: &Change<'_>| {
            let key = self.key(text, key);
            edited(text, &key, change).map_err(|source| AlwaysError::Edit {
                path: self.file.clone(),
                source,
            })
        };
        match permission {
            Permission::AnyHost => edit(text, &ANY_HOST, &Change::Unset),
            Permission::WriteAll => edit(text, &WRITE_ALL, &Change::Unset),
            Permission::Unsandboxed => edit(text, &UNSANDBOXED, &Change::Unset),
            // Nothing was granted by it, and what a shell may do would be more without it.
            Permission::Git(_) if self.keys(text)?.git.written().is_some_and(is_hidden) => {
                edit(text, &GIT_ACCESS, &Change::Unset)
            }
            Permission::Git(_) => {
                let text = edit(text, &GIT_ACCESS, &Change::Unset)?;
                edit(&text, &GIT, &Change::Unset)
            }
            Permission::Host(pattern) => edit(text, &HOSTS, &Change::Remove(&pattern.to_string())),
            Permission::Write(path) => {
                let written = path.as_path().to_str().unwrap_or_default();
                edit(text, &WRITE_PATHS, &Change::Remove(written))
            }
            Permission::Fallback => Ok(text.to_owned()),
        }
    }

    /// The key as this system reads it: its own part of the file replaces the rest, key by key.
    fn key<'k>(&self, text: &str, key: &[&'k str]) -> Vec<&'k str> {
        let part = match self.os {
            Os::Linux => "linux",
            Os::Macos => "macos",
            Os::Windows => "windows",
        };
        let own: Vec<&str> = std::iter::once(part).chain(key.iter().copied()).collect();
        if is_written(text, &own) {
            return own;
        }
        key.to_vec()
    }
}

fn is_hidden(written: &Located<GitLevel>) -> bool {
    written.value == GitLevel::Hidden
}

const GIT: [&str; 1] = ["git"];
const HOSTS: [&str; 3] = ["agent", "sandbox_permissions", "network_hosts"];
const ANY_HOST: [&str; 3] = ["agent", "sandbox_permissions", "allow_all_hosts"];
const GIT_ACCESS: [&str; 3] = ["agent", "sandbox_permissions", "allow_git_access"];
const UNSANDBOXED: [&str; 3] = ["agent", "sandbox_permissions", "allow_unsandboxed"];
const WRITE_PATHS: [&str; 3] = ["agent", "sandbox_permissions", "write_paths"];
const WRITE_ALL: [&str; 3] = ["agent", "sandbox_permissions", "allow_fs_write_all"];
