//! What goes on of what a client says, and what does not.

use super::*;
use crate::answer::tests::{again, hello};
use crate::hello::tests::{message, name_extension, records};

const ALLOWED: &str = "allowed.test:443";

fn client_hello(name: &str, size: usize) -> Vec<u8> {
    records(&message(&name_extension(name.as_bytes())), size)
}

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind, 3, 3], &length[..], body].concat()
}

/// Who speaks.
#[derive(Debug)]
enum Says {
    Client(Vec<u8>),
    Server(Vec<u8>),
}
use Says::{Client, Server};

/// What a server hears, and why it hears no more; everything comes in pieces of this size.
fn heard(target: &str, talk: &[Says], size: usize) -> (Vec<u8>, Option<String>) {
    let destination = Destination::parse(target.as_bytes(), None).unwrap();
    let mut agreement = Agreement::new(&destination);
    let (mut held, mut heard) = (Vec::new(), Vec::new());
    let mut listen = |agreement: &mut Agreement<'_>, held: &mut Vec<u8>| loop {
        match agreement.client(held) {
            Look::Part(count) => heard.extend(held.drain(..count)),
            Look::Refuse(why) => return Some(why),
            Look::More => return None,
            Look::Pass => {
                heard.append(held);
                return None;
            }
        }
    };
    for words in talk {
        let (Client(said) | Server(said)) = words;
        for piece in said.chunks(size) {
            let refused = match words {
                Client(_) => {
                    held.extend_from_slice(piece);
                    None
                }
                Server(_) => agreement.server(piece).err(),
            };
            let refused = refused.or_else(|| listen(&mut agreement, &mut held));
            if refused.is_some() {
                return (heard, refused);
            }
        }
    }
    (heard, None)
}

/// Everything that the client says, if nothing is held back.
fn all(talk: &[Says]) -> Vec<u8> {
    let said = talk.iter().filter_map(|words| match words {
        Client(said) => Some(said.as_slice()),
        Server(_) => None,
    });
    said.collect::<Vec<_>>().concat()
}

const SIZES: [usize; 4] = [1, 7, 100, 1 << 20];

#[track_caller]
fn passes(target: &str, talk: &[Says]) {
    for size in SIZES {
        assert_eq!(
            heard(target, talk, size),
            (all(talk), None),
            "{size}: {talk:?}"
        );
    }
}

/// The last words do not get through, and nothing of them does.
#[track_caller]
fn stops_at_the_last(target: &str, talk: &[Says]) -> String {
    let mut whys = SIZES.map(|size| {
        let (heard, why) = heard(target, talk, size);
        assert_eq!(heard, all(&talk[..talk.len() - 1]), "{size}: {talk:?}");
        why.unwrap_or_else(|| panic!("{size}: {talk:?}"))
    });
    std::mem::take(&mut whys[0])
}

/// A server that asks for another hello takes the name of that one.
#[test]
fn the_name_must_agree_in_every_hello() {
    // In clear, and let pass by servers between two hellos.
    let between = [
        vec![],
        record(CHANGE_CIPHER_SPEC, &[1]),
        record(ALERT, &[1, 90]),
        record(
            APPLICATION_DATA,
            &client_hello("allowed.test", 16384).repeat(50),
        ),
        [
            record(CHANGE_CIPHER_SPEC, &[1]),
            record(APPLICATION_DATA, &[]),
        ]
        .concat(),
    ];
    for between in &between {
        for size in [3, 50, 16384] {
            let talk = |name: &str| {
                vec![
                    Client(client_hello("allowed.test", size)),
                    Server(again()),
                    Client(between.clone()),
                    Client(client_hello(name, size)),
                ]
            };
            passes(ALLOWED, &talk("allowed.test"));
            let why = stops_at_the_last(ALLOWED, &talk("denied.test"));
            assert!(why.contains("is not the host"), "{why}");
            // Also where the server has not been heard yet, and where it asks twice.
            let mut early = talk("denied.test");
            early.remove(1);
            stops_at_the_last(ALLOWED, &early);
            let mut thrice = talk("allowed.test");
            thrice.extend(talk("denied.test").split_off(1));
            stops_at_the_last(ALLOWED, &thrice);
        }
    }
    let nameless = records(&message(&[]), 16384);
    let talk = [
        Client(client_hello("allowed.test", 16384)),
        Server(again()),
        Client(nameless),
    ];
    stops_at_the_last(ALLOWED, &talk);
    passes("allowed.test:8443", &talk);
}

#[test]
fn after_the_answer_anything_passes() {
    for answer in [hello(), [again(), hello()].concat()] {
        for rest in [
            // What is encrypted may look like anything, and before TLS 1.3 in a record that does.
            client_hello("denied.test", 16384),
            record(HANDSHAKE, &[16, 0, 0, 1, 7]),
            [
                record(CHANGE_CIPHER_SPEC, &[1]),
                record(HANDSHAKE, &[1, 0xff, 0xff, 0xff, 9]),
            ]
            .concat(),
            b"\0\0no records at all".to_vec(),
        ] {
            passes(
                ALLOWED,
                &[
                    Client(client_hello("allowed.test", 60)),
                    Server(answer.clone()),
                    Client(rest),
                ],
            );
        }
    }
}

/// Who speaks no TLS gives no answer that could end the look.
#[test]
fn before_the_answer_only_tls_passes() {
    let plain = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    for answer in [vec![], again(), [plain, hello()].concat()] {
        for (rest, passing) in [
            (record(ALERT, &[2, 0]), true),
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), false),
            (record(HANDSHAKE, &[16, 0, 0, 1, 7]), false),
            (record(24, &[1]), false),
            (vec![APPLICATION_DATA, 2], false),
        ] {
            let talk = [
                Client(client_hello("allowed.test", 60)),
                Server(answer.clone()),
                Client(rest),
            ];
            if passing {
                passes(ALLOWED, &talk);
            } else {
                stops_at_the_last(ALLOWED, &talk);
            }
        }
    }
}

/// What the server said first is no answer.
#[test]
fn a_greeting_is_no_answer() {
    let talk = [
        Server(hello()),
        Client(client_hello("allowed.test", 60)),
        Client(client_hello("denied.test", 60)),
    ];
    stops_at_the_last("allowed.test:8443", &talk);
}

/// On ports of its own a host speaks what it likes; but not what some servers take for the beginning of
/// TLS and others read over.
#[test]
fn nothing_stands_before_a_hello() {
    let hello = client_hello("denied.test", 16384);
    for kind in [20, 21, 23] {
        for target in ["allowed.test:8443", ALLOWED, "allowed.test:80"] {
            let said = [record(kind, b"\x01\x5a"), hello.clone()].concat();
            for size in [1, 16384] {
                let (heard, refused) = heard(target, &[Client(said.clone())], size);
                assert_eq!(heard, b"", "{target} {kind}");
                assert!(refused.is_some(), "{target} {kind}");
            }
        }
    }
    // A protocol of its own.
    let (heard, refused) = heard("allowed.test:8443", &[Client(b"\x15\x04hello".to_vec())], 1);
    assert_eq!((&heard[..], refused), (&b"\x15\x04hello"[..], None));
}
