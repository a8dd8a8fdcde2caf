//! The rules, each with its reason.
//!
//! Data only, apart from [`judge`], which looks a call up in it. Read it as the answer to "what
//! does the filter refuse, and why"; calls that no rule names are ordinary and allowed. What is
//! looked for in arguments is in [`super::arguments`]; sockets have a page of their own,
//! [`super::sockets`].

use super::arguments;
use super::creating;
use super::decision::{Call, Case, Decision, Errno, Judgement, Rule, Verdict, When};
use super::sockets;
use super::spec::{FilterSpec, GroupSignals, HostProcesses, SetIdBits, SystemIpc, Tracing};
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
        .chain(creating::RULES)
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

/// Without a pid namespace.
const IN_SIGHT: When = When::HostProcesses(HostProcesses::InSight);
/// With one. It hides numbers, but not the caller's own process group.
const HIDDEN: When = When::HostProcesses(HostProcesses::Hidden);

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
        Decision::Look(&arguments::CLONE_FLAGS),
    ),
    when(
        When::Always,
        &[Syscall::Unshare],
        Decision::Look(&arguments::UNSHARE_FLAGS),
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
        When::GroupSignals(GroupSignals::Refused),
        &[Syscall::Kill],
        Decision::Look(&arguments::SIGNALLED),
    ),
    when(
        IN_SIGHT,
        &[Syscall::Prlimit64],
        Decision::Look(&arguments::PRLIMIT_TARGET),
    ),
    when(
        IN_SIGHT,
        &[
            Syscall::MigratePages,
            Syscall::MovePages,
            Syscall::SchedSetaffinity,
            Syscall::SchedSetattr,
            Syscall::SchedSetparam,
            Syscall::SchedSetscheduler,
        ],
        Decision::Look(&arguments::TARGET),
    ),
    when(
        IN_SIGHT,
        &[Syscall::Setpriority],
        Decision::Look(&arguments::PRIORITY_KIND),
    ),
    when(
        IN_SIGHT,
        &[Syscall::IoprioSet],
        Decision::Look(&arguments::IO_PRIORITY_KIND),
    ),
    when(
        HIDDEN,
        &[Syscall::Setpriority],
        Decision::Look(&arguments::PRIORITY_GROUP),
    ),
    when(
        HIDDEN,
        &[Syscall::IoprioSet],
        Decision::Look(&arguments::IO_PRIORITY_GROUP),
    ),
    when(
        HIDDEN,
        &[Syscall::Prlimit64],
        Decision::Look(&arguments::PRLIMIT_FIRST),
    ),
    when(
        When::Always,
        &[Syscall::Setrlimit],
        Decision::Look(&arguments::SETRLIMIT_RESOURCE),
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
        Decision::Look(&arguments::IOCTL_REQUEST),
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
        Decision::Look(&arguments::CHMOD_MODE),
    ),
    when(
        When::SetIdBits(SetIdBits::Refused),
        &[Syscall::Fchmodat, Syscall::Fchmodat2],
        Decision::Look(&arguments::FCHMODAT_MODE),
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
        &[Syscall::MemfdSecret],
        Errno::Enosys,
        "memory that the supervisor cannot read, in which a path would be hidden from it",
    ),
    never(
        &[Syscall::FanotifyInit, Syscall::FanotifyMark],
        Errno::Eperm,
        "watches whole file systems, past what paths show",
    ),
    when(
        When::Always,
        &[Syscall::Seccomp],
        Decision::Look(&arguments::SECCOMP_FLAGS),
    ),
    when(
        When::Always,
        &[Syscall::Personality],
        Decision::Look(&arguments::PERSONA),
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
