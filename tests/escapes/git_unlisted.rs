//! 31, 35, 37: repositories in directories that one session has made unreadable, or look like something
//! else, so that the next one would not find them.

use std::fs;

use ringfence_testkit::{Who, World, binaries, for_each_user, is_root, not_run};

use super::git_metadata::{host, inside, level};

const HOOK: &str = "vendor/sub/.git/hooks/post-checkout";

/// A repository two directories down, whatever was there before.
fn repository(world: &World) {
    let script =
        "chmod -R u+rwX .; find . -mindepth 1 -delete; git init -q .; git init -q vendor/sub
                  git -C vendor/sub config a.b told";
    host(world, &world.project(""), script);
}

/// Closes it in one session and writes a hook in the next one, first on the host.
fn attack(world: &World, level_name: &str, close: &str) {
    let open = "chmod 755 vendor; chmod 755 vendor/sub; chmod 755 vendor/sub/.git";
    let write =
        format!("cat vendor/sub/.git/config; echo evil > {HOOK}; {open}; echo evil > {HOOK}; true");
    let hook = world.project(HOOK);
    repository(world);
    host(
        world,
        &world.project(""),
        &format!("{close}; {open}; echo evil > {HOOK}"),
    );
    assert!(hook.try_exists().unwrap(), "{close}");

    repository(world);
    let setup = level(world, level_name);
    // Whoever keeps the supervisor from looking may be ended, and has done it by then.
    inside(world, &setup, close);
    let done = inside(world, &setup, &write);
    done.assert_status(0);
    assert!(
        level_name != "hidden" || !done.text().contains("told"),
        "{close}: {}",
        done.text()
    );
    let moved = inside(
        world,
        &setup,
        "mv vendor vendor.old || mv vendor/sub vendor/old",
    );
    assert_ne!(moved.status, 0, "{close}");
    host(world, &world.project(""), open);
    assert!(!hook.try_exists().unwrap(), "{level_name}: {close}");
}

#[test]
fn what_cannot_be_listed_is_closed() {
    for_each_user(binaries!(), |world| {
        for level_name in ["hidden", "read", "write"] {
            for close in [
                // Entered and not listed, listed and not entered, neither.
                "chmod 0300 vendor",
                "chmod 0600 vendor",
                "chmod 0 vendor",
                "chmod 0100 vendor/sub",
            ] {
                attack(world, level_name, close);
            }
        }
    });
}

/// Three names make a bare repository of any directory, which holds what it held before.
#[test]
fn a_decoy_hides_no_repository() {
    for_each_user(binaries!(), |world| {
        let decoy = "mkdir vendor/objects vendor/refs; echo 'ref: refs/heads/main' > vendor/HEAD";
        for level_name in ["hidden", "read", "write"] {
            attack(world, level_name, decoy);
        }
    });
}

/// What a repository without a working tree is known by stays where it is, and nothing is put beside it
/// that it would be taken for instead.
#[test]
fn a_bare_repository_is_one_in_the_next_session_too() {
    for_each_user(binaries!(), |world| {
        let files =
            ["hooks/post-update", "config"].map(|file| world.project("store.git").join(file));
        let write = "echo evil > store.git/hooks/post-update; echo evil >> store.git/config; true";
        let changed = || {
            let hook = files[0].try_exists().unwrap();
            hook || fs::read_to_string(&files[1]).unwrap().contains("evil")
        };
        let setup = level(world, "write");
        for (hide, show) in [
            (
                "mv store.git/HEAD store.git/H",
                "mv store.git/H store.git/HEAD",
            ),
            (
                "mv store.git/refs store.git/r",
                "mv store.git/r store.git/refs",
            ),
            (
                "mv store.git/objects store.git/o",
                "mv store.git/o store.git/objects",
            ),
            ("mkdir store.git/.git", "rmdir store.git/.git"),
            ("mv store.git other", "mv other store.git"),
        ] {
            let fresh = "rm -rf store.git other; git init -q --bare store.git";
            host(world, &world.project(""), fresh);
            host(
                world,
                &world.project(""),
                &format!("{hide}; {show}; {write}"),
            );
            assert!(changed(), "{hide}");

            host(world, &world.project(""), fresh);
            assert_ne!(inside(world, &setup, hide).status, 0, "{hide}");
            inside(world, &setup, write).assert_status(0);
            host(world, &world.project(""), &format!("{show} 2>&1 || true"));
            assert!(!changed(), "{hide}");
        }
        let push = "git init -q a && cd a && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x &&
             git push -q ../store.git HEAD:refs/heads/main && git -C ../store.git rev-parse main";
        inside(world, &setup, push).assert_status(0);
    });
}

/// A project that has become one says what to do about it.
#[test]
fn a_project_that_looks_like_a_repository_is_refused_with_the_way_out() {
    for_each_user(binaries!(), |world| {
        let decoy = "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD";
        // A session makes none: see `git_obeys`.
        host(world, &world.project(""), decoy);
        let refused = inside(world, &level(world, "hidden"), "true");
        refused.assert_status(125);
        let why = "looks like a bare repository";
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        inside(world, &level(world, "read"), "true").assert_status(0);
        host(world, &world.project(""), "rm HEAD");
        inside(world, &level(world, "hidden"), "true").assert_status(0);
    });
}

/// What belongs to somebody else can be closed without being anybody's trick.
#[test]
fn a_project_with_a_closed_directory_can_be_used() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let theirs = world.project("theirs");
        host(world, &world.project(""), "mkdir -m 0 theirs");
        if !is_root() {
            not_run("root, for a directory that is somebody else's");
        } else if world.who() == Who::Plain {
            std::os::unix::fs::chown(&theirs, Some(0), Some(0)).unwrap();
        }
        let work = "echo x > file && ls && echo y > vendor/sub/file";
        let done = inside(world, &level(world, "hidden"), work);
        done.assert_status(0);
        assert!(done.text().contains("theirs"), "{}", done.text());
        fs::remove_dir(&theirs).unwrap();
    });
}

/// Linked working trees that nobody can tell one by one: where they share their files is not changed.
#[test]
fn working_trees_that_cannot_be_told_stay_as_they_are() {
    for_each_user(binaries!(), |world| {
        let canary = world.outside("ran");
        let prepare = format!(
            "chmod -R u+rwX .; find . -mindepth 1 -delete; rm -rf ../tree ../outside/ran
             git config --global user.email a@b.c; git config --global user.name n
             git init -q .; git commit -q --allow-empty -m one; git worktree add -q ../tree
             printf '#!/bin/sh\\ntouch {}\\n' > evil; chmod +x evil",
            canary.display()
        );
        let plant = "chmod 755 .git/worktrees; git init -q --bare evil.git
            git --git-dir evil.git config core.fsmonitor $PWD/evil
            { echo ../../../evil.git > .git/worktrees/tree/commondir; } 2>/dev/null; true";
        let later = "git -C ../tree status >/dev/null 2>&1 || true";
        for close in [
            "chmod 0300 .git/worktrees",
            "chmod 0600 .git/worktrees",
            "mkdir .git/worktrees/d{0..2999}",
        ] {
            host(world, &world.project(""), &prepare);
            host(
                world,
                &world.project(""),
                &format!("{close}; {plant}; {later}"),
            );
            assert!(canary.try_exists().unwrap(), "harmless: {close}");

            host(world, &world.project(""), &prepare);
            inside(world, &level(world, "write"), close);
            let work = format!("{plant}; touch x && git add x && git commit -qm inside");
            inside(world, &level(world, "write"), &work).assert_status(0);
            host(
                world,
                &world.project(""),
                &format!("chmod 755 .git/worktrees; {later}"),
            );
            assert!(!canary.try_exists().unwrap(), "{close}");
        }
    });
}

/// Directories that git takes for repositories although they do not look like one at first.
#[test]
fn what_git_takes_for_a_repository_is_one() {
    for_each_user(binaries!(), |world| {
        let canary = world.outside("ran");
        let prepare = format!(
            "chmod -R u+rwX .; find . -mindepth 1 -delete; rm -f ../outside/ran
             printf '#!/bin/sh\\ntouch {}\\n' > evil; chmod +x evil
             git init -q --bare store; mkdir -p e/w y; cp store/HEAD e",
            canary.display()
        );
        let plant = "text='[core]\nrepositoryformatversion=0\nbare=false\nworktree=%s\nfsmonitor=%s\n[extensions]\nworktreeConfig=true\n'
            for f in e/config y/config e/config.worktree; do printf \"$text\" $PWD/e/w $PWD/evil > $f; done 2>/dev/null; true";
        let later = "git -C e/w status >/dev/null 2>&1 || true";
        for kind in [
            "ln -s ../store/objects ../store/refs e",
            "touch e/objects e/refs; chmod +x e/objects e/refs",
            "echo ../y > e/commondir; cp -r store/objects store/refs y",
        ] {
            host(
                world,
                &world.project(""),
                &format!("{prepare}; {kind}; {plant}; {later}"),
            );
            assert!(canary.try_exists().unwrap(), "harmless: {kind}");
            for level_name in ["hidden", "read", "write"] {
                host(world, &world.project(""), &format!("{prepare}; {kind}"));
                inside(world, &level(world, level_name), plant);
                host(world, &world.project(""), later);
                assert!(!canary.try_exists().unwrap(), "{level_name}: {kind}");
            }
        }
    });
}

/// Hooks that a nested repository has behind a link: whoever can exchange the link has the hooks.
#[test]
fn hooks_behind_a_link_are_refused() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let prepare = "mkdir hk; ln -s hk lk; git -C vendor/sub config core.hooksPath ../../lk";
        let write = "echo evil > hk/post-checkout";
        host(
            world,
            &world.project(""),
            &format!("{prepare}; {write}; rm hk/*"),
        );
        for level_name in ["hidden", "read", "write"] {
            let refused = inside(world, &level(world, level_name), write);
            refused.assert_status(125);
            let why = "protected by name, but a link leads to";
            assert!(refused.stderr.contains(why), "{}", refused.stderr);
        }
        host(world, &world.project(""), "rm lk; mv hk lk");
        let denied = inside(
            world,
            &level(world, "hidden"),
            "echo evil > lk/post-checkout",
        );
        assert_ne!(denied.status, 0);
        assert_eq!(fs::read_dir(world.project("lk")).unwrap().count(), 0);
    });
}
