//! Sessions whose first process is born before their policy is made: no other than the rest.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use ringfence::launch::{Ahead, Helping};
use ringfence::{Cause, Policy, Sandbox, Stdio};

use crate::policies::place;
use crate::world::{also_as_plain_user, wait_until};

#[test]
fn sessions_that_were_begun_early_are_like_all_others() {
    assert!(Ahead::begin_anyway().is_ok(), "or none would be");
    let (top, project) = place();
    let canary = top.path().join("canary");
    std::fs::write(&canary, "not for you").unwrap();
    for ahead in [Helping::Always, Helping::Never] {
        let policy = Policy::agent(&project).hide(&canary);
        let sandbox = Sandbox::new(policy).unwrap().ahead(ahead);
        // It can be read where nobody is held.
        let read = |program: &str| -> String {
            let output = Command::new(program).arg(&canary).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(read("cat"), "not for you");
        let output = sandbox.command("cat").arg(&canary).output().unwrap();
        assert!(!output.report.success(), "{ahead:?}");
        assert_eq!(output.stdout, b"");

        let mut session = sandbox
            .command("sh")
            .args(["-c", "read line; echo $line > found; exit 3"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = session.stdin.take().unwrap();
        stdin.write_all(b"a line\n").unwrap();
        let report = session.wait().unwrap();
        assert_eq!(report.cause, Cause::Exited { status: 3 }, "{ahead:?}");
        let found = std::fs::read_to_string(project.join("found")).unwrap();
        assert_eq!(found, "a line\n");

        let mut session = sandbox.command("sleep").arg("1000").spawn().unwrap();
        let process = PathBuf::from(format!("/proc/{}", session.id()));
        let is_there = || process.try_exists().unwrap();
        assert!(is_there());
        assert_eq!(session.kill().unwrap().cause, Cause::Ended);
        wait_until("its first process is gone", || !is_there());
    }
    also_as_plain_user("ahead::sessions_that_were_begun_early_are_like_all_others");
}

/// Runs in a mount namespace of its own, where it may mount what it likes.
#[test]
fn a_host_that_mounts_during_a_start_refuses_nothing() {
    const TEST: &str = "ahead::a_host_that_mounts_during_a_start_refuses_nothing";
    const SESSIONS: u32 = 60;
    if std::env::var_os("RINGFENCE_TEST_ALONE").is_none() {
        let alone = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env("RINGFENCE_TEST_ALONE", "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&alone.stdout).into_owned()
            + &String::from_utf8_lossy(&alone.stderr);
        assert!(alone.status.success(), "{text}");
        println!("{text}");
        also_as_plain_user(TEST);
        return;
    }
    assert!(Ahead::begin_anyway().is_ok(), "or none would be");
    let (top, project) = place();
    let at = top.path().join("mounted");
    std::fs::create_dir(&at).unwrap();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let sandbox = sandbox.ahead(Helping::Always);
    let stop = AtomicBool::new(false);
    let mounted = std::thread::scope(|scope| {
        let mounting = scope.spawn(|| {
            let mut mounted = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                flicker(&at);
                mounted += 1;
            }
            mounted
        });
        for _ in 0..SESSIONS {
            let report = sandbox.command("true").status();
            let report = report.inspect_err(|_| stop.store(true, Ordering::Relaxed));
            assert!(report.unwrap().success());
        }
        stop.store(true, Ordering::Relaxed);
        mounting.join().unwrap()
    });
    println!("{SESSIONS} sessions, {mounted} mounts meanwhile");
}

/// Mounts something there, and takes it off again.
fn flicker(at: &Path) {
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("none", at, "tmpfs", flags, None).unwrap();
    rustix::mount::unmount(at, rustix::mount::UnmountFlags::empty()).unwrap();
}
