//! The server name in the first message of a TLS client.
//!
//! A client that says one name to the gate and another to the server behind a shared address
//! would reach what nobody allowed. So the name of the hello must be the one that was judged. The
//! hello may come in any number of records and any number of pieces; it is read until it is whole.

/// The largest hello that is read; those with keys against quantum computers have about two
/// kilobytes.
pub const LARGEST: usize = 16 << 10;

/// What the first bytes of a client are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Hello {
    /// A hello with the server's name as it was written.
    Named(Vec<u8>),
    /// A hello without a name.
    Nameless,
    /// No TLS.
    NotTls,
    /// It cannot be told yet.
    Unfinished,
}

/// Why a hello is not read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// It begins like one and is none.
    #[error("the TLS hello is malformed")]
    Malformed,
    /// Too long.
    #[error("the TLS hello is too large")]
    Size,
}

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Reads what has come so far.
///
/// # Errors
///
/// See [`HelloError`]; a connection that begins so must be closed.
pub fn read(bytes: &[u8]) -> Result<Hello, HelloError> {
    measured(bytes).map(|(hello, _)| hello)
}

/// Reads what has come so far, and how many bytes a whole hello takes with its records.
///
/// A hello ends where a record does. Until the server has answered there is nothing that a client
/// could say behind it in the same record, except a second hello that nobody would look for there.
pub(crate) fn measured(bytes: &[u8]) -> Result<(Hello, usize), HelloError> {
    match bytes {
        [] | [HANDSHAKE_RECORD] => return Ok((Hello::Unfinished, 0)),
        [HANDSHAKE_RECORD, 3, ..] => {}
        _ => return Ok((Hello::NotTls, 0)),
    }
    // The handshake message without the records that carry it.
    let mut message = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        if bytes.len() - rest.len() > LARGEST {
            return Err(HelloError::Size);
        }
        let [HANDSHAKE_RECORD, 3, _, high, low, after @ ..] = rest else {
            if rest.len() < 5 && b"\x16\x03".starts_with(rest.get(..2).unwrap_or(rest)) {
                break;
            }
            // Another kind of record before the hello is whole.
            return Err(HelloError::Malformed);
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if length == 0 {
            return Err(HelloError::Malformed);
        }
        let ends = message.len() + length;
        let (part, after) = after.split_at(length.min(after.len()));
        message.extend_from_slice(part);
        rest = after;
        if let Some((hello, length)) = finish(&message)? {
            if length != ends {
                return Err(HelloError::Malformed);
            }
            return Ok((hello, bytes.len() - rest.len()));
        }
    }
    if bytes.len() > LARGEST {
        return Err(HelloError::Size);
    }
    Ok((Hello::Unfinished, 0))
}

/// Reads the handshake message if all of it is there, and says how long it is.
fn finish(message: &[u8]) -> Result<Option<(Hello, usize)>, HelloError> {
    let (kind, length) = match message {
        [] => return Ok(None),
        [kind, a, b, c, ..] => (*kind, u32::from_be_bytes([0, *a, *b, *c])),
        [kind, ..] => (*kind, u32::MAX),
    };
    if kind != CLIENT_HELLO {
        return Err(HelloError::Malformed);
    }
    if length == u32::MAX {
        return Ok(None);
    }
    let length = usize::try_from(length).map_err(|_| HelloError::Size)?;
    if length > LARGEST {
        return Err(HelloError::Size);
    }
    let body = message.get(4..).unwrap_or_default();
    let Some(body) = body.get(..length) else {
        return Ok(None);
    };
    let hello = server_name(body).ok_or(HelloError::Malformed)?;
    Ok(Some((hello, 4 + length)))
}

/// Finds the name in a whole hello; `None` if it is malformed.
fn server_name(hello: &[u8]) -> Option<Hello> {
    // Version and random.
    let rest = hello.get(34..)?;
    let (_session, rest) = short(rest)?;
    let (_suites, rest) = long(rest)?;
    let (_compression, rest) = short(rest)?;
    if rest.is_empty() {
        return Some(Hello::Nameless);
    }
    let (mut extensions, rest) = long(rest)?;
    if !rest.is_empty() {
        return None;
    }
    let mut found = Hello::Nameless;
    while !extensions.is_empty() {
        let (kind, rest) = extensions.split_first_chunk::<2>()?;
        let (value, rest) = long(rest)?;
        extensions = rest;
        if u16::from_be_bytes(*kind) == SERVER_NAME {
            // A second one could be read by somebody else.
            if found != Hello::Nameless {
                return None;
            }
            found = Hello::Named(host_name(value)?.to_vec());
        }
    }
    Some(found)
}

/// The one name of a server name extension.
fn host_name(value: &[u8]) -> Option<&[u8]> {
    let (list, rest) = long(value)?;
    let ([HOST_NAME, list @ ..], []) = (list, rest) else {
        return None;
    };
    match long(list)? {
        (name, []) if !name.is_empty() => Some(name),
        _ => None,
    }
}

/// A field with its length in one byte, and what follows.
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// A field with its length in two bytes, and what follows.
fn long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with_length(bytes: &[u8]) -> Vec<u8> {
        let mut out = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
        out.extend_from_slice(bytes);
        out
    }

    fn extension(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut out = kind.to_be_bytes().to_vec();
        out.extend(with_length(value));
        out
    }

    pub(crate) fn name_extension(name: &[u8]) -> Vec<u8> {
        let mut entry = vec![HOST_NAME];
        entry.extend(with_length(name));
        extension(SERVER_NAME, &with_length(&entry))
    }

    /// A handshake message with these extensions.
    pub(crate) fn message(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        body.extend(with_length(&[0x13, 1]));
        body.extend([1, 0]);
        body.extend(with_length(extensions));
        let mut out = vec![CLIENT_HELLO, 0];
        out.extend(with_length(&body));
        out
    }

    /// The message in records of this size.
    pub(crate) fn records(message: &[u8], size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for part in message.chunks(size) {
            out.extend([HANDSHAKE_RECORD, 3, 1]);
            out.extend(with_length(part));
        }
        out
    }

    #[test]
    fn a_name_is_found_in_any_number_of_records() {
        let mut extensions = extension(0xfe0d, &[9; 1500]);
        extensions.extend(name_extension(b"a.test"));
        let message = message(&extensions);
        for size in [1, 2, 5, 64, 1024, 16384] {
            let bytes = records(&message, size);
            assert_eq!(read(&bytes), Ok(Hello::Named(b"a.test".to_vec())), "{size}");
            for cut in 0..bytes.len() {
                assert_eq!(
                    read(&bytes[..cut]),
                    Ok(Hello::Unfinished),
                    "{cut} of {size}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_hello_is_said_to_be_none() {
        assert_eq!(read(b"GET / HTTP/1.1"), Ok(Hello::NotTls));
        assert_eq!(read(b"SSH-2.0-x"), Ok(Hello::NotTls));
        assert_eq!(read(b"\x16\x02"), Ok(Hello::NotTls));
        assert_eq!(
            read(&records(&message(&[]), 100)),
            Ok(Hello::Nameless),
            "no extension"
        );
        let mut two = name_extension(b"a.test");
        two.extend(name_extension(b"b.test"));
        let malformed = Err(HelloError::Malformed);
        assert_eq!(read(&records(&message(&two), 100)), malformed, "two names");
        assert_eq!(
            read(&records(&[2, 0, 0, 1, 0], 5)),
            malformed,
            "not a hello"
        );
        assert_eq!(read(b"\x16\x03\x01\0\0"), malformed, "an empty record");
        let mut other = records(&message(&two)[..9], 9);
        other.extend(*b"\x15\x03\x01\0\x02\x01\0");
        assert_eq!(read(&other), malformed, "an alert in between");
        let mut doubled = message(&name_extension(b"a.test"));
        doubled.extend(message(&name_extension(b"b.test")));
        let doubled = records(&doubled, 16384);
        assert_eq!(read(&doubled), malformed, "two in one record");
        assert_eq!(read(&doubled[..100]), malformed, "the second on its way");
        let huge = records(&[CLIENT_HELLO, 1, 0, 0], 4);
        assert_eq!(read(&huge), Err(HelloError::Size));
    }

    /// What a client may send along, before it was answered, is no part of it.
    #[test]
    fn a_hello_is_as_long_as_its_records() {
        for size in [1, 64, 16384] {
            let mut bytes = records(&message(&name_extension(b"a.test")), size);
            let length = bytes.len();
            bytes.extend(*b"\x17\x03\x03\x40\0");
            bytes.resize(length + 30_000, 0);
            let named = Hello::Named(b"a.test".to_vec());
            assert_eq!(measured(&bytes), Ok((named, length)), "{size}");
        }
        let endless = records(&[CLIENT_HELLO, 0, 0x3f, 0xff], 4).repeat(LARGEST);
        assert_eq!(read(&endless), Err(HelloError::Size));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
            bytes.splice(0..0, *b"\x16\x03\x01\0\xff\x01\0\0\xf0");
            let _ = read(&bytes);
        }

        #[test]
        fn a_mangled_hello_never_has_another_name(at in 0usize..200, to: u8) {
            let mut bytes = records(&message(&name_extension(b"a.test")), 40);
            let before = read(&bytes);
            let length = bytes.len();
            bytes[at % length] = to;
            // Whatever is read as a name is bytes of the hello.
            if let (Ok(Hello::Named(_)), Ok(Hello::Named(name))) = (before, read(&bytes)) {
                prop_assert!(name.len() <= 200);
            }
        }
    }
}
