//! The acts of a plan, ready to be carried out.
//!
//! [`Ready::carry_out`] runs between fork and exec: it allocates nothing and reports by value.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ringfence_core::plan::{LandlockPlan, Listing, Scopes, Step, TcpRules};
use ringfence_core::policy::{Access, Found};
use ringfence_sys::files::{self, CWD, Identity};
use ringfence_sys::landlock::{AccessFs, AccessNet, Handled, Restrict, Ruleset, Scope};
use ringfence_sys::namespaces::{self, IdMap, Namespaces, map_ids};
use ringfence_sys::process::{self, Limit, LimitedResource};
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::seccomp::{self, Load, SockFilter};
use ringfence_sys::{
    Errno, Subject, capabilities, descriptors, keyring, loopback, mounts, sockets,
};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::stdio::{stderr, stdin, stdout};

use super::expected::Expected;
use super::gate::Making;
use super::root::{RootBuild, same};
use super::shares::Shares;
use crate::approve::bound::Captured;
use crate::launch::LaunchError;

/// What is to be carried out, in order.
pub(super) type Acts = Vec<(Step, Ready)>;

/// An act with everything it needs.
#[derive(Debug)]
pub(super) enum Ready {
    Capabilities,
    /// Somebody else was to take them away: here it is seen to.
    CapabilitiesGone,
    /// Somebody else built the root: here it is seen to.
    Checked(Expected),
    Descriptors,
    /// The sockets of the network gate.
    Gate(Making),
    Ids {
        user: IdMap,
        group: IdMap,
        /// Bounds of the new user namespace, unless they are set when somebody first needs them.
        shares: Option<Shares>,
    },
    Keyring,
    Landlock(LandlockBuild),
    Limits(Vec<(LimitedResource, Limit)>),
    /// Bringing up the loopback interface; or joining what a helper did.
    Network,
    Privileges,
    Root(RootBuild),
    /// With the socket over which the supervisor gets the calls it is asked about, if any.
    Seccomp(Vec<SockFilter>, Option<OwnedFd>),
}

/// What the kernel refused, and which part of an act it was.
pub(super) type Refused = (u32, Errno);

/// The descriptors that stay open in the first process.
pub(super) type Kept<'fd> = [Option<BorrowedFd<'fd>>; 8];

impl Ready {
    /// Does it, in the child. `keep` are the descriptors that stay open.
    pub(super) fn carry_out(&self, subject: &Subject, keep: Kept<'_>) -> Result<(), Refused> {
        let whole = |result: Result<(), Errno>| result.map_err(|errno| (0, errno));
        match self {
            Self::Capabilities => whole(drop_capabilities(subject)),
            Self::CapabilitiesGone => whole(have_no_capabilities(subject)),
            Self::Checked(expected) => expected.check(),
            Self::Descriptors => whole(close_others(subject, keep)),
            Self::Ids {
                user,
                group,
                shares,
            } => whole(ProcDir::open().and_then(|proc_dir| {
                map_ids(subject, &proc_dir, *user, *group)?;
                if let Some(shares) = shares {
                    shares.bound(&proc_dir);
                }
                Ok(())
            })),
            Self::Gate(making) => whole(making.make()),
            Self::Keyring => whole(keyring::join_new_session(subject)),
            Self::Landlock(build) => build.restrict(subject),
            Self::Limits(limits) => whole(set_limits(subject, limits)),
            Self::Network => whole(loopback::bring_up(subject)),
            Self::Privileges => whole(process::no_new_privs(subject)),
            Self::Root(build) => build
                .swap(subject)
                .and_then(|covered| whole(mounts::uncover_root(subject, covered))),
            Self::Seccomp(program, listener) => {
                whole(load_filter(subject, program, listener.as_ref()))
            }
        }
    }

    /// The socket over which the supervisor gets what it is asked about.
    pub(super) fn listener(&self) -> Option<&OwnedFd> {
        if let Self::Seccomp(_, listener) = self {
            listener.as_ref()
        } else {
            None
        }
    }

    /// The socket that the first process hands others over with, before it closes the rest.
    pub(super) fn handed_over(&self) -> Option<&OwnedFd> {
        if let Self::Gate(making) = self {
            making.over.as_ref()
        } else {
            None
        }
    }

    /// Lets go of what only the first process may hold: its silence must be heard.
    pub(super) fn let_go(&mut self) {
        match self {
            Self::Gate(making) => making.over = None,
            Self::Seccomp(_, supervisor) => *supervisor = None,
            _ => {}
        }
    }

    /// What a failure's number means, in words.
    pub(super) fn describe(&self, detail: u32) -> Option<String> {
        match self {
            Self::Root(build) => build.describe(detail),
            Self::Checked(expected) => expected.describe(detail),
            Self::Landlock(build) => build.describe(detail),
            _ => None,
        }
    }
}

/// Empties every set of capabilities.
fn drop_capabilities(subject: &Subject) -> Result<(), Errno> {
    match capabilities::drop_all(subject) {
        // Who never had a capability may not bound them either; `no_new_privs` does it instead.
        Err(Errno::PERM) if capabilities::read()?.permitted == 0 => capabilities::clear(subject),
        other => other,
    }
}

/// Makes sure that there is no capability left to take away, nor one to get back.
fn have_no_capabilities(subject: &Subject) -> Result<(), Errno> {
    if capabilities::read()? != capabilities::Sets::default() || capabilities::read_bounding()? != 0
    {
        return Err(Errno::PERM);
    }
    capabilities::clear(subject)
}

/// Closes everything above standard error but what the session itself needs.
fn close_others(subject: &Subject, keep: Kept<'_>) -> Result<(), Errno> {
    // What is not there counts as standard input, which stays in any case.
    let mut keep = keep.map(|fd| fd.map_or(0, |fd| fd.as_raw_fd().unsigned_abs()));
    keep.sort_unstable();
    let mut from = 3;
    for kept in keep {
        if kept > from {
            descriptors::close_between(subject, from, kept - 1)?;
        }
        from = from.max(kept + 1);
    }
    descriptors::close_from(subject, from)
}

fn load_filter(
    subject: &Subject,
    program: &[SockFilter],
    supervisor: Option<&OwnedFd>,
) -> Result<(), Errno> {
    let Some(supervisor) = supervisor else {
        return seccomp::load(subject, program, Load::empty());
    };
    // Where the session is, for the supervisor: it looks names up there, and mounts over them. From
    // outside a process that hides its memory cannot be asked.
    let root = files::pin(CWD, c"/")?;
    let user = namespaces::own(Namespaces::USER)?;
    let mount = namespaces::own(Namespaces::MOUNT)?;
    // A signal must not make a call be asked about twice; kernels before 5.19 cannot help it.
    let listener = match seccomp::load_with_listener(subject, program, Load::WAIT_KILLABLE_RECV) {
        Err(Errno::INVAL) => seccomp::load_with_listener(subject, program, Load::empty())?,
        other => other?,
    };
    let handles = [listener.as_fd(), root.as_fd(), user.as_fd(), mount.as_fd()];
    sockets::send(supervisor, b"l", &handles)?;
    // The supervisor has it now; nothing else goes over this socket.
    let number = supervisor.as_raw_fd().unsigned_abs();
    descriptors::close_between(subject, number, number)
}

fn set_limits(subject: &Subject, limits: &[(LimitedResource, Limit)]) -> Result<(), Errno> {
    for (resource, limit) in limits {
        // A bound that the caller has already is as good, and may not be raised.
        let had = process::limit(*resource);
        let stricter = |asked: Option<u64>| match (asked, had.maximum) {
            (Some(asked), Some(had)) => Some(asked.min(had)),
            (asked, None) => asked,
            (None, had) => had,
        };
        let limit = Limit {
            current: stricter(limit.current),
            maximum: stricter(limit.maximum),
        };
        // Inside another session that for dumps is as it must be, and may not be touched.
        if limit != had {
            process::set_limit(subject, *resource, limit)?;
        }
    }
    Ok(())
}

/// A ruleset to be made inside the new root.
#[derive(Debug)]
pub(super) struct LandlockBuild {
    pub(super) abi: u32,
    pub(super) handled: Handled,
    pub(super) rules: Vec<(CString, AccessFs)>,
    /// What must stand at a path that somebody granted.
    pub(super) granted: Vec<(CString, Identity)>,
}

impl LandlockBuild {
    pub(super) fn new(plan: &LandlockPlan) -> Result<Self, LaunchError> {
        let handled = Handled {
            fs: AccessFs::of_abi(plan.abi),
            net: match plan.tcp {
                TcpRules::Refused => AccessNet::of_abi(plan.abi),
                TcpRules::Unhandled => AccessNet::empty(),
            },
            scope: match plan.scopes {
                Scopes::None => Scope::empty(),
                Scopes::SignalsAndAbstractSockets => Scope::of_abi(plan.abi),
            },
        };
        let mut rules = Vec::with_capacity(plan.rules.len() + 2);
        if plan.listing == Listing::Allowed {
            rules.push((c"/".to_owned(), AccessFs::READ_DIR));
        }
        for rule in &plan.rules {
            let path = c_path(rule.path.as_path())?;
            let device = rule.path.as_path().starts_with("/dev");
            let mut rights = rights(rule.access) & handled.fs;
            if device {
                rights |= AccessFs::IOCTL_DEV & handled.fs;
            }
            if rule.found != Found::Directory {
                rights &= AccessFs::FOR_FILES;
            }
            rules.push((path, rights));
        }
        for socket in &plan.sockets {
            let right = AccessFs::RESOLVE_UNIX & handled.fs;
            rules.push((c_path(socket.as_path())?, right));
        }
        Ok(Self {
            abi: plan.abi,
            handled,
            rules,
            granted: Vec::new(),
        })
    }

    /// Allows what was granted only as long as it is what was held when it was granted.
    pub(super) fn expect_granted(&mut self, granted: &[Captured]) -> Result<(), LaunchError> {
        for (path, _) in &self.rules {
            let held = Captured::find(granted, Path::new(OsStr::from_bytes(path.to_bytes())));
            if let Some(held) = held {
                let identity = files::identify(held);
                let identity = identity.map_err(|errno| LaunchError::Prepare {
                    what: "look at what was granted".to_owned(),
                    source: errno.into(),
                })?;
                self.granted.push((path.clone(), identity));
            }
        }
        Ok(())
    }

    /// Grants one more file that is only read: the session's own.
    pub(super) fn allow_reading(&mut self, path: &Path) -> Result<(), LaunchError> {
        let right = AccessFs::READ_FILE & self.handled.fs;
        self.rules.push((c_path(path)?, right));
        Ok(())
    }

    /// Grants one more directory: the session's own.
    pub(super) fn allow_writing(&mut self, path: &Path) -> Result<(), LaunchError> {
        let rights = rights(Access::Write) & self.handled.fs;
        self.rules.push((c_path(path)?, rights));
        Ok(())
    }

    fn describe(&self, detail: u32) -> Option<String> {
        let index = usize::try_from(detail).ok()?.checked_sub(1)?;
        let (path, _) = self.rules.get(index)?;
        Some(ringfence_core::text::printable_bytes(path.to_bytes()))
    }

    fn restrict(&self, subject: &Subject) -> Result<(), Refused> {
        let whole = |errno| (0, errno);
        let ruleset = Ruleset::new(self.abi, self.handled).map_err(whole)?;
        for (number, (path, rights)) in (1..).zip(&self.rules) {
            files::pin_exact(CWD, path)
                .and_then(|object| {
                    self.check_granted(path, &object)?;
                    ruleset.allow_path(object.as_fd(), *rights)
                })
                .map_err(|errno| (number, errno))?;
        }
        for stream in [stdin(), stdout(), stderr()] {
            self.allow_stream(&ruleset, stream).map_err(whole)?;
        }
        let flags = if self.abi >= 7 {
            // Without this nothing that the command is denied would ever be recorded.
            Restrict::LOG_NEW_EXEC_ON
        } else {
            Restrict::empty()
        };
        ruleset.restrict_self(subject, flags).map_err(whole)
    }

    /// Where nothing was mounted, a path could be another file by now than the one granted.
    fn check_granted(&self, path: &CStr, object: &OwnedFd) -> Result<(), Errno> {
        let granted = self.granted.iter().find(|(known, _)| **known == *path);
        match granted {
            Some((_, expected)) if !same(&files::identify(object)?, expected) => Err(Errno::STALE),
            Some(_) | None => Ok(()),
        }
    }

    /// A terminal or file that the command already holds may be opened again by its number, with
    /// the rights it has: scripts write to `/dev/stderr`. Never with more.
    fn allow_stream(&self, ruleset: &Ruleset, stream: BorrowedFd<'_>) -> Result<(), Errno> {
        let kind = match files::identify(stream) {
            Ok(identity) => identity.kind,
            // A closed stream has nothing to allow.
            Err(Errno::BADF) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        let device = match kind {
            files::Kind::CharacterDevice => AccessFs::IOCTL_DEV,
            files::Kind::Regular => AccessFs::empty(),
            _ => return Ok(()),
        };
        let mode = fcntl_getfl(stream)? & OFlags::RWMODE;
        let mut rights = device;
        if mode == OFlags::RDONLY || mode == OFlags::RDWR {
            rights |= AccessFs::READ_FILE;
        }
        if mode == OFlags::WRONLY || mode == OFlags::RDWR {
            rights |= AccessFs::WRITE_FILE | AccessFs::TRUNCATE;
        }
        ruleset.allow_path(stream, rights & self.handled.fs)
    }
}

pub(super) fn c_path(path: &Path) -> Result<CString, LaunchError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| LaunchError::Nul { what: "a path" })
}

/// What a level of access means to Landlock.
fn rights(access: Access) -> AccessFs {
    let read = AccessFs::READ_FILE | AccessFs::READ_DIR;
    match access {
        Access::None => AccessFs::empty(),
        Access::Read => read,
        Access::Execute => read | AccessFs::EXECUTE,
        // Devices cannot be made by anybody inside; commands to devices are for `/dev` only.
        Access::Write => AccessFs::all()
            .difference(AccessFs::MAKE_CHAR)
            .difference(AccessFs::MAKE_BLOCK)
            .difference(AccessFs::IOCTL_DEV)
            .difference(AccessFs::RESOLVE_UNIX),
    }
}
