//! SOCKS version 5, the part of it that is served: `CONNECT`, names and addresses; a password where a
//! token is asked for, and none elsewhere.
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
const PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
/// The first byte of a name and a password, which have a version of their own.
const PASSWORD_VERSION: u8 = 1;
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
pub fn greeting(bytes: &[u8], demanded: Demanded) -> Read<([u8; 2], Chosen)> {
    let [_, count, rest @ ..] = bytes else {
        return Read::Unfinished;
    };
    let Some(methods) = rest.get(..usize::from(*count)) else {
        return Read::Unfinished;
    };
    let length = 2 + methods.len();
    let (method, chosen) = match demanded {
        Demanded::Nothing => (NO_AUTHENTICATION, Chosen::None),
        Demanded::Password => (PASSWORD, Chosen::Password),
    };
    if methods.contains(&method) {
        Read::Whole(([VERSION, method], chosen), length)
    } else {
        Read::Whole(([VERSION, NO_METHOD], Chosen::Nothing), length)
    }
}

/// What a client has to prove.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Demanded {
    /// Nothing: nobody else can reach this socket.
    Nothing,
    /// That it knows the session's token.
    Password,
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Chosen {
    /// Not at all.
    None,
    /// It offered nothing that is served.
    Nothing,
    /// By a name and a password, which it says next.
    Password,
}

/// A name and a password.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Credentials<'b> {
    /// The name.
    pub user: &'b [u8],
    /// The password.
    pub password: &'b [u8],
}

impl std::fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

/// What a client that said its password is told; one that is not let in, and the connection is over.
pub fn verdict(admitted: bool) -> [u8; 2] {
    [PASSWORD_VERSION, u8::from(!admitted)]
}

/// Reads a name and a password (RFC 1929); `None` if it is neither.
pub fn credentials(bytes: &[u8]) -> Option<Read<Credentials<'_>>> {
    let Some((version, rest)) = bytes.split_first() else {
        return Some(Read::Unfinished);
    };
    if *version != PASSWORD_VERSION {
        return None;
    }
    let part = |bytes: &'_ [u8]| -> Option<(usize, usize)> {
        let length = usize::from(*bytes.first()?);
        (bytes.len() > length).then_some((1, 1 + length))
    };
    let Some((from, to)) = part(rest) else {
        return Some(Read::Unfinished);
    };
    let (user, rest) = (rest.get(from..to)?, rest.get(to..)?);
    let Some((from, to)) = part(rest) else {
        return Some(Read::Unfinished);
    };
    let password = rest.get(from..to)?;
    let length = bytes.len() - rest.len() + to;
    Some(Read::Whole(Credentials { user, password }, length))
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
    fn only_what_is_demanded_is_chosen() {
        use Demanded::{Nothing, Password};
        for demanded in [Nothing, Password] {
            assert_eq!(greeting(&[5], demanded), Read::Unfinished);
            assert_eq!(greeting(&[5, 2, 2], demanded), Read::Unfinished);
            for offered in [&[5, 0][..], &[5, 1, 1], &[5, 2, 3, 0x80]] {
                let none = Read::Whole(([5, 0xff], Chosen::Nothing), offered.len());
                assert_eq!(greeting(offered, demanded), none);
            }
        }
        let both = [5, 2, 2, 0];
        assert_eq!(
            greeting(&both, Nothing),
            Read::Whole(([5, 0], Chosen::None), 4)
        );
        assert_eq!(
            greeting(&both, Password),
            Read::Whole(([5, 2], Chosen::Password), 4)
        );
        // Whoever has no word to say is not let in without one.
        assert_eq!(
            greeting(&[5, 1, 0], Password),
            Read::Whole(([5, 0xff], Chosen::Nothing), 3)
        );
        assert_eq!(
            greeting(&[5, 1, 2], Nothing),
            Read::Whole(([5, 0xff], Chosen::Nothing), 3)
        );
    }

    #[test]
    fn names_and_passwords_are_read() {
        let said = b"\x01\x02me\x03abc\x05\x01";
        let whole = Credentials {
            user: b"me",
            password: b"abc",
        };
        assert_eq!(credentials(said), Some(Read::Whole(whole, 8)));
        for cut in 0..8 {
            assert_eq!(credentials(&said[..cut]), Some(Read::Unfinished), "{cut}");
        }
        let nothing = Credentials {
            user: b"",
            password: b"",
        };
        assert_eq!(credentials(&[1, 0, 0]), Some(Read::Whole(nothing, 3)));
        assert_eq!(credentials(&[5, 0, 0]), None);
        assert_eq!((verdict(true), verdict(false)), ([1, 0], [1, 1]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = greeting(&bytes, Demanded::Nothing);
            let _ = greeting(&bytes, Demanded::Password);
            if let Some(Read::Whole(said, length)) = credentials(&bytes) {
                prop_assert_eq!(length, 3 + said.user.len() + said.password.len());
            }
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
