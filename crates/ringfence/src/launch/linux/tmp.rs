//! A temporary directory for sessions that see the host's tree.
//!
//! Without mounts of its own a session cannot have a private `/tmp`. It gets a directory with a
//! name nobody can guess, which the usual variables point to, and which goes with it.

use std::ffi::CString;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ringfence_sys::process::fill_random;

use crate::launch::LaunchError;
use crate::sessions::{DirectoryIdentity, Entry, Making, remove_all};

/// The variables that programs look for a temporary directory in.
const VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// A directory that is removed with its session.
#[derive(Debug)]
pub(super) struct SessionTmp(PathBuf);

impl SessionTmp {
    /// Makes the directory and points the variables to it.
    ///
    /// It is written down before, and after before anything starts: whoever is killed between leaves an
    /// empty directory of that name, and nothing else goes by the name alone.
    pub(super) fn new(
        environment: &mut Vec<CString>,
        entry: Option<&mut Entry>,
    ) -> Result<Self, LaunchError> {
        let refused = |source| LaunchError::Prepare {
            what: "make a temporary directory for the session".to_owned(),
            source,
        };
        let mut random = [0_u8; 12];
        fill_random(&mut random).map_err(|errno| refused(errno.into()))?;
        let mut name = "ringfence-".to_owned();
        for byte in random {
            // Writing to a String cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        // Canonical, since the rule for it follows no link.
        let path = parent().map_err(refused)?.join(name);
        let noted = |errno: ringfence_sys::Errno| refused(errno.into());
        let mut entry = entry;
        if let Some(entry) = &mut entry {
            let planned = DirectoryIdentity::planned(path.clone());
            let planned = Making::Directory(planned);
            entry.expect(planned).map_err(noted)?;
        }
        // Refuses what is already there, whatever it is.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(refused)?;
        let tmp = Self(path);
        if let Some(entry) = entry {
            let made = DirectoryIdentity::at(tmp.0.clone()).map_err(noted)?;
            entry.make(Making::Directory(made));
        }
        for variable in VARIABLES {
            environment.retain(|known| !has_name(known, variable));
            let mut text = format!("{variable}=").into_bytes();
            text.extend_from_slice(tmp.0.as_os_str().as_bytes());
            let text = CString::new(text).map_err(|error| refused(io::Error::other(error)))?;
            environment.push(text);
        }
        Ok(tmp)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

/// Where directories of sessions are made, by its canonical path.
fn parent() -> io::Result<PathBuf> {
    let path = std::env::temp_dir();
    // Nearly always it is `/tmp`, and asking for that alone is all there is to do.
    let plain = path.is_absolute()
        && path.components().as_path().as_os_str() == path.as_os_str()
        && path.parent() == Some(Path::new("/"))
        && path.symlink_metadata()?.is_dir();
    if plain { Ok(path) } else { path.canonicalize() }
}

fn has_name(variable: &CString, name: &str) -> bool {
    variable
        .to_bytes()
        .strip_prefix(name.as_bytes())
        .is_some_and(|rest| rest.first() == Some(&b'='))
}

impl Drop for SessionTmp {
    fn drop(&mut self) {
        // Follows no link. What cannot be removed stays readable by its owner alone.
        let _ = remove_all(&self.0);
    }
}
