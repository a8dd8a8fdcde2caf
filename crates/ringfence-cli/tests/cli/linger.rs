//! Sessions that linger: how they end, and what is said of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::stage::{Stage, for_each_user};

/// What finds the processes of a session again, each way there is on this machine. Every one ends in a
/// place for the command.
fn ways(stage: &Stage) -> Vec<Vec<String>> {
    let program = stage.program.to_str().unwrap();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    vec![
        words(&[program, "run", "--preset", "agent"]),
        words(&[program, "run", "--preset", "track"]),
        words(&[program, "run", "--engine", "landlock", "--on-gap", "report"]),
        // The limit that would carry the mark is taken; in a group of its own that does not matter.
        words(&[
            "bash",
            "-c",
            "ulimit -x 100; exec \"$@\"",
            "bash",
            program,
            "run",
            "--preset",
            "track",
        ]),
    ]
}

/// Runs a command in a session that lingers, one way; its status and what was said.
fn linger(
    stage: &Stage,
    way: &[String],
    flags: &[&str],
    command: &[&str],
) -> (Option<i32>, String) {
    let (program, words) = way.split_first().unwrap();
    let ran = stage
        .other(program, &[])
        .args(words)
        .arg("--linger")
        .args(flags)
        .arg("--")
        .args(command)
        .output()
        .unwrap();
    let ran = stage.world.ran(&ran);
    (ran.code, ran.errors)
}

/// Where nobody is in the background there is nothing to wait for.
#[test]
fn a_session_in_which_nobody_lingers_is_over_with_its_command() {
    for_each_user(|stage| {
        for way in ways(stage) {
            for script in ["exit 3", "sleep 0.01 & wait; exit 3"] {
                let (code, errors) = linger(stage, &way, &[], &["sh", "-c", script]);
                assert_eq!(code, Some(3), "{way:?}: {errors}");
                stage.wait_for_sessions(&[]);
                assert_eq!(stage.records(), 0, "{way:?}");
            }
        }
    });
}

/// Nobody could find it again, and nobody waits for it.
#[test]
fn what_cannot_be_found_again_does_not_linger() {
    for_each_user(|stage| {
        let file = stage.world.home().join("file");
        fs::write(&file, "").unwrap();
        let shut = stage.world.home().join("shut");
        fs::create_dir_all(shut.join("ringfence/sessions")).unwrap();
        fs::set_permissions(
            shut.join("ringfence/sessions"),
            fs::Permissions::from_mode(0o777),
        )
        .unwrap();
        let made = stage.world.project().join("made");
        let run = |flags: &[&str], variables: &[(&str, Option<&Path>)]| {
            let words = [&["run"], flags, &["--", "touch", "made"]].concat();
            let mut command = stage.command(&words);
            for (name, value) in variables {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            stage.world.ran(&command.output().unwrap())
        };
        for (variables, why) in [
            // Nothing can be made below a file, by nobody.
            (&[("XDG_RUNTIME_DIR", Some(&*file))][..], "cannot be used"),
            (
                &[("XDG_RUNTIME_DIR", Some(&*shut))],
                "nobody else can enter",
            ),
            (&[("HOME", None)], "nowhere to write sessions down"),
        ] {
            for way in [&["--preset", "agent"][..], &["--preset", "track"]] {
                // The control: any other session is held by its supervisor all the same.
                let ran = run(way, variables);
                assert_eq!(ran.code, Some(0), "{variables:?}: {}", ran.errors);
                fs::remove_file(&made).unwrap();

                let ran = run(&[way, &["--linger", "--name", "lost"]].concat(), variables);

                assert_eq!(ran.code, Some(125), "{variables:?}: {}", ran.errors);
                assert!(
                    ran.errors.contains("a session that lingers"),
                    "{}",
                    ran.errors
                );
                assert!(ran.errors.contains(why), "{}", ran.errors);
                assert!(ran.errors.contains("XDG_RUNTIME_DIR"), "{}", ran.errors);
                assert!(!made.try_exists().unwrap(), "{variables:?}");
            }
        }
    });
}
