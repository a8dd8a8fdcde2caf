//! Sessions from outside: seen, ended by name, lingering and killed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::stage::{
    PATIENCE, Stage, assert_gone, for_each_user, odd_time, wait_for_argument, wait_until,
    with_argument,
};

#[test]
fn sessions_are_listed_and_ended_by_name() {
    for_each_user(|stage| {
        let odd = odd_time();
        let script = format!("setsid sleep {odd} & setsid sleep {odd} & wait");
        for flags in [
            &["--preset", "agent"][..],
            &["--preset", "track"],
            &["--engine", "landlock", "--on-gap", "report"],
        ] {
            let mut arguments = vec!["run", "--name", "one"];
            arguments.extend(flags);
            arguments.extend(["--", "sh", "-c", &script]);
            let mut one = stage.start(&arguments);
            stage.wait_for_sessions(&["one"]);
            let mut two = stage.start(&["run", "--name", "two", "--", "sleep", "60"]);
            let sessions = stage.wait_for_sessions(&["one", "two"]);
            assert_eq!(sessions[0]["state"], "live");
            assert!(sessions[0]["command"].as_str().unwrap().contains(&odd));
            assert_eq!(sessions[0]["project"], "[PROJECT]");
            wait_until("both sleep", || with_argument(&odd).len() >= 2);
            let listed = stage.list();
            assert!(listed[0]["processes"].as_u64().unwrap() >= 3, "{listed:?}");
            assert!(listed[0]["memory"].as_u64().unwrap() > 4096, "{listed:?}");
            let shown = stage.done(&["sessions", "list"]).out;
            assert!(
                shown.contains("one") && shown.contains("[PROJECT]"),
                "{shown}"
            );

            stage.done(&["sessions", "kill", "one"]);
            assert_gone(&odd);
            assert_eq!(one.wait().unwrap().code(), Some(137), "{flags:?}");
            assert_eq!(two.try_wait().unwrap(), None, "the other was ended");
            assert_eq!(stage.run(&["sessions", "kill", "one"]).code, Some(1));
            stage.done(&["sessions", "kill", "two"]);
            two.wait().unwrap();
            stage.wait_for_sessions(&[]);
            assert_eq!(stage.records(), 0);
        }
    });
}

/// Two may have one name; each that is ended is told.
#[test]
fn sessions_of_one_name_are_told_apart_when_they_are_ended() {
    for_each_user(|stage| {
        let odd = odd_time();
        let script = format!("sleep {odd} > /dev/null 2>&1 &");
        for _ in 0..2 {
            stage.done(&[
                "run", "--linger", "--name", "dup", "--", "sh", "-c", &script,
            ]);
        }
        let sessions = stage.wait_for_sessions(&["dup", "dup"]);
        let ended = stage.done(&["sessions", "kill", "dup"]).errors;
        assert_eq!(ended.lines().count(), 2, "{ended}");
        for session in sessions {
            let id = session["id"].as_str().unwrap();
            assert!(
                ended.contains(&format!("ended dup ({id}, sh -c")),
                "{ended}"
            );
        }
        assert_gone(&odd);
    });
}

#[test]
fn what_lingers_stays_until_it_is_ended() {
    for_each_user(|stage| {
        for flags in [&["--preset", "agent"][..], &["--preset", "track"]] {
            let odd = odd_time();
            let script = format!("sleep {odd} > /dev/null 2>&1 & exit 3");
            // The control: without the flag it ends with the command.
            let mut arguments = vec!["run"];
            arguments.extend(flags);
            arguments.extend(["--", "sh", "-c", &script]);
            assert_eq!(stage.run(&arguments).code, Some(3));
            assert_gone(&odd);

            arguments.splice(1..1, ["--linger", "--name", "web"]);
            let ran = stage.run(&arguments);
            assert_eq!(ran.code, Some(3), "{}", ran.errors);
            assert!(ran.errors.contains("sessions kill web"), "{}", ran.errors);
            let sessions = stage.wait_for_sessions(&["web"]);
            assert_eq!(sessions[0]["linger"], true);
            // The shell may be over before what it started has become its program.
            wait_for_argument(&odd);
            stage.done(&["sessions", "kill", "web"]);
            assert_gone(&odd);
            stage.wait_for_sessions(&[]);

            // It ends by itself when nobody is left, and when its supervisor is killed.
            let script = "sleep 0.2 & exit 0";
            let mut short = vec!["run", "--linger", "--name", "short"];
            short.extend(flags);
            short.extend(["--", "sh", "-c", script]);
            stage.done(&short);
            stage.wait_for_sessions(&[]);
            let ran = stage.run(&arguments);
            assert_eq!(ran.code, Some(3), "{}", ran.errors);
            let sessions = stage.wait_for_sessions(&["web"]);
            let supervisor = sessions[0]["supervisor"].as_i64().unwrap();
            kill(i32::try_from(supervisor).unwrap());
            assert_gone(&odd);
            stage.done(&["sessions", "clean"]);
            stage.wait_for_sessions(&[]);
        }
    });
}

fn kill(pid: i32) {
    let pid = Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

/// What a session without a pid namespace could leave: a directory, a cgroup, a record.
fn leftovers(stage: &Stage, tmp: &Path) -> (usize, usize, usize) {
    let count = |path: &Path, prefix: &str| {
        fs::read_dir(path).map_or(0, |entries| {
            entries
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
                .count()
        })
    };
    (stage.records(), count(tmp, "ringfence-"), groups_of(stage))
}

/// The cgroups that this stage's records name and that are there.
fn groups_of(stage: &Stage) -> usize {
    let records = fs::read_dir(stage.registry())
        .into_iter()
        .flatten()
        .flatten();
    records
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .filter_map(|text| serde_json::from_str::<Value>(&text).ok())
        .filter(|record| {
            let path = record["group"]["path"].as_str();
            path.is_some_and(|path| Path::new(path).is_dir())
        })
        .count()
}

#[test]
fn what_a_killed_supervisor_leaves_goes_with_the_next_start() {
    for_each_user(|stage| {
        let tmp = stage.world.home().join("tmp");
        fs::create_dir(&tmp).unwrap();
        stage.give(&tmp);
        for flags in [
            &["--preset", "track"][..],
            &["--engine", "landlock", "--on-gap", "report"],
        ] {
            let odd = odd_time();
            let script = format!("echo x > \"${{TMPDIR:-.}}/file\"; setsid sleep {odd} & wait");
            let mut arguments = vec!["run"];
            arguments.extend(flags);
            arguments.extend(["--", "sh", "-c", &script]);
            let mut supervisor = stage
                .command(&arguments)
                .env("TMPDIR", &tmp)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            wait_for_argument(&odd);
            supervisor.kill().unwrap();
            supervisor.wait().unwrap();
            // Its processes go at once.
            assert_gone(&odd);
            let (records, directories, groups) = leftovers(stage, &tmp);
            assert_eq!(records, 1);
            assert_eq!(directories, usize::from(flags.contains(&"landlock")));
            assert_eq!(groups, usize::from(stage.has_cgroup()));
            let group = fs::read_dir(stage.registry()).unwrap().next().unwrap();
            let record = fs::read_to_string(group.unwrap().path()).unwrap();
            let record: Value = serde_json::from_str(&record).unwrap();

            stage.done(&["run", "--", "true"]);

            assert_eq!(leftovers(stage, &tmp), (0, 0, 0));
            if let Some(group) = record["group"]["path"].as_str() {
                assert!(!Path::new(group).is_dir(), "{group}");
            }
        }
    });
}

/// A supervisor that was killed within a moment has not written down which process is the first. If
/// that was killed too, whoever it left is found by the mark.
#[test]
fn what_both_leave_goes_with_the_next_start() {
    for_each_user(|stage| {
        for flags in [
            &["--preset", "track"][..],
            &["--engine", "landlock", "--on-gap", "report"],
        ] {
            let odd = odd_time();
            let go = stage.world.project().join("go");
            let script = format!(
                "setsid sleep {odd} & while ! [ -e go ]; do sleep 0.01; done; kill -9 $PPID; wait"
            );
            let words = [&["run"], flags, &["--", "sh", "-c", &script]].concat();
            let mut supervisor = stage.start(&words);
            wait_for_argument(&odd);
            let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
            rustix::process::kill_process(pid, Signal::STOP).unwrap();
            fs::write(&go, "").unwrap();
            // Long enough for the first process to be gone; nobody is there to notice.
            std::thread::sleep(Duration::from_millis(200));
            supervisor.kill().unwrap();
            supervisor.wait().unwrap();
            assert!(!with_argument(&odd).is_empty(), "nobody was left");
            let record = fs::read_dir(stage.registry()).unwrap().next().unwrap();
            let record = record.unwrap().path();
            let text = fs::read_to_string(&record).unwrap();
            let mut known: Value = serde_json::from_str(&text).unwrap();
            known["first"] = Value::Null;
            known["world"]["boot"] = Value::Null;
            fs::write(&record, known.to_string()).unwrap();

            stage.done(&["run", "--", "true"]);

            assert_gone(&odd);
            assert_eq!(stage.records(), 0);
            fs::remove_file(&go).unwrap();
        }
    });
}

/// Somebody who is only called like a leftover, or has its number, is left alone.
#[test]
fn leftovers_are_known_by_more_than_their_names() {
    for_each_user(|stage| {
        stage.done(&["run", "--", "true"]);
        let mut supervisor = stage.start(&["run", "--preset", "track", "--", "sleep", "60"]);
        stage.wait_for_sessions(&stage.names(1));
        let record = fs::read_dir(stage.registry()).unwrap().next().unwrap();
        let record = record.unwrap().path();
        let text = || fs::read_to_string(&record).unwrap();
        // Until then its processes are known by their mark.
        wait_until("its first process is written down", || {
            text().contains("\"start\"")
        });
        let text = text();
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        stage.done(&["sessions", "clean"]);

        let mut canary = stage.other("sleep", &["60"]).spawn().unwrap();
        let innocent = stage.world.home().join("innocent");
        fs::create_dir(&innocent).unwrap();
        fs::write(innocent.join("file"), "kept").unwrap();
        let mut forged: Value = serde_json::from_str(&text).unwrap();
        forged["first"]["pid"] = canary.id().into();
        forged["mark"] = 7.into();
        let metadata = fs::metadata(&innocent).unwrap();
        forged["tmp"] = serde_json::json!({
            "path": innocent,
            "device": [0, 0],
            "inode": metadata.ino() + 1,
        });
        if !forged["group"].is_null() {
            forged["group"]["path"] = "/sys/fs/cgroup/ringfence-0000000000000000".into();
        }
        let write = |text: &str| {
            fs::write(&record, text).unwrap();
            fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
            stage.give(&record);
        };
        write(&forged.to_string());

        stage.done(&["sessions", "clean"]);

        assert_eq!(canary.try_wait().unwrap(), None, "a stranger was ended");
        assert_eq!(fs::read_to_string(innocent.join("file")).unwrap(), "kept");
        assert_eq!(stage.records(), 0, "the record itself is done with");
        // The same without a number of its own: it was never finished, and is not empty.
        forged["tmp"]["inode"] = 0.into();
        write(&forged.to_string());
        stage.done(&["sessions", "clean"]);
        assert_eq!(fs::read_to_string(innocent.join("file")).unwrap(), "kept");
        // Nonsense is nobody's, and no reason to stop.
        for nonsense in ["", "{}", "[1", &"x".repeat(100_000)] {
            write(nonsense);
            stage.done(&["run", "--", "true"]);
            stage.done(&["sessions", "list"]);
        }
        fs::remove_file(&record).unwrap();
        symlink("/etc/passwd", &record).unwrap();
        stage.done(&["sessions", "clean"]);
        canary.kill().unwrap();
        canary.wait().unwrap();
    });
}

impl Stage {
    /// Names that were made from the command `sleep`: whatever they are.
    fn names(&self, count: usize) -> Vec<&'static str> {
        wait_until("they are written down", || self.records() >= count);
        let sessions = self.list();
        sessions
            .iter()
            .map(|session| {
                let name = session["name"].as_str().unwrap();
                assert!(name.starts_with("sleep-"), "{name}");
                &*name.to_owned().leak()
            })
            .collect()
    }
}

#[test]
fn a_registry_that_others_could_write_is_not_used() {
    for_each_user(|stage| {
        // What is over soon is not written down; on a busy machine that is not so soon.
        stage.done(&["run", "--", "sleep", "2"]);
        fs::set_permissions(stage.registry(), fs::Permissions::from_mode(0o777)).unwrap();
        let ran = stage.done(&["run", "--", "sleep", "2"]);
        assert!(
            ran.errors.contains("that nobody else can enter"),
            "{}",
            ran.errors
        );
        assert_eq!(stage.records(), 0);
        assert_eq!(stage.run(&["sessions", "list"]).code, Some(1));
    });
}

#[test]
fn names_are_checked_before_anything_runs() {
    let stage = Stage::new(None);
    for bad in [
        "",
        "../x",
        "a b",
        "-x",
        ".",
        "a/b",
        "\u{1b}",
        &"x".repeat(65),
    ] {
        let name = format!("--name={bad}");
        assert_eq!(stage.run(&["run", &name, "--", "true"]).code, Some(2));
    }
}

/// Weaker tracking is said; where there is something better, nothing is.
#[test]
fn tracking_by_descent_is_said() {
    for_each_user(|stage| {
        let strong = stage.done(&["run", "--preset", "track", "--", "true"]);
        assert_eq!(strong.errors, "");
        if stage.has_cgroup() {
            return;
        }
        let script = format!(
            "ulimit -x 100; exec '{}' run --preset track -- true",
            stage.program.display()
        );
        let weak = stage.other("bash", &["-c", &script]).output().unwrap();
        let weak = stage.world.ran(&weak);
        assert_eq!(weak.code, Some(0), "{}", weak.errors);
        assert!(
            weak.errors.contains("tracked by descent only"),
            "{}",
            weak.errors
        );
    });
}

/// A command of preset `track` that turns on whoever watches it.
#[test]
fn killing_or_stopping_the_first_process_frees_nobody() {
    for_each_user(|stage| {
        for flags in [
            &["--preset", "track"][..],
            &["--engine", "landlock", "--on-gap", "report"],
        ] {
            for (attack, status) in [
                ("kill -9 $PPID; sleep 600", 137),
                ("kill -STOP $PPID; sleep 0.1; kill -9 $PPID; sleep 600", 137),
            ] {
                let odd = odd_time();
                let script = format!(
                    "(setsid sh -c '(setsid sleep {odd}) & exit' &); while ! pgrep -f {odd} > /dev/null; do :; done; {attack}"
                );
                let mut arguments = vec!["run"];
                arguments.extend(flags);
                arguments.extend(["--", "sh", "-c", &script]);
                let start = Instant::now();
                let ran = stage.run(&arguments);
                assert_eq!(ran.code, Some(status), "{flags:?} {attack}: {}", ran.errors);
                assert!(start.elapsed() < PATIENCE, "it was waited for");
                assert_gone(&odd);
            }
        }
    });
}

/// Whoever is asked to end and does not is ended; whoever is interrupted may go on.
#[test]
fn a_supervisor_that_is_asked_to_end_does() {
    for_each_user(|stage| {
        for flags in [&["--preset", "agent"][..], &["--preset", "track"]] {
            for signal in [Signal::TERM, Signal::HUP] {
                let odd = odd_time();
                let deaf = format!("trap '' TERM HUP INT; setsid sleep {odd} & sleep {odd}");
                let ended = |script: &str, flags: &[&str], interrupted: bool| {
                    let words = [&["run"], flags, &["--", "sh", "-c", script]].concat();
                    let mut supervisor = stage.start(&words);
                    wait_for_argument(&odd);
                    let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
                    if interrupted {
                        rustix::process::kill_process(pid, Signal::INT).unwrap();
                        std::thread::sleep(Duration::from_millis(100));
                        let ended = supervisor.try_wait().unwrap();
                        assert_eq!(ended, None, "it was only interrupted");
                    }
                    let start = Instant::now();
                    rustix::process::kill_process(pid, signal).unwrap();
                    let status = supervisor.wait().unwrap();
                    assert_eq!(status.code(), Some(128 + signal.as_raw()));
                    let took = start.elapsed();
                    assert_gone(&odd);
                    took
                };
                // What is not waited out every time is not waited out at all: a machine that is busy
                // otherwise gets another try.
                let mut tries = (0..5).map(|_| ended(&deaf, flags, true));
                assert!(tries.any(|took| took < Duration::from_secs(3)));
                // One that does as it is asked is not waited for.
                let polite = format!("exec sleep {odd}");
                let mut tries = (0..5).map(|_| ended(&polite, &[], false));
                assert!(tries.any(|took| took < Duration::from_secs(1)));
            }
        }
    });
}

/// A directory that a command has closed to everybody goes with its session all the same.
#[test]
fn what_is_closed_in_the_temporary_directory_goes_too() {
    for_each_user(|stage| {
        let tmp = stage.world.home().join("tmp");
        fs::create_dir(&tmp).unwrap();
        stage.give(&tmp);
        let script =
            "mkdir -p $TMPDIR/a/b/c && ln -s / $TMPDIR/a/root && chmod 000 $TMPDIR/a/b $TMPDIR/a";
        let landlock = ["run", "--engine", "landlock", "--on-gap", "report", "--"];
        let ran = stage
            .command(&[&landlock[..], &["sh", "-c", script]].concat())
            .env("TMPDIR", &tmp)
            .output()
            .unwrap();
        assert!(ran.status.success());
        assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
    });
}

/// Whoever has ended a session may count on it: nothing of it is listed, and its name is free.
#[test]
fn a_session_that_was_ended_is_gone_when_it_is_said() {
    for_each_user(|stage| {
        let mut supervisor = stage.start(&["run", "--name", "web", "--", "sleep", "60"]);
        stage.wait_for_sessions(&["web"]);
        let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
        // One that is slow to hear of it.
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        let mut ending = stage.start(&["sessions", "kill", "web"]);
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(ending.try_wait().unwrap(), None, "it waits for the record");
        rustix::process::kill_process(pid, Signal::CONT).unwrap();
        assert_eq!(ending.wait().unwrap().code(), Some(0));
        assert_eq!(stage.list(), Vec::<Value>::new());
        assert_eq!(supervisor.wait().unwrap().code(), Some(137));
        // One that never does is not waited for.
        let mut supervisor = stage.start(&["run", "--name", "web", "--", "sleep", "60"]);
        stage.wait_for_sessions(&["web"]);
        let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        stage.done(&["sessions", "kill", "web"]);
        rustix::process::kill_process(pid, Signal::CONT).unwrap();
        assert_eq!(supervisor.wait().unwrap().code(), Some(137));
    });
}
