//! Sessions that linger: how they end, and what is said of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::stage::{Stage, assert_gone, for_each_user, odd_time, wait_until};

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
            // Root has an account, and so a home without the variable: not to be touched here.
            if stage.is_root() && variables.contains(&("HOME", None)) {
                continue;
            }
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

/// Waits for the end of the one session in the trail of this name: its cause and status, in the trail
/// and in the report.
#[track_caller]
fn ending(stage: &Stage, name: &str, report: &Path) -> (String, u64) {
    let told = |event: &Value| {
        let cause = event["cause"].as_str().unwrap_or_default();
        (cause.to_owned(), event["exit_status"].as_u64().unwrap())
    };
    let mut found = None;
    wait_until("it has ended", || {
        let log = stage.log();
        let mut ends = log
            .iter()
            .filter(|event| event["name"] == name && event["event"] == "end");
        found = ends.next().map(told);
        found.is_some() && fs::read_to_string(report).is_ok_and(|text| text.ends_with('\n'))
    });
    let report = fs::read_to_string(report).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let found = found.unwrap();
    assert_eq!(told(&report), found, "{name}: report and trail");
    found
}

#[test]
fn what_ended_those_that_linger_is_said() {
    for_each_user(|stage| {
        for (number, way) in ways(stage).iter().enumerate() {
            let start = |case: &str, flags: &[&str], background: &str| {
                let name = format!("{case}-{number}");
                let report = stage.world.home().join(format!("{name}.json"));
                let path = report.to_str().unwrap();
                let script = format!("{background} > /dev/null 2>&1 & exit 3");
                let flags = [&["--name", &name, "--report", path], flags].concat();
                let (code, errors) = linger(stage, way, &flags, &["sh", "-c", &script]);
                assert_eq!(code, Some(3), "{way:?}: {errors}");
                (name, report)
            };
            // The control: nobody ended it.
            let (name, report) = start("itself", &[], "sleep 0.1");
            let itself = ending(stage, &name, &report);
            assert_eq!(itself, ("exited".to_owned(), 3), "{way:?}");

            let (name, report) = start("wall", &["--limit", "wall=1s"], "sleep 600");
            let wall = ending(stage, &name, &report);
            assert_eq!(wall, ("wall-time".to_owned(), 124), "{way:?}");

            let (name, report) = start("kill", &[], "sleep 600");
            stage.wait_for_sessions(&[&name]);
            stage.done(&["sessions", "kill", &name]);
            let killed = ending(stage, &name, &report);
            assert_eq!(killed, ("ended".to_owned(), 137), "{way:?}");

            let (name, report) = start("asked", &[], "sleep 600");
            let session = &stage.wait_for_sessions(&[&name])[0];
            let supervisor = i32::try_from(session["supervisor"].as_i64().unwrap()).unwrap();
            let supervisor = Pid::from_raw(supervisor).unwrap();
            rustix::process::kill_process(supervisor, Signal::TERM).unwrap();
            let asked = ending(stage, &name, &report);
            assert_eq!(asked, ("killed".to_owned(), 143), "{way:?}");
            stage.wait_for_sessions(&[]);
        }
    });
}

/// Somebody who lingers and turns on the first process frees nobody.
#[test]
fn killing_the_first_process_of_those_that_linger_frees_nobody() {
    for_each_user(|stage| {
        // In a pid namespace nobody can.
        for way in ways(stage).iter().skip(1).take(2) {
            let odd = odd_time();
            let report = stage.world.home().join(format!("{odd}.json"));
            let flags = ["--name", &odd, "--report", report.to_str().unwrap()];
            let script = format!(
                "(setsid sleep {odd} &); first=$PPID; (sleep 0.3; kill -9 $first) > /dev/null 2>&1 & exit 0"
            );
            let (code, errors) = linger(stage, way, &flags, &["sh", "-c", &script]);
            assert_eq!(code, Some(0), "{errors}");

            let ended = ending(stage, &odd, &report);

            assert_eq!(ended, ("ended".to_owned(), 137), "{way:?}");
            assert_gone(&odd);
        }
    });
}
