//! Looks at the names that a session is about to make.
//!
//! A name that does not exist cannot be mounted over, so the filter asks here before any call that
//! could make one. The path is copied, resolved as the caller would, and compared with the
//! protected names; the answer is a refusal or "go on". What the caller does to its memory or its
//! directories after the copy was taken is not held here: such a call succeeds, and [`super::names`]
//! finds the result.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use foldhash::HashSet;
use ringfence_core::seccomp::{Arch, Syscall};
use ringfence_sys::files::{self, OpenFlags, Resolve};
use ringfence_sys::notify::{Answer, Notification, read_memory};
use ringfence_sys::{Errno, Pid};
use rustix::fs::{Mode, ioctl_getflags, readlinkat};

use super::caller::{
    AT_FDCWD, Means, Start, last_part, low_half, meant, parent_part, path_of, read_path,
    socket_path, stays_below,
};
use super::names::{AtStart, Name};
use super::through::LetThrough;
use super::unwritable::Unwritable;

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
/// Names that were tried and are told; more of them say nothing new.
const MOST_TOLD: usize = 256;

const O_CREAT: u64 = 0o100;
/// Of `openat2`.
const RESOLVE_IN_ROOT: u64 = 0x10;
pub(super) const RENAME_EXCHANGE: u64 = 2;
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
    all: Arc<[Name]>,
    /// Git directories that get no links.
    linkless: Vec<PathBuf>,
    /// Made for the first call that asks: many a session makes nothing.
    guarded: OnceLock<Guarded>,
    shapes: Vec<(i32, Syscall, Shape)>,
    /// The session's root.
    root: OwnedFd,
    tried: Vec<PathBuf>,
    unwritable: Unwritable,
    let_through: LetThrough,
}

/// The names themselves, in a form that can be asked.
#[derive(Debug, Default)]
struct Guarded {
    names: HashSet<PathBuf>,
    /// Directories above them, which are made but never moved into place.
    above: HashSet<PathBuf>,
    /// The last parts of all of these, in lower case.
    last: HashSet<Vec<u8>>,
}

impl Guarded {
    fn new(names: impl Iterator<Item = PathBuf>) -> Self {
        let names: HashSet<PathBuf> = names.collect();
        let mut above = HashSet::default();
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
    pub(super) fn new(all: Arc<[Name]>, linkless: Vec<PathBuf>, root: OwnedFd) -> Self {
        Self {
            all,
            linkless,
            guarded: OnceLock::new(),
            shapes: shapes(),
            root,
            tried: Vec::new(),
            unwritable: Unwritable::default(),
            let_through: LetThrough::default(),
        }
    }

    fn guarded(&self) -> &Guarded {
        self.guarded.get_or_init(|| {
            // What is hidden elsewhere is nothing that a call from inside could make.
            let mine = |name: &&Name| name.at_start != AtStart::Hidden;
            let names = self.all.iter().filter(mine);
            Guarded::new(names.map(|name| name.path.clone()))
        })
    }

    /// Names that somebody inside tried to make.
    pub(super) fn tried(&self) -> &[PathBuf] {
        &self.tried
    }

    /// What somebody inside tried to write where nothing may be written.
    pub(super) fn unwritable(&self) -> &Unwritable {
        &self.unwritable
    }

    /// What was let through.
    pub(super) fn let_through(&self) -> &LetThrough {
        &self.let_through
    }

    /// What was let through, to be looked after.
    pub(super) fn let_through_mut(&mut self) -> &mut LetThrough {
        &mut self.let_through
    }

    /// Git directories that get no links.
    pub(super) fn linkless(&self) -> &[PathBuf] {
        &self.linkless
    }

    /// What to answer to a call, or `None` if it makes nothing.
    pub(super) fn answer(&mut self, call: &Notification) -> Option<Answer> {
        let known = self
            .shapes
            .iter()
            .find(|(number, ..)| *number == call.number);
        let (_, syscall, shape) = *known?;
        let name = match self.refused(call, syscall, shape) {
            Ok(Some(name)) => name,
            Ok(None) => {
                self.let_through.add(call.pid, call.number, shape.makes);
                return Some(Answer::Continue);
            }
            // What cannot be read here the kernel could not read either, unless somebody hides it.
            Err(errno) => {
                self.let_through.supersede(call.pid);
                return Some(Answer::Fail(errno));
            }
        };
        if self.tried.len() < MOST_TOLD && !self.tried.contains(&name) {
            self.tried.push(name);
        }
        self.let_through.supersede(call.pid);
        // As if the name were there and protected.
        Some(Answer::Fail(Errno::ROFS))
    }

    /// The protected name that a call would make, if it would.
    ///
    /// # Errors
    ///
    /// What to answer to a call that cannot be looked at.
    fn refused(
        &self,
        call: &Notification,
        syscall: Syscall,
        shape: Shape,
    ) -> Result<Option<PathBuf>, Errno> {
        let thread = i32::try_from(call.pid).ok().and_then(Pid::from_raw);
        let thread = thread.ok_or(Errno::PERM)?;
        let argument = |index: usize| call.arguments.get(index).copied().unwrap_or_default();
        if syscall == Syscall::Bind {
            let path = socket_path(thread, argument(1), argument(2))?;
            return Ok(path.and_then(|path| self.judge(thread, AT_FDCWD, &path, shape.makes)));
        }
        self.unwritable.opened_with(match syscall {
            Syscall::Open => argument(1),
            Syscall::Openat => argument(2),
            Syscall::Creat => 1,
            _ => 0,
        });
        if syscall == Syscall::Openat2 {
            // Flags, mode, and how the path is resolved.
            let mut how = [0; 24];
            if read_memory(thread, argument(2), &mut how) != Ok(how.len()) {
                return Err(Errno::FAULT);
            }
            let word = |at: usize| {
                let bytes = how.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(u64::MAX, u64::from_ne_bytes)
            };
            if word(0) & O_CREAT == 0 {
                return Ok(None);
            }
            self.unwritable.opened_with(word(0));
            if word(16) & RESOLVE_IN_ROOT != 0 {
                // There `/` and every link to it mean a directory of the caller's choice. Programs have
                // another way, for kernels that know no such call.
                return Err(Errno::NOSYS);
            }
        }
        let one = |shape: Shape| {
            let directory = shape
                .directory
                .map_or(AT_FDCWD, |index| low_half(argument(index)));
            let path = read_path(thread, argument(shape.path))?;
            Ok(path.and_then(|path| self.judge(thread, directory, &path, shape.makes)))
        };
        // Both names of an exchange are made.
        let exchange = syscall == Syscall::Renameat2 && argument(4) & RENAME_EXCHANGE != 0;
        let other = Shape {
            directory: Some(0),
            path: 1,
            ..shape
        };
        let named = match one(shape) {
            Ok(None) if exchange => one(other),
            answer => answer,
        };
        match named {
            Ok(None) => self.planted(thread, syscall, call),
            answer => answer,
        }
    }

    fn judge(&self, thread: Pid, directory: i32, path: &[u8], makes: Makes) -> Option<PathBuf> {
        let suspect = self.is_suspect(last_part(path));
        // Only opening follows a link in the last place.
        if makes != Makes::File && !suspect {
            return None;
        }
        let base = match meant(thread, directory, path) {
            Means::At(at, start) => {
                let judged = match makes {
                    Makes::File => self.judge_file(thread, at),
                    _ => self.judge_name(&at, makes),
                };
                match (judged, start) {
                    (Ok(made), _) => return made,
                    // The call will be told the same.
                    (Err(Closed), Start::Root) => return None,
                    (Err(Closed), Start::There(base)) => Some(base),
                }
            }
            Means::There(_) => return None,
            Means::From(base) => Some(base),
            Means::Unknown => None,
        };
        let harmless = base.is_some_and(|base| !suspect && stays_below(&base, path));
        (!harmless).then(|| PathBuf::from(OsStr::from_bytes(path)))
    }

    /// Follows a link in the last place, as opening would.
    fn judge_file(&self, thread: Pid, mut path: PathBuf) -> Result<Option<PathBuf>, Closed> {
        // Whether a link led on from where the caller has a descriptor or stands.
        let mut from_there = false;
        for _ in 0..MOST_LINKS {
            path = match meant(thread, AT_FDCWD, path.as_os_str().as_bytes()) {
                Means::At(path, start) => {
                    from_there |= matches!(start, Start::There(_));
                    path
                }
                // A pipe, say: it is there, so it is not made.
                Means::There(_) => return Ok(None),
                Means::From(_) | Means::Unknown => return Ok(Some(path)),
            };
            let flags = OpenFlags::PATH | OpenFlags::NOFOLLOW;
            let found = match self.open(&path, flags) {
                Ok(found) => found,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {
                    return match self.judge_name(&path, Makes::File) {
                        // The caller is past what is closed to us.
                        Err(Closed) if from_there => Ok(Some(path)),
                        judged => judged,
                    };
                }
                Err(_) => return Ok(Some(path)),
            };
            let kind = files::identify(&found).map(|identity| identity.kind);
            if kind != Ok(files::Kind::Symlink) {
                // It is there, so it is not made.
                if let Ok(kind) = kind {
                    self.unwritable.present(&found, kind);
                }
                return Ok(None);
            }
            let Ok(target) = readlinkat(&found, c"", Vec::new()) else {
                return Ok(Some(path));
            };
            let target = Path::new(OsStr::from_bytes(target.to_bytes()));
            path = path.parent().unwrap_or_else(|| Path::new("/")).join(target);
        }
        Ok(None)
    }

    fn judge_name(&self, path: &Path, makes: Makes) -> Result<Option<PathBuf>, Closed> {
        let last = last_part(path.as_os_str().as_bytes());
        let parent = parent_part(path.as_os_str().as_bytes());
        let parent = Path::new(OsStr::from_bytes(parent));
        let directory = match self.open(parent, OpenFlags::PATH | OpenFlags::DIRECTORY) {
            Ok(directory) if !self.is_suspect(last) => {
                if makes == Makes::File {
                    self.unwritable.absent(&directory, last);
                }
                return Ok(None);
            }
            Ok(directory) => directory,
            // A process sees another `/proc` than we do: who knows where it leads from there, or
            // whether a link is the last thing on the way.
            Err(_) if self.enters_proc(parent) => return Ok(Some(path.to_owned())),
            // The call will be told the same.
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(Errno::ACCESS) => return Err(Closed),
            Err(_) => return Ok(Some(path.to_owned())),
        };
        let Some(real) = path_of(&format!("/proc/self/fd/{}", directory.as_raw_fd())) else {
            return Ok(Some(path.to_owned()));
        };
        let protected = self.protected(&real, last, makes, || folds_case(&directory));
        if protected.is_none() && makes == Makes::File {
            self.unwritable.absent(&directory, last);
        }
        Ok(protected)
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
            let above = makes != Makes::Directory && self.guarded().above.contains(name);
            above || self.guarded().names.contains(name)
        };
        if forbidden(&name) {
            return Some(name);
        }
        if folds() {
            // Directories above may have been made in another spelling, too.
            let text = folded(name.as_os_str().as_bytes());
            let all = self.guarded().names.iter().chain(&self.guarded().above);
            let mut same = all.filter(|known| folded(known.as_os_str().as_bytes()) == text);
            return same.find(|known| forbidden(known)).cloned();
        }
        None
    }

    /// Whether a name could be that of a protected one.
    fn is_suspect(&self, last: &[u8]) -> bool {
        self.guarded().last.contains(&folded(last))
    }

    /// Whether the way along a path goes through `/proc`, by links as well.
    pub(super) fn enters_proc(&self, path: &Path) -> bool {
        let mut links = MOST_LINKS;
        let mut at = PathBuf::from("/");
        let mut left: Vec<OsString> = path.iter().rev().map(OsStr::to_owned).collect();
        while let Some(part) = left.pop() {
            match part.as_bytes() {
                b"/" => at = PathBuf::from("/"),
                b"." => {}
                b".." => {
                    at.pop();
                }
                _ => at.push(part),
            }
            let Ok(found) = self.open(&at, OpenFlags::PATH | OpenFlags::NOFOLLOW) else {
                return false;
            };
            if is_proc(&found) {
                return true;
            }
            let kind = files::identify(&found).map(|identity| identity.kind);
            if kind == Ok(files::Kind::Symlink) {
                let target = readlinkat(&found, c"", Vec::new());
                let (Ok(target), true) = (target, links > 0) else {
                    return true;
                };
                links -= 1;
                at.pop();
                let target = Path::new(OsStr::from_bytes(target.to_bytes()));
                left.extend(target.iter().rev().map(OsStr::to_owned));
            }
        }
        false
    }

    /// Opens a path as the session sees it.
    pub(super) fn open(&self, path: &Path, flags: OpenFlags) -> Result<OwnedFd, Errno> {
        let path = path.strip_prefix("/").unwrap_or(path);
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        let inside = Resolve::IN_ROOT | Resolve::NO_MAGICLINKS;
        let open = || files::openat2(self.root.as_fd(), &path, flags, Mode::empty(), inside);
        // Somebody renamed something on the machine while `..` was being followed.
        let settled = (0..MOST_TRIES).find_map(|_| Some(open()).filter(|opened| !is_busy(opened)));
        settled.unwrap_or(Err(Errno::AGAIN))
    }
}

/// A directory on the way cannot be searched, by us from the root at least.
#[derive(Debug)]
struct Closed;

/// How often a look is repeated that somebody else disturbed.
const MOST_TRIES: usize = 64;

fn is_busy(opened: &Result<OwnedFd, Errno>) -> bool {
    matches!(opened, Err(Errno::AGAIN))
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

/// Whether something is a file of the kernel's about processes.
fn is_proc(file: &OwnedFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|facts| facts.f_type == rustix::fs::PROC_SUPER_MAGIC)
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
    use ringfence_core::policy::Access;

    use super::{Arc, AtStart, Guard, Makes, Name, Path, PathBuf, files, folded};

    #[test]
    fn only_where_cases_are_not_told_apart_another_spelling_is_the_name() {
        let named = |path, at_start| Name {
            path: PathBuf::from(path),
            within: PathBuf::from("/p"),
            access: Access::Execute,
            at_start,
        };
        let names = [
            named("/p/.envrc", AtStart::Absent),
            named("/p/.github/workflows", AtStart::Mounted),
            named("/p/hidden", AtStart::Hidden),
        ];
        let root = files::pin(files::CWD, c"/").unwrap();
        let guard = Guard::new(Arc::new(names), Vec::new(), root);
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
            assert!(
                !made("hidden", Makes::File, folds),
                "not by a call from inside"
            );
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
