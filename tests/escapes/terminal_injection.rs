//! 67: typing into the terminal that the shell outside reads.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, case, for_each_user, not_run, op};
use rustix::event::{PollFd, PollFlags, poll};

const STI: u64 = 0x5412;
const LINUX: u64 = 0x541c;
const SET_DISCIPLINE: u64 = 0x5423;
const CONSOLE: u64 = 0x541d;
const EXCLUSIVE: u64 = 0x540c;

/// Whether this kernel lets anybody type into a terminal at all.
fn legacy() -> bool {
    std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti")
        .is_ok_and(|value| value.trim() == "1")
}

/// A terminal: its outer end, and where its inner one is.
fn pair() -> (OwnedFd, PathBuf) {
    let outer = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
    rustix::pty::grantpt(&outer).unwrap();
    rustix::pty::unlockpt(&outer).unwrap();
    let name = rustix::pty::ptsname(&outer, Vec::new()).unwrap();
    let path = PathBuf::from(name.to_str().unwrap());
    (outer, path)
}

#[test]
fn no_spelling_of_the_request_reaches_a_terminal() {
    for_each_user(binaries!(), |world| {
        let free = if legacy() { "ok" } else { "EIO" };
        let mut cases = Vec::new();
        for high in [0, 1 << 32, 0xdead << 32, u64::MAX << 32] {
            let typed = op!["type-into-own", (STI | high).to_string()];
            cases.push(case(typed, free, "EPERM"));
        }
        world.check(&world.setup(), &cases);
        for request in [LINUX, SET_DISCIPLINE, CONSOLE] {
            for high in [0, 1 << 32, 0xdead << 32] {
                let typed = op!["type-into-own", (request | high).to_string()];
                world.check_confined(&world.setup(), &[case(typed, "", "EPERM")]);
            }
        }
        if legacy() {
            // The filter is what holds.
            let open = world.setup().without(Step::Seccomp);
            world.mutation(&open, &cases[..2]);
        } else {
            not_run("legacy-tiocsti, for the controls");
        }
    });
}

#[test]
fn the_callers_own_terminal_gets_nothing() {
    for_each_user(binaries!(), |world| {
        let (outer, path) = pair();
        let (uid, gid) = world.ids();
        std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
        let setup = world.setup().terminal(&path);
        // What is typed in is echoed, so it would come out here.
        let echoed = || {
            let mut watched = [PollFd::from_borrowed_fd(outer.as_fd(), PollFlags::IN)];
            let patience = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 50_000_000,
            };
            if poll(&mut watched, Some(&patience)).unwrap() == 0 {
                return String::new();
            }
            if !watched[0].revents().contains(PollFlags::IN) {
                return String::new();
            }
            let mut buffer = [0; 64];
            let mut file = std::fs::File::from(outer.try_clone().unwrap());
            let count = file.read(&mut buffer).unwrap_or(0);
            String::from_utf8_lossy(&buffer[..count]).into_owned()
        };
        let typed = op!["type-into", "0", STI.to_string()];
        let high = op!["type-into", "0", (STI | 1 << 32).to_string()];
        if legacy() {
            let open = world.inside(&setup.clone().without(Step::Seccomp), &typed);
            assert_eq!((open.line(), echoed().as_str()), ("ok", "x"), "the control");
        } else {
            not_run("legacy-tiocsti, for the control");
        }
        for request in [&typed, &high] {
            assert_eq!(world.inside(&setup, request).line(), "EPERM");
            assert_eq!(echoed(), "");
        }
    });
}

/// A terminal that is nobody else's any more could not be opened by the shell outside.
#[test]
fn the_callers_own_terminal_stays_open_to_others() {
    use std::os::unix::process::CommandExt as _;

    /// A user who owns nothing: root may open what is exclusive.
    const NOBODY: u32 = 54_322;
    for_each_user(binaries!(), |world| {
        // Whether others can open a terminal after it was asked for this, in a session with or without
        // the filter.
        let stays_open = |without: &[Step], expected: &str| {
            let (_outer, path) = pair();
            let (uid, gid) = world.ids();
            std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            std::fs::set_permissions(&path, mode).unwrap();
            let setup = world.setup().terminal(&path);
            let setup = without
                .iter()
                .fold(setup, |setup, step| setup.without(*step));
            let asked = world.inside(&setup, op!["type-into", "0", EXCLUSIVE.to_string()]);
            assert_eq!(asked.line(), expected);
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", ": < \"$0\""]).arg(&path);
            if rustix::process::geteuid().is_root() {
                shell.uid(NOBODY).gid(NOBODY);
            }
            shell.stderr(std::process::Stdio::null());
            shell.status().unwrap().success()
        };
        assert!(!stays_open(&[Step::Seccomp], "ok"), "the control");
        assert!(stays_open(&[], "EPERM"));
    });
}
