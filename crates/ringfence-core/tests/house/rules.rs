//! What holds for every crate and every file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::root;

/// Rooms by height: arrows point down only. A new crate has to be given its place here.
const ROOMS: [(&str, u8); 7] = [
    ("ringfence-core", 0),
    ("ringfence-gate", 1),
    ("ringfence-shell", 1),
    ("ringfence-sys", 1),
    ("ringfence", 2),
    ("ringfence-cli", 3),
    ("ringfence-testkit", 4),
];

/// Above this a file needs a reason, in a comment that starts with `// Long:`.
const LONG: usize = 600;

fn height(name: &str) -> Option<u8> {
    ROOMS
        .iter()
        .find(|(room, _)| *room == name)
        .map(|(_, height)| *height)
}

fn upward(package: &str, dependency: &str) -> bool {
    let (own, other) = (height(package), height(dependency));
    own.is_none() || (dependency.starts_with("ringfence") && (other.is_none() || other >= own))
}

#[test]
fn arrows_point_down_only() {
    let answer = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(!packages.is_empty());
    for package in packages {
        let name = package["name"].as_str().unwrap();
        assert!(
            height(name).is_some(),
            "{name} has no place among the rooms"
        );
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            assert!(!upward(name, other), "{name} -> {other} points up");
        }
    }
}

#[test]
fn an_upward_arrow_would_be_seen() {
    assert!(upward("ringfence-core", "ringfence-sys"));
    assert!(
        upward("ringfence-sys", "ringfence-shell"),
        "rooms of one height are apart"
    );
    assert!(upward("ringfence-new", "serde"));
    assert!(!upward("ringfence-cli", "ringfence-core"));
    assert!(!upward("ringfence-core", "serde"));
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = ["crates", "tests", "benches", "examples", "fuzz"]
        .iter()
        .map(|part| root().join(part))
        .collect();
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 50, "{} files", found.len());
    found
}

/// Whether a line of code, comments and texts left out, opens an unsafe block or item.
fn is_unsafe(line: &str) -> bool {
    // Every second piece between quotation marks is a text.
    let code: String = line.split('"').step_by(2).collect();
    let code = code.split("//").next().unwrap_or_default();
    let part_of_word = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices("unsafe").any(|(at, word)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        !before.ends_with(part_of_word) && !after.starts_with(part_of_word)
    })
}

#[test]
fn unsafe_code_stands_in_its_room() {
    let room: &Path = &root().join("crates/ringfence-sys");
    for file in sources().iter().filter(|file| !file.starts_with(room)) {
        for (index, line) in fs::read_to_string(file).unwrap().lines().enumerate() {
            assert!(!is_unsafe(line), "{}:{}: {line}", file.display(), index + 1);
        }
    }
}

#[test]
fn unsafe_code_would_be_seen() {
    for line in [
        "let x = unsafe { y() };",
        "unsafe fn f() {}",
        "    unsafe impl Send for X {}",
        "f(unsafe",
        "#[unsafe(no_mangle)]",
    ] {
        assert!(is_unsafe(line), "{line}");
    }
    let quote = '"';
    let text = format!("let x = {quote}unsafe {{ }}{quote};");
    let code = format!("let x = {quote}a{quote}; unsafe {{ y({quote}b{quote}) }}");
    assert!(is_unsafe(&code) && !is_unsafe(&text));
    for line in [
        "//! The only unsafe code.",
        "#![forbid(unsafe_code)]",
        "x(); // unsafe { }",
    ] {
        assert!(!is_unsafe(line), "{line}");
    }
}

#[test]
fn long_files_say_why() {
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        // Tests that stand below the code they test do not make it harder to read.
        let code = text.split("\n#[cfg(test)]\nmod tests {").next();
        let lines = code.unwrap_or_default().lines().count();
        let reason = text
            .lines()
            .any(|line| line.trim_start().starts_with("// Long: "));
        assert!(lines <= LONG || reason, "{}: {lines} lines", file.display());
    }
}
