//! A profile for one session: its text, and the values of its parameters.

use std::fmt::Write as _;

use super::{Action, Filter, PathValue, Profile, Rule, SessionDirectory, SessionPath, Target};
use crate::path::AbsPath;

/// A profile that can be applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bound {
    /// The text.
    pub text: String,
    /// Names and values of the parameters that the text asks for.
    pub parameters: Vec<(String, String)>,
}

/// Why a profile cannot be written.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A path is not text, and Seatbelt takes no other.
    #[error("{path} is not UTF-8, so no rule can be written for it")]
    NotUtf8 {
        /// The path.
        path: AbsPath,
    },
}

/// What a session has of its own besides its directory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Own {
    /// The port of its gate on the loopback, if its network has one.
    pub gate_port: Option<u16>,
    /// Its terminal, if it has one.
    pub terminal: Option<AbsPath>,
}

impl Profile {
    /// Writes the profile for a session.
    ///
    /// # Errors
    ///
    /// If a path cannot be a parameter. Then nothing may be started.
    pub fn bind(&self, session: &SessionDirectory, own: &Own) -> Result<Bound, BindError> {
        let mut writer = Writer {
            session,
            own,
            bound: Bound {
                text: String::from("(version 1)\n"),
                parameters: Vec::new(),
            },
        };
        let default = word(self.default);
        let _ = writeln!(writer.bound.text, "({default} default)");
        let mut why = "";
        for rule in &self.rules {
            // One comment for a run of rules that stand together.
            if rule.why != why {
                why = rule.why;
                let _ = writeln!(writer.bound.text, "; {why}");
            }
            writer.rule(rule)?;
        }
        Ok(writer.bound)
    }
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Deny => "deny",
    }
}

struct Writer<'a> {
    session: &'a SessionDirectory,
    own: &'a Own,
    bound: Bound,
}

impl Writer<'_> {
    fn rule(&mut self, rule: &Rule) -> Result<(), BindError> {
        let mut text = format!("({} {}", word(rule.action), rule.operations.join(" "));
        let mut written = 0;
        for filter in &rule.filters {
            if let Some(filter) = self.filter(filter)? {
                text.push(' ');
                text.push_str(&filter);
                written += 1;
            }
        }
        // Without any filter a rule is about everything: one that lost all of its own is about
        // nothing.
        if written > 0 || rule.filters.is_empty() {
            self.bound.text.push_str(&text);
            self.bound.text.push_str(")\n");
        }
        Ok(())
    }

    fn filter(&mut self, filter: &Filter) -> Result<Option<String>, BindError> {
        Ok(Some(match filter {
            Filter::GatePort => match self.own.gate_port {
                Some(port) => format!("(remote ip \"localhost:{port}\")"),
                None => return Ok(None),
            },
            Filter::OwnTerminal => match self.own.terminal.clone() {
                Some(terminal) => {
                    let name = self.parameter(&PathValue::Host(terminal))?;
                    format!("(literal (param \"{name}\")) (literal \"/dev/tty\")")
                }
                None => return Ok(None),
            },
            Filter::GlobalName(name) => format!("(global-name \"{name}\")"),
            Filter::IokitClass(name) => format!("(iokit-registry-entry-class \"{name}\")"),
            Filter::Literal(path) => format!("(literal (param \"{}\"))", self.parameter(path)?),
            Filter::LocalPort(port) => format!("(local ip \"localhost:{port}\")"),
            Filter::Name(pattern) => format!("(regex #\"{pattern}\")"),
            Filter::PosixName(name) => format!("(ipc-posix-name \"{name}\")"),
            Filter::PseudoTerminal => {
                "(require-all (regex #\"^/dev/ttys[0-9]+$\") (extension \"com.apple.sandbox.pty\"))"
                    .to_owned()
            }
            Filter::RemotePort(port) => format!("(remote ip \"localhost:{port}\")"),
            Filter::Subpath(path) => format!("(subpath (param \"{}\"))", self.parameter(path)?),
            Filter::SysctlName(name) => format!("(sysctl-name \"{name}\")"),
            Filter::Target(Target::Children) => "(target children)".to_owned(),
            Filter::Target(Target::SameSandbox) => "(target same-sandbox)".to_owned(),
            Filter::UnixSocket => "(remote unix-socket)".to_owned(),
        }))
    }

    /// The name of the parameter that has this path for its value.
    fn parameter(&mut self, path: &PathValue) -> Result<String, BindError> {
        let (name, path) = match path {
            PathValue::Host(path) => (None, path.clone()),
            PathValue::Session(part) => {
                let points = self.session.points();
                let (name, path) = match part {
                    SessionPath::Allowed => ("ALLOWED", points.allowed),
                    SessionPath::Denied => ("DENIED", points.denied),
                    SessionPath::Directory => ("SESSION", self.session.path().clone()),
                    SessionPath::Tmp => ("TMP", self.session.tmp()),
                };
                (Some(name), path)
            }
        };
        let Some(value) = path.as_path().to_str() else {
            return Err(BindError::NotUtf8 { path });
        };
        let parameters = &mut self.bound.parameters;
        let known = parameters
            .iter()
            .find(|(known, of)| of == value && name.is_none_or(|name| name == known));
        if let Some((known, _)) = known {
            return Ok(known.clone());
        }
        let name = name.map_or_else(|| format!("P{}", parameters.len()), str::to_owned);
        parameters.push((name.clone(), value.to_owned()));
        Ok(name)
    }
}
