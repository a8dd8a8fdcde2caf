//! What a gate has to serve, where the network namespace is empty but for it.

use std::fmt;

use serde::Serialize;

use super::facts::{Arch, Feature, HostFacts};
use super::{Act, Draft, Engine, HOSTS, PORT};
use crate::policy::Policy;
use crate::settings::NetworkMode;

/// The ways out of a session's own network, and the ways in.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct GatePlan {
    /// The hosts.
    pub hosts: Hosts,
    /// Ports of servers inside that the host may reach.
    pub loopback_in: Vec<u16>,
    /// Ports on the host's loopback that the command may reach.
    pub loopback_out: Vec<u16>,
}

/// How hosts are reached.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "served")]
pub enum Hosts {
    /// None is.
    None,
    /// By proxy, and by programs that know no proxy, too.
    Directly {
        /// How many patterns there are.
        patterns: usize,
    },
    /// By proxy alone.
    ProxyOnly {
        /// How many patterns there are.
        patterns: usize,
        /// Why programs that know no proxy reach nothing.
        why: String,
    },
}

/// Plans a gate, if the policy needs one, or names what cannot be had without one.
pub(super) fn plan(policy: &Policy, facts: &HostFacts, engine: Engine, draft: &mut Draft) {
    let network = policy.network();
    let ports = || network.loopback_in().iter().chain(network.loopback_out());
    let hosts = network.mode() == NetworkMode::Hosts;
    // Who shares the host's network has its ports already.
    if network.mode() == NetworkMode::All || (!hosts && ports().next().is_none()) {
        return;
    }
    if matches!(engine, Engine::Bwrap | Engine::Namespaces) {
        let value = |ports: &[crate::origin::Located<u16>]| {
            let mut ports: Vec<u16> = ports.iter().map(|port| port.value).collect();
            ports.sort_unstable();
            ports.dedup();
            ports
        };
        draft.acts.push(Act::Gate(GatePlan {
            hosts: if hosts {
                served(network.hosts().len(), facts)
            } else {
                Hosts::None
            },
            loopback_in: value(network.loopback_in()),
            loopback_out: value(network.loopback_out()),
        }));
        return;
    }
    let fix = "use the `namespaces` engine, which needs user namespaces";
    if hosts && !network.hosts().is_empty() {
        draft.gap_of(
            network.mode_origin().clone(),
            HOSTS,
            "without a network of the session's own no single host can be let through, so nothing could be reached",
            fix,
        );
    }
    for port in ports() {
        draft.gap_of(
            port.origin.clone(),
            format!("{PORT} {}", port.value),
            "without a network of the session's own no single port can be let through",
            fix,
        );
    }
}

/// Connections of programs that know no proxy are seen by the filter, and by nobody else.
fn served(patterns: usize, facts: &HostFacts) -> Hosts {
    match (&facts.seccomp, &facts.seccomp_listener, facts.arch) {
        (Feature::Works, Feature::Works, Arch::Aarch64 | Arch::X86_64) => {
            Hosts::Directly { patterns }
        }
        (Feature::Missing { why, .. }, _, _) | (_, Feature::Missing { why, .. }, _) => {
            let why = why.clone();
            Hosts::ProxyOnly { patterns, why }
        }
        (Feature::Works, Feature::Works, Arch::Other) => Hosts::ProxyOnly {
            patterns,
            why: "ringfence does not know the system calls of this processor".to_owned(),
        },
    }
}

impl fmt::Display for GatePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("open a gate")?;
        let patterns = |f: &mut fmt::Formatter<'_>, count: usize| match count {
            0 => f.write_str(" to no host"),
            1 => f.write_str(" to the hosts of one pattern"),
            count => write!(f, " to the hosts of {count} patterns"),
        };
        match &self.hosts {
            Hosts::None => {}
            Hosts::Directly { patterns: count } => patterns(f, *count)?,
            Hosts::ProxyOnly {
                patterns: count,
                why,
            } => {
                patterns(f, *count)?;
                write!(f, ", for programs that use a proxy only ({why})")?;
            }
        }
        for port in &self.loopback_out {
            write!(f, ", to port {port} of the host")?;
        }
        for port in &self.loopback_in {
            write!(f, ", from the host to port {port}")?;
        }
        Ok(())
    }
}
