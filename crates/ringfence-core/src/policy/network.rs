//! What may be reached.

use serde::Serialize;

use crate::host::{Host, HostPattern};
use crate::origin::{Located, Origin};
use crate::path::AbsPath;
use crate::settings::NetworkMode;

/// The network's part of a policy.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Network {
    pub(crate) mode: Located<NetworkMode>,
    pub(crate) hosts: Vec<Located<HostPattern>>,
    pub(crate) loopback_in: Vec<Located<u16>>,
    pub(crate) loopback_out: Vec<Located<u16>>,
}

/// Whether a host may be reached, and who says so.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HostVerdict<'a> {
    /// Yes or no.
    pub reach: Reachable,
    /// Who says so.
    pub origin: &'a Origin,
    /// The pattern that decided, if one did.
    pub pattern: Option<&'a HostPattern>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reachable {
    /// It is not even looked up.
    Refused,
    /// It may be connected to.
    Allowed,
}

impl Network {
    /// A network of which only these hosts may be reached.
    pub fn of_hosts(hosts: Vec<Located<HostPattern>>, origin: Origin) -> Self {
        Self {
            mode: Located::new(NetworkMode::Hosts, origin),
            hosts,
            loopback_in: Vec::new(),
            loopback_out: Vec::new(),
        }
    }

    /// How much of the network may be used.
    pub fn mode(&self) -> NetworkMode {
        self.mode.value
    }

    /// Who says so.
    pub fn mode_origin(&self) -> &Origin {
        &self.mode.origin
    }

    /// The listed hosts; only of meaning in mode `hosts`.
    pub fn hosts(&self) -> &[Located<HostPattern>] {
        &self.hosts
    }

    /// Ports of servers inside that the host may reach.
    pub fn loopback_in(&self) -> &[Located<u16>] {
        &self.loopback_in
    }

    /// Ports on the host's loopback that the command may reach.
    pub fn loopback_out(&self) -> &[Located<u16>] {
        &self.loopback_out
    }

    /// Whether a host may be reached on a port.
    pub fn verdict(&self, host: &Host, port: u16) -> HostVerdict<'_> {
        let plain = |reach| HostVerdict {
            reach,
            origin: &self.mode.origin,
            pattern: None,
        };
        match self.mode.value {
            NetworkMode::All => plain(Reachable::Allowed),
            NetworkMode::None => plain(Reachable::Refused),
            NetworkMode::Hosts => {
                let listed = self
                    .hosts
                    .iter()
                    .find(|pattern| pattern.value.matches(host, port));
                listed.map_or_else(
                    || plain(Reachable::Refused),
                    |pattern| HostVerdict {
                        reach: Reachable::Allowed,
                        origin: &pattern.origin,
                        pattern: Some(&pattern.value),
                    },
                )
            }
        }
    }

    /// A network that reaches what both reach.
    pub(crate) fn meet(&self, other: &Self) -> Self {
        let mode = if other.mode.value < self.mode.value {
            &other.mode
        } else {
            &self.mode
        };
        let hosts = match (self.mode.value, other.mode.value) {
            (NetworkMode::All, _) => other.hosts.clone(),
            (_, NetworkMode::All) => self.hosts.clone(),
            _ => {
                let mut both: Vec<Located<HostPattern>> = Vec::new();
                for a in &self.hosts {
                    for b in &other.hosts {
                        if let Some(value) = a.value.meet(&b.value)
                            && !both.iter().any(|known| known.value == value)
                        {
                            both.push(Located::new(value, a.origin.clone()));
                        }
                    }
                }
                both
            }
        };
        let ports = |mine: &[Located<u16>], theirs: &[Located<u16>]| {
            let mine = mine.iter();
            mine.filter(|port| theirs.iter().any(|other| other.value == port.value))
                .cloned()
                .collect()
        };
        Self {
            mode: mode.clone(),
            hosts,
            loopback_in: ports(&self.loopback_in, &other.loopback_in),
            loopback_out: ports(&self.loopback_out, &other.loopback_out),
        }
    }
}

/// A socket of the host that may be connected to.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct SocketGrant {
    /// The name that settings call it by, if it has one.
    pub name: Option<&'static str>,
    /// The socket itself.
    pub path: AbsPath,
    /// Who says so.
    pub origin: Origin,
}
