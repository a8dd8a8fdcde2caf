//! 16, 134: links where the launcher wants to put something, or to tidy up.

use std::fs;

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, denied, for_each_user, op};

use super::git_metadata::host;

#[test]
fn no_mount_point_is_made_through_a_planted_link() {
    for_each_user(binaries!(), |world| {
        for (name, target) in [
            (".vscode", world.outside("").display().to_string()),
            (".idea", "../outside".to_owned()),
            (".github", "../outside/empty".to_owned()),
            (".git", world.outside("dir").display().to_string()),
            (".husky", "../outside/missing".to_owned()),
            (".cargo", "../../../../../../../../outside".to_owned()),
        ] {
            let link = world.project(name);
            std::os::unix::fs::symlink(target, &link).unwrap();
            world.own();
            let before = world.snapshot();
            for git in ["hidden", "read", "write", "full"] {
                let setup = world.setup_with(&format!(r#""git": "{git}""#));
                let done = world.run(&setup, ["true"]);
                assert!([0, 125].contains(&done.status), "{}", done.stderr);
                before.assert_same(world.guarded());
            }
            fs::remove_file(link).unwrap();
        }
    });
}

/// 17, 36: a link in the project, put there by whoever made the project, where a rule is about the
/// name. What it leads to is none of theirs to grant.
#[test]
fn a_link_that_a_project_brings_along_grants_nothing() {
    for_each_user(binaries!(), |world| {
        let canary = world.outside("dir/canary");
        let write = op!["write", &canary];
        for (name, keys) in [
            (".git", r#""git": "full""#),
            (".vscode", r#""protect": {"allow": [".vscode"]}"#),
        ] {
            let link = world.project(name);
            std::os::unix::fs::symlink(world.outside("dir"), &link).unwrap();
            world.own();
            let through = op!["write", link.join("canary")];
            let cases = [denied(&write, "EROFS"), denied(through, "EROFS")];
            world.check(&world.setup_with(keys), &cases);
            fs::remove_file(link).unwrap();
        }
        // Where a rule should protect or hide the name, the launch is refused by name.
        for (name, keys) in [
            (".git", r#""git": "hidden""#),
            (".git", r#""git": "read""#),
            // What makes git run something is protected inside it.
            (".git", r#""git": "write""#),
            (".vscode", ""),
        ] {
            let link = world.project(name);
            std::os::unix::fs::symlink(world.outside("dir"), &link).unwrap();
            world.own();
            let strict = format!(r#"{{"preset": "strict", {keys}}}"#);
            for setup in [world.setup_with(keys), world.setup().settings(strict)] {
                let done = world.run(&setup, ["cat".as_ref(), canary.as_os_str()]);
                done.assert_status(125);
                assert!(done.stderr.contains(name), "{}", done.stderr);
            }
            fs::remove_file(link).unwrap();
        }
    });
}

/// Where nobody can be asked before a name is made, it is put aside when it is seen. A session that
/// makes one of its parents a link must not turn that against what lies outside.
#[test]
fn putting_names_aside_follows_no_link() {
    for_each_user(binaries!(), |world| {
        let bait = world.outside("workflows");
        fs::create_dir(&bait).unwrap();
        fs::write(world.outside("config.toml"), "x").unwrap();
        world.own();
        let setup = world.setup().without(Step::Seccomp);
        let before = world.snapshot();
        let script = "ln -s ../outside .github && ln -s ../outside .cargo";
        let done = world.run(&setup, ["sh", "-c", script]);
        done.assert_status(0);
        before.assert_same(world.guarded());
        for name in [".github", ".cargo"] {
            let left = fs::symlink_metadata(world.project(name));
            assert!(left.is_err(), "the link {name} is still there");
        }
        // A link to what the session wrote itself would be obeyed just as well.
        let script = "mkdir evil && echo x > evil/config.toml && ln -s evil .cargo";
        world.run(&setup, ["sh", "-c", script]).assert_status(0);
        assert!(!world.project(".cargo/config.toml").try_exists().unwrap());
        assert!(world.project("evil/config.toml").try_exists().unwrap());
    });
}

#[test]
fn a_name_that_appeared_is_put_aside() {
    for_each_user(binaries!(), |world| {
        let setup = world.setup().without(Step::Seccomp);
        let script = "mkdir -p .vscode .github/workflows; echo x > .vscode/tasks.json; true";
        let done = world.run(&setup, ["sh", "-c", script]);
        done.assert_status(0);
        assert!(!world.project(".vscode").try_exists().unwrap());
        assert!(!world.project(".github/workflows").try_exists().unwrap());
        assert!(done.stderr.contains(".vscode"), "{}", done.stderr);
        // Also when the session has taken the name it would get.
        let script = "mkdir .vscode; mkdir -p .vscode.refused-by-ringfence";
        world.run(&setup, ["sh", "-c", script]).assert_status(0);
        assert!(!world.project(".vscode").try_exists().unwrap());
    });
}

/// Whoever makes a name may close the directory around it, so that nobody could put it aside.
#[test]
fn no_closed_directory_keeps_a_name() {
    for_each_user(binaries!(), |world| {
        let setup = world.setup().without(Step::Seccomp);
        for script in [
            "mkdir .cargo; cd .cargo; echo x > config.toml; chmod 555 .",
            "mkdir .cargo; cd .cargo; echo x > config.toml; chmod 0 .",
            "mkdir -p .github/workflows; cd .github; echo x > workflows/x; chmod 111 .",
            "echo x > .envrc; chmod 555 .",
        ] {
            let done = world.run(&setup, ["sh", "-c", script]);
            done.assert_status(0);
            // As the user would, once somebody wonders.
            let open = "chmod -R u+rwX . && ls -d .envrc .cargo/config.toml .github/workflows 2>&-";
            let left = host(world, &world.project(""), &format!("{open} || true"));
            assert_eq!(left.text(), "", "{script}: {}", done.stderr);
            host(world, &world.project(""), "rm -rf .cargo* .github* .envrc*");
        }
    });
}
