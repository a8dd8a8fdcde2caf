//! What a program asks a sandbox to allow.
//!
//! A [`Policy`] is a preset and what is added to it, written down in the order of a sentence. Nothing
//! is looked up while it is written: [`Sandbox::new`](crate::Sandbox::new) does that, and says
//! everything that is wrong with it at once.

// Long: every method shows its use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_core::origin::{Located, Origin};
use ringfence_core::plan::EngineChoice;
use ringfence_core::policy::{Complaint, EnvPattern};
use ringfence_core::settings::{
    Bytes, Count, GitLevel, Keys, Kind, Limit, NetworkMode, OnGap, Preset, ProjectName, Seconds,
    SettingPath, SocketName, Tmp,
};
use ringfence_core::text::printable_path;
use serde::{Deserialize, Serialize};

/// What commands of a sandbox may do: a preset, and what is added to it.
///
/// Relative paths are relative to the directory the program is in when the sandbox is made.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringfence::Policy;
///
/// let policy = Policy::agent("/home/me/project")
///     .read("/opt/data")
///     .write("/var/cache/builds")
///     .wall_time(Duration::from_secs(600));
/// ```
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    preset: Preset,
    kind: Kind,
    project: PathBuf,
    files: Vec<(Grant, PathBuf)>,
    writable_names: Vec<PathBuf>,
    git: Option<GitLevel>,
    tmp: Option<Tmp>,
    network: Option<NetworkMode>,
    hosts: Vec<String>,
    loopback_in: Vec<u16>,
    loopback_out: Vec<u16>,
    sockets: Vec<PathBuf>,
    variables: Vec<String>,
    set: Vec<(String, String)>,
    limits: Vec<(Bound, u64)>,
    on_gap: Option<OnGap>,
    engine: Option<String>,
    pub(crate) files_of_settings: SettingsFiles,
}

/// Whether settings files have a say.
///
/// # Examples
///
/// ```
/// use ringfence::{Policy, SettingsFiles};
///
/// // As `ringfence run` would: what the user and the project have written holds, too.
/// let policy = Policy::agent("/home/me/project").settings_files(SettingsFiles::Read);
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum SettingsFiles {
    /// Only what the program says holds.
    #[default]
    Ignored,
    /// The user's file and the project's are read first, as `ringfence run` reads them: what the
    /// program says is stronger than the user's, and the project's can only narrow.
    Read,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
enum Grant {
    Execute,
    Hide,
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
enum Bound {
    Cpu,
    FileSize,
    Files,
    Memory,
    Processes,
    TmpSize,
    Wall,
}

impl Policy {
    /// For an agent's commands: everything can be read but secrets and git metadata, the project
    /// and a private `/tmp` can be written, and there is no network.
    ///
    /// ```
    /// let policy = ringfence::Policy::agent("/home/me/project");
    /// ```
    pub fn agent(project: impl Into<PathBuf>) -> Self {
        Self::with_preset(Preset::Agent, project)
    }

    /// Stricter: beside the system, the project and toolchains nothing exists.
    ///
    /// ```
    /// let policy = ringfence::Policy::strict("/home/me/project").read("/home/me/.gitconfig");
    /// ```
    pub fn strict(project: impl Into<PathBuf>) -> Self {
        Self::with_preset(Preset::Strict, project)
    }

    /// For a person's shell: dotfiles can be read, and the network is open.
    ///
    /// ```
    /// let policy = ringfence::Policy::terminal("/home/me/project").hide("/home/me/project/keys");
    /// ```
    pub fn terminal(project: impl Into<PathBuf>) -> Self {
        Self {
            kind: Kind::Terminal,
            ..Self::with_preset(Preset::Terminal, project)
        }
    }

    /// No restriction at all, only the promise that nothing survives.
    ///
    /// ```
    /// let policy = ringfence::Policy::track("/home/me/project");
    /// ```
    pub fn track(project: impl Into<PathBuf>) -> Self {
        Self::with_preset(Preset::Track, project)
    }

    /// From a preset that somebody chose by name.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = ringfence::Policy::with_preset("agent".parse()?, "/home/me/project");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_preset(preset: Preset, project: impl Into<PathBuf>) -> Self {
        Self {
            preset,
            kind: Kind::Tool,
            project: project.into(),
            files: Vec::new(),
            writable_names: Vec::new(),
            git: None,
            tmp: None,
            network: None,
            hosts: Vec::new(),
            loopback_in: Vec::new(),
            loopback_out: Vec::new(),
            sockets: Vec::new(),
            variables: Vec::new(),
            set: Vec::new(),
            limits: Vec::new(),
            on_gap: None,
            engine: None,
            files_of_settings: SettingsFiles::Ignored,
        }
    }

    /// The directory that commands work in, as it was given.
    ///
    /// ```
    /// let policy = ringfence::Policy::agent("/home/me/project");
    /// assert_eq!(policy.project(), std::path::Path::new("/home/me/project"));
    /// ```
    pub fn project(&self) -> &Path {
        &self.project
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Lets a path and all below it be read.
    ///
    /// ```
    /// let policy = ringfence::Policy::strict("/home/me/project").read("/home/me/.gitconfig");
    /// ```
    #[must_use]
    pub fn read(self, path: impl Into<PathBuf>) -> Self {
        self.grant(Grant::Read, path)
    }

    /// Lets a path be read, and programs in it be run.
    ///
    /// ```
    /// let policy = ringfence::Policy::strict("/home/me/project").execute("/opt/toolchain/bin");
    /// ```
    #[must_use]
    pub fn execute(self, path: impl Into<PathBuf>) -> Self {
        self.grant(Grant::Execute, path)
    }

    /// Lets a path be read, run and written.
    ///
    /// ```
    /// let policy = ringfence::Policy::agent("/home/me/project").write("/home/me/.cache/builds");
    /// ```
    #[must_use]
    pub fn write(self, path: impl Into<PathBuf>) -> Self {
        self.grant(Grant::Write, path)
    }

    /// Hides a path and all below it.
    ///
    /// ```
    /// let policy = ringfence::Policy::agent("/home/me/project").hide("/home/me/project/keys");
    /// ```
    #[must_use]
    pub fn hide(self, path: impl Into<PathBuf>) -> Self {
        self.grant(Grant::Hide, path)
    }

    fn grant(mut self, grant: Grant, path: impl Into<PathBuf>) -> Self {
        self.files.push((grant, path.into()));
        self
    }

    /// Lets a protected name in the project be written, such as `.vscode`.
    ///
    /// ```
    /// // The command may change what editors run.
    /// let policy = ringfence::Policy::agent("/home/me/project").write_protected(".vscode");
    /// ```
    #[must_use]
    pub fn write_protected(mut self, name: impl Into<PathBuf>) -> Self {
        self.writable_names.push(name.into());
        self
    }

    /// How much of the project's git metadata may be used.
    ///
    /// ```
    /// use ringfence::{Policy, words::GitLevel};
    ///
    /// // Commits can be made; hooks and configuration stay as they are.
    /// let policy = Policy::agent("/home/me/project").git(GitLevel::Write);
    /// ```
    #[must_use]
    pub fn git(mut self, level: GitLevel) -> Self {
        self.git = Some(level);
        self
    }

    /// Which temporary directories commands see.
    ///
    /// ```
    /// use ringfence::{Policy, words::Tmp};
    ///
    /// let policy = Policy::agent("/home/me/project").tmp(Tmp::Host);
    /// ```
    #[must_use]
    pub fn tmp(mut self, tmp: Tmp) -> Self {
        self.tmp = Some(tmp);
        self
    }

    /// No network, or all of it.
    ///
    /// ```
    /// use ringfence::{Policy, words::NetworkMode};
    ///
    /// let policy = Policy::agent("/home/me/project").network(NetworkMode::All);
    /// ```
    #[must_use]
    pub fn network(mut self, mode: NetworkMode) -> Self {
        self.network = Some(mode);
        self
    }

    /// Lets a host be reached, and no other that is not listed: `example.org`,
    /// `*.example.org:8443`.
    ///
    /// ```
    /// let policy = ringfence::Policy::agent("/home/me/project")
    ///     .host("crates.io")
    ///     .host("*.example.org:8443");
    /// ```
    #[must_use]
    pub fn host(mut self, pattern: impl Into<String>) -> Self {
        self.hosts.push(pattern.into());
        self
    }

    /// Lets a server inside be reached from the host on this port.
    ///
    /// ```
    /// // A browser on the host can look at the development server inside.
    /// let policy = ringfence::Policy::agent("/home/me/project").loopback_in(3000);
    /// ```
    #[must_use]
    pub fn loopback_in(mut self, port: u16) -> Self {
        self.loopback_in.push(port);
        self
    }

    /// Lets a service on the host's loopback be reached on this port.
    ///
    /// ```
    /// // The host's PostgreSQL.
    /// let policy = ringfence::Policy::agent("/home/me/project").loopback_out(5432);
    /// ```
    #[must_use]
    pub fn loopback_out(mut self, port: u16) -> Self {
        self.loopback_out.push(port);
        self
    }

    /// Lets a unix socket of the host be connected to, by path or by a name such as `ssh-agent`.
    ///
    /// ```
    /// let policy = ringfence::Policy::agent("/home/me/project").unix_socket("ssh-agent");
    /// ```
    #[must_use]
    pub fn unix_socket(mut self, socket: impl Into<PathBuf>) -> Self {
        self.sockets.push(socket.into());
        self
    }

    /// Lets a variable of the caller's pass: `NAME`, or `PREFIX_*`.
    ///
    /// ```
    /// let policy = ringfence::Policy::agent("/home/me/project")
    ///     .pass_env("EDITOR")
    ///     .pass_env("MYAPP_*");
    /// ```
    #[must_use]
    pub fn pass_env(mut self, pattern: impl Into<String>) -> Self {
        self.variables.push(pattern.into());
        self
    }

    /// Sets a variable for every command.
    ///
    /// ```
    /// let policy = ringfence::Policy::agent("/home/me/project").set_env("CI", "1");
    /// ```
    #[must_use]
    pub fn set_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set.push((name.into(), value.into()));
        self
    }

    /// Bounds the time on the clock; whoever takes longer ends with
    /// [`Cause::WallTime`](crate::Cause::WallTime).
    ///
    /// ```
    /// use std::time::Duration;
    /// use ringfence::Policy;
    ///
    /// let policy = Policy::agent("/home/me/project")
    ///     .wall_time(Duration::from_secs(600))
    ///     .cpu_time(Duration::from_secs(300))
    ///     .processes(256)
    ///     .open_files(1024)
    ///     .file_size(1 << 30)
    ///     .tmp_size(2 << 30);
    /// ```
    #[must_use]
    pub fn wall_time(self, bound: Duration) -> Self {
        self.limit(Bound::Wall, seconds(bound))
    }

    /// Bounds the time on the processor, for each process.
    ///
    /// ```
    /// let policy = ringfence::Policy::agent("/home/me/project").cpu_time(std::time::Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn cpu_time(self, bound: Duration) -> Self {
        self.limit(Bound::Cpu, seconds(bound))
    }

    /// Bounds the number of processes.
    #[must_use]
    pub fn processes(self, bound: u64) -> Self {
        self.limit(Bound::Processes, bound)
    }

    /// Bounds memory, in bytes.
    ///
    /// ```
    /// // Where no cgroup with a memory controller can be had, no sandbox is made of this.
    /// let policy = ringfence::Policy::agent("/home/me/project").memory(4 << 30);
    /// ```
    #[must_use]
    pub fn memory(self, bound: u64) -> Self {
        self.limit(Bound::Memory, bound)
    }

    /// Bounds the number of open files, for each process.
    #[must_use]
    pub fn open_files(self, bound: u64) -> Self {
        self.limit(Bound::Files, bound)
    }

    /// Bounds the size of each file that is written, in bytes.
    #[must_use]
    pub fn file_size(self, bound: u64) -> Self {
        self.limit(Bound::FileSize, bound)
    }

    /// Bounds the private temporary directories, in bytes.
    #[must_use]
    pub fn tmp_size(self, bound: u64) -> Self {
        self.limit(Bound::TmpSize, bound)
    }

    fn limit(mut self, bound: Bound, value: u64) -> Self {
        self.limits.push((bound, value));
        self
    }

    /// What to do when this host cannot enforce a rule. Without this a sandbox refuses.
    ///
    /// ```
    /// use ringfence::{Policy, words::OnGap};
    ///
    /// // Run all the same; the report lists what did not hold.
    /// let policy = Policy::agent("/home/me/project").on_gap(OnGap::Report);
    /// ```
    #[must_use]
    pub fn on_gap(mut self, on_gap: OnGap) -> Self {
        self.on_gap = Some(on_gap);
        self
    }

    /// What enforces the policy. Without this it is the strongest that works here.
    ///
    /// ```
    /// use ringfence::Policy;
    /// use ringfence::words::{Engine, EngineChoice};
    ///
    /// let policy = Policy::agent("/home/me/project").engine(EngineChoice::Named(Engine::Landlock));
    /// ```
    #[must_use]
    pub fn engine(mut self, choice: EngineChoice) -> Self {
        self.engine = match choice {
            EngineChoice::Auto => None,
            EngineChoice::Named(engine) => Some(engine.to_string()),
        };
        self
    }

    /// Whether settings files have a say; without this they do not.
    ///
    /// ```
    /// use ringfence::{Policy, SettingsFiles};
    ///
    /// let policy = Policy::agent("/home/me/project").settings_files(SettingsFiles::Read);
    /// ```
    #[must_use]
    pub fn settings_files(mut self, files: SettingsFiles) -> Self {
        self.files_of_settings = files;
        self
    }

    /// The same with every path absolute.
    #[cfg(target_os = "linux")]
    pub(crate) fn absolute(mut self, current: &Path) -> Self {
        self.project = current.join(&self.project);
        for (_, path) in &mut self.files {
            *path = current.join(&*path);
        }
        for socket in &mut self.sockets {
            if socket.to_str().and_then(SocketName::known).is_none() {
                *socket = current.join(&*socket);
            }
        }
        self
    }

    /// Which engine was asked for; one that has no name here is as good as none.
    pub(crate) fn engine_choice(&self) -> EngineChoice {
        let named = self.engine.as_deref().map(str::parse);
        named.and_then(Result::ok).unwrap_or_default()
    }

    /// The layer of settings that this makes, and what cannot be a part of it.
    pub(crate) fn keys(&self, current: &Path) -> (Keys, Vec<Complaint>) {
        let mut layer = LayerOfCalls {
            keys: Keys::default(),
            complaints: Vec::new(),
        };
        layer.keys.preset.set(self.preset, Origin::Library);
        for (grant, path) in &self.files {
            layer.file(*grant, current.join(path));
        }
        for name in &self.writable_names {
            layer.writable_name(name);
        }
        layer.network(self, current);
        layer.environment(self);
        layer.limits(&self.limits);
        let keys = &mut layer.keys;
        if let Some(git) = self.git {
            keys.git.set(git, Origin::Library);
        }
        if let Some(tmp) = self.tmp {
            keys.tmp.set(tmp, Origin::Library);
        }
        if let Some(on_gap) = self.on_gap {
            keys.on_gap.set(on_gap, Origin::Library);
        }
        (layer.keys, layer.complaints)
    }
}

/// A part of a second is as good as a whole one; none at all would mean no limit.
fn seconds(duration: Duration) -> u64 {
    let whole = duration.as_secs();
    let begun = u64::from(duration.subsec_nanos() > 0);
    whole.saturating_add(begun).max(1)
}

struct LayerOfCalls {
    keys: Keys,
    complaints: Vec<Complaint>,
}

impl LayerOfCalls {
    fn complain(&mut self, message: String, help: Option<&str>) {
        self.complaints.push(Complaint {
            origin: Origin::Library,
            message,
            help: help.map(str::to_owned),
        });
    }

    fn file(&mut self, grant: Grant, path: PathBuf) {
        let sandbox = &mut self.keys.terminal.sandbox;
        let list = match grant {
            Grant::Execute => &mut sandbox.additional_executable_paths,
            Grant::Hide => &mut self.keys.secrets.hide,
            Grant::Read => &mut sandbox.additional_read_only_paths,
            Grant::Write => &mut sandbox.additional_read_write_paths,
        };
        list.push(SettingPath(path), Origin::Library);
    }

    fn writable_name(&mut self, name: &Path) {
        match ProjectName::parse(name) {
            Some(name) => self.keys.protect.allow.push(name, Origin::Library),
            None => self.complain(
                format!(
                    "`{}` is not a name inside the project",
                    printable_path(name)
                ),
                Some("write it relative to the project's root, without `..`"),
            ),
        }
    }

    fn network(&mut self, policy: &Policy, current: &Path) {
        let network = &mut self.keys.network;
        if let Some(mode) = policy.network {
            network.mode.set(mode, Origin::Library);
        }
        if !policy.hosts.is_empty() {
            network.mode.set(NetworkMode::Hosts, Origin::Library);
        }
        for port in &policy.loopback_in {
            network.loopback_in.push(*port, Origin::Library);
        }
        for port in &policy.loopback_out {
            network.loopback_out.push(*port, Origin::Library);
        }
        for host in &policy.hosts {
            match host.parse() {
                Ok(pattern) => self.keys.network.hosts.push(pattern, Origin::Library),
                Err(error) => self.complain(format!("the host {host:?}: {error}"), None),
            }
        }
        for socket in &policy.sockets {
            let known = socket.to_str().and_then(SocketName::known);
            let socket = known.unwrap_or_else(|| SocketName::Path(current.join(socket)));
            self.keys.unix_sockets.push(socket, Origin::Library);
        }
    }

    fn environment(&mut self, policy: &Policy) {
        for pattern in &policy.variables {
            match pattern.parse::<EnvPattern>() {
                Ok(pattern) => self.keys.env.allow.push(pattern, Origin::Library),
                Err(error) => self.complain(format!("the variable {pattern:?}: {error}"), None),
            }
        }
        let set = policy.set.iter().map(|(name, value)| {
            let value = Located::new(value.clone(), Origin::Library);
            (name.clone(), value)
        });
        let set: BTreeMap<_, _> = set.collect();
        if let Some(name) = set
            .keys()
            .find(|name| name.is_empty() || name.contains('='))
        {
            self.complain(format!("{name:?} cannot be a variable's name"), None);
        } else if !set.is_empty() {
            self.keys.env.set.set(set, Origin::Library);
        }
    }

    fn limits(&mut self, bounds: &[(Bound, u64)]) {
        let limits = &mut self.keys.limits;
        for (bound, value) in bounds {
            let limit = Limit::At(*value);
            match bound {
                Bound::Cpu => limits.cpu.set(Seconds(limit), Origin::Library),
                Bound::FileSize => limits.file_size.set(Bytes(limit), Origin::Library),
                Bound::Files => limits.files.set(Count(limit), Origin::Library),
                Bound::Memory => limits.memory.set(Bytes(limit), Origin::Library),
                Bound::Processes => limits.processes.set(Count(limit), Origin::Library),
                Bound::TmpSize => limits.tmp_size.set(Bytes(limit), Origin::Library),
                Bound::Wall => limits.wall.set(Seconds(limit), Origin::Library),
            }
        }
    }
}
