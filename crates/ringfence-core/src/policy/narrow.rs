//! A project's file may only narrow.
//!
//! The policy is built twice, without the project's file and with it, and what both allow is
//! what holds. So the promise does not depend on anybody knowing which key widens: whatever the
//! file says, it can take away and never add.

use serde::Serialize;

use super::{Limits, Passing, Policy};
use crate::origin::{Layer, Located, Origin};
use crate::settings::{Limit, Preset};

/// Something that the project's file tried to widen.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Ignored {
    /// What it asked for, in words.
    pub what: String,
    /// Where it asked.
    pub origin: Origin,
}

impl Policy {
    /// What both allow; `wide` is listed where it allowed more.
    pub(super) fn narrowed_by(self, wide: Self) -> Self {
        let ignored = ignored(&self, &wide);
        let (preset, notes) = if wide.preset.value == Preset::Track {
            (self.preset, self.notes)
        } else {
            (wide.preset, wide.notes)
        };
        let sockets = self.sockets.into_iter();
        let mut linkless = self.linkless;
        linkless.extend(wide.linkless);
        linkless.sort();
        linkless.dedup();
        Self {
            preset,
            files: self.files.meet(&wide.files).into(),
            aliases: self.aliases,
            network: self.network.meet(&wide.network),
            sockets: sockets
                .filter(|grant| wide.sockets.iter().any(|other| other.path == grant.path))
                .collect(),
            environment: self.environment.meet(&wide.environment),
            limits: self.limits.meet(&wide.limits),
            git: stricter(self.git, wide.git),
            linkless,
            on_gap: stricter(self.on_gap, wide.on_gap),
            tmp: stricter(self.tmp, wide.tmp),
            unsandboxed: stricter(self.unsandboxed, wide.unsandboxed),
            // The project's allowances were left out when they were read: what it adds restricts.
            shell_rules: wide.shell_rules,
            ignored,
            kind: self.kind,
            project: self.project,
            notes,
        }
    }

    /// The same for what a directory above the project says: the project's own settings still say what the
    /// policy is called, and which rules for shell commands there are.
    pub(super) fn narrowed_around(mut self, wide: Self) -> Self {
        let rules = std::mem::take(&mut self.shell_rules);
        let mut ignored = std::mem::take(&mut self.ignored);
        let (preset, notes) = (self.preset.clone(), self.notes.clone());
        let named = wide.preset.origin.layer() == Layer::Project;
        let mut policy = self.narrowed_by(wide);
        if !named {
            (policy.preset, policy.notes) = (preset, notes);
        }
        ignored.append(&mut policy.ignored);
        Self {
            shell_rules: rules,
            ignored,
            ..policy
        }
    }
}

/// Of two values, the one that allows less; their types order them strictest first.
fn stricter<T: Ord>(a: Located<T>, b: Located<T>) -> Located<T> {
    if b.value < a.value { b } else { a }
}

impl Limits {
    fn meet(&self, other: &Self) -> Self {
        let min = |a: &Located<Limit>, b: &Located<Limit>| {
            let chosen = if a.value.min(b.value) == a.value {
                a
            } else {
                b
            };
            chosen.clone()
        };
        Self {
            wall: min(&self.wall, &other.wall),
            cpu: min(&self.cpu, &other.cpu),
            processes: min(&self.processes, &other.processes),
            memory: min(&self.memory, &other.memory),
            files: min(&self.files, &other.files),
            file_size: min(&self.file_size, &other.file_size),
            tmp_size: min(&self.tmp_size, &other.tmp_size),
        }
    }

    fn each(&self) -> [(&'static str, &Located<Limit>); 7] {
        [
            ("wall", &self.wall),
            ("cpu", &self.cpu),
            ("processes", &self.processes),
            ("memory", &self.memory),
            ("files", &self.files),
            ("file_size", &self.file_size),
            ("tmp_size", &self.tmp_size),
        ]
    }
}

/// What `wide` allows beyond `narrow`, as far as the project's file says so itself.
fn ignored(narrow: &Policy, wide: &Policy) -> Vec<Ignored> {
    let mut out: Vec<Ignored> = Vec::new();
    let mut list = |origin: &Origin, what: String| {
        if origin.layer() == Layer::Project {
            let origin = origin.clone();
            out.push(Ignored { what, origin });
        }
    };
    if wide.preset.value != narrow.preset.value {
        list(
            &wide.preset.origin,
            format!("what preset {} adds", wide.preset.value),
        );
    }
    for rule in wide.files.rules() {
        if rule.access > narrow.files.access(&rule.path).access {
            list(&rule.origin, format!("{} {}", rule.access, rule.path));
        }
    }
    if wide.network.mode() > narrow.network.mode() {
        let mode = &wide.network.mode;
        list(&mode.origin, format!("network mode {}", mode.value));
    }
    for host in wide.network.hosts() {
        let narrow_hosts = narrow.network.hosts().iter();
        let covered = narrow.network.mode() == crate::settings::NetworkMode::All
            || narrow_hosts
                .clone()
                .any(|known| known.value.covers(&host.value));
        if !covered {
            list(&host.origin, format!("host {}", host.value));
        }
    }
    for (ports, known, what) in [
        (
            wide.network.loopback_in(),
            narrow.network.loopback_in(),
            "loopback_in",
        ),
        (
            wide.network.loopback_out(),
            narrow.network.loopback_out(),
            "loopback_out",
        ),
    ] {
        for port in ports {
            if !known.iter().any(|known| known.value == port.value) {
                list(&port.origin, format!("{what} port {}", port.value));
            }
        }
    }
    for grant in &wide.sockets {
        if !narrow.sockets.iter().any(|known| known.path == grant.path) {
            list(&grant.origin, format!("unix socket {}", grant.path));
        }
    }
    if let (Passing::Listed(wide), Passing::Listed(narrow)) =
        (wide.environment.passing(), narrow.environment.passing())
    {
        for pattern in wide {
            let covered = narrow
                .iter()
                .any(|known| known.value.meet(&pattern.value).as_ref() == Some(&pattern.value));
            if !covered {
                list(&pattern.origin, format!("variable {}", pattern.value));
            }
        }
    }
    for (name, value) in wide.environment.set() {
        if narrow.environment.set().get(name) != Some(value) {
            let name = crate::text::printable(name);
            list(&value.origin, format!("a value for variable {name}"));
        }
    }
    for ((name, wide), (_, narrow)) in wide.limits.each().into_iter().zip(narrow.limits.each()) {
        if wide.value.min(narrow.value) != wide.value {
            list(&wide.origin, format!("limit {name} {}", wide.value));
        }
    }
    if wide.git.value > narrow.git.value {
        list(&wide.git.origin, format!("git level {}", wide.git.value));
    }
    if wide.on_gap.value > narrow.on_gap.value {
        list(&wide.on_gap.origin, format!("on_gap {}", wide.on_gap.value));
    }
    if wide.tmp.value > narrow.tmp.value {
        list(&wide.tmp.origin, format!("tmp {}", wide.tmp.value));
    }
    if wide.unsandboxed.value > narrow.unsandboxed.value {
        list(&wide.unsandboxed.origin, "allow_unsandboxed".to_owned());
    }
    out
}
