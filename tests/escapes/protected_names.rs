//! 32, 33, 39, 41, 44: names in the project that some program outside obeys, while they are not
//! there: made, moved into place, built again under another directory.
//!
//! Existing ones are mounts and are tried with the rest of the file system; here nothing stands
//! where the rule is, so the refusal is the supervisor's, and what it cannot refuse is undone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use ringfence_core::plan::Step;
use ringfence_testkit::{
    Done, Hands, Setup, World, binaries, denied, for_each_user, not_run, op, say, wait_until,
};

use super::git_metadata::{host, inside};

pub(super) const PYTHON: &str = "/usr/bin/python3";

/// Everything that the project held before, to be compared: no stub may ever be left.
fn tree(world: &World) -> Vec<String> {
    let find = ["-c", "cd project && find . | sort"];
    let done = Done::of(world.command("sh").args(find).current_dir(world.path("")));
    done.assert_status(0);
    done.lines
}

#[test]
fn a_name_that_is_not_there_cannot_be_made() {
    for_each_user(binaries!(), |world| {
        fs::create_dir_all(world.project("ready/hooks")).unwrap();
        world.own();
        let names = [
            ".git",
            ".vscode",
            ".idea",
            ".zed",
            ".envrc",
            ".devcontainer",
            ".husky",
            ".mcp.json",
            ".pre-commit-config.yaml",
            ".claude",
            ".cursor",
            ".codex",
            ".gemini",
            ".npmrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            ".ringfence",
            ".github/workflows",
            // Those that stand beside another one, by another name.
            "lefthook-local.yml",
            ".config/lefthook.json",
            "mise.local.toml",
            ".mise",
            ".config/mise.toml",
            ".config/mise",
            "opencode.jsonc",
            ".pnpmfile.mjs",
            ".yarn/sdks",
            ".jj/repo/config.toml",
            ".sl/config",
            ".gitea/workflows",
            ".forgejo/workflows",
            ".helix",
            ".run",
            ".kilocode",
            ".trae",
            ".vimrc",
        ];
        for name in names {
            fs::create_dir_all(world.project(name).parent().unwrap()).unwrap();
            world.own();
            let path = world.project(name);
            let ready = world.project("ready");
            let file = world.project("README");
            // Each one is made and removed again where nothing holds it.
            let ways = [
                (op!["mkdir", &path], op!["rmdir", &path]),
                (op!["create", &path], op!["unlink", &path]),
                (op!["overwrite", &path], op!["unlink", &path]),
                (op!["symlink", "ready", &path], op!["unlink", &path]),
                (op!["fifo", &path], op!["unlink", &path]),
                (op!["link", &file, &path], op!["unlink", &path]),
                (op!["rename", &ready, &path], op!["rename", &path, &ready]),
                (op!["rename", &file, &path], op!["rename", &path, &file]),
            ];
            let mut cases = Vec::new();
            for (make, undo) in ways {
                cases.push(denied(make, "EROFS"));
                cases.push(denied(undo, "ENOENT"));
            }
            let before = tree(world);
            world.check(&world.setup(), &cases);
            assert_eq!(tree(world), before);
        }
    });
}

/// Tries each, and prints those that were let through or answered in another way.
const SPELLINGS: &str = r#"
import ctypes, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
project = os.getcwd()
os.mkdir("d"); os.mkdir("ready"); open("ready/x", "w").close()
os.symlink("../.envrc", "d/dangling"); os.symlink(project + "/.envrc", "d/absolute")
os.symlink("dangling", "d/twice"); os.symlink(project, "/tmp/back")
here = os.open(".", os.O_PATH); sub = os.open("d", os.O_RDONLY)
made = []
def attempt(name, act):
    try:
        act()
        made.append(name)
    except OSError as error:
        if error.errno != 30: made.append(f"{name}: {error}")
def create(path, **where):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644, **where))
def in_root(path, how=os.O_CREAT | os.O_WRONLY):
    if libc.syscall(437, os.open(".", os.O_RDONLY), path, struct.pack("QQQ", how, 0o644 if how & os.O_CREAT else 0, 0x10), 24) < 0:
        error = ctypes.get_errno()
        raise OSError(30 if error == 38 else error, "openat2")
# Where `/` is a directory of the caller's choice. It may be read in that way.
os.symlink("/.envrc", "d/rooted")
attempt("in root", lambda: in_root(b"/.envrc"))
attempt("above the root", lambda: in_root(b"../../../.envrc"))
attempt("a link to the root", lambda: in_root(b"d/rooted"))
in_root(b"/ready/x", os.O_RDONLY); os.unlink("d/rooted")
attempt("dangling", lambda: create("d/dangling"))
attempt("absolute", lambda: create("d/absolute"))
attempt("twice", lambda: create("d/twice"))
attempt("through tmp", lambda: create("/tmp/back/.envrc"))
attempt("descriptor", lambda: create(".envrc", dir_fd=here))
attempt("climbing", lambda: create("../.envrc", dir_fd=sub))
attempt("slashes", lambda: os.mkdir(".//./.vscode//"))
attempt("dots", lambda: os.mkdir("d/../.vscode"))
attempt("own directory", lambda: create("/proc/self/cwd/.envrc"))
attempt("own root", lambda: create("/proc/self/root" + project + "/.envrc"))
attempt("own descriptor", lambda: create(f"/proc/self/fd/{here}/.envrc"))
attempt("dev fd", lambda: create(f"/dev/fd/{here}/.envrc"))
own = os.getpid()
for way in ["1/../self/cwd", f"self/task/{own}/cwd", f"{own}/cwd", f"{own}/root{project}", "thread-self/cwd"]:
    attempt(way, lambda: create(f"/proc/{way}/.envrc"))
    # By a link on the way, and by one in the last place.
    os.symlink(f"/proc/{way}", "l")
    attempt(f"link to {way}", lambda: create("l/.envrc"))
    attempt(f"links to {way}", lambda: create("l/d/dangling"))
    os.unlink("l")
os.chdir("d")
attempt("from below", lambda: create("../.envrc"))
attempt("dangling from below", lambda: create("dangling"))
os.chdir("..")
def openat2(path, flags):
    how = struct.pack("QQQ", flags, 0o644, 0)
    fd = libc.syscall(437, -100, path, how, len(how))
    if fd < 0: raise OSError(ctypes.get_errno(), "openat2")
    os.close(fd)
attempt("openat2", lambda: openat2(b".envrc", os.O_CREAT | os.O_WRONLY))
# Where the name cannot be read it is not taken for another one.
def elsewhere(call, *arguments):
    if libc.syscall(call, *arguments) >= 0: made.append(f"{call} of what cannot be read")
    elif ctypes.get_errno() not in (14, 38): made.append(f"{call}: {ctypes.get_errno()}")
nowhere = ctypes.c_void_p(8)
elsewhere(437, -100, nowhere, struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o644, 0), 24)
elsewhere(437, -100, b".envrc", nowhere, 24)
elsewhere(447, 0) # memfd_secret
# What is there already goes on being opened, whatever leads to it.
_, pipe = os.pipe()
said = os.dup(1); os.dup2(pipe, 1); os.symlink("/dev/stdout", "out")
for there in [f"/dev/fd/{pipe}", f"/proc/self/fd/{pipe}", f"/proc/{own}/fd/{pipe}", "/dev/stdout", "out", "/dev/null"]:
    try: create(there)
    except OSError as error: made.append(f"{there}: {error}")
os.unlink("out"); os.dup2(said, 1)
def tmpfile():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
    os.link(f"/proc/self/fd/{fd}", ".envrc", follow_symlinks=True)
attempt("unnamed file", tmpfile)
def exchange():
    if libc.renameat2(-100, b"README", -100, b".envrc", 0) < 0:
        raise OSError(ctypes.get_errno(), "renameat2")
attempt("renameat2", exchange)
def bind():
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).bind(".vscode")
attempt("socket", bind)
# A directory above a protected name may be made, and nothing else may take its place.
os.mkdir("w"); os.mkdir("w/workflows")
attempt("moved ancestor", lambda: os.rename("w", ".github"))
# From a directory that was removed `..` still leads to where it was.
def removed(base, act):
    os.mkdir(base + "r"); r = os.open(base + "r", os.O_RDONLY); os.chdir(base + "r"); os.rmdir(base + "r")
    try: act(r)
    finally: os.chdir(project); os.close(r)
base = project + "/"
attempt("from what was removed", lambda: removed(base, lambda r: create("../.envrc")))
attempt("below what was removed", lambda: removed(base, lambda r: create("../.envrc", dir_fd=r)))
attempt("its link", lambda: removed(base, lambda r: create("../d/dangling")))
attempt("link from it", lambda: removed(base, lambda r: os.link("../README", "../.envrc", src_dir_fd=r, dst_dir_fd=r)))
attempt("moved from it", lambda: removed(base, lambda r: os.rename("../ready", "../.vscode", src_dir_fd=r, dst_dir_fd=r)))
attempt("made from it", lambda: removed(base, lambda r: os.mkdir("../.vscode", dir_fd=r)))
attempt("by its number", lambda: removed(base, lambda r: create(f"/proc/self/fd/{r}/../.envrc")))
# A directory that is only called so is like any other.
os.mkdir("x (deleted)"); os.chdir("x (deleted)"); os.mkdir(".vscode"); os.rename(".vscode", "y"); os.chdir(project)
# What is no number of a descriptor, on the way to a link and behind one.
os.symlink(".envrc", "l"); attempt("way to a link", lambda: create("/proc/self/fd/../cwd/l")); os.unlink("l")
os.symlink("/proc/self/fd/../cwd/.envrc", "l"); attempt("behind a link", lambda: create("l")); os.unlink("l")
# Where paths are too long to be written down.
name = "x" * 250
for _ in range(18): os.mkdir(name); os.chdir(name)
os.symlink(project + "/.envrc", "l"); attempt("far below", lambda: create("l")); os.unlink("l")
os.symlink("y" * 200 + "/../" * 20 + "l", "m"); attempt("far behind a link", lambda: create("m")); os.unlink("m")
create("plain"); os.mkdir("sub"); create("sub/plain"); os.rename("plain", "other")
os.chdir(project)
attempt("linked ancestor", lambda: os.symlink("w", ".github"))
os.mkdir(".github"); open(".github/dependabot.yml", "w").close()
attempt("below an ancestor", lambda: os.mkdir(".github/workflows"))
attempt("into an ancestor", lambda: os.rename("w/workflows", ".github/workflows"))
os.rename(".github", "old")
attempt("rebuilt ancestor", lambda: os.rename("w", ".github"))
def swap():
    os.mkdir(".github")
    if libc.renameat2(-100, b"w", -100, b".github", 2) < 0:
        raise OSError(ctypes.get_errno(), "renameat2")
attempt("exchanged ancestor", swap)
print(made)
"#;

/// The same names by every other way to say them.
#[test]
fn no_spelling_of_a_path_leads_to_a_protected_name() {
    for_each_user(binaries!(), |world| {
        if !Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, for calls that no shell makes");
        }
        let file = world.project("spell.py");
        fs::write(&file, SPELLINGS).unwrap();
        world.own();
        let done = world.run(&world.setup(), [PYTHON.as_ref(), file.as_os_str()]);
        assert_eq!(done.line(), "[]", "{}", done.stderr);
        for name in [".envrc", ".vscode", ".github/workflows"] {
            assert!(fs::symlink_metadata(world.project(name)).is_err(), "{name}");
        }
    });
}

/// Makes a name, an ancestor of which nobody may search at that moment: who stands below needs no leave. By
/// its own name, by the kernel's for the directory, and by a link to that.
const PAST_WHAT_IS_CLOSED: &str = r#"
import os, sys
os.makedirs(".cargo", exist_ok=True); os.chdir(".cargo"); above = os.open("..", os.O_RDONLY)
name, link = "config.toml", sys.argv[2]
ways = {"plain": name, "kernel": f"/proc/self/cwd/{name}", "link": link, "links": link + "s"}
for at, to in [(link, ways["kernel"]), (link + "s", link)]:
    if not os.path.lexists(at): os.symlink(to, at)
os.fchmod(above, 0)
try: os.close(os.open(ways[sys.argv[1]], os.O_CREAT | os.O_WRONLY, 0o644)); print("made")
except OSError as error: print(error.errno)
finally: os.fchmod(above, 0o755)
"#;

/// The supervisor may look at that moment, too, and end the session; the name is not made in either case.
#[test]
fn a_closed_directory_is_no_way_past_the_guard() {
    const TIMES: usize = 4;
    for_each_user(binaries!(), |world| {
        if !Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, for calls that no shell makes");
        }
        let file = world.outside("closed.py");
        fs::write(&file, PAST_WHAT_IS_CLOSED).unwrap();
        world.own();
        let link = world.outside("link");
        for way in ["plain", "kernel", "link", "links"] {
            let (script, link) = (file.display(), link.display());
            let control = format!("{PYTHON} {script} {way} {link}");
            let control = host(world, &world.project(""), &control);
            assert_eq!(control.line(), "made", "{way}: the control");
            fs::remove_dir_all(world.project(".cargo")).unwrap();
            let mut told = 0;
            for _ in 0..TIMES {
                // The link lies where the project's directory is not on the way to it.
                let command = format!("exec {PYTHON} {script} {way} /tmp/link");
                let done = inside(world, &world.setup(), &command);
                let refused = done.lines == ["30"];
                let ended = done.stderr.contains(".cargo");
                assert!(refused || ended, "{way}: {:?} {}", done.lines, done.stderr);
                told += usize::from(refused);
                // One that was ended could not open it again itself.
                fs::set_permissions(world.project(""), fs::Permissions::from_mode(0o755)).unwrap();
                let left = fs::read_dir(world.project(".cargo")).unwrap();
                let left: Vec<_> = left.flatten().collect();
                assert!(left.is_empty(), "{way}: {left:?}: {}", done.stderr);
            }
            println!("{way}: refused in {told} of {TIMES} sessions, and ended in the others");
        }
    });
}

/// What is ordinary stays ordinary: other names, the same names elsewhere, and names that were
/// allowed one by one.
#[test]
fn ordinary_names_are_made_as_ever() {
    for_each_user(binaries!(), |world| {
        let script = "set -e; mkdir -p vendor/.vscode other/.idea; echo x > vendor/.envrc
            echo x > .envrc.example; mkdir .gitx; echo x > git; ln -s nowhere link
            mkdir -p a/b/c/d; mv a z; ln README copy; mkfifo pipe; echo > /dev/null
            echo x > /tmp/.envrc; mkdir /tmp/.git; : > /dev/null
            for i in $(seq 200); do echo $i > z/$i; done; ls z | wc -l";
        let done = inside(world, &world.setup(), script);
        done.assert_status(0);
        assert_eq!(done.text(), "201");
        let setup = world.setup_with(r#""protect": {"allow": [".vscode", ".envrc"]}"#);
        let script = "mkdir .vscode && echo {} > .vscode/tasks.json && echo x > .envrc";
        inside(world, &setup, script).assert_status(0);
        assert!(world.project(".vscode/tasks.json").try_exists().unwrap());
        assert!(world.project(".envrc").try_exists().unwrap());
    });
}

/// Two threads: one makes a directory, the other exchanges its name in memory. Some calls get past
/// the look that is taken at a copy; then the name is put aside at once and the session is over.
pub(super) const RACE: &str = r#"
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
good, bad = b"harmless", b".vscode\0"
buffer = ctypes.create_string_buffer(good, 16)
stop = False
def exchange():
    while not stop:
        ctypes.memmove(buffer, bad, len(bad))
        ctypes.memmove(buffer, good, len(good))
threading.Thread(target=exchange, daemon=True).start()
sys.setswitchinterval(1e-5)
end = time.monotonic() + float(sys.argv[1])
tries = 0
while time.monotonic() < end:
    libc.mkdir(buffer, 0o755)
    libc.rmdir(good)
    tries += 1
stop = True
print(tries)
"#;

#[test]
fn a_name_exchanged_in_memory_ends_the_session() {
    for_each_user(binaries!(), |world| {
        if !Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, for two threads that share memory");
        }
        let file = world.project("race.py");
        fs::write(&file, RACE).unwrap();
        world.own();
        let (mut ended, mut tries) = (0, 0);
        for _ in 0..6 {
            let command = [PYTHON.as_ref(), file.as_os_str(), "0.5".as_ref()];
            let done = world.run(&world.setup(), command);
            if done.status == 137 {
                ended += 1;
                assert!(done.stderr.contains(".vscode"), "{}", done.stderr);
            } else {
                tries += done.line().parse::<usize>().unwrap();
            }
            let there = fs::symlink_metadata(world.project(".vscode"));
            assert!(there.is_err(), "the name was left");
        }
        say(&format!(
            "of 6 sessions that raced, {ended} got through once and were ended; the \
                      others tried {tries} times"
        ));
        // The control: where nobody watches it is made, sooner or later, and stays.
        let open = world.setup().without(Step::Names);
        wait_until("the name is made", || {
            let command = [PYTHON.as_ref(), file.as_os_str(), "0.2".as_ref()];
            world.run(&open, command).assert_status(0);
            world.project(".vscode").try_exists().unwrap()
        });
        fs::remove_dir_all(world.project(".vscode")).unwrap();
    });
}

/// The same with a link above a name, whatever it leads to: the name is then made under another one. Whoever
/// gets through leaves at once, before anybody looks.
#[test]
fn a_link_above_a_name_exchanged_in_memory_does_not_stay() {
    for_each_user(binaries!(), |world| {
        if !Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, for two threads that share memory");
        }
        let race = RACE
            .replace("harmless", r".githuX\0")
            .replace(".vscode", ".github")
            .replace("mkdir(buffer, 0o755)", "symlink(sys.argv[2].encode(), buffer)")
            .replace(
                "rmdir(good)",
                "unlink(good)\n    if os.path.islink('.github'): print('made', flush=True); os._exit(0)",
            );
        let file = world.project("race.py");
        fs::write(&file, race).unwrap();
        fs::create_dir_all(world.project("x/workflows")).unwrap();
        world.own();
        let run = |setup: &Setup, seconds: &str, target: &str| {
            let words = [seconds.as_ref(), target.as_ref()];
            let command = [&[PYTHON.as_ref(), file.as_os_str()], &words[..]].concat();
            world.run(setup, command)
        };
        let link = || fs::symlink_metadata(world.project(".github"));
        let mut through = 0;
        for target in ["x", "nowhere", "/tmp", "x"] {
            let done = run(&world.setup(), "0.5", target);
            if done.status == 137 || done.text() == "made" {
                through += 1;
                assert!(done.stderr.contains(".github"), "{}", done.stderr);
            }
            assert!(
                link().is_err(),
                "{target}: the link was left: {}",
                done.stderr
            );
        }
        say(&format!(
            "of 4 sessions that raced, {through} got through once"
        ));
        // The control: where nobody watches it is made, sooner or later, and stays.
        let open = world.setup().without(Step::Names);
        wait_until("the link is made", || {
            run(&open, "0.2", "x");
            link().is_ok()
        });
    });
}

/// However a supervisor ends, nothing of it is left in the tree, and another session on the same
/// project never sees anything of it.
#[test]
fn nothing_is_left_and_nothing_is_shown() {
    for_each_user(binaries!(), |world| {
        let before = tree(world);
        let watch = "while :; do find . -newer README; done";
        for round in 0..4 {
            let spawn = || {
                let mut command = world.confine(&world.setup(), ["sh", "-c", watch]);
                command.stdout(Stdio::null()).stderr(Stdio::null());
                command.spawn().unwrap()
            };
            let (mut first, mut second) = (spawn(), spawn());
            std::thread::sleep(std::time::Duration::from_millis(60 + 40 * round));
            assert_eq!(tree(world), before);
            first.kill().unwrap();
            first.wait().unwrap();
            assert_eq!(tree(world), before);
            let list = "find . | sort";
            let seen = inside(world, &world.setup(), list);
            assert_eq!(seen.lines, before);
            second.kill().unwrap();
            second.wait().unwrap();
            assert_eq!(tree(world), before);
        }
    });
}

/// A link that leads to nothing, at a protected name or above it: whoever makes what it leads to makes
/// the name, under another one. Such a tree is refused, and stays as it was.
#[test]
fn a_link_that_leads_to_nothing_is_no_way_to_a_name() {
    for_each_user(binaries!(), |world| {
        let make = "mkdir -p elsewhere/workflows && echo x > elsewhere/file";
        for (link, name) in [
            (".github", ".github/workflows"),
            (".cargo", ".cargo/config.toml"),
            (".vscode", ".vscode"),
        ] {
            for to in [Path::new("elsewhere"), &world.project("elsewhere")] {
                let link = world.project(link);
                std::os::unix::fs::symlink(to, &link).unwrap();
                world.own();
                // The control: on the host it is one.
                host(world, &world.project(""), make);
                assert!(link.try_exists().unwrap(), "{name}");
                fs::remove_dir_all(world.project("elsewhere")).unwrap();

                // Whoever is there already when it is found out goes without a word.
                for hands in Hands::ALL {
                    let setup = world.setup().by(hands);
                    let done = world.run(&setup, ["sh", "-c", make]);
                    done.assert_status(125);
                    assert!(done.stderr.contains("leads to nothing"), "{}", done.stderr);
                    assert!(!world.project("elsewhere").try_exists().unwrap(), "{name}");
                }
                assert_eq!(fs::read_link(&link).unwrap(), to, "{name}");
                fs::remove_file(&link).unwrap();
            }
        }
    });
}
