//! What somebody wrote: files, environment, flags.
//!
//! Settings are layers of [`Keys`], weakest first, each value with its origin. Nothing is merged
//! here: what layers mean together is decided once, in [`crate::policy::resolve`].

pub mod edit;
mod keys;
mod read;
mod schema;
mod shell;
mod values;

pub use keys::{
    Agent, AllowUnsandboxed, Bytes, Count, Env, Keys, Limits, Network, ProjectName, Protect,
    Sandbox, SandboxPermissions, Seconds, Secrets, SettingsFile, Shell, SocketName, SystemPaths,
    Terminal, has_errors,
};
pub use read::{AbsoluteSettingPath, Base, Key, LARGEST_FILE, List, SettingPath, Variables};
pub use schema::schema;
pub use shell::{ShellRule, ShellRules, ShellWords};
pub use values::{
    ApplyTo, GitLevel, Kind, Limit, NetworkMode, OnGap, Os, Preset, ShellAction, Tmp, Unit,
    UnknownWord, Word,
};

use crate::origin::{Layer, Located, Origin};
use crate::permission::{Permission, Permissions};
use crate::request::Scope;

/// What a project's file may do.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ProjectTrust {
    /// Take away, and never add.
    #[default]
    NarrowsOnly,
    /// What any other layer may: the user has seen exactly this content.
    Trusted,
}

/// All that was written, weakest layer first.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    layers: Vec<(Layer, Keys)>,
    grants: Vec<Located<Permission>>,
    trust: ProjectTrust,
    around: Vec<Keys>,
}

impl Settings {
    /// No settings: presets and built-in lists alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a layer, in its place by strength.
    #[must_use]
    pub fn with(mut self, layer: Layer, keys: Keys) -> Self {
        let place = self.layers.partition_point(|(known, _)| *known <= layer);
        self.layers.insert(place, (layer, keys));
        self
    }

    /// Adds what somebody who was asked has granted.
    #[must_use]
    pub fn granting(mut self, permissions: &Permissions, scope: Scope) -> Self {
        let origin = Origin::Grant { scope };
        let granted = permissions.iter().cloned();
        let granted = granted.map(|permission| Located::new(permission, origin.clone()));
        self.grants.extend(granted);
        self
    }

    /// What somebody who was asked has granted, in the order in which it came.
    pub fn grants(&self) -> &[Located<Permission>] {
        &self.grants
    }

    /// Adds what the file of a directory above the project says. It only ever takes away, whatever the
    /// project's own file says or is trusted with.
    #[must_use]
    pub fn within(mut self, keys: Keys) -> Self {
        self.around.push(keys);
        self
    }

    /// What the files of directories above the project say.
    pub(crate) fn around(&self) -> &[Keys] {
        &self.around
    }

    /// The same with one such file in the place of a project's that nobody trusts. It comes after a trusted
    /// one, whose word it may take back.
    #[must_use]
    pub(crate) fn with_around(&self, keys: &Keys) -> Self {
        let settings = match self.trust {
            ProjectTrust::NarrowsOnly => self.without_project(),
            ProjectTrust::Trusted => self.clone(),
        };
        settings.with(Layer::Project, keys.clone())
    }

    /// Says how far the project's file is trusted.
    #[must_use]
    pub fn trusting(mut self, trust: ProjectTrust) -> Self {
        self.trust = trust;
        self
    }

    /// How far the project's file is trusted.
    pub fn trust(&self) -> ProjectTrust {
        self.trust
    }

    /// The layers, weakest first.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = &Keys> {
        self.layers.iter().map(|(_, keys)| keys)
    }

    /// What one layer says, in the order in which it came.
    pub fn layers_of(&self, layer: Layer) -> impl Iterator<Item = &Keys> {
        let layers = self.layers.iter();
        layers.filter_map(move |(known, keys)| (*known == layer).then_some(keys))
    }

    /// The same without what the project's file says.
    #[must_use]
    pub fn without_project(&self) -> Self {
        let layers = self.layers.iter();
        Self {
            layers: layers
                .filter(|(layer, _)| *layer != Layer::Project)
                .cloned()
                .collect(),
            grants: self.grants.clone(),
            trust: self.trust,
            around: self.around.clone(),
        }
    }

    /// The same with a project's file that does not ask for the restrictions to be lifted
    /// altogether: what else it says still counts.
    #[must_use]
    pub(crate) fn with_project_restricted(&self) -> Self {
        let mut settings = self.clone();
        for (layer, keys) in &mut settings.layers {
            if *layer == Layer::Project {
                keys.preset = Key::default();
                keys.terminal.sandbox.enabled = Key::default();
                keys.terminal.sandbox.apply_to = Key::default();
            }
        }
        settings
    }

    /// Whether the project has a file of its own.
    pub fn has_project(&self) -> bool {
        self.layers
            .iter()
            .any(|(layer, _)| *layer == Layer::Project)
    }
}
