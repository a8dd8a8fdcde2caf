//! Hundreds of mounts in one tree.
//!
//! A project may hold hundreds of repositories, each of which takes a mask and a directory over
//! itself. By descriptors those are ten calls, and the kernel makes a namespace for every tree that
//! is attached nowhere yet. `mount(2)` takes one call for each, but looks its paths up itself and
//! follows links. So it is only used in a mount in which nobody follows any, for as long as that
//! takes; whatever it refuses is done by descriptors.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use foldhash::HashMap;
use ringfence_sys::mountinfo::{self, unescaped};
use ringfence_sys::mounts::{
    Attributes, Change, Propagation, Reach, change_directory, mount_setattr, move_mount, open_tree,
};
use ringfence_sys::oldmounts;
use ringfence_sys::{Errno, Subject};
use rustix::fs::OFlags;

use super::swap::SCRATCH_AT;
use super::{Create, Kind, Made, PLAIN, Placed, RootBuild};

/// Fewer are not worth a look at the mounts of the host.
const CROWD: usize = 16;

/// In the scratch, the crowded tree once more and without anything mounted in it: whatever is
/// cloned is compared with each mount that is already there.
const SPARE: &std::ffi::CStr = c"crowded";

/// One of many mounts in one tree, by paths.
#[derive(Debug)]
pub(super) struct Among {
    /// Seen from the old root, or below the crowded mount.
    from: CString,
    /// Below the crowded mount.
    to: CString,
}

/// The mount in which nobody follows a link, until it is over.
#[derive(Debug)]
#[must_use = "until it is dispersed the session cannot follow links"]
pub(super) struct Crowd(OwnedFd);

impl RootBuild {
    /// Finds the mount that has most others in it.
    pub(super) fn find_crowd(&mut self) -> std::io::Result<()> {
        // For each mount that only passes on what is around it, which mount that is.
        let mut around: HashMap<&[u8], usize> = HashMap::default();
        let mut members: HashMap<usize, Vec<usize>> = HashMap::default();
        for (index, placed) in self.mounts.iter().enumerate() {
            let at = placed.at.to_bytes();
            match &placed.kind {
                Kind::Host { .. } => {
                    around.insert(at, index);
                }
                Kind::Mask(_) | Kind::Pin => {
                    let Some(holder) = above(at).and_then(|above| around.get(above)).copied()
                    else {
                        continue;
                    };
                    members.entry(holder).or_default().push(index);
                    if matches!(placed.kind, Kind::Pin) {
                        around.insert(at, holder);
                    }
                }
                _ => {}
            }
        }
        let largest = members.into_iter().max_by_key(|(_, list)| list.len());
        let Some((holder, list)) = largest.filter(|(_, list)| list.len() >= CROWD) else {
            return Ok(());
        };
        let Some(holder_at) = self.mounts.get(holder).map(|placed| placed.at.clone()) else {
            return Ok(());
        };
        let text = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        if !is_plain(holder_at.to_bytes(), &text) {
            return Ok(());
        }
        for index in list {
            if let Some(placed) = self.mounts.get_mut(index) {
                placed.join(holder_at.to_bytes())?;
            }
        }
        self.crowded = Some(holder);
        self.create.push(Create {
            path: SPARE.to_owned(),
            what: Made::Directory(PLAIN),
        });
        Ok(())
    }

    /// Whether the mount with this number, one more than its index, is the crowded one.
    pub(super) fn is_crowded(&self, number: u32) -> bool {
        let index = usize::try_from(number).ok();
        self.crowded
            .is_some_and(|crowded| Some(crowded + 1) == index)
    }
}

impl Placed {
    /// Makes it one of those in the mount `holder`.
    fn join(&mut self, holder: &[u8]) -> std::io::Result<()> {
        let below = self
            .at
            .to_bytes()
            .get(holder.len() + 1..)
            .unwrap_or_default();
        let scratch = SCRATCH_AT.to_bytes();
        let from = match &self.kind {
            Kind::Mask(mask) => [scratch, mask.to_bytes()].join(&b'/'),
            // One in another is cloned from that, which has nothing in it but its neighbours.
            _ if above(self.at.to_bytes()) != Some(holder) => below.to_vec(),
            _ => [scratch, SPARE.to_bytes(), below].join(&b'/'),
        };
        self.among = Some(Among {
            from: CString::new(from)?,
            to: CString::new(below)?,
        });
        Ok(())
    }

    /// From here on nobody follows a link in this mount, and paths are meant from it. `None` where
    /// the kernel cannot do that. Runs in the child.
    pub(super) fn gather(
        &self,
        subject: &Subject,
        root: BorrowedFd<'_>,
        scratch: BorrowedFd<'_>,
    ) -> Result<Option<Crowd>, Errno> {
        let place = self.place(root, OFlags::DIRECTORY)?;
        let change = Change::forbid(Attributes::NOSYMFOLLOW);
        if mount_setattr(subject, place.as_fd(), c"", change, Reach::Single).is_err() {
            return Ok(None);
        }
        let crowd = Crowd(place);
        let spare = open_tree(crowd.0.as_fd(), c"", Reach::Single)
            .and_then(|tree| move_mount(subject, tree.as_fd(), scratch, SPARE))
            .and_then(|()| change_directory(subject, &crowd.0));
        if spare.is_err() {
            crowd.disperse(subject)?;
            return Ok(None);
        }
        Ok(Some(crowd))
    }

    /// Mounts it, if it is one of the crowd and the kernel agrees. Runs in the child.
    pub(super) fn mount_among(&self, subject: &Subject) -> bool {
        let among = self.among.as_ref();
        among.is_some_and(|among| oldmounts::bind_paths(subject, &among.from, &among.to).is_ok())
    }
}

impl Crowd {
    /// Lets links be followed again, in everything that was mounted meanwhile.
    pub(super) fn disperse(self, subject: &Subject) -> Result<(), Errno> {
        let change = Change {
            set: Attributes::empty(),
            clear: Attributes::NOSYMFOLLOW,
            propagation: Propagation::Keep,
        };
        mount_setattr(subject, self.0.as_fd(), c"", change, Reach::Recursive)
    }
}

/// A path without its last name.
fn above(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    path.get(..slash)
}

/// Whether the host has nothing mounted in a directory, and lets links be followed there: so that
/// nothing is left out, and nothing of the host's is lifted afterwards.
fn is_plain(directory: &[u8], text: &[u8]) -> bool {
    let mut seen = false;
    let plain = mountinfo::mounts(text).all(|mount| {
        let Some(mount) = mount else {
            return false;
        };
        seen = true;
        let point: Vec<u8> = unescaped(mount.point).skip(1).collect();
        let inside = point
            .strip_prefix(directory)
            .is_some_and(|rest| rest.starts_with(b"/"));
        let around = point.is_empty()
            || directory
                .strip_prefix(&*point)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
        let without_links = mount.attributes.contains(Attributes::NOSYMFOLLOW);
        !(inside || around && without_links)
    });
    seen && plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_with_mounts_or_without_links_is_left_to_the_other_calls() {
        let line =
            |point: &str, options: &str| format!("20 1 0:5 / {point} {options} - ext4 /dev/a rw\n");
        let plain = line("/", "rw") + &line("/home", "rw,nosuid") + &line("/home/pro", "rw");
        assert!(is_plain(b"home/project", plain.as_bytes()));
        for other in [
            line("/home/project/a\\040b", "rw"),
            line("/home/project", "rw,nosymfollow"),
            line("/home", "rw,nosymfollow"),
            line("/", "rw,nosymfollow"),
            "nonsense\n".to_owned(),
        ] {
            let text = plain.clone() + &other;
            assert!(!is_plain(b"home/project", text.as_bytes()), "{other}");
        }
        let beside = plain + &line("/home/project2", "rw,nosymfollow");
        assert!(is_plain(b"home/project", beside.as_bytes()));
        assert!(!is_plain(b"home/project", b""));
    }
}
