//! What `ringfence explain` is asked about: hosts, and words that are no path.

use std::path::PathBuf;

use ringfence_core::host::{Host, HostPattern, PatternError, Ports, Target};
use ringfence_core::policy::{Place, Policy};
use ringfence_core::settings::SocketName;
use ringfence_core::text::printable;

use crate::exit::Exit;
use crate::output::complain;
use crate::print::grant::Asker;
use crate::print::verdict::Answer;

/// The port of a host that was asked about without one.
const DEFAULT_PORT: u16 = 443;

/// One host and one port.
#[derive(Debug)]
pub(super) enum Reached {
    /// On any network.
    Host {
        pattern: HostPattern,
        host: Host,
        port: u16,
    },
    /// On the loopback, of which a session has its own.
    Loopback { name: String, port: u16 },
}

impl Reached {
    pub(super) fn answer(&self, policy: &Policy, asker: Asker<'_>) -> Answer {
        match self {
            Self::Host {
                pattern,
                host,
                port,
            } => Answer::about_host(policy, asker, pattern, host, *port),
            Self::Loopback { name, port } => Answer::about_loopback(policy, asker, name, *port),
        }
    }
}

/// Why a text is not one host.
struct NotOne {
    why: String,
    help: Option<&'static str>,
}

impl NotOne {
    fn new(why: &impl ToString) -> Self {
        Self {
            why: why.to_string(),
            help: None,
        }
    }
}

/// `host`, `host:port`, an address: one host and one port.
pub(super) fn parse_host(text: &str) -> Result<Reached, Exit> {
    reached(text).map_err(|NotOne { why, help }| {
        let shown = printable(text);
        complain(&format!("`{shown}` is not one host: {why}"), help);
        Exit::Usage
    })
}

fn reached(text: &str) -> Result<Reached, NotOne> {
    let pattern: HostPattern = match text.parse() {
        Ok(pattern) => pattern,
        Err(error @ PatternError::Localhost) => {
            let parts = text.rsplit_once(':');
            let port = parts.and_then(|(name, port)| Some((name, port.parse().ok()?)));
            return match port {
                Some((name, port)) if port > 0 => Ok(Reached::Loopback {
                    name: name.to_owned(),
                    port,
                }),
                _ => Err(NotOne {
                    why: error.to_string(),
                    help: Some("ask about one port of it, such as `localhost:5432`"),
                }),
            };
        }
        Err(error) => return Err(NotOne::new(&error)),
    };
    let Target::Exact(host) = pattern.target().clone() else {
        let why = "ask about a name, not about all names below one";
        return Err(NotOne::new(&why));
    };
    let port = match pattern.ports() {
        Ports::One(port) => port,
        Ports::Web => DEFAULT_PORT,
        Ports::Any => return Err(NotOne::new(&"ask about one port")),
    };
    Ok(match host {
        Host::Ip(address) if address.to_canonical().is_loopback() => Reached::Loopback {
            name: host.to_string(),
            port,
        },
        host => Reached::Host {
            pattern,
            host,
            port,
        },
    })
}

/// What a word means that names no file.
#[derive(Debug)]
pub(super) enum Meant<'a> {
    /// A URL, an address, or a host with its port.
    Host(Reached),
    /// It could be a path as well; what else it could be is said.
    Perhaps(String),
    /// A socket that settings have a name for.
    Socket(PathBuf),
    /// A variable that is set here.
    Variable(&'a str),
}

/// What is meant by a word that names no file, unless that is a file to come.
pub(super) fn meant_by<'a>(word: &'a str, place: &Place) -> Option<Meant<'a>> {
    if let Some((scheme, rest)) = word.split_once("://") {
        return in_url(scheme, rest).map(Meant::Host);
    }
    if word.contains('/') {
        return None;
    }
    if let Some(SocketName::Known(name)) = SocketName::known(word) {
        let mut usual = place.sockets.iter();
        let usual = usual.find(|(known, _)| *known == name);
        return Some(match usual {
            Some((_, path)) if path.symlink_metadata().is_ok() => Meant::Socket(path.clone()),
            _ => Meant::Perhaps(format!(
                "a socket of the host is named with --unix-socket {name}; it is not there now"
            )),
        });
    }
    let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if word.bytes().all(upper) && !word.is_empty() {
        if std::env::var_os(word).is_some() {
            return Some(Meant::Variable(word));
        }
        let variable = word.contains('_');
        return variable
            .then(|| Meant::Perhaps(format!("a variable is asked about with --env {word}")));
    }
    match reached(word).ok()? {
        Reached::Host {
            host: Host::Name(name),
            pattern,
            ..
        } if !matches!(pattern.ports(), Ports::One(_)) => {
            let dotted = name.as_str().contains('.');
            dotted.then(|| {
                Meant::Perhaps(format!(
                    "a host is asked about with --host {}",
                    name.as_str()
                ))
            })
        }
        host => Some(Meant::Host(host)),
    }
}

/// The host that a URL leads to.
fn in_url(scheme: &str, rest: &str) -> Option<Reached> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let usual = match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "git" => Some(9418),
        "git+ssh" | "sftp" | "ssh" => Some(22),
        "mysql" => Some(3306),
        "postgres" | "postgresql" => Some(5432),
        "redis" => Some(6379),
        _ => None,
    };
    match reached(host) {
        Ok(Reached::Host { pattern, host, .. }) if pattern.ports() == Ports::Web => match usual? {
            port @ (80 | 443) => Some(Reached::Host {
                pattern,
                host,
                port,
            }),
            port => reached(&format!("{pattern}:{port}")).ok(),
        },
        Ok(reached) => Some(reached),
        // `localhost` is asked about with a port only.
        Err(_) => reached(&format!("{host}:{}", usual?)).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_to_a_host_and_a_port() {
        let read = |url: &str| {
            let (scheme, rest) = url.split_once("://").unwrap();
            in_url(scheme, rest).map(|found| match found {
                Reached::Host { host, port, .. } => format!("{host}:{port}"),
                Reached::Loopback { name, port } => format!("loopback {name}:{port}"),
            })
        };
        for (url, expected) in [
            ("http://example.org/foo", "example.org:80"),
            ("https://user:pass@example.org:8443/x?y", "example.org:8443"),
            ("ssh://git@github.com/a/b", "github.com:22"),
            ("postgres://me@localhost/db", "loopback localhost:5432"),
            ("http://localhost:3000/", "loopback localhost:3000"),
            ("http://localhost", "loopback localhost:80"),
            ("redis://10.0.0.7", "10.0.0.7:6379"),
        ] {
            assert_eq!(read(url).as_deref(), Some(expected), "{url}");
        }
        assert_eq!(read("file:///etc/passwd"), None);
    }
}
