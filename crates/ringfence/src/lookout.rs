//! Looking at paths: what stands there, and by which canonical name.
//!
//! Nothing is opened and nothing is decided here. What a [`Lookout`] saw may have changed a moment
//! later; whoever enforces a rule opens the path once and trusts the descriptor alone.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use foldhash::HashMap;
use foldhash::fast::RandomState;
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{Found, Look, Seen};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::listing::Inside;

/// The longest path a system call takes.
pub(crate) const LONGEST_PATH: usize = 4096;
/// More links than this in a row are left to the kernel to refuse.
const MOST_LINKS: u32 = 16;

/// Looks at paths, and remembers what it saw.
///
/// One launch asks about some hundred paths, most of them neighbours and most of them absent. So
/// the directory above is looked up first and remembered, and each name then costs one system
/// call; a directory that is asked about again and again is listed, and what is not in it costs
/// none. What is seen here only shapes the policy: whoever enforces it opens each path once
/// and trusts the descriptor alone.
#[derive(Debug)]
pub struct Lookout {
    /// How many links led to what is being looked at.
    links: Cell<u32>,
    /// What the kernel was asked about. What follows from that is not kept: most of it is names
    /// that a list lacks, and finding out again is cheaper than remembering.
    known: RefCell<HashMap<OsString, Known>>,
}

/// What stands at a path, and what is known of its inside if it is a directory.
#[derive(Debug)]
struct Known {
    seen: Seen,
    inside: Inside,
}

impl Known {
    fn new(seen: Seen) -> Self {
        Self {
            seen,
            inside: Inside::default(),
        }
    }

    /// Something by its canonical path, and what the kernel said of it.
    fn at(path: AbsPath, status: &rustix::fs::Stat) -> Self {
        Self {
            seen: Seen::At(path, found(kind(status))),
            inside: Inside::of(status),
        }
    }
}

/// What a [`Lookout`] had seen at some time.
#[derive(Debug)]
pub(crate) struct Memory(HashMap<OsString, Seen>);

impl Lookout {
    /// One that has seen nothing yet.
    pub fn new() -> Self {
        Self {
            // Enough for a launch: growing on the way would move everything several times.
            known: RefCell::new(HashMap::with_capacity_and_hasher(
                112,
                RandomState::default(),
            )),
            links: Cell::new(0),
        }
    }

    /// What stands at an absolute path, links followed.
    pub fn look(&self, path: &Path) -> Seen {
        if let Some(known) = self.known.borrow().get(path.as_os_str()) {
            return known.seen.clone();
        }
        match self.look_up(path) {
            Answer::Asked(known) => {
                let seen = known.seen.clone();
                let name = path.as_os_str().to_owned();
                self.known.borrow_mut().insert(name, known);
                seen
            }
            Answer::Follows(seen) => seen,
        }
    }

    /// Takes from somebody who has just looked what stands at a canonical path.
    pub(crate) fn know(&self, path: &AbsPath, found: Found) {
        let mut known = self.known.borrow_mut();
        let name = path.as_path().as_os_str().to_owned();
        known
            .entry(name)
            .or_insert_with(|| Known::new(Seen::At(path.clone(), found)));
    }

    /// What was seen so far, to go back to.
    pub(crate) fn memory(&self) -> Memory {
        let known = self.known.borrow();
        let seen = known.iter();
        Memory(
            seen.map(|(path, known)| (path.clone(), known.seen.clone()))
                .collect(),
        )
    }

    /// Forgets what was seen since, and every list.
    pub(crate) fn restore(&self, memory: Memory) {
        let seen = memory.0.into_iter();
        *self.known.borrow_mut() = seen.map(|(path, seen)| (path, Known::new(seen))).collect();
    }

    /// From here on, answers as if there were a directory at this path and at every one above it
    /// that is absent. For questions about what would hold if something existed.
    pub fn suppose(&self, path: &AbsPath) {
        let mut next = Some(path.clone());
        while let Some(path) = next {
            if matches!(self.look(path.as_path()), Seen::Absent) {
                let supposed = Known::new(Seen::At(path.clone(), Found::Directory));
                let mut known = self.known.borrow_mut();
                known.insert(path.as_path().as_os_str().to_owned(), supposed);
            }
            next = path.parent();
        }
    }

    fn look_up(&self, path: &Path) -> Answer {
        if path.as_os_str().len() >= LONGEST_PATH {
            return Answer::unreadable("the path is too long");
        }
        // Nearly every path is plain text with a name at its end.
        let bytes = path.as_os_str().as_bytes();
        let (above, name) = match bytes.iter().rposition(|byte| *byte == b'/') {
            Some(0) => (&bytes[..1], &bytes[1..]),
            Some(at) => (&bytes[..at], &bytes[at + 1..]),
            None => return Answer::unreadable("the path is not absolute"),
        };
        if !matches!(name, b"" | b"." | b"..") {
            return self.look_in(Path::new(OsStr::from_bytes(above)), OsStr::from_bytes(name));
        }
        match path.components().next_back() {
            Some(Component::Normal(name)) => match path.parent() {
                Some(parent) => self.look_in(parent, name),
                None => Answer::unreadable("the path is not absolute"),
            },
            Some(Component::RootDir) => {
                let root = Seen::At(AbsPath::root(), Found::Directory);
                Answer::Asked(Known::new(root))
            }
            // Above a directory by its canonical name is what that name says.
            Some(Component::ParentDir) => {
                Answer::Asked(match path.parent().map(|below| self.look(below)) {
                    Some(Seen::At(directory, Found::Directory)) => {
                        let above = directory.parent().unwrap_or_else(AbsPath::root);
                        Known::new(Seen::At(above, Found::Directory))
                    }
                    _ => follow(path),
                })
            }
            Some(Component::CurDir | Component::Prefix(_)) | None => {
                Answer::unreadable("the path is not absolute")
            }
        }
    }

    fn look_in(&self, parent: &Path, name: &OsStr) -> Answer {
        let way = self.way(parent, name);
        let way = way.unwrap_or_else(|| match self.look(parent) {
            Seen::At(directory, Found::Directory) => Ok(directory.below(name)),
            Seen::At(..) | Seen::Absent => Err(Seen::Absent),
            unreadable @ Seen::Unreadable(_) => Err(unreadable),
        });
        let path = match way {
            Ok(path) => path,
            Err(seen) => return Answer::Follows(seen),
        };
        Answer::Asked(match rustix::fs::lstat(path.as_path()) {
            Ok(status) if kind(&status) == FileType::Symlink => self.follow_link(&path),
            Ok(status) => Known::at(path, &status),
            Err(error) => {
                if let Some(above) = self.known.borrow_mut().get_mut(parent.as_os_str()) {
                    above.inside.missed();
                }
                Known::new(not_seen(error))
            }
        })
    }

    /// What a link leads to. Most lead to a neighbour, which is known or costs one question; the
    /// whole way is asked for where something is in doubt, and on systems where a name may be known
    /// by another spelling.
    fn follow_link(&self, link: &AbsPath) -> Known {
        let links = self.links.get();
        let (true, Some(above), Ok(target)) = (
            cfg!(target_os = "linux") && links < MOST_LINKS,
            link.as_path().parent(),
            rustix::fs::readlink(link.as_path(), Vec::new()),
        ) else {
            return follow(link.as_path());
        };
        self.links.set(links + 1);
        let seen = self.look(&above.join(OsStr::from_bytes(target.as_bytes())));
        self.links.set(links);
        match seen {
            Seen::At(..) | Seen::Absent => Known::new(seen),
            Seen::Unreadable(_) => follow(link.as_path()),
        }
    }

    /// Where a name in a directory is to be looked for, or what already follows from what is known
    /// of the directory; `None` if nothing is.
    fn way(&self, parent: &Path, name: &OsStr) -> Option<Result<AbsPath, Seen>> {
        let mut known = self.known.borrow_mut();
        let Known { seen, inside } = known.get_mut(parent.as_os_str())?;
        Some(match seen {
            Seen::At(directory, Found::Directory) if inside.lacks(directory.as_path(), name) => {
                Err(Seen::Absent)
            }
            // The directory is canonical, so what lies in it under its own name is too.
            Seen::At(directory, Found::Directory) => Ok(directory.below(name)),
            Seen::At(..) | Seen::Absent => Err(Seen::Absent),
            Seen::Unreadable(why) => Err(Seen::Unreadable(why.clone())),
        })
    }
}

impl Look for Lookout {
    fn look(&self, path: &Path) -> Seen {
        Self::look(self, path)
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        std::fs::read_link(path).ok()
    }
}

/// How an answer came about.
enum Answer {
    /// The kernel was asked.
    Asked(Known),
    /// It follows from what is known already.
    Follows(Seen),
}

impl Answer {
    fn unreadable(why: &str) -> Self {
        Self::Follows(Seen::Unreadable(why.to_owned()))
    }
}

impl Default for Lookout {
    fn default() -> Self {
        Self::new()
    }
}

/// Asks the kernel for the whole way.
fn follow(path: &Path) -> Known {
    let canonical = match std::fs::canonicalize(path) {
        Ok(canonical) => canonical,
        Err(error) => {
            let number = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            return Known::new(not_seen(number));
        }
    };
    let status = match rustix::fs::lstat(&canonical) {
        Ok(status) => status,
        Err(error) => return Known::new(not_seen(error)),
    };
    match AbsPath::parse(&canonical) {
        Ok(path) => Known::at(path, &status),
        Err(error) => Known::new(Seen::Unreadable(error.to_string())),
    }
}

fn kind(status: &rustix::fs::Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

fn found(kind: FileType) -> Found {
    if kind == FileType::Directory {
        Found::Directory
    } else if kind == FileType::RegularFile {
        Found::File
    } else {
        Found::Other
    }
}

fn not_seen(error: Errno) -> Seen {
    match error {
        Errno::NOENT | Errno::NOTDIR => Seen::Absent,
        other => {
            let message = io::Error::from(other).to_string();
            let words = message.split(" (os error").next().unwrap_or(&message);
            Seen::Unreadable(words.to_lowercase())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_seen_is_canonical() {
        let directory = tempfile::tempdir().unwrap();
        let root = AbsPath::parse(fs::canonicalize(directory.path()).unwrap()).unwrap();
        let path = |name: &str| root.as_path().join(name);
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("a/file"), "").unwrap();
        symlink("a/b", path("link")).unwrap();
        symlink("nowhere", path("dangling")).unwrap();
        symlink("loop", path("loop")).unwrap();
        let lookout = Lookout::new();
        let look = |name: &str| lookout.look(&path(name));

        assert_eq!(look("a/b"), Seen::At(root.below("a/b"), Found::Directory));
        assert_eq!(look("link"), Seen::At(root.below("a/b"), Found::Directory));
        assert_eq!(look("link/.."), Seen::At(root.below("a"), Found::Directory));
        let file = Seen::At(root.below("a/file"), Found::File);
        assert_eq!(look("link/../file"), file);
        assert_eq!(look("a/./file/"), file);
        for absent in ["x", "x/y/z", "a/file/x", "dangling", "dangling/x"] {
            assert_eq!(look(absent), Seen::Absent, "{absent}");
        }
        assert!(matches!(look("loop"), Seen::Unreadable(_)));
        assert!(matches!(look(&"x".repeat(300)), Seen::Unreadable(_)));
        assert!(matches!(look(&"x/".repeat(4000)), Seen::Unreadable(_)));
        assert!(matches!(
            lookout.look(Path::new("relative")),
            Seen::Unreadable(_)
        ));
        let null = Seen::At(AbsPath::root().below("dev/null"), Found::Other);
        assert_eq!(lookout.look(Path::new("/dev/null")), null);
    }

    #[test]
    fn links_lead_where_the_kernel_says() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        let long = "b/../".repeat(20) + "file";
        for (link, target) in [
            ("a/up", "../a"),
            ("a/b/far", "../../a/./b//c/"),
            ("a/round", "b/far/../../up/b"),
            ("a/long", long.as_str()),
            ("a/b/file", "../file"),
            ("a/through", "file/x"),
            ("a/nowhere", "../none/x"),
            ("top", "/"),
            ("above", "../../../../../../../.."),
            ("ping", "pong"),
            ("pong", "ping"),
            ("self", "."),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        for number in 0..30 {
            symlink(
                format!("chain{}", number + 1),
                root.join(format!("chain{number}")),
            )
            .unwrap();
        }
        symlink("a", root.join("chain30")).unwrap();
        for path in [
            "a/up",
            "a/up/b",
            "a/b/far",
            "a/round/c",
            "a/round/file",
            "a/long",
            "a/b/file",
            "a/b/file/x",
            "a/through",
            "a/nowhere",
            "a/nowhere/..",
            "a/file/..",
            "top/dev/null",
            "above",
            "ping",
            "pong/x",
            "self/self/a",
            "chain0/b",
            "chain20/file",
            "none/..",
        ] {
            let path = root.join(path);
            let expected = match fs::canonicalize(&path) {
                Ok(path) => Some(path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
                Err(_) => {
                    let seen = Lookout::new().look(&path);
                    assert!(matches!(seen, Seen::Unreadable(_)), "{path:?} {seen:?}");
                    continue;
                }
            };
            let found = match Lookout::new().look(&path) {
                Seen::At(path, found) => {
                    assert_eq!(found == Found::Directory, path.as_path().is_dir());
                    Some(path.as_path().to_owned())
                }
                Seen::Absent => None,
                Seen::Unreadable(why) => panic!("{path:?}: {why}"),
            };
            assert_eq!(found, expected, "{path:?}");
        }
    }

    #[test]
    fn a_directory_that_is_listed_answers_as_one_that_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = AbsPath::parse(fs::canonicalize(directory.path()).unwrap()).unwrap();
        fs::create_dir(root.below(".ssh").as_path()).unwrap();
        symlink("/dev/null", root.below("link").as_path()).unwrap();
        let lookout = Lookout::new();
        for number in 0..2 * crate::listing::OFTEN {
            let absent = root.below(format!("absent{number}"));
            assert_eq!(lookout.look(absent.as_path()), Seen::Absent);
        }

        let kept = Seen::At(root.below(".ssh"), Found::Directory);
        assert_eq!(lookout.look(root.below(".ssh").as_path()), kept);
        let null = Seen::At(AbsPath::root().below("dev/null"), Found::Other);
        assert_eq!(lookout.look(root.below("link").as_path()), null);
        assert_eq!(lookout.look(root.below("link2").as_path()), Seen::Absent);
    }

    #[test]
    fn what_is_supposed_is_answered_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let root = AbsPath::parse(fs::canonicalize(directory.path()).unwrap()).unwrap();
        let lookout = Lookout::new();

        lookout.suppose(&root.below("a/b"));

        for supposed in ["a", "a/b"] {
            let path = root.below(supposed);
            let seen = lookout.look(path.as_path());
            assert_eq!(seen, Seen::At(path, Found::Directory));
        }
        assert_eq!(lookout.look(root.below("a/c").as_path()), Seen::Absent);
    }
}
