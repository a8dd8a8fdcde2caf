//! 34: the host replaces what a session has mounted over, which takes the mount away.
//!
//! An editor that saves, `git config`, a repository that is moved and made again: all of them
//! rename something over a name, or make it new. The supervisor sees the name appear and mounts over
//! it again. Until it has, the session can write what it finds: that window is measured here.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ringfence_testkit::{Setup, World, binaries, for_each_user, say};

use super::git_metadata::{host, level};
use super::unheard_names::with_listeners;

/// A session that runs a script until it is told to stop by a file in the project.
struct Running(Child);

/// How the supervisor learns what the host does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Watched {
    ByListening,
    ByLooking,
}

impl Watched {
    const BOTH: [Self; 2] = [Self::ByListening, Self::ByLooking];

    /// Time enough for it on a busy machine.
    fn pause(self) {
        std::thread::sleep(Duration::from_millis(match self {
            Self::ByListening => 25,
            Self::ByLooking => 100,
        }));
    }
}

impl Running {
    fn start(world: &World, setup: &Setup, script: &str, watched: Watched) -> Self {
        let script = format!("echo ready; {script}");
        let mut command = world.confine(setup, ["bash", "-c", &script]);
        if watched == Watched::ByLooking {
            command = with_listeners(world, 0, &command);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Self(child)
    }

    fn stop(mut self, world: &World) -> Option<i32> {
        fs::write(world.project("stop"), "").unwrap();
        let status = self.0.wait().unwrap();
        fs::remove_file(world.project("stop")).unwrap();
        status.code()
    }
}

/// The loop: replace, wait, and see that nothing is written any more.
#[test]
fn a_replaced_file_is_protected_again() {
    for_each_user(binaries!(), |world| {
        host(
            world,
            &world.project(""),
            "git init -q .; echo '{}' > .mcp.json",
        );
        for (watched, rounds) in Watched::BOTH.into_iter().zip([60, 15]) {
            let slipped = replace_and_count(world, watched, rounds);
            say(&format!(
                "of {} files that the host replaced ({watched:?}), {slipped} were written in the \
                 moment before they were protected again",
                2 * rounds
            ));
        }
    });
}

fn replace_and_count(world: &World, watched: Watched, rounds: usize) -> usize {
    let script = "while [ ! -e stop ]; do { echo evil >> .git/config; } 2>/dev/null; \
                  { echo evil >> .mcp.json; } 2>/dev/null; done; true";
    let running = Running::start(world, &level(world, "write"), script, watched);
    let mut slipped = 0;
    for name in [".git/config", ".mcp.json"] {
        let path = world.project(name);
        let clean = fs::read_to_string(&path).unwrap();
        for round in 0..rounds {
            replace(world, &path, &clean);
            watched.pause();
            let early = evil(&path);
            watched.pause();
            assert_eq!(
                evil(&path),
                early,
                "{name} is still written in round {round}"
            );
            slipped += usize::from(early > 0);
        }
        replace(world, &path, &clean);
    }
    assert_eq!(running.stop(world), Some(0));
    slipped
}

fn replace(world: &World, path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    let (uid, gid) = world.ids();
    std::os::unix::fs::chown(&new, Some(uid), Some(gid)).unwrap();
    fs::rename(&new, path).unwrap();
}

fn evil(path: &Path) -> usize {
    fs::read_to_string(path).unwrap().matches("evil").count()
}

/// A repository that is moved away and made again is hidden as the first one was; what the host
/// makes while a session runs is protected from then on, and stays.
#[test]
fn what_the_host_makes_is_protected_and_stays() {
    for_each_user(binaries!(), |world| {
        let setup = level(world, "hidden");
        let script = "while [ ! -e stop ]; do
                [ -e go ] && { cat .git/config; ls .git; echo x > .idea/evil; echo x > .envrc
                    mkdir .idea/evil.d; } >> seen 2>/dev/null; sleep 0.02; done";
        for watched in Watched::BOTH {
            host(world, &world.project(""), "git init -q .");
            let running = Running::start(world, &setup, script, watched);
            std::thread::sleep(Duration::from_millis(1200));
            host(
                world,
                &world.project(""),
                "mv .git .git.old; git init -q .; mkdir .idea; echo '<x/>' > .idea/x.xml
                 echo 'export A=1' > .envrc; sleep 0.2; touch go; sleep 0.3",
            );
            assert_eq!(running.stop(world), Some(0));
            let seen = fs::read_to_string(world.project("seen")).unwrap();
            assert_eq!(seen, "");
            let idea: Vec<_> = fs::read_dir(world.project(".idea")).unwrap().collect();
            assert_eq!(idea.len(), 1);
            let envrc = fs::read_to_string(world.project(".envrc")).unwrap();
            assert_eq!(envrc, "export A=1\n");
            let again = "git status >/dev/null; rm -rf .git .git.old .idea .envrc go seen";
            host(world, &world.project(""), again);
        }
        // The control: with nobody to watch, the same host leaves everything open.
        let open = setup.without(ringfence_core::plan::Step::Names);
        let running = Running::start(world, &open, script, Watched::ByListening);
        host(
            world,
            &world.project(""),
            "mkdir .idea; touch go; sleep 0.2",
        );
        assert_eq!(running.stop(world), Some(0));
        assert!(world.project(".idea/evil").try_exists().unwrap());
    });
}

/// Not the repository itself but a directory above it is replaced, which takes all mounts below it
/// away.
#[test]
fn a_repository_below_a_replaced_directory_is_protected_again() {
    for_each_user(binaries!(), |world| {
        let script = "while [ ! -e stop ]; do
                [ -e go ] && { cat vendor/sub/.git/config; ls vendor/sub/.git
                    echo x > vendor/sub/.git/hooks/evil; } >> seen 2>/dev/null; sleep 0.02; done";
        let replace = "mv vendor old; git init -q vendor/sub; sleep 0.3; touch go; sleep 0.3";
        for watched in Watched::BOTH {
            host(world, &world.project(""), "git init -q vendor/sub");
            let running = Running::start(world, &level(world, "hidden"), script, watched);
            host(world, &world.project(""), replace);
            assert_eq!(running.stop(world), Some(0));
            let seen = fs::read_to_string(world.project("seen")).unwrap();
            assert_eq!(seen, "", "{watched:?}");
            let evil = world.project("vendor/sub/.git/hooks/evil");
            assert!(!evil.try_exists().unwrap());
            host(world, &world.project(""), "rm -rf vendor old go seen");
        }
        // The control: nobody watches, and it is open.
        host(world, &world.project(""), "git init -q vendor/sub");
        let open = level(world, "hidden").without(ringfence_core::plan::Step::Names);
        let running = Running::start(world, &open, script, Watched::ByListening);
        host(world, &world.project(""), replace);
        assert_eq!(running.stop(world), Some(0));
        let evil = world.project("vendor/sub/.git/hooks/evil");
        assert!(evil.try_exists().unwrap());
    });
}

/// How long a protected name that was made in spite of everything can be seen.
#[test]
fn the_window_is_short() {
    for_each_user(binaries!(), |world| {
        for watched in Watched::BOTH {
            let mut windows = windows(world, watched);
            windows.sort();
            let (count, median) = (windows.len(), windows[windows.len() / 2]);
            let longest = windows[count - 1];
            say(&format!(
                "{count} names made ({watched:?}), each seen for {median:?} (median), {longest:?} \
                 at most"
            ));
            assert!(median < Duration::from_millis(100), "{median:?}");
        }
    });
}

fn windows(world: &World, watched: Watched) -> Vec<Duration> {
    // Nobody is asked, so that every round makes the name; seeing and moving it is the same.
    let setup = world.setup().without(ringfence_core::plan::Step::Seccomp);
    let script = "while [ ! -e stop ]; do mkdir .vscode 2>/dev/null; sleep 0.01; done";
    let running = Running::start(world, &setup, script, watched);
    let path = world.project(".vscode");
    let mut windows = Vec::new();
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        if fs::symlink_metadata(&path).is_ok() {
            let seen = Instant::now();
            while fs::symlink_metadata(&path).is_ok() {}
            windows.push(seen.elapsed());
        }
    }
    assert_eq!(running.stop(world), Some(0));
    windows
}
