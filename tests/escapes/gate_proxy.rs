//! 87 to 89, 91 to 95, 97, 98: what is said to the proxy of a session with an allow-list.

use std::ffi::OsString;

use ringfence_testkit::{Network, Staged, binaries, for_each_user, op};

use crate::gate_hello::hello;

pub(crate) const PROXY: &str = "127.0.0.1:61080";
pub(crate) const OUTSIDE: &str = "address=93.184.216.34";
const WEB: &str = "listen=93.184.216.34:80=http";
pub(crate) const TLS: &str = "listen=93.184.216.34:443=quiet";
const HELLO: &str = "listen=93.184.216.34:7=hello";
pub(crate) const ALLOWED: &str = "name=allowed.test=93.184.216.34";
const DENIED: &str = "name=denied.test=93.184.216.34";

pub(crate) fn hosts(patterns: &[&str]) -> String {
    let patterns = serde_json::to_string(patterns).unwrap();
    format!(r#""agent": {{"sandbox_permissions": {{"network_hosts": {patterns}}}}}"#)
}

fn all(operations: &[Vec<OsString>]) -> Vec<OsString> {
    operations.join(&OsString::from(","))
}

#[track_caller]
pub(crate) fn lines(staged: &Staged) -> Vec<&str> {
    staged.done.assert_status(0);
    staged.done.lines.iter().map(String::as_str).collect()
}

fn connect(target: &str) -> Vec<OsString> {
    let text = format!(r"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    op!["talk", PROXY, text]
}

fn get(target: &str, host: &str) -> Vec<OsString> {
    let text = format!(r"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    op!["talk", PROXY, text]
}

fn socks(name: &str, port: &str) -> Vec<OsString> {
    let short = [r"\0", r"\r", r"\n", r"\x09", r"\x7f"];
    let length = short
        .iter()
        .fold(name.to_owned(), |name, escape| name.replace(escape, "."))
        .len();
    let text = format!(r"\x05\x01\0\x03\x{length:02x}{name}{port}");
    op!["talk", PROXY, r"\x05\x01\0", text]
}

#[test]
fn what_is_allowed_passes_and_what_is_not_is_told_why() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, WEB, HELLO, ALLOWED, DENIED]);
        let control = network.free(&all(&[
            op![
                "talk",
                "allowed.test:80",
                r"GET /x HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
            ],
            op!["tcp", "denied.test:7"],
        ]));
        assert!(lines(&control)[0].contains("origin saw"), "{control:?}");
        assert_eq!(control.came("93.184.216.34:7"), 1);

        let tries = all(&[
            get("http://allowed.test/x", "allowed.test"),
            get("http://denied.test/x", "denied.test"),
            connect("allowed.test:7"),
            connect("denied.test:7"),
            socks("allowed.test", r"\0\x07"),
            socks("denied.test", r"\0\x07"),
            connect("93.184.216.34:7"),
        ]);
        let inside = network.inside(&hosts(&["allowed.test", "allowed.test:7"]), &tries);
        let lines = lines(&inside);
        assert!(
            lines[0].contains("origin saw: GET /x HTTP/1.1"),
            "{lines:?}"
        );
        assert!(lines[2].contains("200 Connection established"), "{lines:?}");
        assert!(lines[2].contains("hello"), "{lines:?}");
        assert!(lines[4].contains("hello"), "{lines:?}");
        for index in [1, 3, 6] {
            let refusal = lines[index];
            assert!(
                refusal.starts_with("ok:HTTP/1.1 403 Forbidden"),
                "{refusal}"
            );
            assert!(
                refusal.contains("Proxy-Status: ringfence; error=http_request_denied"),
                "{refusal}"
            );
            assert!(refusal.contains("no rule lists it"), "{refusal}");
            assert!(refusal.ends_with("<end>"), "{refusal}");
        }
        assert!(lines[1].contains("--allow-host denied.test"), "{lines:?}");
        assert!(lines[3].contains("--allow-host denied.test:7"), "{lines:?}");
        assert!(
            lines[5].contains(r"\u{5}\u{2}"),
            "not allowed by the rules: {lines:?}"
        );
        assert_eq!(inside.came("93.184.216.34:7"), 2);
        assert_eq!(inside.names(), ["allowed.test"]);
        let events = &inside.done.stderr;
        for event in [
            "Http allowed.test:80 Allowed",
            "Http denied.test:80 Refused",
            "Connect allowed.test:7 Allowed",
            "Connect denied.test:7 Refused",
            "Socks denied.test:7 Refused",
        ] {
            assert!(events.contains(event), "{event}: {events}");
        }
        assert!(
            !events.contains("/x"),
            "no event says what was asked for: {events}"
        );
    });
}

#[test]
fn a_host_is_text_that_can_be_read_in_one_way() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, WEB, HELLO, ALLOWED, DENIED]);
        let names = [
            r"denied.test\0.allowed.test",
            r"allowed.test\r\nHost: x",
            "denied.test%00.allowed.test",
            r"denied.test\x09allowed.test",
            r"denied.test\x7f.allowed.test",
            "allowed.test@denied.test",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "[fe80::1%lo]",
            "a..allowed.test",
        ];
        let long = "a".repeat(256);
        let names = names.into_iter().chain([long.as_str()]);
        let mut tries = Vec::new();
        for name in names.clone() {
            tries.push(connect(&format!("{name}:80")));
            tries.push(get(&format!("http://{name}/"), "allowed.test"));
            if name.len() < 255 {
                tries.push(socks(name, r"\0\x50"));
            }
        }
        let inside = network.inside(&hosts(&["allowed.test", "*.allowed.test"]), &all(&tries));
        for line in lines(&inside) {
            let refused = line.starts_with("ok:HTTP/1.1 400 ")
                || line.starts_with("ok:HTTP/1.1 403 ")
                || line.starts_with(r"ok:\u{5}\0\u{5}\u{2}");
            assert!(refused, "{line}");
        }
        assert_eq!(inside.came("93.184.216.34:80"), 0);
        assert!(inside.names().is_empty(), "{inside:?}");
    });
}

#[test]
fn an_address_is_refused_in_every_spelling() {
    for_each_user(binaries!(), |world| {
        let listeners = ["listen=127.0.0.1:80=http", "listen=[::1]:80=http"];
        let network = Network::new(binaries!(), world, &listeners);
        let control = network.free(&all(&[
            op!["talk", "127.0.0.1:80", r"GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
            op!["talk", "[::1]:80", r"GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
        ]));
        assert!(
            lines(&control)
                .iter()
                .all(|line| line.contains("origin saw"))
        );

        let spellings = [
            "127.0.0.1",
            "[::1]",
            "[::]",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "localhost",
            "x.localhost",
        ];
        let mut tries = Vec::new();
        for host in spellings {
            tries.push(connect(&format!("{host}:80")));
            tries.push(get(&format!("http://{host}/"), host));
        }
        let v4 = r"\x05\x01\0\x01\x7f\0\0\x01\0\x50";
        let v6 = r"\x05\x01\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x50";
        tries.push(op!["talk", PROXY, r"\x05\x01\0", v4]);
        tries.push(op!["talk", PROXY, r"\x05\x01\0", v6]);
        let inside = network.inside(&hosts(&["allowed.test", "*.ok.test:*"]), &all(&tries));
        for line in lines(&inside) {
            let refused =
                line.starts_with("ok:HTTP/1.1 403 ") || line.starts_with(r"ok:\u{5}\0\u{5}\u{2}");
            assert!(refused, "{line}");
        }
        assert_eq!(inside.came("127.0.0.1:80"), 0);
        assert_eq!(inside.came("[::1]:80"), 0);
        // The literal itself can be listed: that is the user's own decision.
        let listed = network.inside(
            &hosts(&["127.0.0.1:80"]),
            &get("http://127.0.0.1/", "127.0.0.1"),
        );
        assert!(lines(&listed)[0].contains("origin saw"), "{listed:?}");
    });
}

#[test]
fn a_name_leads_to_public_addresses_only() {
    for_each_user(binaries!(), |world| {
        let specs = [
            OUTSIDE,
            WEB,
            "listen=127.0.0.1:80=http",
            "address=10.0.0.1",
            "listen=10.0.0.1:80=http",
            "name=loop.ok.test=127.0.0.1",
            "name=mixed.ok.test=10.0.0.1+93.184.216.34",
            "name=later.ok.test=93.184.216.34/127.0.0.1",
            "name=broken.ok.test=!servfail",
        ];
        let network = Network::new(binaries!(), world, &specs);
        let visit = |name: &str| get(&format!("http://{name}/"), name);
        let control = network.free(&all(&[
            op![
                "talk",
                "loop.ok.test:80",
                r"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            ],
            op![
                "talk",
                "mixed.ok.test:80",
                r"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            ],
        ]));
        assert!(
            lines(&control)
                .iter()
                .all(|line| line.contains("origin saw"))
        );

        let tries = all(&[
            visit("loop.ok.test"),
            visit("mixed.ok.test"),
            visit("later.ok.test"),
            visit("later.ok.test"),
            visit("broken.ok.test"),
            visit("absent.ok.test"),
        ]);
        let inside = network.inside(&hosts(&["*.ok.test"]), &tries);
        let lines = lines(&inside);
        assert!(lines[0].contains("403 Forbidden"), "{lines:?}");
        assert!(lines[0].contains("destination_ip_prohibited"), "{lines:?}");
        assert!(lines[1].contains("origin saw"), "{lines:?}");
        assert!(lines[2].contains("origin saw"), "{lines:?}");
        assert!(lines[3].contains("destination_ip_prohibited"), "{lines:?}");
        assert!(
            lines[4].contains("502 ") && lines[4].contains("dns_error"),
            "{lines:?}"
        );
        assert!(
            lines[5].contains("502 ") && lines[5].contains("dns_error"),
            "{lines:?}"
        );
        assert_eq!(inside.came("93.184.216.34:80"), 2);
        assert_eq!(inside.came("127.0.0.1:80"), 0);
        assert_eq!(inside.came("10.0.0.1:80"), 0);
    });
}

#[test]
fn a_request_is_judged_by_itself() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, WEB, ALLOWED, DENIED]);
        let keys = hosts(&["allowed.test"]);
        let first = r"GET http://allowed.test/one HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
        let second = r"GET http://denied.test/two HTTP/1.1\r\nHost: denied.test\r\n\r\n";
        let third = r"GET http://allowed.test/three HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
        let inside = network.inside(&keys, &op!["talk", PROXY, first, third, second]);
        let line = lines(&inside)[0];
        assert!(line.contains("/one") && line.contains("/three"), "{line}");
        assert!(line.contains("403 Forbidden"), "{line}");
        let said = inside.said("93.184.216.34:80");
        assert!(!said.contains("two") && !said.contains("denied"), "{said}");

        for (request, what) in [
            (
                r"GET http://allowed.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n",
                "another Host",
            ),
            (
                r"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nHost: denied.test\r\n\r\n",
                "two Hosts",
            ),
            (
                r"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "two lengths",
            ),
            (
                r"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
                "two lengths",
            ),
            (
                r"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nX: a\r\n b\r\n\r\n",
                "a folded line",
            ),
            (
                r"GET http://allowed.test/ HTTP/1.1\nHost: allowed.test\n\n\r\n\r\n",
                "bare line ends",
            ),
            (
                r"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
                "no proxy request",
            ),
            (
                r"GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
                "another scheme",
            ),
            (r"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2"),
        ] {
            let inside = network.inside(&keys, &op!["talk", PROXY, request]);
            let line = lines(&inside)[0];
            assert!(line.starts_with("ok:HTTP/1.1 400 "), "{what}: {line}");
            assert_eq!(inside.came("93.184.216.34:80"), 0, "{what}");
        }
        let upgrade = r"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade, X-Mine\r\nUpgrade: h2c\r\nX-Mine: 1\r\nProxy-Authorization: Basic x\r\nX-Kept: 2\r\n\r\n";
        let inside = network.inside(&keys, &op!["talk", PROXY, upgrade]);
        let said = inside.said("93.184.216.34:80");
        assert!(said.contains("X-Kept: 2"), "{said}");
        for stripped in ["Upgrade", "X-Mine", "Proxy-Auth", "http://"] {
            assert!(!said.contains(stripped), "{stripped}: {said}");
        }
    });
}

#[test]
fn bodies_pass_and_redirects_are_not_followed() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, WEB, ALLOWED, DENIED]);
        let post = r"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
        let tries = all(&[
            op!["talk", PROXY, post, "abcde"],
            get("http://allowed.test/chunked", "allowed.test"),
            get("http://allowed.test/redirect", "allowed.test"),
            get("http://allowed.test?q=1", "allowed.test"),
        ]);
        let inside = network.inside(&hosts(&["allowed.test"]), &tries);
        let lines = lines(&inside);
        assert!(
            lines[0].contains("100 Continue") && lines[0].contains("+ abcde"),
            "{lines:?}"
        );
        assert!(
            lines[1].contains(r"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
            "{lines:?}"
        );
        assert!(lines[2].contains("302 Found"), "{lines:?}");
        assert!(lines[3].contains("GET /?q=1 HTTP/1.1"), "{lines:?}");
        assert_eq!(inside.asked("denied.test"), 0);
    });
}

#[test]
fn a_web_socket_is_one_stream_to_the_host_that_was_judged() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, WEB, ALLOWED]);
        let upgrade = |target: &str, protocol: &str| {
            format!(
                r"GET {target} HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nSec-WebSocket-Key: x\r\n\r\n"
            )
        };
        let tries = all(&[
            op!["talk", PROXY, upgrade("http://allowed.test/", "websocket")],
            op!["talk", "allowed.test:80", upgrade("/", "websocket")],
            op!["talk", PROXY, upgrade("http://allowed.test/", "h2c")],
        ]);
        let inside = network.inside(&hosts(&["allowed.test"]), &tries);
        let lines = lines(&inside);
        for line in &lines[..2] {
            assert!(line.contains("101 Switching Protocols"), "{lines:?}");
            assert!(line.contains("frames"), "{lines:?}");
        }
        assert!(
            lines[2].contains("origin saw") && !lines[2].contains("h2c"),
            "{lines:?}"
        );
    });
}

#[test]
fn ports_and_other_protocols_are_refused() {
    for_each_user(binaries!(), |world| {
        let specs = [OUTSIDE, WEB, "listen=93.184.216.34:22=hello", ALLOWED];
        let network = Network::new(binaries!(), world, &specs);
        let tries = all(&[
            connect("allowed.test:22"),
            connect("allowed.test:0"),
            connect("allowed.test:65536"),
            connect("allowed.test:443abc"),
            connect("allowed.test"),
            // SOCKS 4, BIND, UDP ASSOCIATE, a client that insists on a password.
            op!["talk", PROXY, r"\x04\x01\0\x16\x5d\xb8\xd8\x22\0"],
            op![
                "talk",
                PROXY,
                r"\x05\x01\0",
                r"\x05\x02\0\x01\0\0\0\0\0\x50"
            ],
            op![
                "talk",
                PROXY,
                r"\x05\x01\0",
                r"\x05\x03\0\x01\0\0\0\0\0\x50"
            ],
            op!["talk", PROXY, r"\x05\x01\x02"],
            connect("127.0.0.1:61080"),
            connect("localhost:61080"),
        ]);
        let inside = network.inside(&hosts(&["allowed.test"]), &tries);
        let lines = lines(&inside);
        assert!(lines[0].contains("403 Forbidden"), "{lines:?}");
        for line in &lines[1..5] {
            assert!(line.contains("400 Bad Request"), "{line}");
        }
        assert!(lines[5].starts_with("ok:\\0["), "{lines:?}");
        assert!(lines[6].starts_with(r"ok:\u{5}\0\u{5}\u{7}"), "{lines:?}");
        assert!(lines[7].starts_with(r"ok:\u{5}\0\u{5}\u{7}"), "{lines:?}");
        assert!(lines[8].starts_with(r"ok:\u{5}"), "{lines:?}");
        assert!(
            lines[9].contains("403") && lines[10].contains("403"),
            "{lines:?}"
        );
        assert_eq!(inside.came("93.184.216.34:22"), 0);
        assert!(inside.names().is_empty());
    });
}

#[test]
fn a_program_without_a_proxy_is_held_to_its_host_too() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, WEB, TLS, ALLOWED]);
        let keys = hosts(&["allowed.test"]);
        let request = |host: &str| format!(r"GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let good = network.inside(
            &keys,
            &op!["talk", "allowed.test:80", request("allowed.test")],
        );
        assert!(lines(&good)[0].contains("origin saw: GET /x"), "{good:?}");
        let bad = [
            op!["talk", "allowed.test:80", request("denied.test")],
            op![
                "talk",
                "allowed.test:80",
                request("allowed.test"),
                request("denied.test")
            ],
            op!["talk", "allowed.test:443", hello(Some("denied.test"), 64)],
            // Servers that take a line too many for an empty one, and read on.
            op![
                "talk",
                "allowed.test:80",
                format!(r"SSH-2.0-x\r\n{}", request("denied.test"))
            ],
        ];
        for operation in bad {
            let inside = network.inside(&keys, &operation);
            let said = [
                inside.said("93.184.216.34:80"),
                inside.said("93.184.216.34:443"),
            ]
            .concat();
            assert!(!said.contains("denied"), "{said}");
            lines(&inside);
        }
        let good = network.inside(
            &keys,
            &op!["talk", "allowed.test:443", hello(Some("allowed.test"), 64)],
        );
        lines(&good);
        assert!(
            good.said("93.184.216.34:443").contains("allowed"),
            "{good:?}"
        );
    });
}
