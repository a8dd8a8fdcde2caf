//! 1, 79 to 83, 85, 86: what a session with an allow-list reaches without a proxy, and by names.

use std::ffi::OsString;

use ringfence_testkit::{Network, Staged, binaries, for_each_user, op};

/// A public address of this test's own network.
const OUTSIDE: &str = "address=93.184.216.34";
const HELLO: &str = "listen=93.184.216.34:7=hello";
const ALLOWED: &str = "name=allowed.test=93.184.216.34";
const DENIED: &str = "name=denied.test=93.184.216.34";

fn hosts(patterns: &[&str]) -> String {
    let patterns = serde_json::to_string(patterns).unwrap();
    format!(r#""agent": {{"sandbox_permissions": {{"network_hosts": {patterns}}}}}"#)
}

fn all(operations: &[Vec<OsString>]) -> Vec<OsString> {
    operations.join(&OsString::from(","))
}

#[track_caller]
fn lines(staged: &Staged) -> Vec<&str> {
    staged.done.assert_status(0);
    staged.done.lines.iter().map(String::as_str).collect()
}

#[test]
fn an_allowed_name_is_reached_by_programs_that_know_no_proxy() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED, DENIED]);
        let tries = all(&[
            op!["tcp", "allowed.test:7"],
            op!["tcp", "denied.test:7"],
            op!["tcp", "93.184.216.34:7"],
        ]);
        let free = network.free(&tries);
        assert_eq!(lines(&free), ["ok", "ok", "ok"], "{free:?}");
        assert_eq!(free.came("93.184.216.34:7"), 3);

        let inside = network.inside(&hosts(&["allowed.test:7"]), &tries);
        let lines = lines(&inside);
        assert_eq!(lines[0], "ok", "{inside:?}");
        assert!(lines[1].starts_with("not the kernel"), "{lines:?}");
        assert_eq!(lines[2], "ENETUNREACH");
        assert_eq!(inside.came("93.184.216.34:7"), 1);
        assert_eq!(inside.names(), ["allowed.test"], "only that was looked up");
        let events = &inside.done.stderr;
        assert!(
            events.contains("Direct allowed.test:7 Allowed sent 0 received 5"),
            "{events}"
        );
        assert!(events.contains("Name denied.test:0 Refused"), "{events}");
        assert!(
            events.contains("Direct 93.184.216.34:7 Refused"),
            "{events}"
        );
    });
}

#[test]
fn an_allowed_name_is_not_reached_on_another_port() {
    for_each_user(binaries!(), |world| {
        let other = "listen=93.184.216.34:8=hello";
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, other, ALLOWED]);
        let tries = all(&[op!["tcp", "allowed.test:7"], op!["tcp", "allowed.test:8"]]);
        assert_eq!(lines(&network.free(&tries)), ["ok", "ok"]);

        let inside = network.inside(&hosts(&["allowed.test:7"]), &tries);
        assert_eq!(lines(&inside), ["ok", "ECONNRESET"], "{inside:?}");
        assert_eq!(inside.came("93.184.216.34:8"), 0);
        let any = network.inside(&hosts(&["allowed.test:*"]), &tries);
        assert_eq!(lines(&any), ["ok", "ok"], "{any:?}");
    });
}

#[test]
fn an_allowed_address_is_reached_and_no_other() {
    for_each_user(binaries!(), |world| {
        let specs = [
            OUTSIDE,
            HELLO,
            "address=93.184.216.35",
            "listen=93.184.216.35:7=hello",
        ];
        let network = Network::new(binaries!(), world, &specs);
        let tries = all(&[op!["tcp", "93.184.216.34:7"], op!["tcp", "93.184.216.35:7"]]);
        assert_eq!(lines(&network.free(&tries)), ["ok", "ok"]);

        let inside = network.inside(&hosts(&["93.184.216.34:7"]), &tries);
        assert_eq!(lines(&inside), ["ok", "ENETUNREACH"], "{inside:?}");
        assert_eq!(inside.came("93.184.216.35:7"), 0);
    });
}

#[test]
fn an_empty_list_reaches_nothing() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED]);
        let keys = r#""network": {"mode": "hosts", "hosts": []}"#;
        let connect = r"CONNECT allowed.test:7 HTTP/1.1\r\nHost: allowed.test:7\r\n\r\n";
        let tries = all(&[
            op!["tcp", "allowed.test:7"],
            op!["tcp", "93.184.216.34:7"],
            op!["talk", "127.0.0.1:61080", connect],
        ]);
        let inside = network.inside(keys, &tries);
        let lines = lines(&inside);
        assert!(lines[0].starts_with("not the kernel"), "{lines:?}");
        assert_eq!(lines[1], "ENETUNREACH");
        assert!(
            lines[2].starts_with("ok:HTTP/1.1 403 Forbidden"),
            "{lines:?}"
        );
        assert_eq!(inside.came("93.184.216.34:7"), 0);
        assert!(inside.names().is_empty(), "{inside:?}");
    });
}

#[test]
fn a_name_carries_nothing_out() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, ALLOWED, DENIED]);
        let control = network.free(&op!["resolve", "c2VjcmV0.denied.test"]);
        assert!(control.asked("c2vjcmv0.denied.test") > 0, "{control:?}");

        let tries = all(&[
            op!["resolve", "c2VjcmV0.denied.test"],
            op!["resolve", "c2VjcmV0.allowed.test"],
            op!["resolve", "allowed.test.evil.test"],
            op!["resolve", "metadata.google.internal"],
            op!["resolve", "allowed.test"],
            op!["udp", "127.0.0.53:53"],
            op!["udp", "8.8.8.8:53"],
        ]);
        let inside = network.inside(&hosts(&["allowed.test"]), &tries);
        let lines = lines(&inside);
        for line in &lines[..4] {
            assert!(line.starts_with("not the kernel"), "{line}");
        }
        assert!(lines[4].starts_with("ok:127.192."), "{lines:?}");
        assert_eq!(lines[5], "ok", "it is answered, and goes nowhere");
        assert_eq!(lines[6], "ENETUNREACH");
        assert!(
            inside.names().is_empty(),
            "nothing is looked up before somebody connects: {inside:?}"
        );
    });
}

#[test]
fn services_of_the_host_stay_out_of_reach() {
    for_each_user(binaries!(), |world| {
        let specs = [
            "listen=127.0.0.1:9222=hello",
            "address=10.1.2.3",
            "listen=10.1.2.3:2375=hello",
            "address=169.254.169.254",
            "listen=169.254.169.254:80=hello",
            "name=inner.ok.test=127.0.0.1",
            "name=lan.ok.test=10.1.2.3",
            "name=meta.ok.test=169.254.169.254",
        ];
        let network = Network::new(binaries!(), world, &specs);
        let tries = all(&[
            op!["tcp", "127.0.0.1:9222"],
            op!["tcp", "10.1.2.3:2375"],
            op!["tcp", "169.254.169.254:80"],
            op!["tcp", "inner.ok.test:9222"],
            op!["tcp", "lan.ok.test:2375"],
            op!["tcp", "meta.ok.test:80"],
        ]);
        assert_eq!(lines(&network.free(&tries)), ["ok"; 6]);

        let inside = network.inside(&hosts(&["*.ok.test:*"]), &tries);
        let expected = [
            "ECONNREFUSED",
            "ENETUNREACH",
            "ENETUNREACH",
            "ECONNRESET",
            "ECONNRESET",
            "ECONNRESET",
        ];
        assert_eq!(lines(&inside), expected, "{inside:?}");
        for address in ["127.0.0.1:9222", "10.1.2.3:2375", "169.254.169.254:80"] {
            assert_eq!(inside.came(address), 0, "{address}");
        }
        assert!(
            inside.done.stderr.contains("not a public address"),
            "{inside:?}"
        );
    });
}

#[test]
fn named_ports_of_the_host_are_reached_in_either_direction() {
    for_each_user(binaries!(), |world| {
        let specs = ["listen=127.0.0.1:9222=hello", "listen=127.0.0.1:9223=hello"];
        let network = Network::new(binaries!(), world, &specs);
        let tries = all(&[
            op!["tcp", "127.0.0.1:9222"],
            op!["tcp", "localhost:9222"],
            op!["tcp", "127.0.0.1:9223"],
        ]);
        let keys = r#""network": {"mode": "none", "loopback_out": [9222]}"#;
        let inside = network.inside(keys, &tries);
        assert_eq!(lines(&inside), ["ok", "ok", "ECONNREFUSED"], "{inside:?}");
        assert_eq!(inside.came("127.0.0.1:9223"), 0);

        // From the host to a server inside, as often as anybody likes.
        let script = r#"
            "$1" "$2" python3 -m http.server --bind 127.0.0.1 8111 >/dev/null 2>&1 & server=$!
            for try in $(seq 300); do
                sleep 0.1
                "$3" talk 127.0.0.1:8111 'GET / HTTP/1.0\r\n\r\n' | grep -q '200 OK' && break
            done
            # More often than there are sockets for it.
            for try in $(seq 40); do "$3" talk 127.0.0.1:8111 'GET / HTTP/1.0\r\n\r\n'; done | grep -c '200 OK'
            "$3" tcp 127.0.0.1:8112
            kill $server
            wait
        "#;
        let setup = world.setup_with(r#""network": {"mode": "none", "loopback_in": [8111]}"#);
        let words: Vec<OsString> = [
            "sh".into(),
            "-c".into(),
            script.into(),
            "sh".into(),
            world.path("bin/confine").into_os_string(),
            setup.to_argument(),
            world.path("bin/probe").into_os_string(),
        ]
        .into();
        let outside = network.run(&words);
        let lines = &outside.done.lines;
        assert_eq!(lines[0], "40", "{outside:?}");
        assert_eq!(lines[1], "ECONNREFUSED", "{outside:?}");
    });
}

#[test]
fn servers_inside_keep_their_ports() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED]);
        let tries = all(&[
            op!["serve-itself"],
            op!["listen", "0.0.0.0:8080"],
            op!["listen", "0.0.0.0:5432"],
            op!["listen", "127.0.0.1:3128"],
            op!["tcp", "allowed.test:7"],
        ]);
        let keys = hosts(&["allowed.test:*", "*.ok.test:5432"]);
        let inside = network.inside(&keys, &tries);
        assert_eq!(lines(&inside), ["ok"; 5], "{inside:?}");
    });
}

#[test]
fn names_are_found_where_their_file_is_a_link() {
    for_each_user(binaries!(), |world| {
        let scratch = world.path("scratch");
        std::fs::create_dir(&scratch).unwrap();
        world.own();
        let resolver = format!("resolver={}", scratch.display());
        let specs = [OUTSIDE, HELLO, ALLOWED, DENIED, resolver.as_str()];
        let network = Network::new(binaries!(), world, &specs);
        let tries = all(&[
            op!["tcp", "allowed.test:7"],
            op!["tcp", "denied.test:7"],
            op!["write", "/etc/resolv.conf"],
        ]);
        let inside = network.inside(&hosts(&["allowed.test:7"]), &tries);
        let lines = lines(&inside);
        assert_eq!(lines[0], "ok", "{inside:?}");
        assert!(lines[1].starts_with("not the kernel"), "{lines:?}");
        assert!(["EROFS", "EACCES"].contains(&lines[2]), "{lines:?}");
        assert_eq!(inside.names(), ["allowed.test"]);
    });
}

#[test]
fn without_a_listener_for_the_filter_the_proxy_still_works() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED]);
        // Nobody can be asked about protected names then, which has to be accepted by name.
        let keys = format!(r#"{}, "on_gap": "report""#, hosts(&["allowed.test:7"]));
        let mut setup = world.setup_with(&keys);
        setup.no_listener = true;
        let connect = r"CONNECT allowed.test:7 HTTP/1.1\r\nHost: allowed.test:7\r\n\r\n";
        let mut words = vec![world.path("bin/probe").into_os_string()];
        words.extend(all(&[
            op!["talk", "127.0.0.1:61080", connect],
            op!["tcp", "93.184.216.34:7"],
        ]));
        let inside = network.confined_with(&setup, &words);
        let lines = lines(&inside);
        assert!(lines[0].contains("200 Connection established"), "{lines:?}");
        assert!(lines[0].contains("hello"), "{lines:?}");
        assert_eq!(lines[1], "ENETUNREACH");
        let variables = network.confined_with(&setup, ["env"]);
        assert!(
            variables
                .done
                .text()
                .contains("JAVA_TOOL_OPTIONS=-Dhttp.proxyHost")
        );
    });
}

#[test]
fn variables_of_the_caller_or_the_project_change_nothing() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED, DENIED]);
        let setup = world.setup_with(&format!(
            r#"{}, "env": {{"allow": ["NO_PROXY", "no_proxy"]}}"#,
            hosts(&["allowed.test:7"])
        ));
        let mut words: Vec<OsString> = ["env", "NO_PROXY=*", "no_proxy=denied.test"]
            .map(OsString::from)
            .into();
        words.push(world.path("bin/confine").into_os_string());
        words.push(setup.to_argument());
        words
            .extend(["sh", "-c", r#"echo "$NO_PROXY $no_proxy $HTTPS_PROXY""#].map(OsString::from));
        let inside = network.run(&words);
        assert_eq!(
            inside.done.line(),
            "localhost,127.0.0.1,::1 localhost,127.0.0.1,::1 http://127.0.0.1:61080"
        );
        // A proxy that somebody writes into a tool's own configuration is a host like any other.
        let script =
            "git -c http.proxy=http://93.184.216.34:7 ls-remote http://allowed.test:7/x.git;
            curl -sS -x http://denied.test:7 http://allowed.test:7/;
            curl -sS -x http://93.184.216.34:7 http://allowed.test:7/; true";
        let tools = network.confined(&hosts(&["allowed.test"]), ["sh", "-c", script]);
        tools.done.assert_status(0);
        assert_eq!(tools.came("93.184.216.34:7"), 0, "{tools:?}");
        assert!(tools.names().is_empty(), "{tools:?}");
    });
}

/// Programs read that file before they ask anybody, and its addresses lead nowhere from inside.
#[test]
fn a_name_in_the_hosts_own_file_is_asked_for() {
    for_each_user(binaries!(), |world| {
        let file = "127.0.0.1 localhost own.test\n93.184.216.34 filed.test other.test\n";
        std::fs::write(world.path("hosts"), file).unwrap();
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO]);
        let tries = all(&[
            op!["tcp", "filed.test:7"],
            op!["tcp", "other.test:7"],
            op!["tcp", "own.test:7"],
        ]);
        let free = network.free(&tries);
        assert_eq!(lines(&free), ["ok", "ok", "ECONNREFUSED"], "{free:?}");
        let inside = network.inside(&hosts(&["filed.test:7"]), &tries);
        let lines = lines(&inside);
        assert_eq!(lines[0], "ok", "{inside:?}");
        assert!(lines[1].starts_with("not the kernel"), "{lines:?}");
        assert_eq!(lines[2], "ECONNREFUSED", "its own loopback");
    });
}
