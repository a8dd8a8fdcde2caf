use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::stage::for_each_user;
use crate::world::World;

/// What a terminal would obey, in a line of a file and in names of it.
#[test]
fn no_byte_of_a_file_reaches_the_terminal_as_it_is() {
    let world = World::new();
    let hostile = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{200b}\r";
    world.project_settings(format!(
        "{{ \"{hostile}\": 1, \"git\": \"{hostile}\", /* {hostile} */ \"network\": {{ \"hosts\": [\"{hostile}\"] }} }}\n"
    ));
    let sound = World::new();
    let name = std::ffi::OsStr::from_bytes(b"\x1b[31m\xc2\x9b\xe2\x80\xae");
    for arguments in [
        vec!["settings".as_ref(), "check".as_ref()],
        vec![
            "explain".as_ref(),
            name,
            "--env".as_ref(),
            "\u{1b}[1m".as_ref(),
        ],
        vec![
            "settings".as_ref(),
            "check".as_ref(),
            "--project".as_ref(),
            name,
        ],
        vec!["explain".as_ref(), "--host".as_ref(), "\u{1b}[1m".as_ref()],
        vec!["explain".as_ref(), name, "--json".as_ref()],
        vec!["run".as_ref(), "--preset".as_ref(), "\u{1b}[1m".as_ref()],
        vec!["run".as_ref(), "--allow-host".as_ref(), name],
        vec![name],
    ] {
        let streams = [&world, &sound].map(|world| {
            let ran = world.run(&arguments);
            [ran.out, ran.errors]
        });
        for stream in streams.as_flattened() {
            let bad = stream
                .chars()
                .find(|c| ringfence_core::text::is_hidden(*c) && *c != '\n');
            assert_eq!(bad, None, "{arguments:?}: {}", stream.escape_debug());
        }
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let world = World::new();
    for arguments in [
        &["settings", "schema"][..],
        &["settings", "show"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["explain", "--plan", "-v"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = world
            .command()
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_a_failure() {
    let world = World::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = world
        .command()
        .args(["settings", "schema"])
        .stdout(full)
        .output()
        .unwrap();

    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn files_that_are_no_files_are_refused_and_never_waited_for() {
    let world = World::new();
    let settings = world.user_settings("");
    let refused = |what: &str| {
        let ran = world.run(&["settings", "check"]);
        assert_eq!(ran.code, Some(2), "{what}: {}", ran.golden());
        assert!(ran.errors.contains("cannot be read"), "{what}");
        ran.errors
    };

    fs::remove_file(&settings).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &settings,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(refused("a pipe").contains("not a regular file"));
    fs::remove_file(&settings).unwrap();
    fs::create_dir(&settings).unwrap();
    assert!(refused("a directory").contains("not a regular file"));
    fs::remove_dir(&settings).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &settings).unwrap();
    assert!(refused("a device").contains("not a regular file"));
    fs::remove_file(&settings).unwrap();
    std::os::unix::fs::symlink(&settings, &settings).unwrap();
    refused("a link to itself");
    fs::remove_file(&settings).unwrap();
    world.user_settings([b'{', 0xff, b'}']);
    assert!(refused("not text").contains("not UTF-8: byte 1"));
    world.user_settings(vec![b' '; (1 << 20) + 1]);
    assert!(refused("a large file").contains("larger than 1 MiB"));
}

/// Whoever keeps the settings elsewhere, and that is not there, has rules that nobody knows.
#[test]
fn a_link_that_leads_nowhere_is_no_missing_file() {
    let world = World::new();
    let settings = world.user_settings("{}");
    let elsewhere = world.root().join("elsewhere");
    let directory = settings.parent().unwrap().to_owned();
    let refused = |link: &str| {
        for arguments in [
            &["run", "--", "true"][..],
            &["check", "-c", "ls"],
            &["grants", "add", "--host", "a.org"],
        ] {
            let ran = world.run(arguments);
            assert!(
                matches!(ran.code, Some(2 | 125)),
                "{arguments:?}: {}",
                ran.golden()
            );
            let said = format!("{link} is a link that leads nowhere");
            assert!(ran.errors.contains("settings.json"), "{}", ran.errors);
            assert!(ran.errors.contains(&said), "{}", ran.errors);
        }
    };

    fs::remove_file(&settings).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("settings.json"), &settings).unwrap();
    refused("[HOME]/.config/ringfence/settings.json");
    assert!(settings.is_symlink(), "a grant must not replace it");

    fs::remove_dir_all(&directory).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &directory).unwrap();
    refused("[HOME]/.config/ringfence");

    // A directory without the file holds no settings, wherever it is.
    fs::create_dir(&elsewhere).unwrap();
    assert_eq!(world.run(&["check", "-c", "ls"]).code, Some(0));
    fs::write(elsewhere.join("settings.json"), "{ mistake").unwrap();
    assert_eq!(world.run(&["check", "-c", "ls"]).code, Some(2));
}

#[test]
fn a_projects_settings_cannot_be_a_link() {
    let world = World::new();
    let key = world.home().join(".ssh/id_ed25519");
    let directory = world.project().join(".ringfence");
    fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(&key, directory.join("settings.json")).unwrap();

    let file = world.run(&["settings", "check"]);
    fs::remove_dir_all(&directory).unwrap();
    std::os::unix::fs::symlink(world.home(), &directory).unwrap();
    let directory = world.run(&["settings", "check"]);

    for ran in [file, directory] {
        assert_eq!(ran.code, Some(2));
        assert!(ran.errors.contains("not a link"), "{}", ran.errors);
        assert!(!ran.errors.contains("a key"), "{}", ran.errors);
    }
}

/// As large as a file may be, and as odd: answered soon, and never with a crash.
#[test]
fn large_and_odd_files_are_answered_soon() {
    let size = 1 << 20;
    let keys = (0..60_000).map(|n| format!("\"{n:06}\":\"\","));
    let hidden = (0..20_000).map(|n| format!("\"{n}\","));
    let files: [(&str, String); 7] = [
        (
            "rules",
            format!(
                "{{\"secrets\":{{\"hide\":[{}]}}}}",
                hidden.collect::<String>()
            ),
        ),
        ("brackets", "[".repeat(size)),
        ("objects", "{\"a\":".repeat(size / 5)),
        ("keys", format!("{{{}}}", keys.clone().collect::<String>())),
        (
            "variables",
            format!("{{\"env\":{{\"set\":{{{}}}}}}}", keys.collect::<String>()),
        ),
        (
            "hosts",
            format!(
                "{{\"network\":{{\"hosts\":[{}]}}}}",
                "\"*\",".repeat(200_000)
            ),
        ),
        (
            "a line",
            format!("{{\"git\": \"{}\"}}", "x".repeat(size - 20)),
        ),
    ];
    for (name, text) in files {
        let world = World::new();
        world.project_settings(text);
        let start = Instant::now();
        let ran = world.run(&["settings", "check"]);
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{name}: {:?}",
            start.elapsed()
        );
        assert!(matches!(ran.code, Some(0 | 2)), "{name}: {:?}", ran.code);
        assert!(ran.errors.len() < 200_000, "{name}: {}", ran.errors.len());
    }
}

/// A session makes a link to what it may not write, and waits for somebody to give the link.
#[test]
fn a_link_that_a_session_made_is_not_given_to_the_next() {
    for_each_user(|stage| {
        let outside = stage.world.home().join("outside");
        fs::create_dir(&outside).unwrap();
        stage.give(&outside);
        let target = outside.to_str().unwrap();
        let through = "echo x > build/made";
        stage.done(&["run", "--", "ln", "-s", target, "build"]);
        let control = stage.other("sh", &["-c", through]).status().unwrap();
        assert!(control.success(), "the link leads there");
        fs::remove_file(outside.join("made")).unwrap();

        let ran = stage.run(&["run", "--write", "build", "--", "sh", "-c", through]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let said = "build is not given: it leads to [HOME]/outside";
        assert!(ran.errors.contains(said), "{}", ran.errors);
        assert!(!outside.join("made").try_exists().unwrap());
        // Who means it says so.
        stage.done(&["run", "--write", target, "--", "sh", "-c", through]);
        assert!(outside.join("made").try_exists().unwrap());
    });
}
