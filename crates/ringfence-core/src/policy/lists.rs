//! The built-in lists, as data.
//!
//! A path that starts with `~/` is below the home. Grants of what a host does not have are left
//! out without a word; what is hidden stays hidden by name. Nothing here ever creates anything.

mod caches;
mod names;
mod secrets;

pub use caches::{CACHE_KNOBS, TOOLCHAIN_CACHES};
pub use names::{
    GIT_HOOKS, GIT_KNOBS, GIT_MARKS, PROTECTED, RUN_LATER, RUN_LATER_IN, RUNTIME_KNOBS,
    WORKTREE_KNOBS,
};
pub use secrets::{RUNTIME_SECRETS, Relocated, SECRET_VARIABLES, SECRETS};

use super::files::{Access, Content};
use crate::settings::Os;

/// The three categories of `system_paths`.
#[derive(Clone, Copy, Debug)]
pub struct SystemLists {
    /// Read and execute.
    pub executable: &'static [&'static str],
    /// Read.
    pub read_only: &'static [&'static str],
    /// Read and write.
    pub read_write: &'static [&'static str],
}

/// What programs need to run at all, in a policy that starts from nothing.
pub fn system_paths(os: Os) -> SystemLists {
    match os {
        Os::Linux => SystemLists {
            executable: &[
                "/usr/bin",
                "/usr/sbin",
                "/usr/lib",
                "/usr/lib64",
                "/usr/libexec",
                "/lib",
                "/lib64",
                "/bin",
                "/sbin",
            ],
            read_only: &["/etc", "/usr/share", "/usr/include", "/usr/lib/locale"],
            read_write: &["/dev", "/tmp", "/var/tmp", "/dev/shm", "/run/user"],
        },
        Os::Macos => SystemLists {
            executable: &[
                "/bin",
                "/usr/bin",
                "/usr/sbin",
                "/sbin",
                "/usr/lib",
                "/usr/libexec",
                "/System/Library/dyld",
                "/System/Cryptexes",
                "/Library/Developer/CommandLineTools/usr/bin",
                "/Library/Developer/CommandLineTools/usr/lib",
                "/Library/Apple/usr/bin",
                "/opt/homebrew/bin",
                "/opt/homebrew/sbin",
                "/opt/homebrew/Cellar",
                "/opt/homebrew/lib",
                "/usr/local/bin",
                "/usr/local/lib",
            ],
            read_only: &[
                "/private/etc",
                // Which shell `sh` is, the loader's cache, time zones.
                "/private/var/select",
                "/private/var/db/dyld",
                "/private/var/db/timezone",
                "/usr/share",
                "/System/Library",
                "/System/Library/Keychains",
                "/Library/Developer/CommandLineTools/SDKs",
                "/Library/Preferences/SystemConfiguration",
                "/opt/homebrew/share",
                "/opt/homebrew/etc",
                "/usr/local/share",
                "/usr/local/etc",
            ],
            read_write: &[
                "/dev",
                // Not `/var/folders`: a session has a temporary directory of its own.
                "/private/tmp",
                "/private/var/run/mDNSResponder",
            ],
        },
        Os::Windows => SystemLists {
            executable: &[],
            read_only: &[],
            read_write: &[],
        },
    }
}

/// What `strict` adds to the system paths: trees that hold programs and their data, but nobody's
/// own files.
pub fn strict_system_paths(os: Os) -> SystemLists {
    match os {
        Os::Linux => SystemLists {
            // `/usr` whole: interpreters and compilers keep parts of themselves all over it.
            executable: &[
                "/usr",
                "/bin",
                "/sbin",
                "/lib",
                "/lib32",
                "/lib64",
                "/libx32",
                "/opt",
                "/nix/store",
            ],
            read_only: &[
                "/etc",
                "/proc",
                "/sys/devices/system/cpu",
                "/var/lib/dpkg/info",
            ],
            read_write: &["/dev"],
        },
        Os::Macos | Os::Windows => system_paths(os),
    }
}

/// Programs of toolchains in the home: read and execute in `strict`.
pub const TOOLCHAINS: &[&str] = &[
    "~/.asdf",
    "~/.bun/bin",
    "~/.cargo/bin",
    "~/.cargo/config.toml",
    "~/.cargo/env",
    // Sources of dependencies that come from git. What lies beside them is repositories, whose
    // configurations start programs: so none of it is a cache that a session may write.
    "~/.cargo/git",
    "~/.config/git",
    "~/.deno/bin",
    "~/.gitconfig",
    "~/.local/bin",
    "~/.local/lib",
    "~/.local/share/mise",
    "~/.local/share/uv",
    "~/.nvm",
    "~/.pyenv",
    "~/.rbenv",
    "~/.rustup",
    "~/.sdkman",
    "~/.volta",
    "~/go/bin",
];

/// Variables that name a toolchain's directory, and whether it is a cache.
pub const TOOLCHAIN_VARIABLES: &[(&str, Toolchain)] = &[
    ("GOCACHE", Toolchain::Cache),
    ("GOMODCACHE", Toolchain::Cache),
    ("RUSTUP_HOME", Toolchain::Programs),
];

/// What a toolchain's directory is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Toolchain {
    /// Written by builds.
    Cache,
    /// Executed.
    Programs,
}

/// Shell start-up files: read in `terminal`, so that a shell looks as it always does.
pub const DOTFILES: &[&str] = &[
    "~/.bash_login",
    "~/.bash_profile",
    "~/.bashrc",
    "~/.config",
    "~/.gitconfig",
    "~/.inputrc",
    "~/.profile",
    "~/.terminfo",
    "~/.zlogin",
    "~/.zlogout",
    "~/.zprofile",
    "~/.zshenv",
    "~/.zshrc",
];

/// Where homes of other users lie.
pub fn homes(os: Os) -> &'static [&'static str] {
    match os {
        Os::Linux => &["/home", "/root"],
        Os::Macos => &["/Users", "/var/root", "/private/var/root"],
        Os::Windows => &[],
    }
}

/// Directories that hold the sockets of the host's services.
pub fn runtime_directories(os: Os) -> &'static [&'static str] {
    match os {
        Os::Linux => &["/run", "/var/run"],
        Os::Macos => &["/private/var/run"],
        Os::Windows => &[],
    }
}

/// Where WSL keeps its own sockets, and so what tells it from other Linux systems.
pub const WSL_MARK: &str = "/run/WSL";

/// Temporary directories that everybody shares.
pub fn temporary_directories(os: Os) -> &'static [&'static str] {
    match os {
        Os::Linux => &["/tmp", "/var/tmp", "/dev/shm"],
        Os::Macos => &["/private/tmp", "/private/var/tmp", "/private/var/folders"],
        Os::Windows => &[],
    }
}

/// Trees that every session has its own of, whatever else may be seen.
pub fn session_trees(os: Os) -> &'static [(&'static str, Access, Content)] {
    match os {
        Os::Linux => &[
            ("/dev", Access::Write, Content::Devices),
            ("/proc", Access::Read, Content::Processes),
        ],
        Os::Macos => &[("/dev", Access::Write, Content::Devices)],
        Os::Windows => &[],
    }
}

/// Variables that pass in a terminal.
pub const TERMINAL_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "SHELL",
    "LANG",
    "TERM",
    "TERM_PROGRAM",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "EDITOR",
    "VISUAL",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "SSH_AUTH_SOCK",
    "GPG_TTY",
    "COLORTERM",
];

/// Variables that pass everywhere besides: language, clock and colours, nothing that leads
/// anywhere.
pub const PLAIN_VARIABLES: &[&str] = &[
    "LANGUAGE",
    "LC_*",
    "LOGNAME",
    "TZ",
    "NO_COLOR",
    "CLICOLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "LINES",
    "CI",
];

/// Of [`TERMINAL_VARIABLES`], those that lead to something a tool does not see.
pub const NOT_FOR_TOOLS: &[&str] = &["GPG_TTY", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"];

/// Sockets that programs look for in the directory that a variable names.
pub const RUNTIME_VARIABLE: &[(&str, &str)] = &[
    ("XDG_RUNTIME_DIR", "podman"),
    ("XDG_RUNTIME_DIR", "session-bus"),
    ("XDG_RUNTIME_DIR", "wayland"),
];

/// Processes and threads that a tool may have at once.
pub const TOOL_PROCESSES: u64 = 4096;
/// Bytes in a tool's private temporary directories.
pub const TOOL_TMP: u64 = 4 << 30;
