//! 90: the server name of a TLS client is the host that was asked for, in every hello.

use std::fmt::Write;

use ringfence_testkit::{Network, binaries, for_each_user, op};

use crate::gate_proxy::{ALLOWED, OUTSIDE, PROXY, TLS, hosts, lines};

/// A TLS hello for a name, in records of this size.
pub(crate) fn hello(name: Option<&str>, record: usize) -> String {
    let mut extensions: Vec<u8> = vec![0xfe, 0x0d, 0x05, 0xdc];
    extensions.extend([7; 1500]);
    if let Some(name) = name {
        let length = u8::try_from(name.len()).unwrap();
        extensions.extend([0, 0, 0, length + 5, 0, length + 3, 0, 0, length]);
        extensions.extend(name.bytes());
    }
    let mut body = vec![3, 3];
    body.extend([9; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
    body.extend(extensions);
    let mut message = vec![1, 0];
    message.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
    message.extend(body);
    let mut out = String::new();
    for part in message.chunks(record) {
        let length = u16::try_from(part.len()).unwrap().to_be_bytes();
        for byte in [&[22, 3, 1][..], &length, part].concat() {
            let _ = write!(out, r"\x{byte:02x}");
        }
    }
    out
}

#[test]
fn a_server_name_must_be_the_one_that_was_asked_for() {
    for_each_user(binaries!(), |world| {
        let specs = [OUTSIDE, TLS, "listen=93.184.216.34:8443=quiet", ALLOWED];
        let network = Network::new(binaries!(), world, &specs);
        let through = |target: &str, words: &str| {
            let ask = format!(r"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
            op!["talk", PROXY, ask, words]
        };
        let cases = [
            ("allowed.test:443", hello(Some("allowed.test"), 16384), true),
            ("allowed.test:443", hello(Some("ALLOWED.test"), 100), true),
            ("allowed.test:443", hello(Some("allowed.test"), 3), true),
            ("allowed.test:443", hello(Some("denied.test"), 16384), false),
            ("allowed.test:443", hello(Some("denied.test"), 50), false),
            ("allowed.test:443", hello(None, 16384), false),
            (
                "allowed.test:443",
                r"GET / HTTP/1.1\r\nHost: denied.test\r\n\r\n".to_owned(),
                false,
            ),
            ("allowed.test:443", r"SSH-2.0-client\r\n".to_owned(), true),
            (
                "allowed.test:8443",
                hello(Some("denied.test"), 16384),
                false,
            ),
            ("allowed.test:8443", hello(None, 16384), true),
            ("allowed.test:8443", "plain words".to_owned(), true),
        ];
        for (target, words, passes) in cases {
            let keys = hosts(&["allowed.test", "allowed.test:8443"]);
            let inside = network.inside(&keys, &through(target, &words));
            let line = lines(&inside)[0];
            assert!(line.contains("200 Connection established"), "{line}");
            let port = target.split_once(':').unwrap().1;
            let said = inside.said(&format!("93.184.216.34:{port}"));
            let shown = &words[..words.len().min(60)];
            assert_eq!(!said.is_empty(), passes, "{target} {shown}: {said}");
            assert_eq!(
                line.contains("<ECONNRESET>"),
                !passes,
                "{target} {shown}: {line}"
            );
        }
    });
}

/// A server that asks for another hello takes the name of that one.
#[test]
fn a_second_hello_is_held_to_the_host_too() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, TLS, ALLOWED]);
        let keys = hosts(&["allowed.test"]);
        let first = hello(Some("allowed.test"), 16384);
        // Records that a server lets pass between two hellos: a change of ciphers that means nothing,
        // early data that it cannot read.
        for between in [r"\x14\x03\x03\0\x01\x01", r"\x17\x03\x03\0\x03abc"] {
            for (second, passes) in [("allowed.test", true), ("denied.test", false)] {
                let words = [&first, between, &hello(Some(second), 700)].concat();
                let control = network.free(&op!["talk", "allowed.test:443", &words]);
                let said = control.said("93.184.216.34:443");
                assert!(said.contains(second), "{said}");

                let inside = network.inside(&keys, &op!["talk", "allowed.test:443", &words]);
                let line = lines(&inside)[0];
                let said = inside.said("93.184.216.34:443");
                if passes {
                    assert_eq!(said.matches("allowed.test").count(), 2);
                }
                assert!(!said.contains("denied.test"), "{said}");
                assert_eq!(line.contains("<ECONNRESET>"), !passes, "{between}: {line}");
            }
        }
    });
}
