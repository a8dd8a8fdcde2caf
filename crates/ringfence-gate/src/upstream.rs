//! The proxy of the network the host is in, where it has one.
//!
//! Taken from the caller's own variables, as other programs take it. What goes through it is
//! judged like everything else; only the look-up is the proxy's, since such networks often have no
//! names of the outside.

use std::ffi::OsString;
use std::fmt;

use ringfence_core::host::Host;

use crate::Destination;

/// Which proxy a connection goes through.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Upstreams {
    plain: Option<Upstream>,
    secure: Option<Upstream>,
    around: Vec<Around>,
}

/// One proxy. Its password is never printed.
#[derive(Clone, Eq, PartialEq)]
pub struct Upstream {
    /// Where it is.
    pub address: Destination,
    /// The value of its `Proxy-Authorization`, if it wants one.
    pub authorization: Option<String>,
}

/// Hosts that are reached without a proxy.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Around {
    Everything,
    /// This host alone, or also everything below a name.
    Host(Host),
}

/// Why a caller's proxy cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the proxy in {variable} cannot be used: write it as http://HOST:PORT")]
pub struct UpstreamError {
    /// Which variable names it.
    pub variable: &'static str,
}

impl Upstreams {
    /// Reads the caller's variables; an empty one counts as none.
    ///
    /// # Errors
    ///
    /// A proxy of a kind that is not spoken here: going around it could be what its network
    /// forbids, so nothing is started.
    pub fn from_environment(variables: &[(OsString, OsString)]) -> Result<Self, UpstreamError> {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            let value = found.and_then(|(_, value)| value.to_str());
            value.map(str::trim).filter(|value| !value.is_empty())
        };
        let proxy = |names: [&'static str; 4]| {
            let found = names
                .into_iter()
                .find_map(|name| value(name).map(|text| (name, text)));
            found
                .map(|(variable, text)| Upstream::parse(text).ok_or(UpstreamError { variable }))
                .transpose()
        };
        let around = value("no_proxy").or_else(|| value("NO_PROXY"));
        Ok(Self {
            plain: proxy(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])?,
            secure: proxy(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])?,
            around: around.map(parse_around).unwrap_or_default(),
        })
    }

    /// The proxy for a destination, if it has one.
    pub fn of(&self, destination: &Destination) -> Option<&Upstream> {
        // A listed address is often one that no proxy could reach.
        if matches!(&destination.host, Host::Ip(address) if crate::vet::public(*address).is_err())
            || self.goes_around(&destination.host)
        {
            return None;
        }
        match destination.port {
            80 => self.plain.as_ref(),
            _ => self.secure.as_ref(),
        }
    }

    fn goes_around(&self, host: &Host) -> bool {
        self.around.iter().any(|around| match (around, host) {
            (Around::Everything, _) => true,
            (Around::Host(Host::Name(parent)), Host::Name(name)) => {
                let rest = name.as_str().strip_suffix(parent.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            (Around::Host(known), host) => known == host,
        })
    }
}

fn parse_around(text: &str) -> Vec<Around> {
    text.split([',', ' '])
        .map(|entry| entry.trim().trim_start_matches('.'))
        .filter(|entry| !entry.is_empty())
        .filter_map(|entry| match entry {
            "*" => Some(Around::Everything),
            // What is not a host, such as a range of addresses, names nothing that is proxied.
            entry => Host::parse(entry).ok().map(Around::Host),
        })
        .collect()
}

impl Upstream {
    fn parse(text: &str) -> Option<Self> {
        let rest = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return None,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, host) = match authority.rsplit_once('@') {
            None => (None, authority),
            Some((user, host)) => (Some(user), host),
        };
        let address = Destination::parse(host.as_bytes(), Some(80)).ok()?;
        let authorization = match user {
            None => None,
            Some(user) => {
                let user = percent_decoded(user)?;
                let user = if user.contains(&b':') {
                    user
                } else {
                    [&user, &b":"[..]].concat()
                };
                Some(format!("Basic {}", base64(&user)))
            }
        };
        Some(Self {
            address,
            authorization,
        })
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = self.authorization.as_ref().map(|_| "(hidden)");
        f.debug_struct("Upstream")
            .field("address", &self.address)
            .field("authorization", &secret)
            .finish()
    }
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let value = digit()? << 4 | digit()?;
        out.push(u8::try_from(value).ok()?);
    }
    Some(out)
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place > group.len() {
                out.push('=');
                continue;
            }
            let index = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or(0);
            out.extend(LETTERS.get(index).map(|letter| char::from(*letter)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstreams(variables: &[(&str, &str)]) -> Result<Upstreams, UpstreamError> {
        let variables: Vec<(OsString, OsString)> = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Upstreams::from_environment(&variables)
    }

    fn through(upstreams: &Upstreams, text: &str) -> Option<String> {
        let destination = Destination::parse(text.as_bytes(), None).unwrap();
        upstreams
            .of(&destination)
            .map(|upstream| upstream.address.to_string())
    }

    #[test]
    fn variables_are_read_as_other_programs_read_them() {
        let all = upstreams(&[
            ("http_proxy", "http://plain.corp:3128/"),
            ("HTTP_PROXY", "http://not.this:1"),
            ("HTTPS_PROXY", "secure.corp:8080"),
            (
                "NO_PROXY",
                "localhost, .inner.test,10.0.0.0/8,93.184.216.34",
            ),
        ])
        .unwrap();
        assert_eq!(
            through(&all, "a.test:80").as_deref(),
            Some("plain.corp:3128")
        );
        assert_eq!(
            through(&all, "a.test:443").as_deref(),
            Some("secure.corp:8080")
        );
        assert_eq!(
            through(&all, "a.test:22").as_deref(),
            Some("secure.corp:8080")
        );
        for direct in [
            "inner.test:443",
            "x.inner.test:80",
            "93.184.216.34:443",
            "10.0.0.1:443",
        ] {
            assert_eq!(through(&all, direct), None, "{direct}");
        }
        assert!(through(&all, "notinner.test:443").is_some());
        let none = upstreams(&[("http_proxy", " "), ("ALL_PROXY", "")]).unwrap();
        assert_eq!(none, Upstreams::default());
        let star = upstreams(&[("ALL_PROXY", "http://p.corp"), ("no_proxy", "*")]).unwrap();
        assert_eq!(through(&star, "a.test:443"), None);
    }

    #[test]
    fn a_password_is_sent_and_never_shown() {
        let all = upstreams(&[("https_proxy", "http://me:s%40cret@[2606:4700::1]:3128")]).unwrap();
        let upstream = all.secure.as_ref().unwrap();
        assert_eq!(
            upstream.authorization.as_deref(),
            Some("Basic bWU6c0BjcmV0")
        );
        assert_eq!(upstream.address.to_string(), "[2606:4700::1]:3128");
        let shown = format!("{all:?}");
        assert!(
            !shown.contains("cret") && !shown.contains("bWU6"),
            "{shown}"
        );
    }

    #[test]
    fn other_kinds_of_proxy_stop_the_launch() {
        for text in [
            "https://p.corp:1",
            "socks5://p.corp:1",
            "http://",
            "http://a b:1",
            "http://p:x",
        ] {
            let error = upstreams(&[("HTTPS_PROXY", text)]).unwrap_err();
            assert_eq!(error.variable, "HTTPS_PROXY", "{text}");
        }
    }

    #[test]
    fn base64_is_padded() {
        for (text, expected) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj")] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
