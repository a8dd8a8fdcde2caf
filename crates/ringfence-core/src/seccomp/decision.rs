//! What can be said about a call, as data.
//!
//! A decision is a small tree: look at one argument under a mask, go to the case that has its
//! value, and end in a verdict with its reason. There is only one kind of test, `argument & mask ==
//! value` over all 64 bits, and its mask says which bits the kernel itself reads: where the kernel
//! declares an `int` the mask is [`INT`], so nothing in the upper word can change the verdict;
//! where it reads the whole register the mask is wide, so nothing in the upper word is overlooked.
//!
//! [`Decision::judge`] evaluates the data directly. The BPF compiler never calls it: the two are
//! held against each other by tests.

use super::spec::{
    Creating, FilterSpec, GroupSignals, HostProcesses, InetSockets, Listening, RouteQueries,
    SetIdBits, SystemIpc, Tracing, UnixSockets,
};
use super::table::Syscall;

/// The bits of an argument that the kernel declares as a 32-bit integer.
pub(super) const INT: u64 = 0xffff_ffff;

/// The bits of an argument that the kernel reads whole: a pointer or a `long`.
pub(super) const LONG: u64 = u64::MAX;

/// The error a refused call returns.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Errno {
    /// Permission denied: the policy does not give this kind of socket.
    Eacces,
    /// Address family not supported: as if the kernel had been built without it.
    Eafnosupport,
    /// Protocol option not available.
    Enoprotoopt,
    /// Function not implemented: programs have a fallback for older kernels.
    Enosys,
    /// Operation not supported.
    Eopnotsupp,
    /// Operation not permitted.
    Eperm,
    /// Protocol not supported: programs fall back to the plain one.
    Eprotonosupport,
}

impl Errno {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Eacces,
        Self::Eafnosupport,
        Self::Enoprotoopt,
        Self::Enosys,
        Self::Eopnotsupp,
        Self::Eperm,
        Self::Eprotonosupport,
    ];

    /// The number, the same on both architectures.
    pub const fn number(self) -> u16 {
        match self {
            Self::Eperm => 1,
            Self::Eacces => 13,
            Self::Enosys => 38,
            Self::Enoprotoopt => 92,
            Self::Eprotonosupport => 93,
            Self::Eopnotsupp => 95,
            Self::Eafnosupport => 97,
        }
    }

    /// The C name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eacces => "EACCES",
            Self::Eafnosupport => "EAFNOSUPPORT",
            Self::Enoprotoopt => "ENOPROTOOPT",
            Self::Enosys => "ENOSYS",
            Self::Eopnotsupp => "EOPNOTSUPP",
            Self::Eperm => "EPERM",
            Self::Eprotonosupport => "EPROTONOSUPPORT",
        }
    }
}

/// What the kernel does with a call.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// The call runs, and the other layers judge it.
    Allow,
    /// The call waits for the supervisor, which makes it in the caller's place or refuses it.
    Ask,
    /// The process ends by `SIGSYS`.
    Kill,
    /// The call does not run and returns this error.
    Refuse(Errno),
}

impl Verdict {
    const KILL_PROCESS: u32 = 0x8000_0000;
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const USER_NOTIF: u32 = 0x7fc0_0000;

    /// The value a program returns for it (`SECCOMP_RET_*`).
    pub const fn to_return(self) -> u32 {
        match self {
            Self::Allow => Self::ALLOW,
            Self::Ask => Self::USER_NOTIF,
            Self::Kill => Self::KILL_PROCESS,
            Self::Refuse(errno) => Self::ERRNO | errno.number() as u32,
        }
    }

    /// The verdict behind a returned value; one that we never write is the strictest.
    pub fn from_return(value: u32) -> Self {
        if value == Self::ALLOW {
            return Self::Allow;
        }
        if value == Self::USER_NOTIF {
            return Self::Ask;
        }
        Errno::ALL
            .into_iter()
            .map(Self::Refuse)
            .find(|verdict| verdict.to_return() == value)
            .unwrap_or(Self::Kill)
    }

    /// `allow`, `ask`, `kill` or the name of the error.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Kill => "kill",
            Self::Refuse(errno) => errno.name(),
        }
    }
}

/// Which argument of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Argument {
    /// The first, `args[0]`.
    First,
    /// `args[1]`.
    Second,
    /// `args[2]`.
    Third,
    /// `args[3]`.
    Fourth,
}

impl Argument {
    /// Its place in `args`.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// One system call as a filter sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Call {
    /// The architecture token of the entry that was used.
    pub arch: u32,
    /// The six argument registers.
    pub args: [u64; 6],
    /// The number, with any flag bit that the entry puts into it.
    pub number: u32,
}

/// When a rule or a case is part of the filter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum When {
    /// In every filter.
    Always,
    /// For this answer about names that are made.
    Creating(Creating),
    /// For this answer about processes of the host.
    GroupSignals(GroupSignals),
    HostProcesses(HostProcesses),
    /// For one of these answers about internet sockets.
    Inet(&'static [InetSockets]),
    /// For this answer about queues and shared memory.
    Ipc(SystemIpc),
    /// For this answer about waiting for connections.
    Listening(Listening),
    /// For this answer about route questions.
    RouteQueries(RouteQueries),
    /// For this answer about set-id bits.
    SetIdBits(SetIdBits),
    /// For this answer about debuggers.
    Tracing(Tracing),
    /// For these answers about unix sockets.
    Unix(&'static [UnixSockets]),
}

impl When {
    /// Whether it applies to `spec`.
    pub(super) fn applies(self, spec: FilterSpec) -> bool {
        match self {
            Self::Always => true,
            Self::Creating(choice) => choice == spec.creating,
            Self::GroupSignals(choice) => choice == spec.group_signals,
            Self::HostProcesses(choice) => choice == spec.host_processes,
            Self::Inet(choices) => choices.contains(&spec.inet),
            Self::Ipc(choice) => choice == spec.ipc,
            Self::Listening(choice) => choice == spec.listening,
            Self::RouteQueries(choice) => choice == spec.route_queries,
            Self::SetIdBits(choice) => choice == spec.set_id_bits,
            Self::Tracing(choice) => choice == spec.tracing,
            Self::Unix(choices) => choices.contains(&spec.unix),
        }
    }
}

/// A verdict, or one more look before it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decision {
    /// The verdict and why.
    End(Verdict, &'static str),
    /// It depends on an argument.
    Look(&'static Look),
}

/// Looks at one argument.
#[derive(Debug)]
pub(super) struct Look {
    /// Which.
    pub(super) argument: Argument,
    /// Tried in order; the values of cases that apply at once never overlap.
    pub(super) cases: &'static [Case],
    /// The bits looked at: those, and only those, that the kernel reads.
    pub(super) mask: u64,
    /// For every other value.
    pub(super) otherwise: Decision,
    /// What the argument means, for people.
    pub(super) what: &'static str,
}

/// Some values of an argument.
#[derive(Debug)]
pub(super) struct Case {
    /// What the values are called, for people.
    pub(super) name: &'static str,
    /// What then.
    pub(super) then: Decision,
    /// The values, under the mask of the look.
    pub(super) values: &'static [u64],
    /// In which filters.
    pub(super) when: When,
}

/// What is said about some calls.
#[derive(Debug)]
pub(super) struct Rule {
    /// The calls.
    pub(super) calls: &'static [Syscall],
    /// What is said.
    pub(super) decision: Decision,
    /// In which filters.
    pub(super) when: When,
}

/// A verdict together with its reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Judgement {
    /// Why, in one sentence.
    pub reason: &'static str,
    /// What happens.
    pub verdict: Verdict,
}

impl Decision {
    /// Evaluates the data for one set of arguments.
    pub(super) fn judge(self, spec: FilterSpec, args: &[u64; 6]) -> Judgement {
        let mut decision = self;
        loop {
            match decision {
                Self::End(verdict, reason) => return Judgement { reason, verdict },
                Self::Look(look) => decision = look.follow(spec, args),
            }
        }
    }
}

impl Look {
    fn follow(&self, spec: FilterSpec, args: &[u64; 6]) -> Decision {
        let seen = args[self.argument.index()] & self.mask;
        self.cases_for(spec)
            .find(|case| case.values.contains(&seen))
            .map_or(self.otherwise, |case| case.then)
    }

    /// The cases that are part of the filter for `spec`.
    pub(super) fn cases_for(&self, spec: FilterSpec) -> impl Iterator<Item = &'static Case> {
        let cases = self.cases;
        cases.iter().filter(move |case| case.when.applies(spec))
    }
}
