//! Specs and calls to test with.

use super::super::decision::{Call, Decision, Look};
use super::super::rules;
use super::super::spec::{
    Arch, FilterSpec, InetSockets, Listening, RouteQueries, SetIdBits, SystemIpc, Tracing,
    UnixSockets,
};

/// `AUDIT_ARCH_I386`.
pub(super) const I386: u32 = 0x4000_0003;
/// `AUDIT_ARCH_ARM`.
pub(super) const ARM: u32 = 0x4000_0028;
/// `__X32_SYSCALL_BIT`.
pub(super) const X32_BIT: u32 = 0x4000_0000;

/// Every spec there is.
pub(super) fn every_spec() -> Vec<FilterSpec> {
    let mut specs = vec![
        FilterSpec::strictest(Arch::Aarch64),
        FilterSpec::strictest(Arch::X86_64),
    ];
    vary(&mut specs, |spec| {
        [
            InetSockets::Open,
            InetSockets::Refused,
            InetSockets::TcpAndUdpPorts,
            InetSockets::TcpPorts,
        ]
        .map(|inet| FilterSpec { inet, ..spec })
    });
    vary(&mut specs, |spec| {
        [SystemIpc::Own, SystemIpc::Shared].map(|ipc| FilterSpec { ipc, ..spec })
    });
    vary(&mut specs, |spec| {
        [Listening::Allowed, Listening::Refused].map(|listening| FilterSpec { listening, ..spec })
    });
    vary(&mut specs, |spec| {
        [RouteQueries::Allowed, RouteQueries::Refused].map(|route_queries| FilterSpec {
            route_queries,
            ..spec
        })
    });
    vary(&mut specs, |spec| {
        [SetIdBits::Allowed, SetIdBits::Refused].map(|set_id_bits| FilterSpec {
            set_id_bits,
            ..spec
        })
    });
    vary(&mut specs, |spec| {
        [Tracing::Inner, Tracing::Refused].map(|tracing| FilterSpec { tracing, ..spec })
    });
    vary(&mut specs, |spec| {
        [UnixSockets::Open, UnixSockets::Refused].map(|unix| FilterSpec { unix, ..spec })
    });
    specs
}

fn vary<const N: usize>(
    specs: &mut Vec<FilterSpec>,
    choices: impl Fn(FilterSpec) -> [FilterSpec; N],
) {
    *specs = specs.iter().flat_map(|spec| choices(*spec)).collect();
}

/// The specs whose verdicts are on record, by name.
pub(super) fn named_specs(arch: Arch) -> [(&'static str, FilterSpec); 6] {
    let namespaces = FilterSpec::namespaces(arch);
    let strictest = FilterSpec::strictest(arch);
    [
        ("namespaces", namespaces),
        (
            "debugger",
            FilterSpec {
                set_id_bits: SetIdBits::Allowed,
                tracing: Tracing::Inner,
                ..namespaces
            },
        ),
        ("strictest", strictest),
        (
            "tcp-ports",
            FilterSpec {
                inet: InetSockets::TcpPorts,
                ..strictest
            },
        ),
        (
            "all-ports",
            FilterSpec {
                inet: InetSockets::TcpAndUdpPorts,
                listening: Listening::Allowed,
                route_queries: RouteQueries::Allowed,
                unix: UnixSockets::Open,
                ..strictest
            },
        ),
        (
            "net-all",
            FilterSpec {
                inet: InetSockets::Open,
                listening: Listening::Allowed,
                route_queries: RouteQueries::Allowed,
                ..strictest
            },
        ),
    ]
}

/// Every look that any rule can come to, whatever the spec.
pub(super) fn every_look() -> Vec<&'static Look> {
    let mut looks: Vec<&'static Look> = Vec::new();
    let mut waiting: Vec<Decision> = every_spec()
        .into_iter()
        .flat_map(rules::rules)
        .map(|rule| rule.decision)
        .collect();
    while let Some(decision) = waiting.pop() {
        let Decision::Look(look) = decision else {
            continue;
        };
        if looks.iter().any(|known| std::ptr::eq(*known, look)) {
            continue;
        }
        looks.push(look);
        waiting.push(look.otherwise);
        waiting.extend(look.cases.iter().map(|case| case.then));
    }
    looks
}

/// Values that some rule cares about, and their neighbours, with and without an upper word.
pub(super) fn telling_values() -> Vec<u64> {
    let mut values = vec![0, 1, u64::MAX, 1 << 31, 1 << 32, 1 << 63];
    for look in every_look() {
        values.push(look.mask);
        values.push(!look.mask);
        values.push(look.mask & look.mask.wrapping_neg());
        values.extend(look.cases.iter().flat_map(|case| case.values));
    }
    let near: Vec<u64> = values
        .iter()
        .flat_map(|value| [value ^ 1, value + u64::from(*value < u64::MAX)])
        .collect();
    values.extend(near);
    let tall: Vec<u64> = values
        .iter()
        .map(|value| value ^ (0xdead_beef << 32))
        .collect();
    values.extend(tall);
    values.sort_unstable();
    values.dedup();
    values
}

/// A native call.
pub(super) fn native(spec: FilterSpec, number: u32, args: [u64; 6]) -> Call {
    Call {
        arch: spec.arch.token(),
        args,
        number,
    }
}
