//! The names in a directory, to tell what is not there.
//!
//! A name that a list lacks is only then surely absent if the file system lists everything it has
//! and finds nothing under another spelling. So only file systems that are known to are believed,
//! and a name counts as there if it is, in any case; what could be folded into anything is not
//! judged at all. Whoever asks about a name that may be there asks the kernel.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is in a directory, as far as it is known.
#[derive(Debug)]
pub(crate) enum Listing {
    /// These names, in lower case, and no others.
    Known(HashSet<Vec<u8>>),
    /// Whatever it is.
    Unknown,
}

/// What is longer is no name at all, and the kernel says so.
const LONGEST_NAME: usize = 255;

impl Listing {
    /// Lists a directory, if that can tell anything.
    pub(crate) fn of(directory: &Path) -> Self {
        names(directory).map_or(Self::Unknown, Self::Known)
    }

    /// Whether there may be something under this name.
    pub(crate) fn may_hold(&self, name: &OsStr) -> bool {
        let name = name.as_bytes();
        match self {
            Self::Known(names) if name.is_ascii() && name.len() <= LONGEST_NAME => {
                names.contains(&name.to_ascii_lowercase())
            }
            Self::Known(_) | Self::Unknown => true,
        }
    }
}

#[cfg(target_os = "linux")]
fn names(directory: &Path) -> Option<HashSet<Vec<u8>>> {
    use rustix::fs::{Mode, OFlags, RawDir, fstatfs, open};
    use std::mem::MaybeUninit;

    /// A directory that does not fit is not worth listing.
    const LARGEST: usize = 16 << 10;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(directory, flags, Mode::empty()).ok()?;
    if !crate::local::is_local(&fstatfs(&directory).ok()?) {
        return None;
    }
    let mut buffer = [MaybeUninit::<u8>::uninit(); LARGEST];
    let mut entries = RawDir::new(&directory, &mut buffer);
    let mut names = HashSet::new();
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if !name.is_ascii() {
            return None;
        }
        names.insert(name.to_ascii_lowercase());
        // The buffer was filled: there may be a thousand times as many.
        if entries.is_buffer_empty() && names.len() > LARGEST / 32 {
            return None;
        }
    }
    Some(names)
}

/// No file system is known to elsewhere.
#[cfg(not(target_os = "linux"))]
fn names(_directory: &Path) -> Option<HashSet<Vec<u8>>> {
    None
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs;

    fn with(names: &[&str]) -> (tempfile::TempDir, Listing) {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let listing = Listing::of(directory.path());
        (directory, listing)
    }

    #[test]
    fn what_is_there_in_any_spelling_may_be_there() {
        let (_directory, listing) = with(&[".ssh", "Netrc"]);
        for there in [".ssh", ".SSH", "netrc", "Netrc"] {
            assert!(listing.may_hold(OsStr::new(there)), "{there}");
        }
        assert!(!listing.may_hold(OsStr::new(".aws")));
        // Some file system may find a plain name under this one.
        assert!(listing.may_hold(OsStr::new("\u{212a}ube")));
    }

    #[test]
    fn nothing_is_said_of_directories_that_could_surprise() {
        let (_directory, listing) = with(&["a", "\u{212a}ube"]);
        assert!(listing.may_hold(OsStr::new(".kube")));
        assert!(Listing::of(Path::new("/proc/self")).may_hold(OsStr::new("absent")));
        assert!(Listing::of(Path::new("/nowhere")).may_hold(OsStr::new("absent")));
        let many: Vec<String> = (0..2000).map(|number| format!("name-{number}")).collect();
        let (_directory, listing) = with(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(listing.may_hold(OsStr::new("absent")));
    }
}
