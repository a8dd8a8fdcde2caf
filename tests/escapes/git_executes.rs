//! 31, 43: random repositories and random operations at level `write`: whatever happens inside, git
//! on the host runs nothing that it would not have run before.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ringfence_testkit::{World, binaries, for_each_user, op, say};

use super::git_metadata::{host, level};

/// How many repositories, for each user.
const REPOSITORIES: u32 = 12;

/// What a repository has besides itself.
const PARTS: [&str; 7] = [
    "git init -q ../library; git -C ../library commit -q --allow-empty -m l; \
     git submodule --quiet add ../library sub; git commit -qm sub",
    "git worktree add -q ../tree",
    "git init -q nested; git -C nested commit -q --allow-empty -m n; \
     git -C nested config alias.known '!true'",
    "git init -q --bare store.git",
    "git config core.hooksPath .githooks; mkdir .githooks; echo '#!/bin/sh' > .githooks/pre-push; \
     chmod +x .githooks/pre-push",
    "echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
     rm .git/hooks/*.sample",
    "git config extensions.worktreeConfig true; git config --worktree alias.here '!true'; \
     rm -rf .git/info",
];

/// Directories in which operations are done, and names in them.
const DIRECTORIES: [&str; 6] = [
    ".git",
    "nested/.git",
    "store.git",
    ".git/modules/sub",
    ".git/worktrees/tree",
    ".githooks",
];
const NAMES: [&str; 20] = [
    "",
    "HEAD",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "hooks",
    "hooks/pre-commit",
    "hooks/post-checkout",
    "info",
    "info/attributes",
    "objects",
    "objects/info",
    "objects/info/alternates",
    "modules",
    "worktrees",
    "refs/heads/main",
    "index",
    "logs",
    "rebase-merge",
];

type Act = (u8, (usize, usize), (usize, usize));

fn any_place() -> impl Strategy<Value = (usize, usize)> {
    (0..DIRECTORIES.len(), 0..NAMES.len())
}

fn any_acts() -> impl Strategy<Value = Vec<Act>> {
    proptest::collection::vec((0..12_u8, any_place(), any_place()), 40..140)
}

fn place(world: &World, (directory, name): (usize, usize)) -> PathBuf {
    world.project(DIRECTORIES[directory]).join(NAMES[name])
}

/// The operation as the probe's command line. `evil` and `evil.d` are what is put into places.
fn operation(world: &World, (act, first, second): &Act) -> Vec<OsString> {
    let (at, other) = (place(world, *first), place(world, *second));
    let (file, directory) = (world.project("evil"), world.project("evil.d"));
    match act {
        0 => op!["overwrite", &at],
        1 => op!["append", &at],
        2 => op!["truncate", &at],
        3 => op!["rename", &file, &at],
        4 => op!["rename", &directory, &at],
        5 => op!["link", &file, &at],
        6 => op!["symlink", &directory, &at],
        7 => op!["rename", &at, &other],
        8 => op!["exchange", &at, &directory],
        9 => op!["unlink", &at],
        10 => op!["mkdir", &at],
        _ => op!["chmod", &at, "511"],
    }
}

/// Everything that git would run or obey in the repositories of this world, and what is in it. Not
/// by repository: one that is destroyed is none any more, and git takes the one around it.
fn executes(world: &World) -> BTreeSet<String> {
    let script = r#"export GIT_CEILING_DIRECTORIES=$PWD/..
        look() {
            cd $1 2>/dev/null && git rev-parse --absolute-git-dir >/dev/null 2>&1 || return 0
            git config --list --local | grep -Ei \
                '^(alias|core.(hookspath|fsmonitor|pager|editor|sshcommand)|filter|include|diff)' \
                || true
            git config --list --worktree 2>/dev/null | grep -Ei '^(alias|core.hooks|core.fsm)' \
                || true
            for f in "$(git rev-parse --git-path hooks)"/*; do
                if [ -x $f ] && [ -f $f ]; then echo "$(basename $f): $(sha256sum < $f)"; fi
            done
            for f in info/attributes objects/info/alternates rebase-merge/git-rebase-todo; do
                k=$(git rev-parse --git-path $f)
                if [ -f $k ]; then echo "$f: $(sha256sum < $k)"; fi
            done
            echo "common: $(git rev-parse --path-format=absolute --git-common-dir)"
        }
        for d in . sub nested ../tree store.git; do (look $d); done"#;
    let lines = host(world, &world.project(""), script).lines;
    lines.into_iter().collect()
}

#[test]
fn git_runs_nothing_new() {
    for_each_user(binaries!(), |world| {
        let mut runner = TestRunner::new(Config {
            cases: REPOSITORIES,
            failure_persistence: None,
            max_shrink_iters: 20,
            ..Config::default()
        });
        let strategy = (
            any_acts(),
            proptest::collection::vec(any::<bool>(), PARTS.len()),
        );
        let canary = world.outside("ran");
        let changed = Cell::new(0);
        let tried = runner.run(&strategy, |(acts, parts)| {
            let chosen: Vec<&str> = PARTS
                .iter()
                .zip(&parts)
                .filter(|(_, chosen)| **chosen)
                .map(|(part, _)| *part)
                .collect();
            let prepare = format!(
                "rm -rf ../library ../tree; find . -mindepth 1 -delete
                 git config --global user.email a@b.c; git config --global user.name n
                 git config --global init.defaultBranch main
                 git config --global protocol.file.allow always
                 git init -q .; git commit -q --allow-empty -m one; {}
                 printf '#!/bin/sh\\ntouch {}\\n' > evil; chmod +x evil; mkdir -p evil.d/hooks
                 cp evil evil.d/pre-commit; cp evil evil.d/hooks/pre-commit
                 printf '[core]\\n fsmonitor = '$PWD/evil'\\n hooksPath = '$PWD'\\n' > evil.d/config",
                chosen.join("\n"),
                canary.display(),
            );
            host(world, &world.project(""), &prepare);
            world.own();
            let before = executes(world);
            let mut script: Vec<OsString> = Vec::new();
            for act in &acts {
                if !script.is_empty() {
                    script.push(",".into());
                }
                script.extend(operation(world, act));
            }
            let done = world.inside(&level(world, "write"), &script);
            prop_assert!(done.status == 0, "{} {}", done.status, done.stderr);
            let succeeded = done.lines.iter().filter(|line| *line == "ok").count();
            changed.set(changed.get() + succeeded);
            let after = executes(world);
            let new: Vec<&String> = after.difference(&before).collect();
            prop_assert!(new.is_empty(), "git would run or obey: {new:?}");
            let _ = world
                .command("bash")
                .args(["-c", "for d in . sub nested ../tree; do git -C $d status; git -C $d commit \
                              --allow-empty -m h; git -C $d checkout -b h; done"])
                .output();
            prop_assert!(!canary.try_exists().unwrap(), "something of the session's ran");
            Ok(())
        });
        if let Err(failure) = tried {
            panic!("{failure}");
        }
        let changed = changed.get();
        assert!(changed > 0, "no operation succeeded, so nothing was tried");
        say(&format!(
            "{REPOSITORIES} repositories, {changed} operations that succeeded inside"
        ));
        let _ = fs::remove_file(canary);
    });
}
