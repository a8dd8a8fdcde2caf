//! 39: files of a project that somebody or something outside runs later. Each is either refused or
//! told afterwards, with what it held before and after; none changes in silence.

use std::collections::BTreeMap;
use std::fs;

use ringfence::changes::{Before, FileChange};
use ringfence::git::Search;
use ringfence_core::path::AbsPath;
use ringfence_testkit::{Setup, binaries, for_each_user};

use super::git_metadata::host;

/// Whoever wrote these has others run something, by accident or on purpose.
const NAMES: &[&str] = &[
    ".Rprofile",
    ".clinerules/hooks/PreToolUse",
    ".crush.json",
    ".direnv/bin/python",
    ".factory/mcp.json",
    ".ghci",
    ".github/hooks/x.json",
    ".huskyrc.json",
    ".irbrc",
    ".lazy.lua",
    ".lefthook/pre-commit/x.sh",
    ".miserc.toml",
    ".mvn/extensions.xml",
    ".openhands/setup.sh",
    ".pdbrc",
    ".pi/extensions/x.ts",
    ".poetry/plugins/x",
    ".trunk/trunk.yaml",
    ".vim/coc-settings.json",
    "bunfig.toml",
    "compose.yml",
    "devenv.nix",
    "hk.pkl",
    "mise.dev.toml",
    "mise/config.toml",
    "pnpm-workspace.yaml",
    "tools/bazel",
    ".claude/settings.json",
    ".codex/config.toml",
    ".cursor/mcp.json",
    ".devcontainer/devcontainer.json",
    ".env",
    ".envrc",
    ".gemini/settings.json",
    ".github/workflows/ci.yml",
    ".husky/pre-commit",
    ".idea/workspace.xml",
    ".mcp.json",
    ".npmrc",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".venv/bin/activate",
    ".venv/bin/python",
    ".venv/pyvenv.cfg",
    ".vscode/launch.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".yarnrc.yml",
    ".zed/settings.json",
    ".cargo/config.toml",
    "AGENTS.md",
    "Makefile",
    "build.rs",
    "conftest.py",
    "justfile",
    "node_modules/.bin/eslint",
    "package.json",
    "packages/web/node_modules/.bin/vite",
    "pyvenv.cfg",
    "rust-toolchain.toml",
    "sitecustomize.py",
    "tools/.venv/bin/black",
    "vendor/bin/phpunit",
];

#[test]
fn nothing_that_runs_later_changes_in_silence() {
    for_each_user(binaries!(), |world| {
        // Once none is there before, and once each is.
        for there in [false, true] {
            let project = world.project("");
            let write = NAMES
                .iter()
                .map(|name| format!("mkdir -p $(dirname {name}); echo evil > {name}\n"));
            let write: String = write.collect();
            for name in NAMES.iter().filter(|_| there) {
                let path = world.project(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "old").unwrap();
            }
            world.own();
            let search = Search::new(AbsPath::parse(fs::canonicalize(&project).unwrap()).unwrap());
            let before = Before::look(&search);
            let script = format!("exec 2> /dev/null\n{write}true");
            world
                .run(&world.setup(), ["sh", "-c", &script])
                .assert_status(0);
            let changes = before.compare();
            let told = changes.files.iter().chain(&changes.programs.files);
            let told: BTreeMap<&str, &FileChange> = told.map(|file| (&*file.path, file)).collect();
            let mut refused = 0;
            for name in NAMES {
                let now = fs::read_to_string(world.project(name)).ok();
                let was = there.then(|| "old".to_owned());
                if now == was {
                    refused += 1;
                    continue;
                }
                assert_eq!(now.as_deref(), Some("evil\n"), "{name}");
                let told = told.get(name);
                let told = told.unwrap_or_else(|| panic!("{name} changed in silence"));
                assert_eq!(told.before.is_some(), there, "{name}");
                assert_ne!(told.before, told.after, "{name}");
            }
            assert!(refused > 15 && refused < NAMES.len() - 15, "{refused}");
            assert!(changes.complete && changes.programs.not_compared == 0);
            for name in NAMES {
                let _ = fs::remove_file(world.project(name));
            }
            for directory in [".venv", "node_modules", "packages", "tools", "vendor"] {
                fs::remove_dir_all(world.project(directory)).unwrap();
            }
        }
    });
}

/// Such names further down, where nothing refuses them, and where somebody or a host allows them.
#[test]
fn nothing_is_made_further_down_in_silence() {
    for_each_user(binaries!(), |world| {
        let project = world.project("");
        let old = "mkdir -p .git/objects .git/refs .git/hooks .vscode sub
            echo 'ref: refs/heads/main' > .git/HEAD; echo old > .vscode/tasks.json";
        host(world, &project, old);
        let search = Search::new(AbsPath::parse(fs::canonicalize(&project).unwrap()).unwrap());
        let names = [
            "sub/.envrc",
            "sub/.vscode/tasks.json",
            "sub/package.json",
            "tests/conftest.py",
        ];
        let write = names.map(|name| format!("mkdir -p $(dirname {name}); echo evil > {name}; "));
        let told = |setup: &Setup, script: &str| {
            // The clock of a file system may not have ticked since.
            std::thread::sleep(std::time::Duration::from_millis(50));
            let before = Before::look(&search);
            world.run(setup, ["sh", "-c", script]).assert_status(0);
            let changes = before.compare();
            let all = [changes.protected, changes.run_later, changes.git_knobs];
            all.map(|listed| listed.paths)
        };
        let [protected, later, knobs] = told(&world.setup(), &write.concat());
        assert_eq!([protected, later].concat(), names);
        assert_eq!(knobs, [""; 0]);
        // What somebody allowed is told as well, and what a host cannot refuse.
        let allowed = world.setup_with(r#""protect": {"allow": [".vscode"]}, "git": "full""#);
        let script = "echo evil > .vscode/tasks.json; echo evil > .git/hooks/post-checkout";
        let [protected, _, knobs] = told(&allowed, script);
        assert_eq!(protected, [".vscode/tasks.json"]);
        assert_eq!(knobs, [".git/hooks/post-checkout"]);
    });
}
