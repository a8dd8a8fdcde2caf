//! A new root, in the words of bubblewrap.
//!
//! Options are separated by zero bytes, which no path can hold, and each takes a fixed number of
//! words. So nothing in a path can become an option.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_core::path::AbsPath;
use ringfence_core::plan::{Base, Mount, MountKind, NetworkNamespace};
use ringfence_core::policy::{Access, Found};
use ringfence_sys::files::{self, CWD};
use rustix::fs::{MemfdFlags, memfd_create};

use super::expected::{Devices, Expect, What, Writing};
use super::links;
use super::root::{DEVICES, Text};
use crate::approve::bound::Captured;

/// What bubblewrap is told about the root, and what must then be found.
#[derive(Debug, Default)]
pub(super) struct Options {
    text: Vec<u8>,
    /// Said last: what is made read-only once everything below it is mounted.
    last: Vec<u8>,
    links: Vec<AbsPath>,
    /// Descriptors that the options name.
    pub(super) sources: Vec<OwnedFd>,
    pub(super) expected: Vec<Expect>,
}

/// Options that hold for every session. Each of them is fatal to bubblewrap if it fails.
const ALWAYS: [&str; 12] = [
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup",
    "--die-with-parent",
    "--as-pid-1",
    "--clearenv",
    "--cap-drop",
    "ALL",
    "--chdir",
    "/",
];

impl Options {
    /// Pins every source and says where it goes.
    pub(super) fn lay_out(
        base: Base,
        mounts: &[Mount],
        texts: &[Text],
        granted: &[Captured],
    ) -> io::Result<Self> {
        let mut options = Self::default();
        let root = AbsPath::root();
        match base {
            Base::Host { access } => options.bind(&root, access, granted)?,
            Base::Empty => {
                options.say(&[b"--perms", b"0755", b"--tmpfs", b"/"]);
                options.read_only(&root);
                options.expect(
                    &root,
                    What::Filesystem(files::TMPFS_MAGIC),
                    Writing::Refused,
                )?;
                options.root_links()?;
            }
        }
        // The base itself carries the access of the root.
        for mount in mounts.iter().filter(|mount| mount.at != root) {
            options.mount(mount, mounts, granted)?;
        }
        for text in texts {
            options.text(text)?;
        }
        Ok(options)
    }

    /// Everything that is said, in order.
    pub(super) fn options(&self, network: NetworkNamespace) -> Vec<u8> {
        let mut all = Self::default();
        for word in ALWAYS {
            all.say(&[word.as_bytes()]);
        }
        if network == NetworkNamespace::Own {
            all.say(&[b"--unshare-net"]);
        }
        all.text.extend_from_slice(&self.text);
        all.text.extend_from_slice(&self.last);
        all.text
    }

    fn say(&mut self, words: &[&[u8]]) {
        for word in words {
            self.text.extend_from_slice(word);
            self.text.push(0);
        }
    }

    fn read_only(&mut self, at: &AbsPath) {
        self.last.extend_from_slice(b"--remount-ro\0");
        self.last.extend_from_slice(bytes(at));
        self.last.push(0);
    }

    fn expect(&mut self, at: &AbsPath, what: What, writing: Writing) -> io::Result<()> {
        self.expect_with(at, what, writing, Devices::Refused)
    }

    fn expect_with(
        &mut self,
        at: &AbsPath,
        what: What,
        writing: Writing,
        devices: Devices,
    ) -> io::Result<()> {
        self.expected.push(Expect {
            at: c_string(at)?,
            what,
            writing,
            devices,
        });
        Ok(())
    }

    fn mount(&mut self, mount: &Mount, all: &[Mount], granted: &[Captured]) -> io::Result<()> {
        let at = &mount.at;
        let memory = What::Filesystem(files::TMPFS_MAGIC);
        match &mount.kind {
            MountKind::Alias { path } => self.alias(at, path, all),
            MountKind::Bind { access } => self.bind(at, *access, granted),
            MountKind::Device { access } => self.device(at, *access),
            MountKind::Devices => self.devices(at),
            MountKind::Mask {
                over: Found::Directory,
            } => {
                self.say(&[b"--perms", b"0755", b"--tmpfs", bytes(at)]);
                self.read_only(at);
                self.expect(at, memory, Writing::Refused)
            }
            MountKind::Mask { .. } => {
                let nothing = OwnedFd::from(File::open("/dev/null")?);
                let number = nothing.as_raw_fd().to_string();
                self.sources.push(nothing);
                let number = number.as_bytes();
                self.say(&[b"--perms", b"0000", b"--ro-bind-data", number, bytes(at)]);
                self.expect(at, What::Closed, Writing::Refused)
            }
            MountKind::Proc => {
                self.say(&[b"--proc", bytes(at)]);
                self.read_only(at);
                self.expect(at, What::Filesystem(files::PROC_MAGIC), Writing::Refused)
            }
            MountKind::Tmpfs { size } => {
                self.say(&[b"--perms", b"1777"]);
                if let Some(size) = size {
                    self.say(&[b"--size", size.to_string().as_bytes()]);
                }
                self.say(&[b"--tmpfs", bytes(at)]);
                self.expect(at, memory, Writing::Possible)
            }
            _ => Err(io::Error::other(
                "a mount of a kind this launcher does not know",
            )),
        }
    }

    /// A file of the session's own.
    fn text(&mut self, text: &Text) -> io::Result<()> {
        let file = memfd_create(c"ringfence-text", MemfdFlags::CLOEXEC)?;
        let mut file = File::from(file);
        file.write_all(&text.bytes)?;
        file.rewind()?;
        let number = file.as_raw_fd().to_string();
        self.sources.push(file.into());
        let number = number.as_bytes();
        let at = bytes(&text.at);
        self.say(&[b"--perms", b"0444", b"--ro-bind-data", number, at]);
        let size = u64::try_from(text.bytes.len()).map_err(io::Error::other)?;
        self.expect(&text.at, What::Text { size }, Writing::Refused)
    }

    /// A tree of the host's, by descriptor: what is pinned is what is mounted.
    fn bind(&mut self, at: &AbsPath, access: Access, granted: &[Captured]) -> io::Result<()> {
        let source = match Captured::find(granted, at.as_path()) {
            Some(held) => held.try_clone_to_owned()?,
            None => files::pin_exact(CWD, &c_string(at)?)?,
        };
        let identity = files::identify(&source)?;
        let (option, writing) = match access {
            Access::Write => (b"--bind-fd".as_slice(), Writing::Possible),
            Access::None | Access::Read | Access::Execute => {
                (b"--ro-bind-fd".as_slice(), Writing::Refused)
            }
        };
        let number = source.as_raw_fd().to_string();
        self.sources.push(source);
        self.say(&[option, number.as_bytes(), bytes(at)]);
        self.expect(at, What::host(&identity), writing)
    }

    /// One device of the host's. There is no way to name it by descriptor, so only what is found
    /// there afterwards tells that it is the right one.
    fn device(&mut self, at: &AbsPath, access: Access) -> io::Result<()> {
        let identity = files::identify(files::pin_exact(CWD, &c_string(at)?)?)?;
        self.say(&[b"--dev-bind", bytes(at), bytes(at)]);
        let writing = match access {
            Access::Write => Writing::Possible,
            Access::None | Access::Read | Access::Execute => {
                self.read_only(at);
                Writing::Refused
            }
        };
        self.expect_with(at, What::host(&identity), writing, Devices::Work)
    }

    fn devices(&mut self, at: &AbsPath) -> io::Result<()> {
        self.say(&[b"--dev", bytes(at)]);
        self.read_only(at);
        let memory = What::Filesystem(files::TMPFS_MAGIC);
        self.expect(at, memory, Writing::Refused)?;
        for (name, (major, minor)) in DEVICES {
            let device = What::Device(major, minor);
            self.expect_with(&at.below(name), device, Writing::Possible, Devices::Work)?;
        }
        let terminals = What::Filesystem(files::DEVPTS_MAGIC);
        self.expect_with(
            &at.below("pts"),
            terminals,
            Writing::Possible,
            Devices::Work,
        )
    }

    /// Links such as `/bin` that lead to places which are mounted by their real names.
    fn root_links(&mut self) -> io::Result<()> {
        for entry in std::fs::read_dir("/")? {
            let entry = entry?;
            if entry.file_type()?.is_symlink() {
                let target = std::fs::read_link(entry.path())?;
                let at = AbsPath::parse(entry.path()).map_err(io::Error::other)?;
                self.link(at, &target);
            }
        }
        Ok(())
    }

    fn alias(&mut self, name: &AbsPath, path: &AbsPath, all: &[Mount]) -> io::Result<()> {
        for (at, target) in links::on_the_way(name, path)? {
            let around = all
                .iter()
                .filter(|mount| {
                    mount.at.covers(&at) && !matches!(mount.kind, MountKind::Alias { .. })
                })
                .max_by_key(|mount| mount.at.depth());
            // In a tree of the host's its own link is seen.
            let seen = around.is_some_and(|mount| {
                matches!(
                    mount.kind,
                    MountKind::Bind { .. } | MountKind::Device { .. }
                )
            });
            if !seen {
                self.link(at, &target);
            }
        }
        Ok(())
    }

    fn link(&mut self, at: AbsPath, target: &Path) {
        if !self.links.contains(&at) {
            let target: PathBuf = target.to_owned();
            self.say(&[b"--symlink", target.as_os_str().as_bytes(), bytes(&at)]);
            self.links.push(at);
        }
    }
}

fn bytes(path: &AbsPath) -> &[u8] {
    path.as_path().as_os_str().as_bytes()
}

fn c_string(path: &AbsPath) -> io::Result<CString> {
    CString::new(bytes(path)).map_err(io::Error::other)
}
