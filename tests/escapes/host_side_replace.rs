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

use ringfence_core::plan::Step;
use ringfence_testkit::{Setup, World, binaries, for_each_user, keeps_within, say, wait_until};

use super::git_metadata::{host, level};
use super::unheard_names::with_listeners;

/// A session that runs a script until it is told to stop by a file in the project.
struct Running(Child);

/// How the supervisor learns what the host does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Watched {
    /// As every session is that has run for a while.
    ByListening,
    ByLooking,
    Not,
}

impl Watched {
    const BOTH: [Self; 2] = [Self::ByListening, Self::ByLooking];
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
        let running = Self(child);
        if watched == Watched::ByListening {
            wait_until("it listens", || running.listens());
        }
        running
    }

    fn listens(&self) -> bool {
        let open = fs::read_dir(format!("/proc/{}/fd", self.0.id())).unwrap();
        let mut open = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        open.any(|what| what == Path::new("anon_inode:inotify"))
    }

    fn stop(mut self, world: &World) -> Option<i32> {
        fs::write(world.project("stop"), "").unwrap();
        let status = self.0.wait().unwrap();
        fs::remove_file(world.project("stop")).unwrap();
        status.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that fails leaves nobody behind who writes for ever.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// For the script of a session: says so in `held` as soon as these names are mounted over again. The host
/// has made them all once `made` is there; before that, it may be the old ones that are.
fn tells_when_held(names: &[&str]) -> String {
    let looks = names
        .iter()
        .map(|name| format!("grep -q '/project/{name} ' /proc/self/mountinfo && "));
    format!("[ -e made ] && {}echo > held", looks.collect::<String>())
}

/// Lets the session try everything, twice at least.
fn try_it(world: &World) {
    fs::write(world.project("go"), "").unwrap();
    wait_until("it is tried", || size(&world.project("tried")) >= 2);
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
            let (slipped, mut took) = replace_and_count(world, watched, rounds);
            took.sort();
            let median = took[took.len() / 2];
            say(&format!(
                "of {} files that the host replaced ({watched:?}), {slipped} were written in the \
                 moment before they were protected again; a refusal was seen after {median:?} (median)",
                2 * rounds
            ));
            assert!(median < Duration::from_secs(1), "{median:?}");
        }
    });
}

/// How many files were written, and how long it took until writing was refused.
fn replace_and_count(world: &World, watched: Watched, rounds: usize) -> (usize, Vec<Duration>) {
    // A byte for each time that writing was refused: so it is known what was tried, and when.
    let script = "exec 3> refused.config 4> refused.mcp; while [ ! -e stop ]; do
                  { echo evil >> .git/config; } 2>/dev/null || echo >&3
                  { echo evil >> .mcp.json; } 2>/dev/null || echo >&4; done; true";
    let running = Running::start(world, &level(world, "write"), script, watched);
    let (mut slipped, mut took) = (0, Vec::new());
    for (name, refusals) in [
        (".git/config", "refused.config"),
        (".mcp.json", "refused.mcp"),
    ] {
        let path = world.project(name);
        let refused = || size(&world.project(refusals));
        let clean = fs::read_to_string(&path).unwrap();
        for round in 0..rounds {
            replace(world, &path, &clean);
            let (start, before) = (Instant::now(), refused());
            // The first of them may be from before it was replaced.
            wait_until("it is refused again", || refused() >= before + 2);
            took.push(start.elapsed());
            let (early, before) = (evil(&path), refused());
            wait_until("it is tried again", || refused() >= before + 5);
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
    (slipped, took)
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
        let script = format!(
            "while [ ! -e stop ]; do {}
                [ -e go ] && {{ {{ cat .git/config; ls .git; echo x > .idea/evil; echo x > .envrc
                    mkdir .idea/evil.d; }} >> seen 2>/dev/null; echo >> tried; }}; sleep 0.02; done",
            tells_when_held(&[".git", ".idea", ".envrc"])
        );
        for watched in Watched::BOTH {
            host(world, &world.project(""), "git init -q .");
            let running = Running::start(world, &setup, &script, watched);
            std::thread::sleep(Duration::from_millis(1200));
            host(
                world,
                &world.project(""),
                "mv .git .git.old; git init -q .; mkdir .idea; echo '<x/>' > .idea/x.xml
                 echo 'export A=1' > .envrc; touch made",
            );
            wait_until("all is held", || size(&world.project("held")) > 0);
            try_it(world);
            assert_eq!(running.stop(world), Some(0));
            let seen = fs::read_to_string(world.project("seen")).unwrap();
            assert_eq!(seen, "");
            let idea: Vec<_> = fs::read_dir(world.project(".idea")).unwrap().collect();
            assert_eq!(idea.len(), 1);
            let envrc = fs::read_to_string(world.project(".envrc")).unwrap();
            assert_eq!(envrc, "export A=1\n");
            let again =
                "git status >/dev/null; rm -rf .git .git.old .idea .envrc go seen made held tried";
            host(world, &world.project(""), again);
        }
        // The control: with nobody to watch, the same host leaves everything open.
        let open = setup.without(Step::Names);
        let running = Running::start(world, &open, &script, Watched::Not);
        host(world, &world.project(""), "mkdir .idea");
        try_it(world);
        assert_eq!(running.stop(world), Some(0));
        assert!(world.project(".idea/evil").try_exists().unwrap());
    });
}

/// Not the repository itself but a directory above it is replaced, which takes all mounts below it
/// away.
#[test]
fn a_repository_below_a_replaced_directory_is_protected_again() {
    for_each_user(binaries!(), |world| {
        let script = format!(
            "while [ ! -e stop ]; do {}
                [ -e go ] && {{ {{ cat vendor/sub/.git/config; ls vendor/sub/.git
                    echo x > vendor/sub/.git/hooks/evil; }} >> seen 2>/dev/null; echo >> tried; }}
                sleep 0.02; done",
            tells_when_held(&["vendor/sub/.git"])
        );
        let replace = "mv vendor old; git init -q vendor/sub; touch made";
        for watched in Watched::BOTH {
            host(world, &world.project(""), "git init -q vendor/sub");
            let running = Running::start(world, &level(world, "hidden"), &script, watched);
            host(world, &world.project(""), replace);
            wait_until("it is held", || size(&world.project("held")) > 0);
            try_it(world);
            assert_eq!(running.stop(world), Some(0));
            let seen = fs::read_to_string(world.project("seen")).unwrap();
            assert_eq!(seen, "", "{watched:?}");
            let evil = world.project("vendor/sub/.git/hooks/evil");
            assert!(!evil.try_exists().unwrap());
            host(
                world,
                &world.project(""),
                "rm -rf vendor old go seen made held tried",
            );
        }
        // The control: nobody watches, and it is open.
        host(world, &world.project(""), "git init -q vendor/sub");
        let open = level(world, "hidden").without(Step::Names);
        let running = Running::start(world, &open, &script, Watched::Not);
        host(world, &world.project(""), replace);
        try_it(world);
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
            keeps_within(Duration::from_millis(100), "the median", || {
                let mut windows = windows(world, watched);
                windows.sort();
                let (count, median) = (windows.len(), windows[windows.len() / 2]);
                let longest = windows[count - 1];
                say(&format!(
                    "{count} names made ({watched:?}), each seen for {median:?} (median), {longest:?} \
                     at most"
                ));
                median
            });
        }
    });
}

fn windows(world: &World, watched: Watched) -> Vec<Duration> {
    // Nobody is asked, so that every round makes the name; seeing and moving it is the same.
    let setup = world.setup().without(Step::Seccomp);
    let script = "while [ ! -e stop ]; do mkdir .vscode 2>/dev/null; sleep 0.01; done";
    let running = Running::start(world, &setup, script, watched);
    let path = world.project(".vscode");
    let mut windows = Vec::new();
    let start = Instant::now();
    // A few at least, however slow everything is.
    while start.elapsed() < Duration::from_secs(2) || windows.len() < 5 {
        assert!(start.elapsed() < Duration::from_mins(1), "none is made");
        if fs::symlink_metadata(&path).is_ok() {
            let seen = Instant::now();
            while fs::symlink_metadata(&path).is_ok() {}
            windows.push(seen.elapsed());
        }
    }
    assert_eq!(running.stop(world), Some(0));
    windows
}

/// What is hidden outside the project is hidden again, too: tools save tokens by renaming, and a directory
/// is moved away and made anew.
#[test]
fn a_replaced_secret_is_hidden_again() {
    for_each_user(binaries!(), |world| {
        let home = world.home("");
        let token = world.home(".netrc");
        let script = format!(
            "while [ ! -e stop ]; do cat {0}/.netrc {0}/.kube/config > seen 2>/dev/null
             [ -s seen ] && cp seen slipped || echo >> refused; done; true",
            home.display()
        );
        // The control: nothing watches, and both can be read.
        let rewrite = "echo NEW > next; mv next .netrc; mv .kube old; mkdir .kube; \
                       echo NEW > .kube/config; rm -r old";
        host(world, &home, "mkdir -p .kube; echo OLD > .kube/config");
        let open = world.setup().without(Step::Names);
        let running = Running::start(world, &open, &script, Watched::Not);
        host(world, &home, rewrite);
        let slipped = world.project("slipped");
        wait_until("it is read", || {
            fs::read_to_string(&slipped).is_ok_and(|text| text == "NEW\nNEW\n")
        });
        assert_eq!(running.stop(world), Some(0));
        for watched in Watched::BOTH {
            let running = Running::start(world, &world.setup(), &script, watched);
            for _ in 0..10 {
                host(world, &home, rewrite);
                let refused = || size(&world.project("refused"));
                let before = refused();
                // One of them may be from before it was replaced.
                wait_until("it is hidden again", || refused() >= before + 2);
                let _ = fs::remove_file(&slipped);
                let before = refused();
                wait_until("it stays so", || refused() >= before + 5);
                assert_eq!(size(&slipped), 0, "{watched:?}");
            }
            assert_eq!(running.stop(world), Some(0));
        }
        assert_eq!(
            fs::read_to_string(token).unwrap(),
            "NEW\n",
            "the host's own"
        );
    });
}
