//! Repositories in a large project, and beside it.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::stage::{Stage, for_each_user};

/// More than are read one after the other.
const MANY: usize = 24;

fn head(stage: &Stage, number: usize) {
    let head = format!("home/project/r{number}/.git/HEAD");
    stage.world.write(head, "ref: refs/heads/main\n");
}

/// In a large tree that is remembered a session is set up for the repositories that were there the
/// last time, while the tree is walked.
#[test]
fn a_repository_made_since_the_last_run_is_hidden_in_the_next() {
    for_each_user(|stage| {
        for number in 0..MANY {
            head(stage, number);
            // So many directories that they are worth remembering.
            let file = format!("home/project/r{number}/a/b/c/x");
            stage.world.write(file, "");
        }
        // Until the times of all directories are believed.
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(100));
            stage.done(&["run", "--", "true"]);
        }
        let trees = stage.world.home().join(".local/state/ringfence/trees");
        assert_eq!(std::fs::read_dir(trees).unwrap().count(), 1, "remembered");
        // A new one in a new directory, one in a known directory, and one that was known.
        stage.world.write("home/project/plain/x", "");
        for place in ["r99", "plain", "r3"] {
            let file = format!("{place}/.git/config");
            stage
                .world
                .write(format!("home/project/{place}/.git/HEAD"), "ref: x\n");
            stage
                .world
                .write(format!("home/project/{file}"), "[core]\n");
            let outside = stage.other("cat", &[&file]).output().unwrap();
            assert_eq!(outside.stdout, b"[core]\n", "{place}: read outside");
            let inside = stage.run(&["run", "--", "cat", &file]);
            assert_ne!(inside.code, Some(0), "{place}: {}", inside.out);
            assert_eq!(inside.out, "", "{place}");
        }
        // One that has gone since refuses nothing.
        let known = stage.world.project().join("r5");
        std::fs::rename(known, stage.world.root().join("away")).unwrap();
        for level in ["hidden", "read", "write"] {
            stage.done(&["run", "--git", level, "--", "true"]);
        }
    });
}

/// Whoever gives a repository for writing means its files, not what git or an editor runs there.
#[test]
fn a_repository_that_is_given_keeps_its_hooks() {
    for_each_user(|stage| {
        for file in [".git/HEAD", ".git/hooks/pre-commit", "file"] {
            stage.world.write(format!("home/beside/{file}"), "x\n");
        }
        let beside = stage.world.home().join("beside");
        for path in ["", ".git", ".git/hooks", ".git/hooks/pre-commit", "file"] {
            stage.give(&beside.join(path));
        }
        let write = |name: &str| format!("echo y >> {}/{name}", beside.display());
        let given = |name: &str| {
            let command = write(name);
            let arguments = ["--write", "../beside", "--", "sh", "-c", &command];
            stage.run(&[&["run"], &arguments[..]].concat())
        };
        for name in [".git/hooks/pre-commit", ".git/hooks/new", ".envrc"] {
            let control = stage.other("sh", &["-c", &write(name)]).status().unwrap();
            assert!(control.success(), "{name}");
            let before = std::fs::read(beside.join(name)).unwrap();
            assert_ne!(given(name).code, Some(0), "{name}");
            assert_eq!(std::fs::read(beside.join(name)).unwrap(), before, "{name}");
        }
        let ran = given("file");
        assert_eq!(ran.code, Some(0), "{}", ran.errors);
        assert_eq!(std::fs::read(beside.join("file")).unwrap(), b"x\ny\n");
    });
}

/// What the user's file gives and a flag takes back: also the repository, whatever its level.
#[test]
fn a_flag_takes_a_given_repository_back() {
    for_each_user(|stage| {
        for file in [
            "HEAD",
            "config",
            "hooks/old",
            "objects/x",
            "refs/heads/main",
        ] {
            stage
                .world
                .write(format!("home/beside/.git/{file}"), "secret\n");
        }
        let beside = stage.world.home().join("beside");
        let directories = [
            "",
            ".git",
            ".git/hooks",
            ".git/objects",
            ".git/refs",
            ".git/refs/heads",
        ];
        for path in directories {
            stage.give(&beside.join(path));
        }
        let settings = r#"{ "agent": { "sandbox_permissions": { "write_paths": ["~/beside"] } } }"#;
        stage
            .world
            .write("home/.config/ringfence/settings.json", settings);
        let read = format!("cat {}/.git/config", beside.display());
        let write = |name: &str| format!("echo y > {}/.git/{name}", beside.display());
        let writes = [write("hooks/new"), write("refs/heads/new")];
        let control = stage.other("sh", &["-c", &read]).output().unwrap();
        assert_eq!(control.stdout, b"secret\n");
        for write in &writes {
            let control = stage.other("sh", &["-c", write]).status().unwrap();
            assert!(control.success(), "{write}");
        }
        let made = ["hooks/new", "refs/heads/new"].map(|name| beside.join(".git").join(name));
        for made in &made {
            std::fs::remove_file(made).unwrap();
        }
        for level in ["read", "write", "full"] {
            let run = |flag: &str, script: &str| {
                let flags = ["run", flag, "../beside", "--git", level];
                stage.run(&[&flags[..], &["--", "sh", "-c", script]].concat())
            };
            let ran = run("--hide", &read);
            assert!(
                ran.code != Some(0) && ran.out.is_empty(),
                "{level}: {}",
                ran.out
            );
            for flag in ["--hide", "--read"] {
                for write in &writes {
                    assert_ne!(run(flag, write).code, Some(0), "{flag} {level}: {write}");
                }
            }
            let ran = run("--read", &read);
            assert_eq!(ran.out, "secret\n", "{level}: {}", ran.errors);
        }
        assert!(made.iter().all(|made| !made.try_exists().unwrap()));
    });
}

/// Whoever asked for nothing is told what his next checkout would have done, and the trail keeps it.
#[test]
fn an_index_that_git_would_not_make_is_told_without_being_asked() {
    for_each_user(|stage| {
        let script = "git init -q . && mkdir -p dgit/hooks && echo x > dgit/hooks/post-checkout &&
            git add . && rm -r dgit";
        let made = stage.other("sh", &["-c", script]).status().unwrap();
        assert!(made.success());
        // Of the same length, so that nobody has to know the format.
        let plant = "sed s,dgit/hooks,.git/hooks, .git/index > x; mv x .git/index";
        let run = |level: &str| {
            let arguments = ["run", "--report", "report.json", "--git", level];
            let ran = stage.done(&[&arguments[..], &["--", "sh", "-c", plant]].concat());
            let report = std::fs::read(stage.world.project().join("report.json")).unwrap();
            let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
            (ran.errors, report["indexes"][0].clone())
        };
        let index = stage.world.project().join(".git/index");
        let kept = std::fs::read(&index).unwrap();
        let (said, _) = run("full");
        assert!(said.contains("remove it before"), "{said}");
        std::fs::write(&index, kept).unwrap();

        let (said, report) = run("write");
        for part in [
            ".git/hooks/post-checkout",
            "index.refused-by-ringfence",
            "git reset",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(report["refused"]["paths"][0], ".git/hooks/post-checkout");
        assert_eq!(report["aside"].as_array().unwrap().len(), 1, "{report}");
        let trail = stage.done(&["log", "--json"]).out;
        assert!(trail.contains("index.refused-by-ringfence"), "{trail}");

        // It is staged as git does it: told, and left.
        let stage_it = "b=$(echo x | git hash-object -w --stdin);
            git update-index --add --cacheinfo 100644,$b,.envrc";
        let ran = stage.done(&["run", "--git", "write", "--", "sh", "-c", stage_it]);
        assert!(
            ran.errors
                .contains("staged for names that run later: .envrc;"),
            "{}",
            ran.errors
        );
        assert!(index.try_exists().unwrap());
    });
}

/// What a session changed is not called too large where it is only closed.
#[test]
fn what_nobody_can_look_into_is_named() {
    for_each_user(|stage| {
        let script = "mkdir -p a/closed; chmod 0300 a/closed";
        let ran = stage.done(&["run", "-v", "--", "sh", "-c", script]);
        let closed = stage.world.project().join("a/closed");
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(closed, mode).unwrap();
        // Nothing is closed to root.
        let named = ran.errors.contains("a/closed could not be looked into");
        assert_eq!(named, !stage.is_root(), "{}", ran.errors);
        assert!(!ran.errors.contains("too large"), "{}", ran.errors);
    });
}
