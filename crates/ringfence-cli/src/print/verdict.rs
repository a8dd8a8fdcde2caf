//! One verdict in words: what may be done, who says so, and the line that would change it.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use ringfence_core::host::{Host, HostPattern};
use ringfence_core::origin::{BuiltIn, Layer, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::plan::DEVICES;
use ringfence_core::policy::{
    Access, Content, EnvVerdict, Place, Policy, Reachable, SOCKET_VARIABLES,
};
use ringfence_core::settings::{NetworkMode, Tmp};
use ringfence_core::text::{is_hidden, printable, printable_os};
use serde::Serialize;

/// What was asked and what holds.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    question: Question,
    verdict: String,
    /// Who says so.
    origin: Origin,
    /// The rule that decided, if it is not the question itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<Grant>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Question {
    Path { path: String, canonical: AbsPath },
    Host { host: String, port: u16 },
    Env { env: String },
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path, .. } => f.write_str(path),
            Self::Host { host, port } => write!(f, "{host}:{port}"),
            Self::Env { env } => f.write_str(env),
        }
    }
}

/// What would change a verdict.
#[derive(Debug, Serialize)]
struct Grant {
    /// In words: `read`, `write`, `reach`, `pass`.
    to: &'static str,
    /// For one command.
    flag: String,
    /// For good: a line for the user's settings file, or the place of the rule to change.
    setting: String,
    /// The file that the line belongs into.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// Who asks, and where their settings are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) place: &'a Place,
    pub(crate) settings: Option<&'a Path>,
}

/// What is known about a path before the policy is asked.
#[derive(Debug)]
pub(crate) struct Asked {
    /// As it was given.
    pub(crate) given: PathBuf,
    /// What the policy is asked about.
    pub(crate) path: AbsPath,
    /// What a reader must know about how one became the other.
    pub(crate) notes: Vec<String>,
}

impl Answer {
    /// What may be done with a path.
    pub(crate) fn about_path(policy: &Policy, asker: Asker<'_>, asked: Asked) -> Self {
        let Asked {
            given,
            path,
            mut notes,
        } = asked;
        let verdict = policy.files().access(&path);
        let rule = verdict.rule.filter(|rule| rule.path != path);
        let private = *verdict.origin == Origin::BuiltIn(BuiltIn::Tmp)
            && policy.tmp().value == Tmp::Private
            && verdict.access == Access::Write;
        if private {
            notes.push("the command has its own, and does not see the host's".to_owned());
        }
        if *verdict.origin == Origin::BuiltIn(BuiltIn::Program) {
            notes.push("whoever could replace it would be outside with the next start".to_owned());
        }
        match verdict.content() {
            Content::Processes if path.as_path() != Path::new("/proc") => {
                notes.push(
                    "the command sees its own processes there, and not the host's".to_owned(),
                );
            }
            Content::Devices if !is_given_device(&path) => notes.push(format!(
                "the session's own /dev has few devices, and not this one; `--write {}` gives it",
                shell_word(path.as_path().as_os_str())
            )),
            _ => {}
        }
        if let Some(socket) = policy.sockets().iter().find(|grant| grant.path == path) {
            notes.push(format!("it may be connected to: {}", socket.origin));
        } else if is_socket(&path) {
            notes.push("a socket of the host, which cannot be connected to".to_owned());
        }
        Self {
            question: Question::Path {
                path: printable_os(given.as_os_str()),
                canonical: path.clone(),
            },
            verdict: verdict.access.to_string(),
            origin: verdict.origin.clone(),
            rule: rule.map(|rule| rule.path.to_string()),
            notes,
            grant: grant_path(policy, asker, &path),
        }
    }

    /// Whether a host may be reached.
    pub(crate) fn about_host(
        policy: &Policy,
        asker: Asker<'_>,
        pattern: &HostPattern,
        host: &Host,
        port: u16,
    ) -> Self {
        let network = policy.network();
        let verdict = network.verdict(host, port);
        let (word, grant) = match verdict.reach {
            Reachable::Allowed => ("allowed", None),
            Reachable::Refused => {
                let pattern = pattern.to_string();
                let hosts = format!("\"network\": {{ \"hosts\": [{}] }}", json(&pattern));
                let written = network.mode() == NetworkMode::None
                    && matches!(network.mode_origin().layer(), Layer::User | Layer::Project);
                let setting = if written {
                    format!("change {}, then {hosts}", network.mode_origin())
                } else {
                    hosts
                };
                let flag = format!("--allow-host {}", shell_word(OsStr::new(&pattern)));
                let grant = Grant {
                    to: "reach",
                    flag,
                    setting,
                    file: asker.file(),
                };
                ("refused", Some(grant))
            }
        };
        let rule = match verdict.pattern {
            Some(pattern) => format!("host {pattern}"),
            None => format!("network mode {}", network.mode()),
        };
        Self {
            question: Question::Host {
                host: host.to_string(),
                port,
            },
            verdict: word.to_owned(),
            origin: verdict.origin.clone(),
            rule: Some(rule),
            notes: Vec::new(),
            grant,
        }
    }

    /// What becomes of a variable.
    pub(crate) fn about_variable(policy: &Policy, asker: Asker<'_>, name: &str) -> Self {
        let grant = |flag: String, setting: String| {
            Some(Grant {
                to: "let it pass",
                flag,
                setting,
                file: asker.file(),
            })
        };
        let socket = SOCKET_VARIABLES
            .iter()
            .find(|(variable, _)| *variable == name)
            .map(|(_, socket)| *socket);
        // Whoever names a socket has its variables, too.
        let to_socket = |socket: &str| {
            let listed = format!("\"unix_sockets\": [{}]", json(socket));
            grant(format!("--unix-socket {socket}"), listed)
        };
        let listed = format!("\"env\": {{ \"allow\": [{}] }}", json(name));
        let flag = format!("--env {}", shell_word(OsStr::new(name)));
        let mut notes = Vec::new();
        let (verdict, origin, grant) = match policy.environment().verdict(name) {
            EnvVerdict::Set(value) => {
                let verdict = format!("set to \"{}\"", printable(&value.value));
                (verdict, value.origin.clone(), None)
            }
            EnvVerdict::Passes(origin) => ("passes".to_owned(), origin.clone(), None),
            EnvVerdict::Removed(origin) => {
                let grant = match socket {
                    None => grant(flag, listed),
                    Some(socket) => {
                        notes.push(format!("it leads to a socket of the host: {socket}"));
                        to_socket(socket)
                    }
                };
                ("removed".to_owned(), origin.clone(), grant)
            }
            EnvVerdict::LeadsToSocket { socket } => {
                notes.push(format!(
                    "it leads to a socket of the host that is not granted: {socket}"
                ));
                let grant = to_socket(socket);
                let origin = Origin::BuiltIn(BuiltIn::Environment);
                ("removed".to_owned(), origin, grant)
            }
        };
        Self {
            question: Question::Env {
                env: printable(name),
            },
            verdict,
            origin,
            rule: None,
            notes,
            grant,
        }
    }

    /// In words.
    pub(crate) fn render(&self, out: &mut String) {
        let _ = write!(
            out,
            "{}\n    {}: {}",
            self.question, self.verdict, self.origin
        );
        if let Some(rule) = &self.rule {
            let _ = write!(out, " ({rule})");
        }
        out.push('\n');
        for note in &self.notes {
            let _ = writeln!(out, "    {note}");
        }
        if let Some(grant) = &self.grant {
            let Grant {
                to, flag, setting, ..
            } = grant;
            let _ = writeln!(out, "    to {to} once:   {flag}");
            let _ = write!(out, "    to {to} always: {setting}");
            if let Some(file) = &grant.file {
                let _ = write!(out, " in {file}");
            }
            out.push('\n');
        }
    }
}

/// The next thing that is not allowed yet, and the line that would allow it.
fn grant_path(policy: &Policy, asker: Asker<'_>, path: &AbsPath) -> Option<Grant> {
    let verdict = policy.files().access(path);
    let origin = verdict.origin;
    if *origin == Origin::BuiltIn(BuiltIn::Program) || verdict.content() == Content::Processes {
        // Nothing does.
        return None;
    }
    if is_socket(path) {
        return grant_socket(policy, asker, path);
    }
    let to = match verdict.access {
        Access::None => "read",
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
            let level = if to == "read" { "read" } else { "full" };
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
            let key = if to == "read" {
                "additional_read_only_paths"
            } else {
                "additional_read_write_paths"
            };
            let line = setting_path(asker, path)
                .map(|path| format!("\"terminal\": {{ \"sandbox\": {{ \"{key}\": [{path}] }} }}"));
            (format!("--{to} {shown}"), line)
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

fn is_socket(path: &AbsPath) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let found = std::fs::metadata(path.as_path());
    found.is_ok_and(|found| found.file_type().is_socket())
}

/// Whether a session's own `/dev` has it, or it is that directory.
fn is_given_device(path: &AbsPath) -> bool {
    let name = path.as_path().strip_prefix("/dev").ok();
    let first = name.map(|name| name.components().next());
    first.is_none_or(|first| {
        first.is_none_or(|first| DEVICES.iter().any(|device| first.as_os_str() == *device))
    })
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
    fn file(&self) -> Option<String> {
        self.settings.map(|path| printable_os(path.as_os_str()))
    }
}

/// A JSON string that is safe to show: what is hidden is written as JSON escapes.
fn json(text: &str) -> String {
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
