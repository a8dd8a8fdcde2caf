//! The links between a name and what it leads to.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use ringfence_core::path::AbsPath;

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

/// Every link that is met on the way from `name` to `path`, by its own canonical place.
///
/// # Errors
///
/// The name leads elsewhere, or nowhere: what was granted is no longer what stands there.
pub(super) fn on_the_way(name: &AbsPath, path: &AbsPath) -> io::Result<Vec<(AbsPath, PathBuf)>> {
    let mut links = Vec::new();
    let mut here = PathBuf::from("/");
    let mut ahead: VecDeque<OsString> = parts(name.as_path());
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            here.pop();
            continue;
        }
        here.push(part);
        if !std::fs::symlink_metadata(&here)?.is_symlink() {
            continue;
        }
        if links.len() == MOST_LINKS {
            return Err(elsewhere());
        }
        let target = std::fs::read_link(&here)?;
        let at = AbsPath::parse(&here).map_err(io::Error::other)?;
        if target.is_absolute() {
            here = PathBuf::from("/");
        } else {
            here.pop();
        }
        for part in parts(&target).into_iter().rev() {
            ahead.push_front(part);
        }
        links.push((at, target));
    }
    if here == path.as_path() {
        Ok(links)
    } else {
        Err(elsewhere())
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

fn elsewhere() -> io::Error {
    io::Error::other("a link that was granted leads elsewhere now")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn abs(path: &Path) -> AbsPath {
        AbsPath::parse(path).unwrap()
    }

    #[test]
    fn every_link_is_listed_where_it_really_is() {
        let world = tempfile::tempdir().unwrap();
        let top = world.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("real/lib")).unwrap();
        std::fs::write(top.join("real/lib/x.so.1"), "").unwrap();
        symlink("x.so.1", top.join("real/lib/x.so")).unwrap();
        symlink("../real/./lib", top.join("real/also")).unwrap();
        symlink(top.join("real"), top.join("short")).unwrap();

        let links = on_the_way(
            &abs(&top.join("short/also/x.so")),
            &abs(&top.join("real/lib/x.so.1")),
        );

        assert_eq!(
            links.unwrap(),
            [
                (abs(&top.join("short")), top.join("real")),
                (abs(&top.join("real/also")), "../real/./lib".into()),
                (abs(&top.join("real/lib/x.so")), "x.so.1".into()),
            ]
        );
    }

    #[test]
    fn a_link_that_leads_elsewhere_or_in_circles_is_refused() {
        let world = tempfile::tempdir().unwrap();
        let top = world.path().canonicalize().unwrap();
        std::fs::write(top.join("a"), "").unwrap();
        std::fs::write(top.join("b"), "").unwrap();
        symlink("b", top.join("name")).unwrap();
        symlink("circle", top.join("circle")).unwrap();

        let refused = |name: &str| on_the_way(&abs(&top.join(name)), &abs(&top.join("a"))).is_err();

        assert!(refused("name"));
        assert!(refused("circle"));
        assert!(refused("absent"));
        assert!(!refused("a"));
    }
}
