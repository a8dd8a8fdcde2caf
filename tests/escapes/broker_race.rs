//! 78: the address of a `connect` is exchanged while the supervisor looks at it.
//!
//! Where the supervisor connects in the command's place, it decides on a copy and connects by that
//! copy. If it looked twice, or let the call go on by itself, some of these would get through.
//!
//! Whether a `connect` waits lies with the socket, and is exchanged as well: for a supervisor that
//! waited itself there would be no time limit and no signal.

use std::time::{Duration, Instant};

use ringfence_core::plan::Step;
use ringfence_testkit::{
    Done, Listeners, binaries, for_each_user, keeps_within, not_run, say, wait_until,
};

const PYTHON: &str = "/usr/bin/python3";

/// Two threads: one connects, the other exchanges the address in its memory between a socket of the
/// session's own and one of the host's, and the descriptor between two sockets.
const RACE: &str = r#"
import ctypes, os, socket, struct, sys, threading, time
outside = sys.argv[1].encode()
seconds = float(sys.argv[2])
inner = b"/tmp/inner.sock"
libc = ctypes.CDLL(None, use_errno=True)
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(inner.decode()); server.listen(4096)
address = lambda path: struct.pack("H", socket.AF_UNIX) + path + b"\0" * (108 - len(path))
good, bad = address(inner), address(outside)
buffer = ctypes.create_string_buffer(good, len(good))
stop = False
def exchange():
    while not stop:
        ctypes.memmove(buffer, bad, len(bad))
        ctypes.memmove(buffer, good, len(good))
threading.Thread(target=exchange, daemon=True).start()
def accept():
    while True:
        server.accept()[0].close()
threading.Thread(target=accept, daemon=True).start()
sys.setswitchinterval(1e-5)
end = time.monotonic() + seconds
tries = made = refused = 0
while time.monotonic() < end:
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if libc.connect(one.fileno(), buffer, len(good)) == 0: made += 1
    else: refused += 1
    tries += 1
    one.close()
stop = True
print(tries, made, refused)
"#;

#[test]
fn what_is_decided_is_what_is_connected() {
    for_each_user(binaries!(), |world| {
        if !std::path::Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, for two threads that share memory");
        }
        let listeners = Listeners::start(&world.outside(""));
        let socket = world.outside("stream.sock");
        let script = world.project("race.py");
        std::fs::write(&script, RACE).unwrap();
        world.own();
        let run = |setup: &ringfence_testkit::Setup, seconds: &str| -> Done {
            world.run(
                setup,
                [
                    PYTHON.as_ref(),
                    script.as_os_str(),
                    socket.as_os_str(),
                    seconds.as_ref(),
                ],
            )
        };
        let done = run(&world.setup(), "5");
        done.assert_status(0);
        let numbers: Vec<u32> = done
            .text()
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        assert_eq!(listeners.arrived.settled(), 0, "somebody came through");
        say(&format!("{} connections raced, none leaked", numbers[0]));
        assert!(numbers.iter().all(|number| *number > 0), "{numbers:?}");
        // The control: without the filter some of the same calls do arrive, sooner or later.
        let open = world.setup().without(Step::Seccomp);
        wait_until("the race is lost", || {
            run(&open, "1").assert_status(0);
            listeners.arrived.settled() > 0
        });
    });
}

/// Relative names, links and other spellings lead to the same answer.
#[test]
fn no_spelling_of_a_path_is_another_socket() {
    for_each_user(binaries!(), |world| {
        let listeners = Listeners::start(&world.outside(""));
        let link = world.project("link.sock");
        std::os::unix::fs::symlink(world.outside("stream.sock"), &link).unwrap();
        std::os::unix::fs::symlink(world.outside(""), world.project("dir")).unwrap();
        world.own();
        let paths = [
            "link.sock",
            "../outside/stream.sock",
            "dir/stream.sock",
            "/proc/self/cwd/link.sock",
            "/proc/self/root/proc/self/cwd/../outside/stream.sock",
        ];
        let free: Vec<_> = paths
            .iter()
            .map(|path| world.probe(["unix", path]))
            .collect();
        assert!(free.iter().all(|done| done.line() == "ok"));
        let came = listeners.arrived.at_least(paths.len());
        assert_eq!(came, paths.len());
        for path in paths {
            let done = world.inside(&world.setup(), ["unix", path]);
            // The last two go through links that only the kernel understands.
            assert!(
                ["EACCES", "ELOOP", "ENOENT"].contains(&done.line()),
                "{path}: {}",
                done.line()
            );
        }
        assert_eq!(listeners.arrived.settled(), came);
    });
}

/// Connects to what has no room for more, while it exchanges what says whether that waits.
const WAITING: &str = include_str!("waiting.py");

#[test]
fn nobody_makes_the_supervisor_wait() {
    for_each_user(binaries!(), |world| {
        if !std::path::Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, for two threads that share a socket");
        }
        let script = world.project("waiting.py");
        std::fs::write(&script, WAITING).unwrap();
        world.own();
        let setup = world.setup_with(r#""limits": {"wall": 4}"#);
        for kind in ["unix", "inet"] {
            let words = [PYTHON.as_ref(), script.as_os_str(), kind.as_ref()];
            keeps_within(Duration::from_secs(8), kind, || {
                let start = Instant::now();
                let done = world.run(&setup, words);
                assert_eq!(
                    (done.status, done.lines),
                    (124, vec!["racing".to_owned()]),
                    "{kind}"
                );
                start.elapsed()
            });
        }
    });
}
