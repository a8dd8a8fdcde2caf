//! Flags become the strongest layer of settings.
//!
//! A flag is one key of a settings file, written on the command line. Relative paths are relative
//! to the current directory. Nothing is expanded, since the shell has done that, but for `~/`: of
//! `--hide=~/x` most shells leave it as it is, and nobody means a directory of that name. `~me/x` is refused
//! where it is read.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use ringfence::place::Surroundings;
use ringfence_core::origin::{Located, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{Engine, Plan};
use ringfence_core::policy::Complaint;
use ringfence_core::settings::{
    Bytes, Count, Keys, Limit, Limits, NetworkMode, ProjectName, Seconds, SettingPath, SocketName,
    Unit,
};
use ringfence_core::text::printable_path;

use crate::args::{EngineFlags, EnvironmentFlags, FileFlags, LimitFlags, NetworkFlags, PlaceFlags};

/// `NAME=VALUE` of `--set-env`.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    name: String,
    value: String,
}

impl FromStr for Variable {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text
            .split_once('=')
            .ok_or("write a name, `=` and a value")?;
        if name.is_empty() {
            return Err("the name is empty");
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// `NAME=VALUE` of `--limit`.
#[derive(Clone, Debug)]
pub(crate) struct LimitFlag {
    bound: Bound,
    limit: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    Wall,
    Cpu,
    Processes,
    Memory,
    Files,
    FileSize,
    TmpSize,
}

/// As they are typed.
const BOUNDS: [(&str, Bound, Unit); 7] = [
    ("wall=", Bound::Wall, Unit::Seconds),
    ("cpu=", Bound::Cpu, Unit::Seconds),
    ("processes=", Bound::Processes, Unit::Count),
    ("memory=", Bound::Memory, Unit::Bytes),
    ("files=", Bound::Files, Unit::Count),
    ("file-size=", Bound::FileSize, Unit::Bytes),
    ("tmp-size=", Bound::TmpSize, Unit::Bytes),
];

impl LimitFlag {
    /// What each begins with.
    pub(crate) fn names() -> Vec<&'static str> {
        BOUNDS.iter().map(|(name, _, _)| *name).collect()
    }
}

impl FromStr for LimitFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text
            .split_once('=')
            .ok_or("write a name, `=` and a bound, such as `wall=10m`")?;
        let name = name.replace('_', "-") + "=";
        let known = BOUNDS.iter().find(|(known, _, _)| *known == name);
        let Some((_, bound, unit)) = known else {
            let names = Self::names().into_iter();
            let names: Vec<&str> = names.map(|name| name.trim_end_matches('=')).collect();
            return Err(format!("the limits are: {}", names.join(", ")));
        };
        let limit = unit.parse(value)?;
        Ok(Self {
            bound: *bound,
            limit,
        })
    }
}

/// All flags that say something about a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags<'a> {
    pub(crate) place: &'a PlaceFlags,
    pub(crate) files: Option<&'a FileFlags>,
    pub(crate) network: Option<&'a NetworkFlags>,
    pub(crate) environment: Option<&'a EnvironmentFlags>,
    pub(crate) limits: Option<&'a LimitFlags>,
    pub(crate) engine: Option<&'a EngineFlags>,
}

impl Flags<'_> {
    /// The layer they make, and what cannot be a part of it.
    pub(crate) fn keys(&self, surroundings: &Surroundings) -> (Keys, Vec<Complaint>) {
        let mut layer = LayerOfFlags {
            keys: Keys::default(),
            complaints: Vec::new(),
            surroundings,
        };
        if let Some(preset) = self.place.preset {
            layer.keys.preset.set(preset, flag("--preset"));
        }
        if let Some(files) = self.files {
            layer.files(files);
        }
        if let Some(network) = self.network {
            layer.network(network);
        }
        if let Some(environment) = self.environment {
            layer.environment(environment);
        }
        if let Some(limits) = self.limits {
            layer.limits(limits);
        }
        if let Some(on_gap) = self.engine.and_then(|engine| engine.on_gap) {
            layer.keys.on_gap.set(on_gap, flag("--on-gap"));
        }
        (layer.keys, layer.complaints)
    }
}

fn flag(name: &'static str) -> Origin {
    Origin::Flag { name }
}

struct LayerOfFlags<'a> {
    keys: Keys,
    complaints: Vec<Complaint>,
    surroundings: &'a Surroundings,
}

/// A path as it was typed, from the root.
pub(crate) fn typed(path: &Path, surroundings: &Surroundings) -> PathBuf {
    let home = surroundings.home.as_ref().map(AbsPath::as_path);
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) if below.as_os_str().is_empty() => home.to_owned(),
        (Ok(below), Some(home)) => home.join(below),
        _ => surroundings.current.as_path().join(path),
    }
}

impl LayerOfFlags<'_> {
    /// A path of a flag. Where there is no home, nobody knows what `~` stands for.
    fn typed(&mut self, path: &Path, name: &'static str) -> PathBuf {
        if path.starts_with("~") && self.surroundings.home.is_none() {
            self.complaints.push(Complaint {
                origin: flag(name),
                message: format!("there is no home for `{}`", printable_path(path)),
                help: Some("set HOME, or write the whole path".to_owned()),
            });
        }
        typed(path, self.surroundings)
    }

    fn files(&mut self, flags: &FileFlags) {
        type List = fn(
            &mut Keys,
        ) -> &mut ringfence_core::settings::Key<
            ringfence_core::settings::List<SettingPath>,
        >;
        let lists: [(&'static str, &[PathBuf], List); 4] = [
            ("--read", &flags.read, |keys| {
                &mut keys.terminal.sandbox.additional_read_only_paths
            }),
            ("--exec", &flags.exec, |keys| {
                &mut keys.terminal.sandbox.additional_executable_paths
            }),
            ("--write", &flags.write, |keys| {
                &mut keys.terminal.sandbox.additional_read_write_paths
            }),
            ("--hide", &flags.hide, |keys| &mut keys.secrets.hide),
        ];
        for (name, paths, list) in lists {
            for path in paths {
                let path = SettingPath(self.typed(path, name));
                list(&mut self.keys).push(path, flag(name));
            }
        }
        for name in &flags.allow_protected {
            match ProjectName::parse(name) {
                Some(name) => self
                    .keys
                    .protect
                    .allow
                    .push(name, flag("--allow-protected")),
                None => self.complaints.push(Complaint {
                    origin: flag("--allow-protected"),
                    message: format!(
                        "`{}` is not a name inside the project",
                        printable_path(name)
                    ),
                    help: Some("write it relative to the project's root, without `..`".to_owned()),
                }),
            }
        }
        if let Some(level) = flags.git {
            self.keys.git.set(level, flag("--git"));
        }
        if let Some(tmp) = flags.tmp {
            self.keys.tmp.set(tmp, flag("--tmp"));
        }
    }

    fn network(&mut self, flags: &NetworkFlags) {
        let network = &mut self.keys.network;
        if let Some(mode) = flags.net {
            network.mode.set(mode, flag("--net"));
        }
        if !flags.allow_host.is_empty() {
            // A file may say `none` or `all`; whoever names a host here means that host.
            network.mode.set(NetworkMode::Hosts, flag("--allow-host"));
        }
        for host in &flags.allow_host {
            network.hosts.push(host.clone(), flag("--allow-host"));
        }
        for port in &flags.loopback_in {
            network.loopback_in.push(*port, flag("--loopback-in"));
        }
        for port in &flags.loopback_out {
            network.loopback_out.push(*port, flag("--loopback-out"));
        }
        for socket in &flags.unix_socket {
            let socket = match socket {
                SocketName::Path(path) => SocketName::Path(self.typed(path, "--unix-socket")),
                known @ SocketName::Known(_) => known.clone(),
            };
            self.keys.unix_sockets.push(socket, flag("--unix-socket"));
        }
    }

    fn environment(&mut self, flags: &EnvironmentFlags) {
        for pattern in &flags.env {
            self.keys.env.allow.push(pattern.clone(), flag("--env"));
        }
        let set = flags.set_env.iter().map(|variable| {
            let value = Located::new(variable.value.clone(), flag("--set-env"));
            (variable.name.clone(), value)
        });
        let set: std::collections::BTreeMap<_, _> = set.collect();
        if !set.is_empty() {
            self.keys.env.set.set(set, flag("--set-env"));
        }
    }

    fn limits(&mut self, flags: &LimitFlags) {
        let limits: &mut Limits = &mut self.keys.limits;
        let origin = || flag("--limit");
        for LimitFlag { bound, limit } in &flags.limit {
            match bound {
                Bound::Wall => limits.wall.set(Seconds(*limit), origin()),
                Bound::Cpu => limits.cpu.set(Seconds(*limit), origin()),
                Bound::Processes => limits.processes.set(Count(*limit), origin()),
                Bound::Memory => limits.memory.set(Bytes(*limit), origin()),
                Bound::Files => limits.files.set(Count(*limit), origin()),
                Bound::FileSize => limits.file_size.set(Bytes(*limit), origin()),
                Bound::TmpSize => limits.tmp_size.set(Bytes(*limit), origin()),
            }
        }
    }
}

/// The weakest enforcement that `--require` puts up with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Level {
    /// Any engine that restricts.
    Landlock,
    /// An engine with namespaces, by itself or through bubblewrap.
    Namespaces,
}

impl EngineFlags {
    /// Why a plan is weaker than `--require` asks, if it is.
    pub(crate) fn weaker_than_required(&self, plan: &Plan) -> Option<String> {
        let required = self.require?;
        let engine = plan.engine();
        let enough = matches!(engine, Engine::Bwrap | Engine::Namespaces)
            || (engine == Engine::Landlock && required == Level::Landlock);
        let name = match required {
            Level::Landlock => "landlock",
            Level::Namespaces => "namespaces",
        };
        (!enough).then(|| format!("`--require {name}`, and the engine here would be {engine}"))
    }
}
