//! 79, 81, 82: the network, in both directions.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use ringfence_testkit::{Hands, Listeners, binaries, case, denied, for_each_user, op};

#[test]
fn nothing_on_the_hosts_loopback_is_reached() {
    for_each_user(binaries!(), |world| {
        let listeners = Listeners::start(&world.project(""));
        let cases = [
            denied(op!["tcp", &listeners.tcp[0]], "ECONNREFUSED"),
            denied(op!["tcp", &listeners.tcp[1]], "ECONNREFUSED"),
        ];
        world.control(&cases);
        world.control(&[case(op!["udp", &listeners.udp], "ok", "")]);
        assert_eq!(listeners.arrived.at_least(3), 3);
        for hands in Hands::ALL {
            world.check_confined(&world.setup().by(hands), &cases);
        }
        // Sending to nobody works; nobody gets it.
        let sent = world.inside(&world.setup(), op!["udp", &listeners.udp]);
        assert!(["ok", "ECONNREFUSED"].contains(&sent.line()));
        let any = listeners.tcp[0].replace("127.0.0.1", "0.0.0.0");
        let cases = [case(op!["tcp", any], "", "ECONNREFUSED")];
        world.check_confined(&world.setup(), &cases);
        assert_eq!(listeners.arrived.settled(), 3, "somebody came through");
    });
}

#[test]
fn nothing_beyond_the_host_is_reached() {
    for_each_user(binaries!(), |world| {
        let cases = [
            case(op!["tcp", "192.0.2.1:80"], "", "ENETUNREACH"),
            case(op!["udp", "192.0.2.1:53"], "", "ENETUNREACH"),
            case(op!["udp", "8.8.8.8:53"], "", "ENETUNREACH"),
            case(op!["tcp", "[2001:db8::1]:443"], "", "ENETUNREACH"),
            case(op!["udp", "[2001:db8::1]:443"], "", "ENETUNREACH"),
            case(op!["tcp", "169.254.169.254:80"], "", "ENETUNREACH"),
        ];
        for hands in Hands::ALL {
            world.check_confined(&world.setup().by(hands), &cases);
        }
        let shell = "exec 3<>/dev/tcp/192.0.2.1/80";
        let done = world.run(&world.setup(), ["bash", "-c", shell]);
        assert_ne!(done.status, 0);
        assert!(done.stderr.contains("unreachable"), "{}", done.stderr);
        let links = world.run(&world.setup(), ["cat", "/proc/net/dev"]);
        let links: Vec<_> = links.lines.iter().skip(2).collect();
        assert_eq!(links.len(), 1, "only a loopback: {links:?}");
    });
}

#[test]
fn what_listens_inside_is_reached_from_inside_alone() {
    for_each_user(binaries!(), |world| {
        let works = case(op!["serve-itself"], "ok", "ok");
        world.check(&world.setup(), &[works]);
        let port = free_port();
        // Says so as soon as its own server can be reached.
        let script = format!(
            "'{}' serve-for 0.0.0.0:{port} 90000 >/dev/null & server=$!
             until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.05; done
             echo up; read x; kill $server",
            world.path("bin/probe").display()
        );
        let connects = |command: &mut Command| {
            let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut line = String::new();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            output.read_line(&mut line).unwrap();
            assert_eq!(line, "up\n");
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
            drop(child.stdin.take());
            child.wait().unwrap();
            stream.is_ok()
        };
        let mut free = world.command("bash");
        assert!(connects(free.args(["-c", &script])), "the control");
        let mut inside = world.confine(&world.setup(), ["bash", "-c", &script]);
        assert!(!connects(&mut inside), "it was reached from outside");
    });
}

/// A port that nobody has on the host, and that nobody is given who does not ask for it by number.
fn free_port() -> u16 {
    let start = 12_000 + u16::try_from(std::process::id() % 4000).unwrap();
    let mut ports = (start..start + 4000).step_by(2);
    let free = |port: &u16| TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], *port))).is_ok();
    ports.find(free).unwrap()
}
