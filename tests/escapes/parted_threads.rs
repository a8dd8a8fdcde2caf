//! 32, 33, 43: a thread that has parted with its process (`unshare`), so that it stands in another
//! directory and has other descriptors than the process's first thread: which of the two a name in
//! `/proc` stands for depends on how it is spelled.

use std::fs;
use std::path::Path;

use ringfence_core::plan::Step;
use ringfence_testkit::{Done, Setup, World, binaries, for_each_user, not_run};

use super::git_metadata::{host, level};
use super::protected_names::PYTHON;

/// Stands at two places at once, and makes something by every spelling of either. Says of each which of the
/// two places it stands for, and where that something came to be, or why not.
const PARTED: &str = r#"
import ctypes, os, shutil, signal, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
project, (guarded, name, kind) = os.getcwd(), sys.argv[1:]
for directory in [guarded, "plain", "links"]: os.makedirs(directory, exist_ok=True)
places = {"guarded": f"{project}/{guarded}", "plain": f"{project}/plain"}
NUMBER, LINK = 100, 101
def take(path, flags):
    opened = os.open(path, flags); os.dup2(opened, LINK); os.close(opened)
def stand(place):
    os.chdir(places[place])
    opened = os.open(places[place], os.O_RDONLY); os.dup2(opened, NUMBER); os.close(opened)
def make(path, **where):
    if kind == "symlink": os.symlink("/nowhere", path, **where)
    elif kind == "mkdir": os.mkdir(path, **where)
    else: os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644, **where))
def hard(path):
    if libc.linkat(-100, b"/proc/self/fd/%d" % LINK, -100, path.encode(), 0x400): raise OSError(ctypes.get_errno(), "linkat")
def attempt(expected, way, path, act=make, **where):
    try:
        act(path, **where)
        result = "nowhere"
        for place, directory in places.items():
            at = f"{directory}/{name}"
            if os.path.lexists(at):
                os.rmdir(at) if kind == "mkdir" else os.unlink(at)
                result = place
    except OSError as error: result = error.errno
    print(expected, way, result, flush=True)
def link(to):
    at = f"{project}/links/link"
    if os.path.lexists(at): os.unlink(at)
    os.symlink(to, at)
    return at
def both(first, own):
    process, thread = os.readlink("/proc/self"), os.path.basename(os.readlink("/proc/thread-self"))
    means = {first: ["/proc/self/cwd", f"/proc/self/fd/{NUMBER}", f"/dev/fd/{NUMBER}"],
             own: ["/proc/thread-self/cwd", f"/proc/thread-self/fd/{NUMBER}"]}
    # By these nobody is let near a guarded place, and so near no other.
    odd = {first: ["/proc/self/root/proc/self", f"/proc/{process}", f"/proc/self/task/{process}", f"/proc/thread-self/../{process}"],
           own: [f"/proc/{thread}", f"/proc/self/task/{thread}", "/proc/1/../thread-self"]}
    attempt(own, "directory", name); attempt(own, "descriptor", name, dir_fd=NUMBER)
    for place, ways in means.items():
        for way in ways:
            attempt(place, way, f"{way}/{name}")
            if kind == "create": attempt(place, f"{way}:last", link(f"{way}/{name}"))
    for way in means["guarded"] + [f"{way}/{entry}" for way in odd["guarded"] for entry in ["cwd", f"fd/{NUMBER}"]]:
        attempt("guarded", f"{way}:again", f"{way}/{name}")
        attempt("guarded", f"{way}:linked", link(way) + f"/{name}")
os.symlink("/nowhere", "links/kept")
for first, own in [("guarded", "plain"), ("plain", "guarded")]:
    def part():
        if libc.unshare(0x600): raise OSError(ctypes.get_errno(), "unshare")
        stand(own); both(first, own)
        if kind != "symlink": return
        # What is a file for this thread is a link for the process.
        take(sys.argv[0], os.O_RDONLY); attempt("guarded", "link", f"{places['guarded']}/{name}", hard)
    stand(first); take("../links/kept", os.O_PATH | os.O_NOFOLLOW)
    thread = threading.Thread(target=part); thread.start(); thread.join()
# Somebody else, who stands there.
stand("guarded"); other = os.fork()
if other == 0: signal.pause()
stand("plain")
try: attempt("guarded", "another process", f"/proc/{other}/cwd/{name}")
finally: os.kill(other, 9); os.waitpid(other, 0)
os.chdir(project); shutil.rmtree("links"); os.rmdir("plain")
"#;

/// How many spellings there are, at least.
const SPELLINGS: usize = 40;

/// Where each spelling led: the place that it stands for, itself, the answer.
fn told(done: &Done) -> Vec<[&str; 3]> {
    let spellings: Vec<_> = done
        .lines
        .iter()
        .map(|line| {
            let (place, rest) = line.split_once(' ').unwrap();
            let (way, answer) = rest.rsplit_once(' ').unwrap();
            [place, way, answer]
        })
        .collect();
    assert!(spellings.len() >= SPELLINGS, "{spellings:?}");
    spellings
}

/// Every spelling leads where it says, on the host; inside, nothing is made where it is guarded.
#[track_caller]
fn check(world: &World, setups: &[Setup], directory: &str, name: &str, kind: &str) {
    let file = world.outside("parted.py");
    fs::write(&file, PARTED).unwrap();
    world.own();
    let words = format!("{} {directory} {name} {kind}", file.display());
    let free = host(world, &world.project(""), &format!("{PYTHON} {words}"));
    for [place, way, answer] in told(&free) {
        assert_eq!(answer, place, "{kind} by {way}: the control");
    }
    for setup in setups {
        let words = [PYTHON.as_ref(), file.as_os_str()];
        let rest = [directory, name, kind].map(AsRef::as_ref);
        let done = world.run(setup, [&words[..], &rest[..]].concat());
        done.assert_status(0);
        for [place, way, answer] in told(&done) {
            let expected = if place == "guarded" { "30" } else { place };
            assert_eq!(answer, expected, "{kind} by {way}: {}", done.stderr);
        }
        let left = world.project(directory).join(name);
        assert!(fs::symlink_metadata(left).is_err(), "{kind}");
    }
}

/// Nobody undoes those: git would write through them.
#[test]
fn no_thread_puts_a_link_into_a_git_directory() {
    for_each_user(binaries!(), |world| {
        if !Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, for threads that part with their process");
        }
        host(world, &world.project(""), "git init -q .");
        let setup = level(world, "write");
        let setups = [setup.clone(), setup.without(Step::Root)];
        check(world, &setups, ".git", "COMMIT_EDITMSG", "symlink");
    });
}

#[test]
fn no_thread_makes_a_protected_name() {
    for_each_user(binaries!(), |world| {
        if !Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, for threads that part with their process");
        }
        for kind in ["create", "mkdir", "symlink"] {
            check(world, &[world.setup()], ".cargo", "config.toml", kind);
        }
    });
}
