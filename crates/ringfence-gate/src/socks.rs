//! SOCKS version 5, the part of it that is served: no authentication, `CONNECT`, names and
//! addresses.
//!
//! Everything else is answered with the code that says so: listening for others and datagrams
//! have no place behind an allow-list of hosts, and version 4 cannot carry names reliably.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringfence_core::host::Host;

use crate::Destination;
use crate::authority::DestinationError;

/// The first byte of a client of version 5.
pub const VERSION: u8 = 5;
/// The first byte of a client of version 4.
pub const OLD_VERSION: u8 = 4;
/// What a client of version 4 is told: refused.
pub const OLD_REFUSAL: [u8; 8] = [0, 0x5b, 0, 0, 0, 0, 0, 0];

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const V4: u8 = 1;
const NAME: u8 = 3;
const V6: u8 = 4;

/// What a reader found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Read<T> {
    /// All of it, and how many bytes it was.
    Whole(T, usize),
    /// More bytes are needed.
    Unfinished,
}

/// What a client is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reply {
    /// The connection stands.
    Succeeded = 0,
    /// Something of ours failed.
    Failed = 1,
    /// The rules do not allow it.
    NotAllowed = 2,
    /// Nothing is there.
    HostUnreachable = 4,
    /// Nobody listens there.
    Refused = 5,
    /// Not `CONNECT`.
    Command = 7,
    /// Not an address or a name.
    Address = 8,
}

impl Reply {
    /// The whole answer. The address is left out: it is none of the client's business.
    pub fn to_bytes(self) -> [u8; 10] {
        [VERSION, self as u8, 0, V4, 0, 0, 0, 0, 0, 0]
    }
}

/// Reads the methods a client offers, and chooses.
///
/// The answer goes to the client; if it does not choose a method, the connection is over.
pub fn greeting(bytes: &[u8]) -> Read<([u8; 2], Chosen)> {
    let [_, count, rest @ ..] = bytes else {
        return Read::Unfinished;
    };
    let Some(methods) = rest.get(..usize::from(*count)) else {
        return Read::Unfinished;
    };
    let length = 2 + methods.len();
    if methods.contains(&NO_AUTHENTICATION) {
        Read::Whole(([VERSION, NO_AUTHENTICATION], Chosen::None), length)
    } else {
        Read::Whole(([VERSION, NO_METHOD], Chosen::Nothing), length)
    }
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Chosen {
    /// Not at all: nobody else can reach this socket.
    None,
    /// It offered nothing that is served.
    Nothing,
}

/// What is wrong with a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Wrong {
    /// What the client is told.
    pub reply: Reply,
    /// What it wanted, if that can be said.
    pub error: Option<DestinationError>,
}

/// Reads what a client wants to reach.
///
/// # Errors
///
/// What is wrong with it; the connection is over after the answer.
pub fn request(bytes: &[u8]) -> Result<Read<Destination>, Wrong> {
    let wrong = |reply| Wrong { reply, error: None };
    let [version, command, reserved, kind, rest @ ..] = bytes else {
        return Ok(Read::Unfinished);
    };
    if *version != VERSION || *reserved != 0 {
        return Err(wrong(Reply::Failed));
    }
    if *command != CONNECT {
        return Err(wrong(Reply::Command));
    }
    let address = match *kind {
        V4 => rest.split_first_chunk::<4>().map(|(address, rest)| {
            let host = Host::Ip(IpAddr::V4(Ipv4Addr::from(*address)));
            (Ok(host), rest)
        }),
        V6 => rest.split_first_chunk::<16>().map(|(address, rest)| {
            let host = Host::Ip(IpAddr::V6(Ipv6Addr::from(*address)));
            (Ok(host), rest)
        }),
        NAME => rest.split_first().and_then(|(length, rest)| {
            let (name, rest) = rest.split_at_checked(usize::from(*length))?;
            // The port is checked with the rest below.
            let host = Destination::new(name, 1).map(|destination| destination.host);
            Some((host, rest))
        }),
        _ => return Err(wrong(Reply::Address)),
    };
    let Some((host, rest)) = address else {
        return Ok(Read::Unfinished);
    };
    let Some((port, rest)) = rest.split_first_chunk() else {
        return Ok(Read::Unfinished);
    };
    let refused = |error| Wrong {
        reply: Reply::NotAllowed,
        error: Some(error),
    };
    let port = u16::from_be_bytes(*port);
    let host = host.map_err(refused)?;
    if port == 0 {
        return Err(refused(DestinationError::Port));
    }
    Ok(Read::Whole(
        Destination { host, port },
        bytes.len() - rest.len(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(name: &[u8], port: u16) -> Vec<u8> {
        let mut out = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
        out.extend_from_slice(name);
        out.extend(port.to_be_bytes());
        out
    }

    fn text(bytes: &[u8]) -> Result<String, Reply> {
        match request(bytes) {
            Ok(Read::Whole(destination, length)) => {
                assert_eq!(length, bytes.len());
                Ok(destination.to_string())
            }
            Ok(Read::Unfinished) => Ok("unfinished".to_owned()),
            Err(wrong) => Err(wrong.reply),
        }
    }

    #[test]
    fn names_and_addresses_are_read() {
        assert_eq!(text(&named(b"A.test", 443)), Ok("a.test:443".to_owned()));
        let v4 = [5, 1, 0, 1, 127, 0, 0, 1, 0, 80];
        assert_eq!(text(&v4), Ok("127.0.0.1:80".to_owned()));
        let mut v6 = vec![5, 1, 0, 4];
        v6.extend(Ipv6Addr::LOCALHOST.octets());
        v6.extend([0, 22]);
        assert_eq!(text(&v6), Ok("[::1]:22".to_owned()));
        for cut in 0..v6.len() {
            assert_eq!(text(&v6[..cut]), Ok("unfinished".to_owned()));
        }
    }

    #[test]
    fn nothing_else_is_served() {
        assert_eq!(text(&[5, 2, 0, 1, 0, 0, 0, 0, 0, 80]), Err(Reply::Command));
        assert_eq!(text(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 80]), Err(Reply::Command));
        assert_eq!(text(&[5, 1, 0, 2, 0, 0]), Err(Reply::Address));
        assert_eq!(text(&[4, 1, 0, 1]), Err(Reply::Failed));
        assert_eq!(text(&[5, 1, 1, 1]), Err(Reply::Failed));
        for name in [
            &b"denied.test\0.allowed.test"[..],
            b"allowed.test\r\nHost: x",
            b"a b",
            b"a%00",
            b"",
            b"127.1",
            b"0x7f000001",
            b"\xff\xfe",
            &[b'a'; 255],
        ] {
            assert_eq!(text(&named(name, 443)), Err(Reply::NotAllowed), "{name:?}");
        }
        assert_eq!(text(&named(b"a.test", 0)), Err(Reply::NotAllowed));
    }

    #[test]
    fn only_no_authentication_is_chosen() {
        assert_eq!(greeting(&[5]), Read::Unfinished);
        assert_eq!(greeting(&[5, 2, 2]), Read::Unfinished);
        assert_eq!(
            greeting(&[5, 2, 2, 0]),
            Read::Whole(([5, 0], Chosen::None), 4)
        );
        assert_eq!(
            greeting(&[5, 1, 2]),
            Read::Whole(([5, 0xff], Chosen::Nothing), 3)
        );
        assert_eq!(
            greeting(&[5, 0]),
            Read::Whole(([5, 0xff], Chosen::Nothing), 2)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = greeting(&bytes);
            let _ = request(&bytes);
        }

        #[test]
        fn an_accepted_name_is_the_name_that_was_sent(name in "[a-zA-Z0-9.-]{1,40}", port in 1u16..) {
            if let Ok(Read::Whole(destination, _)) = request(&named(name.as_bytes(), port)) {
                let again = Destination::new(name.as_bytes(), port).unwrap();
                prop_assert_eq!(destination, again);
            }
        }
    }
}
