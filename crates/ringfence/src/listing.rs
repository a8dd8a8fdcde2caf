//! The names in a directory, to tell what is not there.
//!
//! A name that a list lacks is only then surely absent if the file system lists everything it has
//! and finds nothing under another spelling. So only file systems that are known to are believed,
//! and a name counts as there if it is, in any case; what could be folded into anything is not
//! judged at all. Whoever asks about a name that may be there asks the kernel.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Directories, each listed once it was asked about often.
#[derive(Debug, Default)]
pub(crate) struct Listings(HashMap<OsString, Asked>);

/// How often a directory was asked about.
#[derive(Debug)]
enum Asked {
    Seldom(u32),
    Often(Listing),
}

/// From so many questions on, a list is cheaper than asking for each.
pub(crate) const OFTEN: u32 = 12;

impl Listings {
    /// Whether a directory surely has nothing under a name.
    pub(crate) fn lack(&mut self, directory: &Path, name: &OsStr) -> bool {
        let Some(asked) = self.0.get_mut(directory.as_os_str()) else {
            let directory = directory.as_os_str().to_owned();
            self.0.insert(directory, Asked::Seldom(1));
            return false;
        };
        if let Asked::Seldom(times) = asked {
            *times += 1;
            if *times < OFTEN {
                return false;
            }
            *asked = Asked::Often(Listing::of(directory));
        }
        matches!(asked, Asked::Often(listing) if !listing.may_hold(name))
    }
}

/// What is in a directory, as far as it is known.
#[derive(Debug)]
enum Listing {
    /// These names and no others.
    Known(Names),
    /// Whatever it is.
    Unknown,
}

/// Names, one after the other, each with its length before it. Some hundred are sooner looked
/// through than put in order.
#[derive(Debug, Default)]
struct Names(Vec<u8>);

impl Names {
    /// Whether it could be added: what is too long is no name.
    #[cfg(target_os = "linux")]
    fn push(&mut self, name: &[u8]) -> bool {
        let length = u8::try_from(name.len());
        if let Ok(length) = length {
            self.0.push(length);
            self.0.extend_from_slice(name);
        }
        length.is_ok()
    }

    /// Whether one of them is this, but for its case.
    fn have(&self, name: &[u8]) -> bool {
        let mut rest = self.0.as_slice();
        while let [length, after @ ..] = rest {
            let Some((next, after)) = after.split_at_checked((*length).into()) else {
                break;
            };
            if next.eq_ignore_ascii_case(name) {
                return true;
            }
            rest = after;
        }
        false
    }
}

/// What is longer is no name at all, and the kernel says so.
const LONGEST_NAME: usize = 255;

impl Listing {
    /// Lists a directory, if that can tell anything.
    fn of(directory: &Path) -> Self {
        names(directory).map_or(Self::Unknown, Self::Known)
    }

    /// Whether there may be something under this name.
    fn may_hold(&self, name: &OsStr) -> bool {
        let name = name.as_bytes();
        match self {
            Self::Known(names) if name.is_ascii() && name.len() <= LONGEST_NAME => names.have(name),
            Self::Known(_) | Self::Unknown => true,
        }
    }
}

#[cfg(target_os = "linux")]
fn names(directory: &Path) -> Option<Names> {
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
    let mut names = Names::default();
    let mut count = 0;
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if !name.is_ascii() || !names.push(name) {
            return None;
        }
        count += 1;
        // The buffer was filled: there may be a thousand times as many.
        if entries.is_buffer_empty() && count > LARGEST / 32 {
            return None;
        }
    }
    Some(names)
}

/// No file system is known to elsewhere.
#[cfg(not(target_os = "linux"))]
fn names(_directory: &Path) -> Option<Names> {
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
