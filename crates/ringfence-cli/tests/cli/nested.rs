//! A session inside a session: the filter of the outer one takes away what the inner one is usually made
//! with, and what needs none of that works all the same.

use std::fs;

use serde_json::Value;

use crate::stage::{Stage, for_each_user, odd_time};
use crate::world::Ran;

const LANDLOCK: [&str; 4] = ["--engine", "landlock", "--on-gap", "report"];
const TRACK: [&str; 2] = ["--preset", "track"];

/// The program, called by what it has started itself.
fn inside(stage: &Stage, words: &[&str]) -> Ran {
    let program = stage.program.to_str().unwrap();
    stage.run(&[&["run", "--exec", program, "--", program], words].concat())
}

#[test]
fn what_needs_no_namespaces_starts_inside() {
    for_each_user(|stage| {
        let note = stage.world.write("home/note", "seen");
        let read = ["--", "cat", note.to_str().unwrap()];
        for flags in [&LANDLOCK[..], &TRACK] {
            let ran = inside(stage, &[&["run"], flags, &read[..]].concat());
            assert_eq!(
                (ran.code, &*ran.out),
                (Some(0), "seen"),
                "{flags:?}: {}",
                ran.errors
            );
            assert!(
                ran.errors.contains("tracked by descent only"),
                "{flags:?}: {}",
                ran.errors
            );
        }
        // The rules are the inner one's: the outer one lets it be read.
        let strict = [&["run", "--preset", "strict"], &LANDLOCK[..], &read].concat();
        let ran = inside(stage, &strict);
        assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{}", ran.errors);
        assert!(ran.errors.contains("Permission denied"), "{}", ran.errors);
    });
}

#[test]
fn what_is_started_inside_ends_with_the_inner_session() {
    for_each_user(|stage| {
        let program = stage.program.to_str().unwrap();
        for flags in [LANDLOCK.join(" "), TRACK.join(" ")] {
            let time = odd_time();
            let leave = format!("setsid sleep {time} > /dev/null 2>&1 & sleep 0.1");
            // Each process by its words, but for whoever looks for them.
            let look = format!("grep -lz '^{time}$' /proc/[0-9]*/cmdline 2> /dev/null | wc -l");
            fs::write(stage.world.project().join("look"), look).unwrap();
            let script = |how: &str| format!("{how} sh -c '{leave}'; sh look");
            let confined = script(&format!("'{program}' run {flags} --"));
            let free = script("");
            for (script, left) in [(free, "1\n"), (confined, "0\n")] {
                let ran = stage.run(&["run", "--exec", program, "--", "sh", "-c", &script]);
                assert_eq!(
                    (ran.code, &*ran.out),
                    (Some(0), left),
                    "{script}: {}",
                    ran.errors
                );
            }
        }
    });
}

#[test]
fn doctor_says_inside_what_is_so_there() {
    for_each_user(|stage| {
        let outside = stage.done(&["doctor"]).out;
        assert!(!outside.contains("may not be set here"), "{outside}");
        let ran = inside(stage, &["doctor", "--json"]);
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        let rows = report["features"].as_array().unwrap();
        let mark = rows.iter().find(|row| row["feature"] == "mark");
        let mark = mark.unwrap_or_else(|| panic!("{report}"));
        assert_eq!(mark["state"], "missing", "{mark}");
        assert!(
            mark["why"]
                .as_str()
                .unwrap()
                .contains("may not be set here"),
            "{mark}"
        );
        let told = inside(stage, &["doctor"]).out;
        assert!(told.contains("processes are tracked by descent"), "{told}");
    });
}
