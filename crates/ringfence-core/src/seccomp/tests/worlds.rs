//! Specs and calls to test with.

use super::super::decision::{Call, Decision, Look};
use super::super::spec::{
    Arch, Creating, FilterSpec, GroupSignals, HostProcesses, InetSockets, Listening, RouteQueries,
    SetIdBits, SystemIpc, Tracing, UnixSockets,
};
use super::super::table::Syscall;
use super::super::{Program, compile, rules};

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
    // What is said of signals and of priorities meets in no rule: three pairs show all of both.
    vary(&mut specs, |spec| {
        [
            (GroupSignals::Allowed, HostProcesses::Hidden),
            (GroupSignals::Refused, HostProcesses::Hidden),
            (GroupSignals::Refused, HostProcesses::InSight),
        ]
        .map(|(group_signals, host_processes)| FilterSpec {
            group_signals,
            host_processes,
            ..spec
        })
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
        [
            UnixSockets::Brokered,
            UnixSockets::Open,
            UnixSockets::Passed,
            UnixSockets::Refused,
        ]
        .map(|unix| FilterSpec { unix, ..spec })
    });
    vary(&mut specs, |spec| {
        [Creating::Asked, Creating::Free].map(|creating| FilterSpec { creating, ..spec })
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
pub(super) fn named_specs(arch: Arch) -> [(&'static str, FilterSpec); 8] {
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
        (
            "brokered",
            FilterSpec {
                unix: UnixSockets::Brokered,
                ..namespaces
            },
        ),
        (
            "names",
            FilterSpec {
                creating: Creating::Asked,
                unix: UnixSockets::Brokered,
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
    looks(
        every_spec()
            .into_iter()
            .flat_map(rules::rules)
            .map(|rule| rule.decision),
    )
}

fn looks(decisions: impl Iterator<Item = Decision>) -> Vec<&'static Look> {
    let mut looks: Vec<&'static Look> = Vec::new();
    let mut waiting: Vec<Decision> = decisions.collect();
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
    values(&every_look())
}

/// The same for what one decision can come to.
pub(super) fn telling_values_for(decision: Decision) -> Vec<u64> {
    values(&looks(std::iter::once(decision)))
}

fn values(looks: &[&Look]) -> Vec<u64> {
    let mut values = vec![0, 1, u64::MAX, 1 << 31, 1 << 32, 1 << 63];
    for look in looks {
        values.push(look.mask);
        values.push(!look.mask);
        values.push(look.mask & look.mask.wrapping_neg());
        values.extend(look.cases.iter().flat_map(|case| case.values));
    }
    let near: Vec<u64> = values
        .iter()
        .flat_map(|value| [value ^ 1, value.saturating_add(1)])
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

/// A spec and its program, built once.
pub(super) struct Filter {
    pub(super) spec: FilterSpec,
    pub(super) program: Program,
}

impl Filter {
    pub(super) fn new(spec: FilterSpec) -> Self {
        Self {
            spec,
            program: compile(spec),
        }
    }

    /// What the program says to a native call, by its short name.
    pub(super) fn says(&self, name: &str, args: &[u64]) -> &'static str {
        let call = Syscall::named(name).unwrap();
        let number = u32::from(call.number(self.spec.arch).unwrap());
        let mut six = [0; 6];
        six[..args.len()].copy_from_slice(args);
        self.program
            .run(&native(self.spec, number, six))
            .verdict
            .name()
    }
}

/// Every filter there is.
pub(super) fn every_filter() -> Vec<Filter> {
    every_spec().into_iter().map(Filter::new).collect()
}

/// A native call.
pub(super) fn native(spec: FilterSpec, number: u32, args: [u64; 6]) -> Call {
    Call {
        arch: spec.arch.token(),
        args,
        number,
    }
}
