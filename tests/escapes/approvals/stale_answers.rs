//! 144: many questions at once, and answers that come when nobody waits for them any more.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::answering::{answering, questions, there};
use crate::stage::{PATIENCE, Stage, for_each_user};

fn outside(stage: &Stage) -> std::path::PathBuf {
    let outside = stage.world.home().join("outside");
    fs::create_dir_all(&outside).unwrap();
    stage.give(&outside);
    outside
}

/// A run is ended while somebody is asked; the yes that comes then grants nothing to anybody.
#[test]
fn an_answer_after_the_end_grants_nothing() {
    for_each_user(|stage| {
        let home = stage.world.home();
        let outside = outside(stage);
        for (word, signal) in [("always", Signal::TERM), ("thread", Signal::KILL)] {
            let asked = home.join(format!("asked-{word}"));
            let yes = answering(&asked, word);
            let late = format!(
                "({yes}) > {0}/answer; : > {0}/waiting; while test -e {0}/waiting; do sleep 0.02; done; cat {0}/answer; : > {0}/answered",
                home.display()
            );
            let words = [
                "run",
                "--no-prompt",
                "--thread",
                "t",
                "--approve-cmd",
                &late,
            ];
            let more = [
                "--request-write",
                "../outside",
                "--",
                "touch",
                "../outside/made",
            ];
            let mut command = stage.command(&[&words[..], &more].concat());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            wait(|| there(&home.join("waiting")));
            let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
            kill_process(pid, signal).unwrap();
            assert!(!child.wait().unwrap().success());
            fs::remove_file(home.join("waiting")).unwrap();
            // The program may be gone with the run; if it is not, its answer goes nowhere.
            std::thread::sleep(Duration::from_millis(300));
            let _ = fs::remove_file(home.join("answered"));
            assert!(!there(&outside.join("made")), "{word}");
            let list = stage.done(&["grants", "list"]).out;
            assert_eq!(list, "nothing is granted\n", "{word}");
        }
    });
}

/// Every one of many runs is asked for itself, and gets its own answer.
#[test]
fn a_flood_is_answered_one_by_one() {
    const MANY: usize = 12;
    for_each_user(|stage| {
        let home = stage.world.home();
        let outside = outside(stage);
        // What ringfence keeps is hidden from commands, and so is part of the policy once it is there.
        stage.done(&["run", "--", "true"]);
        let asked = home.join("asked");
        let yes = answering(&asked, "once");
        let start = |index: usize| {
            // Only the even ones are granted.
            let line = if index.is_multiple_of(2) {
                yes.as_str()
            } else {
                "exit 1"
            };
            let name = format!("../outside/{index}");
            let words = ["run", "--no-prompt", "--approve-cmd", line];
            let more = ["--request-write", "../outside", "--", "touch", &name];
            let mut command = stage.command(&[&words[..], &more].concat());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        };
        let mut all: Vec<_> = (0..MANY).map(start).collect();
        for (index, child) in all.iter_mut().enumerate() {
            let granted = index.is_multiple_of(2);
            let status = child.wait().unwrap();
            assert_eq!(
                status.code(),
                Some(if granted { 0 } else { 125 }),
                "{index}"
            );
            let made = there(&outside.join(index.to_string()));
            assert_eq!(made, granted, "{index}");
        }
        let ids: std::collections::BTreeSet<String> = questions(&asked)
            .iter()
            .map(|question| question["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids.len(), MANY / 2, "each question is its own");
    });
}

/// Asks the gate for many hosts at once, in bash alone; the first line of each answer.
const HOSTS: &str = r"for n in 1 2 3 4 5 6; do
  ( exec 3<>/dev/tcp/127.0.0.1/61080
    printf 'CONNECT h%s.invalid:443 HTTP/1.1\r\nHost: h%s.invalid:443\r\n\r\n' $n $n >&3
    read -r line <&3; echo h$n ${line%$'\r'} ) &
done; wait";

/// Hosts that a running command floods somebody with are asked about one at a time.
#[test]
fn a_flood_of_hosts_is_one_question_at_a_time() {
    for_each_user(|stage| {
        let home = stage.world.home();
        let asked = home.join("asked");
        let yes = answering(&asked, "once");
        let line = format!(
            "mkdir {0}/busy || : > {0}/two-at-once; sleep 0.05; {yes}; rmdir {0}/busy",
            home.display()
        );
        let words = ["run", "--no-prompt", "--allow-host", "a.invalid"];
        let more = ["--approve-cmd", &line, "--", "bash", "-c", HOSTS];
        let ran = stage.done(&[&words[..], &more].concat());
        assert!(!there(&home.join("two-at-once")));
        let mut hosts: Vec<String> = questions(&asked)
            .iter()
            .map(|question| {
                question["permissions"][0]["value"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        hosts.sort();
        let expected: Vec<String> = (1..=6).map(|n| format!("h{n}.invalid:443")).collect();
        assert_eq!(hosts, expected, "each once");
        // Allowed by the gate, and then not found: nothing of this reaches any network.
        assert_eq!(ran.out.lines().count(), 6, "{ran:?}");
        assert!(!ran.out.contains(" 403 "), "{ran:?}");
    });
}

/// Somebody who never answers does not keep a session that is over.
#[test]
fn a_question_dies_with_the_run() {
    for_each_user(|stage| {
        let home = stage.world.home();
        let line = format!(
            "echo $$ > {0}/pid; : > {0}/waiting; exec sleep 300",
            home.display()
        );
        let script = format!(
            "( {HOSTS} ) > /dev/null 2>&1 & while ! test -e {}/waiting; do sleep 0.02; done; exit 7",
            home.display()
        );
        let report = home.join("report.json");
        let words = [
            "run",
            "--no-prompt",
            "--allow-host",
            "a.invalid",
            "--report",
        ];
        let more = [
            report.to_str().unwrap(),
            "--approve-cmd",
            &line,
            "--",
            "bash",
            "-c",
            &script,
        ];
        let start = Instant::now();
        let ran = stage.run(&[&words[..], &more].concat());
        assert_eq!(ran.code, Some(7), "{ran:?}");
        assert!(start.elapsed() < PATIENCE, "it waited for an answer");
        let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
        let decisions = report["decisions"].as_array().unwrap();
        assert!(
            decisions
                .iter()
                .all(|decision| decision["answer"] == "asked")
        );
        let pid: i32 = fs::read_to_string(home.join("pid"))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        // Whoever was asked has been told that nobody waits any more.
        wait(|| !there(format!("/proc/{pid}").as_ref()));
        assert!(start.elapsed() < PATIENCE);
    });
}

fn wait(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
}
