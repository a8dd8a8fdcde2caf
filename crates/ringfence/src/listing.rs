//! The names in a directory, to tell what is not there.
//!
//! A name that a list lacks is only then surely absent if the file system lists everything it has
//! and finds nothing under another spelling. So only file systems that are known to are believed,
//! and a name counts as there if it is, in any case; what could be folded into anything is not
//! judged at all. Whoever asks about a name that may be there asks the kernel.

#[cfg(target_os = "linux")]
use foldhash::HashMap;
use std::ffi::OsStr;
#[cfg(target_os = "linux")]
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Directories, each listed once it was asked about often.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
pub(crate) struct Listings(HashMap<OsString, Inside>);

#[cfg(target_os = "linux")]
impl Listings {
    /// Whether a directory surely has nothing under a name.
    pub(crate) fn lack(&mut self, directory: &Path, name: &OsStr) -> bool {
        let inside = match self.0.get_mut(directory.as_os_str()) {
            Some(inside) => inside,
            None => self.0.entry(directory.as_os_str().to_owned()).or_default(),
        };
        inside.missed();
        inside.lacks(directory, name) || self.lack_directory(directory)
    }

    /// Whether a list that was made already lacks a directory, or one above it.
    fn lack_directory(&mut self, directory: &Path) -> bool {
        directory.ancestors().any(|directory| {
            let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else {
                return false;
            };
            let listed = self.0.get_mut(above.as_os_str());
            listed.is_some_and(|inside| inside.lacks(above, name))
        })
    }
}

/// What is known of the inside of one directory.
#[derive(Debug)]
pub(crate) struct Inside {
    /// How many names may still be asked for in vain before a list is cheaper. One that is there
    /// is asked for in any case.
    patience: u32,
    listing: Option<Listing>,
}

/// After so many questions a directory of unknown size is listed.
pub(crate) const OFTEN: u32 = 12;
/// The patience with a directory that is not to be listed.
const NEVER: u32 = u32::MAX;

impl Inside {
    /// Of a directory of which the kernel has told this much.
    ///
    /// On disk a directory is blocks of names, and a list costs as much as some questions for each
    /// of them, and more the more of a block is used: each directory in it is a link to it, and a list
    /// costs half as much as asking for each. One that does not fit into the list is only ever asked.
    /// Where these numbers mean something else they are small, and so is what is lost by a list too many.
    pub(crate) fn of(status: &rustix::fs::Stat) -> Self {
        let size = u64::try_from(status.st_size).unwrap_or(u64::MAX);
        Self::of_size(size, crate::changes::links(status))
    }

    fn of_size(size: u64, links: u64) -> Self {
        const BLOCK: u64 = 4096;
        const QUESTIONS: u32 = 4;
        let patience = match u32::try_from(size.div_ceil(BLOCK)) {
            Ok(blocks @ 0..=4) => {
                let by_links = u32::try_from(links / 2).unwrap_or(NEVER);
                by_links.max(blocks.max(1) * QUESTIONS)
            }
            _ => NEVER,
        };
        Self {
            patience,
            listing: None,
        }
    }

    /// Whether the directory surely has nothing under a name.
    pub(crate) fn lacks(&mut self, directory: &Path, name: &OsStr) -> bool {
        if self.patience > 0 {
            return false;
        }
        let listing = self.listing.get_or_insert_with(|| Listing::of(directory));
        !listing.may_hold(name)
    }

    /// Somebody asked for a name that is not there.
    pub(crate) fn missed(&mut self) {
        if self.patience != NEVER {
            self.patience = self.patience.saturating_sub(1);
        }
    }
}

impl Default for Inside {
    fn default() -> Self {
        Self {
            patience: OFTEN,
            listing: None,
        }
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

    /// A directory with more text in it is not worth listing.
    const LARGEST: usize = 12 << 10;
    /// On the stack, where every page of it is touched, filled or not.
    const AT_ONCE: usize = 4 << 10;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(directory, flags, Mode::empty()).ok()?;
    if !crate::local::is_local(&fstatfs(&directory).ok()?) {
        return None;
    }
    let mut buffer = [MaybeUninit::<u8>::uninit(); AT_ONCE];
    let mut entries = RawDir::new(&directory, &mut buffer);
    let mut names = Names::default();
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        let fits = names.0.len() + name.len() < LARGEST;
        if !fits || !name.is_ascii() || !names.push(name) {
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
    fn what_lies_below_nothing_is_not_asked_for() {
        let (directory, _) = with(&["there"]);
        let path = directory.path();
        let mut listings = Listings::default();
        let asked = (0..100).take_while(|_| !listings.lack(path, OsStr::new("absent")));
        assert_eq!(asked.count(), 11);
        assert!(listings.lack(&path.join("absent"), OsStr::new("name")));
        assert!(listings.lack(&path.join("absent/far"), OsStr::new("name")));
        assert!(!listings.lack(&path.join("there"), OsStr::new("name")));
        // Of another directory nothing is known yet.
        assert!(!listings.lack(Path::new("/nowhere/absent"), OsStr::new("name")));
    }

    #[test]
    fn the_larger_a_directory_the_later_it_is_listed() {
        let (directory, _) = with(&["a"]);
        let asked_before_the_list = |size, links| {
            let mut inside = Inside::of_size(size, links);
            let mut asked = || {
                inside.missed();
                !inside.lacks(directory.path(), "b".as_ref())
            };
            (0..100).take_while(|_| asked()).count()
        };
        assert_eq!(asked_before_the_list(0, 2), 3);
        assert_eq!(asked_before_the_list(4096, 2), 3);
        assert_eq!(asked_before_the_list(4097, 2), 7);
        assert_eq!(asked_before_the_list(4 * 4096, 2), 15);
        assert_eq!(asked_before_the_list(4 * 4096 + 1, 2), 100, "never");
        assert_eq!(asked_before_the_list(u64::MAX, 2), 100, "never");
        // Nearly full of directories, or one that counts no links.
        assert_eq!(asked_before_the_list(4096, 50), 24);
        assert_eq!(asked_before_the_list(4096, 1), 3);
        assert_eq!(asked_before_the_list(4096, u64::MAX), 100, "never");
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
