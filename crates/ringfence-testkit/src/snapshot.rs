//! Everything about a tree that a write could change, to be compared afterwards.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The time of the last change must do for files above this size, such as programs.
const LARGE: u64 = 1 << 20;

/// What a tree was like.
///
/// It holds the time of the last change of each inode, which the kernel moves at every write, link,
/// rename and change of mode, owner, times or attributes: what leaves it alone changed nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Snapshot(BTreeMap<PathBuf, String>);

impl Snapshot {
    /// Takes one of everything below `roots`, without following links.
    pub fn of<P: AsRef<Path>>(roots: impl IntoIterator<Item = P>) -> Self {
        let mut seen = BTreeMap::new();
        for root in roots {
            walk(root.as_ref(), &mut seen);
        }
        Self(seen)
    }

    /// What differs, a line each; empty if nothing does.
    pub fn differences(&self, later: &Self) -> String {
        let mut out = String::new();
        for (path, before) in &self.0 {
            match later.0.get(path) {
                None => writeln!(out, "{} is gone", path.display()).unwrap(),
                Some(after) if after != before => {
                    writeln!(out, "{}: {before} -> {after}", path.display()).unwrap();
                }
                Some(_) => {}
            }
        }
        for path in later.0.keys().filter(|path| !self.0.contains_key(*path)) {
            writeln!(out, "{} is new", path.display()).unwrap();
        }
        out
    }

    /// Fails the test if anything differs now.
    #[track_caller]
    pub fn assert_same<P: AsRef<Path>>(&self, roots: impl IntoIterator<Item = P>) {
        let differences = self.differences(&Self::of(roots));
        assert!(differences.is_empty(), "changed outside:\n{differences}");
    }
}

fn walk(path: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    let Ok(meta) = fs::symlink_metadata(path) else {
        seen.insert(path.to_owned(), "absent".to_owned());
        return;
    };
    let kind = meta.file_type();
    let content = if kind.is_symlink() {
        format!("link to {}", fs::read_link(path).unwrap().display())
    } else if kind.is_file() && meta.size() > LARGE {
        "large".to_owned()
    } else if kind.is_file() {
        let mut hasher = DefaultHasher::new();
        fs::read(path).unwrap().hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    } else if kind.is_dir() {
        "directory".to_owned()
    } else if kind.is_socket() {
        "socket".to_owned()
    } else {
        "other".to_owned()
    };
    let text = format!(
        "inode {} mode {:o} owner {}:{} size {} links {} changed {}.{} {content}",
        meta.ino(),
        meta.mode(),
        meta.uid(),
        meta.gid(),
        meta.size(),
        meta.nlink(),
        meta.ctime(),
        meta.ctime_nsec(),
    );
    seen.insert(path.to_owned(), text);
    if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            walk(&entry.unwrap().path(), seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A snapshot that cannot tell would make every test of this kit worthless.
    #[test]
    fn every_kind_of_change_is_seen() {
        type Change = fn(&Path);
        let changes: &[(&str, Change)] = &[
            ("content", |dir| fs::write(dir.join("file"), "y").unwrap()),
            ("mode", |dir| {
                fs::set_permissions(dir.join("file"), fs::Permissions::from_mode(0o600)).unwrap();
            }),
            ("link", |dir| {
                fs::hard_link(dir.join("file"), dir.join("other")).unwrap();
            }),
            ("new", |dir| fs::write(dir.join("new"), "").unwrap()),
            ("gone", |dir| fs::remove_file(dir.join("file")).unwrap()),
            ("there and back", |dir| {
                fs::rename(dir.join("file"), dir.join("x")).unwrap();
                fs::rename(dir.join("x"), dir.join("file")).unwrap();
            }),
        ];
        for (what, change) in changes {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("file"), "x").unwrap();
            let before = Snapshot::of([dir.path()]);
            assert_eq!(before.differences(&Snapshot::of([dir.path()])), "");
            std::thread::sleep(std::time::Duration::from_millis(10));
            change(dir.path());
            assert_ne!(
                before.differences(&Snapshot::of([dir.path()])),
                "",
                "{what}"
            );
        }
    }
}
