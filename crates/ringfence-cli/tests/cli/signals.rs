//! What the caller ignores, and what a file that grows too large does.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use ringfence_sys::Signal;
use rustix::process::{Pid, kill_process};

use crate::stage::{
    Stage, assert_gone, for_each_user, odd_time, wait_for_argument, wait_until, with_argument,
};
use crate::world::Ran;

const KINDS: [&[&str]; 3] = [
    &["--preset", "agent"],
    &["--preset", "track"],
    &["--engine", "landlock", "--on-gap", "report"],
];

/// Runs the program behind a shell that does something first.
fn behind(stage: &Stage, before: &str, words: &[&str]) -> std::process::Command {
    let script = format!("{before}; exec \"$@\"");
    let program = stage.program.to_str().unwrap();
    let all = [&["-c", &script, "sh", program], words].concat();
    stage.other("sh", &all)
}

fn ran(stage: &Stage, before: &str, words: &[&str]) -> Ran {
    let output = behind(stage, before, words).output().unwrap();
    stage.world.ran(&output)
}

/// `nohup` and a shell's background jobs count on it.
#[test]
fn what_the_caller_ignores_is_ignored_by_ringfence_and_the_command() {
    for_each_user(|stage| {
        for flags in KINDS {
            let odd = odd_time();
            let words = [&["run"], flags, &["--", "sleep", &odd]].concat();
            let ignoring = "trap '' HUP INT QUIT TERM USR1";
            let mut supervisor = behind(stage, ignoring, &words)
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            // The shell has that argument too, and the command's first process.
            wait_until("the command runs", || {
                with_argument(&odd).iter().any(|pid| {
                    let line = fs::read(format!("/proc/{pid}/cmdline"));
                    line.unwrap_or_default() == format!("sleep\0{odd}\0").as_bytes()
                })
            });
            let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
            for signal in [
                Signal::HUP,
                Signal::INT,
                Signal::QUIT,
                Signal::TERM,
                Signal::USR1,
            ] {
                kill_process(pid, signal).unwrap();
            }
            // Longer than a command has that is asked to end.
            std::thread::sleep(Duration::from_secs(2));
            assert_eq!(supervisor.try_wait().unwrap(), None, "{flags:?}");
            // What was not ignored is passed on as ever.
            kill_process(pid, Signal::USR2).unwrap();
            let status = supervisor.wait().unwrap();
            assert_eq!(status.code(), Some(128 + Signal::USR2.as_raw()));
            assert_gone(&odd);
        }
    });
}

/// It would not be, if the thread that hears of signals were the one that connects.
#[test]
fn a_supervisor_is_told_to_end_whatever_waits_inside() {
    for_each_user(|stage| {
        let odd = odd_time();
        let script = include_str!("../../../../tests/escapes/waiting.py");
        for kind in ["unix", "inet"] {
            let mut supervisor = stage.start(&["run", "--", "python3", "-c", script, kind, &odd]);
            wait_for_argument(&odd);
            std::thread::sleep(Duration::from_secs(3));
            let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
            kill_process(pid, Signal::TERM).unwrap();
            wait_until("it ends", || supervisor.try_wait().unwrap().is_some());
            assert_gone(&odd);
        }
    });
}

/// Its group is its own, so that no signal for ringfence's reaches it.
#[test]
fn whoever_answers_goes_with_ringfence() {
    for_each_user(|stage| {
        for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
            let odd = odd_time();
            let answers = format!("sleep {odd}; true");
            let asking = ["run", "--request-all-hosts", "--approve-cmd", &answers];
            let mut supervisor = stage.start(&[&asking[..], &["--", "true"]].concat());
            wait_for_argument(&odd);
            let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
            kill_process(pid, signal).unwrap();
            let status = supervisor.wait().unwrap();
            assert_eq!(status.signal(), Some(signal.as_raw()));
            wait_until("nobody answers", || with_argument(&odd).is_empty());
        }
    });
}

#[test]
fn a_command_ignores_what_nohup_means_and_nothing_else() {
    for_each_user(|stage| {
        for flags in KINDS {
            let ask = ["--", "grep", "SigIgn", "/proc/self/status"];
            let words = [&["run"], flags, &ask].concat();
            for (before, ignored) in [
                (":", "0000000000000000"),
                ("trap '' HUP", "0000000000000001"),
                (
                    "trap '' HUP INT QUIT PIPE TERM USR1 XFSZ",
                    "0000000000000007",
                ),
            ] {
                let ran = ran(stage, before, &words);
                assert_eq!(
                    ran.out,
                    format!("SigIgn:\t{ignored}\n"),
                    "{flags:?} {before}: {}",
                    ran.errors
                );
            }
        }
    });
}

/// In the blocks of `ulimit -f`, which are 512 bytes.
const LIMIT: &str = "ulimit -f 512";
/// More than that.
const LARGE: usize = 300 << 10;

#[test]
fn a_trail_that_may_not_grow_is_no_end_of_ringfence() {
    for_each_user(|stage| {
        stage.done(&["run", "--", "true"]);
        let trail = stage.world.home().join(".local/state/ringfence/log.jsonl");
        let line = fs::read_to_string(&trail).unwrap();
        fs::write(&trail, line.repeat(LARGE / line.len() + 1)).unwrap();

        let ended = ran(stage, LIMIT, &["run", "--", "true"]);
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        assert!(
            ended.errors.contains("the audit trail cannot be written"),
            "{}",
            ended.errors
        );

        // The command is killed by it as it is outside.
        let grows = [
            "run",
            "--",
            "sh",
            "-c",
            "exec head -c 1000000 /dev/zero > big",
        ];
        let ended = ran(stage, LIMIT, &grows);
        assert_eq!(
            ended.code,
            Some(128 + Signal::XFSZ.as_raw()),
            "{}",
            ended.errors
        );
    });
}

#[test]
fn settings_that_may_not_grow_stay_as_they_are() {
    for_each_user(|stage| {
        let text = format!("// {}\n{{}}\n", "x".repeat(LARGE));
        let settings = stage.world.user_settings(&text);
        let directory = settings.parent().unwrap();
        stage.give(directory);
        stage.give(&settings);

        let ended = ran(stage, LIMIT, &["grants", "add", "--host", "example.org"]);
        assert_eq!(ended.code, Some(125), "{}", ended.errors);
        assert_eq!(fs::read_to_string(&settings).unwrap(), text);
        let left: Vec<_> = fs::read_dir(directory).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    });
}

/// The command cannot be told any more, so whoever called is.
#[test]
fn output_that_is_lost_behind_the_filter_is_said() {
    for_each_user(|stage| {
        let full = || fs::File::options().write(true).open("/dev/full").unwrap();
        let words = ["run", "--sanitize", "--", "sh", "-c", "echo lost; exit $0"];
        for (status, code) in [("0", 1), ("7", 7)] {
            let mut command = stage.command(&[&words[..], &[status]].concat());
            let output = command.stdout(full()).output().unwrap();
            let ran = stage.world.ran(&output);
            assert_eq!(ran.code, Some(code), "{}", ran.errors);
            let said = "ringfence: standard output cannot be written: No space left";
            assert!(ran.errors.contains(said), "{}", ran.errors);
        }
        // A plain file is written without a thread in between.
        let file = stage.world.write("home/project/out", "x".repeat(LARGE));
        stage.give(&file);
        let script = format!("{LIMIT}; exec \"$@\" >> out");
        let program = stage.program.to_str().unwrap();
        let all = [&["-c", &script, "sh", program], &words[..], &["0"]].concat();
        let ran = stage.world.ran(&stage.other("sh", &all).output().unwrap());
        assert_eq!(ran.code, Some(1), "{}", ran.errors);
        let said = "ringfence: standard output cannot be written: File too large";
        assert!(ran.errors.contains(said), "{}", ran.errors);
    });
}
