//! What is said of a session afterwards: the limit that ended it, and the audit trail.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Stdio;

use serde_json::Value;

use crate::stage::{Stage, for_each_user, wait_until};
use crate::world::World;

#[test]
fn a_limit_that_ends_a_command_is_named() {
    for_each_user(|stage| {
        let report = stage.world.home().join("report.json");
        let path = report.to_str().unwrap();
        let ended = |limit: &str, command: &[&str]| {
            let mut arguments = vec!["run", "--report", path, "--limit", limit, "--"];
            arguments.extend(command);
            let ran = stage.run(&arguments);
            let text = fs::read_to_string(&report).unwrap();
            let report: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(report["exit_status"], ran.code.unwrap());
            (ran, report)
        };
        let (ran, report) = ended("wall=1", &["sleep", "60"]);
        assert_eq!(ran.code, Some(124));
        assert_eq!(report["cause"], "wall-time");
        let (ran, report) = ended("cpu=1", &["sh", "-c", "while :; do :; done"]);
        assert_eq!(ran.code, Some(128 + 24), "{}", ran.errors);
        assert_eq!(
            (&report["cause"], &report["limit"]),
            (&"limit".into(), &"cpu".into())
        );
        assert!(ran.errors.contains("--limit cpu="), "{}", ran.errors);
        let big = ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=3"];
        let (ran, report) = ended("file-size=1MiB", &big);
        assert_eq!(ran.code, Some(128 + 25), "{}", ran.errors);
        assert_eq!(report["limit"], "file-size");
        let (ran, report) = ended("files=16", &["sh", "-c", "ulimit -n"]);
        assert_eq!(
            (ran.out.as_str(), &report["cause"]),
            ("16\n", &"exited".into())
        );
        // The same signals without a limit are just signals.
        let (_, report) = ended("wall=60", &["sh", "-c", "kill -XCPU $$"]);
        assert_eq!(
            (&report["cause"], &report["signal"]),
            (&"killed".into(), &24.into())
        );
    });
}

/// Whoever reads the trail was not there when it was said.
#[test]
fn a_refusal_is_written_down_in_words() {
    let world = World::new();
    let refused = |arguments: &[&str]| {
        let mut all = vec!["run"];
        all.extend(arguments);
        let ran = world.run(&[all, vec!["--", "true"]].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.golden());
        let log = world.run(&["log"]).out;
        log.lines().last().unwrap().to_owned()
    };
    world.user_settings("{ \"gti\": 1 }");
    let written = refused(&[]);
    assert!(
        written.contains("settings.json: unknown key `gti`"),
        "{written}"
    );
    world.user_settings("{}");
    let typed = refused(&["--read", "/absent/path"]);
    assert!(typed.contains("/absent/path does not exist"), "{typed}");
    fs::remove_file(world.user_settings("")).unwrap();
    fs::create_dir(world.home().join(".config/ringfence/settings.json")).unwrap();
    let unread = refused(&[]);
    assert!(unread.contains("it is not a regular file"), "{unread}");
}

/// Where a controller can hold it, a limit on memory ends the whole session and is its cause; where
/// none can, nothing is started.
#[test]
fn a_limit_on_memory_holds_or_is_refused() {
    for_each_user(|stage| {
        let path = stage.world.home().join("report.json");
        let mark = format!("{}.75", 7_000_000 + std::process::id());
        // Somebody in the background does not survive either.
        let script =
            format!("setsid sleep {mark} & python3 -c 'len(bytearray(512 << 20))'; echo on");
        let ran = stage.run(&[
            "run",
            "--report",
            path.to_str().unwrap(),
            "--limit",
            "memory=64MiB",
            "--",
            "sh",
            "-c",
            &script,
        ]);
        let report = fs::read_to_string(&path).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        if ran.code == Some(125) {
            let promised = std::env::var("RINGFENCE_MUST_HAVE").unwrap_or_default();
            assert!(!promised.split(',').any(|each| each == "memory-controller"));
            assert_eq!(report["cause"], "refused");
            for fix in [
                "delegate the cgroup controller `memory`",
                "`systemd-run --user --scope -p Delegate=yes ringfence ...`",
            ] {
                assert!(ran.errors.contains(fix), "{}", ran.errors);
            }
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"NOT RUN, it needs the memory controller: the limit was refused instead\n",
            );
            return;
        }
        assert_eq!(ran.code, Some(137), "{}{}", ran.out, ran.errors);
        assert_eq!(ran.out, "", "the session ends whole");
        assert_eq!(
            (&report["cause"], &report["limit"]),
            (&"limit".into(), &"memory".into())
        );
        let left = fs::read_dir("/proc").unwrap().flatten();
        let mut left = left.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        assert!(!left.any(|line| String::from_utf8_lossy(&line).contains(&mark)));
    });
}

#[test]
fn what_happens_is_written_down() {
    for_each_user(|stage| {
        let odd = "a\u{1b}]0;title\u{7}\u{202e}b\nc";
        stage.run(&["run", "--name", "first", "--", "sh", "-c", "exit 7", odd]);
        stage.run(&[
            "run", "--name", "second", "--limit", "wall=1", "--", "sleep", "9",
        ]);
        stage.run(&["run", "--name", "third", "--", "no-such-program"]);
        let path = stage.world.home().join(".local/state/ringfence/log.jsonl");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        let log = stage.log();
        let told: Vec<(&str, &str)> = log
            .iter()
            .map(|line| {
                let text = |key: &str| line[key].as_str().unwrap();
                (text("name"), text("event"))
            })
            .collect();
        assert_eq!(
            told,
            [
                ("first", "start"),
                ("first", "end"),
                ("second", "start"),
                ("second", "end"),
                ("third", "refused")
            ]
        );
        assert_eq!(log[0]["command"][3], odd);
        assert_eq!(log[0]["session"], log[1]["session"]);
        assert_ne!(log[0]["session"], log[2]["session"]);
        assert_eq!(
            (&log[1]["cause"], &log[1]["status"]),
            (&"exited".into(), &7.into())
        );
        assert_eq!(log[3]["cause"], "wall-time");

        let shown = stage.done(&["log"]).out;
        assert_eq!(shown.lines().count(), 5);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']));
        let first = stage.done(&["log", "--session", "first", "--json"]).out;
        assert_eq!(first.lines().count(), 2);
        assert!(
            first
                .lines()
                .all(|line| serde_json::from_str::<Value>(line).is_ok())
        );
        let id = log[2]["session"].as_str().unwrap();
        assert_eq!(stage.done(&["log", "--session", id]).out.lines().count(), 2);

        let last = stage.done(&["log", "-n", "2"]).out;
        let all: Vec<&str> = shown.lines().collect();
        assert_eq!(last.lines().collect::<Vec<_>>(), all[3..]);
        let last = ["log", "--last=1", "--session", "first"];
        assert_eq!(stage.done(&last).out, format!("{}\n", all[1]));
        assert_eq!(stage.done(&["log", "--last", "99"]).out, shown);
        // Of a session that there is nothing was denied.
        let none = ["log", "--denials", "--session", "first"];
        assert_eq!(stage.done(&none).out, "");
        stage.run(&["run", "--name", "third", "--", "mkdir", ".vscode"]);
        stage.run(&["run", "--name", "fourth", "--", "no-such-program"]);
        let denied = stage.done(&["log", "--denials"]).out;
        let denied: Vec<&str> = denied.lines().collect();
        assert!(
            matches!(&*denied, [.., third, fourth] if third.contains("denied   name ")
                && third.contains("/.vscode (--allow-protected")
                && fourth.contains("refused  no-such-program")),
            "{denied:?}"
        );
        let json = stage
            .done(&["log", "--denials", "--json", "--last", "1"])
            .out;
        assert!(json.contains("\"event\":\"refused\""), "{json}");

        for form in [
            &["log", "--session", "nope"][..],
            &["log", "--json", "--session", "nope"],
            &["log", "--denials", "--last=2", "--session", "nope"],
        ] {
            let none = stage.run(form);
            assert_eq!((none.code, &*none.out), (Some(1), ""), "{}", none.errors);
            let said = "there is no session called nope in the audit trail";
            assert!(none.errors.contains(said), "{}", none.errors);
        }

        // A command cannot reach its own trail.
        let reach = "cat ~/.local/state/ringfence/log.jsonl; echo forged >> ~/.local/state/ringfence/log.jsonl; true";
        let tried = stage.done(&["run", "--", "sh", "-c", reach]);
        assert!(!tried.out.contains("session"), "{}", tried.out);
        assert!(!fs::read_to_string(&path).unwrap().contains("\nforged"));
    });
}

/// In the very first session of a home, too: what it is in is made before it is worked out what to hide.
#[test]
fn no_session_can_read_the_trail() {
    for_each_user(|stage| {
        let state = stage.world.home().join(".local/state/ringfence");
        let trail = state.join("log.jsonl");
        for _ in 0..2 {
            let shown = state.display();
            let reads = format!("sleep 0.3; ls -A '{shown}'; cat '{shown}/log.jsonl'");
            let ran = stage.run(&["run", "--", "sh", "-c", &reads]);
            assert_eq!(ran.out, "", "{}", ran.errors);
            assert!(fs::read_to_string(&trail).unwrap().contains("sleep 0.3"));
        }
    });
}

#[test]
fn the_trail_can_be_followed() {
    let stage = Stage::new(None);
    stage.done(&["run", "--name", "before", "--", "true"]);
    let mut follower = stage
        .command(&["log", "--follow", "--session", "after"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    stage.done(&["run", "--name", "after", "--", "true"]);
    let mut out = std::io::BufReader::new(follower.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..2 {
        std::io::BufRead::read_line(&mut out, &mut text).unwrap();
    }
    assert!(text.contains("started") && text.contains("ended"), "{text}");
    assert!(!text.contains("before"), "{text}");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

/// What was made printable when it was written is shown as it is.
#[test]
fn names_in_the_trail_are_escaped_once() {
    let stage = Stage::new(None);
    fs::create_dir(stage.world.home().join("new\nline")).unwrap();
    let asked = "../new\nline";
    let flags = ["run", "--no-prompt", "--request-write", asked, "--", "true"];
    assert_eq!(stage.run(&flags).code, Some(125));
    let shown = stage.done(&["log"]).out;
    assert!(shown.contains("write [HOME]/new\\nline: "), "{shown}");
}

/// A trail that cannot be written keeps nobody from working.
#[test]
fn a_trail_that_is_not_ours_is_not_written() {
    for_each_user(|stage| {
        let state = stage.world.home().join(".local/state/ringfence");
        stage.done(&["run", "--", "true"]);
        let path = state.join("log.jsonl");
        fs::remove_file(&path).unwrap();
        fs::write(stage.world.home().join("target"), "kept").unwrap();
        symlink(stage.world.home().join("target"), &path).unwrap();
        let ran = stage.done(&["run", "--", "true"]);
        assert!(ran.errors.contains("audit trail"), "{}", ran.errors);
        let target = fs::read_to_string(stage.world.home().join("target"));
        assert_eq!(target.unwrap(), "kept");
    });
}

/// What the shell policy says of a command is a decision, and stands before what came of it.
#[test]
fn a_decision_about_a_command_is_written_down() {
    let stage = Stage::new(None);
    let run = |script: &str| {
        let name = ["run", "--name", "judged", "--shell-policy", "verify", "--"];
        stage.run(&[&name[..], &["bash", "-c", script]].concat())
    };
    assert_eq!(run("true").code, Some(0));
    assert_eq!(run("rm -rf src").code, Some(125));
    let log = stage.log();
    let told: Vec<(&str, &str)> = log
        .iter()
        .map(|line| {
            let answer = line["answer"].as_str().unwrap_or_default();
            (line["event"].as_str().unwrap(), answer)
        })
        .collect();
    assert_eq!(
        told[..3],
        [("decision", "allowed"), ("start", ""), ("end", "")]
    );
    assert_eq!((told[3].0, told[4].0), ("decision", "refused"));
    assert_ne!(told[3].1, "allowed");
    assert!(log[3]["request"].as_str().unwrap().contains("rm -rf src"));
    let shown = stage.done(&["log", "--session", "judged"]).out;
    assert!(
        shown.contains("decided") && shown.contains("rules verify"),
        "{shown}"
    );
}

/// A denial is in the trail before its session is over, and once more if it came again.
#[test]
fn a_denial_is_written_down_when_it_happens() {
    for_each_user(|stage| {
        stage.done(&["run", "--", "true"]);
        let script = "mkdir .vscode; sleep 0.3; mkdir .vscode; mkdir .idea; read x; true";
        let mut command = stage.command(&["run", "--name", "tries", "--", "sh", "-c", script]);
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let denied = || {
            let log = stage.log();
            let denials = log.iter().filter(|line| line["event"] == "denial");
            let fixes = denials.map(|line| line["fix"].as_str().unwrap().to_owned());
            fixes.collect::<Vec<String>>()
        };
        wait_until("both are written down", || {
            denied() == ["--allow-protected .vscode", "--allow-protected .idea"]
        });
        // Whoever kills the supervisor does not take the trail away.
        child.kill().unwrap();
        child.wait().unwrap();
        let shown = stage.done(&["log", "--session", "tries"]).out;
        assert!(shown.contains("denied   name"), "{shown}");
        assert!(!shown.contains("ended"), "{shown}");
    });
}
