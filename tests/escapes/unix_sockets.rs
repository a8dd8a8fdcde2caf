//! 103, 104, 105, 111: services of the host that listen at a path or at a name, and pipes.

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use ringfence_core::plan::Step;
use ringfence_testkit::{Listeners, binaries, case, denied, for_each_user, landlock_abi, op};

#[test]
fn no_socket_of_the_host_is_reached_by_any_call() {
    for_each_user(binaries!(), |world| {
        // In plain sight, below a tree that may be read: read-only does not keep anybody out.
        let listeners = Listeners::start(&world.outside(""));
        let stream = world.outside("stream.sock");
        let dgram = world.outside("dgram.sock");
        let refused = [
            denied(op!["unix", &stream], "EACCES"),
            denied(op!["unix-datagram", &dgram], "EACCES"),
            denied(op!["unix-pair", &dgram], "EACCES"),
            // It exists, but not in this network namespace.
            denied(op!["abstract", &listeners.abstract_name], "ECONNREFUSED"),
        ];
        let free = world.probe(refused.iter().enumerate().flat_map(|(index, each)| {
            let comma = (index > 0).then(|| ",".into());
            comma.into_iter().chain(each.operation.clone())
        }));
        assert_eq!(free.lines, ["ok"; 4], "{}", free.stderr);
        assert_eq!(listeners.arrived.at_least(4), 4);
        let before = world.snapshot();
        world.check_confined(&world.setup(), &refused);
        assert_eq!(listeners.arrived.settled(), 4, "somebody came through");
        before.assert_same(world.guarded());
        // Stream pairs work, and cannot be pointed at anybody.
        let pair = case(op!["unix-stream-pair", &stream], "EISCONN", "EISCONN");
        world.check_confined(&world.setup(), &[pair]);
        // The filter is what keeps paths closed, or a newer kernel's Landlock; names are closed by the
        // network namespace too.
        let holds = if landlock_abi() < 9 {
            Step::Seccomp
        } else {
            Step::Landlock
        };
        let open = world.setup().without(holds);
        let paths: Vec<_> = refused[..3]
            .iter()
            .map(|each| case(&each.operation, "", "ok"))
            .collect();
        world.check_confined(&open, &paths);
        assert_eq!(listeners.arrived.at_least(7), 7, "the control");
        let name = case(&refused[3].operation, "", "ECONNREFUSED");
        world.check_confined(&open, &[name]);
    });
}

/// Processes inside may use sockets among themselves: at a path of their own, and by name.
#[test]
fn sockets_among_the_sessions_own_processes_work() {
    const SCRIPT: &str = r#"
import os, socket, sys, threading
def echo(address, kind=socket.SOCK_STREAM):
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(address)
    server.listen(1)
    def serve():
        peer, _ = server.accept()
        peer.sendall(peer.recv(9))
    threading.Thread(target=serve, daemon=True).start()
    client = socket.socket(socket.AF_UNIX, kind)
    client.connect(address)
    client.sendall(b"hello")
    return client.recv(9).decode()
print(echo("/tmp/own.sock"), echo("/tmp/own.seq", socket.SOCK_SEQPACKET), echo(b"\0own"))
os.chdir("/tmp")
print(echo("relative.sock"))
os.symlink(sys.argv[1], "/tmp/link")
for path in (sys.argv[1], os.path.relpath(sys.argv[1]), "/tmp/link", "/proc/self/root" + sys.argv[1]):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print("reached", path)
    except OSError as error:
        print(error.errno)
"#;
    for_each_user(binaries!(), |world| {
        let listeners = Listeners::start(&world.outside(""));
        let host = world.outside("stream.sock");
        let host = host.to_str().unwrap();
        let done = world.run(&world.setup(), ["python3", "-c", SCRIPT, host]);
        // The last leads through a `self` that is the supervisor's own, and so nowhere.
        let expected = "hello hello hello\nhello\n13\n13\n13\n2";
        assert_eq!(done.text(), expected, "{}", done.stderr);
        assert_eq!(listeners.arrived.settled(), 0, "somebody came through");
    });
}

/// Where the usual services listen there is nothing to connect to, whatever the filter says.
#[test]
fn directories_of_services_are_empty() {
    for_each_user(binaries!(), |world| {
        for directory in ["/run", "/tmp"] {
            let listed = world.inside(&world.setup(), ["list", directory]);
            assert_eq!(listed.line(), "ok:", "{directory}");
        }
        let paths = [
            "/run/docker.sock",
            "/var/run/docker.sock",
            "/run/podman/podman.sock",
            "/run/containerd/containerd.sock",
            "/run/dbus/system_bus_socket",
            "/run/systemd/private",
            "/run/user/1000/bus",
            "/tmp/.X11-unix/X0",
            "/dev/log",
            "/run/systemd/notify",
            "/run/systemd/journal/socket",
            "/tmp/ssh-x/agent.1",
            "/var/run/nscd/socket",
            "/run/postgresql/.s.PGSQL.5432",
        ];
        let open = world.setup().without(Step::Seccomp);
        let cases: Vec<_> = paths
            .iter()
            .map(|path| case(op!["unix", path], "", "ENOENT"))
            .collect();
        world.check_confined(&open, &cases);
    });
}

#[test]
fn a_pipe_of_the_hosts_gets_no_bytes() {
    for_each_user(binaries!(), |world| {
        let pipe = world.outside("pipe");
        let made = || {
            let made = std::process::Command::new("mkfifo")
                .args(["-m", "0666"])
                .arg(&pipe)
                .status();
            assert!(made.unwrap().success());
        };
        made();
        // Both ends, so that writing never has to wait.
        let mut reader = fs::File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&pipe)
            .unwrap();
        let mut arrived = || {
            let mut buffer = [0; 64];
            reader.read(&mut buffer).unwrap_or(0)
        };
        assert_eq!(world.probe(op!["write", &pipe]).line(), "ok");
        assert_eq!(arrived(), "written".len(), "the control");
        let refused = [denied(op!["write", &pipe], "EACCES")];
        world.check_confined(&world.setup(), &refused);
        assert_eq!(arrived(), 0);
        // Landlock is what holds: a read-only mount lets pipes be written to.
        let open = world.inside(&world.setup().without(Step::Landlock), op!["write", &pipe]);
        assert_eq!(open.line(), "ok");
        assert_eq!(arrived(), "written".len());
    });
}
