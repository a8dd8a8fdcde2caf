//! 15, 140: a granted directory is exchanged with a link to another one, before, while and after
//! somebody is asked, and while a stored grant is used (looped).

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::answering::there;
use crate::stage::{Stage, for_each_user};

const TIME: Duration = Duration::from_secs(4);
const SWAPS: usize = 10_000;
/// Both outcomes are seen sooner or later.
const PATIENCE: Duration = Duration::from_mins(2);
const BURST: usize = 400;
/// Some shorter than a launch, some longer.
const PAUSES: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(30),
    Duration::from_millis(90),
    Duration::from_millis(250),
];

/// Exchanges a directory and a link all the time, with pauses in which a launch can succeed.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapper {
    fn start(stage: &Stage) -> Self {
        let (stop, swaps) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let home = stage.world.home();
        let thread = std::thread::spawn({
            let (stop, swaps) = (Arc::clone(&stop), Arc::clone(&swaps));
            move || {
                let (granted, link) = (home.join("granted"), home.join("link"));
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..BURST {
                        renameat_with(CWD, &granted, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                        swaps.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_micros(20));
                    }
                    // An even number: the directory is where it was granted. The longest pause grows:
                    // on a busy machine a launch may take longer than any that was thought of.
                    let rounds = swaps.load(Ordering::Relaxed) / BURST;
                    let longer = u32::try_from(1 + rounds / 40).unwrap();
                    std::thread::sleep(PAUSES[rounds % 4] * longer);
                }
            }
        });
        Self {
            stop,
            swaps,
            thread: Some(thread),
        }
    }

    fn count(&self) -> usize {
        self.swaps.load(Ordering::Relaxed)
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn raced(stage: &Stage, what: &str, flags: &[&str]) {
    let home = stage.world.home();
    let (granted, target) = (home.join("granted"), home.join("target"));
    let write = "echo x > ../granted/new";
    let words = [
        &["run", "--no-prompt"],
        flags,
        &["--", "/bin/sh", "-c", write],
    ]
    .concat();
    let swapper = Swapper::start(stage);
    let start = Instant::now();
    let (mut ran, mut refused, mut held) = (0, 0, 0);
    while start.elapsed() < TIME || swapper.count() < SWAPS || ran == 0 || refused + held == 0 {
        assert!(start.elapsed() < PATIENCE, "{what}: the race was never run");
        let output = stage.command(&words).output().unwrap();
        match output.status.code() {
            Some(0) => ran += 1,
            // The grant did not count, and so the command could not write.
            Some(1 | 2) if !output.stderr.starts_with(b"error:") => held += 1,
            Some(2 | 125) => refused += 1,
            _ => panic!("{what}: {output:?}"),
        }
        let planted = fs::read_dir(&target).unwrap().count();
        assert_eq!(planted, 0, "{what}: written through the link");
    }
    let swaps = swapper.count();
    drop(swapper);
    let line = format!(
        "{what}: {swaps} exchanges, {ran} ran, {refused} were refused, {held} could not write, no leak\n"
    );
    let _ = std::io::stderr().write_all(line.as_bytes());
    let _ = fs::remove_file(granted.join("new"));
}

#[test]
fn only_the_granted_directory_is_ever_written() {
    for_each_user(|stage| {
        let home = stage.world.home();
        for name in ["granted", "target"] {
            fs::create_dir(home.join(name)).unwrap();
            stage.give(&home.join(name));
        }
        symlink("target", home.join("link")).unwrap();
        // The link leads there for everybody who follows it.
        fs::write(home.join("link/new"), "").unwrap();
        fs::remove_file(home.join("target/new")).unwrap();

        // Somebody who says yes to the directory, and to nothing else.
        let yes = crate::answering::answering(&home.join("asked"), "once");
        let granted = home.join("granted");
        let path = granted.to_str().unwrap();
        let wanted = format!("write {path}");
        let line = format!(
            "read -r q; case $q in *'\"permissions_shown\":[\"{wanted}\"]'*) printf '%s\\n' \"$q\" | {yes};; *) exit 1;; esac"
        );
        raced(
            stage,
            "asked each time",
            &["--approve-cmd", &line, "--request-write", path],
        );
        let add = ["grants", "add", "--thread", "t", "--write", "../granted"];
        stage.done(&add);
        raced(stage, "granted to a thread", &["--thread", "t"]);
        stage.done(&["grants", "add", "--write", "../granted"]);
        raced(stage, "granted for always", &[]);
    });
}

/// Without any race: a link that came after the grant is not followed.
#[test]
fn a_stored_grant_does_not_follow_a_link_that_came_later() {
    for_each_user(|stage| {
        let home = stage.world.home();
        let (outside, target) = (home.join("outside"), home.join("target"));
        for directory in [&outside, &target] {
            fs::create_dir(directory).unwrap();
            stage.give(directory);
        }
        let write = "echo x > ../outside/made";
        for flags in [&["--thread", "one"][..], &[]] {
            stage.done(&[&["grants", "add", "--write", "../outside"], flags].concat());
            let words = [
                &["run", "--no-prompt"],
                flags,
                &["--", "/bin/sh", "-c", write],
            ]
            .concat();
            stage.done(&words);
            fs::rename(&outside, home.join("aside")).unwrap();
            symlink(&target, &outside).unwrap();
            let ran = stage.run(&words);
            assert_ne!(ran.code, Some(0), "{flags:?}: {ran:?}");
            assert!(!there(&target.join("made")), "{flags:?}");
            let told = ran.errors.contains("outside");
            assert!(told, "it is explained: {ran:?}");
            fs::remove_file(&outside).unwrap();
            fs::rename(home.join("aside"), &outside).unwrap();
            fs::remove_file(outside.join("made")).unwrap();
            let revoke = ["grants", "revoke", "--write", "../outside"];
            stage.done(&[&revoke[..], flags].concat());
        }
    });
}
