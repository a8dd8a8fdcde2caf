//! Programs that a project keeps for itself, and that its user or an editor will start later.
//!
//! Installing them is ordinary work, so nothing keeps a session from it; what it comes to is told.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringfence_core::path::AbsPath;
use ringfence_core::policy::lists;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use serde::Serialize;

use super::{FileChange, changed, hashed, number};
use crate::git::reading::{self, Entry};
use crate::git::scan::open_below;

/// Programs that are compared in one project.
pub const MOST_PROGRAMS: usize = 2000;
/// Bytes that are read of them all together; what does not fit is told by its size and its time.
const MOST_BYTES: u64 = 256 << 20;
/// Programs that are listed; the rest is counted.
const MOST_LISTED: usize = 100;

/// What became of a project's own programs.
///
/// # Examples
///
/// ```
/// fn show(changes: &ringfence::Changes) {
///     println!("{} programs are not as they were", changes.programs.count);
/// }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct ProgramChanges {
    /// The first ones that are not as they were.
    pub files: Vec<FileChange>,
    /// All of them.
    pub count: usize,
    /// Programs that nobody compared, since there are more than [`MOST_PROGRAMS`].
    pub not_compared: usize,
}

/// Whether the files in a directory of this name are programs that somebody starts later.
pub(crate) fn holds_programs(directory: &Path) -> bool {
    let mut names = lists::RUN_LATER_IN.iter();
    names.any(|name| directory.ends_with(name))
}

/// The programs of a project before a session.
#[derive(Debug)]
pub(super) struct Programs {
    known: HashMap<PathBuf, Program>,
    beyond: usize,
}

/// One program.
#[derive(Debug)]
struct Program {
    /// Which file was read, and when it last changed.
    file: Option<((u64, u64), SystemTime)>,
    /// What it held, in words.
    digest: String,
}

impl Programs {
    /// Looks into these directories of a project, by their paths in it.
    pub(super) fn look(project: &AbsPath, directories: &[PathBuf]) -> Self {
        let mut out = Self {
            known: HashMap::new(),
            beyond: 0,
        };
        let Ok(root) = reading::directory(project) else {
            return out;
        };
        let mut look = Look::new(&root);
        for directory in directories {
            look.at(directory, |path, program| {
                let file = program.stamp();
                let digest = program.digest();
                out.known.insert(path, Program { file, digest });
            });
        }
        out.beyond = look.beyond;
        out
    }

    /// Looks again; nothing of the session is left.
    pub(super) fn compare(
        &self,
        root: &OwnedFd,
        directories: &[PathBuf],
        since: SystemTime,
    ) -> ProgramChanges {
        let mut changes = ProgramChanges::default();
        let mut seen = HashSet::new();
        let mut look = Look::new(root);
        for directory in directories {
            look.at(directory, |path, program| {
                let known = self.known.get(&path);
                let stamp = program.stamp();
                // Nobody can set the time at which a file last changed.
                let untouched = known.is_some_and(|known| {
                    known.file == stamp && stamp.is_some_and(|(_, changed)| changed < since)
                });
                let after = (!untouched).then(|| program.digest());
                if let Some(after) = after
                    && known.is_none_or(|known| known.digest != after)
                {
                    changes.push(&path, known.map(|known| &known.digest), Some(after));
                }
                seen.insert(path);
            });
        }
        let mut gone: Vec<_> = self.known.iter().collect();
        gone.retain(|(path, _)| !seen.contains(*path) && look.beyond == 0);
        gone.sort_by_key(|(path, _)| *path);
        for (path, known) in gone {
            changes.push(path, Some(&known.digest), None);
        }
        changes.not_compared = self.beyond.max(look.beyond);
        changes
    }
}

impl ProgramChanges {
    fn push(&mut self, path: &Path, before: Option<&String>, after: Option<String>) {
        self.count += 1;
        if self.files.len() < MOST_LISTED {
            self.files.push(FileChange {
                path: path.to_string_lossy().into_owned(),
                before: before.cloned(),
                after,
            });
        }
    }

    /// Whether there is nothing to tell.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.not_compared == 0
    }
}

/// One look at the programs of a project.
struct Look<'a> {
    root: &'a OwnedFd,
    left: usize,
    beyond: usize,
    bytes: u64,
    buffer: Vec<u8>,
}

/// A program that was found.
struct Seen<'a> {
    /// Where it leads, if it is a link.
    link: Option<String>,
    /// The regular file in the project that it is or leads to.
    file: Option<(File, Stat)>,
    bytes: &'a mut u64,
}

impl<'a> Look<'a> {
    fn new(root: &'a OwnedFd) -> Self {
        Self {
            root,
            left: MOST_PROGRAMS,
            beyond: 0,
            bytes: MOST_BYTES,
            buffer: Vec::new(),
        }
    }

    fn at(&mut self, directory: &Path, mut each: impl FnMut(PathBuf, Seen<'_>)) {
        let Ok(opened) = open_below(self.root, directory) else {
            return;
        };
        let (root, bytes) = (self.root, &mut self.bytes);
        let (left, beyond) = (&mut self.left, &mut self.beyond);
        let _ = reading::list(&opened, &mut self.buffer, |name, kind| {
            if kind == Entry::Directory {
                return ControlFlow::Continue(());
            }
            let Some(rest) = left.checked_sub(1) else {
                *beyond += 1;
                return ControlFlow::Continue(());
            };
            *left = rest;
            let name = OsStr::from_bytes(name);
            let path = directory.join(name);
            let link = rustix::fs::readlinkat(&opened, name, Vec::new());
            let link = link.ok().map(|link| link.to_string_lossy().into_owned());
            let file = regular(root, &path, link.is_some());
            each(path, Seen { link, file, bytes });
            ControlFlow::Continue(())
        });
    }
}

impl Seen<'_> {
    fn stamp(&self) -> Option<((u64, u64), SystemTime)> {
        let (_, status) = self.file.as_ref().filter(|_| self.link.is_none())?;
        Some((number(status), changed(status)))
    }

    fn digest(self) -> String {
        let content = self.file.and_then(|(file, status)| {
            let size = u64::try_from(status.st_size).unwrap_or_default();
            match self.bytes.checked_sub(size) {
                Some(left) => {
                    *self.bytes = left;
                    hashed(file)
                }
                None => Some(format!(
                    "{size} bytes, last changed at {}.{:09}",
                    status.st_ctime, status.st_ctime_nsec
                )),
            }
        });
        match (self.link, content) {
            (None, Some(content)) => content,
            (None, None) => "not a file that can be read".to_owned(),
            (Some(link), Some(content)) => format!("{content} by a link to {link}"),
            (Some(link), None) => format!("a link to {link}"),
        }
    }
}

/// A regular file of the project, also by links as long as they stay in it.
#[cfg(target_os = "linux")]
fn regular(root: &OwnedFd, path: &Path, linked: bool) -> Option<(File, Stat)> {
    use rustix::fs::{ResolveFlags, openat2};
    let mut beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if !linked {
        beneath |= ResolveFlags::NO_SYMLINKS;
    }
    opened(openat2(root, path, READING, Mode::empty(), beneath).ok()?)
}

/// A regular file of the project; where links lead is not asked.
#[cfg(not(target_os = "linux"))]
fn regular(root: &OwnedFd, path: &Path, linked: bool) -> Option<(File, Stat)> {
    let directory = open_below(root, path.parent()?).ok()?;
    let flags = READING | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(&directory, path.file_name()?, flags, Mode::empty());
    opened(file.ok().filter(|_| !linked)?)
}

const READING: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

fn opened(file: OwnedFd) -> Option<(File, Stat)> {
    let status = rustix::fs::fstat(&file).ok()?;
    let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    regular.then(|| (file.into(), status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Before;
    use crate::git::Search;
    use std::os::unix::fs::symlink;

    fn project() -> (tempfile::TempDir, AbsPath) {
        let guard = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(guard.path()).unwrap();
        (guard, AbsPath::parse(root).unwrap())
    }

    fn write(project: &AbsPath, path: &str, text: &str) {
        let path = project.below(path);
        std::fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
        std::fs::write(path.as_path(), text).unwrap();
    }

    fn told(changes: &ProgramChanges) -> Vec<(&str, bool, bool)> {
        let files = changes.files.iter();
        let mut told: Vec<_> = files
            .map(|file| (&*file.path, file.before.is_some(), file.after.is_some()))
            .collect();
        told.sort_unstable();
        told
    }

    #[test]
    fn programs_that_come_go_or_change_are_told_and_others_are_not() {
        let (_guard, project) = project();
        for path in [
            ".venv/bin/same",
            ".venv/bin/pip",
            "a/b/node_modules/x/cli.js",
            "bin/x",
        ] {
            write(&project, path, "old");
        }
        write(&project, "venv/bin/gone", "old");
        write(&project, "a/b/node_modules/.bin/plain", "old");
        let link = |name: &str, target: &str| {
            symlink(
                target,
                project.below("a/b/node_modules/.bin").below(name).as_path(),
            )
            .unwrap();
        };
        link("x", "../x/cli.js");
        link("outside", "/etc/hostname");
        link("moved", "../x/cli.js");
        let before = Before::look(&Search::new(project.clone()));
        // The clock of a file system may not have ticked since.
        std::thread::sleep(std::time::Duration::from_millis(50));

        write(&project, ".venv/bin/pip", "new");
        write(&project, ".venv/bin/more", "new");
        write(&project, "bin/x", "new");
        write(&project, "a/b/node_modules/x/cli.js", "new");
        write(&project, "vendor/bin/tool", "new");
        std::fs::remove_dir_all(project.below("venv").as_path()).unwrap();
        std::fs::remove_file(project.below("a/b/node_modules/.bin/moved").as_path()).unwrap();
        link("moved", "../x/evil.js");
        let changes = before.compare();

        let expected = [
            (".venv/bin/more", false, true),
            (".venv/bin/pip", true, true),
            ("a/b/node_modules/.bin/moved", true, true),
            ("a/b/node_modules/.bin/x", true, true),
            ("vendor/bin/tool", false, true),
            ("venv/bin/gone", true, false),
        ];
        assert_eq!(told(&changes.programs), expected);
        assert_eq!(changes.programs.count, expected.len());
        assert_eq!(changes.programs.not_compared, 0);
        let of = |name: &str| {
            let mut files = changes.programs.files.iter();
            files
                .find(|file| file.path.ends_with(name))
                .unwrap()
                .clone()
        };
        assert_eq!(of("bin/pip").before.unwrap().len(), 64);
        assert_ne!(of("bin/pip").before, of("bin/pip").after);
        let moved = of(".bin/moved");
        assert!(moved.before.unwrap().ends_with(" by a link to ../x/cli.js"));
        assert_eq!(moved.after.unwrap(), "a link to ../x/evil.js");
    }

    #[test]
    fn whoever_sets_a_time_back_hides_nothing() {
        let (_guard, project) = project();
        write(&project, ".venv/bin/pip", "old");
        let path = project.below(".venv/bin/pip");
        let was = std::fs::metadata(path.as_path())
            .unwrap()
            .modified()
            .unwrap();
        let before = Before::look(&Search::new(project.clone()));
        write(&project, ".venv/bin/pip", "new");
        let file = File::options().write(true).open(path.as_path()).unwrap();
        file.set_modified(was).unwrap();
        let changes = before.compare();
        assert_eq!(told(&changes.programs), [(".venv/bin/pip", true, true)]);
    }

    #[test]
    fn what_was_planted_is_not_waited_for_and_the_rest_is_counted() {
        let (_guard, project) = project();
        let before = Before::look(&Search::new(project.clone()));
        let directory = project.below(".venv/bin");
        std::fs::create_dir_all(directory.as_path()).unwrap();
        let pipe = directory.below("0pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, pipe.as_path(), FileType::Fifo, mode, 0).unwrap();
        symlink("loop", directory.below("loop").as_path()).unwrap();
        symlink("../../../../../../etc", project.below("venv").as_path()).unwrap();
        for number in 0..MOST_PROGRAMS + 5 {
            write(&project, &format!(".venv/bin/p{number}"), "");
        }
        let changes = before.compare();
        assert_eq!(changes.programs.count, MOST_PROGRAMS);
        assert_eq!(changes.programs.files.len(), MOST_LISTED);
        assert_eq!(changes.programs.not_compared, 7);
        assert!(!changes.is_empty());
    }
}
