//! What a run leaves for programs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::world::{Ran, World};

/// Runs one session with descriptor 5 open for events.
fn with_events(world: &World, arguments: &[&str]) -> (Ran, Vec<Value>) {
    world.run_with_events(&[&["run", "--json-fd", "5"], arguments].concat())
}

#[test]
fn a_status_of_the_command_is_not_taken_for_a_refusal() {
    let world = World::new();

    let (ran, events) = with_events(&world, &["--", "/bin/sh", "-c", "exit 125"]);

    assert_eq!(ran.code, Some(125));
    assert_eq!(events.len(), 2, "{events:?}");
    let (start, end) = (&events[0], &events[1]);
    for event in [start, end] {
        assert_eq!(event["version"], 1);
        assert_eq!(event["engine"], "namespaces");
        assert_eq!(event["gaps"], Value::Array(Vec::new()));
    }
    assert_eq!(start["event"], "start");
    assert_eq!(start["command"][2], "exit 125");
    assert_eq!(end["event"], "end");
    assert_eq!(
        (&end["cause"], &end["status"]),
        (&"exited".into(), &125.into())
    );
    assert!(
        end["timeline"]
            .as_array()
            .is_some_and(|steps| steps.len() > 5)
    );
    assert!(start["started"].as_str() <= end["ended"].as_str());
}

/// With both a program can end the session, and find it in the trail.
#[test]
fn every_event_says_whose_it_is() {
    let world = World::new();
    let report = world.root().join("report");
    let flags = ["--name", "web", "--report", report.to_str().unwrap(), "--"];
    for (command, code) in [
        // Something is denied on the way.
        (&["sh", "-c", "mkdir .vscode; exit 3"][..], 3),
        (&["/absent/program"], 127),
    ] {
        let (ran, mut events) = with_events(&world, &[&flags, command].concat());
        assert_eq!(ran.code, Some(code), "{}", ran.errors);
        let text = fs::read_to_string(&report).unwrap();
        events.push(serde_json::from_str(&text).unwrap());
        let log = world.run(&["log", "--json"]).out;
        let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        let id = last["session"].as_str().unwrap();
        assert_eq!(id.len(), 16, "{last}");
        for event in &events {
            assert_eq!(
                (&event["session"], &event["name"]),
                (&id.into(), &"web".into())
            );
        }
    }
}

#[test]
fn a_refusal_says_so_whatever_the_reason() {
    for (arguments, code) in [
        (&["--", "/absent/program"][..], 127),
        (&["--", "/etc/passwd"], 126),
        (&["--read", "/absent/path", "--", "true"], 2),
        (&["--engine", "landlock", "--", "true"], 125),
    ] {
        let world = World::new();
        let (ran, events) = with_events(&world, arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.errors);
        let (event, before) = events.split_last().unwrap();
        // Whether to go on without a sandbox was decided first.
        let decided = before.iter().all(|event| event["event"] == "decision");
        assert!(decided && before.len() <= 1, "{arguments:?}");
        assert_eq!(event["cause"], "refused", "{arguments:?}");
        assert_eq!(event["exit_status"], code, "{arguments:?}");
        assert!(
            event["error"]
                .as_str()
                .is_some_and(|error| !error.is_empty())
        );
    }
}

#[test]
fn decisions_are_told_when_they_are_made_and_again_at_the_end() {
    let world = World::new();
    fs::create_dir(world.home().join("outside")).unwrap();
    let answer = r#"read -r q; i=${q#*\"id\":\"}; b=${q#*\"binding\":\"}; echo "{\"version\":1,\"id\":\"${i%%\"*}\",\"binding\":\"${b%%\"*}\",\"answer\":\"thread\"}""#;
    let words = |thread: &'static str| {
        [
            ["--no-prompt", "--thread", thread],
            ["--request-write", "../outside", "--reason"],
            ["a\u{1b}[2Jb", "--approve-cmd", answer],
            ["--", "true", ""],
        ]
        .concat()
    };
    let told = |events: &[Value]| -> Vec<String> {
        let each = events.iter().map(|event| {
            let text = |key: &str| event[key].as_str().unwrap_or("-").to_owned();
            format!("{} {} {}", text("answer"), text("scope"), text("by"))
        });
        each.collect()
    };
    for expected in [
        &[
            "asked - a command that answers",
            "granted thread a command that answers",
        ][..],
        &["stands - what was granted to this thread"],
    ] {
        let (ran, events) = with_events(&world, &words("t"));
        assert_eq!(ran.code, Some(0), "{}", ran.errors);
        let (decisions, rest) = events.split_at(expected.len());
        assert_eq!(told(decisions), expected);
        assert_eq!(
            (&rest[0]["event"], &rest[1]["event"]),
            (&"start".into(), &"end".into())
        );
        let again = rest[1]["decisions"].as_array().unwrap();
        assert_eq!(told(again), expected);
        for decision in decisions {
            assert_eq!(decision["version"], 1);
            assert_eq!(decision["event"], "decision");
            assert_eq!(decision["permissions"][0]["kind"], "write");
            assert_eq!(decision["reason"], "a\u{1b}[2Jb");
            assert_eq!(decision["thread"], "t");
            assert!(decision["time"].as_str().is_some());
        }
    }
    let mut denied = words("u");
    denied[8] = "exit 1";
    let (ran, events) = with_events(&world, &denied);
    assert_eq!(ran.code, Some(125));
    let last = events.last().unwrap();
    assert_eq!(last["event"], "refused");
    let expected = "denied - a command that answers: whoever was asked has gone away";
    assert_eq!(told(last["decisions"].as_array().unwrap())[1], expected);

    // The trail has all of it, and what is changed by hand.
    let revoke = ["grants", "revoke", "--thread", "t", "--write", "../outside"];
    assert_eq!(world.run(&revoke).code, Some(0));
    let log = world.run(&["log"]).out;
    assert!(!log.contains('\u{1b}'), "{log}");
    for line in [
        "decided  write [HOME]/outside: asked (by a command that answers)",
        "decided  write [HOME]/outside: granted for this thread (by a command that answers)",
        "decided  write [HOME]/outside: stands (by what was granted to this thread)",
        "decided  write [HOME]/outside: taken back for this thread (by the command line)",
    ] {
        assert!(log.contains(line), "{line} is not in {log}");
    }
}

#[test]
fn the_command_does_not_get_the_descriptor() {
    let world = World::new();
    let script = "test ! -e /proc/self/fd/5 && ls /proc/self/fd | wc -l";
    let control = format!("exec 5>/dev/null; {script}");
    let control = Command::new("/bin/sh")
        .args(["-c", &control])
        .output()
        .unwrap();
    assert!(
        !control.status.success(),
        "it would be seen if it were there"
    );

    let (ran, events) = with_events(&world, &["--", "/bin/sh", "-c", script]);

    // `ls` has three streams and the directory.
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "4"), "{}", ran.errors);
    assert_eq!(events.len(), 2);
}

#[test]
fn the_report_is_the_last_event() {
    let world = World::new();
    let report = world.root().join("report.json");
    let path = report.to_str().unwrap();

    let (ran, events) = with_events(&world, &["--report", path, "--", "/bin/sh", "-c", "exit 3"]);

    assert_eq!(ran.code, Some(3), "{}", ran.errors);
    let text = fs::read_to_string(&report).unwrap();
    let report_json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(Some(&report_json), events.last());
    let mode = fs::metadata(&report).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_command_that_asks_for_a_socket_first_is_recorded_too() {
    let world = World::new();
    let report = world.root().join("report.json");
    let path = report.to_str().unwrap();
    // A look-up of the user's name tries a socket before anything else; python does so by hand.
    let connects = "import socket\ntry: socket.socket(socket.AF_UNIX).connect('/absent')\nexcept OSError: pass";

    let ran = world.run(&[
        "run", "--limit", "wall=60s", "--report", path, "--", "python3", "-c", connects,
    ]);

    assert_eq!(ran.code, Some(0), "{}", ran.errors);
}

#[test]
fn a_session_cannot_redirect_or_forge_its_report() {
    let world = World::new();
    let report = world.project().join("report.json");
    let victim = world.root().join("victim");
    fs::write(&victim, "kept").unwrap();
    // The name is in the project, so the session may do with it what it likes.
    let script = format!(
        "echo '{{\"forged\": true}}' > report.json; mv report.json moved; ln -s {} report.json",
        victim.display()
    );

    let ran = world.run(&[
        "run",
        "--report",
        "report.json",
        "--",
        "/bin/sh",
        "-c",
        &script,
    ]);

    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    assert!(fs::symlink_metadata(&report).unwrap().is_symlink());
    let text = fs::read_to_string(world.project().join("moved")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["cause"], "exited");
    assert_eq!(json["forged"], Value::Null);
}

#[test]
fn without_a_place_for_the_report_nothing_runs() {
    let world = World::new();
    let target = world.root().join("target");
    fs::write(&target, "kept").unwrap();
    let link = world.root().join("link");
    symlink(&target, &link).unwrap();
    for flags in [
        ["--report", link.to_str().unwrap()],
        ["--report", "/absent/directory/report.json"],
        ["--report", "/dev/null"],
        ["--json-fd", "77"],
    ] {
        let ran = world.run(&[
            "run",
            flags[0],
            flags[1],
            "--",
            "/bin/sh",
            "-c",
            "echo > canary",
        ]);
        assert_eq!(ran.code, Some(125), "{flags:?}");
        assert!(!ran.errors.is_empty(), "{flags:?}");
        let canary = world.project().join("canary");
        assert!(!canary.try_exists().unwrap(), "{flags:?}");
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
}

#[test]
fn what_runs_later_is_told() {
    let world = World::new();
    fs::write(world.project().join("Makefile"), "all:\n").unwrap();
    fs::create_dir_all(world.project().join(".venv/bin")).unwrap();
    fs::write(world.project().join(".venv/bin/pip"), "old").unwrap();
    let script = "mkdir .vscode; echo 'all: evil' > Makefile; mkdir -p vendor/x/.git/hooks
        echo evil > .venv/bin/pip; mkdir -p node_modules/.bin; ln -s ../x node_modules/.bin/x
        echo x > vendor/x/.git/hooks/pre-commit; mkdir -p docs/objects docs/refs; echo > docs/HEAD
        ln -s ~/x vendor/x/.git/FETCH_HEAD; true";

    let (ran, events) = with_events(&world, &["-v", "--", "/bin/sh", "-c", script]);

    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    let [_, denial, end] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(
        (&denial["event"], &denial["fix"]),
        (&"denial".into(), &"--allow-protected .vscode".into())
    );
    let tried = end["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 1, "{end}");
    assert!(tried[0].as_str().unwrap().ends_with("/.vscode"));
    let changes = &end["changes"];
    assert_eq!(changes["files"][0]["path"], "Makefile");
    assert_eq!(changes["files"][0]["before"].as_str().unwrap().len(), 64);
    assert_ne!(changes["files"][0]["before"], changes["files"][0]["after"]);
    let programs = &changes["programs"];
    assert_eq!(
        (&programs["count"], &programs["not_compared"]),
        (&2.into(), &0.into())
    );
    assert_eq!(programs["files"][0]["path"], ".venv/bin/pip");
    assert_eq!(programs["files"][0]["before"].as_str().unwrap().len(), 64);
    assert_eq!(programs["files"][1]["after"], "a link to ../x");
    let made = changes["repositories"].as_array().unwrap();
    let paths: Vec<&str> = made
        .iter()
        .map(|made| made["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["docs", "vendor/x/.git"]);
    assert_eq!(made[1]["knobs"][0], "hooks/pre-commit");
    let link = &changes["git_links"]["made"][0];
    assert_eq!(link["path"], "vendor/x/.git/FETCH_HEAD", "{changes}");
    assert_eq!(changes["set_id"]["count"], 0);
    assert_eq!(changes["hard_links"]["count"], 0);
    for told in [
        ".vscode is protected, and making it was refused: `--allow-protected .vscode` allows it",
        "Makefile runs later and has changed",
        ".venv/bin/pip runs later and has changed",
        "node_modules/.bin/x runs later and has changed: was not there, is now a link to ../x",
        "vendor/x/.git is a new repository, and git would obey hooks/pre-commit in it",
        "docs is a new repository",
        "vendor/x/.git/FETCH_HEAD is a new link, and git may write to ",
    ] {
        assert!(ran.errors.contains(told), "{told}: {}", ran.errors);
    }
    // Without `-v` only what was refused, and how it would not be.
    let quiet = world.run(&[
        "run",
        "--",
        "/bin/sh",
        "-c",
        "echo b > Makefile; mkdir .vscode; true",
    ]);
    assert!(!quiet.errors.contains("Makefile"), "{}", quiet.errors);
    let fix = "`--allow-protected .vscode` allows it";
    assert!(quiet.errors.contains(fix), "{}", quiet.errors);
}

/// The same of a repository beside the project that is given for writing, at every level that allows it.
#[test]
fn what_becomes_of_a_given_repository_is_told() {
    let world = World::new();
    for name in ["other/.git", "store.git"] {
        for directory in ["objects", "refs/heads"] {
            fs::create_dir_all(world.home().join(name).join(directory)).unwrap();
        }
        for (file, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", "")] {
            fs::write(world.home().join(name).join(file), text).unwrap();
        }
    }
    for plain in ["plain", "empty"] {
        fs::create_dir(world.home().join(plain)).unwrap();
    }
    let script = "cd ..; for git in other/.git store.git; do
            ln -s ~/victim $git/FETCH_HEAD; echo 0123456789 > $git/refs/heads/main; done
        mkdir -p plain/.git/hooks empty/objects empty/refs
        echo x > plain/.git/hooks/pre-commit; ln -s ~/victim plain/.git/COMMIT_EDITMSG; true";
    let given = ["other", "store.git", "plain", "empty"].map(|name| format!("../{name}"));
    let given = given.iter().flat_map(|tree| ["--write", tree]);
    let rest = ["-v", "--git", "full", "--", "/bin/sh", "-c", script];
    let arguments: Vec<&str> = given.chain(rest).collect();

    let (ran, events) = with_events(&world, &arguments);

    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    let home = fs::canonicalize(world.home()).unwrap();
    let changes = &events.last().unwrap()["changes"];
    let all = |list: &Value, key: &str| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        let texts = list.map(|one| Path::new(one[key].as_str().unwrap()));
        texts
            .map(|path| path.strip_prefix(&home).unwrap().display().to_string())
            .collect()
    };
    let made = &changes["repositories"];
    assert_eq!(all(made, "path"), ["empty", "plain/.git"], "{changes}");
    assert_eq!(made[1]["knobs"][0], "hooks/pre-commit");
    let links = all(&changes["git_links"]["made"], "path");
    let expected = [
        "other/.git/FETCH_HEAD",
        "plain/.git/COMMIT_EDITMSG",
        "store.git/FETCH_HEAD",
    ];
    assert_eq!(links, expected, "{changes}");
    let moved = all(&changes["references"]["moved"], "repository");
    assert_eq!(moved, ["other/.git", "store.git"], "{changes}");
    assert_eq!(changes["complete"], true);
}

/// What is denied is told at once, and a reader who does not read keeps nobody alive.
#[test]
fn denials_are_told_at_once_and_nobody_waits_for_the_reader() {
    let world = World::new();
    // More of them than a pipe holds, and then nothing that ends by itself.
    let script = "import socket, time
for number in range(1000):
    try: socket.getaddrinfo(f'a-rather-long-name-that-nobody-lists-{number}.test', 80)
    except OSError: pass
open('done', 'w').close()
time.sleep(1000)";
    let (mut read, write) = std::io::pipe().unwrap();
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "exec 5>&1 1>&2; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_ringfence"))
        .args(["run", "--json-fd", "5", "--allow-host", "listed.test"])
        .args(["--", "/usr/bin/python3", "-c", script])
        .env_clear()
        .env("HOME", world.home())
        .current_dir(world.project())
        .stdin(Stdio::null())
        .stdout(write)
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut first = [0; 4096];
    let mut lines = Vec::new();
    // As soon as one was denied, it can be read.
    while !String::from_utf8_lossy(&lines).contains("\"denial\"") {
        let count = std::io::Read::read(&mut read, &mut first).unwrap();
        assert_ne!(count, 0);
        lines.extend_from_slice(&first[..count]);
    }
    let done = world.project().join("done");
    let patience = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !done.try_exists().unwrap() {
        assert!(std::time::Instant::now() < patience, "it waits for us");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // Nothing is read until it has ended; ringfence itself still has a line to write then.
    let ringfence = i32::try_from(child.id()).unwrap();
    let ringfence = rustix::process::Pid::from_raw(ringfence).unwrap();
    rustix::process::kill_process(ringfence, rustix::process::Signal::TERM).unwrap();
    let alive = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let mut all = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        all.any(|line| line.starts_with(b"/usr/bin/python3\0-c\0import socket, time"))
    };
    while alive() {
        assert!(std::time::Instant::now() < patience, "it is not ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::io::Read::read_to_end(&mut read, &mut lines).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let text = String::from_utf8(lines).unwrap();
    assert!(text.len() > 64 << 10, "more than a pipe holds");
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((of("start"), of("denial"), of("end")), (1, 1000, 1));
    assert_eq!(events.last().unwrap()["event"], "end");
}

/// What somebody wrote right before the session is not the session's; what it wrote at once is.
#[cfg(target_os = "linux")]
#[test]
fn what_was_written_right_before_is_blamed_on_nobody() {
    let world = World::new();
    for _ in 0..10 {
        world.write("home/project/.envrc", "x");
        world.write("home/project/sub/.envrc", "x");
        let ran = world.run(&["run", "-v", "--", "/bin/true"]);
        assert_eq!(ran.code, Some(0), "{}", ran.errors);
        assert!(!ran.errors.contains(".envrc"), "{}", ran.errors);
        let ran = world.run(&["run", "-v", "--", "/bin/sh", "-c", "echo > sub/.envrc"]);
        let told = "sub/.envrc is obeyed by programs outside";
        assert!(ran.errors.contains(told), "{}", ran.errors);
    }
}

/// The lists of fields in the documents are those of the code, in both directions.
#[test]
fn every_field_of_the_report_is_described() {
    let world = World::new();
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SESSIONS.md");
    let text = fs::read_to_string(documents).unwrap();
    let described = |head: &str| {
        let (_, table) = text.split_once(head).unwrap();
        let rows = table.lines().skip(1).take_while(|row| row.starts_with('|'));
        let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(", "));
        let names = names.map(|name| name.trim().trim_matches('`').to_owned());
        names.collect::<std::collections::BTreeSet<String>>()
    };
    let flags = ["--shell-policy", "relaxed", "--", "/bin/true"];
    let (ran, events) = with_events(&world, &flags);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    let end = events.last().unwrap().as_object().unwrap();
    let mut fields: std::collections::BTreeSet<String> = end.keys().cloned().collect();
    // Told with the cause that it belongs to.
    assert!(fields.remove("status"));
    assert_eq!(fields, described("| field | what it says |\n"));
    let changes = end["changes"].as_object().unwrap().keys().cloned();
    let changes: std::collections::BTreeSet<String> = changes.collect();
    assert_eq!(
        changes,
        described("| field of `changes` | what it says |\n")
    );
}
