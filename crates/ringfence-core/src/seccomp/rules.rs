//! The rules, each with its reason.
//!
//! Data only, apart from [`judge`], which looks a call up in it. Read it as the answer to "what
//! does the filter refuse, and why"; calls that no rule names are ordinary and allowed. Sockets
//! have a page of their own, [`super::sockets`].

use super::decision::{
    Argument, Call, Case, Decision, Errno, INT, Judgement, LONG, Look, Rule, Verdict, When,
};
use super::sockets;
use super::spec::{FilterSpec, SetIdBits, SystemIpc, Tracing};
use super::table::Syscall;

/// Why a call of another architecture ends the process.
pub(super) const FOREIGN: Judgement = Judgement {
    reason: "another architecture's entry, whose numbers no rule can judge",
    verdict: Verdict::Kill,
};

/// Why an unknown number is refused.
pub(super) const UNKNOWN: Judgement = Judgement {
    reason: "not a call that has been judged; answered as a kernel without it would",
    verdict: Verdict::Refuse(Errno::Enosys),
};

/// Why a call without a rule is allowed.
pub(super) const ORDINARY: Judgement = Judgement {
    reason: "an ordinary call; files, processes and network are held by the other layers",
    verdict: Verdict::Allow,
};

/// What the filter for `spec` says to `call`, straight from the data.
pub fn judge(spec: FilterSpec, call: &Call) -> Judgement {
    if call.arch != spec.arch.token() {
        return FOREIGN;
    }
    let Some(syscall) = Syscall::numbered(spec.arch, call.number) else {
        return UNKNOWN;
    };
    match decision(spec, syscall) {
        Some(decision) => decision.judge(spec, &call.args),
        None => ORDINARY,
    }
}

/// What the rules for `spec` say about `syscall`, if anything.
pub(super) fn decision(spec: FilterSpec, syscall: Syscall) -> Option<Decision> {
    rules(spec)
        .find(|rule| rule.calls.contains(&syscall))
        .map(|rule| rule.decision)
}

/// The rules that are part of the filter for `spec`. No call is named by two of them.
pub(super) fn rules(spec: FilterSpec) -> impl Iterator<Item = &'static Rule> {
    RULES
        .iter()
        .chain(sockets::RULES)
        .filter(move |rule| rule.when.applies(spec))
}

/// Lets the call run.
pub(super) const fn allow(reason: &'static str) -> Decision {
    Decision::End(Verdict::Allow, reason)
}

/// Makes the call fail.
pub(super) const fn refuse(errno: Errno, reason: &'static str) -> Decision {
    Decision::End(Verdict::Refuse(errno), reason)
}

const fn never(calls: &'static [Syscall], errno: Errno, reason: &'static str) -> Rule {
    Rule {
        calls,
        decision: refuse(errno, reason),
        when: When::Always,
    }
}

const fn when(when: When, calls: &'static [Syscall], decision: Decision) -> Rule {
    Rule {
        calls,
        decision,
        when,
    }
}

/// A case of every filter.
pub(super) const fn case(name: &'static str, values: &'static [u64], then: Decision) -> Case {
    Case {
        name,
        then,
        values,
        when: When::Always,
    }
}

/// All rules that are not about sockets.
pub(super) static RULES: &[Rule] = &[
    // New views of the system.
    never(
        &[Syscall::Clone3],
        Errno::Enosys,
        "its flags lie in memory; libc falls back to clone, whose flags can be read",
    ),
    when(
        When::Always,
        &[Syscall::Clone],
        Decision::Look(&CLONE_FLAGS),
    ),
    when(
        When::Always,
        &[Syscall::Unshare],
        Decision::Look(&UNSHARE_FLAGS),
    ),
    never(
        &[Syscall::Setns, Syscall::Listns],
        Errno::Eperm,
        "enters or lists namespaces of others",
    ),
    never(
        &[
            Syscall::Mount,
            Syscall::Umount2,
            Syscall::PivotRoot,
            Syscall::Chroot,
            Syscall::Fchroot,
            Syscall::OpenTree,
            Syscall::OpenTreeAttr,
            Syscall::MoveMount,
            Syscall::Fsopen,
            Syscall::Fsconfig,
            Syscall::Fsmount,
            Syscall::Fspick,
            Syscall::MountSetattr,
        ],
        Errno::Eperm,
        "changes what paths mean, which is what hides and protects files",
    ),
    never(
        &[Syscall::OpenByHandleAt, Syscall::NameToHandleAt],
        Errno::Eperm,
        "a file handle names a file past every directory that hides it",
    ),
    never(
        &[
            Syscall::IoUringSetup,
            Syscall::IoUringEnter,
            Syscall::IoUringRegister,
        ],
        Errno::Enosys,
        "a ring makes calls that no filter sees, and may do so with older credentials",
    ),
    // Other processes.
    when(
        When::Tracing(Tracing::Refused),
        &[
            Syscall::Ptrace,
            Syscall::ProcessVmReadv,
            Syscall::ProcessVmWritev,
            Syscall::PidfdGetfd,
            Syscall::ProcessMadvise,
            Syscall::Kcmp,
        ],
        refuse(
            Errno::Eperm,
            "reaches into the memory or the descriptors of another process",
        ),
    ),
    when(
        When::Always,
        &[Syscall::Prlimit64],
        Decision::Look(&PRLIMIT_TARGET),
    ),
    when(
        When::Always,
        &[Syscall::MigratePages, Syscall::MovePages],
        Decision::Look(&PAGES_TARGET),
    ),
    when(
        When::Ipc(SystemIpc::Shared),
        &[
            Syscall::Shmget,
            Syscall::Shmat,
            Syscall::Shmctl,
            Syscall::Semget,
            Syscall::Semop,
            Syscall::Semtimedop,
            Syscall::Semctl,
            Syscall::Msgget,
            Syscall::Msgsnd,
            Syscall::Msgrcv,
            Syscall::Msgctl,
            Syscall::MqOpen,
            Syscall::MqUnlink,
        ],
        refuse(
            Errno::Eperm,
            "without an IPC namespace these are the host's shared memory and queues",
        ),
    ),
    // Secrets and terminal.
    never(
        &[Syscall::AddKey, Syscall::RequestKey, Syscall::Keyctl],
        Errno::Eperm,
        "the kernel's keyrings hold keys of the host's session and cross namespaces",
    ),
    when(
        When::Always,
        &[Syscall::Ioctl],
        Decision::Look(&IOCTL_REQUEST),
    ),
    never(
        &[Syscall::Vhangup],
        Errno::Eperm,
        "hangs up the terminal for everybody on it",
    ),
    // Files left behind.
    when(
        When::SetIdBits(SetIdBits::Refused),
        &[Syscall::Chmod, Syscall::Fchmod],
        Decision::Look(&CHMOD_MODE),
    ),
    when(
        When::SetIdBits(SetIdBits::Refused),
        &[Syscall::Fchmodat, Syscall::Fchmodat2],
        Decision::Look(&FCHMODAT_MODE),
    ),
    // Kernel machinery with a history of bugs, and no use in a session.
    never(
        &[Syscall::Bpf],
        Errno::Eperm,
        "loads programs into the kernel",
    ),
    never(
        &[Syscall::PerfEventOpen],
        Errno::Eperm,
        "measures the kernel and other processes, with a long list of past bugs",
    ),
    never(
        &[Syscall::Userfaultfd],
        Errno::Eperm,
        "stops the kernel in the middle of a copy, which turns races into certainties",
    ),
    never(
        &[Syscall::FanotifyInit, Syscall::FanotifyMark],
        Errno::Eperm,
        "watches whole file systems, past what paths show",
    ),
    when(
        When::Always,
        &[Syscall::Seccomp],
        Decision::Look(&SECCOMP_FLAGS),
    ),
    when(
        When::Always,
        &[Syscall::Personality],
        Decision::Look(&PERSONA),
    ),
    never(
        &[Syscall::Iopl, Syscall::Ioperm, Syscall::ModifyLdt],
        Errno::Eperm,
        "hardware ports and segment tables",
    ),
    // The machine itself.
    never(
        &[
            Syscall::KexecLoad,
            Syscall::KexecFileLoad,
            Syscall::InitModule,
            Syscall::FinitModule,
            Syscall::DeleteModule,
            Syscall::Reboot,
        ],
        Errno::Eperm,
        "replaces, extends or stops the kernel",
    ),
    never(
        &[
            Syscall::Swapon,
            Syscall::Swapoff,
            Syscall::Acct,
            Syscall::Quotactl,
            Syscall::QuotactlFd,
        ],
        Errno::Eperm,
        "administers the machine's storage and accounting",
    ),
    never(&[Syscall::Syslog], Errno::Eperm, "the kernel's log"),
    never(
        &[
            Syscall::Settimeofday,
            Syscall::ClockSettime,
            Syscall::ClockAdjtime,
            Syscall::Adjtimex,
        ],
        Errno::Eperm,
        "sets the machine's clock",
    ),
    never(
        &[Syscall::Sethostname, Syscall::Setdomainname],
        Errno::Eperm,
        "sets the machine's name",
    ),
    never(
        &[
            Syscall::Uselib,
            Syscall::Sysctl,
            Syscall::CreateModule,
            Syscall::GetKernelSyms,
            Syscall::QueryModule,
            Syscall::Nfsservctl,
            Syscall::LookupDcookie,
            Syscall::Getpmsg,
            Syscall::Putpmsg,
            Syscall::AfsSyscall,
            Syscall::Tuxcall,
            Syscall::Security,
            Syscall::Vserver,
            Syscall::EpollCtlOld,
            Syscall::EpollWaitOld,
        ],
        Errno::Enosys,
        "gone from the kernel or never there; old kernels shall answer like new ones",
    ),
];

/// All `CLONE_NEW*` bits of `clone`. The bit of `CLONE_NEWTIME` is missing on purpose: in this call
/// it belongs to the exit signal, and the kernel cuts that byte off before it reads flags.
const CLONE_NEW: u64 = 0x7e02_0000;

static CLONE_FLAGS: Look = Look {
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

static UNSHARE_FLAGS: Look = Look {
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

static PRLIMIT_TARGET: Look = Look {
    argument: Argument::First,
    cases: &[case(
        "the caller",
        &[0],
        allow("a process may read and lower its own limits"),
    )],
    mask: INT,
    otherwise: Decision::Look(&PRLIMIT_CHANGE),
    what: "process",
};

static PRLIMIT_CHANGE: Look = Look {
    argument: Argument::Third,
    cases: &[case(
        "none",
        &[0],
        allow("reading the limits of others changes nothing"),
    )],
    mask: LONG,
    otherwise: refuse(
        Errno::Eperm,
        "a limit set on another process can end it, and nothing else guards against that",
    ),
    what: "new limit",
};

static PAGES_TARGET: Look = Look {
    argument: Argument::First,
    cases: &[case(
        "the caller",
        &[0],
        allow("a process may place its own memory"),
    )],
    mask: INT,
    otherwise: refuse(Errno::Eperm, "moves the memory of another process"),
    what: "process",
};

/// The kernel declares the request as 32 bits, so any upper word reaches the same code.
static IOCTL_REQUEST: Look = Look {
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
            "TIOCSETD, TIOCCONS",
            &[0x5423, 0x541d],
            refuse(
                Errno::Eperm,
                "rewires the terminal: line disciplines and console output",
            ),
        ),
        case(
            "snapshots of btrfs and bcachefs",
            &[0x5000_9401, 0x5000_9417, 0x4020_bc10, 0x4030_bc1d],
            refuse(
                Errno::Eperm,
                "a snapshot copies a tree below its mounts, and so without what is masked there",
            ),
        ),
    ],
    mask: INT,
    otherwise: allow("devices are few, and what can be opened is held by other layers"),
    what: "request",
};

/// `S_ISUID` and `S_ISGID`.
const SET_ID: u64 = 0o6000;

static CHMOD_MODE: Look = Look {
    argument: Argument::Second,
    cases: CHMOD_CASES,
    mask: SET_ID,
    otherwise: CHMOD_REFUSED,
    what: "mode",
};

static FCHMODAT_MODE: Look = Look {
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

static SECCOMP_FLAGS: Look = Look {
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

static PERSONA: Look = Look {
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
