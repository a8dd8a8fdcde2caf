//! The JSON Schema and the reader are one description: what one accepts, so does the other.

use std::collections::BTreeSet;

use jsonc_parser::JsonValue;
use proptest::prelude::*;
use ringfence_core::origin::{Layer, Source};
use ringfence_core::settings::{SettingsFile, has_errors, schema};
use serde_json::{Value, json};

use crate::world::World;

const EXAMPLES: [&str; 3] = [
    include_str!("examples/agent.json"),
    include_str!("examples/full.json"),
    include_str!("examples/zed.json"),
];

fn reads(text: &str) -> bool {
    let source = Source::new(Layer::User, "/s.json", text);
    !has_errors(&SettingsFile::read(&source, &World::linux().base()).1)
}

/// JSON with comments, as plain JSON.
fn plain(text: &str) -> Value {
    let options = jsonc_parser::ParseOptions::default();
    value(
        jsonc_parser::parse_to_value(text, &options)
            .unwrap()
            .unwrap(),
    )
}

fn value(of: JsonValue<'_>) -> Value {
    match of {
        JsonValue::Array(array) => array.into_iter().map(value).collect(),
        JsonValue::Boolean(boolean) => json!(boolean),
        JsonValue::Null => Value::Null,
        JsonValue::Number(number) => serde_json::from_str(number).unwrap(),
        JsonValue::Object(object) => {
            let pairs = object.into_iter();
            pairs
                .map(|(name, of)| (name.to_string(), value(of)))
                .collect()
        }
        JsonValue::String(text) => json!(text),
    }
}

#[test]
fn the_schema_is_what_was_checked_in() {
    insta::assert_json_snapshot!(schema());
}

#[test]
fn examples_are_right_by_both() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for text in EXAMPLES {
        assert!(reads(text), "{text}");
        let errors: Vec<String> = validator
            .iter_errors(&plain(text))
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, [""; 0]);
    }
}

#[test]
fn mistakes_are_wrong_by_both() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for bad in [
        json!([]),
        json!({ "prest": "agent" }),
        json!({ "preset": "agnet" }),
        json!({ "preset": 1 }),
        json!({ "git": true }),
        json!({ "tmp": "shared" }),
        json!({ "on_gap": "ignore" }),
        json!({ "$schema": 1 }),
        json!({ "terminal": { "sandbox": { "enabled": "yes" } } }),
        json!({ "terminal": { "sandbox": { "apply_to": "all" } } }),
        json!({ "terminal": { "sandbox": { "system_paths": { "executable": "/bin" } } } }),
        json!({ "terminal": { "sandbox": { "system_paths": { "write": [] } } } }),
        json!({ "terminal": { "shell": "zsh" } }),
        json!({ "agent": { "sandbox_permissions": { "write_paths": [1] } } }),
        json!({ "network": { "mode": "some" } }),
        json!({ "network": { "hosts": ["*"] } }),
        json!({ "network": { "hosts": ["*.com"] } }),
        json!({ "network": { "hosts": ["https://example.org/"] } }),
        json!({ "network": { "loopback_in": [70000] } }),
        json!({ "network": { "loopback_in": ["80"] } }),
        json!({ "env": { "allow": ["A=B"] } }),
        json!({ "env": { "allow": ["*"] } }),
        json!({ "env": { "set": { "A": 1 } } }),
        json!({ "env": { "set": ["A=1"] } }),
        json!({ "limits": { "wall": "10x" } }),
        json!({ "limits": { "wall": 0 } }),
        json!({ "limits": { "wall": "0" } }),
        json!({ "limits": { "memory": "10m" } }),
        json!({ "limits": { "processes": 1.5 } }),
        json!({ "linux": { "linux": {} } }),
        json!({ "macos": { "prest": "agent" } }),
        json!({ "unix_sockets": [5] }),
        json!({ "protect": { "add": "x" } }),
    ] {
        assert!(!reads(&bad.to_string()), "{bad} is read");
        assert!(!validator.is_valid(&bad), "{bad} is valid");
    }
}

/// `terminal.sandbox.enabled` and so on, from the schema.
fn keys_of(schema: &Value, part: &Value, prefix: &str, out: &mut BTreeSet<String>) {
    let reference = part["anyOf"][0]["$ref"].as_str();
    let part = reference.map_or(part, |reference| {
        schema.pointer(reference.trim_start_matches('#')).unwrap()
    });
    let Some(properties) = part["properties"].as_object() else {
        out.insert(prefix.to_owned());
        return;
    };
    for (name, property) in properties {
        let dot = if prefix.is_empty() { "" } else { "." };
        keys_of(schema, property, &format!("{prefix}{dot}{name}"), out);
    }
}

#[test]
fn every_key_of_the_schema_is_read_and_no_other() {
    let schema = schema();
    let mut keys = BTreeSet::new();
    keys_of(&schema, &schema, "", &mut keys);
    assert!(keys.len() > 100, "{keys:?}");
    for key in &keys {
        let nested = key.rsplit('.').fold("null".to_owned(), |inner, name| {
            format!("{{ \"{name}\": {inner} }}")
        });
        assert_eq!(reads(&nested), key != "$schema", "{nested}");
    }
    // Every key that the reader offers in a message is in the schema: it lists all of a section.
    let sections: BTreeSet<&str> = keys
        .iter()
        .filter_map(|key| key.rsplit_once('.'))
        .map(|(section, _)| section)
        .collect();
    for section in sections.into_iter().chain([""]) {
        let unknown = section
            .split('.')
            .rev()
            .filter(|name| !name.is_empty())
            .fold("{ \"zzzz\": 1 }".to_owned(), |inner, name| {
                format!("{{ \"{name}\": {inner} }}")
            });
        let source = Source::new(Layer::User, "/s.json", unknown.as_str());
        let problems = SettingsFile::read(&source, &World::linux().base()).1;
        let help = problems
            .first()
            .and_then(|problem| problem.help.clone())
            .unwrap_or_default();
        let Some(offered) = help.strip_prefix("the keys here are: ") else {
            panic!("{unknown}: {problems:?}")
        };
        for name in offered.split(", ") {
            let dot = if section.is_empty() { "" } else { "." };
            let key = format!("{section}{dot}{name}");
            assert!(
                keys.iter()
                    .any(|known| *known == key || known.starts_with(&format!("{key}."))),
                "{key}"
            );
        }
    }
}

proptest! {
    #[test]
    fn what_the_reader_takes_the_schema_takes(
        host in "(\\*\\.)?[a-z0-9.\\[\\]:*/ü-]{1,12}(:[0-9*]{1,3})?",
        limit in "(none|0{0,2}[0-9]{1,4})(s|m|min|h|B|K|KiB|kB|MB|TiB)?",
        variable in "[A-Z_*=]{0,6}", name in "[a-z./*]{0,6}",
    ) {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        for candidate in [
            json!({ "network": { "hosts": [host] } }),
            json!({ "limits": { "wall": limit } }),
            json!({ "limits": { "memory": limit } }),
            json!({ "limits": { "processes": limit } }),
            json!({ "env": { "allow": [variable] } }),
            json!({ "protect": { "add": [name] } }),
        ] {
            if reads(&candidate.to_string()) {
                prop_assert!(validator.is_valid(&candidate), "{candidate}");
            }
        }
    }
}
