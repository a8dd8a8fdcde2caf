//! One line of an allow-list of hosts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Host, HostError, Name};

/// A host that may be reached: exact, or everything below a name, on some ports.
///
/// `example.org`, `*.example.org`, `example.org:8443`, `example.org:*`, `192.0.2.1`,
/// `[2001:db8::1]:22`. A wildcard stands for one or more labels and never for the name itself.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct HostPattern {
    target: Target,
    ports: Ports,
}

/// Which hosts a pattern means.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Target {
    /// Every name below this one.
    Below(Name),
    /// This host alone.
    Exact(Host),
}

/// Which ports a pattern means.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Ports {
    /// Every port, written `:*`.
    Any,
    /// One port.
    One(u16),
    /// 80 and 443: what stands when nothing is written.
    Web,
}

/// Why a text is not a host pattern.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Not a host at all.
    #[error("{0}")]
    Host(HostError),
    /// `localhost` means another machine inside than outside.
    #[error("`localhost` inside the sandbox is not the host's; open a port with `loopback_out`")]
    Localhost,
    /// Not a port number.
    #[error("the port is not `*` or a number from 1 to 65535")]
    Port,
    /// `*`, `*.com`: a wildcard over a whole top-level domain.
    #[error("the wildcard covers a whole top-level domain")]
    TooBroad,
    /// A URL or a path where a host was meant.
    #[error("this is a URL; write the host name alone")]
    Url,
    /// A `*` somewhere else than as the whole first label.
    #[error("a `*` can only be the whole first label, as in `*.example.org`")]
    Wildcard,
}

impl HostPattern {
    /// Which hosts it means.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Which ports it means.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Whether this host may be reached on this port.
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        self.target.matches(host) && self.ports.contain(port)
    }

    /// What both patterns allow, if anything.
    pub fn meet(&self, other: &Self) -> Option<Self> {
        let target = if self.target.covers(&other.target) {
            &other.target
        } else if other.target.covers(&self.target) {
            &self.target
        } else {
            return None;
        };
        Some(Self {
            target: target.clone(),
            ports: self.ports.meet(other.ports)?,
        })
    }

    /// Whether everything that `other` allows is allowed by this pattern too.
    pub fn covers(&self, other: &Self) -> bool {
        self.target.covers(&other.target) && self.ports.cover(other.ports)
    }
}

impl Target {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Below(parent), Self::Below(child)) => {
                parent == child || is_below(child.as_str(), parent.as_str())
            }
            (target, Self::Exact(host)) => target.matches(host),
            (Self::Exact(_), Self::Below(_)) => false,
        }
    }

    fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Exact(exact), host) => exact == host,
            (Self::Below(parent), Host::Name(name)) => is_below(name.as_str(), parent.as_str()),
            (Self::Below(_), Host::Ip(_)) => false,
        }
    }
}

fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent)
        .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

impl Ports {
    /// Whether this port is meant.
    pub fn contain(self, port: u16) -> bool {
        match self {
            Self::Any => port != 0,
            Self::One(one) => one == port,
            Self::Web => port == 80 || port == 443,
        }
    }

    fn meet(self, other: Self) -> Option<Self> {
        if self.cover(other) {
            return Some(other);
        }
        other.cover(self).then_some(self)
    }

    fn cover(self, other: Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Any) => false,
            (mine, Self::One(port)) => mine.contain(port),
            (mine, Self::Web) => mine.contain(80) && mine.contain(443),
        }
    }
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.contains("://") || text.contains('/') {
            return Err(PatternError::Url);
        }
        let (host, port) = split_port(text);
        let ports = match port {
            None => Ports::Web,
            Some("*") => Ports::Any,
            Some(digits) => Ports::One(parse_port(digits).ok_or(PatternError::Port)?),
        };
        let target = parse_target(host)?;
        Ok(Self { target, ports })
    }
}

fn parse_target(host: &str) -> Result<Target, PatternError> {
    if host == "*" {
        return Err(PatternError::TooBroad);
    }
    let parent = host.strip_prefix("*.");
    if parent.unwrap_or(host).contains('*') {
        return Err(PatternError::Wildcard);
    }
    let parsed = Host::parse(parent.unwrap_or(host)).map_err(PatternError::Host)?;
    if let Host::Name(name) = &parsed {
        let name = name.as_str();
        if name == "localhost" || is_below(name, "localhost") {
            return Err(PatternError::Localhost);
        }
    }
    match (parent, parsed) {
        (None, host) => Ok(Target::Exact(host)),
        (Some(_), Host::Ip(_)) => Err(PatternError::Wildcard),
        (Some(_), Host::Name(name)) if !name.as_str().contains('.') => Err(PatternError::TooBroad),
        (Some(_), Host::Name(name)) => Ok(Target::Below(name)),
    }
}

/// `host:port`, where an IPv6 address needs brackets to have a port.
fn split_port(text: &str) -> (&str, Option<&str>) {
    if let Some(end) = text.rfind(']') {
        let (host, rest) = text.split_at(end + 1);
        return match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            // Something else behind the bracket: let the host parser refuse the whole.
            None => (text, None),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

/// Decimal digits only: no sign, no space, no zero, no leading zero.
fn parse_port(text: &str) -> Option<u16> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (plain && !text.starts_with('0'))
        .then(|| text.parse().ok())
        .flatten()
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Below(name) => write!(f, "*.{}", name.as_str())?,
            Target::Exact(host) => host.fmt(f)?,
        }
        match self.ports {
            Ports::Any => f.write_str(":*"),
            Ports::One(port) => write!(f, ":{port}"),
            Ports::Web => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for HostPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    fn allows(rule: &str, host: &str, port: u16) -> bool {
        Host::parse(host).is_ok_and(|host| pattern(rule).matches(&host, port))
    }

    #[test]
    fn a_wildcard_means_everything_below_and_not_the_name_itself() {
        for (host, verdict) in [
            ("a.ok.test", true),
            ("A.OK.TEST", true),
            ("a.ok.test.", true),
            ("a.b.ok.test", true),
            ("ok.test", false),
            ("evilok.test", false),
            ("ok.test.evil.test", false),
            ("a..ok.test", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(allows("*.ok.test", host, 443), verdict, "{host}");
        }
    }

    #[test]
    fn ports_are_80_and_443_unless_written() {
        assert!(allows("ok.test", "ok.test", 80));
        assert!(allows("ok.test", "ok.test", 443));
        assert!(!allows("ok.test", "ok.test", 22));
        assert!(allows("ok.test:22", "ok.test", 22));
        assert!(!allows("ok.test:22", "ok.test", 443));
        assert!(allows("ok.test:*", "ok.test", 65535));
        assert!(!allows("ok.test:*", "ok.test", 0));
        assert!(allows("[2001:db8::1]:22", "2001:db8:0::1", 22));
        assert!(allows("2001:db8::1", "[2001:db8::1]", 80));
    }

    #[test]
    fn patterns_that_are_not_one_thing_are_refused() {
        for (text, error) in [
            ("*", PatternError::TooBroad),
            ("*.com", PatternError::TooBroad),
            ("*.", PatternError::Host(HostError::Empty)),
            ("", PatternError::Host(HostError::Empty)),
            ("a.*.b", PatternError::Wildcard),
            ("**.b.c", PatternError::Wildcard),
            ("*.*.b.c", PatternError::Wildcard),
            ("a*.b.c", PatternError::Wildcard),
            ("[*]", PatternError::Wildcard),
            ("*.192.0.2.1", PatternError::Wildcard),
            ("localhost", PatternError::Localhost),
            ("LOCALHOST:80", PatternError::Localhost),
            ("a.localhost", PatternError::Localhost),
            ("*.localhost", PatternError::Localhost),
            ("https://a.test/x", PatternError::Url),
            ("a.test/x", PatternError::Url),
            ("a.test:", PatternError::Port),
            ("a.test:0", PatternError::Port),
            ("a.test:080", PatternError::Port),
            ("a.test:65536", PatternError::Port),
            ("a.test:443abc", PatternError::Port),
            ("a.test:+1", PatternError::Port),
            ("127.1", PatternError::Host(HostError::Numeric)),
            ("[::1]x", PatternError::Host(HostError::Character)),
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn covering_never_widens() {
        for (broad, narrow, verdict) in [
            ("*.a.test", "x.a.test", true),
            ("*.a.test", "*.x.a.test", true),
            ("*.a.test", "*.a.test", true),
            ("*.a.test", "a.test", false),
            ("*.x.a.test", "*.a.test", false),
            ("a.test", "*.a.test", false),
            ("a.test:*", "a.test:22", true),
            ("a.test", "a.test:443", true),
            ("a.test", "a.test:22", false),
            ("a.test:443", "a.test", false),
        ] {
            assert_eq!(
                pattern(broad).covers(&pattern(narrow)),
                verdict,
                "{broad} {narrow}"
            );
        }
    }

    fn any_pattern() -> impl Strategy<Value = String> {
        let label = "[a-z0-9]([a-z0-9-]{0,5}[a-z0-9])?";
        let name = proptest::collection::vec(label, 2..4).prop_map(|labels| labels.join("."));
        let host = prop_oneof![
            name.clone(),
            name.prop_map(|name| format!("*.{name}")),
            any::<[u8; 4]>().prop_map(|bytes| std::net::Ipv4Addr::from(bytes).to_string()),
            any::<u128>().prop_map(|bits| format!("[{}]", std::net::Ipv6Addr::from(bits))),
        ];
        let port = prop_oneof![
            Just(String::new()),
            Just(":*".to_owned()),
            (1u16..).prop_map(|port| format!(":{port}"))
        ];
        (host, port).prop_map(|(host, port)| host + &port)
    }

    proptest! {
        #[test]
        fn printing_and_parsing_agree(text in any_pattern()) {
            if let Ok(parsed) = text.parse::<HostPattern>() {
                prop_assert_eq!(parsed.to_string().parse::<HostPattern>(), Ok(parsed));
            }
        }

        #[test]
        fn a_covered_pattern_allows_nothing_more(
            broad in any_pattern(), narrow in any_pattern(), host in any_pattern(), port: u16,
        ) {
            let parsed = (broad.parse::<HostPattern>(), narrow.parse::<HostPattern>());
            if let ((Ok(broad), Ok(narrow)), Ok(host)) = (parsed, Host::parse(&host))
                && broad.covers(&narrow) && narrow.matches(&host, port)
            {
                prop_assert!(broad.matches(&host, port));
            }
        }

        #[test]
        fn a_meeting_allows_what_both_allow(
            a in any_pattern(), b in any_pattern(), host in any_pattern(), port: u16,
        ) {
            let parsed = (a.parse::<HostPattern>(), b.parse::<HostPattern>());
            if let ((Ok(a), Ok(b)), Ok(host)) = (parsed, Host::parse(&host)) {
                let meeting = a.meet(&b).is_some_and(|both| both.matches(&host, port));
                prop_assert_eq!(meeting, a.matches(&host, port) && b.matches(&host, port));
            }
        }

        #[test]
        fn any_text_is_a_pattern_or_an_error(text in "\\PC*") {
            let _ = text.parse::<HostPattern>();
        }
    }
}
