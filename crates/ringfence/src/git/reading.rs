//! Reading git's small files.
//!
//! Whoever wrote a project wrote these files, too. So only regular files are read, nothing is ever
//! waited for, no link is followed on the way, and no file is read further than it could
//! reasonably be long.

use std::io::Read;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::Path;

use ringfence_core::path::AbsPath;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// A pointer is one path.
const LONGEST_POINTER: u64 = 4096 + 16;
/// No configuration is longer.
const LONGEST_CONFIG: u64 = 1 << 20;
/// Some hundred thousand references.
const LONGEST_REFERENCES: u64 = 16 << 20;

/// The text of a file such as `.git`, `commondir` or `gitdir`, without the end of its line.
pub(crate) fn pointer(path: &AbsPath) -> Option<String> {
    let text = read(path, LONGEST_POINTER)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    (!line.is_empty() && !line.contains(['\n', '\0'])).then(|| line.to_owned())
}

/// The text of a configuration file in a git directory.
pub(crate) fn config(path: &AbsPath) -> Option<String> {
    read(path, LONGEST_CONFIG)
}

/// What came of reading a configuration file.
pub(crate) enum Config {
    /// Its text, and what the file was before it was read.
    Text(String, Stat),
    /// It says something, and nobody knows what.
    TooLong,
    /// There is none that git would read.
    None,
}

impl Config {
    /// The same as [`config`], for whoever wants to know why there is no text.
    pub(crate) fn of(path: &AbsPath) -> Self {
        open_to_read(path).map_or(Self::None, Self::read)
    }

    /// That of one of the user's own files, which may be a link.
    pub(crate) fn own(path: &Path) -> Self {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = rustix::fs::openat(CWD, path, flags, Mode::empty());
        file.map_or(Self::None, Self::read)
    }

    fn read(file: OwnedFd) -> Self {
        let size = rustix::fs::fstat(&file).ok().map(|status| status.st_size);
        let size = size.and_then(|size| u64::try_from(size).ok());
        match text(file, LONGEST_CONFIG) {
            Some((text, status)) => Self::Text(text, status),
            None if size.is_some_and(|size| size > LONGEST_CONFIG) => Self::TooLong,
            None => Self::None,
        }
    }
}

/// The text of the file that holds most references of a git directory.
pub(crate) fn packed_references(path: &AbsPath) -> Option<String> {
    read(path, LONGEST_REFERENCES)
}

/// Whether there is a regular file of this name.
pub(crate) fn is_file(path: &AbsPath) -> bool {
    kind(path) == Some(FileType::RegularFile)
}

/// Whether there is anything of this name.
pub(crate) fn is_there(path: &AbsPath) -> bool {
    kind(path).is_some()
}

fn kind(path: &AbsPath) -> Option<FileType> {
    let status = rustix::fs::lstat(path.as_path()).ok()?;
    Some(FileType::from_raw_mode(status.st_mode))
}

fn read(path: &AbsPath, longest: u64) -> Option<String> {
    text(open_to_read(path)?, longest).map(|(text, _)| text)
}

fn open_to_read(path: &AbsPath) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    open(path.as_path(), flags).ok()
}

/// Opens a directory for listing, without following a link.
pub(crate) fn directory(path: &AbsPath) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    open(path.as_path(), flags)
}

#[cfg(target_os = "linux")]
fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    // The path is canonical and absolute, so without links there is nowhere else it could lead.
    let exactly = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, flags, Mode::empty(), exactly)
}

/// Component by component, where the kernel cannot be asked for the whole way at once.
#[cfg(not(target_os = "linux"))]
fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let below = path.strip_prefix("/").map_err(|_| Errno::INVAL)?;
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::openat(CWD, "/", step, Mode::empty())?;
    let mut names = below.components().peekable();
    while let Some(name) = names.next() {
        let wanted = if names.peek().is_some() {
            step
        } else {
            flags | OFlags::NOFOLLOW
        };
        at = rustix::fs::openat(&at, name.as_os_str(), wanted, Mode::empty())?;
    }
    Ok(at)
}

/// A regular file for reading, and what it is.
pub(crate) fn regular(path: &AbsPath) -> Option<(std::fs::File, Stat)> {
    let file = open_to_read(path)?;
    let status = rustix::fs::fstat(&file).ok()?;
    let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    regular.then(|| (file.into(), status))
}

fn text(file: OwnedFd, longest: u64) -> Option<(String, Stat)> {
    let status = rustix::fs::fstat(&file).ok()?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return None;
    }
    // One byte more than it has, so that one call reads it and sees its end.
    let size = u64::try_from(status.st_size)
        .unwrap_or(longest)
        .min(longest);
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()? + 64);
    // It may grow while it is read; one byte more than allowed is enough to know.
    let mut bounded = std::fs::File::from(file).take(longest + 1);
    bounded.read_to_end(&mut bytes).ok()?;
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= longest);
    // A byte that is no text can be part of a name that nothing here will match.
    fits.then(|| (String::from_utf8_lossy(&bytes).into_owned(), status))
}

/// What an entry of a directory is, as far as the directory says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Entry {
    Directory,
    File,
    Other,
}

/// Goes over the names in a directory, `.` and `..` left out, until `each` has enough.
#[cfg(target_os = "linux")]
pub(crate) fn list(
    directory: &OwnedFd,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], Entry) -> std::ops::ControlFlow<()>,
) -> Result<(), Errno> {
    use rustix::fs::RawDir;
    buffer.clear();
    buffer.reserve(32 << 10);
    let mut entries = RawDir::new(directory.as_fd(), buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = known(entry.file_type(), directory, entry.file_name());
        if each(name, kind).is_break() {
            break;
        }
    }
    Ok(())
}

/// The same where there is no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn list(
    directory: &OwnedFd,
    _buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], Entry) -> std::ops::ControlFlow<()>,
) -> Result<(), Errno> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = known(entry.file_type(), directory, entry.file_name());
        if each(name, kind).is_break() {
            break;
        }
    }
    Ok(())
}

/// Some file systems do not say what an entry is.
fn known(said: FileType, directory: &OwnedFd, name: &std::ffi::CStr) -> Entry {
    let kind = if said == FileType::Unknown {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statat(directory, name, flags)
            .map_or(said, |status| FileType::from_raw_mode(status.st_mode))
    } else {
        said
    };
    match kind {
        FileType::Directory => Entry::Directory,
        FileType::RegularFile => Entry::File,
        _ => Entry::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn root() -> (tempfile::TempDir, AbsPath) {
        let directory = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(directory.path()).unwrap();
        (directory, AbsPath::parse(path).unwrap())
    }

    #[test]
    fn only_short_regular_files_are_read() {
        let (_guard, root) = root();
        let write = |name: &str, text: &[u8]| {
            std::fs::write(root.below(name).as_path(), text).unwrap();
        };
        write("good", b"gitdir: /x\r\n");
        write("two", b"a\nb\n");
        write("long", &[b'a'; 5000]);
        write("empty", b"");
        std::fs::create_dir(root.below("directory").as_path()).unwrap();
        symlink("good", root.below("link").as_path()).unwrap();
        symlink(".", root.below("here").as_path()).unwrap();
        rustix::fs::mknodat(
            CWD,
            root.below("pipe").as_path(),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();

        assert_eq!(pointer(&root.below("good")).unwrap(), "gitdir: /x");
        for refused in [
            "two",
            "long",
            "empty",
            "directory",
            "link",
            "pipe",
            "absent",
            "here/good",
        ] {
            assert_eq!(pointer(&root.below(refused)), None, "{refused}");
        }
        write("longest", &vec![b'#'; 1 << 20]);
        write("too-long", &vec![b'#'; (1 << 20) + 1]);
        let own = |name: &str| Config::own(root.below(name).as_path());
        assert!(matches!(own("link"), Config::Text(..)));
        assert!(matches!(own("pipe"), Config::None));
        assert!(matches!(own("too-long"), Config::TooLong));
        assert!(matches!(
            Config::of(&root.below("longest")),
            Config::Text(..)
        ));
        assert!(matches!(
            Config::of(&root.below("too-long")),
            Config::TooLong
        ));
        assert!(matches!(Config::of(&root.below("link")), Config::None));
    }
}
