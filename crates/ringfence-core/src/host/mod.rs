//! Host names, parsed once.
//!
//! A name that a command asks for becomes a [`Host`]; a line of somebody's allow-list becomes a
//! [`HostPattern`]. Decision, look-up and dialling all use the same parsed value, so there is no
//! second reading that could disagree with the first.

mod pattern;

pub use pattern::{HostPattern, PatternError, Ports, Target};

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use serde::Serialize;

/// The longest name DNS can carry, in its text form.
const LONGEST_NAME: usize = 253;
/// The longest label DNS can carry.
const LONGEST_LABEL: usize = 63;

/// What a command wants to reach: a name in its one normal form, or an address.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Host {
    /// An address, written exactly.
    Ip(IpAddr),
    /// A name: lower case, punycode, without a trailing dot.
    Name(Name),
}

/// A DNS name in its one normal form; only [`Host::parse`] makes it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Name(String);

/// Why a text is not a host.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A byte that no host name has.
    #[error("the name has a character that host names cannot have")]
    Character,
    /// Nothing, or nothing between two dots.
    #[error("the name or one of its labels is empty")]
    Empty,
    /// Not a form of an internationalised name.
    #[error("the name is not a valid internationalised name")]
    Idna,
    /// A label that starts or ends with a hyphen.
    #[error("a label starts or ends with a hyphen")]
    Hyphen,
    /// Longer than DNS can carry.
    #[error("the name or one of its labels is too long")]
    Length,
    /// Some resolvers would read it as an address.
    #[error("the name ends in a number, which some programs read as an address")]
    Numeric,
    /// An address of one link only (`fe80::1%eth0`).
    #[error("the address has a zone")]
    Zone,
}

impl Host {
    /// Parses what a client asked for: `example.org`, `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]`.
    ///
    /// # Errors
    ///
    /// Everything that two programs could read in two ways is refused: see [`HostError`].
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        let bare = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if bare.unwrap_or(text).contains('%') {
            return Err(HostError::Zone);
        }
        if let Some(bare) = bare {
            return bare
                .parse::<Ipv6Addr>()
                .map(|address| Self::Ip(IpAddr::V6(address)))
                .map_err(|_| HostError::Character);
        }
        // The standard parser takes only four plain decimal parts, or proper IPv6.
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Ip(address));
        }
        parse_name(text).map(Self::Name)
    }
}

fn parse_name(text: &str) -> Result<Name, HostError> {
    // Generous before punycode, exact after it.
    if text.len() > LONGEST_NAME * 4 {
        return Err(HostError::Length);
    }
    let ascii = if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        idna::domain_to_ascii_cow(text.as_bytes(), idna::AsciiDenyList::URL)
            .map_err(|_| HostError::Idna)?
            .into_owned()
    };
    let name = ascii.strip_suffix('.').unwrap_or(&ascii);
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    if name.len() > LONGEST_NAME {
        return Err(HostError::Length);
    }
    for label in name.split('.') {
        check_label(label)?;
    }
    if name.rsplit('.').next().is_some_and(reads_as_number) {
        return Err(HostError::Numeric);
    }
    Ok(Name(name.to_owned()))
}

fn check_label(label: &str) -> Result<(), HostError> {
    if label.is_empty() {
        return Err(HostError::Empty);
    }
    if label.len() > LONGEST_LABEL {
        return Err(HostError::Length);
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(HostError::Hyphen);
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !label.bytes().all(known) {
        return Err(HostError::Character);
    }
    // `xn--` labels must be what the encoder would have made, or two spellings would differ.
    if label.starts_with("xn--") {
        let (unicode, valid) = idna::domain_to_unicode(label);
        let again = valid
            .ok()
            .and_then(|()| idna::domain_to_ascii(&unicode).ok());
        if again.as_deref() != Some(label) {
            return Err(HostError::Idna);
        }
    }
    Ok(())
}

/// `127`, `0x7f`, `017`: as the last label these make some resolvers see an address.
fn reads_as_number(label: &str) -> bool {
    let digits = label.strip_prefix("0x").unwrap_or(label);
    let hexadecimal = digits.len() != label.len();
    digits.bytes().all(|byte| {
        if hexadecimal {
            byte.is_ascii_hexdigit()
        } else {
            byte.is_ascii_digit()
        }
    })
}

impl Name {
    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V4(address)) => address.fmt(f),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Name(name) => f.write_str(&name.0),
        }
    }
}

impl Serialize for Host {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        Host::parse(text).unwrap().to_string()
    }

    #[test]
    fn one_spelling_is_left() {
        assert_eq!(name("Example.ORG"), "example.org");
        assert_eq!(name("example.org."), "example.org");
        assert_eq!(name("bücher.example"), "xn--bcher-kva.example");
        assert_eq!(name("ok。test"), "ok.test", "ideographic full stop");
        assert_eq!(name("192.0.2.1"), "192.0.2.1");
        assert_eq!(name("[2001:db8::1]"), "[2001:db8::1]");
        assert_eq!(name("2001:DB8::1"), "[2001:db8::1]");
        assert_eq!(name("a_b.example"), "a_b.example");
    }

    #[test]
    fn what_two_programs_could_read_differently_is_refused() {
        for (text, error) in [
            ("", HostError::Empty),
            (".", HostError::Empty),
            ("a..b", HostError::Empty),
            (".a", HostError::Empty),
            ("127.1", HostError::Numeric),
            ("2130706433", HostError::Numeric),
            ("0x7f000001", HostError::Numeric),
            ("0177.0.0.1", HostError::Numeric),
            ("127.0.0.1.", HostError::Numeric),
            ("a.0x1", HostError::Numeric),
            ("fe80::1%lo", HostError::Zone),
            ("[fe80::1%25lo]", HostError::Zone),
            ("[127.0.0.1]", HostError::Character),
            ("a b", HostError::Character),
            ("a\0b", HostError::Character),
            ("a\r\nb", HostError::Character),
            ("user@host", HostError::Character),
            ("a:80", HostError::Character),
            ("*.a", HostError::Character),
            ("-a.example", HostError::Hyphen),
            ("a-.example", HostError::Hyphen),
            ("xn--a.example", HostError::Idna),
        ] {
            assert_eq!(Host::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(Host::parse(&"a".repeat(64)), Err(HostError::Length));
        assert_eq!(Host::parse(&"a.".repeat(200)), Err(HostError::Length));
        assert_eq!(Host::parse(&"ü".repeat(2000)), Err(HostError::Length));
    }
}
