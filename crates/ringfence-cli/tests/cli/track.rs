//! The preset that restricts nothing: chosen by name, never by accident, and never with a flag beside it
//! that would not hold.

use std::fs;

use crate::stage::{Stage, for_each_user};

/// A key in the home, and a command that reads it.
fn key(stage: &Stage) -> String {
    let ssh = stage.world.home().join(".ssh");
    fs::create_dir_all(&ssh).unwrap();
    fs::write(ssh.join("id"), "secret").unwrap();
    stage.give(&ssh);
    stage.give(&ssh.join("id"));
    format!("cat {}/id", ssh.display())
}

#[test]
fn a_flag_that_would_not_hold_starts_nothing() {
    for_each_user(|stage| {
        let read = key(stage);
        let run = |flags: &[&str]| {
            let command = ["--", "sh", "-c", &read];
            stage.run(&[&["run"], flags, &command[..]].concat())
        };
        let control = run(&["--preset", "track"]);
        assert_eq!((control.code, &*control.out), (Some(0), "secret"));
        for flags in [
            ["--hide", "~/.ssh"],
            ["--read", "."],
            ["--exec", "."],
            ["--net", "none"],
            ["--allow-host", "example.org"],
            ["--tmp", "private"],
            ["--git", "hidden"],
        ] {
            let ran = run(&[&["--preset", "track"][..], &flags].concat());
            assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{flags:?}");
            let why = "the preset track restricts nothing, so this would not hold";
            assert!(ran.errors.contains(why), "{flags:?}: {}", ran.errors);
        }
        // What lifts a restriction, or is the same there, is no contradiction.
        for flags in [["--net", "all"], ["--git", "full"], ["--write", "/tmp"]] {
            let ran = run(&[&["--preset", "track"][..], &flags].concat());
            assert_eq!(ran.code, Some(0), "{flags:?}: {}", ran.errors);
        }
        // Nor is what a file has for the other presets.
        stage
            .world
            .user_settings(r#"{ "secrets": { "hide": ["~/x"] }, "git": "read" }"#);
        assert_eq!(run(&["--preset", "track"]).code, Some(0));
        stage.world.user_settings(r#"{ "preset": "track" }"#);
        let ran = run(&["--hide", "~/.ssh"]);
        assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.errors);
    });
}

/// What restricts elsewhere is no smaller matter where a file has switched everything off.
#[test]
fn a_flag_starts_nothing_where_a_file_switches_everything_off() {
    for_each_user(|stage| {
        let read = key(stage);
        for off in [r#""enabled": false"#, r#""apply_to": "terminal""#] {
            let settings = format!(r#"{{ "terminal": {{ "sandbox": {{ {off} }} }} }}"#);
            stage.world.user_settings(settings);
            let run = |flags: &[&str]| {
                let command = ["--", "sh", "-c", &read];
                stage.run(&[&["run"], flags, &command[..]].concat())
            };
            let control = run(&[]);
            assert_eq!((control.code, &*control.out), (Some(0), "secret"), "{off}");
            for flags in [["--hide", "~/.ssh"], ["--net", "none"]] {
                let ran = run(&flags);
                assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{off}: {flags:?}");
                assert!(ran.errors.contains("would not hold"), "{}", ran.errors);
            }
        }
    });
}

/// It has no say in that, so the flag holds and is no mistake.
#[test]
fn a_project_that_lifts_everything_is_passed_over_beside_a_flag() {
    for_each_user(|stage| {
        let read = key(stage);
        let track = r#"{ "preset": "track" }"#;
        let off = r#"{ "terminal": { "sandbox": { "enabled": false } } }"#;
        for settings in [track, off] {
            stage.world.project_settings(settings);
            for flags in [["--hide", "~/.ssh"], ["--net", "none"], ["--read", "."]] {
                let command = ["--", "sh", "-c", &read];
                let ran = stage.run(&[&["run"], &flags[..], &command].concat());
                assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{}", ran.errors);
                assert!(
                    ran.errors.contains("no restrictions at all"),
                    "{}",
                    ran.errors
                );
                let command = ["--", "echo", "ran"];
                let ran = stage.run(&[&["run"], &flags[..], &command].concat());
                assert_eq!((ran.code, &*ran.out), (Some(0), "ran\n"), "{}", ran.errors);
            }
        }
    });
}

#[test]
fn a_preset_that_is_named_holds_whatever_a_file_switches_off() {
    for_each_user(|stage| {
        let read = key(stage);
        for off in [r#""enabled": false"#, r#""apply_to": "terminal""#] {
            let settings = format!(r#"{{ "terminal": {{ "sandbox": {{ {off} }} }} }}"#);
            stage.world.user_settings(settings);
            let control = stage.run(&["run", "--", "sh", "-c", &read]);
            assert_eq!((control.code, &*control.out), (Some(0), "secret"), "{off}");
            assert!(control.errors.contains("nothing is restricted"), "{off}");
            for preset in ["agent", "strict"] {
                let ran = stage.run(&["run", "--preset", preset, "--", "sh", "-c", &read]);
                assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{off}, {preset}");
                assert!(!ran.errors.contains("nothing is restricted"), "{off}");
            }
        }
    });
}
