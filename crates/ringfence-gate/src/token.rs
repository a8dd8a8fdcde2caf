//! What a client says to be let in, where others could knock as well.
//!
//! A socket that was made inside a session's own network needs none of this: nobody else reaches it. A
//! port on the host's loopback is open to every process of the machine, so there a client has to say a
//! word that only its own session was told, as the password of a proxy. The word is compared in a time
//! that says nothing about it, and is in no message, no attempt and nothing that is passed on.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read as _};
use std::net::SocketAddr;

use crate::upstream::base64;

/// How much of the system's randomness is in one.
const BYTES: usize = 16;

/// The word of one session.
#[derive(Clone)]
pub struct Token {
    password: String,
    /// Name and password, as HTTP spells them.
    basic: String,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The name that goes with it.
    pub const USER: &'static str = "ringfence";

    /// A new one, which nobody can guess.
    ///
    /// # Errors
    ///
    /// If the system has no randomness to give.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self::new(bytes))
    }

    fn new(bytes: [u8; BYTES]) -> Self {
        let password = format!("{:032x}", u128::from_be_bytes(bytes));
        let basic = base64(format!("{}:{password}", Self::USER).as_bytes());
        Self { password, basic }
    }

    /// The address of the proxy with the word in it, for the session's own variables.
    pub fn proxy(&self, address: SocketAddr) -> String {
        format!("http://{}:{}@{address}", Self::USER, self.password)
    }

    /// Whether the value of a `Proxy-Authorization` says it.
    pub fn is_in(&self, authorization: &[u8]) -> bool {
        let Some(at) = authorization.iter().position(|byte| *byte == b' ') else {
            return false;
        };
        let (scheme, said) = authorization.split_at(at);
        scheme.eq_ignore_ascii_case(b"basic") && are_same(said.trim_ascii(), self.basic.as_bytes())
    }

    /// Whether a name and a password are those of the session.
    pub fn is_password(&self, user: &[u8], password: &[u8]) -> bool {
        // The name is no secret.
        user == Self::USER.as_bytes() && are_same(password, self.password.as_bytes())
    }
}

/// Compares in a time that depends on the lengths alone, which are no secret.
fn are_same(said: &[u8], known: &[u8]) -> bool {
    if said.len() != known.len() {
        return false;
    }
    let pairs = said.iter().zip(known);
    let differs = pairs.fold(0, |differs, (a, b)| black_box(differs | (a ^ b)));
    black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f";

    fn token() -> Token {
        Token::new(std::array::from_fn(|index| u8::try_from(index).unwrap()))
    }

    #[test]
    fn the_session_is_told_and_let_in() {
        let token = token();
        let address = "127.0.0.1:4321".parse().unwrap();
        let proxy = token.proxy(address);
        assert_eq!(proxy, format!("http://ringfence:{DIGITS}@127.0.0.1:4321"));
        let basic = base64(format!("ringfence:{DIGITS}").as_bytes());
        for said in [
            format!("Basic {basic}"),
            format!("basic {basic}"),
            format!("BASIC  {basic} "),
        ] {
            assert!(token.is_in(said.as_bytes()), "{said}");
        }
        assert!(token.is_password(b"ringfence", DIGITS.as_bytes()));
    }

    #[test]
    fn nobody_else_is() {
        let token = token();
        let basic = |text: &str| format!("Basic {}", base64(text.as_bytes()));
        let right = format!("ringfence:{DIGITS}");
        for said in [
            String::new(),
            "Basic".to_owned(),
            "Basic ".to_owned(),
            basic(""),
            basic("ringfence:"),
            basic(DIGITS),
            basic(&right.to_uppercase()),
            basic(&right[..right.len() - 1]),
            basic(&format!("{right}0")),
            basic(&format!("other:{DIGITS}")),
            basic(&right).replace("Basic", "Bearer"),
            base64(right.as_bytes()),
        ] {
            assert!(!token.is_in(said.as_bytes()), "{said}");
        }
        for (user, password) in [
            ("ringfence", ""),
            ("", DIGITS),
            ("root", DIGITS),
            ("ringfence", &DIGITS[1..]),
            ("ringfence", "000102030405060708090a0b0c0d0e0e"),
        ] {
            assert!(!token.is_password(user.as_bytes(), password.as_bytes()));
        }
    }

    #[test]
    fn it_is_never_printed_and_never_the_same() {
        let token = token();
        assert_eq!(format!("{token:?}"), "Token");
        let [one, other] = [(); 2].map(|()| Token::random().unwrap().password);
        assert_ne!(one, other);
        assert_eq!(one.len(), 2 * BYTES);
    }

    proptest! {
        #[test]
        fn one_changed_byte_is_enough(at in 0..2 * BYTES, to in any::<u8>()) {
            let mut said = DIGITS.as_bytes().to_vec();
            let same = said[at] == to;
            said[at] = to;
            prop_assert_eq!(token().is_password(b"ringfence", &said), same);
        }

        #[test]
        fn any_bytes_are_read(said in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert!(!token().is_in(&said));
        }
    }
}
