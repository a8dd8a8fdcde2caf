//! What is reached besides files: hosts, sockets and variables; and the limits.

use super::{Builder, Seen, entries, lists, strongest};
use crate::origin::{BuiltIn, Located, Origin};
use crate::policy::{
    Access, EnvPattern, Environment, Found, Limits, Network, Passing, SOCKET_VARIABLES, SocketGrant,
};
use crate::settings::{Kind, Limit, List, NetworkMode, Preset, Settings, SocketName};

/// What may be reached by what was written, before anything is granted.
pub(super) fn network(settings: &Settings, kind: Kind, preset: &Located<Preset>) -> Network {
    let mut hosts = entries(settings, |keys| &keys.network.hosts);
    let mut all_hosts = None;
    if kind == Kind::Tool {
        hosts.extend(entries(settings, |keys| {
            &keys.agent.sandbox_permissions.network_hosts
        }));
        all_hosts = strongest(settings, |keys| {
            &keys.agent.sandbox_permissions.allow_all_hosts
        });
    }
    let listed = strongest(settings, |keys| &keys.network.hosts)
        .map(|list| list.origin)
        .or_else(|| hosts.first().map(|host| host.origin.clone()));
    let by_preset = match preset.value {
        Preset::Agent | Preset::Strict => NetworkMode::None,
        Preset::Terminal | Preset::Track => NetworkMode::All,
    };
    let allow = strongest(settings, |keys| &keys.terminal.sandbox.allow_network);
    let mode = if let Some(mode) = strongest(settings, |keys| &keys.network.mode) {
        mode
    } else if let Some(no) = allow.as_ref().filter(|allow| !allow.value) {
        Located::new(NetworkMode::None, no.origin.clone())
    } else if let Some(all) = all_hosts.filter(|all| all.value) {
        Located::new(NetworkMode::All, all.origin)
    } else if let Some(origin) = listed {
        // An empty list is a list: it names nothing, so nothing may be reached.
        Located::new(NetworkMode::Hosts, origin)
    } else if let Some(yes) = allow {
        Located::new(NetworkMode::All, yes.origin)
    } else {
        Located::new(by_preset, preset.origin.clone())
    };
    Network {
        mode,
        hosts,
        loopback_in: entries(settings, |keys| &keys.network.loopback_in),
        loopback_out: entries(settings, |keys| &keys.network.loopback_out),
    }
}

/// The variables by which programs find a socket that was granted by its name.
fn variables_to(grant: &SocketGrant) -> impl Iterator<Item = Located<EnvPattern>> {
    let (name, origin) = (grant.name, grant.origin.clone());
    let leads_there = move |(_, socket): &&(&str, &str)| name == Some(*socket);
    let found = SOCKET_VARIABLES.iter().chain(lists::RUNTIME_VARIABLE);
    found
        .filter(leads_there)
        .filter_map(|(variable, _)| variable.parse().ok())
        .map(move |pattern| Located::new(pattern, origin.clone()))
}

impl Builder<'_> {
    pub(super) fn sockets(&mut self) -> Vec<SocketGrant> {
        let mut grants = Vec::new();
        for entry in self.entries(|keys| &keys.unix_sockets) {
            let (name, path) = match entry.value {
                SocketName::Path(path) => (None, path),
                SocketName::Known(name) => {
                    let sockets = &self.place.sockets;
                    let known = sockets.iter().find(|(known, _)| *known == name);
                    let Some((_, path)) = known else {
                        let message = format!("there is no {name} socket here");
                        self.complain(entry.origin, message, None);
                        continue;
                    };
                    (Some(name), path.clone())
                }
            };
            match (self.look)(&path) {
                Seen::At(found, Found::Other) => {
                    if path != found.as_path() {
                        self.linked_sockets.push((path, found.clone()));
                    }
                    grants.push(SocketGrant {
                        name,
                        path: found,
                        origin: entry.origin,
                    });
                }
                seen => {
                    let what = match seen {
                        Seen::At(_, Found::Absent) | Seen::Absent => "does not exist",
                        Seen::At(..) => "is not a socket",
                        Seen::Unreadable(_) => "cannot be looked at",
                    };
                    let shown = crate::text::printable_path(&path);
                    self.complain(entry.origin, format!("{shown} {what}"), None);
                }
            }
        }
        grants
    }

    /// Shows the sockets that may be connected to where they are: nearly all lie in a directory that is hidden.
    /// That is no more than their names, since a socket cannot be opened.
    pub(super) fn seen_sockets(&mut self, sockets: &[SocketGrant]) {
        for (written, path) in self.linked_sockets.clone() {
            let socket = sockets.iter().find(|socket| socket.path == path);
            if let Some(socket) = socket {
                self.alias(&written, &path, Access::Read, &socket.origin);
            }
        }
        for socket in sockets {
            let rules = self.settled.covering(&socket.path);
            let is_shown = rules
                .last()
                .is_some_and(|rule| rule.path == socket.path && rule.access != Access::None);
            if !is_shown {
                let (path, origin) = (socket.path.clone(), socket.origin.clone());
                self.rule_for(path, Found::Other, Access::Read, origin);
            }
        }
    }

    pub(super) fn environment(
        &self,
        preset: &Located<Preset>,
        sockets: &[SocketGrant],
    ) -> Environment {
        let written = self.word(|keys| &keys.terminal.sandbox.allowed_env_vars);
        let (passing, origin) = match (preset.value, written) {
            (Preset::Track, _) => (Passing::Everything, preset.origin.clone()),
            (_, written) => {
                let (mut listed, origin) = match written {
                    Some(written) => (written.value, written.origin),
                    None => (
                        self.default_variables(),
                        Origin::BuiltIn(BuiltIn::Environment),
                    ),
                };
                listed.extend(self.entries(|keys| &keys.env.allow));
                listed.extend(sockets.iter().flat_map(variables_to));
                (Passing::Listed(listed), origin)
            }
        };
        let layers = self.settings.layers();
        let set = layers
            .filter_map(|keys| keys.env.set.written())
            .flat_map(|set| set.value.clone())
            .collect();
        Environment {
            passing,
            passing_origin: origin,
            set,
            sockets: sockets.iter().filter_map(|grant| grant.name).collect(),
        }
    }

    fn default_variables(&self) -> List<EnvPattern> {
        let for_tools = self.preset != Preset::Terminal;
        lists::TERMINAL_VARIABLES
            .iter()
            .filter(|name| !(for_tools && lists::NOT_FOR_TOOLS.contains(name)))
            .chain(lists::PLAIN_VARIABLES)
            .filter_map(|name| name.parse().ok())
            .map(|pattern| Located::built_in(pattern, BuiltIn::Environment))
            .collect()
    }

    pub(super) fn limits(&self) -> Limits {
        let tool = self.place.kind == Kind::Tool && self.preset != Preset::Track;
        let default = |bound: Option<u64>| {
            let bound = bound.filter(|_| tool);
            Located::built_in(bound.map_or(Limit::Unlimited, Limit::At), BuiltIn::Limits)
        };
        macro_rules! limit {
            ($key:ident, $default:expr) => {
                self.word(|keys| &keys.limits.$key)
                    .map(|written| Located::new(written.value.0, written.origin))
                    .unwrap_or_else(|| default($default))
            };
        }
        Limits {
            wall: limit!(wall, None),
            cpu: limit!(cpu, None),
            processes: limit!(processes, Some(lists::TOOL_PROCESSES)),
            memory: limit!(memory, None),
            files: limit!(files, None),
            file_size: limit!(file_size, None),
            tmp_size: limit!(tmp_size, Some(lists::TOOL_TMP)),
        }
    }
}
