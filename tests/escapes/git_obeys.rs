//! 31, 35, 36, 42: what git obeys besides the usual files: a directory that is made a repository, and
//! whatever a configuration names, wherever it lies.

use ringfence_testkit::{Setup, World, binaries, case, denied, for_each_user, op};

use super::git_metadata::{host, inside, level};

/// Empties the project and what is beside it, and leaves `evil`, a program that leaves the canary.
const FRESH: &str = "find . ../given ../tree -mindepth 1 -delete 2>/dev/null || true
    mkdir -p ../given ../tree; rm -f CANARY ~/.gitconfig
    git config --global user.email a@b.c; git config --global user.name n
    git config --global protocol.file.allow always; git config --global init.defaultBranch main
    printf '#!/bin/sh\\ntouch CANARY\\n' > evil; chmod +x evil; ";

/// Writes something, on the host and then inside, with what the user does later on the host.
#[track_caller]
fn attack(world: &World, setup: &Setup, prepare: &str, plant: &str, later: &str) {
    let canary = world.outside("ran");
    let ran = || canary.try_exists().unwrap();
    let script = |text: &str| text.replace("CANARY", canary.to_str().unwrap());
    let at = |script: &str| host(world, &world.project(""), script);
    let later = format!("{{ {later}; }} >/dev/null 2>&1 </dev/null || true");
    let prepare = script(&format!("{FRESH}{prepare}"));
    at(&prepare);
    at(&later);
    assert!(!ran(), "obeyed without being written: {prepare}");
    at(&script(&format!("set +e; {plant}; true")));
    at(&later);
    assert!(ran(), "harmless: {plant}");
    at(&prepare);
    inside(world, setup, &script(plant));
    at(&later);
    assert!(!ran(), "{plant}");
}

/// A repository of the directory where this runs, without a `.git`.
const BARE: &str = "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD
    printf '[core]\\nrepositoryformatversion=0\\nbare=false\\nworktree=.\\nfsmonitor=touch CANARY;false\\n' > config";

/// The same with its parts elsewhere.
const COMMON: &str =
    "mkdir -p c/objects c/refs; echo c > commondir; echo 'ref: refs/heads/main' > HEAD
    printf '[core]\nrepositoryformatversion=1\n[extensions]\nworktreeConfig=true\n' > c/config
    printf '[core]\nbare=false\nworktree=.\nfsmonitor=touch CANARY;false\n' > config.worktree";

/// Git looks for one where there is no `.git`, or one that is none any more.
#[test]
fn no_project_becomes_a_repository_itself() {
    for_each_user(binaries!(), |world| {
        for level_name in ["hidden", "read", "write"] {
            let setup = level(world, level_name);
            for plant in [BARE, COMMON] {
                attack(world, &setup, "true", plant, "git status");
            }
            for named in [
                "echo text > HEAD",
                "mkdir HEAD objects",
                "echo x > HEAD; mkdir refs",
            ] {
                let plant = format!("rm -rf HEAD; {BARE}");
                attack(world, &setup, named, &plant, "git status");
                let plant = format!("rm -rf HEAD; {COMMON}");
                attack(world, &setup, named, &plant, "git status");
            }
        }
        let broken = format!("mv .git/HEAD .git/HX; {BARE}");
        attack(
            world,
            &level(world, "write"),
            "git init -q .",
            &broken,
            "git status",
        );
        let nested = format!("cd sub; {broken}");
        let later = "cd sub; git status";
        attack(
            world,
            &level(world, "write"),
            "git init -q sub",
            &nested,
            later,
        );
    });
}

/// A file or directory called `HEAD` is one like any other, and so is `refs` without it.
#[test]
fn what_a_project_has_of_a_repository_can_be_used() {
    for_each_user(binaries!(), |world| {
        let work = "set -e; echo new > HEAD/file || echo new > HEAD; mkdir -p objects/x; rm -rf HEAD objects";
        for has in ["echo old > HEAD", "mkdir HEAD", "mkdir HEAD refs"] {
            host(
                world,
                &world.project(""),
                &format!("rm -rf HEAD objects refs; {has}"),
            );
            if has != "mkdir HEAD refs" {
                inside(world, &level(world, "hidden"), work).assert_status(0);
            }
        }
        let setup = level(world, "hidden");
        host(world, &world.project(""), "rm -rf HEAD objects refs");
        inside(world, &setup, "mkdir objects refs && echo x > refs/y").assert_status(0);
        // At level `full` it is the user's word.
        inside(world, &level(world, "full"), "echo x > HEAD").assert_status(0);
    });
}

/// Nor does a directory that was given, whether or not it is a working tree.
#[test]
fn no_given_directory_becomes_one() {
    for_each_user(binaries!(), |world| {
        for level_name in ["hidden", "write"] {
            let setup = giving(world, level_name, "given");
            let later = "cd ../given; git status";
            for plant in [BARE, COMMON] {
                attack(
                    world,
                    &setup,
                    "true",
                    &format!("cd ../given; {plant}"),
                    later,
                );
            }
        }
        let setup = giving(world, "write", "given");
        let plant = format!("cd ../given; mv .git/HEAD .git/HX; {BARE}");
        attack(
            world,
            &setup,
            "git init -q ../given",
            &plant,
            "cd ../given; git status",
        );
    });
}

fn giving(world: &World, level: &str, name: &str) -> Setup {
    let given = world.path(name);
    std::fs::create_dir_all(&given).unwrap();
    world.own();
    let keys = format!(r#""git": "{level}""#);
    world.setup().settings(world.settings(&keys, &[&given]))
}

const MONITOR: &str = "printf '[core]\\nfsmonitor=touch CANARY;false\\n'";

/// At level `write` a git directory may be written, and its configuration may name what is in it.
#[test]
fn what_a_configuration_names_in_a_git_directory_stays() {
    for_each_user(binaries!(), |world| {
        let setup = level(world, "write");
        let init = "git init -q .; git commit -q --allow-empty -m one; ";
        let commit = "git commit --allow-empty -m x";
        for (named, plant, later) in [
            (
                "git config include.path more/config",
                format!("mkdir .git/more; {MONITOR} > .git/more/config"),
                "git status",
            ),
            (
                "git config core.hooksPath .git/own",
                "mkdir .git/own; cp evil .git/own/post-commit".to_owned(),
                commit,
            ),
            (
                "mkdir .git/own; echo true > .git/own/monitor; chmod +x .git/own/monitor
                 git config core.fsmonitor .git/own/monitor",
                "cp evil .git/own/monitor".to_owned(),
                "git status",
            ),
            // Hooks among everything else.
            (
                "git config core.hooksPath .git",
                "cp evil .git/post-commit".to_owned(),
                commit,
            ),
            (
                "git config core.hooksPath \"$PWD\"",
                "cp evil post-commit".to_owned(),
                commit,
            ),
        ] {
            attack(world, &setup, &format!("{init}{named}"), &plant, later);
        }
        // That of a submodule, and of a repository inside.
        let inner = "git init -q sub; git -C sub commit -q --allow-empty -m one
            git -C sub config include.path more/config; ";
        let plant = format!("mkdir sub/.git/more; {MONITOR} > sub/.git/more/config");
        attack(world, &setup, inner, &plant, "cd sub; git status");
        let module = format!(
            "{init}git init -q ../given; git -C ../given commit -q --allow-empty -m one
             git submodule --quiet add ../given sub; git -C sub config include.path more/config"
        );
        let plant =
            format!("mkdir .git/modules/sub/more; {MONITOR} > .git/modules/sub/more/config");
        attack(world, &setup, &module, &plant, "cd sub; git status");
    });
}

/// The git directory of a linked working tree is elsewhere, and so is that of a submodule in one.
#[test]
fn what_other_working_trees_obey_stays() {
    for_each_user(binaries!(), |world| {
        let main = "git init -q ../given; git -C ../given commit -q --allow-empty -m one
            rm -rf ../project/* ../project/.git; git -C ../given config include.path more/config
            mv ../project ../p.old; git -C ../given worktree add -q ../project; cp ../p.old/* . 2>/dev/null || true";
        // The project's directory has to stay the same: it is where this runs.
        let main = main.replace("mv ../project ../p.old; git -C ../given worktree add -q ../project; cp ../p.old/* . 2>/dev/null || true",
            "git -C ../given worktree add -q ../tree/x; cp ../tree/x/.git .git; rm -rf ../tree/x
             pwd | sed 's,$,/.git,' > ../given/.git/worktrees/x/gitdir");
        let plant = format!("mkdir ../given/.git/more; {MONITOR} > ../given/.git/more/config");
        let setup = level(world, "write");
        attack(world, &setup, &main, &plant, "cd ../given; git status");

        let submodule = "git init -q ../given; git -C ../given commit -q --allow-empty -m one
            git init -q .; git commit -q --allow-empty -m one; git worktree add -q ../tree/x
            cd ../tree/x; git submodule --quiet add ../../given sub 2>/dev/null || git submodule --quiet add $PWD/../../given sub";
        let plant = "for d in .git/worktrees/x/modules/sub; do mkdir -p $d/hooks; cp evil $d/hooks/post-commit; done";
        let later = "cd ../tree/x/sub; git commit --allow-empty -m x";
        attack(world, &setup, submodule, plant, later);
    });
}

/// What a configuration names in a directory that was given, and is no part of the repository.
#[test]
fn what_a_configuration_names_in_a_given_directory_stays() {
    for_each_user(binaries!(), |world| {
        let commit = "git commit --allow-empty -m x";
        let hook = "mkdir ../given/hooks; cp evil ../given/hooks/post-commit";
        for level_name in ["hidden", "read", "write"] {
            let setup = giving(world, level_name, "given");
            for (named, plant, later) in [
                ("git config core.hooksPath ../given/hooks", hook, commit),
                (
                    "git config --global core.hooksPath $(realpath ../given)/hooks",
                    hook,
                    commit,
                ),
                (
                    "git config core.hooksPath ../given",
                    "cp evil ../given/post-commit",
                    commit,
                ),
                (
                    "git config include.path ../../given/team.conf",
                    &format!("{MONITOR} > ../given/team.conf"),
                    "git status",
                ),
            ] {
                let prepare = format!("git init -q .; {named}");
                attack(world, &setup, &prepare, plant, later);
            }
        }
        // Whoever gives the very directory of the hooks by name as a protected one means it.
        let keys = r#""git": "hidden", "protect": {"allow": ["own"]}"#;
        host(
            world,
            &world.project(""),
            "git init -q .; git config core.hooksPath own; mkdir own",
        );
        let hook = [case(
            op!["create", world.project("own/post-commit")],
            "ok",
            "ok",
        )];
        world.check_confined(&world.setup_with(keys), &hook);
    });
}

/// Programs, and directories of programs, that few configurations name.
#[test]
fn what_few_configurations_name_stays() {
    for_each_user(binaries!(), |world| {
        let setup = level(world, "hidden");
        let template = "mkdir -p tpl/hooks; git config --global init.templateDir \"$PWD/tpl\"";
        let plant = "cp evil tpl/hooks/post-commit";
        let later = "git init -q ../tree/new; git -C ../tree/new commit -q --allow-empty -m x";
        attack(world, &setup, template, plant, later);
        let attributes = "git init -q .; git config core.attributesFile far/attributes
            git config filter.x.clean \"touch CANARY; cat\"";
        let plant = "mkdir far; echo '* filter=x' > far/attributes";
        attack(
            world,
            &setup,
            attributes,
            plant,
            "echo x > file; git add file",
        );
        let prepare = "git init -q .; mkdir tools; echo x > tools/program
            git config lfs.customtransfer.x.path ./tools/program";
        host(world, &world.project(""), prepare);
        let program = [denied(
            op!["write", world.project("tools/program")],
            "EROFS",
        )];
        world.control(&program);
        world.check_confined(&setup, &program);
    });
}

/// Nobody knows what a configuration says that is too long to be read.
#[test]
fn a_configuration_that_cannot_be_read_is_refused() {
    for_each_user(binaries!(), |world| {
        let long = "head -c 1100000 /dev/zero | tr '\\0' '#'";
        let hooks = "git config core.hooksPath own";
        let plant = "mkdir own; cp evil own/post-commit";
        let commit = "git commit --allow-empty -m x";
        let many = "for i in $(seq 300); do echo > ../given/$i; git config --add include.path $PWD/../given/$i; done";
        for prepare in [
            format!("git init -q .; {hooks}; {long} >> .git/config"),
            format!(
                "git init -q .; git config include.path more; {long} > .git/more; echo >> .git/more
                     printf '[core]\\nhooksPath=own\\n' >> .git/more"
            ),
            format!("git init -q .; {hooks}; {long} >> ~/.gitconfig"),
            format!("git init -q .; {many}; {hooks}"),
        ] {
            for level_name in ["hidden", "write"] {
                attack(world, &level(world, level_name), &prepare, plant, commit);
                let done = inside(world, &level(world, level_name), "echo ran");
                done.assert_status(125);
                assert!(
                    done.stderr.contains("too long to be read"),
                    "{}",
                    done.stderr
                );
            }
            let done = inside(world, &level(world, "full"), "echo ran");
            assert_eq!(done.text(), "ran", "{}", done.stderr);
        }
    });
}

/// What leads Mercurial, Sapling and Jujutsu to another repository, where there is one.
#[test]
fn pointers_of_other_version_control_stay() {
    for_each_user(binaries!(), |world| {
        let make = |script: &str| host(world, &world.project(""), script);
        let files = "mkdir -p .hg .sl .jj; echo store > .hg/requires; echo store > .sl/requires; echo ../x > .jj/repo";
        make(files);
        let at = |name: &str| world.project(name);
        let refused = [
            denied(op!["write", at(".hg/requires")], "EROFS"),
            denied(op!["create", at(".hg/sharedpath")], "EROFS"),
            denied(op!["write", at(".sl/requires")], "EROFS"),
            denied(op!["create", at(".sl/sharedpath")], "EROFS"),
            denied(op!["write", at(".jj/repo")], "EROFS"),
        ];
        world.control(&refused);
        make(&format!("rm .hg/sharedpath .sl/sharedpath; {files}"));
        world.check_confined(&level(world, "write"), &refused);
        make("rm -rf .jj; mkdir -p .jj/repo/store; echo ../../../.git > .jj/repo/store/git_target");
        let target = [denied(
            op!["write", at(".jj/repo/store/git_target")],
            "EROFS",
        )];
        world.control(&target);
        world.check_confined(&level(world, "write"), &target);
        // Where there is none, one can be made, but for where it leads.
        make("rm -rf .hg .sl .jj");
        let init = "mkdir .hg .sl && echo store > .hg/requires && echo store > .sl/requires && mkdir -p .jj/repo/store \
                    && echo x > .jj/repo/store/git_target && ! echo x 2>/dev/null > .hg/sharedpath";
        inside(world, &level(world, "hidden"), init).assert_status(0);
    });
}
