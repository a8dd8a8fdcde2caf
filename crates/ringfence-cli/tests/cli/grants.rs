//! Requests, answers, grants and trust, as users and programs meet them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::answering;
use crate::world::{Ran, World};

fn answering(world: &World, word: &str) -> String {
    answering::answering(&world.root().join("asked"), word)
}

fn questions(world: &World) -> Vec<Value> {
    answering::questions(&world.root().join("asked"))
}

/// Tries to write into `outside`, which is not part of the project.
fn try_writing(world: &World, flags: &[&str]) -> Ran {
    let outside = world.home().join("outside");
    fs::create_dir_all(&outside).unwrap();
    let mut all = vec!["run", "--no-prompt"];
    all.extend(flags);
    let touch = format!("touch {}/made", outside.display());
    all.extend(["--", "/bin/sh", "-c", &touch]);
    world.run(&all)
}

fn made(world: &World) -> bool {
    world.home().join("outside/made").is_file()
}

#[test]
fn without_anybody_to_ask_the_answer_is_no_and_says_what_was_needed() {
    let world = World::new();
    let control = try_writing(&world, &[]);
    assert_ne!(control.code, Some(0), "it must need the grant");
    let ran = try_writing(
        &world,
        &["--request-write", "../outside", "--request-host", "a.org"],
    );
    assert_eq!(ran.code, Some(125), "{ran:?}");
    assert!(!made(&world));
    assert!(
        ran.errors.contains("there is nobody to ask"),
        "{}",
        ran.errors
    );
    assert!(
        ran.errors
            .contains("ringfence grants add --write [HOME]/outside --host a.org"),
        "{}",
        ran.errors
    );
    let json = ran
        .errors
        .lines()
        .find_map(|line| line.strip_prefix("ringfence: needed "));
    let json: Value = serde_json::from_str(json.unwrap()).unwrap();
    assert_eq!(json["permissions"][0]["kind"], "write");
    assert_eq!(json["permissions"][1]["value"], "a.org");
    // For one command comes before for always.
    for (asked, help) in [
        (
            &["--request-write", "../outside", "--request-host", "a.org"][..],
            "to grant it once: `--write [HOME]/outside --allow-host a.org`; always, in every project: ringfence",
        ),
        (
            &["--request-unsandboxed", "--request-host", "a.org"],
            "to grant it once: `--preset track`; always, in every project: ringfence grants add --host a.org --unsandboxed",
        ),
        (
            &["--request-all-hosts", "--thread", "t"],
            "to grant it once: `--net all`; in this thread: ringfence grants add --all-hosts --thread t",
        ),
        (
            &["--request-write-all"],
            "to grant it always, in every project: ringfence grants add --write-all",
        ),
    ] {
        let ran = try_writing(&world, asked);
        assert_eq!(ran.code, Some(125), "{ran:?}");
        assert!(ran.errors.contains(help), "{}", ran.errors);
    }
    for once in [
        &["--write", "../outside", "--allow-host", "a.org"][..],
        &["--preset", "track"],
    ] {
        let ran = try_writing(&world, once);
        assert_eq!((ran.code, made(&world)), (Some(0), true), "{ran:?}");
        fs::remove_file(world.home().join("outside/made")).unwrap();
    }
}

#[test]
fn a_yes_for_once_holds_once() {
    let world = World::new();
    let cmd = answering(&world, "once");
    let flags = [
        "--approve-cmd",
        &cmd,
        "--request-write",
        "../outside",
        "--reason",
        "I am \u{1b}[31mred",
    ];
    let ran = try_writing(&world, &flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(made(&world));
    let asked = questions(&world);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["version"], 1);
    assert_eq!(asked[0]["scopes"], serde_json::json!(["once", "always"]));
    let answers = serde_json::json!(["once", "always", "deny"]);
    assert_eq!(asked[0]["answers"], answers);
    assert_eq!(asked[0]["permissions"][0]["kind"], "write");
    assert_eq!(asked[0]["reason"], "I am \u{1b}[31mred");
    try_writing(&world, &flags);
    assert_eq!(questions(&world).len(), 2, "asked again");
}

#[test]
fn a_yes_for_a_thread_holds_for_that_thread_until_it_is_taken_back() {
    let world = World::new();
    let cmd = answering(&world, "thread");
    let ask = |thread: &str| {
        try_writing(
            &world,
            &[
                "--approve-cmd",
                &cmd,
                "--thread",
                thread,
                "--request-write",
                "../outside",
            ],
        )
    };
    assert_eq!(ask("one").code, Some(0));
    assert_eq!(ask("one").code, Some(0));
    assert_eq!(questions(&world).len(), 1, "only once");
    let answers = serde_json::json!(["once", "thread", "always", "deny", "deny-thread"]);
    assert_eq!(questions(&world)[0]["answers"], answers);
    // It stands even if nobody asks for it any more.
    assert_eq!(try_writing(&world, &["--thread", "one"]).code, Some(0));
    assert_ne!(try_writing(&world, &["--thread", "two"]).code, Some(0));
    let listed = world.run(&["grants", "list"]);
    assert!(
        listed
            .out
            .contains("allow: write [HOME]/outside (thread one, "),
        "{}",
        listed.out
    );
    let revoked = world.run(&[
        "grants",
        "revoke",
        "--thread",
        "one",
        "--write",
        "../outside",
    ]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert_ne!(try_writing(&world, &["--thread", "one"]).code, Some(0));
}

#[test]
fn a_yes_for_always_is_written_to_the_settings_and_asked_no_more() {
    let world = World::new();
    let settings = world.user_settings("{\n  // mine\n  \"preset\": \"agent\"\n}\n");
    let cmd = answering(&world, "always");
    let flags = ["--approve-cmd", &cmd, "--request-write", "../outside"];
    assert_eq!(try_writing(&world, &flags).code, Some(0));
    let text = fs::read_to_string(&settings).unwrap();
    assert!(
        text.contains("// mine") && text.contains("write_paths"),
        "{text}"
    );
    assert_eq!(try_writing(&world, &flags).code, Some(0));
    assert_eq!(try_writing(&world, &[]).code, Some(0));
    assert_eq!(questions(&world).len(), 1);
    // It is there with its line and its age; what was written by hand has a line alone.
    let listed = world.run(&["grants", "list"]).out;
    let line = "allow: write [HOME]/outside ([HOME]/.config/ringfence/settings.json:";
    assert!(
        listed.contains(line) && listed.contains(" seconds ago)"),
        "{listed}"
    );
    assert_eq!(listed.lines().count(), 1, "no thread has it: {listed}");
    let listed = world.run(&["grants", "list", "--json"]).out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["version"], 1, "{listed}");
    let [grant] = &listed["grants"].as_array().unwrap()[..] else {
        panic!("{listed}");
    };
    assert_eq!(
        (&grant["kind"], &grant["scope"]),
        (&"write".into(), &"always".into())
    );
    let revoked = world.run(&["grants", "revoke", "--write", "../outside"]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    try_writing(&world, &flags);
    assert_eq!(
        questions(&world).len(),
        2,
        "asked again once it is gone from the settings"
    );
}

#[test]
fn hiding_git_is_nothing_that_can_be_granted_or_asked_for() {
    let world = World::new();
    let settings = world.user_settings("{ \"git\": \"full\" }");
    for arguments in [
        &["grants", "add", "--git", "hidden"][..],
        &["grants", "revoke", "--git", "hidden"],
        &["run", "--request-git", "hidden", "--", "true"],
    ] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.golden());
    }
    assert_eq!(world.run(&["grants", "add", "--git", "read"]).code, Some(0));
    let place = "(always, in [HOME]/.config/ringfence/settings.json)";
    let added = world.run(&["grants", "add", "--host", "a.org"]);
    assert_eq!(added.out, format!("granted: reach a.org {place}\n"));
    let taken = world.run(&["grants", "revoke", "--host", "b.org", "--host", "a.org"]);
    assert_eq!(taken.code, Some(1));
    assert_eq!(taken.out, format!("taken back: reach a.org {place}\n"));
    fs::write(&settings, "{ \"git\": \"full\" }").unwrap();
    let now = fs::read_to_string(settings).unwrap();
    assert_eq!(now, "{ \"git\": \"full\" }");

    world.user_settings("{ \"git\": \"hidden\" }");
    let listed = world.run(&["grants", "list"]);
    assert_eq!(listed.out, "nothing is granted\n");
}

#[test]
fn settings_with_a_mistake_grant_nothing_that_could_be_listed() {
    let world = World::new();
    let text = "{ \"git\": \"full\", \"gti\": 1 }";
    let settings = world.user_settings(text);
    for arguments in [&["grants", "list"][..], &["grants", "list", "--json"]] {
        let listed = world.run(arguments);
        assert_eq!(listed.code, Some(2), "{}", listed.golden());
        assert_eq!(listed.out, "");
        assert!(listed.errors.contains("settings.json:1:"), "{listed:?}");
        assert!(listed.errors.contains("gti"), "{listed:?}");
    }
    for verb in ["add", "revoke"] {
        let changed = world.run(&["grants", verb, "--git", "full"]);
        assert_eq!(changed.code, Some(125), "{}", changed.golden());
        assert!(
            changed.errors.contains("`ringfence settings check` shows"),
            "{changed:?}"
        );
    }
    assert_eq!(fs::read_to_string(settings).unwrap(), text);

    // A project's own mistakes are nothing of the user's.
    world.user_settings("{ \"git\": \"full\" }");
    world.project_settings("{ mistake");
    assert_eq!(world.run(&["grants", "list"]).code, Some(0));
}

#[test]
fn no_is_no_and_a_thread_remembers_it() {
    let world = World::new();
    let cmd = answering(&world, "deny-thread");
    let flags = [
        "--approve-cmd",
        &cmd,
        "--thread",
        "one",
        "--request-write",
        "../outside",
    ];
    assert_eq!(try_writing(&world, &flags).code, Some(125));
    assert_eq!(try_writing(&world, &flags).code, Some(125));
    assert_eq!(questions(&world).len(), 1);
    assert!(!made(&world));
}

/// What a thread was granted is over with the directory that it is kept in.
#[test]
fn a_thread_is_over_with_its_directory() {
    let world = World::new();
    let runtime = world.root().join("runtime");
    fs::create_dir(&runtime).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&runtime, private).unwrap();
    let run = |words: &[&str]| {
        let mut command = world.command();
        command.args(words).env("XDG_RUNTIME_DIR", &runtime);
        world.ran(&command.output().unwrap())
    };
    fs::create_dir(world.home().join("outside")).unwrap();
    let add = ["grants", "add", "--thread", "t", "--write", "../outside"];
    assert_eq!(run(&add).code, Some(0));
    assert!(!world.home().join(".local/state/ringfence/threads").is_dir());
    let write = [
        "run",
        "--no-prompt",
        "--thread",
        "t",
        "--",
        "touch",
        "../outside/made",
    ];
    assert_eq!(run(&write).code, Some(0));
    assert!(made(&world));
    fs::remove_dir_all(&runtime).unwrap();
    fs::create_dir(&runtime).unwrap();
    assert_ne!(run(&write).code, Some(0));
    assert_eq!(run(&["grants", "list"]).out, "nothing is granted\n");
}

/// Asks the gate for a host on nobody's list, in bash alone; the first line of its answer.
const CONNECT: &str = r"exec 3<>/dev/tcp/127.0.0.1/61080
printf 'CONNECT live.invalid:443 HTTP/1.1\r\nHost: live.invalid:443\r\n\r\n' >&3
read -r line <&3; echo $line";

#[test]
fn hosts_on_nobodys_list_are_asked_about_while_the_command_runs() {
    let world = World::public();
    world.user_settings(
        r#"{ "agent": { "sandbox_permissions": { "network_hosts": ["a.invalid"] } } }"#,
    );
    let connect = |flags: &[&str]| {
        let words = ["run", "--no-prompt"];
        let ran = world.run(&[&words[..], flags, &["--", "bash", "-c", CONNECT]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        // Where it is allowed it is not found: nothing of this reaches any network.
        !ran.out.contains(" 403 ")
    };
    let (yes, no) = (
        answering(&world, "thread"),
        answering(&world, "deny-thread"),
    );
    assert!(!connect(&[]), "without anybody to ask");
    assert!(connect(&["--thread", "yes", "--approve-cmd", &yes]));
    let asked = questions(&world);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["permissions"][0]["kind"], "host");
    assert_eq!(asked[0]["permissions"][0]["value"], "live.invalid:443");
    // Kept for the thread, and for no other.
    assert!(connect(&["--thread", "yes"]));
    assert!(!connect(&["--thread", "other"]));
    assert!(!connect(&["--thread", "no", "--approve-cmd", &no]));
    assert_eq!(questions(&world).len(), 2);
    assert!(!connect(&["--thread", "no", "--approve-cmd", &yes]));
    assert_eq!(questions(&world).len(), 2, "the thread was told no");
    // A flag that closes the network closes the gate with it: nobody is asked.
    let closed = ["run", "--no-prompt", "--net", "none", "--approve-cmd", &yes];
    world.run(&[&closed[..], &["--", "bash", "-c", CONNECT]].concat());
    assert_eq!(questions(&world).len(), 2);
    let log = world.run(&["log"]).out;
    for line in [
        "reach live.invalid:443: asked (by a command that answers)",
        "reach live.invalid:443: granted for this thread (by a command that answers)",
        "reach live.invalid:443: denied for this thread (by a command that answers)",
        "reach live.invalid:443: denied (by what was kept)",
    ] {
        assert!(log.contains(line), "{line} is not in {log}");
    }
}

#[test]
fn a_host_that_is_none_is_a_mistake_with_a_remedy() {
    let world = World::new();
    for wrong in ["https://a.org/", "*", "a..org", "a.*.org", ""] {
        let ran = world.run(&["run", "--request-host", wrong, "--", "true"]);
        assert_eq!(ran.code, Some(2), "{wrong}: {ran:?}");
        assert!(ran.errors.contains("--request-host"), "{wrong}: {ran:?}");
    }
}

#[test]
fn an_answer_that_is_none_is_a_no() {
    let world = World::new();
    for cmd in [
        "true",
        "exit 1",
        "echo yes",
        "cat",
        "echo '{\"version\":1,\"id\":\"x\",\"binding\":\"y\",\"answer\":\"once\"}'",
        "sleep 60",
    ] {
        let flags = [
            "--approve-cmd",
            cmd,
            "--approve-timeout",
            "1",
            "--request-write",
            "../outside",
        ];
        assert_eq!(try_writing(&world, &flags).code, Some(125), "{cmd}");
        assert!(!made(&world), "{cmd}");
    }
}

#[test]
fn a_scope_that_was_not_offered_is_a_no() {
    let world = World::new();
    let cmd = answering(&world, "thread");
    let ran = try_writing(
        &world,
        &["--approve-cmd", &cmd, "--request-write", "../outside"],
    );
    assert_eq!(ran.code, Some(125), "{ran:?}");
}

#[test]
fn nobody_is_asked_for_what_a_flag_forbids() {
    let world = World::new();
    let cmd = answering(&world, "once");
    let ran = try_writing(
        &world,
        &[
            "--approve-cmd",
            &cmd,
            "--net",
            "none",
            "--request-host",
            "a.org",
        ],
    );
    assert_eq!(ran.code, Some(125), "{ran:?}");
    assert!(questions(&world).is_empty());
}

#[test]
fn running_outside_is_said_and_can_be_forbidden() {
    let world = World::new();
    let cmd = answering(&world, "once");
    let flags = ["--approve-cmd", cmd.as_str(), "--request-unsandboxed"];
    let ran = try_writing(&world, &flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(made(&world));
    assert!(ran.errors.contains("OUTSIDE the sandbox"), "{}", ran.errors);
    // It is recorded, and still tracked.
    let log = world.run(&["log"]).out;
    assert!(
        log.contains("decided  run outside the sandbox: granted"),
        "{log}"
    );
    assert!(log.contains("(track)"), "{log}");
    world.user_settings(
        r#"{ "agent": { "sandbox_permissions": { "allow_unsandboxed": "never" } } }"#,
    );
    let ran = try_writing(&world, &flags);
    assert_eq!(ran.code, Some(125), "{ran:?}");
    assert_eq!(questions(&world).len(), 1, "nobody is asked");
}

#[test]
fn a_corrupt_thread_starts_nothing_and_says_where_it_is() {
    let world = World::new();
    let said = world.run(&["grants", "add", "--thread", "one", "--host", "a.org"]);
    let threads = world.home().join(".local/state/ringfence/threads");
    let entries = fs::read_dir(&threads)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let file = entries
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "json"));
    let file = file.unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let place = "thread one, in [HOME]/.local/state/ringfence/threads";
    assert_eq!(said.out, format!("granted: reach a.org ({place}/{name})\n"));
    fs::write(file, "{").unwrap();
    let ran = try_writing(&world, &["--thread", "one"]);
    assert_eq!(ran.code, Some(125), "{ran:?}");
    assert!(ran.errors.contains("to start anew: mv"), "{}", ran.errors);
}

#[test]
fn trust_is_for_exactly_what_was_seen() {
    let world = World::new();
    fs::create_dir_all(world.home().join("outside")).unwrap();
    let widen =
        r#"{ "terminal": { "sandbox": { "additional_read_write_paths": ["../../outside"] } } }"#;
    world.project_settings(widen);
    assert_ne!(try_writing(&world, &[]).code, Some(0), "not trusted yet");
    let shown = world.run(&["trust"]);
    assert!(
        shown
            .out
            .contains("+ read, execute and write [HOME]/outside"),
        "{}",
        shown.out
    );
    assert_ne!(try_writing(&world, &[]).code, Some(0), "only shown");
    assert_eq!(world.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(try_writing(&world, &[]).code, Some(0));
    assert!(
        world
            .run(&["trust", "--list"])
            .out
            .contains("[PROJECT] sha256 ")
    );
    world.project_settings(format!("{widen} "));
    assert_ne!(try_writing(&world, &[]).code, Some(0), "another content");
    world.project_settings(widen);
    assert_eq!(try_writing(&world, &[]).code, Some(0));
    assert_eq!(world.run(&["trust", "--revoke"]).code, Some(0));
    assert_ne!(try_writing(&world, &[]).code, Some(0), "trusted no longer");
}

#[test]
fn trust_says_how_things_stand() {
    let world = World::new();
    world.project_settings("{}");
    let first = world.run(&["trust"]).out;
    assert!(first.contains("`ringfence trust --yes`"), "{first}");
    assert!(
        world
            .run(&["trust", "--yes"])
            .out
            .contains("until the file changes")
    );
    for again in [&["trust"][..], &["trust", "--yes"]] {
        let ran = world.run(again);
        assert_eq!(ran.code, Some(0));
        assert!(
            ran.out
                .contains("this content is trusted; there is nothing to do")
        );
        assert!(!ran.out.contains("--yes"), "{}", ran.out);
    }
    let listed = || world.run(&["trust", "--list"]).out;
    assert!(listed().contains("(trusted)"), "{}", listed());

    world.project_settings("{ }");
    let changed = world.run(&["trust"]).out;
    assert!(changed.contains("has changed since it was trusted"));
    assert!(changed.contains("`ringfence trust --yes`"), "{changed}");
    assert!(listed().contains("(changed since, only narrows)"));
    fs::remove_dir_all(world.project().join(".ringfence")).unwrap();
    assert!(listed().contains("(no settings there now)"));
    fs::write(world.project().join(".ringfence"), "").unwrap();
    assert!(listed().contains("(cannot be read: "), "{}", listed());

    let nowhere = world.run(&["trust", "/nonexistent"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.errors.contains("does not exist"));
    assert!(!nowhere.errors.contains("--project"), "{}", nowhere.errors);
}

#[test]
fn the_example_client_answers_over_a_descriptor() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/approve.py");
    for (answer, code) in [("once", Some(0)), ("deny", Some(125))] {
        let world = World::new();
        let outside = world.home().join("outside");
        fs::create_dir_all(&outside).unwrap();
        let output = Command::new("python3")
            .arg(&example)
            .args(["--answer", answer, env!("CARGO_BIN_EXE_ringfence"), "run"])
            .args([
                "--request-write",
                "../outside",
                "--",
                "/bin/sh",
                "-c",
                "touch ../outside/made",
            ])
            .env("HOME", world.home())
            .env_remove("XDG_RUNTIME_DIR")
            .current_dir(world.project())
            .output()
            .unwrap();
        let ran = world.ran(&output);
        assert_eq!(ran.code, code, "{ran:?}");
        assert_eq!(outside.join("made").try_exists().unwrap(), code == Some(0));
    }
}
