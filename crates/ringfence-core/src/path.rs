//! Paths that a rule can name.

use std::cmp::Ordering;
use std::ffi::OsString;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// An absolute path without `.`, `..` or doubled slashes.
///
/// It promises nothing about existence or symbolic links: whoever enforces a rule opens it once,
/// and from then on only the descriptor is trusted.
#[derive(Clone, Debug, Eq)]
pub struct AbsPath(PathBuf);

// There is one way to write such a path, so bytes decide; taking it apart each time would be most
// of what a look-up costs.
impl PartialEq for AbsPath {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Hash for AbsPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl Ord for AbsPath {
    fn cmp(&self, other: &Self) -> Ordering {
        by_names(self.bytes(), other.bytes())
    }
}

impl PartialOrd for AbsPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Why a text cannot name a rule.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It goes up: with links in between, nobody can say where it leads without asking the kernel.
    #[error("the path has a `..` in it")]
    Climbs,
    /// It is empty.
    #[error("the path is empty")]
    Empty,
    /// It holds a zero byte, which no system call would pass on.
    #[error("the path has a zero byte in it")]
    Nul,
    /// It does not start at the root.
    #[error("the path is not absolute")]
    Relative,
}

impl AbsPath {
    /// Takes a path that is already absolute.
    ///
    /// # Errors
    ///
    /// See [`PathError`].
    pub fn parse(raw: impl AsRef<Path>) -> Result<Self, PathError> {
        let raw = raw.as_ref();
        let bytes = raw.as_os_str().as_encoded_bytes();
        if is_clean(bytes) {
            return Ok(Self(raw.to_owned()));
        }
        if bytes.is_empty() {
            return Err(PathError::Empty);
        }
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        if !raw.has_root() {
            return Err(PathError::Relative);
        }
        let mut clean = PathBuf::from("/");
        for part in raw.components() {
            match part {
                Component::Normal(name) => clean.push(name),
                Component::ParentDir => return Err(PathError::Climbs),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Ok(Self(clean))
    }

    /// Takes a path as text alone, letting `..` eat the name before it.
    ///
    /// Only for paths that do not exist, where there is no link to be wrong about.
    ///
    /// # Errors
    ///
    /// Every [`PathError`] but [`PathError::Climbs`].
    pub fn lexical(raw: impl AsRef<Path>) -> Result<Self, PathError> {
        let raw = raw.as_ref();
        if is_clean(raw.as_os_str().as_encoded_bytes()) {
            return Ok(Self(raw.to_owned()));
        }
        let mut clean = PathBuf::new();
        for part in raw.components() {
            if part == Component::ParentDir {
                clean.pop();
            } else {
                clean.push(part);
            }
        }
        Self::parse(clean)
    }

    /// The root directory.
    pub fn root() -> Self {
        Self(PathBuf::from("/"))
    }

    /// As the standard library knows it.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// `self` with a relative path below it. Parts that would leave `self` are not followed.
    #[must_use]
    pub fn below(&self, relative: impl AsRef<Path>) -> Self {
        let relative = relative.as_ref();
        if are_names(relative.as_os_str().as_encoded_bytes()) {
            return self.joined(relative);
        }
        let mut path = self.0.clone();
        for part in relative.components() {
            if let Component::Normal(name) = part {
                path.push(name);
            }
        }
        Self(path)
    }

    /// With names below it that were looked at. Nothing can be absolute or in need of cleaning, so
    /// text is put behind text, in one piece.
    fn joined(&self, names: &Path) -> Self {
        let (mine, names) = (self.0.as_os_str(), names.as_os_str());
        let mut joined = OsString::with_capacity(mine.len() + 1 + names.len());
        joined.push(mine);
        if mine != "/" {
            joined.push("/");
        }
        joined.push(names);
        Self(joined.into())
    }

    /// The directory above, or `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        above(&self.0).map(|parent| Self(parent.to_owned()))
    }

    /// The directories above, nearest first, as text.
    pub fn above(&self) -> impl Iterator<Item = &Path> {
        std::iter::successors(above(&self.0), |path| above(path))
    }

    /// Whether this is the root of a tree or lies in it; the tree is written as such a path is.
    pub(crate) fn is_in(&self, tree: &str) -> bool {
        covers(tree.as_bytes(), self.bytes())
    }

    /// Whether `other` is this path or lies below it, by whole names.
    pub fn covers(&self, other: &Self) -> bool {
        covers(self.bytes(), other.bytes())
    }

    /// Whether this is a name in a directory, with nothing between them.
    pub(crate) fn is_right_in(&self, directory: &Self) -> bool {
        let name = self.bytes().strip_prefix(directory.bytes());
        match name.and_then(<[u8]>::split_first) {
            Some((b'/', name)) => !name.contains(&b'/'),
            _ => false,
        }
    }

    /// How many names it has: zero for the root.
    pub fn depth(&self) -> usize {
        let bytes = self.bytes();
        if bytes == b"/" {
            return 0;
        }
        bytes.split(|byte| *byte == b'/').count() - 1
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_encoded_bytes()
    }
}

/// The directory above a path that is written as [`AbsPath`] writes it, or `None` for the root.
fn above(path: &Path) -> Option<&Path> {
    // There is one way to write such a path, so its last separator tells; only a path that is no
    // text is taken apart.
    let Some(text) = path.to_str() else {
        return path.parent();
    };
    match text.rsplit_once(std::path::is_separator)? {
        ("", "") => None,
        ("", _) => Some(Path::new("/")),
        (above, _) => Some(Path::new(above)),
    }
}

fn covers(tree: &[u8], path: &[u8]) -> bool {
    tree == b"/"
        || path
            .strip_prefix(tree)
            .is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
}

/// Whether a path is already as [`AbsPath`] writes it. Most are, and taking them apart to put
/// the same bytes together again would be a good part of what a launch costs.
fn is_clean(bytes: &[u8]) -> bool {
    match bytes.split_first() {
        Some((b'/', [])) => true,
        Some((b'/', names)) => are_names(names),
        _ => false,
    }
}

/// Whether this is names with one slash between each two, and nothing that means another place.
fn are_names(bytes: &[u8]) -> bool {
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    let mut begin = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if std::path::is_separator(char::from(*byte)) {
            if !is_name(&bytes[begin..at]) {
                return false;
            }
            begin = at + 1;
        } else if *byte == 0 {
            return false;
        }
    }
    is_name(&bytes[begin..])
}

/// The order of a depth-first walk: `/a`, `/a/b`, `/a-b`.
fn by_names(a: &[u8], b: &[u8]) -> Ordering {
    const STRIDE: usize = 8;
    // The root is the beginning of every other path.
    let (Some(a), Some(b)) = (a.get(1..), b.get(1..)) else {
        return a.len().cmp(&b.len());
    };
    // Neighbours begin alike, so the first difference is looked for in strides.
    let strides = a.chunks_exact(STRIDE).zip(b.chunks_exact(STRIDE));
    let alike = strides.take_while(|(a, b)| a == b).count() * STRIDE;
    let (a, b) = (&a[alike..], &b[alike..]);
    let Some(at) = a.iter().zip(b).position(|(a, b)| a != b) else {
        return a.len().cmp(&b.len());
    };
    // A slash sorts before every byte of a name.
    let key = |byte: u8| if byte == b'/' { 0 } else { byte };
    key(a[at]).cmp(&key(b[at]))
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::printable_path(&self.0))
    }
}

impl Serialize for AbsPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string_lossy())
    }
}

impl<'de> Deserialize<'de> for AbsPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_cleans_what_is_harmless_and_refuses_what_is_not() {
        let clean = AbsPath::parse("//a/./b//c/").unwrap();
        assert_eq!(clean.as_path(), Path::new("/a/b/c"));
        assert_eq!(clean.depth(), 3);
        assert_eq!(AbsPath::parse("/a/../b"), Err(PathError::Climbs));
        assert_eq!(AbsPath::parse("a"), Err(PathError::Relative));
        assert_eq!(AbsPath::parse(""), Err(PathError::Empty));
        assert_eq!(AbsPath::parse("/a\0b"), Err(PathError::Nul));
    }

    #[test]
    fn clean_paths_are_what_the_long_way_makes_of_them() {
        let taken_apart = |raw: &str| {
            let mut clean = PathBuf::from("/");
            clean.extend(
                Path::new(raw)
                    .components()
                    .filter(|part| matches!(part, Component::Normal(_))),
            );
            clean
        };
        for clean in ["/", "/a", "/a/b", "/.a/..b/c.", "/a b/\u{e9}"] {
            assert!(is_clean(clean.as_bytes()), "{clean}");
            assert_eq!(AbsPath::parse(clean).unwrap().as_path(), taken_apart(clean));
            assert_eq!(AbsPath::lexical(clean), AbsPath::parse(clean));
        }
        for other in [
            "", "a", "//", "/a/", "/a//b", "/./a", "/a/.", "/a/..", "/a\0",
        ] {
            assert!(!is_clean(other.as_bytes()), "{other}");
        }
        assert_eq!(AbsPath::root().depth(), 0);
        assert_eq!(AbsPath::root().below("a/b").depth(), 2);
    }

    #[test]
    fn covering_goes_by_whole_names() {
        let project = AbsPath::parse("/w/proj").unwrap();
        assert!(project.covers(&AbsPath::parse("/w/proj/src").unwrap()));
        assert!(project.covers(&project));
        assert!(!project.covers(&AbsPath::parse("/w/proj-evil/x").unwrap()));
    }

    #[test]
    fn what_is_above_is_what_the_long_way_makes_of_it() {
        for path in ["/", "/a", "/a/b", "/.a/..b/c.", "/a b/\u{e9}/c"] {
            let path = AbsPath::parse(path).unwrap();
            assert_eq!(above(path.as_path()), path.as_path().parent(), "{path}");
            let ancestors = path.as_path().ancestors().skip(1);
            assert!(path.above().eq(ancestors), "{path}");
        }
    }

    #[test]
    fn the_order_is_that_of_a_walk() {
        let walk = [
            "/",
            "/a",
            "/a/b",
            "/a/b/0123456789/x",
            "/a/b/0123456789-/x",
            "/a/b-c",
            "/a-b",
            "/a-b/012345678",
            "/a-b/0123456789",
        ];
        let walk = walk.map(|path| AbsPath::parse(path).unwrap());
        for (at, path) in walk.iter().enumerate() {
            for (other_at, other) in walk.iter().enumerate() {
                assert_eq!(path.cmp(other), at.cmp(&other_at), "{path} {other}");
                let names = path
                    .as_path()
                    .components()
                    .cmp(other.as_path().components());
                assert_eq!(path.cmp(other), names, "{path} {other}");
            }
        }
    }

    #[test]
    fn below_never_leaves() {
        let project = AbsPath::parse("/w/proj").unwrap();
        assert_eq!(project.below("a/b").as_path(), Path::new("/w/proj/a/b"));
        assert_eq!(AbsPath::root().below("a").as_path(), Path::new("/a"));
        assert_eq!(project.below("").as_path(), Path::new("/w/proj"));
        assert_eq!(
            project.below("../../etc/passwd").as_path(),
            Path::new("/w/proj/etc/passwd")
        );
        assert_eq!(project.below("/etc").as_path(), Path::new("/w/proj/etc"));
    }
}
