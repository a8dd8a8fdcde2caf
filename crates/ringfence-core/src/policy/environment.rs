//! Which variables a command finds in its environment.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::origin::{Located, Origin};

/// `NAME`, or `PREFIX_*`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EnvPattern {
    text: String,
    reach: Reach,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reach {
    Exact,
    Prefix,
}

/// Why a text does not name variables.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvPatternError {
    /// `=` or a zero byte, which no name has.
    #[error("a variable's name cannot hold `=` or a zero byte")]
    Character,
    /// Nothing, or a `*` alone: that would pass everything.
    #[error("write a name, or a prefix and `*`")]
    Empty,
    /// A `*` somewhere else than at the end.
    #[error("a `*` can only stand at the end")]
    Wildcard,
}

impl EnvPattern {
    /// Whether a variable of this name is meant.
    pub fn matches(&self, name: &str) -> bool {
        match self.reach {
            Reach::Exact => self.text == name,
            Reach::Prefix => name.starts_with(&self.text),
        }
    }

    /// What both patterns mean, if anything.
    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        match (self.reach, other.reach) {
            (Reach::Exact, _) => other.matches(&self.text).then(|| self.clone()),
            (_, Reach::Exact) => self.matches(&other.text).then(|| other.clone()),
            (Reach::Prefix, Reach::Prefix) if self.text.starts_with(&other.text) => {
                Some(self.clone())
            }
            (Reach::Prefix, Reach::Prefix) => {
                other.text.starts_with(&self.text).then(|| other.clone())
            }
        }
    }
}

impl FromStr for EnvPattern {
    type Err = EnvPatternError;

    fn from_str(text: &str) -> Result<Self, EnvPatternError> {
        if text.contains(['=', '\0']) {
            return Err(EnvPatternError::Character);
        }
        let (name, reach) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, Reach::Prefix),
            None => (text, Reach::Exact),
        };
        if name.is_empty() {
            return Err(EnvPatternError::Empty);
        }
        if name.contains('*') {
            return Err(EnvPatternError::Wildcard);
        }
        Ok(Self {
            text: name.to_owned(),
            reach,
        })
    }
}

impl fmt::Display for EnvPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::printable(&self.text))?;
        match self.reach {
            Reach::Exact => Ok(()),
            Reach::Prefix => f.write_str("*"),
        }
    }
}

impl Serialize for EnvPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl schemars::JsonSchema for EnvPattern {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EnvPattern".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[^=*\\u0000]+\\*?$" })
    }
}

/// Which variables pass.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Passing {
    /// All of them: nothing is restricted.
    Everything,
    /// Those that some pattern means; an empty list passes nothing.
    Listed(Vec<Located<EnvPattern>>),
}

/// The environment's part of a policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Environment {
    pub(crate) passing: Passing,
    pub(crate) passing_origin: Origin,
    pub(crate) set: BTreeMap<String, Located<String>>,
    /// Known sockets that are granted, by the names that settings use.
    pub(crate) sockets: Vec<&'static str>,
}

/// What becomes of one variable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EnvVerdict<'a> {
    /// It is given this value.
    Set(&'a Located<String>),
    /// The caller's value passes.
    Passes(&'a Origin),
    /// It is left out: nothing lists it.
    Removed(&'a Origin),
    /// It is left out: it leads to a socket that is not granted.
    LeadsToSocket {
        /// The name of the grant that would let it pass.
        socket: &'static str,
    },
}

/// Variables that lead a program to a socket of the host, and the grant each needs.
pub const SOCKET_VARIABLES: &[(&str, &str)] = &[
    ("DBUS_SESSION_BUS_ADDRESS", "session-bus"),
    ("DISPLAY", "x11"),
    ("DOCKER_HOST", "docker"),
    ("GPG_AGENT_INFO", "gpg-agent"),
    ("SSH_AUTH_SOCK", "ssh-agent"),
    ("WAYLAND_DISPLAY", "wayland"),
    ("XAUTHORITY", "x11"),
];

impl Environment {
    /// What becomes of a variable.
    pub fn verdict(&self, name: &str) -> EnvVerdict<'_> {
        if let Some(value) = self.set.get(name) {
            return EnvVerdict::Set(value);
        }
        let Passing::Listed(patterns) = &self.passing else {
            return EnvVerdict::Passes(&self.passing_origin);
        };
        let Some(listed) = patterns.iter().find(|pattern| pattern.value.matches(name)) else {
            return EnvVerdict::Removed(&self.passing_origin);
        };
        let socket = SOCKET_VARIABLES
            .iter()
            .find(|(variable, _)| *variable == name)
            .map(|(_, socket)| *socket);
        match socket {
            Some(socket) if !self.sockets.contains(&socket) => EnvVerdict::LeadsToSocket { socket },
            _ => EnvVerdict::Passes(&listed.origin),
        }
    }

    /// Which variables pass.
    pub fn passing(&self) -> &Passing {
        &self.passing
    }

    /// Variables that are set, whatever the caller has.
    pub fn set(&self) -> &BTreeMap<String, Located<String>> {
        &self.set
    }

    /// An environment that passes what both pass, and sets what `self` sets.
    pub(crate) fn meet(&self, other: &Self) -> Self {
        let (passing, origin) = match (&self.passing, &other.passing) {
            (Passing::Everything, _) => (other.passing.clone(), &other.passing_origin),
            (_, Passing::Everything) => (self.passing.clone(), &self.passing_origin),
            (Passing::Listed(mine), Passing::Listed(theirs)) => {
                let mut both: Vec<Located<EnvPattern>> = Vec::new();
                for a in mine {
                    for b in theirs {
                        if let Some(value) = a.value.meet(&b.value)
                            && !both.iter().any(|known| known.value == value)
                        {
                            both.push(Located::new(value, a.origin.clone()));
                        }
                    }
                }
                (Passing::Listed(both), &self.passing_origin)
            }
        };
        let sockets = self.sockets.iter().copied();
        Self {
            passing,
            passing_origin: origin.clone(),
            set: self.set.clone(),
            sockets: sockets
                .filter(|socket| other.sockets.contains(socket))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> EnvPattern {
        text.parse().unwrap()
    }

    #[test]
    fn names_and_prefixes() {
        assert!(pattern("LC_*").matches("LC_ALL"));
        assert!(!pattern("LC_*").matches("LC"));
        assert!(pattern("PATH").matches("PATH"));
        assert!(!pattern("PATH").matches("PATHEXT"));
        assert_eq!("*".parse::<EnvPattern>(), Err(EnvPatternError::Empty));
        assert_eq!("A*B".parse::<EnvPattern>(), Err(EnvPatternError::Wildcard));
        assert_eq!("A=B".parse::<EnvPattern>(), Err(EnvPatternError::Character));
    }

    #[test]
    fn patterns_meet_in_the_narrower_one() {
        let meet = |a: &str, b: &str| pattern(a).meet(&pattern(b)).map(|p| p.to_string());
        assert_eq!(meet("A_*", "A_B_*"), Some("A_B_*".to_owned()));
        assert_eq!(meet("A_B", "A_*"), Some("A_B".to_owned()));
        assert_eq!(meet("A_*", "B_*"), None);
        assert_eq!(meet("A", "B"), None);
    }
}
