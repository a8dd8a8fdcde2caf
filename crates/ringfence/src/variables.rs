//! The caller's variables, as far as they say where things are.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use ringfence_core::policy::lists;

/// The few variables that say where things are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(pub(crate) Vec<(&'static str, OsString)>);

/// Every variable that is read, besides those that lead to secrets.
const VARIABLES: [&str; 17] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_DIR",
    "GNUPGHOME",
    "GOCACHE",
    "GOMODCACHE",
    "HOME",
    "RUSTUP_HOME",
    "SSH_AUTH_SOCK",
    "WAYLAND_DISPLAY",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

impl Variables {
    /// Those of the running process that are set to something.
    pub(crate) fn of_process() -> Self {
        let secrets = lists::SECRET_VARIABLES.iter().map(|(name, _)| name);
        let set = VARIABLES.iter().chain(secrets).filter_map(|name| {
            let value = std::env::var_os(name)?;
            (!value.is_empty()).then_some((*name, value))
        });
        Self(set.collect())
    }

    pub(crate) fn named(&self, name: &str) -> Option<&OsStr> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_os_str())
    }

    /// A directory, if the variable names one: the XDG rules ignore what is not absolute.
    pub(crate) fn directory(&self, name: &str) -> Option<&Path> {
        self.named(name)
            .map(Path::new)
            .filter(|directory| directory.is_absolute())
    }
}
