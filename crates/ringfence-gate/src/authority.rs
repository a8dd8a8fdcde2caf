//! Where a client wants to go: one host and one port, parsed once.

use std::fmt;
use std::net::SocketAddr;

use ringfence_core::host::{Host, HostError};
use serde::Serialize;

/// A host and a port that somebody asked for.
///
/// Made from foreign text by [`Destination::parse`] and nowhere else; from then on decision,
/// look-up and dialling use this value.
///
/// # Examples
///
/// ```
/// # mod ringfence { pub mod network { pub use ringfence_gate::Destination; pub use ringfence_gate::event::*; pub use ringfence_gate::judge::{Answer, Decider}; } }
/// use ringfence::network::Destination;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let destination = Destination::parse(b"Example.ORG:8080", None)?;
/// assert_eq!(destination, Destination::new(b"example.org", 8080)?);
/// assert_eq!(destination.host_header(), "example.org:8080");
/// assert_eq!(Destination::of(([127, 0, 0, 1], 80).into()).to_string(), "127.0.0.1:80");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
pub struct Destination {
    /// The host.
    pub host: Host,
    /// The port, never zero.
    pub port: u16,
}

/// Why a text is not a destination.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// Not a host.
    #[error("{0}")]
    Host(HostError),
    /// Not text.
    #[error("the name has a character that host names cannot have")]
    NotText,
    /// No port, or not one.
    #[error("the port is not a number from 1 to 65535")]
    Port,
}

impl Destination {
    /// A host of which the text is known, and a port.
    ///
    /// # Errors
    ///
    /// See [`DestinationError`].
    pub fn new(host: &[u8], port: u16) -> Result<Self, DestinationError> {
        let host = str::from_utf8(host).map_err(|_| DestinationError::NotText)?;
        let host = Host::parse(host).map_err(DestinationError::Host)?;
        if port == 0 {
            return Err(DestinationError::Port);
        }
        Ok(Self { host, port })
    }

    /// Parses `host:port`, or `host` alone where a port is understood.
    ///
    /// # Errors
    ///
    /// See [`DestinationError`]. An IPv6 address needs brackets.
    pub fn parse(text: &[u8], understood: Option<u16>) -> Result<Self, DestinationError> {
        let (host, port) = split(text);
        let port = match port {
            None => understood.ok_or(DestinationError::Port)?,
            Some(digits) => parse_port(digits).ok_or(DestinationError::Port)?,
        };
        // Without brackets nobody can tell the address from the port.
        if host.contains(&b':') && !host.starts_with(b"[") {
            return Err(DestinationError::Host(HostError::Character));
        }
        Self::new(host, port)
    }

    /// An address.
    pub fn of(address: SocketAddr) -> Self {
        Self {
            host: Host::Ip(address.ip()),
            port: address.port(),
        }
    }

    /// The text of a `Host` header: without the port where everybody knows it.
    pub fn host_header(&self) -> String {
        if self.port == 80 {
            self.host.to_string()
        } else {
            self.to_string()
        }
    }
}

/// Always with the port.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

fn split(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let last = text.iter().rposition(|byte| *byte == b':');
    let bracket = text.iter().rposition(|byte| *byte == b']');
    match (last, bracket) {
        (Some(colon), None) => halves(text, colon),
        (Some(colon), Some(bracket)) if colon > bracket => halves(text, colon),
        _ => (text, None),
    }
}

fn halves(text: &[u8], colon: usize) -> (&[u8], Option<&[u8]>) {
    let host = text.get(..colon).unwrap_or_default();
    (host, text.get(colon + 1..))
}

/// Decimal digits only: no sign, no space, no leading zero.
fn parse_port(digits: &[u8]) -> Option<u16> {
    if digits.is_empty() || digits.len() > 5 || digits.starts_with(b"0") {
        return None;
    }
    let mut port: u32 = 0;
    for byte in digits {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        port = port * 10 + u32::from(digit);
    }
    u16::try_from(port).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, DestinationError> {
        Destination::parse(text.as_bytes(), None).map(|destination| destination.to_string())
    }

    #[test]
    fn one_spelling_is_left() {
        for (text, expected) in [
            ("Example.ORG:443", "example.org:443"),
            ("example.org.:80", "example.org:80"),
            ("192.0.2.1:22", "192.0.2.1:22"),
            ("[2001:DB8::1]:65535", "[2001:db8::1]:65535"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
        }
        let understood = Destination::parse(b"a.test", Some(80)).unwrap();
        assert_eq!(understood.host_header(), "a.test");
        let other = Destination::parse(b"a.test:81", Some(80)).unwrap();
        assert_eq!(other.host_header(), "a.test:81");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "",
            "a.test",
            "a.test:",
            "a.test:0",
            "a.test:080",
            "a.test:65536",
            "a.test:443abc",
            "a.test:+80",
            "a.test: 80",
            "a.test:99999999999999999999",
            ":443",
            "2001:db8::1",
            "2001:db8::1:443",
            "[2001:db8::1]",
            "[2001:db8::1]443",
            "[fe80::1%lo]:80",
            "[a.test]:80",
            "user@a.test:80",
            "a.test@127.0.0.1:80",
            "denied.test\0.allowed.test:443",
            "allowed.test\r\nHost: x:443",
            "a b:80",
            "a\t:80",
            "a%00:80",
            "a\u{7f}:80",
            "127.1:80",
            "2130706433:80",
            "0x7f000001:80",
            "0177.0.0.1:80",
            "127.0.0.1.:80",
        ] {
            assert!(parsed(text).is_err(), "{text:?}");
        }
        let long = format!("{}:80", "a".repeat(256));
        assert!(parsed(&long).is_err());
        assert!(Destination::parse(b"\xff.test:80", None).is_err());
    }
}
