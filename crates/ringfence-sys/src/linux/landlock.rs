//! Landlock, as the kernel has it.
//!
//! Raw calls and not the `landlock` crate, for three reasons. A ruleset is built before the
//! fork and enforced after it, where nothing may allocate: the crate's builder consumes and
//! drops values on the way. Its habit is best effort, dropping the rights that a kernel does
//! not know; here a right that the kernel does not know is an error, and what to do about an
//! old kernel is the plan's business, which has the ABI as a fact. And it stops at ABI 9,
//! while kernels are at 11.
//!
//! The calls here only ever narrow what the calling process may do.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::raw;
use super::subject::Subject;

bitflags::bitflags! {
    /// Rights on files and directories. The number is the ABI that brought the right.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct AccessFs: u64 {
        /// Execute a file (1).
        const EXECUTE = 1 << 0;
        /// Open a file for writing (1).
        const WRITE_FILE = 1 << 1;
        /// Open a file for reading (1).
        const READ_FILE = 1 << 2;
        /// List a directory (1).
        const READ_DIR = 1 << 3;
        /// Remove or rename an empty directory (1).
        const REMOVE_DIR = 1 << 4;
        /// Remove or rename a file (1).
        const REMOVE_FILE = 1 << 5;
        /// Make a character device (1).
        const MAKE_CHAR = 1 << 6;
        /// Make a directory (1).
        const MAKE_DIR = 1 << 7;
        /// Make a plain file (1).
        const MAKE_REG = 1 << 8;
        /// Make a socket (1).
        const MAKE_SOCK = 1 << 9;
        /// Make a named pipe (1).
        const MAKE_FIFO = 1 << 10;
        /// Make a block device (1).
        const MAKE_BLOCK = 1 << 11;
        /// Make a symbolic link (1).
        const MAKE_SYM = 1 << 12;
        /// Rename or link between directories (2).
        const REFER = 1 << 13;
        /// Truncate a file (3).
        const TRUNCATE = 1 << 14;
        /// Send commands to a device opened from now on (5).
        const IOCTL_DEV = 1 << 15;
        /// Connect to a unix socket by its path (9).
        const RESOLVE_UNIX = 1 << 16;
    }

    /// Rights on ports. The number is the ABI that brought the right.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct AccessNet: u64 {
        /// Bind a TCP socket (4).
        const BIND_TCP = 1 << 0;
        /// Connect a TCP socket (4).
        const CONNECT_TCP = 1 << 1;
        /// Bind a UDP socket (10).
        const BIND_UDP = 1 << 2;
        /// Connect a UDP socket or send a datagram (10).
        const CONNECT_SEND_UDP = 1 << 3;
    }

    /// What a domain is cut off from. All came with ABI 6.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct Scope: u64 {
        /// Abstract unix sockets made outside.
        const ABSTRACT_UNIX_SOCKET = 1 << 0;
        /// Signals to processes outside.
        const SIGNAL = 1 << 1;
    }

    /// How to enforce a ruleset. The number is the ABI that brought the flag.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct Restrict: u32 {
        /// Log nothing of this program itself (7).
        const LOG_SAME_EXEC_OFF = 1 << 0;
        /// Log what the programs it becomes are denied (7).
        const LOG_NEW_EXEC_ON = 1 << 1;
        /// Log nothing of domains nested inside (7).
        const LOG_SUBDOMAINS_OFF = 1 << 2;
        /// Restrict every thread of the process (8).
        const TSYNC = 1 << 3;
        /// Set `no_new_privs` in the same step (11).
        const NO_NEW_PRIVS = 1 << 4;
    }

    /// Mistakes of earlier kernels that this one has corrected.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct Errata: u32 {
        /// TCP rules no longer apply to sockets that are not TCP.
        const SOCKET_TYPES = 1 << 0;
        /// The signal scope no longer cuts threads of one process off from each other.
        const THREAD_SIGNALS = 1 << 1;
        /// Directories that were disconnected by a rename are judged rightly.
        const DISCONNECTED_DIRECTORIES = 1 << 2;
        /// TCP Fast Open is a connect like any other.
        const FAST_OPEN = 1 << 3;

        // Later kernels will correct more.
        const _ = !0;
    }
}

impl AccessFs {
    /// All rights that a kernel with this ABI can handle, as far as we know it.
    pub const fn of_abi(abi: u32) -> Self {
        let last = match abi {
            0 => return Self::empty(),
            1 => Self::MAKE_SYM,
            2 => Self::REFER,
            3 | 4 => Self::TRUNCATE,
            5..=8 => Self::IOCTL_DEV,
            _ => Self::RESOLVE_UNIX,
        };
        Self::from_bits_truncate((last.bits() << 1) - 1)
    }

    /// Those that mean something for a file that is not a directory: the kernel refuses the
    /// others in a rule for one.
    pub const FOR_FILES: Self = Self::EXECUTE
        .union(Self::WRITE_FILE)
        .union(Self::READ_FILE)
        .union(Self::TRUNCATE)
        .union(Self::IOCTL_DEV)
        .union(Self::RESOLVE_UNIX);
}

impl AccessNet {
    /// All rights that a kernel with this ABI can handle, as far as we know it.
    pub const fn of_abi(abi: u32) -> Self {
        match abi {
            0..=3 => Self::empty(),
            4..=9 => Self::BIND_TCP.union(Self::CONNECT_TCP),
            _ => Self::all(),
        }
    }
}

impl Scope {
    /// All scopes that a kernel with this ABI knows.
    pub const fn of_abi(abi: u32) -> Self {
        match abi {
            0..=5 => Self::empty(),
            _ => Self::all(),
        }
    }
}

/// Which version of Landlock runs here.
///
/// # Errors
///
/// [`Errno::NOSYS`] if the kernel was built without, [`Errno::OPNOTSUPP`] if it was booted
/// without.
pub fn abi() -> Result<u32, Errno> {
    query(1)
}

/// Which mistakes are corrected here. Kernels too old to tell have corrected none.
///
/// # Errors
///
/// As [`abi`].
pub fn errata() -> Result<Errata, Errno> {
    match query(2) {
        Ok(bits) => Ok(Errata::from_bits_retain(bits)),
        Err(Errno::INVAL) => Ok(Errata::empty()),
        Err(errno) => Err(errno),
    }
}

fn query(flags: usize) -> Result<u32, Errno> {
    // SAFETY: with a query flag the kernel demands a null attribute of size zero, reads
    // nothing, and answers with a number.
    let answer = unsafe { raw::call(libc::SYS_landlock_create_ruleset, [0, 0, flags, 0, 0, 0]) }?;
    u32::try_from(answer).map_err(|_| Errno::OVERFLOW)
}

/// What a ruleset is about: whatever is named here is denied unless a rule allows it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Handled {
    /// Rights on files and directories.
    pub fs: AccessFs,
    /// Rights on ports.
    pub net: AccessNet,
    /// What the domain is cut off from.
    pub scope: Scope,
}

impl Handled {
    /// Everything that a kernel with this ABI can handle.
    pub const fn of_abi(abi: u32) -> Self {
        Self {
            fs: AccessFs::of_abi(abi),
            net: AccessNet::of_abi(abi),
            scope: Scope::of_abi(abi),
        }
    }

    /// How many bytes of the attribute a kernel with this ABI is shown.
    const fn size(abi: u32) -> usize {
        match abi {
            0..=3 => 8,
            4 | 5 => 16,
            _ => 24,
        }
    }
}

/// A set of rules that is not in force yet.
///
/// It is built before the fork; in the child only [`restrict_self`](Self::restrict_self) is
/// left to do.
#[derive(Debug)]
pub struct Ruleset(OwnedFd);

impl Ruleset {
    /// An empty set: it allows nothing of what it handles.
    ///
    /// # Errors
    ///
    /// [`Errno::INVAL`] or [`Errno::TOOBIG`] for a right that this kernel does not know: it is
    /// never dropped in silence. [`Errno::NOMSG`] if nothing is handled.
    pub fn new(abi: u32, handled: Handled) -> Result<Self, Errno> {
        let attribute = RulesetAttribute {
            fs: handled.fs.bits(),
            net: handled.net.bits(),
            scope: handled.scope.bits(),
        };
        let shown = Handled::size(abi);
        let hidden = match shown {
            8 => attribute.net | attribute.scope,
            16 => attribute.scope,
            _ => 0,
        };
        if hidden != 0 {
            return Err(Errno::INVAL);
        }
        // SAFETY: the attribute is live and at least as long as the size given; the kernel
        // only reads it. A successful call returns a new descriptor.
        unsafe {
            raw::call_for_fd(
                libc::SYS_landlock_create_ruleset,
                [raw::address(&attribute), shown, 0, 0, 0, 0],
            )
        }
        .map(Self)
    }

    /// Allows `access` on `object` and, if it is a directory, on all below it.
    ///
    /// # Errors
    ///
    /// [`Errno::INVAL`] for rights that the set does not handle, or that make no sense for a
    /// file.
    pub fn allow_path(&self, object: BorrowedFd<'_>, access: AccessFs) -> Result<(), Errno> {
        const RULE_PATH_BENEATH: usize = 1;
        let rule = PathRule {
            access: access.bits(),
            object: std::os::fd::AsRawFd::as_raw_fd(&object),
        };
        self.add(RULE_PATH_BENEATH, raw::address(&rule))
    }

    /// Allows `access` on a port.
    ///
    /// # Errors
    ///
    /// [`Errno::INVAL`] for rights that the set does not handle; [`Errno::AFNOSUPPORT`] on a
    /// kernel without TCP.
    pub fn allow_port(&self, port: u16, access: AccessNet) -> Result<(), Errno> {
        const RULE_NET_PORT: usize = 2;
        let rule = PortRule {
            access: access.bits(),
            port: u64::from(port),
        };
        self.add(RULE_NET_PORT, raw::address(&rule))
    }

    fn add(&self, kind: usize, rule: usize) -> Result<(), Errno> {
        // SAFETY: `rule` is the address of a live structure of the kind named: both callers
        // take it from a local of the matching type. The kernel only reads it.
        unsafe {
            raw::call(
                libc::SYS_landlock_add_rule,
                [raw::fd_word(self.0.as_fd()), kind, rule, 0, 0, 0],
            )
        }
        .map(|_zero| ())
    }

    /// Puts the rules in force for the calling thread and all that it starts, for good.
    ///
    /// # Errors
    ///
    /// [`Errno::PERM`] without `no_new_privs`; [`Errno::TOOBIG`] beyond sixteen layers;
    /// [`Errno::INVAL`] for a flag that this kernel does not know. Nothing is in force then.
    pub fn restrict_self(&self, _subject: &Subject, flags: Restrict) -> Result<(), Errno> {
        // SAFETY: takes integers only. It narrows the rights of this process, which the
        // `Subject` says may be done; no memory is touched.
        unsafe {
            raw::call(
                libc::SYS_landlock_restrict_self,
                [
                    raw::fd_word(self.0.as_fd()),
                    flags.bits() as usize,
                    0,
                    0,
                    0,
                    0,
                ],
            )
        }
        .map(|_zero| ())
    }
}

impl AsFd for Ruleset {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `struct landlock_ruleset_attr` up to ABI 6; later fields stay unused.
#[repr(C)]
struct RulesetAttribute {
    fs: u64,
    net: u64,
    scope: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathRule {
    access: u64,
    object: i32,
}

/// `struct landlock_net_port_attr`.
#[repr(C)]
struct PortRule {
    access: u64,
    port: u64,
}

const _: () = {
    assert!(size_of::<RulesetAttribute>() == 24);
    assert!(size_of::<PathRule>() == 12);
    assert!(size_of::<PortRule>() == 16);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_grow_with_the_abi() {
        assert_eq!(AccessFs::of_abi(0), AccessFs::empty());
        assert_eq!(AccessFs::of_abi(1).bits(), (1 << 13) - 1);
        assert_eq!(AccessFs::of_abi(2).bits(), (1 << 14) - 1);
        assert_eq!(AccessFs::of_abi(3).bits(), (1 << 15) - 1);
        assert_eq!(AccessFs::of_abi(7).bits(), (1 << 16) - 1);
        assert_eq!(AccessFs::of_abi(9), AccessFs::all());
        assert_eq!(AccessFs::of_abi(99), AccessFs::all());
        assert_eq!(AccessNet::of_abi(3), AccessNet::empty());
        assert_eq!(AccessNet::of_abi(9).bits(), 3);
        assert_eq!(AccessNet::of_abi(10).bits(), 15);
        assert_eq!(Scope::of_abi(5), Scope::empty());
        assert_eq!(Scope::of_abi(6), Scope::all());
    }

    #[test]
    fn right_that_an_old_kernel_is_not_shown_is_refused() {
        let net = Handled {
            net: AccessNet::BIND_TCP,
            fs: AccessFs::READ_FILE,
            ..Handled::default()
        };
        assert_eq!(Ruleset::new(3, net).unwrap_err(), Errno::INVAL);
        let scope = Handled {
            scope: Scope::SIGNAL,
            ..Handled::default()
        };
        assert_eq!(Ruleset::new(5, scope).unwrap_err(), Errno::INVAL);
    }
}
