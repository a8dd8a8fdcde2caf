//! A session and its handle.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringfence::{Cause, Policy, Running, Sandbox, Signal, Stdio};
use ringfence_sys::Subject;
use ringfence_sys::spawn::{Memory, Spawn};

use crate::policies::place;
use crate::world::{also_as_plain_user, wait_until};

/// A number that no other process has in its arguments.
fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}.{}", 4_000_000 + std::process::id(), 100 + next)
}

fn processes_with(mark: &str) -> usize {
    count(|line| String::from_utf8_lossy(line).contains(mark))
}

fn count(wanted: impl Fn(&[u8]) -> bool) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap();
    let lines = entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| wanted(line)).count()
}

/// Daemons that try to get away; returns when they are there.
fn daemons(sandbox: &Sandbox, mark: &str) -> Running {
    let script = format!(
        "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; sleep {mark}; sleep {mark}' &); (sleep {mark} &); echo there; sleep {mark}"
    );
    let mut command = sandbox.command("sh");
    command.args(["-c", &script]).stdout(Stdio::piped());
    let mut session = command.spawn().unwrap();
    let mut there = [0; 6];
    session
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut there)
        .unwrap();
    assert_eq!(&there, b"there\n");
    // The word comes from the shell: whoever it started may still be on the way into its program.
    let asleep = format!("sleep\0{mark}\0");
    wait_until("all of them sleep", || {
        count(|line| line == asleep.as_bytes()) == 3
    });
    session
}

/// Sleeps, with a copy of every descriptor.
fn hold(_subject: &Subject, seconds: &mut i64) -> u8 {
    let time = rustix::thread::Timespec {
        tv_sec: *seconds,
        tv_nsec: 0,
    };
    let _slept = rustix::thread::nanosleep(&time);
    0
}

#[test]
fn who_was_forked_meanwhile_keeps_nothing_of_a_session() {
    let (_top, project) = place();
    for policy in [Policy::agent(&project), Policy::track(&project)] {
        let sandbox = Sandbox::new(policy).unwrap();
        for heard in [true, false] {
            let mut command = sandbox.command("sh");
            command.args(["-c", "read line"]).stdin(Stdio::piped());
            let mut session = command.spawn().unwrap();
            let first = PathBuf::from(format!("/proc/{}", session.id()));
            // As a program does that forks and goes on in the child.
            let holder = Spawn::new(Memory::Copied).start(&mut 30, hold).unwrap();
            let mut stdin = session.stdin.take().unwrap();
            stdin.write_all(b"go on\n").unwrap();
            if heard {
                assert!(session.wait().unwrap().success());
            }
            drop(session);
            wait_until("the first process is gone", || !first.try_exists().unwrap());
            assert_eq!(holder.try_wait(), Ok(None), "it is still there");
            holder.signal(Signal::KILL).unwrap();
            holder.wait().unwrap();
        }
    }
    also_as_plain_user("sessions::who_was_forked_meanwhile_keeps_nothing_of_a_session");
}

#[test]
fn a_dropped_handle_ends_everything() {
    let (_top, project) = place();
    for policy in [Policy::agent(&project), Policy::track(&project)] {
        let sandbox = Sandbox::new(policy).unwrap();
        let mark = mark();
        drop(daemons(&sandbox, &mark));
        assert_eq!(processes_with(&mark), 0);
    }
    also_as_plain_user("sessions::a_dropped_handle_ends_everything");
}

#[test]
fn a_killed_session_says_so() {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let mark = mark();
    let mut session = daemons(&sandbox, &mark);
    assert!(session.try_wait().unwrap().is_none());
    assert_eq!(session.kill().unwrap().cause, Cause::Ended);
    assert_eq!(processes_with(&mark), 0);
    // It stays said.
    assert_eq!(session.wait().unwrap().cause, Cause::Ended);
    assert_eq!(session.try_wait().unwrap().unwrap().cause, Cause::Ended);
}

#[test]
fn a_signal_reaches_the_command() {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let mut session = sandbox.command("sleep").arg("1000").spawn().unwrap();
    session.signal(Signal::TERM);
    let report = session.wait().unwrap();
    assert_eq!(report.cause, Cause::Killed { signal: 15 });
}

#[test]
fn a_session_is_served_although_nobody_waits() {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    // Every connection is made by the supervisor.
    let script = "
import os, socket
server = socket.socket(socket.AF_UNIX); server.bind('/tmp/s'); server.listen()
for _ in range(100):
    client = socket.socket(socket.AF_UNIX); client.connect('/tmp/s'); server.accept()[0].close()
print('served', flush=True)
";
    let mut command = sandbox.command("python3");
    command
        .args(["-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut session = command.spawn().unwrap();
    let mut shown = String::new();
    session
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut shown)
        .unwrap();
    assert_eq!(shown, "served\n");
    also_as_plain_user("sessions::a_session_is_served_although_nobody_waits");
}

#[test]
fn a_session_outlives_the_thread_that_started_it() {
    let (_top, project) = place();
    for policy in [Policy::agent(&project), Policy::track(&project)] {
        let sandbox = Sandbox::new(policy).unwrap();
        let started = std::thread::spawn(move || {
            let mut command = sandbox.command("sh");
            command.args(["-c", "sleep 0.3; exit 4"]).spawn().unwrap()
        });
        let mut session = started.join().unwrap();
        let report = session.wait().unwrap();
        assert_eq!(report.cause, Cause::Exited { status: 4 });
    }
}

#[test]
fn the_end_can_be_polled_for() {
    use rustix::event::{PollFd, PollFlags, poll};
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let started = Instant::now();
    let mut session = sandbox.command("sleep").arg("0.3").spawn().unwrap();
    poll(&mut [PollFd::new(&session, PollFlags::IN)], None).unwrap();
    assert!(started.elapsed() > Duration::from_millis(200));
    assert!(session.try_wait().unwrap().unwrap().success());
}

/// Others find a session of a program, and end it without that program.
#[test]
fn a_session_can_be_found_and_ended_by_others() {
    use ringfence::place::{Lookout, Surroundings};
    use ringfence::sessions::Registry;
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let mark = mark();
    let mut session = sandbox.command("sleep").arg(&mark).spawn().unwrap();
    let surroundings = Surroundings::of_process(&Lookout::new()).unwrap();
    let registry = surroundings.sessions().unwrap();
    let mut found = None;
    wait_until("it is written down", || {
        let known = Registry::existing(&registry).and_then(|registry| registry.sessions());
        let mut ours = known.unwrap_or_default().into_iter();
        found = ours.find(|one| one.command.contains(&mark));
        found.is_some()
    });
    let found = found.unwrap();
    assert_eq!(found.project, project);
    assert_eq!(u32::try_from(found.supervisor), Ok(std::process::id()));
    let ended = Registry::existing(&registry).unwrap().kill(&found.id);
    assert_eq!(ended.unwrap(), 1);
    assert_eq!(session.wait().unwrap().cause, Cause::Ended);
    let left = Registry::existing(&registry).unwrap().sessions().unwrap();
    assert!(!left.iter().any(|one| one.id == found.id), "{left:?}");
}
