//! What a second stage must find around it.
//!
//! Where another program made the namespaces and the mounts, nothing is taken on trust: before any
//! restriction is applied every mount is looked at from inside, and a root that is not exactly the
//! planned one ends the launch. So a link that was swapped meanwhile, an option that a version
//! understands otherwise, or a step that failed in silence all end the same way: nothing runs.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use ringfence_core::plan::NetworkNamespace;
use ringfence_sys::Errno;
use ringfence_sys::files::{self, CWD, Identity, Kind, StatFlags};
use ringfence_sys::mountinfo::{self, unescaped};
use ringfence_sys::mounts::Attributes;
use rustix::process::{getegid, geteuid, getpid};

use super::acts::Refused;

/// Everything that must be so.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Expected {
    pub(super) user: u32,
    pub(super) group: u32,
    /// Namespaces of the supervisor that must have been left, by device and inode.
    pub(super) left: Vec<(CString, u64, u64)>,
    pub(super) mounts: Vec<Expect>,
}

/// One mount of the new root.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Expect {
    pub(super) at: CString,
    pub(super) what: What,
    pub(super) writing: Writing,
    pub(super) devices: Devices,
}

/// What must stand there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum What {
    /// A file that nobody can open, with nothing in it.
    Closed,
    /// A device with these numbers.
    Device(u32, u32),
    /// The root of a file system of this type.
    Filesystem(u64),
    /// The very file or directory that was pinned.
    Host {
        kind: Kind,
        device: (u32, u32),
        inode: u64,
    },
    /// A file that everybody can read, with so many bytes in it.
    Text { size: u64 },
}

/// Whether a mount can be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Writing {
    /// It can.
    Possible,
    /// It cannot.
    Refused,
}

/// Whether devices work on a mount.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Devices {
    /// They do.
    Work,
    /// They do not.
    Refused,
}

impl What {
    /// The file behind an identity.
    pub(super) fn host(identity: &Identity) -> Self {
        Self::Host {
            kind: identity.kind,
            device: identity.device,
            inode: identity.inode,
        }
    }
}

/// The namespaces that a session must have of its own.
const NAMESPACES: [&CStr; 6] = [c"cgroup", c"ipc", c"mnt", c"pid", c"user", c"uts"];

impl Expected {
    /// What must be so of the process itself.
    pub(super) fn of_this_process(network: NetworkNamespace) -> Result<Self, Errno> {
        let mut names = NAMESPACES.to_vec();
        if network == NetworkNamespace::Own {
            names.push(c"net");
        }
        let mut left = Vec::with_capacity(names.len());
        for name in names {
            let (device, inode) = namespace(name)?;
            left.push((name.to_owned(), device, inode));
        }
        Ok(Self {
            user: geteuid().as_raw(),
            group: getegid().as_raw(),
            left,
            mounts: Vec::new(),
        })
    }

    /// What a failure's number means, in words.
    pub(super) fn describe(&self, detail: u32) -> Option<String> {
        let index = usize::try_from(detail).ok()?.checked_sub(1)?;
        let named = |expect: &Expect| ringfence_core::text::printable_bytes(expect.at.to_bytes());
        if let Some(expect) = self.mounts.get(index) {
            return Some(named(expect));
        }
        let around = self.mounts.get(index.checked_sub(self.mounts.len())?)?;
        Some(format!("something that is mounted below {}", named(around)))
    }

    /// Looks at everything. Runs in the second stage, which may allocate.
    pub(super) fn check(&self) -> Result<(), Refused> {
        let whole = |errno| (0, errno);
        if getpid().as_raw_nonzero().get() != 1 {
            return Err(whole(Errno::SRCH));
        }
        let ids = (geteuid().as_raw(), getegid().as_raw());
        if ids != (self.user, self.group) {
            return Err(whole(Errno::PERM));
        }
        for (name, device, inode) in &self.left {
            if namespace(name).map_err(whole)? == (*device, *inode) {
                return Err(whole(Errno::XDEV));
            }
        }
        let mut number = 0_u32;
        for expect in &self.mounts {
            number = number.saturating_add(1);
            expect.check().map_err(|errno| (number, errno))?;
        }
        let text = std::fs::read("/proc/self/mountinfo")
            .map_err(|error| whole(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        self.check_all(&text)
    }

    /// Devices of the file systems that only the session has.
    pub(super) fn private(&self) -> Vec<(u32, u32)> {
        let memory = |expect: &&Expect| expect.what == What::Filesystem(files::TMPFS_MAGIC);
        self.mounts
            .iter()
            .filter(memory)
            .filter_map(|expect| {
                let object = files::pin_exact(CWD, &expect.at).ok()?;
                Some(files::identify(&object).ok()?.device)
            })
            .collect()
    }

    /// Holds every mount that can be seen against the nearest one that was planned: what came
    /// along below a tree of the host's must be held as the tree itself.
    ///
    /// A failure's number is then beyond those of the planned ones, by that of the nearest.
    fn check_all(&self, text: &[u8]) -> Result<(), Refused> {
        let mounts: Option<Vec<_>> = mountinfo::mounts(text).collect();
        let mounts = mounts.ok_or((0, Errno::BADMSG))?;
        for mount in &mounts {
            let covered = mounts
                .iter()
                .any(|other| other.parent == mount.id && other.point == mount.point);
            if covered {
                continue;
            }
            let point: Vec<u8> = unescaped(mount.point).collect();
            let (number, nearest) = (1_u32..)
                .zip(&self.mounts)
                .filter(|(_, expect)| covers(expect.at.to_bytes(), &point))
                .max_by_key(|(_, expect)| expect.at.to_bytes().len())
                .ok_or((0, Errno::STALE))?;
            let held = !mount.shared && mount.attributes.contains(nearest.attributes());
            if !held && !is_out_of_reach(&point) {
                let planned = u32::try_from(self.mounts.len()).unwrap_or_default();
                return Err((planned.saturating_add(number), Errno::STALE));
            }
        }
        Ok(())
    }
}

fn covers(parent: &[u8], path: &[u8]) -> bool {
    parent == b"/"
        || path
            .strip_prefix(parent)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Whether nobody inside gets to what is mounted here.
///
/// Bubblewrap reaches a mount by its path, as the user, and leaves alone what it cannot reach. Nor
/// can this process, with the same user and groups as the command and no fewer capabilities. So the
/// command stands before the same closed directory. It cannot open it either, which only the owner
/// may: that must be somebody else. No descriptor leads past it, for the command has none but its
/// streams, and whatever is mounted there, Landlock knows no rule for it that is not also one for the
/// directories above. Should the owner open the directory while the session runs, the mount is what
/// it is to every other program of the user's.
fn is_out_of_reach(point: &[u8]) -> bool {
    let mut above = None;
    let ends = (1..=point.len()).filter(|end| matches!(point.get(*end), None | Some(b'/')));
    for path in ends.filter_map(|end| point.get(..end)) {
        let Ok(path) = CString::new(path) else {
            return false;
        };
        match files::pin_exact(CWD, &path) {
            Ok(directory) => above = Some(directory),
            Err(Errno::ACCESS) => {
                let closed = above.and_then(|directory| files::identify(directory).ok());
                return closed.is_some_and(|closed| closed.owner.0 != geteuid().as_raw());
            }
            Err(_) => return false,
        }
    }
    false
}

fn namespace(name: &CStr) -> Result<(u64, u64), Errno> {
    let mut path = b"/proc/self/ns/".to_vec();
    path.extend_from_slice(name.to_bytes());
    let status = rustix::fs::stat(path.as_slice())?;
    Ok((status.st_dev, status.st_ino))
}

impl Expect {
    /// What a mount here must forbid.
    fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::NOSUID;
        if self.writing == Writing::Refused {
            attributes |= Attributes::RDONLY;
        }
        if self.devices == Devices::Refused {
            attributes |= Attributes::NODEV;
        }
        attributes
    }

    fn check(&self) -> Result<(), Errno> {
        // Follows no link: what is at the name is what is looked at.
        let object = files::pin_exact(CWD, &self.at)?;
        let identity = files::identify(&object)?;
        let filesystem = files::filesystem(object.as_fd())?;
        let right = match self.what {
            What::Closed => {
                (identity.kind, identity.permissions, identity.size) == (Kind::Regular, 0, 0)
                    && filesystem.magic == files::TMPFS_MAGIC
            }
            What::Device(major, minor) => {
                identity.kind == Kind::CharacterDevice && identity.stands_for == (major, minor)
            }
            What::Filesystem(magic) => {
                identity.kind == Kind::Directory && filesystem.magic == magic
            }
            What::Host { .. } => What::host(&identity) == self.what,
            What::Text { size } => {
                (identity.kind, identity.permissions, identity.size) == (Kind::Regular, 0o444, size)
                    && filesystem.magic == files::TMPFS_MAGIC
            }
        };
        if !right {
            return Err(Errno::STALE);
        }
        let mut demanded = StatFlags::NOSUID;
        if self.writing == Writing::Refused {
            demanded |= StatFlags::RDONLY;
        }
        if self.devices == Devices::Refused {
            demanded |= StatFlags::NODEV;
        }
        if filesystem.flags.contains(demanded) {
            Ok(())
        } else {
            Err(Errno::ROFS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(list: &[(&CStr, Writing)]) -> Expected {
        let mounts = list.iter().map(|(at, writing)| Expect {
            at: (*at).to_owned(),
            what: What::Filesystem(files::TMPFS_MAGIC),
            writing: *writing,
            devices: Devices::Refused,
        });
        Expected {
            mounts: mounts.collect(),
            ..Expected::default()
        }
    }

    const PLANNED: &[(&CStr, Writing)] = &[(c"/", Writing::Refused), (c"/w", Writing::Possible)];
    const GOOD: &str = "20 1 0:5 / / ro,nosuid,nodev - tmpfs tmpfs rw\n\
                        21 20 0:6 / /w rw,nosuid,nodev - ext4 /dev/a rw\n\
                        22 20 0:7 / /usr ro,nosuid,nodev master:2 - ext4 /dev/a rw\n";

    #[test]
    fn planned_mounts_pass() {
        assert_eq!(expected(PLANNED).check_all(GOOD.as_bytes()), Ok(()));
    }

    #[test]
    fn a_mount_that_came_along_is_held_as_what_is_around_it() {
        for bad in [
            "23 22 0:8 / /usr/more rw,nosuid,nodev - ext4 /dev/b rw\n",
            "23 22 0:8 / /usr/more ro,nodev - ext4 /dev/b rw\n",
            "23 22 0:8 / /usr/more ro,nosuid - ext4 /dev/b rw\n",
            "23 22 0:8 / /usr/more ro,nosuid,nodev shared:4 - ext4 /dev/b rw\n",
            "23 20 0:8 / /wide rw,nosuid,nodev - ext4 /dev/b rw\n",
            "nonsense\n",
        ] {
            let text = format!("{GOOD}{bad}");
            assert!(
                expected(PLANNED).check_all(text.as_bytes()).is_err(),
                "{bad}"
            );
        }
        let good = format!("{GOOD}23 21 0:8 / /w/more rw,nosuid,nodev - ext4 /dev/b rw\n");
        assert_eq!(expected(PLANNED).check_all(good.as_bytes()), Ok(()));
    }

    #[test]
    fn what_is_covered_by_another_mount_cannot_be_seen() {
        let text = format!(
            "{GOOD}23 22 0:8 / /usr/more rw - ext4 /dev/b rw\n\
             24 23 0:9 / /usr/more ro,nosuid,nodev - ext4 /dev/b rw\n"
        );
        assert_eq!(expected(PLANNED).check_all(text.as_bytes()), Ok(()));
    }

    #[test]
    fn outside_of_a_session_nothing_is_as_expected() {
        let here = Expected::of_this_process(NetworkNamespace::Own).unwrap();
        assert!(here.check().is_err());
    }
}
