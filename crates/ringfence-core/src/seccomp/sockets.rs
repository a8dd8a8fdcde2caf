//! The rules about sockets.
//!
//! Families, types and protocols are allow-lists: a family that nobody here has heard of is
//! refused. What the policy does not give is answered `EACCES`, the documented answer of `socket`;
//! what nobody gets is answered as by a kernel built without it, so that programs that only probe
//! go on to the next thing.
//!
//! Family, type, protocol, level, option and flags are all declared `int` by the kernel.

use super::decision::{Argument, Case, Decision, Errno, INT, Look, Rule, Verdict, When};
use super::rules::{allow, case, refuse};
use super::spec::{InetSockets, Listening, RouteQueries, UnixSockets};
use super::table::Syscall;

const AF_UNIX: u64 = 1;
const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;
const AF_NETLINK: u64 = 16;

/// `SOCK_TYPE_MASK`: the rest of the type argument is close-on-exec and the like.
const TYPE: u64 = 0xf;
const STREAM: u64 = 1;
const DGRAM: u64 = 2;
const SEQPACKET: u64 = 5;

/// What `socket` takes as "the usual one for this type".
const USUAL: u64 = 0;
const ICMP: u64 = 1;
const TCP: u64 = 6;
const UDP: u64 = 17;
const ICMPV6: u64 = 58;

/// Where Landlock's port rules are what holds.
const BY_PORT: When = When::Inet(&[InetSockets::TcpAndUdpPorts, InetSockets::TcpPorts]);

/// Where something else than the filter keeps unix sockets of the host away.
const BY_KERNEL: When = When::Unix(&[UnixSockets::Open, UnixSockets::Passed]);

/// All rules about sockets.
pub(super) static RULES: &[Rule] = &[
    Rule {
        calls: &[Syscall::Socket],
        decision: Decision::Look(&FAMILY),
        when: When::Always,
    },
    Rule {
        calls: &[Syscall::Socketpair],
        decision: Decision::Look(&PAIR_FAMILY),
        when: When::Always,
    },
    Rule {
        calls: &[Syscall::Setsockopt],
        decision: Decision::Look(&OPTION_LEVEL),
        when: When::Always,
    },
    Rule {
        calls: &[Syscall::Connect],
        decision: Decision::End(
            Verdict::Ask,
            "the address lies in memory; the supervisor decides on a copy and connects by it",
        ),
        when: When::Unix(&[UnixSockets::Brokered, UnixSockets::Passed]),
    },
    Rule {
        calls: &[Syscall::Listen],
        decision: refuse(
            Errno::Eacces,
            "a socket that was never bound gets a port of the host by listening",
        ),
        when: When::Listening(Listening::Refused),
    },
    Rule {
        calls: &[Syscall::Sendto, Syscall::Sendmmsg],
        decision: Decision::Look(&SEND_FLAGS_FOURTH),
        when: BY_PORT,
    },
    Rule {
        calls: &[Syscall::Sendmsg],
        decision: Decision::Look(&SEND_FLAGS_THIRD),
        when: BY_PORT,
    },
];

static FAMILY: Look = Look {
    argument: Argument::First,
    cases: &[
        Case {
            name: "AF_UNIX",
            then: Decision::Look(&UNIX_TYPE),
            values: &[AF_UNIX],
            when: BY_KERNEL,
        },
        Case {
            name: "AF_UNIX",
            then: Decision::Look(&BROKERED_TYPE),
            values: &[AF_UNIX],
            when: When::Unix(&[UnixSockets::Brokered]),
        },
        Case {
            name: "AF_UNIX",
            then: refuse(
                Errno::Eacces,
                "nothing here can keep it from the host's sockets; connected pairs work",
            ),
            values: &[AF_UNIX],
            when: When::Unix(&[UnixSockets::Refused]),
        },
        Case {
            name: "AF_INET, AF_INET6",
            then: Decision::Look(&INET_TYPE),
            values: &[AF_INET, AF_INET6],
            when: When::Inet(&[
                InetSockets::Open,
                InetSockets::TcpAndUdpPorts,
                InetSockets::TcpPorts,
            ]),
        },
        Case {
            name: "AF_INET, AF_INET6",
            then: refuse(
                Errno::Eacces,
                "the policy gives no network, and no namespace holds it",
            ),
            values: &[AF_INET, AF_INET6],
            when: When::Inet(&[InetSockets::Refused]),
        },
        Case {
            name: "AF_NETLINK",
            then: Decision::Look(&NETLINK_PROTOCOL),
            values: &[AF_NETLINK],
            when: When::RouteQueries(RouteQueries::Allowed),
        },
    ],
    mask: INT,
    otherwise: refuse(
        Errno::Eafnosupport,
        "a family that no build or test needs: some of them are not bound to any namespace, most \
         of them are seldom tested kernel code",
    ),
    what: "family",
};

static UNIX_TYPE: Look = Look {
    argument: Argument::Second,
    cases: &[case(
        "SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET",
        &[STREAM, DGRAM, SEQPACKET],
        allow("sockets among the session's own processes, and those of the host that were granted"),
    )],
    mask: TYPE,
    otherwise: refuse(Errno::Eperm, "not a type of unix socket in use"),
    what: "type",
};

static BROKERED_TYPE: Look = Look {
    argument: Argument::Second,
    cases: &[case(
        "SOCK_STREAM, SOCK_SEQPACKET",
        &[STREAM, SEQPACKET],
        allow("goes nowhere without `connect`, which the supervisor makes"),
    )],
    mask: TYPE,
    otherwise: refuse(
        Errno::Eacces,
        "a datagram socket can be pointed at any socket of the host with each message",
    ),
    what: "type",
};

static INET_TYPE: Look = Look {
    argument: Argument::Second,
    cases: &[
        Case {
            name: "SOCK_STREAM",
            then: Decision::Look(&STREAM_PROTOCOL),
            values: &[STREAM],
            when: When::Always,
        },
        Case {
            name: "SOCK_DGRAM",
            then: Decision::Look(&DGRAM_PROTOCOL),
            values: &[DGRAM],
            when: When::Inet(&[InetSockets::Open, InetSockets::TcpAndUdpPorts]),
        },
        Case {
            name: "SOCK_DGRAM",
            then: refuse(
                Errno::Eacces,
                "datagrams are held by no port rule of this kernel",
            ),
            values: &[DGRAM],
            when: When::Inet(&[InetSockets::TcpPorts]),
        },
    ],
    mask: TYPE,
    otherwise: refuse(
        Errno::Eperm,
        "raw and packet sockets forge traffic, other types are seldom tested kernel code",
    ),
    what: "type",
};

static STREAM_PROTOCOL: Look = Look {
    argument: Argument::Third,
    cases: &[case(
        "TCP",
        &[USUAL, TCP],
        allow("held by the network namespace or by port rules, or the policy gives all of it"),
    )],
    mask: INT,
    otherwise: refuse(
        Errno::Eprotonosupport,
        "multipath TCP and its like reach the network past port rules; programs fall back to TCP",
    ),
    what: "protocol",
};

static DGRAM_PROTOCOL: Look = Look {
    argument: Argument::Third,
    cases: &[
        case(
            "UDP",
            &[USUAL, UDP],
            allow("held by the network namespace or by port rules, or the policy gives all of it"),
        ),
        Case {
            name: "ICMP, ICMPv6",
            then: allow("ping, as far as the network namespace goes"),
            values: &[ICMP, ICMPV6],
            when: When::Inet(&[InetSockets::Open]),
        },
    ],
    mask: INT,
    otherwise: refuse(
        Errno::Eprotonosupport,
        "a protocol past port rules, or one out of use",
    ),
    what: "protocol",
};

static NETLINK_PROTOCOL: Look = Look {
    argument: Argument::Third,
    cases: &[case(
        "NETLINK_ROUTE",
        &[0],
        allow("interfaces and routes; changing them needs a capability"),
    )],
    mask: INT,
    otherwise: refuse(
        Errno::Eprotonosupport,
        "audit, firewall, crypto, device events: the host's business",
    ),
    what: "protocol",
};

static PAIR_FAMILY: Look = Look {
    argument: Argument::First,
    cases: &[case("AF_UNIX", &[AF_UNIX], Decision::Look(&PAIR_TYPE))],
    mask: INT,
    otherwise: refuse(
        Errno::Eafnosupport,
        "only unix sockets come in pairs that are in use",
    ),
    what: "family",
};

static PAIR_TYPE: Look = Look {
    argument: Argument::Second,
    cases: &[
        case(
            "SOCK_STREAM, SOCK_SEQPACKET",
            &[STREAM, SEQPACKET],
            allow("connected to each other for life"),
        ),
        Case {
            name: "SOCK_DGRAM",
            then: allow("what keeps the host's sockets away keeps them away from pairs too"),
            values: &[DGRAM],
            when: BY_KERNEL,
        },
    ],
    mask: TYPE,
    otherwise: refuse(
        Errno::Eacces,
        "one end of a datagram pair can be pointed at any socket of the host",
    ),
    what: "type",
};

static OPTION_LEVEL: Look = Look {
    argument: Argument::Second,
    cases: &[
        case("SOL_SOCKET", &[1], Decision::Look(&SOCKET_OPTION)),
        case("SOL_TCP", &[TCP], Decision::Look(&TCP_OPTION)),
        case("SOL_UDP", &[UDP], Decision::Look(&UDP_OPTION)),
    ],
    mask: INT,
    otherwise: allow("ordinary options; the others need a capability"),
    what: "level",
};

static SOCKET_OPTION: Look = Look {
    argument: Argument::Third,
    cases: &[case(
        "SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF",
        &[26, 50, 51, 52],
        refuse(
            Errno::Eperm,
            "puts a program of the caller's into the kernel",
        ),
    )],
    mask: INT,
    otherwise: allow("ordinary options"),
    what: "option",
};

static TCP_OPTION: Look = Look {
    argument: Argument::Third,
    cases: &[case(
        "TCP_ULP",
        &[31],
        refuse(
            Errno::Enoprotoopt,
            "stacks kernel protocols on a connection, a way to write into read-only files in the \
             past; TLS libraries go on without it",
        ),
    )],
    mask: INT,
    otherwise: allow("ordinary options"),
    what: "option",
};

static UDP_OPTION: Look = Look {
    argument: Argument::Third,
    cases: &[case(
        "UDP_ENCAP",
        &[100],
        refuse(
            Errno::Enoprotoopt,
            "hands datagrams to the kernel's tunnel code",
        ),
    )],
    mask: INT,
    otherwise: allow("ordinary options"),
    what: "option",
};

/// `MSG_FASTOPEN`.
const FAST_OPEN: u64 = 0x2000_0000;

const SEND_CASES: &[Case] = &[case(
    "without MSG_FASTOPEN",
    &[0],
    allow("sends on a socket that a rule has judged"),
)];

const FAST_OPEN_REFUSED: Decision = refuse(
    Errno::Eopnotsupp,
    "connects while sending, which port rules do not see",
);

static SEND_FLAGS_THIRD: Look = Look {
    argument: Argument::Third,
    cases: SEND_CASES,
    mask: FAST_OPEN,
    otherwise: FAST_OPEN_REFUSED,
    what: "flags",
};

static SEND_FLAGS_FOURTH: Look = Look {
    argument: Argument::Fourth,
    cases: SEND_CASES,
    mask: FAST_OPEN,
    otherwise: FAST_OPEN_REFUSED,
    what: "flags",
};
