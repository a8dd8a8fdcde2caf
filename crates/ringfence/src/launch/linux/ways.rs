//! What stands at protected names, and on the way to them.

use std::ffi::OsStr;
use std::path::Path;

use foldhash::HashSet;
use ringfence_sys::Errno;
use rustix::fs::{FileType, Stat};

use crate::listing::Listings;

/// What stands at a name.
pub(super) enum Look {
    Nothing,
    There(Stat),
    /// The directory can no longer be looked into.
    Unknown,
}

/// Looks at a name, and into its directory if that was asked about often.
pub(super) fn look(path: &Path, listings: &mut Listings) -> Look {
    if let (Some(directory), Some(name)) = (path.parent(), path.file_name())
        && listings.lack(directory, name)
    {
        return Look::Nothing;
    }
    match rustix::fs::lstat(path) {
        Ok(status) => Look::There(status),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Look::Nothing,
        Err(_) => Look::Unknown,
    }
}

/// One look at many names.
#[derive(Default)]
pub(super) struct Pass<'n> {
    listings: Listings,
    /// Directories that are no links.
    plain: HashSet<&'n OsStr>,
}

impl<'n> Pass<'n> {
    /// Looks at a name in a directory that nobody inside can replace, or at a link on the way from there to the
    /// name: whoever looks through one sees what it leads to, or nothing.
    pub(super) fn look(&mut self, within: &Path, name: &'n Path) -> Look {
        let between = |path: &&Path| path.as_os_str().len() > within.as_os_str().len();
        let mut above: Vec<&Path> = name.ancestors().skip(1).take_while(between).collect();
        while let Some(directory) = above.pop() {
            if self.plain.contains(directory.as_os_str()) {
                continue;
            }
            match look(directory, &mut self.listings) {
                Look::There(status) if !is_link(&status) => {
                    self.plain.insert(directory.as_os_str());
                }
                // A link, or nothing that could hold the name.
                other => return other,
            }
        }
        look(name, &mut self.listings)
    }
}

/// The ways to names that nobody found.
#[derive(Default)]
pub(super) struct Ways<'a> {
    listings: Listings,
    /// Directories on whose way there is no link, as they are written.
    plain: HashSet<&'a OsStr>,
}

impl<'a> Ways<'a> {
    /// What is in the way of a name that nobody found: a link at it or above it, which then leads to
    /// nothing; or something that has come to the name itself since.
    pub(super) fn link_to(&mut self, name: &'a Path) -> Option<&'a Path> {
        if let Look::There(_) = look(name, &mut self.listings) {
            return Some(name);
        }
        for path in name.ancestors().skip(1) {
            if self.plain.contains(path.as_os_str()) {
                // And so is everything above it.
                return None;
            }
            match look(path, &mut self.listings) {
                Look::Nothing => {}
                Look::There(status) if is_link(&status) => return Some(path),
                Look::There(_) | Look::Unknown => break,
            }
        }
        let above = name.ancestors().skip(1);
        self.plain.extend(above.map(Path::as_os_str));
        None
    }
}

fn is_link(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::Symlink
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_on_the_way_is_seen_whatever_it_leads_to() {
        let guard = tempfile::tempdir().unwrap();
        let project = fs::canonicalize(guard.path()).unwrap();
        let path = |name: &str| project.join(name);
        fs::create_dir_all(path("x/workflows")).unwrap();
        fs::create_dir_all(path("there/workflows")).unwrap();
        for (link, target) in [("full", "x"), ("empty", "nowhere"), ("loop", "loop")] {
            symlink(target, path(link)).unwrap();
        }
        let names = [
            ("full/workflows", Some(true)),
            ("full/far/below", Some(true)),
            ("empty/workflows", Some(true)),
            ("loop/workflows", Some(true)),
            ("there/workflows", Some(false)),
            ("there/absent", None),
            ("absent/workflows", None),
            ("full", Some(true)),
        ];
        let paths: Vec<_> = names.iter().map(|(name, _)| path(name)).collect();
        let mut pass = Pass::default();
        for (at, (name, link)) in paths.iter().zip(names) {
            let seen = match pass.look(&project, at) {
                Look::There(status) => Some(is_link(&status)),
                Look::Nothing => None,
                Look::Unknown => panic!("{name}"),
            };
            assert_eq!(seen, link, "{name}");
        }
    }

    #[test]
    fn a_link_is_found_at_a_name_and_above_it() {
        let guard = tempfile::tempdir().unwrap();
        let project = fs::canonicalize(guard.path()).unwrap();
        fs::create_dir_all(project.join("there/below")).unwrap();
        fs::write(project.join("file"), "").unwrap();
        for link in ["at", "above", "there/link"] {
            symlink("nowhere", project.join(link)).unwrap();
        }
        let path = |name: &str| project.join(name);
        let names = [
            ("absent", None),
            ("absent/below", None),
            ("there/absent", None),
            ("there/below/absent/far", None),
            ("file/below", None),
            ("file", Some("file")),
            ("at", Some("at")),
            ("above/name", Some("above")),
            ("above/far/name", Some("above")),
            ("there/link/name", Some("there/link")),
        ];
        let paths: Vec<_> = names.iter().map(|(name, _)| path(name)).collect();
        let mut ways = Ways::default();
        for (at, (name, link)) in paths.iter().zip(names) {
            let link = link.map(path);
            assert_eq!(ways.link_to(at), link.as_deref(), "{name}");
        }
    }
}
