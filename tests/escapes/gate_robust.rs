//! 84, 85, 96, 97, 99: clients that mean harm, a gate that is gone, and who may use it.

use std::ffi::OsString;
use std::fs;

use ringfence_testkit::{Network, Staged, binaries, for_each_user, op};

const PROXY: &str = "127.0.0.1:61080";
const OUTSIDE: &str = "address=93.184.216.34";
const HELLO: &str = "listen=93.184.216.34:7=hello";
const ALLOWED: &str = "name=allowed.test=93.184.216.34";

fn hosts(patterns: &[&str]) -> String {
    let patterns = serde_json::to_string(patterns).unwrap();
    format!(r#""agent": {{"sandbox_permissions": {{"network_hosts": {patterns}}}}}"#)
}

#[track_caller]
fn lines(staged: &Staged) -> Vec<&str> {
    staged.done.assert_status(0);
    staged.done.lines.iter().map(String::as_str).collect()
}

/// Python in the session, with `proxy()` to connect to the gate.
fn python(script: &str) -> Vec<OsString> {
    let all = format!(
        "import socket, sys, time, threading\n\
         def proxy():\n\
         \x20   return socket.create_connection(('127.0.0.1', 61080), timeout=20)\n\
         def visit():\n\
         \x20   s = proxy()\n\
         \x20   s.sendall(b'CONNECT allowed.test:7 HTTP/1.1\\r\\nHost: allowed.test:7\\r\\n\\r\\n')\n\
         \x20   got = b''\n\
         \x20   while not got.endswith(b'hello'):\n\
         \x20       more = s.recv(1000)\n\
         \x20       if not more: break\n\
         \x20       got += more\n\
         \x20   s.close()\n\
         \x20   return got.endswith(b'hello')\n{script}"
    );
    op!["python3", "-c", all]
}

#[test]
fn clients_that_say_too_much_are_cut_off() {
    for_each_user(binaries!(), |world| {
        let web = "listen=93.184.216.34:80=http";
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, web, ALLOWED]);
        let script = r"
def endless(*parts):
    s = proxy()
    sent = 0
    try:
        for part in parts[:-1]:
            s.sendall(part)
        for _ in range(20000):
            s.sendall(parts[-1]); sent += len(parts[-1])
    except OSError:
        pass
    s.settimeout(10)
    try:
        answer = s.recv(12)
    except OSError:
        answer = b''
    return sent, answer
head = endless(b'GET http://allowed.test/ HTTP/1.1\r\n', b'X: ' + b'a' * 1000 + b'\r\n')
line = endless(b'GET http://allowed.test/', b'a' * 1000)
greeting = endless(b'\x05\xff' + b'\x01' * 255, b'a' * 1000)
chunk = endless(b'POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n', b'9' * 1000)
for name, (sent, answer) in dict(head=head, line=line, greeting=greeting, chunk=chunk).items():
    print(name, sent < 15000000, answer[:9])
print(visit())
s = proxy()
s.sendall(b'POST http://allowed.test/early HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 9\r\n\r\nab')
s.shutdown(socket.SHUT_WR)
print(b'Connection: close' in s.recv(10000))
";
        let inside = network.confined(&hosts(&["allowed.test", "allowed.test:7"]), python(script));
        let lines = lines(&inside);
        assert_eq!(lines[5], "True", "no request follows half a body");
        assert_eq!(lines[0], "head True b'HTTP/1.1 '", "{inside:?}");
        assert_eq!(lines[1], "line True b'HTTP/1.1 '", "{inside:?}");
        assert!(lines[2].starts_with("greeting True"), "{inside:?}");
        assert!(lines[3].starts_with("chunk True"), "{inside:?}");
        assert_eq!(lines[4], "True", "the gate still serves");
    });
}

#[test]
fn ten_thousand_connections_grow_nothing_and_hold_up_nobody_else() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED]);
        // Ten thousand clients, a few hundred at once, that say half a word and then nothing,
        // break off, or leave one half open; meanwhile another session goes on.
        let storm = r"
held = []
for number in range(10000):
    try:
        s = socket.socket(); s.settimeout(0.05)
        s.connect(('127.0.0.1', 61080))
        s.send([b'C', b'\x05', b'GET http://al', b'\x05\x01\x00\x05'][number % 4])
        if number % 3 == 0: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0'); s.close()
        elif number % 3 == 1: s.shutdown(socket.SHUT_WR); held.append(s)
        else: held.append(s)
    except OSError:
        s.close()
    while len(held) > 700: held.pop(0).close()
with open('storm-done', 'w') as out: out.write('x')
time.sleep(1)
for s in held: s.close()
time.sleep(0.5)
print('again', visit())
";
        let calm = r"
import os
deadline = time.time() + 80
worst, visits = 0, 0
while time.time() < deadline and not os.path.exists('storm-done'):
    start = time.time()
    assert visit()
    worst = max(worst, time.time() - start); visits += 1
    time.sleep(0.02)
print('calm', visits > 3, worst < 5)
";
        let _ = fs::remove_file(world.project("storm-done"));
        let script = r#"
            confine=$1; setup=$2; shift 2
            "$confine" "$setup" python3 -c "$1" & storm=$!
            "$confine" "$setup" python3 -c "$2" & calm=$!
            most=0
            while kill -0 $storm 2>/dev/null; do
                now=$(awk '/VmRSS/ {print $2}' /proc/$storm/status 2>/dev/null || echo 0)
                [ "${now:-0}" -gt "$most" ] && most=$now
                sleep 0.1
            done
            wait $storm; first=$?
            wait $calm; second=$?
            echo "status $first $second"
            echo "rss $most"
        "#;
        let setup = world.setup_with(&format!(
            r#"{}, "limits": {{"files": 4096}}"#,
            hosts(&["allowed.test:7"])
        ));
        let [_, _, storm] = &python(storm)[..] else {
            panic!("not a script")
        };
        let [_, _, calm] = &python(calm)[..] else {
            panic!("not a script")
        };
        let words = [
            "sh".into(),
            "-c".into(),
            script.into(),
            "sh".into(),
            world.path("bin/confine").into_os_string(),
            setup.to_argument(),
            storm.clone(),
            calm.clone(),
        ];
        let outcome = network.run(words);
        let text = outcome.done.text();
        assert!(text.contains("again True"), "{outcome:?}");
        assert!(text.contains("calm True True"), "{outcome:?}");
        assert!(text.contains("status 0 0"), "{outcome:?}");
        let rss = text.lines().find_map(|line| line.strip_prefix("rss "));
        let rss: u64 = rss.unwrap().parse().unwrap();
        // A debug build; what matters is that ten thousand clients do not cost ten thousand times
        // what one does.
        assert!(rss > 1000 && rss < 48 * 1024, "{rss} KiB");
    });
}

#[test]
fn without_its_gate_a_session_has_no_network() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED]);
        // The gate lives in the supervisor. Once that is killed, so is the session; a process that
        // would somehow outlive it has a listener that nobody serves.
        let script = r#"
            "$1" "$2" python3 -c "$3" > out & session=$!
            for try in $(seq 600); do grep -q connected out && break; sleep 0.1; done
            cat out
            kill -9 $session; wait $session 2>/dev/null
            sleep 0.3; : > out; before=$(cat beat); sleep 0.5
            [ "$before" = "$(cat beat)" ] && echo "gone, and said:$(cat out)"
        "#;
        let inner = r"
s = proxy()
s.sendall(b'CONNECT allowed.test:7 HTTP/1.1\r\nHost: allowed.test:7\r\n\r\n')
print('connected', s.recv(12), flush=True)
beat = 0
while True:
    beat += 1
    with open('beat', 'w') as out: out.write(str(beat))
    try:
        s = socket.create_connection(('93.184.216.34', 7), timeout=1)
        print('direct', flush=True)
    except OSError: time.sleep(0.01)
";
        let setup = world.setup_with(&hosts(&["allowed.test:7"]));
        let [_, _, inner] = &python(inner)[..] else {
            panic!("not a script")
        };
        let words = [
            "sh".into(),
            "-c".into(),
            script.into(),
            "sh".into(),
            world.path("bin/confine").into_os_string(),
            setup.to_argument(),
            inner.clone(),
        ];
        let outcome = network.run(words);
        let text = outcome.done.text();
        assert!(text.contains("connected b'HTTP/1.1 200'"), "{outcome:?}");
        assert!(!text.contains("direct"), "{outcome:?}");
        assert!(text.ends_with("gone, and said:"), "{outcome:?}");
    });
}

#[test]
fn nobody_but_the_session_can_use_its_gate() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED]);
        let script = r#"
            rm -f ready go
            "$1" "$2" sh -c 'touch ready; until [ -e go ]; do sleep 0.1; done' & session=$!
            for try in $(seq 1200); do [ -e ready ] && break; sleep 0.05; done
            "$4" tcp 127.0.0.1:61080
            "$4" tcp 127.0.0.1:61081
            # Another session, with another list, has a gate of its own.
            "$1" "$3" "$4" talk 127.0.0.1:61080 'CONNECT allowed.test:7 HTTP/1.1\r\nHost: allowed.test:7\r\n\r\n'
            touch go; wait $session
        "#;
        let setup = world.setup_with(&hosts(&["allowed.test:7"]));
        let other = world.setup_with(&hosts(&["other.test"]));
        let words = [
            "sh".into(),
            "-c".into(),
            script.into(),
            "sh".into(),
            world.path("bin/confine").into_os_string(),
            setup.to_argument(),
            other.to_argument(),
            world.path("bin/probe").into_os_string(),
        ];
        let outcome = network.run(words);
        let lines = lines(&outcome);
        assert_eq!(lines[..2], ["ECONNREFUSED", "ECONNREFUSED"], "{outcome:?}");
        assert!(lines[2].contains("403 Forbidden"), "{outcome:?}");
        assert_eq!(outcome.came("93.184.216.34:7"), 0);
    });
}

#[test]
fn a_relay_inside_changes_nothing() {
    for_each_user(binaries!(), |world| {
        let denied = "name=denied.test=93.184.216.34";
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED, denied]);
        let script = r"
import os
def pump(a, b):
    try:
        while data := a.recv(4096): b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
relay = socket.create_server(('127.0.0.1', 9999))
def serve():
    while True:
        client, _ = relay.accept(); server = proxy()
        threading.Thread(target=pump, args=(client, server), daemon=True).start()
        threading.Thread(target=pump, args=(server, client), daemon=True).start()
threading.Thread(target=serve, daemon=True).start()
for host in (b'allowed.test', b'denied.test'):
    s = socket.create_connection(('127.0.0.1', 9999), timeout=10)
    s.sendall(b'CONNECT %s:7 HTTP/1.1\r\nHost: %s:7\r\n\r\n' % (host, host))
    print(s.recv(12).decode(), flush=True)
# The threads above never end by themselves, and the interpreter does not end well around them.
os._exit(0)
";
        let inside = network.confined(&hosts(&["allowed.test:7"]), python(script));
        assert_eq!(
            lines(&inside),
            ["HTTP/1.1 200", "HTTP/1.1 403"],
            "{inside:?}"
        );
        assert_eq!(inside.names(), ["allowed.test"]);
    });
}

#[test]
fn the_network_of_a_session_holds_nothing_else() {
    for_each_user(binaries!(), |world| {
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, ALLOWED]);
        let keys = hosts(&["allowed.test:7"]);
        let devices = network.confined(&keys, ["cat", "/proc/net/dev"]);
        assert_eq!(devices.done.lines.len(), 3, "only a loopback: {devices:?}");
        let open = network.confined(&keys, ["sh", "-c", "ls -l /proc/self/fd /proc/$$/fd"]);
        assert!(!open.done.text().contains("socket"), "{open:?}");
        // Datagrams that are not questions for names go nowhere.
        let script = r"
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    u.connect(('allowed.test', 443)); u.send(b'x'); time.sleep(0.1); u.send(b'x'); print('udp sent')
except OSError as error:
    print('udp', error.errno)
";
        let sent = network.confined(&keys, python(script));
        assert_eq!(lines(&sent), ["udp 111"], "{sent:?}");
    });
}

#[test]
fn somebody_is_asked_before_a_name_is_looked_up() {
    for_each_user(binaries!(), |world| {
        let denied = "name=denied.test=93.184.216.34";
        let asked = "name=asked.test=93.184.216.34";
        let network = Network::new(binaries!(), world, &[OUTSIDE, HELLO, denied, asked]);
        let mut setup = world.setup_with(&hosts(&["allowed.test:7"]));
        setup.says_yes = Some(vec!["asked.test:7".to_owned()]);
        let connect = |host: &str| {
            let text = format!(r"CONNECT {host}:7 HTTP/1.1\r\nHost: {host}:7\r\n\r\n");
            op!["talk", PROXY, text]
        };
        let operations = [
            connect("asked.test"),
            connect("denied.test"),
            op!["tcp", "asked.test:7"],
            op!["tcp", "denied.test:7"],
        ];
        let mut words = vec![world.path("bin/probe").into_os_string()];
        words.extend(operations.join(&OsString::from(",")));
        let inside = network.confined_with(&setup, words);
        let lines = lines(&inside);
        assert!(
            lines[0].contains("200 Connection established"),
            "{inside:?}"
        );
        assert!(
            lines[1].contains("403") && lines[1].contains("denied when asked"),
            "{inside:?}"
        );
        assert_eq!(lines[2..], ["ok", "ECONNRESET"], "{inside:?}");
        assert_eq!(inside.names(), ["asked.test"]);
        assert_eq!(inside.came("93.184.216.34:7"), 2);
        let questions = inside.done.stderr.matches("asked about").count();
        assert_eq!(questions, 2, "once for each: {inside:?}");
    });
}

#[test]
fn the_callers_own_proxy_is_used_after_the_same_decision() {
    for_each_user(binaries!(), |world| {
        let specs = [
            OUTSIDE,
            "listen=93.184.216.34:3128=http",
            "name=proxy.corp=93.184.216.34",
            "name=denied.test=93.184.216.34",
        ];
        let network = Network::new(binaries!(), world, &specs);
        let setup = world.setup_with(&hosts(&["allowed.test:7"]));
        let run = |proxy: &str, target: &str| {
            let ask = format!(r"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
            let mut words: Vec<OsString> = vec!["env".into()];
            words.push(format!("https_proxy={proxy}").into());
            words.push(world.path("bin/confine").into_os_string());
            words.push(setup.to_argument());
            words.push(world.path("bin/probe").into_os_string());
            words.extend(op!["talk", PROXY, ask]);
            network.run(words)
        };
        let allowed = run("http://me:secret@proxy.corp:3128", "allowed.test:7");
        assert!(
            lines(&allowed)[0].contains("200 Connection established"),
            "{allowed:?}"
        );
        let said = allowed.said("93.184.216.34:3128");
        assert!(
            said.starts_with(r"CONNECT allowed.test:7 HTTP/1.1\r\n"),
            "{said}"
        );
        assert!(
            said.contains("Proxy-Authorization: Basic bWU6c2VjcmV0"),
            "{said}"
        );
        assert_eq!(allowed.asked("allowed.test"), 0, "the proxy looks it up");
        let denied = run("http://proxy.corp:3128", "denied.test:7");
        assert!(lines(&denied)[0].contains("403 Forbidden"), "{denied:?}");
        assert_eq!(denied.came("93.184.216.34:3128"), 0);
        let other = run("socks5://proxy.corp:3128", "allowed.test:7");
        other.done.assert_status(125);
        assert!(
            other
                .done
                .stderr
                .contains("the proxy in https_proxy cannot be used"),
            "{other:?}"
        );
    });
}
