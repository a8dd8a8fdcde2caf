//! Names in a project, and in git directories, that some program outside obeys.
//!
//! Each name that is not there costs a look when a session starts, and one whenever names are
//! looked at while it runs. Names of one directory are looked up by one list of it, so those that
//! share one stand together where they can.

/// Names in a project that some program outside runs or obeys without being asked.
pub const PROTECTED: &[(&str, &str)] = &[
    // Git hooks, and what manages them.
    (".husky", "git hooks of npm projects"),
    // Lefthook takes the first that it finds, and one called local beside it whatever that is.
    ("lefthook.yml", "programs run on commit"),
    ("lefthook.yaml", "programs run on commit"),
    ("lefthook.toml", "programs run on commit"),
    ("lefthook.json", "programs run on commit"),
    ("lefthook.jsonc", "programs run on commit"),
    ("lefthook-local.yml", "programs run on commit"),
    ("lefthook-local.yaml", "programs run on commit"),
    ("lefthook-local.toml", "programs run on commit"),
    ("lefthook-local.json", "programs run on commit"),
    ("lefthook-local.jsonc", "programs run on commit"),
    (".lefthook.yml", "programs run on commit"),
    (".lefthook.yaml", "programs run on commit"),
    (".lefthook.toml", "programs run on commit"),
    (".lefthook.json", "programs run on commit"),
    (".lefthook.jsonc", "programs run on commit"),
    (".lefthook-local.yml", "programs run on commit"),
    (".lefthook-local.yaml", "programs run on commit"),
    (".lefthook-local.toml", "programs run on commit"),
    (".lefthook-local.json", "programs run on commit"),
    (".lefthook-local.jsonc", "programs run on commit"),
    (".config/lefthook.yml", "programs run on commit"),
    (".config/lefthook.yaml", "programs run on commit"),
    (".config/lefthook.toml", "programs run on commit"),
    (".config/lefthook.json", "programs run on commit"),
    (".config/lefthook.jsonc", "programs run on commit"),
    (".config/lefthook-local.yml", "programs run on commit"),
    (".config/lefthook-local.yaml", "programs run on commit"),
    (".config/lefthook-local.toml", "programs run on commit"),
    (".config/lefthook-local.json", "programs run on commit"),
    (".config/lefthook-local.jsonc", "programs run on commit"),
    (".overcommit.yml", "programs run on commit"),
    (".local-overcommit.yml", "the same, beside it"),
    (".pre-commit-config.yaml", "programs run on commit"),
    // Other version control. What Mercurial requires of a repository can make it read another one's, but
    // every `hg init` writes that.
    (".hg/hgrc", "hooks and extensions of Mercurial"),
    (".hg/hgrc-not-shared", "hooks and extensions of Mercurial"),
    (".jj/repo/config.toml", "programs that Jujutsu runs"),
    (".jj/workspace-config.toml", "programs that Jujutsu runs"),
    (".sl/config", "hooks and extensions of Sapling"),
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
    (".dir-locals-2.el", "the same, beside it"),
    (".exrc", "Vim may run it on starting here"),
    (".gvimrc", "Vim may run it on starting here"),
    (".nvimrc", "Neovim may run it on starting here"),
    (".vimrc", "Vim may run it on starting here"),
    (".fleet", "run configurations of an editor"),
    (".helix", "language servers that an editor starts"),
    (".idea", "run configurations of an editor"),
    (".run", "run configurations of an editor"),
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
    (".kilocode", "rules and servers of an assistant"),
    (".kiro", "settings, hooks and servers of an agent"),
    (".mcp.json", "servers an agent starts"),
    (".opencode", "settings and tools of an agent"),
    ("opencode.json", "settings and servers of an agent"),
    ("opencode.jsonc", "the same, with comments"),
    (".qwen", "settings of an agent"),
    (".roo", "settings and servers of an assistant"),
    (".trae", "rules and servers of an editor"),
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
    (".mise.local.toml", "the same, beside it"),
    ("mise.local.toml", "the same, beside it"),
    (".mise", "the same, in a directory"),
    (".config/mise.toml", "the same, in a directory"),
    (".config/mise.local.toml", "the same, in a directory"),
    (".config/mise", "the same, in a directory"),
    // Package managers, where a file is obeyed that is not the project's own source.
    (
        ".cargo/config.toml",
        "runners and wrappers that cargo starts",
    ),
    (".cargo/config", "the same, by its old name"),
    (".npmrc", "registries and scripts of npm"),
    (".pnpmfile.cjs", "pnpm runs it on install"),
    (".pnpmfile.mjs", "pnpm runs it on install"),
    (".yarnrc", "yarn runs the program it names"),
    (".yarnrc.yml", "yarn loads plugins it names"),
    (".yarn/plugins", "yarn loads them on every start"),
    (
        ".yarn/releases",
        "yarn runs the program in it instead of itself",
    ),
    (
        ".yarn/sdks",
        "editors run what is in it instead of their own",
    ),
    // Servers that run it with the repository's secrets.
    (
        ".circleci",
        "runs on a server with the repository's secrets",
    ),
    (
        ".forgejo/workflows",
        "runs on a server with the repository's secrets",
    ),
    (
        ".gitea/workflows",
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
    // `yarn install` writes both, and node loads them before everything else.
    ".pnp.cjs",
    ".pnp.loader.mjs",
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

/// Names in a runtime directory whose files the user's bus and service manager obey, which run outside.
/// Nothing but these writes there.
pub const RUNTIME_KNOBS: &[&str] = &["dbus-1", "systemd"];

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
    // writes it only for picks of several commits that have options, of the line or of its settings.
    "sequencer/opts",
];

/// What git knows a repository by, beside its `HEAD`: directories that git itself never puts elsewhere.
pub const GIT_MARKS: &[&str] = &["objects", "refs"];

/// The same as [`GIT_KNOBS`] for the directory that git keeps for one linked working tree.
pub const WORKTREE_KNOBS: &[&str] = &[
    "commondir",
    "config.worktree",
    "gitdir",
    "rebase-merge",
    "sequencer/opts",
];
