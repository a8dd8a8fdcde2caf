//! A program that answers requests with one word, and keeps what it was asked.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// A script for `sh`. Questions go to the end of `asked`.
pub(crate) fn script(asked: &Path, word: &str) -> String {
    format!(
        "read -r question\nprintf '%s\\n' \"$question\" >> {}\nid=${{question#*\\\"id\\\":\\\"}}; id=${{id%%\\\"*}}\nbinding=${{question#*\\\"binding\\\":\\\"}}; binding=${{binding%%\\\"*}}\nprintf '{{\"version\":1,\"id\":\"%s\",\"binding\":\"%s\",\"answer\":\"{word}\"}}\\n' \"$id\" \"$binding\"\n",
        asked.display()
    )
}

/// Writes the script beside the file of the questions; the line that starts it.
pub(crate) fn answering(asked: &Path, word: &str) -> String {
    let path = asked.with_file_name(format!("answer-{word}"));
    fs::write(&path, script(asked, word)).unwrap();
    format!("/bin/sh {}", path.display())
}

/// What was asked.
pub(crate) fn questions(asked: &Path) -> Vec<Value> {
    let text = fs::read_to_string(asked).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Whether anything has this name.
pub(crate) fn there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
