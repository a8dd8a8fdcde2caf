//! Reading settings files: what is a mistake, and where.

use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use ringfence_core::origin::{Layer, Origin, Source};
use ringfence_core::problem::Problem;
use ringfence_core::settings::{Keys, Limit, Os, Preset, SettingsFile, Unit, Word, has_errors};

use crate::world::World;

fn read(text: &str) -> (Keys, Vec<Problem>) {
    let world = World::linux();
    let source = Source::new(Layer::User, "/s.json", text);
    let (file, problems) = SettingsFile::read(&source, &world.base());
    (file.on(Os::Linux), problems)
}

/// `line:column message` for each problem.
fn problems(text: &str) -> Vec<String> {
    let source = Source::new(Layer::User, "/s.json", text);
    let problems = read(text).1.into_iter();
    problems
        .map(|problem| {
            let (line, column) = source.position(problem.span.start);
            format!("{line}:{column} {}", problem.message)
        })
        .collect()
}

#[test]
fn every_mistake_of_a_file_is_told_with_its_place() {
    let text = r#"{
  "prest": "agent",
  "git": "wirte",
  "git": "read",
  "tmp": 5,
  "network": { "hosts": ["*", "*.com", "http://a.test", 5], "loopback_in": [0, 70000, 1.5, "x"] },
  "limits": { "wall": "10x", "processes": 0, "memory": -1 },
  "env": { "allow": ["A=B", "*"], "set": { "": "x", "A": 1, "B=": "x", "C": "\u0000" } },
  "protect": { "add": ["/etc", "../x", ""] },
  "secrets": { "hide": ["", "~other/x", "$FOO/x", "a\u0000b"] },
  "unix_sockets": ["ssh-agnet"],
  "agent": { "sandbox_permissions": { "write_paths": ["relative"] } },
  "terminal": { "sandbox": [] },
  "$schema": 5,
}"#;
    insta::assert_snapshot!(problems(text).join("\n"));
}

#[test]
fn what_is_not_json_is_not_settings() {
    for text in [
        "{",
        "[]",
        "1",
        "nul",
        "{\"a\":}",
        "{'preset': 'agent'}",
        "{preset: \"agent\"}",
        "{\"tmp\": \"host\"} x",
        "{\"tmp\": 0x10}",
        "\u{0}",
        "{\"tmp\": \"\\ud800\"}",
        "{\"a\" \"b\"}",
        "/* ",
        "{\"tmp\": NaN}",
    ] {
        assert!(has_errors(&read(text).1), "{text:?}");
    }
    for text in [
        "",
        "// nothing\n",
        "/* nothing */",
        "{}",
        "\u{feff}{}",
        "{\r\n}\r\n",
    ] {
        assert_eq!(read(text).1, [], "{text:?}");
    }
}

#[test]
fn a_byte_order_mark_and_line_ends_do_not_move_places() {
    assert_eq!(
        problems("{\r\n  \"prest\": 1\r\n}"),
        ["2:3 unknown key `prest`"]
    );
    assert_eq!(
        problems("\u{feff}{\n \"prest\": 1 }"),
        ["2:2 unknown key `prest`"]
    );
}

#[test]
fn nesting_ends_before_the_stack_does() {
    let deep = format!(
        "{{\"preset\": {}{}}}",
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert!(has_errors(&read(&deep).1));
}

#[test]
fn a_hostile_file_is_read_in_time() {
    let start = Instant::now();
    // As many values as fit, each with a place of its own, on lines and on one line.
    for comma in [",\n", ","] {
        let entries = vec!["\"/a\""; 150_000].join(comma);
        let text = format!("{{\"secrets\": {{\"hide\": [{entries}]}}}}");
        assert!(text.len() < ringfence_core::settings::LARGEST_FILE);
        assert_eq!(read(&text).1, []);
        let entries = vec!["5"; 300_000].join(comma);
        let text = format!("{{\"secrets\": {{\"hide\": [{entries}]}}}}");
        assert!(read(&text).1.len() <= 100, "nobody reads more");
    }
    let keys: Vec<String> = (0..60_000).map(|key| format!("\"K{key}\":\"v\"")).collect();
    let text = format!("{{\"env\": {{\"set\": {{{}}}}}}}", keys.join(","));
    assert_eq!(read(&text).1, []);
    // Quadratic, each of these takes minutes; linear, all of them take a second.
    assert!(
        start.elapsed() < Duration::from_mins(1),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let text = " ".repeat(ringfence_core::settings::LARGEST_FILE + 1);
    assert!(has_errors(&read(&text).1));
}

#[test]
fn null_is_nothing_and_systems_merge_key_by_key() {
    let text = r#"{
        "preset": "strict", "git": null, "terminal": null,
        "network": { "mode": "none", "hosts": ["a.test"] },
        "env": { "set": { "A": "1", "B": "1" } },
        "linux": {
            "preset": null,
            "network": { "mode": "hosts" },
            "env": { "set": { "B": "2" } },
            "limits": { "wall": "1m" },
        },
        "macos": { "preset": "track" },
    }"#;
    let (keys, problems) = read(text);
    assert_eq!(problems, []);
    assert_eq!(keys.preset.written().unwrap().value, Preset::Strict);
    assert!(keys.git.written().is_none());
    assert_eq!(
        keys.network.mode.written().unwrap().value.to_string(),
        "hosts"
    );
    assert_eq!(keys.network.hosts.written().unwrap().value.len(), 1);
    let set = &keys.env.set.written().unwrap().value;
    let set: Vec<(&str, &str)> = set
        .iter()
        .map(|(name, value)| (name.as_str(), value.value.as_str()))
        .collect();
    assert_eq!(set, [("A", "1"), ("B", "2")], "maps are merged, too");
    assert_eq!(keys.limits.wall.written().unwrap().value.0, Limit::At(60));
    let nested = r#"{ "linux": { "linux": {} } }"#;
    assert!(
        has_errors(&read(nested).1),
        "a system's part has no further parts"
    );
}

#[test]
fn paths_are_expanded_once_and_belong_to_their_file() {
    let text = r#"{ "secrets": { "hide": ["~", "~/a", "$HOME/b", "$PROJECT/c", "d/e", "/f", "./~g", "/$HOME"] } }"#;
    let (keys, problems) = read(text);
    assert_eq!(problems, []);
    let hide = &keys.secrets.hide.written().unwrap().value;
    let paths: Vec<&Path> = hide.iter().map(|entry| entry.value.0.as_path()).collect();
    let expected = [
        "/home/u",
        "/home/u/a",
        "/home/u/b",
        "/home/u/p/c",
        "/settings/d/e",
        "/f",
        "/settings/~g",
        "/$HOME",
    ];
    assert_eq!(paths, expected.map(Path::new));
    let Origin::File { line, column, .. } = &hide[1].origin else {
        panic!()
    };
    assert_eq!((*line, *column), (1, 30));
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..100u64, any::<u64>()]
}

proptest! {
    #[test]
    fn any_text_is_settings_or_problems(text in "\\PC*") {
        let _ = read(&text);
    }

    #[test]
    fn anything_like_json_is_settings_or_problems(
        text in "[\\[\\]{}:,\"/*\\\\ntrue0-9.eE$~a-z_ \n\u{feff}]{0,80}",
    ) {
        for problem in read(&text).1 {
            prop_assert!(text.get(problem.span.clone()).is_some(), "{:?} of {text:?}", problem.span);
        }
    }

    #[test]
    fn limits_print_as_they_are_read(number in number(), suffix in "(s|m|h|B|K|KiB|MiB|GB|min|)") {
        for unit in [Unit::Bytes, Unit::Count, Unit::Seconds] {
            if let Ok(limit) = unit.parse(&format!("{number}{suffix}")) {
                prop_assert_eq!(unit.parse(&limit.to_string()), Ok(limit));
            }
        }
    }
}

#[test]
fn every_word_prints_as_it_is_read() {
    fn check<W: Word + std::fmt::Display + PartialEq + std::fmt::Debug>() {
        for (word, value) in W::WORDS {
            assert_eq!(&value.to_string(), word);
            assert_eq!(W::from_word(word), Some(*value));
        }
    }
    check::<ringfence_core::settings::ApplyTo>();
    check::<ringfence_core::settings::GitLevel>();
    check::<ringfence_core::settings::Kind>();
    check::<ringfence_core::settings::NetworkMode>();
    check::<ringfence_core::settings::OnGap>();
    check::<Os>();
    check::<Preset>();
    check::<ringfence_core::settings::Tmp>();
}
