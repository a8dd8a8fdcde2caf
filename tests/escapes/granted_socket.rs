//! 103, 78: a socket of the host that was granted is reached, and carries nobody to another one.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use ringfence_core::plan::Step;
use ringfence_testkit::{
    Listeners, Setup, World, binaries, case, denied, for_each_user, op, say, wait_until,
};

/// Two listeners of the host: `granted/stream.sock`, and `stream.sock` beside that directory.
fn two_listeners(world: &World) -> (Listeners, Listeners, Setup) {
    let granted = world.outside("granted");
    fs::create_dir(&granted).unwrap();
    let listeners = Listeners::start(&granted);
    let others = Listeners::start(&world.outside(""));
    let path = granted.join("stream.sock");
    let keys = format!(r#""unix_sockets": [{:?}]"#, path.to_str().unwrap());
    world.own();
    (listeners, others, world.setup_with(&keys))
}

#[test]
fn the_granted_socket_is_reached_and_no_other() {
    for_each_user(binaries!(), |world| {
        let (listeners, others, setup) = two_listeners(world);
        let socket = world.outside("granted/stream.sock");
        let cases = [
            case(op!["unix", &socket], "ok", "ok"),
            denied(op!["unix", world.outside("stream.sock")], "EACCES"),
            denied(
                op!["unix-datagram", world.outside("granted/dgram.sock")],
                "EACCES",
            ),
            denied(op!["abstract", &listeners.abstract_name], "ECONNREFUSED"),
            // It is there to be connected to, not to be changed.
            denied(op!["chmod", &socket, "511"], "EROFS"),
            denied(op!["unlink", &socket], "EROFS"),
        ];
        world.check_confined(&setup, &cases);
        assert_eq!(listeners.arrived.at_least(1), 1);
        assert_eq!(others.arrived.settled(), 0, "somebody came through");
        assert!(socket.try_exists().unwrap());
        // Without the grant nobody comes.
        world.check_confined(&world.setup(), &[denied(op!["unix", &socket], "EACCES")]);
        assert_eq!(listeners.arrived.settled(), 1);
    });
}

/// What the host puts in its place is another socket, which nobody granted.
#[test]
fn what_takes_the_place_of_a_granted_socket_is_not_reached() {
    const SCRIPT: &str = "
import os, socket, sys, time
path, new = sys.argv[1:]
def connect():
    try: socket.socket(socket.AF_UNIX).connect(path); return 'reached'
    except OSError as error: return error.strerror
print(connect(), flush=True)
open('ready', 'w').close()
while not os.path.exists('replaced'): time.sleep(0.01)
print(connect())
";
    for_each_user(binaries!(), |world| {
        let (listeners, others, setup) = two_listeners(world);
        let [socket, other] = ["granted/stream.sock", "stream.sock"].map(|at| world.outside(at));
        let done = std::thread::scope(|scope| {
            scope.spawn(|| {
                let ready = || world.project("ready").try_exists().unwrap();
                wait_until("the session has connected", ready);
                fs::rename(&other, &socket).unwrap();
                fs::write(world.project("replaced"), "").unwrap();
            });
            let words = ["python3".as_ref(), "-c".as_ref(), SCRIPT.as_ref()];
            let words = words
                .into_iter()
                .chain([socket.as_os_str(), other.as_os_str()]);
            world.run(&setup, words)
        });
        // A mount goes with the name it is on, so that the new socket is seen: and is not the one that was granted.
        let told = done.text();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "reached", "{}", done.stderr);
        assert_ne!(lines[1], "reached");
        assert_eq!(listeners.arrived.settled(), 1);
        assert_eq!(others.arrived.settled(), 0, "the new one was reached");
    });
}

/// A link of the session's own is exchanged between the granted socket and another while it connects.
#[test]
fn a_link_exchanged_while_connecting_leads_to_no_other() {
    const TRIES: usize = 10_000;
    const RACE: &str = r"
import os, socket, sys, threading
granted, other, tries = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.symlink(granted, '/tmp/a'); os.symlink(other, '/tmp/b'); os.symlink(granted, '/tmp/link')
stop = False
def exchange():
    while not stop:
        for name in 'ab':
            try: os.link('/tmp/' + name, '/tmp/new', follow_symlinks=False); os.rename('/tmp/new', '/tmp/link')
            except OSError: pass
threading.Thread(target=exchange, daemon=True).start()
made = refused = 0
for _ in range(tries):
    with socket.socket(socket.AF_UNIX) as one:
        try: one.connect('/tmp/link'); made += 1
        except OSError: refused += 1
stop = True
print(made, refused)
";
    for_each_user(binaries!(), |world| {
        let (_listeners, others, setup) = two_listeners(world);
        let [socket, other] = ["granted/stream.sock", "stream.sock"].map(|at| world.outside(at));
        let race = |setup: &Setup, tries: usize| {
            let tries = tries.to_string();
            let words = ["python3", "-c", RACE].map(AsRef::<std::ffi::OsStr>::as_ref);
            let paths = [socket.as_os_str(), other.as_os_str(), tries.as_ref()];
            let done = world.run(setup, words.into_iter().chain(paths));
            done.assert_status(0);
            done.text()
        };
        let ended = race(&setup, TRIES);
        assert_eq!(
            others.arrived.settled(),
            0,
            "somebody came through: {ended}"
        );
        let counts: Vec<usize> = ended
            .split(' ')
            .map(|count| count.parse().unwrap())
            .collect();
        assert_eq!(counts.iter().sum::<usize>(), TRIES);
        assert!(
            counts.iter().all(|count| *count > 0),
            "nothing was raced: {ended}"
        );
        say(&format!(
            "{TRIES} connections raced, {} made, none leaked",
            counts[0]
        ));
        // The control: without the filter, and so without the supervisor, the same calls arrive.
        let open = setup.without(Step::Seccomp);
        wait_until("the race is lost", || {
            race(&open, 200);
            others.arrived.settled() > 0
        });
    });
}

/// Started as root, the supervisor may do what its session may not: only what was granted is connected to with that.
#[test]
fn a_socket_that_is_not_there_any_more_stops_the_start() {
    for_each_user(binaries!(), |world| {
        let (_listeners, _others, setup) = two_listeners(world);
        fs::remove_file(world.outside("granted/stream.sock")).unwrap();
        let refused = |said: &str| {
            let done = world.run(&setup, ["true"]);
            done.assert_status(125);
            assert!(done.stderr.contains(said), "{}", done.stderr);
        };
        refused("does not exist");
        fs::write(world.outside("granted/stream.sock"), "").unwrap();
        world.own();
        refused("is not a socket");
        // Whoever listens there now is as good as who did before.
        fs::remove_file(world.outside("granted/stream.sock")).unwrap();
        let _again = listen(&world.outside("granted/stream.sock"));
        world.own();
        world.run(&setup, ["true"]).assert_status(0);
    });
}

fn listen(path: &Path) -> UnixListener {
    UnixListener::bind(path).unwrap()
}
