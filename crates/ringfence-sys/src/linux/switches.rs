//! Switches of the host that explain why a probe failed, and the marks of a container.
//!
//! Read only. An absent switch is not an error: `Ok(None)`.

use std::ffi::CStr;

use rustix::fs::{Access, AtFlags, OFlags, accessat};
use rustix::io::Errno;

use super::files::CWD;
use super::procfs::ProcDir;

/// A switch that holds one number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Switch {
    /// Zero: `AppArmor` lets programs without a profile make user namespaces.
    AppArmorRestrictsUserNamespaces,
    /// Not zero: only root reads the kernel's log.
    DmesgRestrict,
    /// Zero: characters cannot be pushed into a terminal.
    LegacyTiocsti,
    /// How many user namespaces a user may have.
    MaxUserNamespaces,
    /// Zero: Debian's patch keeps plain users from making user namespaces.
    UnprivilegedUserNamespaces,
    /// From 1 on only descendants may be traced.
    YamaPtraceScope,
}

impl Switch {
    /// Where it is below `/proc`.
    pub const fn path(self) -> &'static CStr {
        match self {
            Self::AppArmorRestrictsUserNamespaces => {
                c"sys/kernel/apparmor_restrict_unprivileged_userns"
            }
            Self::DmesgRestrict => c"sys/kernel/dmesg_restrict",
            Self::LegacyTiocsti => c"sys/dev/tty/legacy_tiocsti",
            Self::MaxUserNamespaces => c"sys/user/max_user_namespaces",
            Self::UnprivilegedUserNamespaces => c"sys/kernel/unprivileged_userns_clone",
            Self::YamaPtraceScope => c"sys/kernel/yama/ptrace_scope",
        }
    }

    /// Its value, or `None` where this kernel has no such switch.
    ///
    /// # Errors
    ///
    /// [`Errno::BADMSG`] if it holds anything but a number; those of reading.
    pub fn read(self, proc_dir: &ProcDir) -> Result<Option<u64>, Errno> {
        let mut buffer = [0; 64];
        match proc_dir.read_file(self.path(), &mut buffer) {
            Ok(text) => number(text).map(Some).ok_or(Errno::BADMSG),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim_end().parse().ok()
}

/// A sign that we run inside somebody's container.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ContainerMark {
    /// `/.dockerenv` exists.
    Docker,
    /// `/run/.containerenv` exists.
    Podman,
    /// `/run/systemd/container` exists.
    SystemdNspawn,
    /// Not all user ids are ours to see.
    UserNamespace,
    /// `/proc/sys/fs/binfmt_misc/WSLInterop` exists.
    Wsl,
}

/// Every mark, for whoever wants to go through them.
pub const CONTAINER_MARKS: [ContainerMark; 5] = [
    ContainerMark::Docker,
    ContainerMark::Podman,
    ContainerMark::SystemdNspawn,
    ContainerMark::UserNamespace,
    ContainerMark::Wsl,
];

impl ContainerMark {
    /// Whether this mark is there.
    ///
    /// # Errors
    ///
    /// Anything but plain absence.
    pub fn is_present(self, proc_dir: &ProcDir) -> Result<bool, Errno> {
        match self {
            Self::Docker => file_exists(c"/.dockerenv"),
            Self::Podman => file_exists(c"/run/.containerenv"),
            Self::SystemdNspawn => file_exists(c"/run/systemd/container"),
            Self::UserNamespace => maps_less_than_all(proc_dir),
            Self::Wsl => file_exists(c"/proc/sys/fs/binfmt_misc/WSLInterop"),
        }
    }
}

fn file_exists(path: &CStr) -> Result<bool, Errno> {
    match accessat(CWD, path, Access::EXISTS, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn maps_less_than_all(proc_dir: &ProcDir) -> Result<bool, Errno> {
    let mut buffer = [0; 4096];
    let file = proc_dir.open_file(c"self/uid_map", OFlags::RDONLY)?;
    let text = super::procfs::read_whole(std::os::fd::AsFd::as_fd(&file), &mut buffer)?;
    Ok(!is_initial_map(text))
}

/// The map of the initial user namespace: all ids, each to itself.
fn is_initial_map(text: &[u8]) -> bool {
    let mut words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let map = [words.next(), words.next(), words.next(), words.next()];
    matches!(map, [Some(b"0"), Some(b"0"), Some(b"4294967295"), None])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_newline() {
        assert_eq!(number(b"1\n"), Some(1));
        assert_eq!(number(b"63571\n"), Some(63_571));
        assert_eq!(number(b"\n"), None);
        assert_eq!(number(b"yes\n"), None);
        assert_eq!(number(&[0xff]), None);
    }

    #[test]
    fn initial_map_is_told_from_a_part() {
        assert!(is_initial_map(b"         0          0 4294967295\n"));
        assert!(!is_initial_map(b"         0     100000      65536\n"));
        assert!(!is_initial_map(b"0 0 4294967295\n1 1 1\n"));
        assert!(!is_initial_map(b""));
    }
}
