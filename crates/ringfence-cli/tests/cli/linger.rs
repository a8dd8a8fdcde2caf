//! Sessions that linger: how they end, and what is said of it.

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
