//! Which unix sockets a session may connect to: its own, and those of the host that were granted.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use ringfence_sys::files::{self, CWD, Identity, Kind, OpenFlags, Resolve};
use ringfence_sys::{Errno, Pid};
use rustix::fs::{FileType, Mode};

use super::root::same;

/// Where a session may connect to.
#[derive(Debug, Default)]
pub(super) struct Reachable {
    /// File systems that only the session has, besides the one of its `/dev`.
    pub(super) private: Vec<(u32, u32)>,
    /// Sockets of the host that were granted, pinned before the session began.
    pub(super) granted: Vec<OwnedFd>,
}

impl Reachable {
    /// Pins a socket file that only the session can have made, or that was granted.
    pub(super) fn find(&self, thread: Pid, path: &CStr) -> Result<OwnedFd, Errno> {
        let root = open_of(&format!("/proc/{}/root", thread.as_raw_nonzero()))?;
        let (found, identity) = socket_at(thread, &root, path)?;
        let is_granted = |granted: &OwnedFd| {
            files::identify(granted).is_ok_and(|granted| same(&granted, &identity))
        };
        if self.private.contains(&identity.device) || self.granted.iter().any(is_granted) {
            return Ok(found);
        }
        // `/dev` is always on the scratch, and nothing inside can put another thing there.
        let scratch = files::pin_beneath(root.as_fd(), c"dev")?;
        if identity.device == files::identify(&scratch)?.device {
            Ok(found)
        } else {
            Err(Errno::ACCESS)
        }
    }
}

/// The socket file at a path, as the caller sees it.
fn socket_at(thread: Pid, root: &OwnedFd, path: &CStr) -> Result<(OwnedFd, Identity), Errno> {
    let found = if path.to_bytes().starts_with(b"/") {
        let inside = Resolve::IN_ROOT | Resolve::NO_MAGICLINKS;
        files::openat2(root.as_fd(), path, OpenFlags::PATH, Mode::empty(), inside)?
    } else {
        // A link that leads out of here is found out by what it leads to.
        let directory = open_of(&format!("/proc/{}/cwd", thread.as_raw_nonzero()))?;
        let plain = Resolve::NO_MAGICLINKS;
        files::openat2(
            directory.as_fd(),
            path,
            OpenFlags::PATH,
            Mode::empty(),
            plain,
        )?
    };
    let identity = files::identify(&found)?;
    if identity.kind == Kind::Socket {
        Ok((found, identity))
    } else {
        Err(Errno::CONNREFUSED)
    }
}

/// Sockets that lie where a session sees nothing, so that their programs say no more than that they are not
/// there. What a program does without (look-ups of users and hosts) is no news, and not among them.
pub(super) const USUAL: [(&CStr, &str); 3] = [
    (c"/run/docker.sock", "docker"),
    (c"/var/run/docker.sock", "docker"),
    (c"/run/podman/podman.sock", "podman"),
];

/// The name of the usual socket that is at a path on the host.
pub(super) fn missed<'n>(path: &CStr, usual: &[(&CStr, &'n str)]) -> Option<&'n str> {
    let (path, name) = usual.iter().find(|(usual, _)| *usual == path)?;
    let there = rustix::fs::stat(*path).ok()?;
    (FileType::from_raw_mode(there.st_mode) == FileType::Socket).then_some(*name)
}

fn open_of(path: &str) -> Result<OwnedFd, Errno> {
    let path = CString::new(path).map_err(|_| Errno::INVAL)?;
    let flags = OpenFlags::PATH | OpenFlags::DIRECTORY;
    files::openat2(CWD, &path, flags, Mode::empty(), Resolve::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_usual_socket_that_is_there_is_missed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            let path = directory.path().join(name);
            CString::new(path.to_str().unwrap()).unwrap()
        };
        let [docker, absent, file, other] = ["d.sock", "absent", "file", "other.sock"].map(path);
        let _listeners = [&docker, &other]
            .map(|at| std::os::unix::net::UnixListener::bind(at.to_str().unwrap()).unwrap());
        std::fs::write(file.to_str().unwrap(), "").unwrap();
        let usual = [&docker, &absent, &file].map(|at| (at.as_c_str(), "docker"));
        assert_eq!(missed(&docker, &usual), Some("docker"));
        for nothing in [&absent, &file, &other] {
            assert_eq!(missed(nothing, &usual), None, "{nothing:?}");
        }
    }
}
