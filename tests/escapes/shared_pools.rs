//! 130: using up what the kernel counts for each user, so that nothing is left for the user outside.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use ringfence_core::plan::Step;
use ringfence_testkit::{Done, Setup, World, binaries, for_each_user, not_run, say};

use super::protected_names::PYTHON;

/// Takes as much of everything as it gets, says how much that was, and holds it until its standard
/// input ends. Of what nobody bounds it takes a thousand.
const TAKE: &str = r"
import ctypes, errno, json, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def take(one):
    got = 0
    while got < 1000 and one(got):
        got += 1
    return got
def instance(number):
    return libc.inotify_init1(os.O_CLOEXEC) >= 0
def watch(number):
    global listener
    if number == 0:
        listener = os.dup(first)
    path = os.path.join(sys.argv[1], str(number))
    os.makedirs(path, exist_ok=True)
    return libc.inotify_add_watch(listener, path.encode(), 0x100) >= 0
class Value(ctypes.Structure):
    _fields_ = [('pointer', ctypes.c_void_p)]
def queued(number):
    return libc.sigqueue(os.getpid(), signal.SIGRTMIN, Value(None)) == 0
class Queue(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ('flags', 'most', 'size', 'current')] \
        + [('more', ctypes.c_long * 4)]
def queue(number):
    name = b'/ringfence-%d-%d' % (os.getpid(), number)
    queue = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, ctypes.byref(Queue(0, 1, 64)))
    # Landlock makes it, lets nobody have it, and leaves it there.
    return queue >= 0 and libc.mq_unlink(name) == 0 or ctypes.get_errno() == errno.EACCES
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
first = libc.inotify_init1(os.O_CLOEXEC)
got = {'instances': (first >= 0) + take(instance)}
got['watches'] = take(watch) if first >= 0 else 0
got['signals'] = take(queued)
got['queues'] = take(queue)
print(json.dumps(got), flush=True)
sys.stdin.read()
";

/// A user who is alone in a user namespace, where everything is scarce: starts what comes after the
/// first two words, and says what that took, what it could have meanwhile and what afterwards.
const HOST: &str = r"
import json, os, resource, subprocess, sys, time
resource.setrlimit(resource.RLIMIT_SIGPENDING, (40, 40))
resource.setrlimit(resource.RLIMIT_MSGQUEUE, (20000, 20000))
for name, most in ('instances', 20), ('watches', 60):
    with open('/proc/sys/user/max_inotify_' + name, 'w') as file:
        file.write(str(most))
def start(words):
    words = ['setpriv', '--inh-caps=-all', '--ambient-caps=-all', '--'] + words
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
    return process, json.loads(process.stdout.readline())
def end(process):
    process.stdin.close()
    process.wait()
def own():
    process, got = start([sys.executable, '-c', sys.argv[1], sys.argv[2]])
    end(process)
    return got
process, taken = start(sys.argv[3:])
left = own()
end(process)
# The kernel tidies up after an IPC namespace when it finds the time.
for _ in range(50):
    after = own()
    if all(after[name] >= taken[name] + left[name] for name in taken):
        break
    time.sleep(0.1)
print(json.dumps([taken, left, after]))
";

type Counts = BTreeMap<String, u64>;

/// What a command took, what was left meanwhile, and what there was afterwards.
fn taken(world: &World, command: &Command) -> [Counts; 3] {
    let mut host = world.command("unshare");
    host.args(["--map-current-user", "--keep-caps", "--ipc", PYTHON, "-c"])
        .args([HOST, TAKE])
        .arg(world.home(""))
        .arg(command.get_program())
        .args(command.get_args());
    let done = Done::of(&mut host);
    done.assert_status(0);
    serde_json::from_str(done.line()).unwrap()
}

/// How many the supervisor may need itself: it listens once, at the directories of what is protected or
/// hidden.
fn supervisors(name: &str) -> u64 {
    if name == "watches" { 16 } else { 1 }
}

#[test]
fn a_session_that_takes_all_it_can_leaves_the_user_as_much() {
    if !Path::new(PYTHON).try_exists().unwrap() {
        return not_run("python3, for calls that no shell makes");
    }
    for_each_user(binaries!(), |world| {
        let words = [PYTHON, "-c", TAKE];
        let confined = |setup: &Setup| {
            let mut command = world.confine(setup, words);
            command.arg(world.project(""));
            taken(world, &command)
        };
        // The control: any other program leaves nothing.
        let mut free = world.command(PYTHON);
        let [all, left, after] = taken(world, free.args(&words[1..]).arg(world.project("")));
        assert!(
            all.values().all(|count| (1..1000).contains(count)),
            "{all:?}"
        );
        assert!(left.values().all(|count| *count == 0), "{left:?}");
        assert_eq!(after, all);

        let [took, left, after] = confined(&world.setup());
        say(&format!(
            "of {all:?} a session took {took:?}, and left {left:?}"
        ));
        for (name, count) in &all {
            assert!((1..=count.div_ceil(2)).contains(&took[name]), "{took:?}");
            // After a second the supervisor listens as well.
            let kept = took[name] + left[name] + supervisors(name);
            assert!(
                (*count..=count + supervisors(name)).contains(&kept),
                "{name}: {left:?}"
            );
        }
        assert_eq!(after, all);

        // Where nobody is asked, everything is bounded from the start.
        let mut unasked = world.setup_with(r#""on_gap": "report""#);
        unasked.no_listener = true;
        let [took, left, _] = confined(&unasked);
        assert_eq!([took["instances"], took["watches"]], [10, 30], "{took:?}");
        for (name, half) in [("instances", 10), ("watches", 30)] {
            let least = half - supervisors(name);
            assert!((least..=half).contains(&left[name]), "{name}: {left:?}");
        }

        // Landlock alone can do so for what limits bound.
        let mut landlock = world.setup_with(r#""on_gap": "report""#);
        landlock.landlock_engine = true;
        let [_, left, _] = confined(&landlock);
        assert!(left["signals"] > 0, "{left:?}");
        // And it is the limits that do it.
        let [_, left, _] = confined(&world.setup().without(Step::Limits));
        assert_eq!([left["signals"], left["queues"]], [0, 0], "{left:?}");
        assert!(left["instances"] > 0, "{left:?}");
    });
}

/// Every machine has so many terminals, for all users together.
#[test]
fn a_session_has_so_many_terminals() {
    if !Path::new(PYTHON).try_exists().unwrap() {
        return not_run("python3, for calls that no shell makes");
    }
    for_each_user(binaries!(), |world| {
        let script = "import os
got = []
try:
    while len(got) < 300: got.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))
except OSError as error:
    print(error.strerror, end=' ')
print(len(got))";
        let words = [PYTHON, "-c", script];
        let free = Done::of(world.command(words[0]).args(&words[1..]));
        assert_eq!(free.line(), "300", "the control");
        let inside = world.run(&world.setup(), words);
        assert_eq!(inside.line(), "No space left on device 256");
    });
}
