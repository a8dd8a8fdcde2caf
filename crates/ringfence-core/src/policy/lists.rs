//! The built-in lists, as data.
//!
//! A path that starts with `~/` is below the home. Grants of what a host does not have are left
//! out without a word; what is hidden stays hidden by name. Nothing here ever creates anything.

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

/// Caches of toolchains in the home: read and write in `strict`.
pub const TOOLCHAIN_CACHES: &[&str] = &[
    "~/.cache",
    "~/.cargo/git",
    "~/.cargo/registry",
    "~/.gradle/caches",
    "~/.m2/repository",
    "~/.npm",
    "~/.pnpm-store",
    "~/.yarn",
    "~/go/pkg",
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

/// Keys, tokens, histories: hidden in every preset but `track`, wherever a grant around them
/// would show them.
pub const SECRETS: &[&str] = &[
    // Keys and agents.
    "~/.ssh",
    "~/.gnupg",
    "~/.config/age",
    "~/.config/sops",
    // Clouds and clusters.
    "~/.aws",
    "~/.azure",
    "~/.config/gcloud",
    "~/.config/doctl",
    "~/.config/hcloud",
    "~/.config/scw",
    "~/.config/rclone",
    "~/.kube",
    "~/.docker",
    "~/.config/containers/auth.json",
    "~/.terraform.d",
    "~/.terraformrc",
    "~/.vault-token",
    "~/.fly",
    "~/.oci",
    // Passwords that tools look up by host.
    "~/.netrc",
    "~/.authinfo",
    "~/.authinfo.gpg",
    "~/.git-credentials",
    "~/.config/git/credentials",
    "~/.config/gh",
    "~/.config/glab-cli",
    "~/.config/hub",
    "~/.pgpass",
    "~/.my.cnf",
    "~/.mylogin.cnf",
    "~/.mongorc.js",
    "~/.s3cfg",
    "~/.boto",
    // Tokens of package managers.
    "~/.npmrc",
    "~/.yarnrc.yml",
    "~/.pypirc",
    "~/.config/pip/pip.conf",
    "~/.cargo/credentials",
    "~/.cargo/credentials.toml",
    "~/.gem/credentials",
    "~/.bundle/config",
    "~/.composer/auth.json",
    "~/.config/composer/auth.json",
    "~/.m2/settings.xml",
    "~/.m2/settings-security.xml",
    "~/.gradle/gradle.properties",
    "~/.nuget/NuGet",
    // Password stores and keyrings.
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.local/share/kwalletd",
    "~/.config/1Password",
    "~/.config/Bitwarden",
    "~/.config/Bitwarden CLI",
    "~/.config/keepassxc",
    "~/.config/op",
    "~/Library/Keychains",
    // Browsers: cookies are keys.
    "~/.mozilla",
    "~/.thunderbird",
    "~/.config/google-chrome",
    "~/.config/chromium",
    "~/.config/BraveSoftware",
    "~/.config/microsoft-edge",
    "~/.config/vivaldi",
    "~/.config/opera",
    "~/.var/app",
    "~/Library/Application Support/BraveSoftware",
    "~/Library/Application Support/Firefox",
    "~/Library/Application Support/Google/Chrome",
    "~/Library/Cookies",
    "~/Library/Messages",
    "~/Library/Mail",
    "~/Library/Safari",
    // Agents and assistants: their tokens, and what was said to them.
    "~/.claude",
    "~/.claude.json",
    "~/.codex",
    "~/.gemini",
    "~/.config/github-copilot",
    "~/.config/anthropic",
    "~/.config/openai",
    // Histories: people paste passwords.
    "~/.bash_history",
    "~/.zsh_history",
    "~/.local/share/fish/fish_history",
    "~/.histfile",
    "~/.history",
    "~/.python_history",
    "~/.node_repl_history",
    "~/.psql_history",
    "~/.mysql_history",
    "~/.sqlite_history",
    "~/.rediscli_history",
    "~/.irb_history",
    "~/.lesshst",
    "~/.viminfo",
    "~/.local/state/bash_history",
    // The machine's own.
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/var/lib/sudo",
    "/var/spool/cron",
    "/var/mail",
    "/var/spool/mail",
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

/// Names in a project that some program outside runs or obeys without being asked.
pub const PROTECTED: &[(&str, &str)] = &[
    // Git hooks, and what manages them.
    (".husky", "git hooks of npm projects"),
    (".lefthook.yml", "programs run on commit"),
    ("lefthook.yml", "programs run on commit"),
    (".overcommit.yml", "programs run on commit"),
    (".pre-commit-config.yaml", "programs run on commit"),
    (".hg/hgrc", "hooks and extensions of Mercurial"),
    // Editors.
    (
        ".devcontainer",
        "commands an editor runs when it opens the project",
    ),
    (".devcontainer.json", "the same, in one file"),
    (
        ".dir-locals.el",
        "Emacs evaluates it for every file it opens",
    ),
    (".exrc", "Vim may run it on starting here"),
    (".fleet", "run configurations of an editor"),
    (".idea", "run configurations of an editor"),
    (".nvim.lua", "Neovim may run it on starting here"),
    (".vscode", "tasks an editor runs"),
    (".zed", "tasks and servers of an editor"),
    // Agents, and the servers that they start.
    (".agents", "settings of agents"),
    (".aider.conf.yml", "settings and commands of an agent"),
    (".claude", "settings, hooks and commands of an agent"),
    (".codex", "settings of an agent"),
    (".continue", "settings and servers of an assistant"),
    (".cursor", "rules and MCP servers of an editor"),
    (".gemini", "settings of an agent"),
    (".kiro", "settings, hooks and servers of an agent"),
    (".mcp.json", "servers an agent starts"),
    (".opencode", "settings and tools of an agent"),
    ("opencode.json", "settings and servers of an agent"),
    (".qwen", "settings of an agent"),
    (".roo", "settings and servers of an assistant"),
    (".windsurf", "rules and servers of an editor"),
    (".ringfence", "the project's own settings for ringfence"),
    // Shells, debuggers and version managers that look around where they are started.
    (".envrc", "direnv runs it on entering the directory"),
    (".gdbinit", "a debugger runs it on starting here"),
    (".lldbinit", "a debugger runs it on starting here"),
    (
        ".mise.toml",
        "hooks and variables on entering the directory",
    ),
    ("mise.toml", "hooks and variables on entering the directory"),
    // Package managers, where a file is obeyed that is not the project's own source.
    (
        ".cargo/config.toml",
        "runners and wrappers that cargo starts",
    ),
    (".cargo/config", "the same, by its old name"),
    (".npmrc", "registries and scripts of npm"),
    (".pnpmfile.cjs", "pnpm runs it on install"),
    (".yarnrc", "yarn runs the program it names"),
    (".yarnrc.yml", "yarn loads plugins it names"),
    (".yarn/plugins", "yarn loads them on every start"),
    (
        ".yarn/releases",
        "yarn runs the program in it instead of itself",
    ),
    // Servers that run it with the repository's secrets.
    (
        ".circleci",
        "runs on a server with the repository's secrets",
    ),
    (
        ".github/workflows",
        "runs on a server with the repository's secrets",
    ),
    (
        ".gitlab-ci.yml",
        "runs on a server with the repository's secrets",
    ),
];

/// Names at a project's root that are ordinary source, and that somebody will run later all the
/// same: they stay writable, and the report says which of them changed.
pub const RUN_LATER: &[&str] = &[
    ".bazelrc",
    ".env",
    ".gitattributes",
    ".gitmodules",
    ".venv/pyvenv.cfg",
    "AGENTS.md",
    "CLAUDE.md",
    "CMakeLists.txt",
    "Cargo.toml",
    "Dockerfile",
    "GEMINI.md",
    "GNUmakefile",
    "Gemfile",
    "Jenkinsfile",
    "Justfile",
    "Makefile",
    "Rakefile",
    "Taskfile.yml",
    "Vagrantfile",
    "build.gradle",
    "build.gradle.kts",
    "build.rs",
    "compose.yaml",
    "composer.json",
    "conftest.py",
    "deno.json",
    "docker-compose.yml",
    "flake.nix",
    "go.mod",
    "gradle/wrapper/gradle-wrapper.properties",
    "gradlew",
    "justfile",
    "makefile",
    "meson.build",
    "mix.exs",
    "mvnw",
    "noxfile.py",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "pyvenv.cfg",
    "rust-toolchain",
    "rust-toolchain.toml",
    "settings.gradle",
    "settings.gradle.kts",
    "setup.py",
    "sitecustomize.py",
    "tox.ini",
    "venv/pyvenv.cfg",
];

/// Directories, anywhere in a project, with programs that its user or an editor starts later.
/// Installing into them is ordinary work: they stay writable, and the report says what changed.
pub const RUN_LATER_IN: &[&str] = &[
    // What Python's virtual environments put before everything else on the search path.
    ".venv/bin",
    "env/bin",
    "venv/bin",
    // Composer's.
    "vendor/bin",
    // What `npx` and the scripts of package.json start; links to programs of packages.
    "node_modules/.bin",
];

/// Parts of a git directory that make git run something, or point it elsewhere. They stay as
/// they are at level `write`.
pub const GIT_KNOBS: &[&str] = &[
    // Old ways to say what a remote is called and where it is: whoever pushes runs the hooks of
    // the repository that it leads to. All working trees share these two.
    "branches",
    "remotes",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "hooks",
    "info/attributes",
    "info/exclude",
    "modules",
    "objects/info/alternates",
    "objects/info/http-alternates",
    // Its list of steps may say `exec`.
    "rebase-merge",
    // The strategy that it names is a program, and with a slash in it one of the project's. Git
    // writes it only for picks that were given options.
    "sequencer/opts",
];

/// The same for the directory that git keeps for one linked working tree.
pub const WORKTREE_KNOBS: &[&str] = &[
    "commondir",
    "config.worktree",
    "gitdir",
    "rebase-merge",
    "sequencer/opts",
];

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

/// Processes and threads that a tool may have at once.
pub const TOOL_PROCESSES: u64 = 4096;
/// Bytes in a tool's private temporary directories.
pub const TOOL_TMP: u64 = 4 << 30;
