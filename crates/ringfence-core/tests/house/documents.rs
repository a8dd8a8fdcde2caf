//! Tables in documents that are made from the code.

use std::fmt::Write as _;
use std::fs;

use ringfence_core::plan::Step;
use ringfence_core::policy::lists;
use ringfence_core::settings::schema;
use serde_json::Value;

use crate::root;

/// Holds the part of a document between two marks against what it should be.
fn check(document: &str, mark: &str, expected: &str) {
    let path = root().join(document);
    let text = fs::read_to_string(&path).unwrap();
    let (open, close) = (format!("<!-- made from code: {mark} -->\n"), "<!-- end -->");
    let (before, rest) = text
        .split_once(&open)
        .unwrap_or_else(|| panic!("{document} has no {mark}"));
    let (now, after) = rest.split_once(close).unwrap();
    let expected = format!("\n{expected}\n");
    if now != expected && std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{before}{open}{expected}{close}{after}")).unwrap();
    } else {
        assert_eq!(
            now, expected,
            "{document}: run this test with UPDATE_DOCS=1"
        );
    }
}

#[test]
fn the_order_of_acts() {
    let mut table = String::from("| # | step | why it stands there |\n|---|---|---|\n");
    for (index, step) in Step::ALL.iter().enumerate() {
        let name = serde_json::to_value(step).unwrap();
        let name = name.as_str().unwrap();
        writeln!(table, "| {} | `{name}` | {} |", index + 1, step.reason()).unwrap();
    }
    check("docs/ARCHITECTURE.md", "order of acts", &table);
}

/// One row for each key, from the schema that editors see.
fn rows(schema: &Value, part: &Value, prefix: &str, table: &mut String) {
    let reference = part["anyOf"][0]["$ref"].as_str();
    let target = reference.map_or(part, |reference| {
        schema.pointer(reference.trim_start_matches('#')).unwrap()
    });
    if let Some(properties) = target["properties"].as_object() {
        for (name, property) in properties {
            if !["$schema", "linux", "macos", "windows"].contains(&name.as_str()) {
                let dot = if prefix.is_empty() { "" } else { "." };
                rows(schema, property, &format!("{prefix}{dot}{name}"), table);
            }
        }
        return;
    }
    let text = part["description"]
        .as_str()
        .unwrap_or_default()
        .replace('\n', " ")
        .replace('|', "\\|");
    writeln!(table, "| `{prefix}` | {text} |").unwrap();
}

fn keys() -> String {
    let schema = schema();
    let mut table = String::from("| key | meaning |\n|---|---|\n");
    rows(&schema, &schema, "", &mut table);
    table
}

fn in_a_row(list: &[&str]) -> String {
    let quoted: Vec<String> = list.iter().map(|entry| format!("`{entry}`")).collect();
    quoted.join(", ") + "\n"
}

/// One test, since all of it is one file.
#[test]
fn keys_and_built_in_lists() {
    check("docs/SETTINGS.md", "keys", &keys());
    check("docs/SETTINGS.md", "secrets", &in_a_row(lists::SECRETS));
    let variables = lists::SECRET_VARIABLES.iter();
    let variables: Vec<&str> = variables.map(|(name, _)| *name).collect();
    check(
        "docs/SETTINGS.md",
        "secret variables",
        &in_a_row(&variables),
    );
    let caches = in_a_row(lists::TOOLCHAIN_CACHES);
    check("docs/SETTINGS.md", "toolchain caches", &caches);
    let knobs = lists::CACHE_KNOBS.iter();
    let knobs: Vec<String> = knobs
        .map(|(cache, name)| format!("{cache}/{name}"))
        .collect();
    let knobs: Vec<&str> = knobs.iter().map(String::as_str).collect();
    check("docs/SETTINGS.md", "cache knobs", &in_a_row(&knobs));
    check("docs/SETTINGS.md", "git knobs", &in_a_row(lists::GIT_KNOBS));
    check("docs/SETTINGS.md", "run later", &in_a_row(lists::RUN_LATER));
    let directories = in_a_row(lists::RUN_LATER_IN);
    check("docs/SETTINGS.md", "programs", &directories);
    let tools: Vec<&str> = lists::TERMINAL_VARIABLES
        .iter()
        .filter(|name| !lists::NOT_FOR_TOOLS.contains(name))
        .chain(lists::PLAIN_VARIABLES)
        .copied()
        .collect();
    check("docs/SETTINGS.md", "variables", &in_a_row(&tools));
    check(
        "docs/SETTINGS.md",
        "terminal variables",
        &in_a_row(lists::NOT_FOR_TOOLS),
    );
    let mut table = String::from("| name | because |\n|---|---|\n");
    for (name, reason) in lists::PROTECTED {
        writeln!(table, "| `{name}` | {reason} |").unwrap();
    }
    check("docs/SETTINGS.md", "protected names", &table);
}
