//! Every key a settings file can have.
//!
//! The `terminal` and `agent` sections have the shape that Zed's users know, so that theirs work
//! unchanged; the rest is ringfence's own. Each doc comment here is what an editor shows.

use jsonc_parser::ast::Value;
use schemars::JsonSchema;

use super::read::{
    AbsoluteSettingPath, Field, Key, List, Readable, Reader, Section, SettingPath, Variables,
    parse_object, read_word, section, span_of,
};
use super::shell::ShellRule;
use super::values::{ApplyTo, GitLevel, Limit, NetworkMode, OnGap, Os, Preset, Tmp, Unit};
use crate::host::HostPattern;
use crate::origin::Source;
use crate::policy::{EnvPattern, Unsandboxed};
use crate::problem::{Problem, Severity};
use crate::settings::read::Base;

section! {
    /// Settings of ringfence.
    Keys {
        /// The sandbox for terminals and tools.
        terminal: Terminal,
        /// What an agent's commands may do without asking.
        agent: Agent,
        /// Where the policy starts from. Default: `agent` for `run`, `terminal` for `shell`.
        preset: Key<Preset>,
        /// How much of the project's git metadata may be used. Default: what the preset says.
        git: Key<GitLevel>,
        /// Files in the project that run later, outside the sandbox, and so stay read-only.
        protect: Protect,
        /// What is hidden wherever it lies.
        secrets: Secrets,
        /// What may be reached.
        network: Network,
        /// Unix sockets of the host that may be connected to: absolute paths, or the names
        /// `ssh-agent`, `gpg-agent`, `docker`, `podman`, `x11`, `wayland`, `session-bus`.
        unix_sockets: Key<List<SocketName>>,
        /// What is said of shell commands before they run.
        shell: Shell,
        /// What the command finds in its environment.
        env: Env,
        /// Bounds on time, memory and numbers.
        limits: Limits,
        /// What to do when this host cannot enforce a rule. Default: `refuse`.
        on_gap: Key<OnGap>,
        /// Which temporary directories the command sees. Default: what the preset says.
        tmp: Key<Tmp>,
    }
}

section! {
    /// The `terminal` section.
    Terminal {
        /// The sandbox.
        sandbox: Sandbox,
    }
}

section! {
    /// The `terminal.sandbox` section.
    Sandbox {
        /// Whether anything is restricted. Default: true, since calling ringfence is the opt-in.
        enabled: Key<bool>,
        /// Which kinds the restrictions hold for. Default: `both`.
        apply_to: Key<ApplyTo>,
        /// The paths that programs need to run at all. `null` keeps the default of this operating
        /// system; an array replaces that category; `[]` denies it.
        system_paths: SystemPaths,
        /// Further directories that may be read and executed from.
        additional_executable_paths: Key<List<SettingPath>>,
        /// Further directories that may be read.
        additional_read_only_paths: Key<List<SettingPath>>,
        /// Further directories that may be read and written.
        additional_read_write_paths: Key<List<SettingPath>>,
        /// All of the network, or none of it. Default: what the preset says.
        allow_network: Key<bool>,
        /// The variables that pass; this list replaces the default one. `NAME` or `PREFIX_*`.
        allowed_env_vars: Key<List<EnvPattern>>,
    }
}

section! {
    /// The `terminal.sandbox.system_paths` section.
    SystemPaths {
        /// Read and execute: programs and shared libraries.
        executable: Key<List<SettingPath>>,
        /// Read only: configuration, data, certificates.
        read_only: Key<List<SettingPath>>,
        /// Read and write: devices, temporary directories.
        read_write: Key<List<SettingPath>>,
    }
}

section! {
    /// The `agent` section.
    Agent {
        /// What an agent's commands may do without asking.
        sandbox_permissions: SandboxPermissions,
    }
}

section! {
    /// The `agent.sandbox_permissions` section: grants that hold for tools.
    SandboxPermissions {
        /// Hosts that may be reached: exact, or with a leading `*.`.
        network_hosts: Key<List<HostPattern>>,
        /// Any host may be reached.
        allow_all_hosts: Key<bool>,
        /// Git metadata may be used: `git: write`.
        allow_git_access: Key<bool>,
        /// Directories that may be written. Paths are absolute.
        write_paths: Key<List<AbsoluteSettingPath>>,
        /// Every path that is not hidden or protected may be written.
        allow_fs_write_all: Key<bool>,
        /// A command that asks for it may run outside the sandbox. `"never"` forbids it, whoever
        /// is asked.
        allow_unsandboxed: Key<AllowUnsandboxed>,
    }
}

/// `true`, `false` or `"never"`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AllowUnsandboxed(pub Unsandboxed);

impl Readable for AllowUnsandboxed {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        match value {
            Value::BooleanLit(literal) if literal.value => Some(Self(Unsandboxed::Allowed)),
            Value::BooleanLit(_) => Some(Self(Unsandboxed::Ask)),
            Value::StringLit(literal) if literal.value == "never" => Some(Self(Unsandboxed::Never)),
            other => {
                reader.wrong_type(other, "`true`, `false` or `\"never\"`");
                None
            }
        }
    }
}

impl JsonSchema for AllowUnsandboxed {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AllowUnsandboxed".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": [true, false, "never"] })
    }
}

section! {
    /// The `protect` section.
    Protect {
        /// Further names in the project that stay read-only, relative to its root.
        add: Key<List<ProjectName>>,
        /// Names of the built-in list that may be written.
        allow: Key<List<ProjectName>>,
    }
}

section! {
    /// The `secrets` section.
    Secrets {
        /// Further paths that are hidden.
        hide: Key<List<SettingPath>>,
        /// Paths of the built-in list that may be read.
        show: Key<List<SettingPath>>,
    }
}

section! {
    /// The `network` section.
    Network {
        /// `none`, `hosts` or `all`. Default: what the preset says; `hosts` if hosts are listed.
        mode: Key<NetworkMode>,
        /// Hosts that may be reached: `example.org`, `*.example.org`, `example.org:8443`,
        /// `example.org:*`. Without a port: 80 and 443.
        hosts: Key<List<HostPattern>>,
        /// Ports of servers inside that the host may reach.
        loopback_in: Key<List<u16>>,
        /// Ports of services on the host's loopback that the command may reach.
        loopback_out: Key<List<u16>>,
    }
}

section! {
    /// The `shell` section.
    Shell {
        /// Rules by the beginning of a command line, for `check`, `hook` and `run --shell-policy`.
        /// Layers add up; a project's file may only ask and deny.
        rules: Key<List<ShellRule>>,
    }
}

section! {
    /// The `env` section.
    Env {
        /// Further variables that pass: `NAME` or `PREFIX_*`.
        allow: Key<List<EnvPattern>>,
        /// Variables that are set, whatever the caller has.
        set: Key<Variables>,
    }
}

section! {
    /// The `limits` section. `"none"` lifts a limit.
    Limits {
        /// Time on the clock: `"10m"`.
        wall: Key<Seconds>,
        /// Time on the processor, for each process: `"10m"`.
        cpu: Key<Seconds>,
        /// Processes and threads at once.
        processes: Key<Count>,
        /// Memory of the whole session: `"2GiB"`.
        memory: Key<Bytes>,
        /// Open files of each process.
        files: Key<Count>,
        /// Size of each file: `"1GiB"`.
        file_size: Key<Bytes>,
        /// Size of the private temporary directories.
        tmp_size: Key<Bytes>,
    }
}

macro_rules! readable_words {
    ($($name:ident),*) => {$(
        impl Readable for $name {
            fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
                read_word(value, reader)
            }
        }
    )*};
}
readable_words!(ApplyTo, GitLevel, NetworkMode, OnGap, Preset, Tmp);

macro_rules! limits {
    ($($(#[$meta:meta])* $name:ident = $unit:expr, $suffixes:literal;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub struct $name(pub Limit);

        impl Readable for $name {
            fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
                let text = match value {
                    Value::NumberLit(literal) => literal.value,
                    Value::StringLit(literal) => literal.value.as_ref(),
                    other => {
                        reader.wrong_type(other, "a number or a string");
                        return None;
                    }
                };
                $unit.parse(text).map(Self).map_err(|expected| {
                    reader.problem(Problem::error(span_of(value), "this is not a limit", expected));
                }).ok()
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let pattern = concat!("^(none|0*[1-9][0-9]*", $suffixes, ")$");
                schemars::json_schema!({
                    "type": ["string", "integer"],
                    "minimum": 1,
                    "pattern": pattern,
                })
            }
        }
    )*};
}
limits! {
    /// A time.
    Seconds = Unit::Seconds, "(s|m|min|h)?";
    /// A size.
    Bytes = Unit::Bytes, "(B|KiB|K|MiB|M|GiB|G|TiB|T|kB|KB|MB|GB)?";
    /// A number of things.
    Count = Unit::Count, "";
}

impl Readable for HostPattern {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(value, reader)?;
        text.parse()
            .map_err(|error: crate::host::PatternError| {
                reader.problem(
                    Problem::error(
                        span_of(value),
                        format!("`{}` is not a host pattern", crate::text::printable(&text)),
                        error.to_string(),
                    )
                    .help("write a host (`example.org`) or everything below one (`*.example.org`), with a port if it is not 80 or 443"),
                );
            })
            .ok()
    }
}

impl JsonSchema for HostPattern {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HostPattern".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        // A wildcard stands first and has two labels behind it; the rest is left to the reader.
        schemars::json_schema!({
            "type": "string",
            "pattern": "^(\\*\\.[^*/.]+\\.[^*/]+|[^*/]+)(:\\*)?$",
        })
    }
}

impl Readable for EnvPattern {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(value, reader)?;
        text.parse()
            .map_err(|error: crate::policy::EnvPatternError| {
                reader.problem(Problem::error(
                    span_of(value),
                    format!(
                        "`{}` does not name variables",
                        crate::text::printable(&text)
                    ),
                    error.to_string(),
                ));
            })
            .ok()
    }
}

/// A name in the project, relative to its root: `.vscode`, `.github/workflows`.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq)]
#[schemars(with = "String")]
pub struct ProjectName(pub std::path::PathBuf);

impl ProjectName {
    /// Takes a relative path that stays in the project.
    pub fn parse(text: impl AsRef<std::path::Path>) -> Option<Self> {
        use std::path::Component;
        let path = text.as_ref();
        let named = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let empty = path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().contains(&0);
        (named && !empty).then(|| Self(path.to_owned()))
    }
}

impl Readable for ProjectName {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(value, reader)?;
        let name = Self::parse(&text);
        if name.is_none() {
            reader.problem(Problem::error(
                span_of(value),
                "this is not a name inside the project",
                "write it relative to the project's root, without `..`",
            ));
        }
        name
    }
}

/// A socket of the host: by path, or by one of the names that stand for a usual one.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq)]
#[schemars(with = "String")]
pub enum SocketName {
    /// One of [`SocketName::KNOWN`].
    Known(&'static str),
    /// A socket file.
    Path(std::path::PathBuf),
}

impl SocketName {
    /// Names that stand for a usual socket, wherever this host keeps it.
    pub const KNOWN: [&'static str; 7] = [
        "docker",
        "gpg-agent",
        "podman",
        "session-bus",
        "ssh-agent",
        "wayland",
        "x11",
    ];

    /// The known name that a text is, if it is one.
    pub fn known(text: &str) -> Option<Self> {
        Self::KNOWN
            .iter()
            .find(|known| **known == text)
            .map(|known| Self::Known(known))
    }
}

impl Readable for SocketName {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(value, reader)?;
        if let Some(known) = Self::known(&text) {
            return Some(known);
        }
        if !text.contains('/') {
            reader.problem(Problem::error(
                span_of(value),
                format!(
                    "`{}` is not a socket that ringfence knows",
                    crate::text::printable(&text)
                ),
                format!("write a path, or one of: {}", Self::KNOWN.join(", ")),
            ));
            return None;
        }
        SettingPath::read(value, reader).map(|SettingPath(path)| Self::Path(path))
    }
}

/// A whole settings file: the keys, and what single operating systems change about them.
#[derive(Clone, Debug, Default)]
pub struct SettingsFile {
    /// What holds everywhere.
    pub keys: Keys,
    /// What macOS changes.
    pub macos: Keys,
    /// What Linux changes.
    pub linux: Keys,
    /// What Windows changes.
    pub windows: Keys,
}

const OVERRIDES: [&str; 4] = ["$schema", "linux", "macos", "windows"];

impl SettingsFile {
    /// Reads a text. Problems do not stop the reading; whoever gets an error starts nothing.
    pub fn read(source: &Source, base: &Base) -> (Self, Vec<Problem>) {
        let mut file = Self::default();
        let known: Vec<&'static str> = Keys::KEYS.iter().chain(&OVERRIDES).copied().collect();
        let problems = parse_object(
            source,
            |reader, object| {
                reader.each_key(object, &known, |reader, name, value| match name {
                    "$schema" => read_schema(value, reader),
                    "linux" => read_part(&mut file.linux, value, reader),
                    "macos" => read_part(&mut file.macos, value, reader),
                    "windows" => read_part(&mut file.windows, value, reader),
                    _ => file.keys.read_key(name, value, reader),
                });
            },
            base,
        );
        (file, problems)
    }

    /// What the file says on one operating system.
    #[must_use]
    pub fn on(self, os: Os) -> Keys {
        let mut keys = self.keys;
        keys.overlay(match os {
            Os::Linux => self.linux,
            Os::Macos => self.macos,
            Os::Windows => self.windows,
        });
        keys
    }
}

/// For editors; ringfence has no use for it.
fn read_schema(value: &Value<'_>, reader: &mut Reader<'_>) -> bool {
    String::read(value, reader);
    true
}

fn read_part(part: &mut Keys, value: &Value<'_>, reader: &mut Reader<'_>) -> bool {
    part.read_field(value, reader);
    true
}

/// Whether any of these stops the launch.
pub fn has_errors(problems: &[Problem]) -> bool {
    problems
        .iter()
        .any(|problem| problem.severity == Severity::Error)
}
