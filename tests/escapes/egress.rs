//! 79, 81, 82: the network, in both directions.

use std::net::{Shutdown, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use ringfence_testkit::{Listeners, binaries, case, denied, for_each_user, op};

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
        assert_eq!(listeners.arrived.settled(), 3);
        for helper in [true, false] {
            world.check_confined(&world.setup().helped(helper), &cases);
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
        for helper in [true, false] {
            world.check_confined(&world.setup().helped(helper), &cases);
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
        // A port that nobody has on the host.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        drop(port);
        let listen = format!("0.0.0.0:{}", address.port());
        let connects = |mut child: std::process::Child| {
            let mut came = false;
            for _ in 0..50 {
                std::thread::sleep(Duration::from_millis(10));
                if let Ok(stream) = TcpStream::connect(address) {
                    let _ = stream.shutdown(Shutdown::Both);
                    came = true;
                    break;
                }
            }
            child.kill().unwrap();
            child.wait().unwrap();
            came
        };
        let probe = world.path("bin/probe");
        let arguments = op!["serve-for", &listen, "3000"];
        let free = world
            .command(&probe)
            .args(&arguments)
            .stdout(Stdio::null())
            .spawn();
        assert!(connects(free.unwrap()), "the control");
        let setup = world.setup();
        let inside = world
            .confine(&setup, [&probe])
            .args(&arguments)
            .stdout(Stdio::null())
            .spawn();
        assert!(!connects(inside.unwrap()), "it was reached from outside");
    });
}
