//! One verdict in words: what may be done, who says so, and the line that would change it.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use ringfence_core::host::{Host, HostPattern};
use ringfence_core::origin::{BuiltIn, Layer, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::plan::DEVICES;
use ringfence_core::policy::{Access, Content, EnvVerdict, Policy, Reachable, SOCKET_VARIABLES};
use ringfence_core::settings::{NetworkMode, Tmp};
use ringfence_core::text::{printable, printable_os};
use serde::Serialize;

use super::grant::{Asker, Grant, grant_path, is_closed_to_us, is_socket, json, shell_word};

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
        let mut grant = grant_path(policy, asker, &path);
        if let Some(found) = &grant {
            if is_closed_to_us(&path, found.to) {
                notes.push(format!(
                    "its own permissions do not let you {} it, with or without ringfence",
                    found.to
                ));
                grant = None;
            } else if found.needs_the_path() && path.as_path().symlink_metadata().is_err() {
                notes.push("create it first: what is granted has to be there".to_owned());
            }
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
            grant,
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

    /// Whether a port of the loopback leads to the host's service: for a program, `localhost` and its
    /// addresses are the session's own.
    pub(crate) fn about_loopback(policy: &Policy, asker: Asker<'_>, host: &str, port: u16) -> Self {
        let network = policy.network();
        let mut open = network.loopback_out().iter();
        let open = open.find(|open| open.value == port);
        let shared = network.mode() == NetworkMode::All;
        let (verdict, origin) = match open {
            Some(open) if !shared => ("allowed", &open.origin),
            None if !shared => ("refused", network.mode_origin()),
            _ => ("allowed", network.mode_origin()),
        };
        let mut notes = Vec::new();
        let mut grant = None;
        if verdict == "refused" {
            notes.push(
                "inside, this is the session's own loopback, where its own servers are".to_owned(),
            );
            let listed = format!("\"network\": {{ \"loopback_out\": [{port}] }}");
            grant = Some(Grant {
                to: "reach",
                flag: format!("--loopback-out {port}"),
                setting: listed,
                file: asker.file(),
            });
        }
        Self {
            question: Question::Host {
                host: printable(host),
                port,
            },
            verdict: verdict.to_owned(),
            origin: origin.clone(),
            rule: Some(match open {
                Some(_) if !shared => format!("port {port} of the host's loopback"),
                _ => format!("network mode {}", network.mode()),
            }),
            notes,
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

/// Whether a session's own `/dev` has it, or it is that directory.
fn is_given_device(path: &AbsPath) -> bool {
    let name = path.as_path().strip_prefix("/dev").ok();
    let first = name.map(|name| name.components().next());
    first.is_none_or(|first| {
        first.is_none_or(|first| DEVICES.iter().any(|device| first.as_os_str() == *device))
    })
}
