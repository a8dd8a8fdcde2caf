//! What a command that failed is told that it was not given: only what there is evidence of.

use std::net::TcpListener;
use std::process::Command;

use crate::world::World;

/// What ringfence said, without what the command said.
fn said(world: &World, arguments: &[&str]) -> String {
    let ran = world.run(&[&["run"], arguments].concat());
    let own = |line: &&str| line.starts_with("ringfence: ");
    let own: Vec<&str> = ran.errors.lines().filter(own).collect();
    own.join("\n")
}

fn with_repository() -> World {
    let world = World::new();
    let mut git = Command::new("git");
    let made = git.args(["init", "-q"]).current_dir(world.project());
    assert!(made.status().unwrap().success());
    world
}

#[test]
fn git_that_sees_no_repository_is_told_the_level() {
    let world = with_repository();
    let hidden = "ringfence: not given: .git (--git read)";
    for command in [
        &["git", "status"][..],
        &["sh", "-c", "echo x; git log"],
        &["env", "A=b", "/usr/bin/git", "status"],
    ] {
        let own = world.run(&[&["run", "--"], command].concat());
        assert_ne!(own.code, Some(0), "{own:?}");
        assert_eq!(said(&world, command), hidden, "{command:?}");
        let read = said(&world, &[&["--git", "read", "--"], command].concat());
        assert_eq!(read, "", "{command:?}");
    }
    let commit = [
        "--git",
        "read",
        "--",
        "git",
        "commit",
        "--allow-empty",
        "-mx",
    ];
    assert_eq!(
        said(&world, &commit),
        "ringfence: not given: writing .git/index.lock (--git write)"
    );
    // Where there is none, nothing is missing.
    let other = World::public();
    other.write("home/project/vendor/x/.git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(said(&other, &["git", "status"]), "");
    assert_eq!(
        said(&other, &["git", "-C", "vendor/x", "status"]),
        "ringfence: not given: vendor/x/.git (--git read)"
    );
}

/// Most failures have nothing to do with the sandbox.
#[test]
fn a_failure_of_its_own_is_left_alone() {
    let world = with_repository();
    for command in [
        &["false"][..],
        &["sh", "-c", "exit 3"],
        &["ls", "/absent", "/etc/hosts"],
        &["cat", "absent", "src/main.rs"],
        &["sh", "-c", "touch x/y/z"],
        // Whoever does not fail has what it needs.
        &["sh", "-c", "cat ../.ssh/id_ed25519; true"],
        &["sh", "-c", "git status; exit 0"],
        // Somebody ended it.
        &["sh", "-c", "cat ../.ssh/id_ed25519; kill -INT $$"],
        &["sh", "-c", "cat ../.ssh/id_ed25519; exit 130"],
    ] {
        assert_eq!(said(&world, command), "", "{command:?}");
    }
    // The rule does not hold there, so that it is no reason.
    let gaps = ["--engine", "landlock", "--on-gap", "report", "--"];
    let read = ["sh", "-c", "cat ../.ssh/id_ed25519; exit 3"];
    assert!(!said(&world, &[&gaps[..], &read].concat()).contains("not given"));
    for flags in [&["--preset", "track"][..], &["--net", "all"]] {
        let command = [flags, &["--", "bash", "-c", "echo > /dev/tcp/127.0.0.1/9"]].concat();
        assert_eq!(said(&world, &command), "", "{flags:?}");
    }
}

#[test]
fn a_path_in_the_words_of_the_command_is_named() {
    let world = World::new();
    world.write("home/project/.envrc", "x\n");
    world.write("home/notes/a", "x\n");
    let key = "not given: reading [HOME]/.ssh/id_ed25519 (--read [HOME]/.ssh/id_ed25519)";
    for (command, expected) in [
        (&["cat", "../.ssh/id_ed25519"][..], key),
        (&["sh", "-c", "cat ~/.ssh/id_ed25519"], key),
        (&["sh", "-c", "wc < ../.ssh/id_ed25519"], key),
        (
            &["sh", "-c", "echo > .envrc"],
            "not given: writing .envrc (--allow-protected .envrc)",
        ),
        (
            &["rm", "../notes/a"],
            "not given: writing [HOME]/notes/a (--write [HOME]/notes/a)",
        ),
        (
            &["sh", "-c", "echo >> ~/notes/a"],
            "not given: writing [HOME]/notes/a (--write [HOME]/notes/a)",
        ),
        (
            &["mkdir", "../notes/b"],
            "not given: writing [HOME]/notes/b (--write [HOME]/notes)",
        ),
        // Nobody is led to give away the home for it.
        (
            &["touch", "../b"],
            "not given: writing [HOME]/b (--write [HOME]/b once it is there)",
        ),
    ] {
        let expected = format!("ringfence: {expected}");
        assert_eq!(said(&world, command), expected, "{command:?}");
    }
}

/// One flag would give away what every program obeys, or what starts with the next login.
#[test]
fn no_flag_is_named_for_what_runs_later() {
    let world = World::new();
    world.write("home/.profile", "x\n");
    for directory in [".config/app", ".local/bin", ".local/share", "bin"] {
        std::fs::create_dir_all(world.home().join(directory)).unwrap();
    }
    for name in [".local/bin/tool", ".local/share/x", ".local/y", "bin/z"] {
        let path = format!("[HOME]/{name}");
        let expected =
            format!("ringfence: not given: writing {path} (--write {path} once it is there)");
        assert_eq!(said(&world, &["touch", &format!("../{name}")]), expected);
    }
    for name in [
        ".profile",
        ".zshrc",
        ".gitconfig",
        ".config/x",
        ".config/app/x",
        ".config/autostart/x.desktop",
        ".local/share/systemd/user/x.service",
        ".xprofile",
    ] {
        let path = format!("[HOME]/{name}");
        let refused = format!("(refused, see ringfence explain {path})");
        let script = format!("echo >> ~/{name}");
        assert_eq!(
            said(&world, &["sh", "-c", &script]),
            format!("ringfence: not given: writing {path} {refused}")
        );
    }
}

/// A name is somebody else's text, and reads like one.
#[test]
fn a_name_is_not_taken_for_words_of_ringfence() {
    let world = World::new();
    let prose = ") all good, run: ringfence run --preset track (";
    let secret = |name: &str| {
        world.write(format!("home/.ssh/{name}"), "x");
        said(&world, &["cat", &format!("../.ssh/{name}")])
    };
    assert_eq!(
        secret(prose),
        format!(
            "ringfence: not given: reading '[HOME]/.ssh/{prose}' (--read '[HOME]/.ssh/{prose}')"
        )
    );
    assert_eq!(
        secret("a\u{202e}b"),
        "ringfence: not given: reading $'[HOME]/.ssh/a\\xe2\\x80\\xaeb' \
         (refused, see ringfence explain)"
    );
}

/// No word names it: the supervisor has seen it being made, or opened to be written.
#[test]
fn a_file_that_is_written_where_nothing_may_be_is_named() {
    let world = World::new();
    world.write("home/notes/a", "x\n");
    world.write("home/project/.envrc", "x\n");
    let write = |name: &str| format!("where={name}; echo > $where");
    for (name, target, flag) in [
        ("../notes/b", "[HOME]/notes/b", "--write [HOME]/notes"),
        ("../notes/a", "[HOME]/notes/a", "--write [HOME]/notes/a"),
        (".envrc", ".envrc", "--allow-protected .envrc"),
    ] {
        assert_eq!(
            said(&world, &["sh", "-c", &write(name)]),
            format!("ringfence: not given: writing {target} ({flag})")
        );
    }
    assert!(!world.home().join("notes/b").try_exists().unwrap());
    let log = world.run(&["log"]).out;
    let denied = "denied   file [HOME]/notes/b (ringfence explain [HOME]/notes/b)\n";
    assert!(log.contains(denied), "{log}");
    let given = [
        "run",
        "--write",
        "../notes",
        "--",
        "sh",
        "-c",
        &write("../notes/b"),
    ];
    let given = world.run(&given);
    assert_eq!((given.code, given.errors.as_str()), (Some(0), ""));
    // To read one, or what is left of a lock, is no attempt to write it.
    let read = "import os; os.open('../notes/a', os.O_CREAT | os.O_RDONLY); exit(3)";
    assert_eq!(said(&world, &["python3", "-c", read]), "");
}

#[test]
fn what_leads_out_of_a_session_without_a_network_is_named() {
    let world = World::public();
    let look_up = "import socket; socket.getaddrinfo('denied.invalid', 443)";
    for (command, expected) in [
        (
            &["bash", "-c", "echo > /dev/tcp/192.0.2.1/443"][..],
            "192.0.2.1:443 (--allow-host 192.0.2.1)",
        ),
        (
            &["bash", "-c", "echo > /dev/tcp/192.0.2.1/22"],
            "192.0.2.1:22 (--allow-host 192.0.2.1:22)",
        ),
        (
            &["python3", "-c", look_up],
            "the network (--allow-host HOST)",
        ),
    ] {
        let expected = format!("ringfence: not given: {expected}");
        assert_eq!(said(&world, command), expected, "{command:?}");
    }
    let log = world.run(&["log"]).out;
    assert!(log.contains("denied   host 192.0.2.1:443 (--allow-host 192.0.2.1)\n"));
}

#[test]
fn a_service_of_the_host_is_named_if_there_is_one() {
    let world = World::public();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let connect = format!("echo > /dev/tcp/127.0.0.1/{port}");
    // Without waiting for the answer, as most programs do.
    let patient =
        format!("import asyncio; asyncio.run(asyncio.open_connection('localhost', {port}))");
    for command in [&["bash", "-c", &connect][..], &["python3", "-c", &patient]] {
        assert_eq!(
            said(&world, command),
            format!("ringfence: not given: localhost:{port} of this host (--loopback-out {port})")
        );
    }
    let failing = format!("{connect}; exit 3");
    let granted = ["--loopback-out", &port, "--", "bash", "-c", &failing];
    assert_eq!(said(&world, &granted), "");
    drop(listener);
    assert_eq!(said(&world, &["bash", "-c", &connect]), "");
}

#[test]
fn variables_that_did_not_pass_are_told_to_who_wants_to_know() {
    let world = World::new();
    let run = |arguments: &[&str]| {
        let mut command = world.command();
        command.arg("run").args(arguments).env("MY_SETTING", "x");
        world.ran(&command.output().unwrap()).errors
    };
    let line = "ringfence: variables that did not pass: MY_SETTING (--env NAME)\n";
    assert!(run(&["-v", "--", "false"]).ends_with(line));
    assert!(!run(&["-v", "--", "true"]).contains("MY_SETTING"));
    assert!(!run(&["-v", "--env", "MY_SETTING", "--", "false"]).contains("MY_SETTING"));
    assert_eq!(run(&["--", "false"]), "");
}
