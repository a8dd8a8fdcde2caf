//! Questions to the name service inside a session, and its answers.
//!
//! It is asked by programs that know no proxy. It never asks anybody else: an allowed name is
//! answered with an address that means that name and nothing else, and every other name does not
//! exist. So a question cannot carry anything out.

use std::net::Ipv4Addr;

use ringfence_core::host::Host;

/// The largest question that is read.
pub const LARGEST: usize = 512;

const HEADER: usize = 12;
const IN: u16 = 1;
/// How long an answer may be kept: its address means the same name as long as the session lives.
const SECONDS: u32 = 60;

/// A question that can be answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Question<'b> {
    id: [u8; 2],
    recursion: u8,
    /// The question as it came, to be sent back as it came: its case may be the asker's check.
    text: &'b [u8],
    /// The name.
    pub host: Host,
    /// What is wanted of it.
    pub kind: Kind,
}

/// What is wanted of a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Its IPv4 address.
    Address,
    /// Anything else; nobody here has it.
    Other,
}

/// What is said about a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Says {
    /// Its address.
    Address(Ipv4Addr),
    /// It is there, and has nothing of the kind.
    Nothing,
    /// There is no such name.
    NoSuchName,
    /// It cannot be answered now.
    Failure,
}

/// A question that is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unanswerable {
    /// Not even worth an answer.
    Dropped,
    /// The answer says that it is malformed.
    Malformed([u8; HEADER]),
    /// The answer says that nobody here does this.
    NotServed([u8; HEADER]),
}

/// Reads a question.
///
/// # Errors
///
/// What it is instead, with the answer to it.
pub fn read(bytes: &[u8]) -> Result<Question<'_>, Unanswerable> {
    let (header, rest) = bytes
        .split_first_chunk::<HEADER>()
        .ok_or(Unanswerable::Dropped)?;
    let [i0, i1, flags, _, q0, q1, ..] = *header;
    // An answer is never answered, or two services would talk for ever.
    if flags & 0x80 != 0 || bytes.len() > LARGEST {
        return Err(Unanswerable::Dropped);
    }
    let refusal = |code: u8| {
        let mut answer = [0; HEADER];
        answer[..4].copy_from_slice(&[i0, i1, 0x80 | flags & 0x79, 0x80 | code]);
        answer
    };
    if flags & 0x78 != 0 {
        return Err(Unanswerable::NotServed(refusal(4)));
    }
    let malformed = || Unanswerable::Malformed(refusal(1));
    if [q0, q1] != [0, 1] {
        return Err(malformed());
    }
    let (name, length) = name(rest).ok_or_else(malformed)?;
    let after = rest.get(length..).unwrap_or_default();
    let Some(([k0, k1, c0, c1], _)) = after.split_first_chunk() else {
        return Err(malformed());
    };
    if u16::from_be_bytes([*c0, *c1]) != IN {
        return Err(Unanswerable::NotServed(refusal(4)));
    }
    let host = Host::parse(&name).map_err(|_| malformed())?;
    Ok(Question {
        id: [i0, i1],
        recursion: flags & 1,
        text: rest.get(..length + 4).ok_or_else(malformed)?,
        host,
        kind: match u16::from_be_bytes([*k0, *k1]) {
            1 => Kind::Address,
            _ => Kind::Other,
        },
    })
}

/// The text of a name, and how many bytes it took. Pointers have no place in a question.
fn name(bytes: &[u8]) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        match length {
            0 => return Some((text, at)),
            1..=63 => {}
            _ => return None,
        }
        let label = bytes.get(at..at + length)?;
        // A dot or another odd byte in a label would become another name as text.
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        if !label.iter().all(plain) || text.len() + length > 253 {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.extend(label.iter().map(|byte| char::from(*byte)));
        at += length;
    }
}

impl Question<'_> {
    /// The answer.
    pub fn answer(&self, says: Says) -> Vec<u8> {
        let (code, answers) = match says {
            Says::Address(_) => (0, 1),
            Says::Nothing => (0, 0),
            Says::NoSuchName => (3, 0),
            Says::Failure => (2, 0),
        };
        let mut out = Vec::with_capacity(HEADER + self.text.len() + 16);
        out.extend(self.id);
        // An answer, with authority, from somebody who looks everything up.
        out.extend([0x84 | self.recursion, 0x80 | code]);
        out.extend([0, 1, 0, answers, 0, 0, 0, 0]);
        out.extend(self.text);
        if let Says::Address(address) = says {
            // The name of the question, at its place.
            out.extend([0xc0, 12, 0, 1, 0, 1]);
            out.extend(SECONDS.to_be_bytes());
            out.extend([0, 4]);
            out.extend(address.octets());
        }
        out
    }
}

impl Unanswerable {
    /// The answer, if it gets one.
    pub fn answer(&self) -> Option<&[u8]> {
        match self {
            Self::Dropped => None,
            Self::Malformed(answer) | Self::NotServed(answer) => Some(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut out = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            out.push(u8::try_from(label.len()).unwrap());
            out.extend(label.bytes());
        }
        out.push(0);
        out.extend(kind.to_be_bytes());
        out.extend([0, 1]);
        out
    }

    #[test]
    fn a_question_is_read_and_answered() {
        let bytes = question("A.tEsT", 1);
        let read = read(&bytes).unwrap();
        assert_eq!(read.host.to_string(), "a.test");
        assert_eq!(read.kind, Kind::Address);
        let answer = read.answer(Says::Address(Ipv4Addr::new(127, 192, 0, 1)));
        assert_eq!(&answer[..8], &[0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1]);
        assert_eq!(&answer[12..bytes.len()], &bytes[12..], "the case is kept");
        assert_eq!(&answer[answer.len() - 6..], &[0, 4, 127, 192, 0, 1]);
        let none = read.answer(Says::NoSuchName);
        assert_eq!(none[3] & 0xf, 3);
    }

    #[test]
    fn what_is_no_question_is_not_answered_as_one() {
        assert_eq!(read(b"short"), Err(Unanswerable::Dropped));
        let mut answer = question("a.test", 1);
        answer[2] |= 0x80;
        assert_eq!(read(&answer), Err(Unanswerable::Dropped));
        let mut status = question("a.test", 1);
        status[2] |= 0x10;
        assert!(matches!(read(&status), Err(Unanswerable::NotServed(_))));
        let mut two = question("a.test", 1);
        two[5] = 2;
        assert!(matches!(read(&two), Err(Unanswerable::Malformed(_))));
        let mut pointer = question("a.test", 1);
        pointer[12] = 0xc0;
        assert!(matches!(read(&pointer), Err(Unanswerable::Malformed(_))));
        let mut dot = question("axtest.ok", 1);
        dot[14] = b'.';
        assert!(
            matches!(read(&dot), Err(Unanswerable::Malformed(_))),
            "a dot in a label"
        );
        let mut zero = question("axtest.ok", 1);
        zero[14] = 0;
        assert!(matches!(read(&zero), Err(Unanswerable::Malformed(_))));
        assert!(read(&question("", 1)).is_err(), "the root");
        assert!(read(&question("a.1", 1)).is_err(), "an address in disguise");
        let long = vec!["a".repeat(60); 5].join(".");
        assert!(read(&question(&long, 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(question) = read(&bytes) {
                let answer = question.answer(Says::Nothing);
                prop_assert_eq!(answer.len(), HEADER + question.text.len());
            }
        }

        #[test]
        fn the_name_that_is_judged_is_the_name_that_was_asked(
            name in "[a-z][a-z0-9-]{0,10}[a-z]\\.[a-z]{1,10}",
        ) {
            let bytes = question(&name, 1);
            if let Ok(question) = read(&bytes) {
                prop_assert_eq!(question.host.to_string(), name);
            }
        }
    }
}
