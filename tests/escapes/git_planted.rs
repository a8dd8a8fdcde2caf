//! 31, 43: what a session leaves in a git directory for the host's git, which runs nothing at that
//! moment: it is obeyed when the user pushes or goes on with something later.

use std::fs;
use std::path::PathBuf;

use ringfence_testkit::{World, binaries, for_each_user};

use super::git_metadata::{host, inside, level};

/// A program that leaves the canary, as `evil`, and a repository with two branches that conflict.
fn repository(world: &World) -> PathBuf {
    let canary = world.outside("ran");
    let script = format!(
        "find . -mindepth 1 -delete
         git config --global user.email a@b.c; git config --global user.name n
         git init -q -b main .; git commit -q --allow-empty -m one; git branch topic
         echo a > a; git add a; git commit -qm two
         git switch -q topic; echo b > a; git add a; git commit -qm three
         printf '#!/bin/sh\\ntouch {}\\n' > evil; chmod +x evil",
        canary.display()
    );
    host(world, &world.project(""), &script);
    let _ = fs::remove_file(&canary);
    canary
}

/// Leaves something on the host, where what the user does later runs the canary; then inside.
#[track_caller]
fn attack(world: &World, plant: &str, later: &str) {
    let later = format!("{{ {later}; }} >/dev/null 2>&1 </dev/null || true");
    let canary = repository(world);
    host(world, &world.project(""), plant);
    assert!(!canary.try_exists().unwrap(), "too early: {plant}");
    host(world, &world.project(""), &later);
    assert!(canary.try_exists().unwrap(), "harmless: {plant}");

    let canary = repository(world);
    inside(world, &level(world, "write"), plant);
    host(world, &world.project(""), &later);
    assert!(!canary.try_exists().unwrap(), "{plant}");
}

/// Files from before remotes were a part of the configuration.
#[test]
fn no_push_leads_elsewhere() {
    for_each_user(binaries!(), |world| {
        let bare = "git init -q --bare sub/ev; cp evil sub/ev/hooks/pre-receive";
        for (file, text) in [
            ("remotes", "URL: $PWD/sub/ev\nPush: refs/heads/topic\n"),
            ("branches", "$PWD/sub/ev#topic\n"),
        ] {
            let plant =
                format!("{bare}; mkdir -p .git/{file}; printf \"{text}\" > .git/{file}/origin");
            attack(world, &plant, "git push origin");
        }
    });
}

/// A pick that was begun, whose merge strategy is a program of the project: `git` puts `git-merge-`
/// before its name, and what has a slash in it is not looked for on the search path.
#[test]
fn no_pick_goes_on_with_another_program() {
    for_each_user(binaries!(), |world| {
        let begun = "mkdir git-merge-x; cp evil git-merge-x/evil; mkdir .git/sequencer
            git rev-parse HEAD > .git/sequencer/head
            for i in 1 2; do echo pick $(git rev-parse main) two; done > .git/sequencer/todo
            printf '[options]\\n\\tstrategy = x/evil\\n' > .git/sequencer/opts";
        attack(world, begun, "git cherry-pick --continue");
        // Whoever only picks can, also several at once.
        repository(world);
        let pick = "set -e; git switch -q main; for i in x y; do echo $i > $i; git add $i
            git commit -qm $i; done; git switch -qc other HEAD~2; git cherry-pick main~1 main
            GIT_EDITOR=true git revert HEAD HEAD~1; git revert --no-edit HEAD";
        inside(world, &level(world, "write"), pick).assert_status(0);
    });
}
