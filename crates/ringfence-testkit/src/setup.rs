//! What `confine` is asked to do, as it travels on its command line.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ringfence_core::plan::Step;
use serde::{Deserialize, Serialize};

/// Who sets a session up, which must make no difference to what it holds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Hands {
    /// A first process that is born before anybody knows what for.
    Ahead,
    /// The first process alone.
    One,
    /// The first process, and a helper.
    Two,
}

impl Hands {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Ahead, Self::One, Self::Two];
}

/// A launch: the policy's settings, the place, and what is strange about the caller.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one strange thing about a launcher"
)]
pub struct Setup {
    /// A settings file of the user's.
    pub settings: String,
    /// A settings file of the project's.
    pub project_settings: Option<String>,
    /// Bytes of paths: not all of them are text.
    project: Vec<u8>,
    home: Vec<u8>,
    runtime: Option<Vec<u8>>,
    directory: Vec<u8>,
    without: Option<String>,
    fail_at: Option<String>,
    /// Calls that the kernel shall refuse to the launcher, as an older one would: number, error.
    pub refused_calls: Vec<(u32, u16)>,
    /// Opens this directory, this file and a socket many times over, to be inherited.
    leak: Option<Vec<u8>>,
    /// Puts a key of this name into the session keyring of the launcher.
    pub key: Option<String>,
    /// Takes this terminal as its own, and as standard input, output and error.
    terminal: Option<Vec<u8>>,
    /// A caller that blocks and ignores signals and has odd limits.
    pub strange_parent: bool,
    /// Starts from a thread among others.
    pub threads: bool,
    /// Takes a path in the settings for what was approved: a link is refused.
    pub follow_no_links: bool,
    /// Waits so many milliseconds between preparing and starting.
    pub pause: u64,
    /// Who sets the session up; ahead, where that can be, if nothing is said.
    pub hands: Option<Hands>,
    /// Pretends that Landlock is of this version.
    pub landlock_abi: Option<u32>,
    /// Landlock alone has to do.
    pub landlock_engine: bool,
    /// Where the session is written down.
    registry: Option<Vec<u8>>,
    /// Has the place where a mark would stand taken already.
    pub unmarked: bool,
    /// Pretends that filters cannot ask a supervisor.
    pub no_listener: bool,
    /// Somebody who is asked about hosts, and says yes to these.
    pub says_yes: Option<Vec<String>>,
}

impl Setup {
    /// A command in `project`, by somebody who lives in `home`.
    pub fn new(project: &Path, home: &Path) -> Self {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_owned();
        Self {
            settings: "{}".to_owned(),
            project: bytes(project),
            home: bytes(home),
            directory: bytes(project),
            ..Self::default()
        }
    }

    /// With this settings file.
    #[must_use]
    pub fn settings(mut self, text: impl Into<String>) -> Self {
        self.settings = text.into();
        self
    }

    /// Without one layer.
    #[must_use]
    pub fn without(mut self, step: Step) -> Self {
        self.without = Some(step_name(step));
        self
    }

    /// With a kernel that refuses one act.
    #[must_use]
    pub fn failing_at(mut self, step: Step) -> Self {
        self.fail_at = Some(step_name(step));
        self
    }

    /// Set up by these.
    #[must_use]
    pub fn by(mut self, hands: Hands) -> Self {
        self.hands = Some(hands);
        self
    }

    /// Started in this directory.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Self {
        let bytes = directory.as_os_str().as_bytes();
        bytes.clone_into(&mut self.directory);
        self
    }

    /// With many descriptors open, among them `directory` and what is in it.
    #[must_use]
    pub fn leaking(mut self, directory: &Path) -> Self {
        self.leak = Some(directory.as_os_str().as_bytes().to_owned());
        self
    }

    /// Written down in this directory.
    #[must_use]
    pub fn registered(mut self, directory: &Path) -> Self {
        self.registry = Some(directory.as_os_str().as_bytes().to_owned());
        self
    }

    /// Where the session is written down, if anywhere.
    pub fn registry_path(&self) -> Option<PathBuf> {
        self.registry.as_deref().map(path)
    }

    /// With a runtime directory of the caller's.
    #[must_use]
    pub fn runtime(mut self, directory: &Path) -> Self {
        self.runtime = Some(directory.as_os_str().as_bytes().to_owned());
        self
    }

    /// At this terminal.
    #[must_use]
    pub fn terminal(mut self, terminal: &Path) -> Self {
        self.terminal = Some(terminal.as_os_str().as_bytes().to_owned());
        self
    }

    /// The project's root.
    pub fn project_path(&self) -> PathBuf {
        path(&self.project)
    }

    /// The caller's home.
    pub fn home_path(&self) -> PathBuf {
        path(&self.home)
    }

    /// Where the command starts.
    pub fn directory_path(&self) -> PathBuf {
        path(&self.directory)
    }

    /// The directory that is inherited, if one is.
    pub fn leak_path(&self) -> Option<PathBuf> {
        self.leak.as_deref().map(path)
    }

    /// Where the user's services keep what is over when she leaves.
    pub fn runtime_path(&self) -> Option<PathBuf> {
        self.runtime.as_deref().map(path)
    }

    /// The terminal, if there is one.
    pub fn terminal_path(&self) -> Option<PathBuf> {
        self.terminal.as_deref().map(path)
    }

    /// The layer that is left out.
    pub fn without_step(&self) -> Option<Step> {
        self.without.as_deref().map(step_named)
    }

    /// The act that is refused.
    pub fn fail_at_step(&self) -> Option<Step> {
        self.fail_at.as_deref().map(step_named)
    }

    /// As one argument.
    pub fn to_argument(&self) -> OsString {
        serde_json::to_string(self).unwrap().into()
    }

    /// Reads it back.
    pub fn from_argument(argument: &std::ffi::OsStr) -> Self {
        serde_json::from_slice(argument.as_bytes()).unwrap()
    }
}

/// The steps of a launch on Linux: all but the one that only macOS has.
pub fn steps() -> impl Iterator<Item = Step> {
    Step::ALL.into_iter().filter(|step| *step != Step::Seatbelt)
}

fn path(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_owned()).into()
}

fn step_name(step: Step) -> String {
    let value = serde_json::to_value(step).unwrap();
    value.as_str().unwrap().to_owned()
}

fn step_named(name: &str) -> Step {
    let found = Step::ALL.into_iter().find(|step| step_name(*step) == name);
    found.unwrap()
}
