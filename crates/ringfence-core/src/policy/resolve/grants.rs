//! What grants add.
//!
//! A grant only ever adds: it raises what a weaker layer says, and gives way to a stronger one. So
//! a thread in which reading git metadata was granted never loses the writing that settings allow.

use std::path::Path;

use super::reach::network;
use super::{Builder, OnAbsent, Seen};
use crate::host::HostPattern;
use crate::origin::{BuiltIn, Layer, Located, Origin};
use crate::path::AbsPath;
use crate::permission::Permission;
use crate::policy::{Access, Network};
use crate::settings::{GitLevel, Kind, NetworkMode, Preset, Settings};

/// A git level with what was granted. Whoever looks for repositories must know it too, since a
/// higher level needs to see more of them.
pub(super) fn granted_git(settings: &Settings, standing: Located<GitLevel>) -> Located<GitLevel> {
    if standing.origin.layer() > Layer::Grant {
        return standing;
    }
    let mut level = standing;
    for grant in settings.grants() {
        if let Permission::Git(granted) = grant.value
            && granted > level.value
        {
            level = Located::new(granted, grant.origin.clone());
        }
    }
    level
}

impl Builder<'_> {
    /// The network that stands, with what was granted.
    pub(super) fn granted_network(&self, preset: &Located<Preset>) -> Network {
        let mut network = network(self.settings, self.place.kind, preset);
        if network.mode.origin.layer() > Layer::Grant || network.mode.value == NetworkMode::All {
            return network;
        }
        let mut hosts: Vec<Located<HostPattern>> = Vec::new();
        for grant in self.settings.grants() {
            match &grant.value {
                Permission::AnyHost => {
                    network.mode = Located::new(NetworkMode::All, grant.origin.clone());
                    return network;
                }
                Permission::Host(pattern) => {
                    hosts.push(Located::new(pattern.clone(), grant.origin.clone()));
                }
                _ => {}
            }
        }
        if let Some(first) = hosts.first() {
            if network.mode.value == NetworkMode::None {
                // Hosts that are listed and switched off stay so.
                network.mode = Located::new(NetworkMode::Hosts, first.origin.clone());
                network.hosts = hosts;
            } else {
                network.hosts.extend(hosts);
            }
        }
        network
    }

    /// A path that somebody granted: it holds for that very name, and never for where a link leads
    /// that was put there since.
    pub(super) fn granted_rule(&mut self, path: &Path, origin: Origin) {
        if let Seen::At(canonical, _) = (self.look)(path)
            && AbsPath::lexical(path).is_ok_and(|written| written != canonical)
        {
            let shown = crate::text::printable_path(path);
            let message =
                format!("the grant to write {shown} does not hold: a link leads to {canonical}");
            let help = format!("if that is what you mean, grant `{canonical}` itself");
            return self.complain(origin, message, Some(help));
        }
        self.rule(path, Access::Write, origin, OnAbsent::Complain);
    }

    /// Paths that were granted; returns who lets everything be written, if anybody does.
    pub(super) fn granted_paths(&mut self) -> Option<Origin> {
        let mut all: Option<Origin> = None;
        for grant in self.settings.grants().to_vec() {
            match grant.value {
                Permission::Write(path) => {
                    let path = path.as_path();
                    self.granted_rule(path, grant.origin);
                }
                Permission::WriteAll => {
                    let origin = grant.origin.clone();
                    self.rule(Path::new("/"), Access::Write, origin, OnAbsent::Complain);
                    all = Some(grant.origin);
                }
                _ => {}
            }
        }
        if self.place.kind == Kind::Tool {
            let written = self.word(|keys| &keys.agent.sandbox_permissions.allow_fs_write_all);
            let written = written.filter(|written| written.value);
            all = all.or_else(|| written.map(|written| written.origin));
        }
        all
    }

    /// Has whoever may write everything write what lists let others read: they are no reason not to. Lists
    /// of what is hidden or protected are.
    pub(super) fn raise_readable(&mut self, all: Option<Origin>) {
        let Some(origin) = all else { return };
        self.settled.raise(Access::Write, &origin, |rule| {
            let Origin::BuiltIn(list) = &rule.origin else {
                return false;
            };
            let readable = matches!(
                list,
                BuiltIn::Dotfiles | BuiltIn::Preset(_) | BuiltIn::SystemPaths | BuiltIn::Toolchains
            );
            readable && rule.access != Access::None
        });
    }
}
