//! 39: files of a project that somebody or something outside runs later. Each is either refused or
//! told afterwards, with what it held before and after; none changes in silence.

use std::collections::BTreeMap;
use std::fs;

use ringfence::changes::{Before, FileChange};
use ringfence::git::Search;
use ringfence_core::path::AbsPath;
use ringfence_testkit::{binaries, for_each_user};

/// Whoever wrote these has others run something, by accident or on purpose.
const NAMES: &[&str] = &[
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
