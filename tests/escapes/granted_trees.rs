//! 31, 32, 36: a directory beside the project that was given for writing and is a repository. What
//! git or an editor would run there later is as safe as in the project.

use std::fs;
use std::path::PathBuf;

use ringfence_core::plan::Step;
use ringfence_testkit::{Case, Setup, World, binaries, case, denied, for_each_user, op};

use super::git_metadata::{host, inside, level as git_level};

/// A repository beside the project with hooks of its own, an editor's settings, a submodule and a linked working
/// tree; and a bare one.
fn repository(world: &World) -> PathBuf {
    let tree = world.path("granted");
    fs::create_dir_all(tree.join("src")).unwrap();
    fs::write(tree.join("src/file"), "x").unwrap();
    world.own();
    let script = "git config --global user.email a@b.c; git config --global user.name n
        git config --global protocol.file.allow always
        git init -q ../part; git -C ../part commit -q --allow-empty -m one
        git init -q .; git add .; git commit -qm one
        git submodule --quiet add ../part part; git commit -qm part
        git worktree add -q ../linked
        mkdir .vscode githooks; echo '{}' > .vscode/tasks.json
        git config core.hooksPath githooks
        git init -q --bare ../store.git";
    host(world, &tree, script);
    tree
}

fn given(world: &World, level: &str, tree: &str) -> Setup {
    let keys = format!(r#""git": "{level}""#);
    let settings = world.settings(&keys, &[&world.path(tree)]);
    world.setup().settings(settings)
}

/// What is refused in the tree itself at every level but `full`, and can be done where nothing holds it.
fn planted(world: &World) -> Vec<Case> {
    let at = |name: &str| world.path("granted").join(name);
    let hook = at(".git/modules/part/hooks/post-checkout");
    vec![
        denied(op!["write", at(".vscode/tasks.json")], "EROFS"),
        denied(op!["create", at(".envrc")], "EROFS"),
        denied(op!["create", at("githooks/pre-commit")], "EROFS"),
        denied(op!["create", hook], "EROFS"),
    ]
}

/// Undoes a control.
fn take_away(world: &World) {
    for name in [
        ".envrc",
        "githooks/pre-commit",
        ".git/modules/part/hooks/post-checkout",
    ] {
        let _ = fs::remove_file(world.path("granted").join(name));
    }
}

#[test]
fn what_runs_later_in_a_given_repository_stays() {
    for_each_user(binaries!(), |world| {
        let tree = repository(world);
        let cases = planted(world);
        world.control(&cases);
        take_away(world);
        let files = [case(op!["write", tree.join("src/file")], "ok", "ok")];
        for level in ["read", "write"] {
            let setup = given(world, level, "granted");
            world.check_confined(&setup, &cases);
            world.check_confined(&setup, &files);
        }
        let full = given(world, "full", "granted");
        world.check_confined(&full, &cases[..2]);
        let hook = op!["create", tree.join(".git/hooks/pre-push")];
        world.check_confined(&full, &[case(hook, "ok", "ok")]);
        // Each is held by one thing: the mounts, and the supervisor where there is nothing to mount over.
        let setup = given(world, "write", "granted");
        let without = |step| setup.clone().without(step);
        world.mutation(&without(Step::Names), &cases[1..2]);
        take_away(world);
    });
}

#[test]
fn git_levels_are_about_a_given_repository_too() {
    for_each_user(binaries!(), |world| {
        let tree = repository(world);
        let commit = "cd ../granted && echo y > src/file && git commit -qam two && echo committed";
        for level in ["hidden", "read"] {
            let done = inside(world, &given(world, level, "granted"), commit);
            assert_ne!(done.status, 0, "{level}: {}", done.text());
        }
        let setup = given(world, "write", "granted");
        let done = inside(world, &setup, commit);
        assert_eq!(done.text(), "committed", "{}", done.stderr);
        let knobs = "cd ../granted
            for f in .git/config .git/hooks/pre-commit .git/info/attributes; do
                { echo x >> $f; } 2>/dev/null && echo \"wrote $f\"; done
            mv .git moved 2>/dev/null && echo moved; git config core.pager x 2>/dev/null && echo set
            ln -s /etc/passwd .git/COMMIT_EDITMSG2 2>/dev/null && echo linked; true";
        let hook = "echo x > .git/hooks/pre-commit && rm .git/hooks/pre-commit";
        host(world, &tree, hook);
        let done = inside(world, &setup, knobs);
        assert_eq!(done.text(), "", "{}", done.stderr);
        let there = "test \"$(git log -1 --format=%s)\" = two && ! test -e .git/hooks/pre-commit";
        host(world, &tree, there);
        // Hidden is hidden: nothing of it is read.
        let look = "cat ../granted/.git/HEAD ../granted/.git/config 2>/dev/null; true";
        let done = inside(world, &given(world, "hidden", "granted"), look);
        assert_eq!(done.text(), "", "{}", done.stderr);
    });
}

/// Its git directory is elsewhere, and may be used because both know each other.
#[test]
fn a_given_working_tree_brings_its_git_directory() {
    for_each_user(binaries!(), |world| {
        let tree = repository(world);
        let commit = "cd ../linked && git commit -q --allow-empty -m three && echo committed
            for f in .git ../granted/.git/hooks/pre-commit ../granted/.git/config; do
                { echo x >> $f; } 2>/dev/null && echo \"wrote $f\"; done; true";
        let done = inside(world, &given(world, "write", "linked"), commit);
        assert_eq!(done.text(), "committed", "{}", done.stderr);
        let done = inside(world, &given(world, "read", "linked"), commit);
        assert_eq!(done.text(), "", "{}", done.stderr);
        host(
            world,
            &tree,
            "test \"$(git log -1 --format=%s linked)\" = three",
        );
    });
}

/// A project's file gives nothing, and what it names is not looked at either.
#[test]
fn a_project_gives_itself_no_repository() {
    for_each_user(binaries!(), |world| {
        let tree = repository(world);
        let at = |name: &str| tree.join(name);
        let cases = [
            denied(op!["create", at(".git/hooks/post-commit")], "EROFS"),
            denied(op!["create", at(".git/refs/heads/x")], "EROFS"),
            denied(op!["write", at(".vscode/tasks.json")], "EROFS"),
            denied(op!["write", at("src/file")], "EROFS"),
        ];
        world.control(&cases);
        for name in [".git/hooks/post-commit", ".git/refs/heads/x"] {
            fs::remove_file(at(name)).unwrap();
        }
        for keys in [
            r#""terminal": {"sandbox": {"additional_read_write_paths": [TREE]}}"#,
            r#""agent": {"sandbox_permissions": {"write_paths": [TREE]}}"#,
            r#""terminal": {"sandbox": {"system_paths": {"read_write": [TREE]}}}"#,
            r#""agent": {"sandbox_permissions": {"write_paths": [TREE]}}, "protect": {"allow": [".vscode"]}"#,
        ] {
            let keys = keys.replace("TREE", &format!("{tree:?}"));
            for level in ["write", "full"] {
                let mut setup = git_level(world, level);
                setup.project_settings = Some(format!("{{{keys}}}"));
                world.check_confined(&setup, &cases);
            }
        }
        // One that leads elsewhere stops nothing: nobody is given what it names.
        host(world, &tree, "mv .git ../moved && ln -s ../moved .git");
        let keys =
            format!(r#"{{"agent": {{"sandbox_permissions": {{"write_paths": [{tree:?}]}}}}}}"#);
        let mut setup = git_level(world, "write");
        setup.project_settings = Some(keys);
        assert_eq!(inside(world, &setup, "echo ran").text(), "ran");
    });
}

#[test]
fn a_given_bare_repository_takes_commits_and_no_hooks() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let at = |name: &str| world.path("store.git").join(name);
        let cases = [
            denied(op!["create", at("hooks/post-update")], "EROFS"),
            denied(op!["write", at("config")], "EROFS"),
        ];
        world.control(&cases);
        fs::remove_file(at("hooks/post-update")).unwrap();
        host(
            world,
            &world.path(""),
            "git init -q --bare again.git; cp again.git/config store.git/",
        );
        let setup = given(world, "write", "store.git");
        world.check_confined(&setup, &cases);
        let push = "git init -q x && cd x && git -c user.email=a@b.c -c user.name=n commit -q --allow-empty -m one \
                    && git push -q ../../store.git HEAD:pushed && echo pushed";
        let done = inside(world, &setup, push);
        assert_eq!(done.text(), "pushed", "{}", done.stderr);
        host(
            world,
            &world.path("store.git"),
            "git rev-parse -q --verify pushed",
        );
    });
}

/// A directory that is no working tree gets no repository either, which the user's git would obey.
#[test]
fn a_given_directory_gets_no_repository_at_its_top() {
    for_each_user(binaries!(), |world| {
        let plain = world.path("plain");
        fs::create_dir_all(plain.join("src")).unwrap();
        world.own();
        let init =
            "git init -q moved && mv moved/.git .git && git rev-parse --git-dir && rm -rf .git";
        host(world, &plain, init);
        let cases = [
            denied(op!["mkdir", plain.join(".git")], "EROFS"),
            denied(op!["symlink", "../moved", plain.join(".git")], "EROFS"),
            denied(op!["create", plain.join(".git")], "EROFS"),
        ];
        let clean = || host(world, &plain, "rm -rf .git moved");
        for case in &cases {
            world.control(std::slice::from_ref(case));
            clean();
        }
        for level in ["hidden", "read", "write"] {
            let setup = given(world, level, "plain");
            world.check_confined(&setup, &cases);
            let files = [case(op!["create", plain.join("src/file")], "ok", "ok")];
            world.check_confined(&setup, &files);
            fs::remove_file(plain.join("src/file")).unwrap();
            let done = inside(world, &setup, &format!("cd ../plain; {init}"));
            assert_ne!(done.status, 0, "{level}");
            assert!(!plain.join(".git").try_exists().unwrap(), "{level}");
            clean();
        }
        let done = inside(
            world,
            &given(world, "full", "plain"),
            &format!("cd ../plain; {init}"),
        );
        assert_eq!(done.status, 0, "{}", done.stderr);
    });
}

/// What one session does so that the next one finds no repository, and may write what git runs there.
#[test]
fn a_given_bare_repository_is_one_in_the_next_session_too() {
    const RESTORED: &str = "rm -rf .git; for name in HEAD objects refs; do
        test ! -e $name.away || { rm -rf $name; mv $name.away $name; }; done; git rev-parse --git-dir >/dev/null";
    for_each_user(binaries!(), |world| {
        repository(world);
        let store = world.path("store.git");
        let hook = [denied(
            op!["create", store.join("hooks/post-update")],
            "EROFS",
        )];
        for level in ["hidden", "write"] {
            let setup = given(world, level, "store.git");
            for first in [
                "mkdir .git",
                "mkdir -p .git/objects .git/refs; echo 'ref: refs/heads/x' > .git/HEAD",
                "mv HEAD HEAD.away",
                "mv objects objects.away",
                "mv refs refs.away",
                "mv HEAD HEAD.away; mv objects objects.away; mv refs refs.away; mkdir .git",
                "mv objects objects.away; mkdir objects; mv refs refs.away; ln -s refs.away refs",
            ] {
                // The control: each is something that can be done, and undone.
                host(world, &store, &format!("{first}; {RESTORED}"));
                inside(world, &setup, &format!("cd ../store.git; {first}"));
                world.check_confined(&setup, &hook);
                host(world, &store, RESTORED);
            }
            world.control(&hook);
            fs::remove_file(store.join("hooks/post-update")).unwrap();
        }
    });
}

/// Git writes some of its files in place there, too, and follows a link.
#[test]
fn no_link_is_made_in_a_given_bare_repository() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let store = world.path("store.git");
        let victim = world.outside("victim");
        let links = format!(
            "ln -s {victim} FETCH_HEAD; mkdir x; ln -s {victim} x/y; ln -s {victim} ../project/z
             mv ../project/z logs; ln -s {victim} objects/z; ln -s {victim} refs/heads/z; true",
            victim = victim.display()
        );
        let prepare = || {
            let script = "find . -type l -delete; rm -rf x logs";
            host(world, &store, script);
            fs::write(&victim, "precious").unwrap();
            world.own();
        };
        let fetch = "git -C ../store.git fetch ../granted HEAD || true";
        let precious = || fs::read_to_string(&victim).unwrap() == "precious";
        let made = || host(world, &store, "find . -type l").lines;
        prepare();
        host(world, &store, &links);
        assert_eq!(made().len(), 5);
        host(world, &world.path("granted"), fetch);
        assert!(!precious(), "git no longer writes through links");
        for level in ["hidden", "read", "write"] {
            let setup = given(world, level, "store.git");
            for setup in [setup.clone(), setup.without(Step::Root)] {
                prepare();
                let done = inside(world, &setup, &format!("cd ../store.git; {links}"));
                assert_eq!(made(), [""; 0], "{level}: {}", done.stderr);
                host(world, &world.path("granted"), fetch);
                assert!(precious(), "{level}");
            }
        }
    });
}

/// Whoever could replace the link would have git obey anything.
#[test]
fn a_link_in_the_place_of_a_given_repository_is_refused() {
    for_each_user(binaries!(), |world| {
        let tree = repository(world);
        host(
            world,
            &tree,
            "mv .git ../moved && ln -s ../moved .git && git status >/dev/null",
        );
        let done = inside(world, &given(world, "write", "granted"), "echo ran");
        done.assert_status(125);
        assert!(done.stderr.contains("a link leads to"), "{}", done.stderr);
        let done = inside(world, &given(world, "full", "granted"), "echo ran");
        assert_eq!(done.text(), "ran", "{}", done.stderr);
    });
}
