//! The line that would change a verdict: for one command, and for good.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use ringfence_core::origin::{BuiltIn, Layer, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{Access, Content, FileRule, Place, Policy, lists};
use ringfence_core::settings::GitLevel;
use ringfence_core::text::{is_hidden, printable_os};
use rustix::io::Errno;
use serde::Serialize;

/// What would change a verdict.
#[derive(Debug, Serialize)]
pub(crate) struct Grant {
    /// In words: `read`, `run`, `write`, `reach`, `pass`.
    pub(super) to: &'static str,
    /// For one command.
    pub(super) flag: String,
    /// For good: a line for the user's settings file, or the place of the rule to change.
    pub(super) setting: String,
    /// The file that the line belongs into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
}

impl Grant {
    /// Whether it names a path that has to be there by then.
    pub(super) fn needs_the_path(&self) -> bool {
        let flags = ["--read ", "--exec ", "--write "];
        flags.iter().any(|flag| self.flag.starts_with(flag))
    }
}

/// Who asks, and where their settings are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) place: &'a Place,
    pub(crate) settings: Option<&'a Path>,
}

/// The next thing that is not allowed yet, and the line that would allow it.
pub(super) fn grant_path(policy: &Policy, asker: Asker<'_>, path: &AbsPath) -> Option<Grant> {
    let verdict = policy.files().access(path);
    let origin = verdict.origin;
    if *origin == Origin::BuiltIn(BuiltIn::Program) || verdict.content() == Content::Processes {
        // Nothing does.
        return None;
    }
    if is_socket(path) {
        return grant_socket(policy, asker, path);
    }
    let plain = !matches!(
        origin,
        Origin::BuiltIn(BuiltIn::Git | BuiltIn::Protected | BuiltIn::Secrets)
    );
    let to = match verdict.access {
        Access::None => "read",
        // Whoever asks about a program mostly wants to run it.
        Access::Read if plain && is_program(path) => "run",
        Access::Read | Access::Execute => "write",
        Access::Write => return None,
    };
    if *origin == Origin::BuiltIn(BuiltIn::Closed) {
        // No setting makes it known what is in there.
        return None;
    }
    let shown = shell_word(path.as_path().as_os_str());
    let same_path = verdict.rule.is_some_and(|rule| rule.path == *path);
    // A flag beats every file. A second line in the same file would contradict the first, and
    // nothing in the user's file beats the project's.
    let layer = origin.layer();
    let change = layer == Layer::Project || (layer == Layer::User && same_path);
    let in_tree = |path| Path::strip_prefix(path, &asker.place.project).ok();
    let in_project = in_tree(path.as_path()).ok_or(());
    let (flag, line) = match (origin, in_project) {
        (Origin::BuiltIn(BuiltIn::Git), _) => {
            let level = match to {
                "read" => "read",
                _ if may_be_written(policy, path, verdict.rule) => "write",
                _ => "full",
            };
            (
                format!("--git {level}"),
                Some(format!("\"git\": {}", json(level))),
            )
        }
        (Origin::BuiltIn(BuiltIn::Protected), Ok(name)) => {
            // A name that is not there cannot be made without the one above it.
            let is_absent = |path: &AbsPath| path.as_path().symlink_metadata().is_err();
            let rule = verdict.rule.filter(|rule| is_absent(&rule.path));
            let whole = rule.and_then(|rule| in_tree(rule.path.as_path()));
            let name = whole.unwrap_or(name);
            let flag = format!("--allow-protected {}", shell_word(name.as_os_str()));
            let name = name.to_str().map(json);
            let line = name.map(|name| format!("\"protect\": {{ \"allow\": [{name}] }}"));
            (flag, line)
        }
        (Origin::BuiltIn(BuiltIn::Secrets), _) => {
            let line = setting_path(asker, path)
                .map(|path| format!("\"secrets\": {{ \"show\": [{path}] }}"));
            (format!("--read {shown}"), line)
        }
        _ => {
            let (flag, key) = match to {
                "read" => ("--read", "additional_read_only_paths"),
                "run" => ("--exec", "additional_executable_paths"),
                _ => ("--write", "additional_read_write_paths"),
            };
            let line = setting_path(asker, path)
                .map(|path| format!("\"terminal\": {{ \"sandbox\": {{ \"{key}\": [{path}] }} }}"));
            (format!("{flag} {shown}"), line)
        }
    };
    let (setting, file) = match line {
        _ if change => (format!("change {origin}"), None),
        Some(line) => (line, asker.file()),
        None => (
            "not possible, a settings file cannot hold a name that is not UTF-8".to_owned(),
            None,
        ),
    };
    Some(Grant {
        to,
        flag,
        setting,
        file,
    })
}

/// Whether the level `write` lets this be written: nothing that git runs or obeys, in a repository that is
/// a directory.
fn may_be_written(policy: &Policy, path: &AbsPath, rule: Option<&FileRule>) -> bool {
    let is_directory = |path: &AbsPath| {
        let found = path.as_path().symlink_metadata();
        found.is_ok_and(|found| found.is_dir())
    };
    // Also where somebody only supposes that it is there.
    let Some(rule) = rule.filter(|rule| is_directory(&rule.path)) else {
        return false;
    };
    let below = path.as_path().strip_prefix(rule.path.as_path());
    let mut knobs = lists::GIT_KNOBS.iter().chain(lists::WORKTREE_KNOBS);
    policy.git().value < GitLevel::Write
        && below.is_ok_and(|below| !knobs.any(|knob| below.starts_with(knob)))
}

/// Whether the host itself refuses it to whoever asks, so that no line of ours helps.
pub(super) fn is_closed_to_us(path: &AbsPath, to: &str) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let wanted = match to {
        "read" => Access::READ_OK,
        "run" => Access::EXEC_OK,
        "write" => Access::WRITE_OK,
        _ => return false,
    };
    let answer = accessat(CWD, path.as_path(), wanted, AtFlags::EACCESS);
    matches!(answer, Err(Errno::ACCESS | Errno::PERM))
}

/// The line by which a socket may be connected to, which is all that can be done with one.
fn grant_socket(policy: &Policy, asker: Asker<'_>, path: &AbsPath) -> Option<Grant> {
    if policy.sockets().iter().any(|grant| grant.path == *path) {
        return None;
    }
    let mut named = asker.place.sockets.iter();
    let name = named.find(|(_, usual)| usual == path.as_path());
    let (word, text) = match name {
        Some((name, _)) => ((*name).to_owned(), *name),
        None => (
            shell_word(path.as_path().as_os_str()),
            path.as_path().to_str()?,
        ),
    };
    Some(Grant {
        to: "connect",
        flag: format!("--unix-socket {word}"),
        setting: format!("\"unix_sockets\": [{}]", json(text)),
        file: asker.file(),
    })
}

/// Whether somebody could run it, if it may be run.
pub(super) fn is_program(path: &AbsPath) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let found = std::fs::metadata(path.as_path());
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

pub(super) fn is_socket(path: &AbsPath) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let found = std::fs::metadata(path.as_path());
    found.is_ok_and(|found| found.file_type().is_socket())
}

/// A path as it would be written in a settings file.
fn setting_path(asker: Asker<'_>, path: &AbsPath) -> Option<String> {
    let home = asker.place.home.as_ref();
    let below = home.and_then(|home| path.as_path().strip_prefix(home).ok());
    let text = match below {
        Some(below) if !below.as_os_str().is_empty() => format!("~/{}", below.to_str()?),
        _ => path.as_path().to_str()?.to_owned(),
    };
    Some(json(&text))
}

impl Asker<'_> {
    pub(super) fn file(&self) -> Option<String> {
        self.settings.map(|path| printable_os(path.as_os_str()))
    }
}

/// A JSON string that is safe to show: what is hidden is written as JSON escapes.
pub(super) fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            hidden if is_hidden(hidden) => {
                let mut units = [0; 2];
                for unit in hidden.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}

/// A word as a shell would have to be told it.
pub(crate) fn shell_word(word: &OsStr) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "_-./:@%+,=".contains(character);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if !text.contains('\'') && !text.chars().any(is_hidden) => format!("'{text}'"),
        _ => {
            let mut out = String::from("$'");
            for byte in word.as_encoded_bytes() {
                match byte {
                    b'\'' | b'\\' => {
                        out.push('\\');
                        out.push(char::from(*byte));
                    }
                    b' '..=b'~' => out.push(char::from(*byte)),
                    other => {
                        let _ = write!(out, "\\x{other:02x}");
                    }
                }
            }
            out.push('\'');
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let word = |bytes: &[u8]| shell_word(OsStr::from_bytes(bytes));
        assert_eq!(word(b"/a/b-c.d"), "/a/b-c.d");
        assert_eq!(word(b"/a b"), "'/a b'");
        assert_eq!(word(b""), "''");
        assert_eq!(word(b"it's"), "$'it\\'s'");
        assert_eq!(word(b"\xff\x1b\\"), "$'\\xff\\x1b\\\\'");
    }

    #[test]
    fn json_strings_hide_nothing() {
        assert_eq!(
            json("a\"\\\u{1b}\u{e0041}"),
            "\"a\\\"\\\\\\u001b\\udb40\\udc41\""
        );
    }
}
