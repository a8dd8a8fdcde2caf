//! What somebody wrote: files, environment, flags.
//!
//! Settings are layers of [`Keys`], weakest first, each value with its origin. Nothing is merged
//! here: what layers mean together is decided once, in [`crate::policy::resolve`].

mod keys;
mod read;
mod schema;
mod shell;
mod values;

pub use keys::{
    Agent, Bytes, Count, Env, Keys, Limits, Network, ProjectName, Protect, Sandbox,
    SandboxPermissions, Seconds, Secrets, SettingsFile, Shell, SocketName, SystemPaths, Terminal,
    has_errors,
};
pub use read::{AbsoluteSettingPath, Base, Key, LARGEST_FILE, List, SettingPath, Variables};
pub use schema::schema;
pub use shell::{ShellRule, ShellRules, ShellWords};
pub use values::{
    ApplyTo, GitLevel, Kind, Limit, NetworkMode, OnGap, Os, Preset, ShellAction, Tmp, Unit,
    UnknownWord, Word,
};

use crate::origin::Layer;

/// All that was written, weakest layer first.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    layers: Vec<(Layer, Keys)>,
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

    /// The layers, weakest first.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = &Keys> {
        self.layers.iter().map(|(_, keys)| keys)
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
