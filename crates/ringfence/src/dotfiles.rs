//! A warning about secrets in start-up files that a session can read.
//!
//! It is given once for each name: what was warned about is remembered in the directory of state, as
//! hashes. As long as the files are as they were, none of them is opened.

use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use ringfence_core::binding::Hash;
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{Access, Content, Found, Policy, Seen};
use ringfence_core::startup::{STARTUP_FILES, secrets_in};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::place::Lookout;
use crate::store::{Store, StoreError};

/// More than anybody's start-up file.
const LARGEST: u64 = 1 << 20;

/// A start-up file with variables whose values look like secrets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Telling {
    /// The file, links followed.
    pub file: AbsPath,
    /// The names of the variables. Values are never kept.
    pub names: Vec<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct Remembered {
    /// Which files there were, and when they were changed.
    files: String,
    /// Every name in every file that was warned about.
    warned: BTreeSet<String>,
}

/// What a session with this policy can read and nobody was warned about yet; from now on they were.
///
/// # Errors
///
/// See [`StoreError`]: what was warned about before cannot be told.
pub fn unwarned(policy: &Policy, home: &AbsPath, state: &Path) -> Result<Vec<Telling>, StoreError> {
    let files = readable(policy, home);
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let seen = fingerprint(&files);
    let store = Store::new(state, "dotfiles.json");
    let before: Remembered = store.read()?.unwrap_or_default();
    if before.files == seen {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    for (file, _) in files {
        let mut names = secrets_in(&text_of(&file));
        names.retain(|name| {
            let hash = Hash::of(
                &[
                    file.as_path().as_os_str().as_encoded_bytes(),
                    b"\0",
                    name.as_bytes(),
                ]
                .concat(),
            )
            .to_string();
            let new = !before.warned.contains(&hash);
            known.insert(hash);
            new
        });
        if !names.is_empty() {
            all.push(Telling { file, names });
        }
    }
    store.change(|remembered: &mut Remembered| {
        remembered.files = seen;
        remembered.warned.append(&mut known);
    })?;
    Ok(all)
}

/// The start-up files that are there and that the policy lets be read.
fn readable(policy: &Policy, home: &AbsPath) -> Vec<(AbsPath, Metadata)> {
    let mut found: Vec<(AbsPath, Metadata)> = Vec::new();
    // Nothing is held back from a session that is only tracked.
    if policy.only_tracks() {
        return found;
    }
    let lookout = Lookout::new();
    for name in STARTUP_FILES {
        let path = home.as_path().join(name);
        let Ok(metadata) = std::fs::metadata(&path) else {
            continue;
        };
        let Seen::At(path, Found::File) = lookout.look(&path) else {
            continue;
        };
        let verdict = policy.files().access(&path);
        let given = verdict.access >= Access::Read && verdict.content() == Content::Host;
        if given && !found.iter().any(|(known, _)| *known == path) {
            found.push((path, metadata));
        }
    }
    found
}

fn fingerprint(files: &[(AbsPath, Metadata)]) -> String {
    let mut bytes = Vec::new();
    for (path, metadata) in files {
        bytes.extend_from_slice(path.as_path().as_os_str().as_encoded_bytes());
        bytes.push(0);
        let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
        let numbers = [metadata.dev(), metadata.ino(), metadata.len()];
        bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(
            [seconds, nanoseconds]
                .into_iter()
                .flat_map(i64::to_le_bytes),
        );
    }
    Hash::of(&bytes).to_string()
}

/// What is in a file; nothing if it cannot be read: then the session cannot read it either.
fn text_of(path: &AbsPath) -> String {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path.as_path());
    let mut bytes = Vec::new();
    let read = file.and_then(|file: File| file.take(LARGEST).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}
