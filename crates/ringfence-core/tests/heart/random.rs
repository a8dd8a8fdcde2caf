//! Random settings over one small world, where paths often meet.

use std::sync::Arc;

use proptest::prelude::*;
use ringfence_core::origin::{Layer, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::Unsandboxed;
use ringfence_core::settings::{
    AbsoluteSettingPath, AllowUnsandboxed, ApplyTo, Bytes, Count, GitLevel, Keys, Kind, Limit,
    NetworkMode, OnGap, Preset, ProjectName, Seconds, SettingPath, Settings, SocketName, Tmp, Word,
};

use crate::world::{World, path as abs};

/// Paths that rules and questions are about; all of them are there in [`world`].
pub(crate) const PATHS: [&str; 26] = [
    "/",
    "/bin",
    "/data",
    "/data/d",
    "/dev",
    "/dev/dri",
    "/dev/dri/card0",
    "/dev/kvm",
    "/dev/shm",
    "/etc",
    "/home",
    "/home/main",
    "/home/other",
    "/home/u",
    "/home/u/.config",
    "/home/u/.ssh",
    "/home/u/p",
    "/home/u/p/.git/hooks",
    "/home/u/p/src",
    "/home/u/p/src/deep/er",
    "/proc",
    "/proc/cpuinfo",
    "/run/user/1000",
    "/tmp",
    "/tmp/a",
    "/tmp/a/b",
];

pub(crate) const HOSTS: [&str; 5] = ["a.test", "*.a.test", "b.a.test:22", "a.test:*", "192.0.2.1"];
pub(crate) const VARIABLES: [&str; 6] = ["PATH", "LC_*", "SECRET", "SSH_*", "SSH_AUTH_SOCK", "X"];
const NAMES: [&str; 4] = [".vscode", "src/deep", ".github/workflows", "new"];

pub(crate) fn world() -> impl Strategy<Value = World> {
    let project = prop_oneof![
        4 => Just("/home/u/p"), 1 => Just("/home/u"), 1 => Just("/tmp/a"), 1 => Just("/tmp"), 1 => Just("/"),
    ];
    project.prop_map(|project| {
        let mut world = World::linux().with_repositories();
        world.project = project;
        world
    })
}

pub(crate) fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Tool), Just(Kind::Terminal)]
}

fn word<W: Word + std::fmt::Debug>() -> impl Strategy<Value = W> {
    proptest::sample::select(W::WORDS.iter().map(|(_, value)| *value).collect::<Vec<_>>())
}

/// A path of the world, or something below one.
pub(crate) fn path() -> impl Strategy<Value = AbsPath> {
    let below = prop_oneof![
        3 => Just(""), 1 => Just("x"), 1 => Just(".git/config"), 1 => Just(".git/hooks/x"),
        1 => Just(".git/refs/heads"), 1 => Just("hooks/x"), 1 => Just(".vscode/x"), 1 => Just("null")
    ];
    (proptest::sample::select(&PATHS[..]), below).prop_map(|(path, below)| abs(path).below(below))
}

/// One thing that somebody writes.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    AllowedVariables(Vec<&'static str>),
    AllHosts(bool),
    ApplyTo(ApplyTo),
    Enabled(bool),
    Execute(&'static str),
    Git(GitLevel),
    Hide(&'static str),
    Host(&'static str),
    Hosts,
    Limit(u8, Limit),
    LoopbackIn(u16),
    LoopbackOut(u16),
    Mode(NetworkMode),
    Network(bool),
    OnGap(OnGap),
    Preset(Preset),
    ProtectAdd(&'static str),
    ProtectAllow(&'static str),
    Read(&'static str),
    Set(&'static str, bool),
    Show(&'static str),
    Socket,
    SystemPaths(u8, Vec<&'static str>),
    Tmp(Tmp),
    Unsandboxed(Unsandboxed),
    Variable(&'static str),
    Write(&'static str),
    WriteAll(bool),
    WritePath(&'static str),
}

fn edit() -> impl Strategy<Value = Edit> {
    use proptest::collection::vec;
    use proptest::sample::select;
    let path = || select(&PATHS[..]);
    let limit = prop_oneof![Just(Limit::Unlimited), (1..9u64).prop_map(Limit::At)];
    let files = prop_oneof![
        path().prop_map(Edit::Execute),
        path().prop_map(Edit::Hide),
        path().prop_map(Edit::Read),
        path().prop_map(Edit::Show),
        path().prop_map(Edit::Write),
        path().prop_map(Edit::WritePath),
        any::<bool>().prop_map(Edit::WriteAll),
        (0..3u8, vec(path(), 0..3))
            .prop_map(|(category, paths)| Edit::SystemPaths(category, paths)),
        select(&NAMES[..]).prop_map(Edit::ProtectAdd),
        select(&NAMES[..]).prop_map(Edit::ProtectAllow),
        word().prop_map(Edit::Git),
        word().prop_map(Edit::Tmp),
    ];
    let network = prop_oneof![
        select(&HOSTS[..]).prop_map(Edit::Host),
        Just(Edit::Hosts),
        word().prop_map(Edit::Mode),
        any::<bool>().prop_map(Edit::Network),
        any::<bool>().prop_map(Edit::AllHosts),
        (1..4u16).prop_map(Edit::LoopbackIn),
        (1..4u16).prop_map(Edit::LoopbackOut),
        Just(Edit::Socket),
    ];
    let rest = prop_oneof![
        word().prop_map(Edit::Preset),
        word().prop_map(Edit::ApplyTo),
        any::<bool>().prop_map(Edit::Enabled),
        word().prop_map(Edit::OnGap),
        prop_oneof![
            Just(Unsandboxed::Never),
            Just(Unsandboxed::Ask),
            Just(Unsandboxed::Allowed)
        ]
        .prop_map(Edit::Unsandboxed),
        select(&VARIABLES[..]).prop_map(Edit::Variable),
        vec(select(&VARIABLES[..]), 0..4).prop_map(Edit::AllowedVariables),
        (select(&VARIABLES[..]), any::<bool>()).prop_map(|(name, one)| Edit::Set(name, one)),
        (0..7u8, limit).prop_map(|(which, limit)| Edit::Limit(which, limit)),
    ];
    prop_oneof![3 => files, 1 => network, 1 => rest]
}

impl Edit {
    fn write(self, keys: &mut Keys, origin: Origin) {
        let sandbox = &mut keys.terminal.sandbox;
        let permissions = &mut keys.agent.sandbox_permissions;
        let path = |text: &str| SettingPath(text.into());
        match self {
            Self::AllowedVariables(names) => {
                let names = names.into_iter().map(|name| name.parse().unwrap());
                let located =
                    names.map(|name| ringfence_core::origin::Located::new(name, origin.clone()));
                sandbox
                    .allowed_env_vars
                    .set(located.collect(), origin.clone());
            }
            Self::AllHosts(yes) => permissions.allow_all_hosts.set(yes, origin),
            Self::ApplyTo(kinds) => sandbox.apply_to.set(kinds, origin),
            Self::Enabled(yes) => sandbox.enabled.set(yes, origin),
            Self::Execute(at) => sandbox.additional_executable_paths.push(path(at), origin),
            Self::Git(level) => keys.git.set(level, origin),
            Self::Hide(at) => keys.secrets.hide.push(path(at), origin),
            Self::Host(host) => keys.network.hosts.push(host.parse().unwrap(), origin),
            Self::Hosts => keys.network.hosts.set(Vec::new(), origin),
            Self::Limit(which, limit) => match which {
                0 => keys.limits.wall.set(Seconds(limit), origin),
                1 => keys.limits.cpu.set(Seconds(limit), origin),
                2 => keys.limits.processes.set(Count(limit), origin),
                3 => keys.limits.memory.set(Bytes(limit), origin),
                4 => keys.limits.files.set(Count(limit), origin),
                5 => keys.limits.file_size.set(Bytes(limit), origin),
                _ => keys.limits.tmp_size.set(Bytes(limit), origin),
            },
            Self::LoopbackIn(port) => keys.network.loopback_in.push(port, origin),
            Self::LoopbackOut(port) => keys.network.loopback_out.push(port, origin),
            Self::Mode(mode) => keys.network.mode.set(mode, origin),
            Self::Network(yes) => sandbox.allow_network.set(yes, origin),
            Self::OnGap(answer) => keys.on_gap.set(answer, origin),
            Self::Preset(preset) => keys.preset.set(preset, origin),
            Self::ProtectAdd(name) => keys.protect.add.push(ProjectName(name.into()), origin),
            Self::ProtectAllow(name) => keys.protect.allow.push(ProjectName(name.into()), origin),
            Self::Read(at) => sandbox.additional_read_only_paths.push(path(at), origin),
            Self::Set(name, one) => {
                let value = if one { "1" } else { "2" };
                let value = ringfence_core::origin::Located::new(value.to_owned(), origin.clone());
                let set = [(name.trim_end_matches('*').to_owned(), value)];
                keys.env.set.set(set.into(), origin);
            }
            Self::Show(at) => keys.secrets.show.push(path(at), origin),
            Self::Socket => keys
                .unix_sockets
                .push(SocketName::Known("ssh-agent"), origin),
            Self::SystemPaths(category, paths) => {
                let key = match category {
                    0 => &mut sandbox.system_paths.executable,
                    1 => &mut sandbox.system_paths.read_only,
                    _ => &mut sandbox.system_paths.read_write,
                };
                key.set(Vec::new(), origin.clone());
                for at in paths {
                    key.push(path(at), origin.clone());
                }
            }
            Self::Tmp(tmp) => keys.tmp.set(tmp, origin),
            Self::Unsandboxed(answer) => {
                permissions
                    .allow_unsandboxed
                    .set(AllowUnsandboxed(answer), origin);
            }
            Self::Variable(name) => keys.env.allow.push(name.parse().unwrap(), origin),
            Self::Write(at) => sandbox.additional_read_write_paths.push(path(at), origin),
            Self::WriteAll(yes) => permissions.allow_fs_write_all.set(yes, origin),
            Self::WritePath(at) => {
                permissions
                    .write_paths
                    .push(AbsoluteSettingPath(at.into()), origin);
            }
        }
    }
}

/// Keys of one layer.
pub(crate) fn keys(layer: Layer) -> impl Strategy<Value = Keys> {
    let origin = move |line: usize| {
        if layer == Layer::Flag {
            return Origin::Flag { name: "--flag" };
        }
        Origin::File {
            layer,
            path: Arc::from(std::path::Path::new("/settings.json")),
            line: u32::try_from(line).unwrap(),
            column: 1,
        }
    };
    proptest::collection::vec(edit(), 0..5).prop_map(move |edits| {
        let mut keys = Keys::default();
        for (line, edit) in edits.into_iter().enumerate() {
            edit.write(&mut keys, origin(line + 1));
        }
        keys
    })
}

/// Settings of all layers.
pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    let layers = (keys(Layer::User), keys(Layer::Project), keys(Layer::Flag));
    layers.prop_map(|(user, project, flag)| {
        Settings::new()
            .with(Layer::User, user)
            .with(Layer::Project, project)
            .with(Layer::Flag, flag)
    })
}
