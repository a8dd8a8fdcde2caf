//! Projects whose settings file may widen, as long as it stays exactly as it was seen.

use std::collections::BTreeMap;
use std::path::Path;

use ringfence_core::binding::Hash;
use ringfence_core::path::AbsPath;
use serde::{Deserialize, Serialize};

use crate::store::{Store, StoreError, now};

const VERSION: u32 = 1;

/// What is pinned of one project.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Pin {
    /// SHA-256 of the settings file.
    pub sha256: String,
    /// When, in seconds since 1970.
    pub given: u64,
}

#[derive(Debug, Deserialize, Serialize)]
struct Pins {
    version: u32,
    projects: BTreeMap<String, Pin>,
}

impl Default for Pins {
    fn default() -> Self {
        Self {
            version: VERSION,
            projects: BTreeMap::new(),
        }
    }
}

/// The projects that the user trusts.
#[derive(Clone, Debug)]
pub struct Trust {
    store: Store,
}

impl Pin {
    /// Whether it is this very text that was seen.
    pub fn covers(&self, text: &str) -> bool {
        self.sha256 == Hash::of(text.as_bytes()).to_string()
    }
}

impl Trust {
    /// Kept in ringfence's directory of state.
    pub fn new(state: &Path) -> Self {
        Self {
            store: Store::new(state, "trust.json"),
        }
    }

    /// Whether exactly this text of this project is trusted.
    ///
    /// # Errors
    ///
    /// See [`StoreError`]; who gets one starts nothing.
    pub fn covers(&self, project: &AbsPath, text: &str) -> Result<bool, StoreError> {
        let Some(name) = project.as_path().to_str() else {
            return Ok(false);
        };
        let pins = self.pins()?;
        Ok(pins.get(name).is_some_and(|pin| pin.covers(text)))
    }

    /// Every project with what is pinned.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn pins(&self) -> Result<BTreeMap<String, Pin>, StoreError> {
        let pins: Pins = self.store.read()?.unwrap_or_default();
        if pins.version != VERSION {
            return Err(StoreError::Corrupt {
                path: self.store.path(),
                why: format!(
                    "it has version {}, and this ringfence knows {VERSION}",
                    pins.version
                ),
            });
        }
        Ok(pins.projects)
    }

    /// Trusts exactly this text. `false` if the project's path is no text, and so cannot be kept.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn pin(&self, project: &AbsPath, text: &str) -> Result<bool, StoreError> {
        let Some(name) = project.as_path().to_str() else {
            return Ok(false);
        };
        self.pins()?;
        self.store.change(|pins: &mut Pins| {
            let pin = Pin {
                sha256: Hash::of(text.as_bytes()).to_string(),
                given: now(),
            };
            pins.projects.insert(name.to_owned(), pin);
        })?;
        Ok(true)
    }

    /// Trusts a project no longer. `false` if it was not trusted.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn revoke(&self, project: &Path) -> Result<bool, StoreError> {
        let Some(name) = project.to_str() else {
            return Ok(false);
        };
        self.pins()?;
        self.store
            .change(|pins: &mut Pins| pins.projects.remove(name).is_some())
    }
}
