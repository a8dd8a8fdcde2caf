//! What every gate has, wherever its sockets are: who may be reached through it, and the variables by
//! which programs find it.

use std::ffi::CString;
use std::time::Duration;

use ringfence_core::plan::{Act, Hosts, Plan};
use ringfence_core::policy::Policy;
use ringfence_gate::dial::Dialer;
use ringfence_gate::serve::{Doors, Gate};
use ringfence_gate::upstream::Upstreams;
use ringfence_sys::signals::Mask;

use super::{Command, LaunchError};

/// How long somebody may think about a host before the answer is no.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);

fn refused(what: &str, source: std::io::Error) -> LaunchError {
    LaunchError::Prepare {
        what: what.to_owned(),
        source,
    }
}

/// The proxy of the network that the host is in.
pub(super) fn upstreams(command: &Command) -> Result<Upstreams, LaunchError> {
    Upstreams::from_environment(&command.environment).map_err(|error| LaunchError::Prepare {
        what: "use the proxy of this network".to_owned(),
        source: std::io::Error::other(error),
    })
}

/// Opens a gate whose threads no signal of the caller's ends up in.
pub(super) fn opened(doors: Doors, dialer: Dialer) -> Result<Gate, LaunchError> {
    let mask = Mask::block_all().map_err(|errno| refused("block signals", errno.into()))?;
    let gate = Gate::open(doors, dialer);
    let restored = mask.restore();
    restored.map_err(|errno| refused("restore signals", errno.into()))?;
    gate.map_err(|source| LaunchError::Prepare {
        what: "serve the network gate".to_owned(),
        source,
    })
}

/// How a plan's hosts are served.
pub(super) fn hosts(plan: &Plan) -> &Hosts {
    let gate = plan.acts().iter().find_map(|act| match act {
        Act::Gate(gate) => Some(&gate.hosts),
        _ => None,
    });
    gate.unwrap_or(&Hosts::None)
}

/// Hosts that no proxy is asked for: the session's own loopback.
const AROUND: &str = "localhost,127.0.0.1,::1";

/// Variables that name the proxy, for the programs that read them.
const NAMING: [&str; 12] = [
    "ALL_PROXY",
    "CARGO_HTTP_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "PIP_PROXY",
    "YARN_HTTPS_PROXY",
    "YARN_HTTP_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "npm_config_https_proxy",
    "npm_config_proxy",
];

/// Adds the variables that make programs use a proxy; what the policy sets itself stays.
pub(super) fn add_variables(environment: &mut Vec<CString>, policy: &Policy, proxy: &str) {
    for name in NAMING {
        add(environment, policy, name, proxy);
    }
    for name in ["NO_PROXY", "no_proxy", "npm_config_noproxy"] {
        add(environment, policy, name, AROUND);
    }
    add(environment, policy, "NODE_USE_ENV_PROXY", "1");
}

/// Sets one variable, unless the policy does.
pub(super) fn add(environment: &mut Vec<CString>, policy: &Policy, name: &str, value: &str) {
    let mut set = policy.environment().set().iter();
    if set.any(|(known, _)| known == name) {
        return;
    }
    let prefix = format!("{name}=");
    environment.retain(|known| !known.to_bytes().starts_with(prefix.as_bytes()));
    environment.extend(CString::new(prefix + value).ok());
}
