//! Looks at the names that a session is about to make.
//!
//! A name that does not exist cannot be mounted over, so the filter asks here before any call that
//! could make one. The path is copied, resolved as the caller would, and compared with the
//! protected names; the answer is a refusal or "go on". What the caller does to its memory or its
//! directories after the copy was taken is not held here: such a call succeeds, and [`super::names`]
//! finds the result.

use std::collections::HashSet;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_core::seccomp::{Arch, Syscall};
use ringfence_sys::files::{self, OpenFlags, Resolve};
use ringfence_sys::notify::{Answer, Notification, read_memory};
use ringfence_sys::{Errno, Pid};
use rustix::fs::{Mode, ioctl_getflags, readlinkat};

use super::through::LetThrough;

/// `PATH_MAX`.
const LONGEST_PATH: usize = 4096;
/// Most paths are shorter than this.
const USUAL_PATH: usize = 256;
/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
/// Names that were tried and are told; more of them say nothing new.
const MOST_TOLD: usize = 256;

const O_CREAT: u64 = 0o100;
const AT_FDCWD: i32 = -100;
const RENAME_EXCHANGE: u64 = 2;
const AF_UNIX: u16 = 1;
/// `FS_CASEFOLD_FL`.
const CASEFOLD: u32 = 0x4000_0000;

/// What a call would make.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Makes {
    /// A directory, which alone may stand above a protected name.
    Directory,
    /// A file, perhaps through a link in the last place.
    File,
    /// A name for what is there already.
    Moved,
    /// A link, a pipe, a socket.
    Other,
}

/// Where a call keeps its path.
#[derive(Clone, Copy, Debug)]
struct Shape {
    makes: Makes,
    /// Which argument is the directory; none for the current one.
    directory: Option<usize>,
    path: usize,
}

/// The protected names of a session, and what became of attempts to make one.
#[derive(Debug)]
pub(super) struct Guard {
    guarded: Guarded,
    shapes: Vec<(i32, Syscall, Shape)>,
    /// The session's root.
    root: OwnedFd,
    tried: Vec<PathBuf>,
    let_through: LetThrough,
}

/// The names themselves, in a form that can be asked.
#[derive(Debug, Default)]
pub(super) struct Guarded {
    names: HashSet<PathBuf>,
    /// Directories above them, which are made but never moved into place.
    above: HashSet<PathBuf>,
    /// The last parts of all of these, in lower case.
    last: HashSet<Vec<u8>>,
}

impl Guarded {
    pub(super) fn new(names: impl Iterator<Item = PathBuf>) -> Self {
        let names: HashSet<PathBuf> = names.collect();
        let mut above = HashSet::new();
        for name in &names {
            for directory in name.ancestors().skip(1) {
                if !above.insert(directory.to_owned()) {
                    break;
                }
            }
        }
        let last = names.iter().chain(&above);
        let last = last.filter_map(|path| path.file_name());
        Self {
            last: last.map(|name| folded(name.as_bytes())).collect(),
            names,
            above,
        }
    }
}

impl Guard {
    pub(super) fn new(guarded: Guarded, root: OwnedFd) -> Self {
        Self {
            guarded,
            shapes: shapes(),
            root,
            tried: Vec::new(),
            let_through: LetThrough::default(),
        }
    }

    /// Names that somebody inside tried to make.
    pub(super) fn tried(&self) -> &[PathBuf] {
        &self.tried
    }

    /// What was let through.
    pub(super) fn let_through(&self) -> &LetThrough {
        &self.let_through
    }

    /// What was let through, to be looked after.
    pub(super) fn let_through_mut(&mut self) -> &mut LetThrough {
        &mut self.let_through
    }

    /// What to answer to a call, or `None` if it makes nothing.
    pub(super) fn answer(&mut self, call: &Notification) -> Option<Answer> {
        let known = self
            .shapes
            .iter()
            .find(|(number, ..)| *number == call.number);
        let (_, syscall, shape) = *known?;
        let refused = self.refused(call, syscall, shape);
        let Some(name) = refused else {
            self.let_through.add(call.pid, call.number, shape.makes);
            return Some(Answer::Continue);
        };
        if self.tried.len() < MOST_TOLD && !self.tried.contains(&name) {
            self.tried.push(name);
        }
        self.let_through.supersede(call.pid);
        // As if the name were there and protected.
        Some(Answer::Fail(Errno::ROFS))
    }

    /// The protected name that a call would make, if it would.
    fn refused(&self, call: &Notification, syscall: Syscall, shape: Shape) -> Option<PathBuf> {
        let thread = i32::try_from(call.pid).ok().and_then(Pid::from_raw)?;
        let argument = |index: usize| call.arguments.get(index).copied().unwrap_or_default();
        if syscall == Syscall::Bind {
            let path = socket_path(thread, argument(1), argument(2))?;
            return self.judge(thread, AT_FDCWD, &path, shape.makes);
        }
        if syscall == Syscall::Openat2 {
            let mut flags = [0; 8];
            let read = read_memory(thread, argument(2), &mut flags);
            if read != Ok(8) || u64::from_ne_bytes(flags) & O_CREAT == 0 {
                return None;
            }
        }
        let one = |shape: Shape| {
            let directory = shape
                .directory
                .map_or(AT_FDCWD, |index| low_half(argument(index)));
            let path = read_path(thread, argument(shape.path))?;
            self.judge(thread, directory, &path, shape.makes)
        };
        // Both names of an exchange are made.
        let exchange = syscall == Syscall::Renameat2 && argument(4) & RENAME_EXCHANGE != 0;
        let other = Shape {
            directory: Some(0),
            path: 1,
            ..shape
        };
        one(shape).or_else(|| exchange.then(|| one(other)).flatten())
    }

    fn judge(&self, thread: Pid, directory: i32, path: &[u8], makes: Makes) -> Option<PathBuf> {
        let suspect = self.is_suspect(last_part(path));
        // Only opening follows a link in the last place.
        if makes != Makes::File && !suspect {
            return None;
        }
        let Some(path) = whole(thread, directory, path) else {
            // It cannot be told where this leads.
            return suspect.then(|| PathBuf::from(OsStr::from_bytes(path)));
        };
        if makes == Makes::File {
            self.judge_file(path)
        } else {
            self.judge_name(&path, makes)
        }
    }

    /// Follows a link in the last place, as opening would.
    fn judge_file(&self, mut path: PathBuf) -> Option<PathBuf> {
        for _ in 0..MOST_LINKS {
            let flags = OpenFlags::PATH | OpenFlags::NOFOLLOW;
            let Ok(found) = self.open(&path, flags) else {
                return self.judge_name(&path, Makes::File);
            };
            let kind = files::identify(&found).map(|identity| identity.kind);
            if kind != Ok(files::Kind::Symlink) {
                // It is there, so it is not made.
                return None;
            }
            let target = readlinkat(&found, c"", Vec::new()).ok()?;
            let target = Path::new(OsStr::from_bytes(target.to_bytes()));
            path = path.parent().unwrap_or_else(|| Path::new("/")).join(target);
        }
        None
    }

    fn judge_name(&self, path: &Path, makes: Makes) -> Option<PathBuf> {
        let last = last_part(path.as_os_str().as_bytes());
        if !self.is_suspect(last) {
            return None;
        }
        let parent = parent_part(path.as_os_str().as_bytes());
        let parent = Path::new(OsStr::from_bytes(parent));
        let directory = match self.open(parent, OpenFlags::PATH | OpenFlags::DIRECTORY) {
            Ok(directory) => directory,
            // The call will be told the same.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return None,
            Err(_) => return Some(path.to_owned()),
        };
        let real = path_of(&format!("/proc/self/fd/{}", directory.as_raw_fd()))?;
        self.protected(&real, last, makes, || folds_case(&directory))
    }

    /// The protected name that something of this name in a directory would be, or stand above.
    fn protected(
        &self,
        real: &Path,
        last: &[u8],
        makes: Makes,
        folds: impl FnOnce() -> bool,
    ) -> Option<PathBuf> {
        let name = real.join(OsStr::from_bytes(last));
        let forbidden = |name: &Path| {
            let above = makes != Makes::Directory && self.guarded.above.contains(name);
            above || self.guarded.names.contains(name)
        };
        if forbidden(&name) {
            return Some(name);
        }
        if folds() {
            // Directories above may have been made in another spelling, too.
            let text = folded(name.as_os_str().as_bytes());
            let all = self.guarded.names.iter().chain(&self.guarded.above);
            let mut same = all.filter(|known| folded(known.as_os_str().as_bytes()) == text);
            return same.find(|known| forbidden(known)).cloned();
        }
        None
    }

    /// Whether a name could be that of a protected one.
    fn is_suspect(&self, last: &[u8]) -> bool {
        self.guarded.last.contains(&folded(last))
    }

    /// Opens a path as the session sees it.
    fn open(&self, path: &Path, flags: OpenFlags) -> Result<OwnedFd, Errno> {
        let path = path.strip_prefix("/").unwrap_or(path);
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        let inside = Resolve::IN_ROOT | Resolve::NO_MAGICLINKS;
        files::openat2(self.root.as_fd(), &path, flags, Mode::empty(), inside)
    }
}

/// Whether a call is one that is asked about because it makes a name.
pub(super) fn makes_a_name(call: &Notification) -> bool {
    shapes().iter().any(|(number, ..)| *number == call.number)
}

/// The processor that numbers calls here.
pub(super) fn arch() -> Arch {
    if cfg!(target_arch = "aarch64") {
        Arch::Aarch64
    } else {
        Arch::X86_64
    }
}

/// The calls that make names, by their numbers on this processor.
fn shapes() -> Vec<(i32, Syscall, Shape)> {
    let arch = arch();
    let here = |makes, path| Shape {
        makes,
        directory: None,
        path,
    };
    let at = |makes, directory| Shape {
        makes,
        directory: Some(directory),
        path: directory + 1,
    };
    let all = [
        (Syscall::Openat, at(Makes::File, 0)),
        (Syscall::Open, here(Makes::File, 0)),
        (Syscall::Openat2, at(Makes::File, 0)),
        (Syscall::Creat, here(Makes::File, 0)),
        (Syscall::Mkdirat, at(Makes::Directory, 0)),
        (Syscall::Mkdir, here(Makes::Directory, 0)),
        (Syscall::Renameat2, at(Makes::Moved, 2)),
        (Syscall::Renameat, at(Makes::Moved, 2)),
        (Syscall::Rename, here(Makes::Moved, 1)),
        (Syscall::Linkat, at(Makes::Other, 2)),
        (Syscall::Link, here(Makes::Other, 1)),
        (Syscall::Symlinkat, at(Makes::Other, 1)),
        (Syscall::Symlink, here(Makes::Other, 1)),
        (Syscall::Mknodat, at(Makes::Other, 0)),
        (Syscall::Mknod, here(Makes::Other, 0)),
        (Syscall::Bind, here(Makes::Other, 1)),
    ];
    let numbered = all.into_iter().filter_map(|(syscall, shape)| {
        let number = syscall.number(arch)?;
        Some((i32::from(number), syscall, shape))
    });
    numbered.collect()
}

/// The kernel reads descriptors as 32-bit integers.
fn low_half(word: u64) -> i32 {
    let [a, b, c, d, ..] = word.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Copies a path; `None` if the kernel could not read it either.
fn read_path(thread: Pid, address: u64) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(USUAL_PATH);
    while path.len() < LONGEST_PATH {
        let mut part = [0; USUAL_PATH];
        let offset = u64::try_from(path.len()).ok()?;
        let read = read_memory(thread, address.checked_add(offset)?, &mut part).ok()?;
        let part = part.get(..read).filter(|part| !part.is_empty())?;
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => {
                path.extend_from_slice(part.get(..end)?);
                return (!path.is_empty()).then_some(path);
            }
            None => path.extend_from_slice(part),
        }
    }
    None
}

/// The path in the address of a socket, if it has one.
fn socket_path(thread: Pid, address: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = [0; 110];
    let length = usize::try_from(low_half(length)).ok()?;
    let bytes = bytes.get_mut(..length.min(110))?;
    let read = read_memory(thread, address, bytes).ok()?;
    let (family, name) = bytes.get(..read)?.split_first_chunk()?;
    let path = name.split(|byte| *byte == 0).next()?;
    (u16::from_ne_bytes(*family) == AF_UNIX && !path.is_empty()).then(|| path.to_vec())
}

/// A path from the root, with the directory that it starts in put before it.
fn whole(thread: Pid, directory: i32, path: &[u8]) -> Option<PathBuf> {
    let number = thread.as_raw_nonzero();
    let path = Path::new(OsStr::from_bytes(path));
    if !path.is_absolute() {
        let base = if directory == AT_FDCWD {
            path_of(&format!("/proc/{number}/cwd"))
        } else {
            path_of(&format!("/proc/{number}/fd/{directory}"))
        };
        return Some(base?.join(path));
    }
    // Names that mean something else to each process.
    for own in ["/proc/self", "/proc/thread-self"] {
        let Ok(rest) = path.strip_prefix(own) else {
            continue;
        };
        let mut parts = rest.iter();
        let link = match parts.next().and_then(OsStr::to_str) {
            Some("cwd") => format!("/proc/{number}/cwd"),
            Some("root") => return Some(Path::new("/").join(parts.as_path())),
            Some("fd") => {
                let descriptor: u32 = parts.next()?.to_str()?.parse().ok()?;
                format!("/proc/{number}/fd/{descriptor}")
            }
            _ => continue,
        };
        return Some(path_of(&link)?.join(parts.as_path()));
    }
    if let Ok(rest) = path.strip_prefix("/dev/fd") {
        let mut parts = rest.iter();
        if let Some(descriptor) = parts.next() {
            let descriptor: u32 = descriptor.to_str()?.parse().ok()?;
            let base = path_of(&format!("/proc/{number}/fd/{descriptor}"))?;
            return Some(base.join(parts.as_path()));
        }
    }
    Some(path.to_owned())
}

/// Where a link of `/proc` leads, as a path of the namespace that it leads to.
fn path_of(link: &str) -> Option<PathBuf> {
    let target = readlinkat(files::CWD, link, Vec::new()).ok()?;
    let path = PathBuf::from(OsStr::from_bytes(target.to_bytes()));
    path.is_absolute().then_some(path)
}

/// What stands behind the last slash that something stands behind.
fn last_part(path: &[u8]) -> &[u8] {
    let end = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |at| at + 1);
    let path = path.get(..end).unwrap_or_default();
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// What stands before it.
fn parent_part(path: &[u8]) -> &[u8] {
    let end = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |at| at + 1);
    let path = path.get(..end).unwrap_or_default();
    let start = path
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |at| at + 1);
    match path.get(..start) {
        Some([] | b"/") | None => b"/",
        Some(parent) => parent,
    }
}

/// A name as a file system that does not tell cases apart might see it: small letters, and nothing
/// that it might leave out.
pub(super) fn folded(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let text = String::from_utf8_lossy(name);
    let characters = text.chars().filter_map(|character| match character {
        // The two that are not ASCII and have an ASCII letter as their small form.
        '\u{212a}' => Some(b'k'),
        '\u{17f}' => Some(b's'),
        other => u8::try_from(other)
            .ok()
            .filter(u8::is_ascii)
            .map(|byte| byte.to_ascii_lowercase()),
    });
    characters.collect()
}

/// Whether a directory takes two spellings for one name.
fn folds_case(directory: &OwnedFd) -> bool {
    // FAT, exFAT, NTFS, CIFS, SMB, HFS+, and everything that says so of the directory.
    const FOLDING: [u32; 8] = [
        0x4d44,
        0x2011_bab0,
        0x5346_544e,
        0x7366_746e,
        0xff53_4d42,
        0xfe53_4d42,
        0x0000_517b,
        0x0000_482b,
    ];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a file system's number has 32 bits, whatever the type of the field is"
    )]
    if rustix::fs::fstatfs(directory).is_ok_and(|facts| FOLDING.contains(&(facts.f_type as u32))) {
        return true;
    }
    let flags = OpenFlags::RDONLY | OpenFlags::DIRECTORY;
    let opened = files::openat2(
        directory.as_fd(),
        c".",
        flags,
        Mode::empty(),
        Resolve::BENEATH,
    );
    opened
        .is_ok_and(|opened| ioctl_getflags(&opened).is_ok_and(|flags| flags.bits() & CASEFOLD != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_where_the_kernel_splits_them() {
        for (path, parent, last) in [
            ("a", "/", "a"),
            ("/a", "/", "a"),
            ("/a/", "/", "a"),
            ("a/b//", "a/", "b"),
            ("//x//.git", "//x//", ".git"),
            ("/", "/", ""),
            ("a/..", "a/", ".."),
        ] {
            assert_eq!(last_part(path.as_bytes()), last.as_bytes(), "{path}");
            assert_eq!(parent_part(path.as_bytes()), parent.as_bytes(), "{path}");
        }
    }

    #[test]
    fn only_where_cases_are_not_told_apart_another_spelling_is_the_name() {
        let names = ["/p/.envrc", "/p/.github/workflows"].map(PathBuf::from);
        let root = files::pin(files::CWD, c"/").unwrap();
        let guard = Guard::new(Guarded::new(names.into_iter()), root);
        let made = |name: &str, makes, folds| {
            let protected = guard.protected(Path::new("/p"), name.as_bytes(), makes, || folds);
            protected.is_some()
        };
        for name in [".ENVRC", ".Envrc", ".en\u{200c}vrc"] {
            assert!(made(name, Makes::File, true), "{name}");
            assert!(!made(name, Makes::File, false), "{name}");
        }
        let inside = |parent: &str, name: &[u8], folds| {
            let protected = guard.protected(Path::new(parent), name, Makes::Directory, || folds);
            protected.is_some()
        };
        assert!(inside("/p/.GitHub", b"Workflows", true));
        assert!(!inside("/p/.GitHub", b"workflows", false));
        assert!(!inside("/p/x/.github", b"workflows", true));
        // What stands above a protected name may be made, and nothing be moved there.
        assert!(made(".GitHub", Makes::Moved, true));
        assert!(!made(".GitHub", Makes::Directory, true));
        for folds in [false, true] {
            assert!(made(".envrc", Makes::Other, folds));
            assert!(!made(".envrc.example", Makes::File, folds));
        }
    }

    #[test]
    fn spellings_of_one_name_fold_to_one() {
        for spelling in [".git", ".GIT", ".g\u{200c}it", ".gi\u{fe0f}t"] {
            assert_eq!(folded(spelling.as_bytes()), b".git", "{spelling}");
        }
        assert_eq!(folded(".v\u{17f}code".as_bytes()), b".vscode");
        assert_ne!(folded(b".gitx"), b".git");
    }
}
