//! Whether a TLS server has answered for good.
//!
//! A server may ask for another hello before it answers (RFC 8446, 4.1.4), and takes the name of that
//! one. What it lets pass in between (alerts, early data that it cannot read) is its own choice, so
//! nothing that a client sends tells when its last hello is through. The server's own hello does.

/// How a request for another hello begins: a server hello with this in the place of its random
/// bytes.
const AGAIN: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const SERVER_HELLO: u8 = 2;
/// What is read of a message: its kind and length, and of a hello the version and the random bytes.
const HEAD: usize = 4;
const TELLING: usize = HEAD + 2 + AGAIN.len();

/// What a server has said so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    heard: Heard,
    /// The head of a record, as far as it has come.
    record: Vec<u8>,
    /// How much of the record is to come.
    left: usize,
    /// The beginning of a message, as far as it has come.
    message: Vec<u8>,
    /// How much of a message is to come that says nothing more.
    skipped: usize,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Heard {
    /// No hello, or one that asks for another.
    #[default]
    Nothing,
    /// Its hello: from here on no hello of a client is read in clear.
    Hello,
    /// Something that no server says before its hello. It is not read any further, and never
    /// taken for an answer.
    Other,
}

impl Answer {
    /// Whether the client's hellos are over.
    pub(crate) fn is_final(&self) -> bool {
        self.heard == Heard::Hello
    }

    /// Hears what the server says next.
    pub(crate) fn hear(&mut self, said: &[u8]) {
        for byte in said {
            if self.heard != Heard::Nothing {
                return;
            }
            self.heard = self.byte(*byte);
        }
    }

    fn byte(&mut self, byte: u8) -> Heard {
        if self.left == 0 {
            self.record.push(byte);
            let [_, _, _, high, low] = self.record[..] else {
                return Heard::Nothing;
            };
            self.left = usize::from(u16::from_be_bytes([high, low]));
            return match self.record[..] {
                [CHANGE_CIPHER_SPEC | ALERT | HANDSHAKE, 3, ..] if self.left > 0 => Heard::Nothing,
                _ => Heard::Other,
            };
        }
        self.left -= 1;
        let kind = self.record.first().copied();
        if self.left == 0 {
            self.record.clear();
        }
        match kind {
            Some(HANDSHAKE) if self.skipped > 0 => {
                self.skipped -= 1;
                Heard::Nothing
            }
            Some(HANDSHAKE) => {
                self.message.push(byte);
                self.told()
            }
            _ => Heard::Nothing,
        }
    }

    /// What the beginning of a message tells.
    fn told(&mut self) -> Heard {
        let [kind, a, b, c, rest @ ..] = &self.message[..] else {
            return Heard::Nothing;
        };
        let length = u32::from_be_bytes([0, *a, *b, *c]);
        let whole = usize::try_from(length).unwrap_or(usize::MAX);
        let read = match *kind {
            SERVER_HELLO if whole < TELLING - HEAD => return Heard::Other,
            SERVER_HELLO if self.message.len() < TELLING => return Heard::Nothing,
            SERVER_HELLO if !rest.ends_with(&AGAIN) => return Heard::Hello,
            _ => rest.len(),
        };
        self.skipped = whole.saturating_sub(read);
        self.message.clear();
        Heard::Nothing
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hello::tests::records;

    /// A server hello with these random bytes, in records of this size.
    fn server_hello(random: [u8; 32], size: usize) -> Vec<u8> {
        let mut message = vec![SERVER_HELLO, 0, 0, 2 + 32 + 10, 3, 3];
        message.extend(random);
        message.extend([7; 10]);
        records(&message, size)
    }

    /// A hello for good.
    pub(crate) fn hello() -> Vec<u8> {
        server_hello([9; 32], 16384)
    }

    /// A request for another hello, and what some send after it.
    pub(crate) fn again() -> Vec<u8> {
        let mut out = server_hello(AGAIN, 16384);
        out.extend(*b"\x14\x03\x03\0\x01\x01");
        out
    }

    fn is_final(said: &[u8]) -> bool {
        let (mut at_once, mut by_bytes) = (Answer::default(), Answer::default());
        at_once.hear(said);
        for byte in said {
            by_bytes.hear(&[*byte]);
        }
        assert_eq!(at_once.heard, by_bytes.heard);
        at_once.is_final()
    }

    #[test]
    fn only_a_hello_of_its_own_is_final() {
        let warning = b"\x15\x03\x03\0\x02\x01\x70";
        for size in [1, 3, 38, 16384] {
            let hello = server_hello([9; 32], size);
            let again = server_hello(AGAIN, size);
            assert!(is_final(&hello), "{size}");
            assert!(is_final(&[&warning[..], &hello].concat()), "{size}");
            assert!(!is_final(&again), "{size}");
            assert!(!is_final(&[&again[..], &again].concat()), "{size}");
            assert!(is_final(&[&again[..], &hello].concat()), "{size}");
        }
        assert!(is_final(&[again(), hello()].concat()));
        assert!(!is_final(b""));
        assert!(!is_final(&hello()[..40]));
        // What no server says before its hello, and what comes behind that.
        for other in [
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            b"\x17\x03\x03\0\x01x",
            b"\x16\x03\x03\0\0",
            b"\x16\x03\x03\0\x04\x02\0\0\x01",
        ] {
            assert!(!is_final(&[other, &hello()].concat()), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_heard(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            is_final(&bytes);
            is_final(&[b"\x16\x03\x03\0\x60", &bytes[..]].concat());
        }
    }
}
