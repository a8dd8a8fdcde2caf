//! What a filter is asked to hold: the only input of this room.
//!
//! Plain choices, no kernel version and no policy: whoever compiles a plan knows which other layer
//! holds what, and says here what is left for the filter. Every choice has a strict end, and
//! [`FilterSpec::strictest`] starts there, so a choice that somebody forgets to make is closed.

use serde::{Deserialize, Serialize};

/// The processor the filter runs on.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    /// 64-bit Arm, little-endian.
    Aarch64,
    /// 64-bit x86. Its 32-bit and x32 entries are refused.
    X86_64,
}

impl Arch {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Aarch64, Self::X86_64];

    /// How the kernel names this architecture to a filter (`AUDIT_ARCH_*`).
    pub const fn token(self) -> u32 {
        match self {
            Self::Aarch64 => 0xc000_00b7,
            Self::X86_64 => 0xc000_003e,
        }
    }

    /// The name used in settings and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aarch64 => "aarch64",
            Self::X86_64 => "x86_64",
        }
    }
}

/// Sockets of the internet families.
///
/// Multipath TCP, SMC, SCTP, DCCP and raw sockets are refused in every case: they slip past port
/// rules, widen the kernel's attack surface, or need capabilities that no session has.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InetSockets {
    /// TCP, UDP and ping: either a network namespace of the session's own holds, or the policy
    /// allows the whole network.
    Open,
    /// None. The way to hold `network: none` without a network namespace.
    Refused,
    /// TCP and UDP; Landlock port rules hold both, so nothing that slips past them is allowed.
    TcpAndUdpPorts,
    /// TCP only; Landlock port rules hold it, and nothing holds UDP.
    TcpPorts,
}

/// Unix sockets that can be given an address.
///
/// The path of a `connect` lies in memory, where a filter cannot look, so a filter alone can only give all or nothing.
/// Connected stream and sequenced pairs are always allowed: they can never be pointed elsewhere.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnixSockets {
    /// Stream and sequenced sockets, whose `connect` is made by the supervisor: it copies the
    /// address, looks at what it leads to, and connects to nothing but the session's own. So every
    /// `connect`, of whatever family, goes through the supervisor: a filter cannot tell them apart.
    Brokered,
    /// All types. Something else keeps ungranted sockets of the host out of reach: the mount view
    /// together with the network namespace or scope (abstract names), or Landlock from ABI 9.
    Open,
    /// As `Open`; but every `connect` goes through the supervisor, for the sake of other families.
    /// It lets those of unix sockets through.
    Passed,
    /// None, and no datagram pair either: one end of it could be pointed at any socket of the host.
    Refused,
}

/// Waiting for connections.
///
/// Needed without a network namespace: Landlock sees `bind`, but a socket that listens without
/// having been bound gets a free port of the host by itself.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Listening {
    /// `listen` works.
    Allowed,
    /// `listen` is refused for every family, so choose it only where unix sockets are refused too.
    Refused,
}

/// Questions about interfaces and routes, asked by `getaddrinfo`, `ip` and language runtimes.
///
/// Changes through the same socket need a capability that no session has.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteQueries {
    /// Netlink sockets of the route family, and of no other.
    Allowed,
    /// No netlink socket at all.
    Refused,
}

/// System V shared memory, semaphores and queues, and POSIX message queues.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemIpc {
    /// The session has an IPC namespace of its own.
    Own,
    /// It sees the host's objects, which no other layer guards: all calls are refused.
    Shared,
}

/// Processes of the host that have the session's user.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostProcesses {
    /// The session has a pid namespace of its own, so it has no number for any of them.
    Hidden,
    /// It can name them, and no other layer guards their limits and priorities: a call that sets
    /// those of anybody but the caller is refused. Threads that set each other's are refused too,
    /// since a filter cannot tell whose a number is.
    InSight,
}

/// Signals to the caller's own process group, by the number zero.
///
/// The group may reach over the edge of a pid namespace: whoever started the session, and what was
/// started beside it, can be in it. No other number inside means a process of the host.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupSignals {
    /// Landlock keeps signals inside (ABI 6).
    Allowed,
    /// Nothing else does.
    Refused,
}

/// Debuggers and everything else that reaches into another process.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tracing {
    /// For gdb, strace, leak sanitizers. Only sound where every process in sight belongs to the
    /// session, and its init cannot be attached to.
    Inner,
    /// None of it.
    Refused,
}

/// Set-user-id and set-group-id bits on files that the session leaves behind.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SetIdBits {
    /// `chmod` as usual.
    Allowed,
    /// Every call of the `chmod` family refuses them.
    Refused,
}

/// Calls that bring a name into the world: a file, a directory, a link, a socket.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Creating {
    /// The supervisor is asked first, because some names are protected that are not there.
    Asked,
    /// They are made; mounts and Landlock say where.
    Free,
}

/// What one filter has to hold.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FilterSpec {
    /// Where it runs.
    pub arch: Arch,
    /// Calls that make names.
    pub creating: Creating,
    /// Signals to the caller's own group.
    pub group_signals: GroupSignals,
    /// Processes of the host.
    pub host_processes: HostProcesses,
    /// Internet sockets.
    pub inet: InetSockets,
    /// System V and POSIX queues.
    pub ipc: SystemIpc,
    /// Waiting for connections.
    pub listening: Listening,
    /// Interface and route questions.
    pub route_queries: RouteQueries,
    /// Set-user-id and set-group-id bits.
    pub set_id_bits: SetIdBits,
    /// Debuggers.
    pub tracing: Tracing,
    /// Unix sockets.
    pub unix: UnixSockets,
}

impl FilterSpec {
    /// Whether a supervisor has to answer some of the calls.
    pub const fn asks(self) -> bool {
        matches!(self.creating, Creating::Asked)
            || matches!(self.unix, UnixSockets::Brokered | UnixSockets::Passed)
    }

    /// Refuses whatever a choice can refuse. Open single fields from here.
    pub const fn strictest(arch: Arch) -> Self {
        Self {
            arch,
            // A question refuses nothing by itself, and without a supervisor it breaks everything.
            creating: Creating::Free,
            group_signals: GroupSignals::Refused,
            host_processes: HostProcesses::InSight,
            inet: InetSockets::Refused,
            ipc: SystemIpc::Shared,
            listening: Listening::Refused,
            route_queries: RouteQueries::Refused,
            set_id_bits: SetIdBits::Refused,
            tracing: Tracing::Refused,
            unix: UnixSockets::Refused,
        }
    }

    /// For a session that has user, mount, pid, IPC and network namespaces of its own, whose mount
    /// view shows no socket of the host that was not granted, and whose signals Landlock holds.
    pub const fn namespaces(arch: Arch) -> Self {
        Self {
            group_signals: GroupSignals::Allowed,
            host_processes: HostProcesses::Hidden,
            inet: InetSockets::Open,
            ipc: SystemIpc::Own,
            listening: Listening::Allowed,
            route_queries: RouteQueries::Allowed,
            unix: UnixSockets::Open,
            ..Self::strictest(arch)
        }
    }
}
