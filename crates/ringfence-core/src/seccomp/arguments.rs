//! What the rules look for in arguments, apart from sockets.
//!
//! Constants are the kernel's, written out: this crate knows no system headers. Each look says
//! with its mask which bits the kernel reads; see [`super::decision`] for why that matters.

use super::decision::{Argument, Case, Decision, Errno, INT, LONG, Look};
use super::rules::{allow, case, refuse};

/// All `CLONE_NEW*` bits of `clone`. The bit of `CLONE_NEWTIME` is missing on purpose: in this call
/// it belongs to the exit signal, and the kernel cuts that byte off before it reads flags.
const CLONE_NEW: u64 = 0x7e02_0000;

pub(super) static CLONE_FLAGS: Look = Look {
    argument: Argument::First,
    cases: &[case(
        "without CLONE_NEW*",
        &[0],
        allow("processes and threads in the namespaces they were born in"),
    )],
    // The kernel takes the low 32 bits of the register and drops the rest.
    mask: CLONE_NEW,
    otherwise: refuse(
        Errno::Eperm,
        "a new user namespace gives back every capability, and with it the kernel's mount and \
         network code",
    ),
    what: "flags",
};

/// What may be unshared: things of the process itself. Everything else is refused, so a flag that
/// a later kernel gives a meaning (as `UNSHARE_EMPTY_MNTNS`, which implies a mount namespace) is
/// closed before anybody here has heard of it.
const UNSHARE_OWN: u64 =
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
const CLONE_VM: u64 = 0x0000_0100;
const CLONE_FS: u64 = 0x0000_0200;
const CLONE_FILES: u64 = 0x0000_0400;
const CLONE_SIGHAND: u64 = 0x0000_0800;
const CLONE_THREAD: u64 = 0x0001_0000;
const CLONE_SYSVSEM: u64 = 0x0004_0000;

pub(super) static UNSHARE_FLAGS: Look = Look {
    argument: Argument::First,
    cases: &[case(
        "only things of the process itself",
        &[0],
        allow("a private table of descriptors, directories or semaphore undos"),
    )],
    mask: LONG & !UNSHARE_OWN,
    otherwise: refuse(
        Errno::Eperm,
        "a new namespace, or a flag that may mean one on a later kernel",
    ),
    what: "flags",
};

pub(super) static PRLIMIT_TARGET: Look = Look {
    argument: Argument::First,
    cases: &[case("the caller", &[0], Decision::Look(&PRLIMIT_RESOURCE))],
    mask: INT,
    otherwise: Decision::Look(&PRLIMIT_CHANGE),
    what: "process",
};

const ONLY_READING: &[Case] = &[case(
    "none",
    &[0],
    allow("reading the limits of others changes nothing"),
)];

static PRLIMIT_CHANGE: Look = Look {
    argument: Argument::Third,
    cases: ONLY_READING,
    mask: LONG,
    otherwise: refuse(
        Errno::Eperm,
        "a limit set on another process can end it, and it may be one of the host's",
    ),
    what: "new limit",
};

/// Where a pid namespace hides the host's processes. All that it shows are the command's own but one.
pub(super) static PRLIMIT_FIRST: Look = Look {
    argument: Argument::First,
    cases: &[case(
        "the session's first",
        &[1],
        Decision::Look(&PRLIMIT_FIRST_CHANGE),
    )],
    mask: INT,
    otherwise: Decision::Look(&PRLIMIT_RESOURCE),
    what: "process",
};

static PRLIMIT_FIRST_CHANGE: Look = Look {
    argument: Argument::Third,
    cases: ONLY_READING,
    mask: LONG,
    otherwise: refuse(
        Errno::Eperm,
        "the session's first process ends the others and hears the supervisor; without \
         descriptors or time it would do neither",
    ),
    what: "new limit",
};

/// `RLIMIT_CORE`.
const CORE: u64 = 4;

const OWN_LIMITS: Decision = allow("a process may read and lower its own limits");

/// The answer that programs which want no dumps of their secrets take for "nothing to do".
const DUMPS_REFUSED: Decision = refuse(
    Errno::Enosys,
    "a host that hands dumps to a program of its own skips only those of one byte, which is the \
     limit of every session",
);

/// `RLIMIT_LOCKS`, which bounds nothing since Linux 2.4: a session's mark stands in it.
const MARK: u64 = 10;

const MARK_REFUSED: Decision = refuse(
    Errno::Eperm,
    "the mark by which a session's processes are found; it bounds nothing",
);

pub(super) static SETRLIMIT_RESOURCE: Look = Look {
    argument: Argument::First,
    cases: &[
        case("RLIMIT_CORE", &[CORE], DUMPS_REFUSED),
        case("RLIMIT_LOCKS", &[MARK], MARK_REFUSED),
    ],
    mask: INT,
    otherwise: OWN_LIMITS,
    what: "resource",
};

pub(super) static PRLIMIT_RESOURCE: Look = Look {
    argument: Argument::Second,
    cases: &[
        case("RLIMIT_CORE", &[CORE], Decision::Look(&PRLIMIT_DUMPS)),
        case("RLIMIT_LOCKS", &[MARK], Decision::Look(&PRLIMIT_MARK)),
    ],
    mask: INT,
    otherwise: OWN_LIMITS,
    what: "resource",
};

static PRLIMIT_MARK: Look = Look {
    argument: Argument::Third,
    cases: &[case("none", &[0], OWN_LIMITS)],
    mask: LONG,
    otherwise: MARK_REFUSED,
    what: "new limit",
};

static PRLIMIT_DUMPS: Look = Look {
    argument: Argument::Third,
    cases: &[case("none", &[0], OWN_LIMITS)],
    mask: LONG,
    otherwise: DUMPS_REFUSED,
    what: "new limit",
};

pub(super) static TARGET: Look = Look {
    argument: Argument::First,
    cases: SELF,
    mask: INT,
    otherwise: OTHERS_REFUSED,
    what: "process",
};

/// `PRIO_PROCESS`; the other kinds name groups and whole users.
pub(super) static PRIORITY_KIND: Look = Look {
    argument: Argument::First,
    cases: &[case("PRIO_PROCESS", &[0], Decision::Look(&PRIORITY_TARGET))],
    mask: INT,
    otherwise: OTHERS_REFUSED,
    what: "kind",
};

/// `IOPRIO_WHO_PROCESS`, which is numbered differently.
pub(super) static IO_PRIORITY_KIND: Look = Look {
    argument: Argument::First,
    cases: &[case(
        "IOPRIO_WHO_PROCESS",
        &[1],
        Decision::Look(&PRIORITY_TARGET),
    )],
    mask: INT,
    otherwise: OTHERS_REFUSED,
    what: "kind",
};

/// Whom a signal is for; zero is the caller's own group.
pub(super) static SIGNALLED: Look = Look {
    argument: Argument::First,
    cases: &[case(
        "the caller's group",
        &[0],
        refuse(
            Errno::Eperm,
            "the group may hold processes of the host, and nothing else keeps signals inside",
        ),
    )],
    mask: INT,
    otherwise: allow("reaches what the pid namespace shows"),
    what: "process",
};

/// `PRIO_PGRP`: whoever started the session may be in the same group, outside.
pub(super) static PRIORITY_GROUP: Look = Look {
    argument: Argument::First,
    cases: &[case("PRIO_PGRP", &[1], OTHERS_REFUSED)],
    mask: INT,
    otherwise: allow("reaches what the pid namespace shows"),
    what: "kind",
};

/// `IOPRIO_WHO_PGRP`.
pub(super) static IO_PRIORITY_GROUP: Look = Look {
    argument: Argument::First,
    cases: &[case("IOPRIO_WHO_PGRP", &[2], OTHERS_REFUSED)],
    mask: INT,
    otherwise: allow("reaches what the pid namespace shows"),
    what: "kind",
};

static PRIORITY_TARGET: Look = Look {
    argument: Argument::Second,
    cases: SELF,
    mask: INT,
    otherwise: OTHERS_REFUSED,
    what: "process",
};

const SELF: &[Case] = &[case(
    "the caller",
    &[0],
    allow("a process may place and slow itself"),
)];

const OTHERS_REFUSED: Decision = refuse(
    Errno::Eperm,
    "slows or moves another process, which may be one of the host's",
);

/// The kernel declares the request as 32 bits, so any upper word reaches the same code.
pub(super) static IOCTL_REQUEST: Look = Look {
    argument: Argument::Second,
    cases: &[
        case(
            "TIOCSTI, TIOCLINUX",
            &[0x5412, 0x541c],
            refuse(
                Errno::Eperm,
                "types into the terminal, for the shell outside to read",
            ),
        ),
        case(
            "TIOCEXCL, TIOCSETD, TIOCCONS, KDSETMODE, KDSKBMODE, VT_SETMODE",
            &[0x540c, 0x5423, 0x541d, 0x4b3a, 0x4b45, 0x5602],
            refuse(
                Errno::Eperm,
                "rewires or closes the terminal, which stays so for the shell outside",
            ),
        ),
        case(
            "subvolumes of btrfs and bcachefs, OCFS2_IOC_REFLINK",
            &[
                0x5000_9401,
                0x5000_940e,
                0x5000_940f,
                0x5000_9417,
                0x5000_9418,
                0x5000_943f,
                0x4020_bc10,
                0x4020_bc11,
                0x4030_bc1d,
                0x4018_6f04,
            ],
            refuse(
                Errno::Eperm,
                "makes or removes names without a call that is asked about, and a snapshot copies a \
                 tree without what is masked in it",
            ),
        ),
        case(
            "keys of encrypted directories",
            &[0xc050_6617, 0xc040_6618, 0xc040_6619],
            refuse(
                Errno::Eperm,
                "locks the user's own directories for everybody, or leaves a key behind",
            ),
        ),
    ],
    mask: INT,
    otherwise: allow("devices are few, and what can be opened is held by other layers"),
    what: "request",
};

/// `S_ISUID` and `S_ISGID`.
const SET_ID: u64 = 0o6000;

pub(super) static CHMOD_MODE: Look = Look {
    argument: Argument::Second,
    cases: CHMOD_CASES,
    mask: SET_ID,
    otherwise: CHMOD_REFUSED,
    what: "mode",
};

pub(super) static FCHMODAT_MODE: Look = Look {
    argument: Argument::Third,
    cases: CHMOD_CASES,
    mask: SET_ID,
    otherwise: CHMOD_REFUSED,
    what: "mode",
};

const CHMOD_CASES: &[Case] = &[case(
    "without set-id bits",
    &[0],
    allow("ordinary permissions of files within reach"),
)];

const CHMOD_REFUSED: Decision = refuse(
    Errno::Eperm,
    "a set-id program left behind would later run with its owner's rights, outside",
);

/// `SECCOMP_FILTER_FLAG_NEW_LISTENER`.
const NEW_LISTENER: u64 = 1 << 3;

pub(super) static SECCOMP_FLAGS: Look = Look {
    argument: Argument::Second,
    cases: &[case(
        "without a listener",
        &[0],
        allow("a further filter can only take more away"),
    )],
    mask: NEW_LISTENER,
    otherwise: refuse(
        Errno::Eperm,
        "one listener at most fits into a chain of filters, and it is the session's",
    ),
    what: "flags",
};

/// `PER_LINUX32`, `UNAME26` and `ADDR_NO_RANDOMIZE`: what `setarch`, debuggers and thread
/// sanitizers use, and what changes nothing but the caller's own view.
const HARMLESS_PERSONA: u64 = 0x0000_0008 | 0x0002_0000 | 0x0004_0000;

pub(super) static PERSONA: Look = Look {
    argument: Argument::First,
    cases: &[case("a question", &[INT], allow("asks without changing"))],
    mask: INT,
    otherwise: Decision::Look(&PERSONA_BITS),
    what: "persona",
};

static PERSONA_BITS: Look = Look {
    argument: Argument::First,
    cases: &[case(
        "Linux, with 32-bit name, old version or fixed addresses",
        &[0],
        allow("changes nothing but the caller's own view"),
    )],
    mask: INT & !HARMLESS_PERSONA,
    otherwise: refuse(
        Errno::Eperm,
        "old personalities make memory executable or page zero usable, and are rarely tested",
    ),
    what: "persona",
};
