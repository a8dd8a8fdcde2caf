//! 32, 34: protected names that appear while the kernel tells nobody.
//!
//! A user can have so many inotify instances and no more, and a directory that may not be read
//! cannot be listened at. Then the supervisor looks at the names itself, and a session goes on as
//! ever. Whoever ends before anybody has looked is looked after at the end.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ringfence_core::plan::Step;
use ringfence_testkit::{Done, Setup, Who, World, binaries, for_each_user, op, say, wait_until};
use rustix::process::{Pid, Signal, kill_process};

use super::git_metadata::host;
use super::protected_names::{PYTHON, RACE};

/// A command in a user namespace of its own, all of whose processes together can have so many
/// inotify instances.
pub(super) fn with_listeners(world: &World, count: u32, command: &Command) -> Command {
    let script = "echo \"$0\" > /proc/sys/user/max_inotify_instances || exit 77
                  exec setpriv --inh-caps=-all --ambient-caps=-all -- \"$@\"";
    let mut out = world.command("unshare");
    out.args(["--map-current-user", "--keep-caps", "sh", "-c", script])
        .arg(count.to_string())
        .arg(command.get_program())
        .args(command.get_args());
    out
}

fn confine(world: &World, setup: &Setup, script: &str) -> Command {
    world.confine(setup, ["bash", "-c", script])
}

#[test]
fn many_sessions_beyond_the_limit_run_and_hold() {
    const LIMIT: u32 = 2;
    const SESSIONS: usize = 12;
    for_each_user(binaries!(), |world| {
        // The control: the limit is one.
        let watch = |count| {
            let mut probe = world.command(world.path("bin/probe"));
            probe.args(op!["watch", world.project("")]);
            Done::of(&mut with_listeners(world, count, &probe)).text()
        };
        assert_eq!([watch(0), watch(1)], ["EMFILE", "ok"]);
        let script = "for i in 1 2 3 4 5; do sleep 0.1; echo x > made.$0; mkdir dir.$0
                rmdir dir.$0; done
            mkdir .vscode 2>/dev/null || echo x 2>/dev/null > .envrc || echo held";
        // All of them share one limit.
        let all = format!(
            "for i in $(seq {SESSIONS}); do \"$@\" $i & all+=($!); done
             for one in ${{all[@]}}; do wait $one || exit; done"
        );
        let one = confine(world, &world.setup(), script);
        let mut many = world.command("bash");
        many.args(["-c", &all, "bash"])
            .arg(one.get_program())
            .args(one.get_args());
        let done = Done::of(&mut with_listeners(world, LIMIT, &many));
        done.assert_status(0);
        assert_eq!(done.lines, ["held"; SESSIONS]);
        assert_eq!(done.stderr, "");
        for name in [".vscode", ".envrc"] {
            assert!(fs::symlink_metadata(world.project(name)).is_err(), "{name}");
        }
        // The control for the names themselves.
        let free = confine(world, &world.setup().without(Step::Names), script);
        let free = Done::of(&mut with_listeners(world, 0, &free));
        assert_eq!((free.status, free.lines.len()), (0, 0));
        assert!(world.project(".vscode").try_exists().unwrap());
    });
}

#[test]
fn a_raced_name_is_found_by_looking() {
    for_each_user(binaries!(), |world| {
        let file = world.project("race.py");
        fs::write(&file, RACE).unwrap();
        world.own();
        let race = [PYTHON.as_ref(), file.as_os_str(), "0.5".as_ref()];
        let mut ended = 0;
        for _ in 0..6 {
            let command = world.confine(&world.setup(), race);
            let done = Done::of(&mut with_listeners(world, 0, &command));
            if done.status == 137 {
                ended += 1;
                assert!(done.stderr.contains("NameMade"), "{}", done.stderr);
            }
            let there = fs::symlink_metadata(world.project(".vscode"));
            assert!(there.is_err(), "the name was left");
        }
        say(&format!(
            "of 6 sessions that raced while nobody could listen, {ended} got through once and were \
             ended"
        ));
        // Where nobody is asked every call gets through, and looking alone must find it.
        let open = world.setup().without(Step::Seccomp);
        let script = "mkdir .vscode; while [ -e .vscode ]; do sleep 0.01; done";
        let command = confine(world, &open, script);
        let done = Done::of(&mut with_listeners(world, 0, &command));
        done.assert_status(0);
        assert!(done.stderr.contains("found"), "{}", done.stderr);
        assert!(fs::symlink_metadata(world.project(".vscode")).is_err());
    });
}

/// A session that waits for a while, once it has done something, and makes nothing meanwhile.
struct Session(Child);

impl Session {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Says a line to the command, which waits for one, and waits until nothing of it is left but the first
    /// process, which waits for a supervisor that was stopped.
    fn end_command(&mut self) {
        let children = |number: &str| {
            let file = format!("/proc/{number}/task/{number}/children");
            fs::read_to_string(file).unwrap()
        };
        let first = children(&self.0.id().to_string());
        let mut input = self.0.stdin.take().unwrap();
        input.write_all(b"\n").unwrap();
        drop(input);
        wait_until("the command ends", || {
            children(first.trim()).trim().is_empty()
        });
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let stderr = self.0.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (self.0.wait().unwrap().code(), said)
    }
}

/// A supervisor that is kept from looking until the command has ended finds the names at its very
/// end. What the session cannot have made is the host's, and is left alone; what it may have made
/// is put aside.
#[test]
fn what_the_host_made_last_is_left_alone() {
    for_each_user(binaries!(), |world| {
        let last = |script: &str, pause: u64| {
            host(world, &world.project(""), "rm -rf .idea* .envrc*");
            let mut session = Session::start(confine(world, &world.setup(), script));
            // By now it watches, and knows what became of the calls that it let through.
            std::thread::sleep(Duration::from_millis(pause));
            session.signal(Signal::STOP);
            host(world, &world.project(""), "mkdir .idea; echo x > .envrc");
            session.end_command();
            session.signal(Signal::CONT);
            let (status, said) = session.end();
            assert_eq!(status, Some(0), "{said}");
            said
        };
        // A supervisor that does not get to run for so long does not know yet: then it gets longer.
        let ends = "echo x > made; echo ready; exec cat";
        let mut pauses = [600, 3000, 20_000].into_iter();
        let left = pauses.any(|pause| last(ends, pause).is_empty());
        assert!(left, "it was taken for the session's");
        for name in [".idea", ".envrc"] {
            assert!(world.project(name).try_exists().unwrap(), "{name}");
        }
        // It made files, and no directory; and whoever runs may still be about to make another.
        let said = last(
            "echo x > made; echo ready; until read -t 0; do :; done",
            600,
        );
        assert!(
            said.contains(".envrc.refused-by-ringfence") && !said.contains(".idea"),
            "{said}"
        );
        assert!(!world.project(".envrc").try_exists().unwrap());
        assert!(world.project(".idea").try_exists().unwrap());
    });
}

/// How often a supervisor has gone to sleep.
fn slept(session: &Session) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", session.0.id())).unwrap();
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

/// There may be hundreds of sessions that wait, and nobody to listen for them. What the host makes
/// meanwhile is held all the same; and it is not taken for the session's because that makes
/// something just then.
#[test]
fn a_session_that_waits_is_looked_at_seldom_and_holds() {
    for_each_user(binaries!(), |world| {
        let script = "echo ready; read line; echo x > made
            { echo x >> .envrc || echo x > .idea/evil; } 2>/dev/null || echo held >&2";
        let idle = confine(world, &world.setup(), script);
        let mut session = Session::start(with_listeners(world, 0, &idle));
        std::thread::sleep(Duration::from_secs(2));
        let before = slept(&session);
        std::thread::sleep(Duration::from_secs(3));
        let looks = slept(&session) - before;
        say(&format!(
            "{looks} times awake in 3 s in which nothing happened"
        ));
        // Every 10 ms would be 300.
        assert!(looks <= 80, "{looks}");
        host(world, &world.project(""), "mkdir .idea; echo x > .envrc");
        session.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        let (status, said) = session.end();
        assert_eq!((status, said.as_str()), (Some(0), "held\n"));
        assert_eq!(fs::read(world.project(".envrc")).unwrap(), b"x\n");
        assert!(!world.project(".idea/evil").try_exists().unwrap());
    });
}

/// A host that moves a name away, as some editors do before they save, takes its mount along with it, and
/// nobody is told of that. What it then makes in its place is held all the same, whoever notices.
#[test]
fn what_takes_the_place_of_a_name_that_was_moved_away_is_held() {
    for_each_user(binaries!(), |world| {
        // Opens it without asking to make it.
        let write = "truncate -c -s 1 .envrc";
        for count in [0, 8] {
            host(
                world,
                &world.project(""),
                &format!("echo old > .envrc; {write}"),
            );
            assert_eq!(fs::read(world.project(".envrc")).unwrap(), b"o");
            let script = format!("echo ready; read line; {write} 2>/dev/null || echo held >&2");
            let idle = confine(world, &world.setup(), &script);
            let mut session = Session::start(with_listeners(world, count, &idle));
            // The watch has begun, and with it whatever listens.
            std::thread::sleep(Duration::from_secs(2));
            let replace = "mv .envrc moved; echo new > .envrc";
            host(world, &world.project(""), replace);
            std::thread::sleep(Duration::from_secs(2));
            session.0.stdin.take().unwrap().write_all(b"\n").unwrap();
            let (status, said) = session.end();
            assert_eq!((status, said.as_str()), (Some(0), "held\n"), "{count}");
            assert_eq!(fs::read(world.project(".envrc")).unwrap(), b"new\n");
            host(world, &world.project(""), "rm .envrc moved");
        }
    });
}

/// A link cannot be mounted over. The session is ended, by the right name, and the link is the
/// host's to keep.
#[test]
fn a_link_that_the_host_makes_ends_the_session_and_stays() {
    for_each_user(binaries!(), |world| {
        let idle = confine(world, &world.setup(), "echo ready; sleep 60");
        for count in [0, 8] {
            let session = Session::start(with_listeners(world, count, &idle));
            host(world, &world.project(""), "ln -s README .envrc");
            let (status, said) = session.end();
            assert_eq!(status, Some(137), "{said}");
            assert!(said.contains("NameNotHeld"), "{said}");
            assert!(
                said.contains("not held") && !said.contains("found"),
                "{said}"
            );
            let link = fs::read_link(world.project(".envrc")).unwrap();
            assert_eq!(link, Path::new("README"));
            fs::remove_file(world.project(".envrc")).unwrap();
        }
    });
}

/// A directory that may be written and not read cannot be listened at; one that may not even be
/// searched cannot be looked into.
#[test]
fn a_directory_that_is_closed_hides_no_name() {
    for_each_user(binaries!(), |world| {
        fs::create_dir(world.project(".github")).unwrap();
        world.own();
        let open = |name: &str| {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(world.project(name), mode).unwrap();
        };
        // What is mounted over is seen by the session, too.
        let unread = "chmod 0333 .; sleep 0.1; echo ready
            for i in $(seq 900); do
                grep -q '/project/.idea ' /proc/self/mountinfo && break; sleep 0.05
            done
            echo x 2>/dev/null > .idea/evil || echo held; mkdir .vscode 2>/dev/null || echo held";
        let session = Session::start(confine(world, &world.setup(), unread));
        host(world, &world.project(""), "mkdir .idea");
        let (status, said) = session.end();
        open("");
        assert_eq!((status, said.as_str()), (Some(0), ""));
        assert!(!world.project(".idea/evil").try_exists().unwrap());
        assert!(!world.project(".vscode").try_exists().unwrap());
        // Root looks everywhere.
        if world.who() == Who::Plain {
            let closed = confine(world, &world.setup(), "echo x > made; chmod 000 .github");
            // Looked into at the end all the same: it is opened for that. On a busy machine somebody may have
            // looked before the end.
            let ended_well = (0..20).any(|_| {
                let done = Done::of(&mut with_listeners(world, 8, &closed));
                open(".github");
                assert!(
                    done.status == 0 || done.stderr.contains("NameNotHeld"),
                    "{}",
                    done.stderr
                );
                done.status == 0 && done.stderr.is_empty()
            });
            assert!(ended_well);
            let script = "echo x > made; chmod 000 .github; sleep 60";
            let closed = confine(world, &world.setup(), script);
            let done = Done::of(&mut with_listeners(world, 0, &closed));
            open(".github");
            done.assert_status(137);
            assert!(done.stderr.contains("NameNotHeld"), "{}", done.stderr);
        }
    });
}
