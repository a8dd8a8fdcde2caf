//! 34: what the host makes or replaces is opened in the moment before it is mounted over, and kept.
//!
//! A mount closes a path, and nobody who is past it already. So whoever holds such a thing is looked
//! for, however it is held, and the session ends before it can be used.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use ringfence_core::plan::Step;
use ringfence_testkit::{Setup, World, binaries, for_each_user, not_run, say, wait_until};

use super::git_metadata::host;

const PYTHON: &str = "/usr/bin/python3";

/// Opens `.vscode` as soon as it is there, holds it in some way, and writes through that when it is told to.
const HOLDS: &str = r#"
import array, ctypes, mmap, os, socket, sys, threading, time
way, libc = sys.argv[1], ctypes.CDLL(None, use_errno=True)
CLONE_FILES, CLONE_FS, PR_SET_DUMPABLE, READ_ONLY = 0x400, 0x200, 4, 1
def wait(path):
    while not os.path.lexists(path): time.sleep(0.005)
def write(fd):
    f = os.open("tasks.json", os.O_WRONLY | os.O_APPEND, dir_fd=fd); os.write(f, b"evil\n"); os.close(f)
    os.close(os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
go = os.path.abspath("go")
def told(act):
    print("won", flush=True); wait(go); act(); print("wrote", flush=True)
def send(to, fd): to.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
def take(at): return array.array("i", at.recvmsg(1, socket.CMSG_SPACE(4))[1][0][2])[0]
if way == "crowd":
    null = os.open("/dev/null", os.O_RDONLY)
    for _ in range(900): os.dup(null)
    for _ in range(100): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("ready", flush=True)
while True:
    try: fd = os.open(".vscode", os.O_RDONLY | os.O_DIRECTORY)
    except OSError: continue
    break
if os.fstatvfs(fd).f_flag & READ_ONLY: print("late", flush=True); sys.exit()
if way in ("file", "mapping", "link"):
    while True:
        try: f = os.open("tasks.json", os.O_RDWR, dir_fd=fd)
        except OSError: continue
        break
    if way == "link": os.link("tasks.json", "kept", src_dir_fd=fd)
    os.close(fd)
if way in ("descriptor", "crowd"): told(lambda: write(fd))
elif way == "unreadable": libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); told(lambda: write(fd))
elif way == "directory": os.fchdir(fd); os.close(fd); told(lambda: write(os.open(".", os.O_RDONLY)))
elif way == "file": told(lambda: os.write(f, b"evil\n"))
elif way == "mapping":
    while os.fstat(f).st_size == 0: pass
    m = mmap.mmap(f, 1); os.close(f); told(lambda: m.write_byte(33))
elif way == "link": os.close(f); told(lambda: open("kept", "a").write("evil\n"))
elif way == "sent":
    a, b = socket.socketpair(); send(a, fd); os.close(fd); told(lambda: write(take(b)))
elif way == "thread":
    mine = threading.Event()
    def hold():
        libc.unshare(CLONE_FILES | CLONE_FS); mine.set(); told(lambda: write(fd))
    holder = threading.Thread(target=hold); holder.start(); mine.wait(); os.close(fd); holder.join()
elif way == "handed":
    a, b = socket.socketpair()
    def hand_on(here):
        fd = take(here); send(here, fd); os.close(fd)
    if os.fork() == 0:
        a.close(); os.close(fd)
        while True: hand_on(b)
    b.close(); send(a, fd); os.close(fd); print("won", flush=True)
    while not os.path.exists(go): hand_on(a)
    write(take(a)); print("wrote", flush=True)
"#;

const WAYS: [&str; 10] = [
    "descriptor",
    "unreadable",
    "directory",
    "file",
    "mapping",
    "link",
    "sent",
    "thread",
    "handed",
    // So much else that no look sees all of it in time.
    "crowd",
];

/// What became of one session in which the host made `.vscode`.
#[derive(Debug, Eq, PartialEq)]
enum Became {
    /// It opened the one that was mounted already.
    Late,
    /// It was ended.
    Ended,
    /// It held what it had, and wrote.
    Wrote,
}

/// A session that says when it is ready.
fn start(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(line(&mut said), "ready\n");
    (child, said)
}

fn line(said: &mut impl BufRead) -> String {
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    line
}

fn host_makes_it(world: &World) {
    let make = "mkdir .vscode; echo '{}' > .vscode/tasks.json";
    host(world, &world.project(""), make);
}

fn race(world: &World, setup: &Setup, way: &str) -> Became {
    host(world, &world.project(""), "rm -rf .vscode kept go");
    let script = world.outside("holds.py");
    let words = [PYTHON.as_ref(), script.as_os_str(), way.as_ref()];
    let (mut child, mut said) = start(&mut world.confine(setup, words));
    host_makes_it(world);
    let first = line(&mut said);
    let watched = setup.without_step() != Some(Step::Names);
    if watched {
        // Nothing is asked of it before somebody had the time to look.
        wait_until("it has ended", || child.try_wait().unwrap().is_some());
    }
    host(world, &world.project(""), "touch go");
    let last = line(&mut said);
    let mut errors = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut errors).unwrap();
    let status = child.wait().unwrap();
    let text = fs::read_to_string(world.project(".vscode/tasks.json")).unwrap();
    let made = world.project(".vscode/new").try_exists().unwrap();
    if last == "wrote\n" {
        assert!(made || text != "{}\n", "{way}: nothing was written");
        return Became::Wrote;
    }
    assert!(!made, "{way}: {first}{errors}");
    assert_eq!(text, "{}\n", "{way}: {first}{errors}");
    if first == "late\n" {
        return Became::Late;
    }
    // The first look is a part of the start.
    let in_time = status.code() == Some(125) && errors.contains("watch the protected names");
    let said = errors.contains("not held") && errors.contains("NameNotHeld");
    let ended = status.code() == Some(137) && said;
    assert!(in_time || ended, "{way}: {status}: {first}{errors}");
    Became::Ended
}

#[test]
fn what_the_host_makes_is_not_kept_past_its_mount() {
    const ROUNDS: usize = 8;
    for_each_user(binaries!(), |world| {
        if !std::path::Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, for descriptors that are handed round");
        }
        fs::write(world.outside("holds.py"), HOLDS).unwrap();
        world.own();
        let mut ended = 0;
        for way in WAYS {
            // The control: where nobody watches, every way leads past what protects the name.
            let open = world.setup().without(Step::Names);
            assert_eq!(race(world, &open, way), Became::Wrote, "{way}: the control");
            let became: Vec<_> = (0..ROUNDS)
                .map(|_| race(world, &world.setup(), way))
                .collect();
            assert!(!became.contains(&Became::Wrote), "{way}: {became:?}");
            ended += became.iter().filter(|one| **one == Became::Ended).count();
        }
        let all = ROUNDS * WAYS.len();
        say(&format!(
            "of {all} sessions that raced, {ended} had it open and were ended, none wrote"
        ));
        assert!(ended > 0, "nobody was quick enough");
    });
}

/// Whoever comes and goes meanwhile holds nothing: a build goes on.
#[test]
fn a_session_that_holds_nothing_goes_on() {
    for_each_user(binaries!(), |world| {
        for command in [
            "(for k in $(seq 100); do /bin/true; done)",
            // Whoever starts a program so waits in the kernel until that has begun.
            "python3 -c 'import os\nfor _ in range(100): os.waitpid(os.posix_spawn(\"/bin/true\", [\"true\"], {}), 0)'",
        ] {
            goes_on(world, command);
        }
    });
}

fn goes_on(world: &World, command: &str) {
    let script = format!(
        "echo ready
        for i in 1 2 3 4; do {command} & done
        wait; grep -c '/project/.vscode ' /proc/self/mountinfo"
    );
    let (mut child, mut said) = start(&mut world.confine(&world.setup(), ["bash", "-c", &script]));
    // The look at everybody is in the middle of it.
    host_makes_it(world);
    let last = line(&mut said);
    let mut errors = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{errors}");
    assert_eq!(last, "1\n", "{errors}");
    fs::remove_dir_all(world.project(".vscode")).unwrap();
}
