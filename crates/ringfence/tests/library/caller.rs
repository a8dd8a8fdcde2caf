//! What a program finds changed about itself after it has used the library: nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringfence::launch::Helping;
use ringfence::{Cause, Policy, Sandbox, Stdio};
use ringfence_sys::signals::{Disposition, Mask, disposition};

use crate::policies::place;
use crate::world::{also_as_plain_user, wait_until};

/// Everything about this process that a launcher might change.
#[derive(Debug, Eq, PartialEq)]
struct Self_ {
    status: Vec<String>,
    directory: std::path::PathBuf,
    signals: Vec<Disposition>,
    mask: Mask,
    mounts: String,
    namespaces: BTreeSet<String>,
}

impl Self_ {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let kept = [
            "Umask",
            "PPid",
            "TracerPid",
            "Uid",
            "Gid",
            "NoNewPrivs",
            "Seccomp",
            "Cap",
            "Sig",
        ];
        let status = status.lines().filter(|line| {
            let pending = line.starts_with("SigQ") || line.starts_with("SigPnd");
            kept.iter().any(|name| line.starts_with(name)) && !pending
        });
        let namespaces = std::fs::read_dir("/proc/thread-self/ns")
            .unwrap()
            .map(|entry| {
                let target = std::fs::read_link(entry.unwrap().path()).unwrap();
                target.to_str().unwrap().to_owned()
            });
        Self {
            status: status.map(str::to_owned).collect(),
            directory: std::env::current_dir().unwrap(),
            signals: (1..=64)
                .map(|signal| disposition(signal).unwrap())
                .collect(),
            mask: Mask::current().unwrap(),
            mounts: std::fs::read_link("/proc/self/ns/mnt")
                .unwrap()
                .display()
                .to_string(),
            namespaces: namespaces.collect(),
        }
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Threads of sessions that are over.
fn serving_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        threads.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "ringfence").count()
}

/// Threads that make connections for sessions.
fn connecting_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        threads.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "ringfence-conn").count()
}

/// Three connections that wait for ever, as long as their own sockets are there: two of these are the
/// other end, or have it in their queue, and the third is of a network that is there as long as they
/// are.
const ENDLESS: &str = r#"
import os, socket, threading, time
held = []
def full(family, name):
    server = socket.socket(family); server.bind(name); server.listen(0)
    for _ in range(4):
        one = socket.socket(family); one.setblocking(False); one.connect_ex(server.getsockname())
        held.append(one)
    return server
def connect(one, other):
    name = other.getsockname()
    threading.Thread(target=one.connect_ex, args=(name,), daemon=True).start()
itself = full(socket.AF_UNIX, "/tmp/itself")
connect(itself, itself)
carried = full(socket.AF_UNIX, "/tmp/carried")
near, far = socket.socketpair()
socket.send_fds(near, [b"x"], [carried.fileno()])
connect(far, carried)
connect(socket.socket(), full(socket.AF_INET, ("127.0.0.1", 0)))
time.sleep(0.5)
print("waiting", flush=True)
time.sleep(1000)
"#;

#[test]
fn no_thread_waits_for_what_it_holds_itself() {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let mut command = sandbox.command("python3");
    command.args(["-c", ENDLESS]).stdout(Stdio::piped());
    let mut session = command.spawn().unwrap();
    let mut said = [0; 8];
    let out = session.stdout.as_mut().unwrap();
    std::io::Read::read_exact(out, &mut said).unwrap();
    assert_eq!(&said, b"waiting\n");
    assert!(connecting_threads() >= 3, "nothing waits");
    session.kill().unwrap();
    session.wait().unwrap();
    drop(session);
    wait_until("no thread is left", || connecting_threads() == 0);
}

/// Runs in a process of its own: what it counts must not be another test's.
#[test]
fn sixty_four_threads_and_nothing_changed() {
    if std::env::var_os("RINGFENCE_TEST_ALONE").is_none() {
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "caller::sixty_four_threads_and_nothing_changed",
                "--nocapture",
            ])
            .env("RINGFENCE_TEST_ALONE", "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&alone.stderr).into_owned();
        assert!(alone.status.success(), "{text}");
        also_as_plain_user("caller::sixty_four_threads_and_nothing_changed");
        return;
    }
    for ahead in [Helping::WherePossible, Helping::Always] {
        run_in_many_threads(ahead);
    }
}

fn run_in_many_threads(ahead: Helping) {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap().ahead(ahead);
    // The first one opens what is kept for good.
    assert!(
        sandbox
            .command("true")
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    // A session's thread outlives its report by a moment: it reaps the first process.
    wait_until("no thread is left", || serving_threads() == 0);
    let (before, open) = (Self_::now(), descriptors());
    let stop = Arc::new(AtomicBool::new(false));
    // Threads that allocate, lock and fork, so that every lock is held at some fork.
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::black_box(vec![0_u8; 100_000]);
                    assert!(
                        std::process::Command::new("true")
                            .status()
                            .unwrap()
                            .success()
                    );
                }
            })
        })
        .collect();
    let runners: Vec<_> = (0..64_u8)
        .map(|number| {
            let sandbox = sandbox.clone();
            std::thread::spawn(move || {
                for round in 0..3_u8 {
                    let script = format!("echo {number}-{round}; exit {number}");
                    let output = sandbox
                        .command("sh")
                        .args(["-c", &script])
                        .output()
                        .unwrap();
                    assert_eq!(output.report.cause, Cause::Exited { status: number });
                    assert_eq!(output.stdout, format!("{number}-{round}\n").into_bytes());
                }
                // Some handles are only dropped.
                let mut command = sandbox.command("sleep");
                command.arg("1000").stdout(Stdio::null()).spawn().unwrap();
            })
        })
        .collect();
    for runner in runners {
        runner.join().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for thread in busy {
        thread.join().unwrap();
    }
    assert_eq!(Self_::now(), before);
    wait_until("no thread is left", || serving_threads() == 0);
    assert_eq!(descriptors(), open);
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let children = threads.map(|entry| entry.unwrap().path().join("children"));
    let children: String = children
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(children, "", "nothing is left to be waited for");
}

#[test]
fn a_caller_that_reaps_everything_loses_nothing() {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let reaper = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
                std::thread::yield_now();
            }
        })
    };
    for status in [0, 1, 77, 255] {
        let script = format!("exit {status}");
        let output = sandbox
            .command("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        assert_eq!(output.report.cause, Cause::Exited { status });
    }
    stop.store(true, Ordering::Relaxed);
    reaper.join().unwrap();
}

/// A number from `/proc/PID/status`, in kilobytes.
fn kilobytes(process: i32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// As a copy it would have half a megabyte of page tables, and every secret of the caller's.
#[test]
fn the_first_process_has_nothing_of_its_caller() {
    // A page for a page, each touched.
    let memory = vec![1_u8; 256 << 20];
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let mut session = sandbox.command("sleep").arg("1000").spawn().unwrap();
    let first = session.id();

    assert!(std::hint::black_box(&memory).iter().all(|byte| *byte == 1));
    let own = i32::try_from(std::process::id()).unwrap();
    assert!(kilobytes(own, "VmPTE") > 500, "the caller is not large");
    assert!(kilobytes(first, "VmPTE") < 100);
    assert!(kilobytes(first, "VmSize") < 1000);
    assert!(kilobytes(first, "VmRSS") < 200);
    session.kill().unwrap();
}
