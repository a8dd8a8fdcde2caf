//! bash itself as the judge of what runs.
//!
//! Scripts are generated and changed at random and really run by bash, in a throwaway directory, with
//! nothing on `PATH` but marker programs that write their own names down, as an unprivileged user where
//! the tests run as root, under limits on time, processes and file size. A *hole* is a marker that ran
//! although the text was accepted, no command of the IR has its name, and nothing in the IR is marked
//! as computed. One hole fails the test. Values that arithmetic evaluates (`x='a[$(cmd)]'; ((x))`) are
//! marked `arithmetic`, and counted apart.
//!
//! The normal run is short. `RINGFENCE_ORACLE_SAMPLES=100000` asks for that many samples in which a
//! marker ran, `RINGFENCE_ORACLE_SEED=n` for another seed.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::tests_outside_test_module,
    reason = "an integration test is all test"
)]

#[path = "oracle/generate.rs"]
mod generate;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use generate::{Chance, SEEDS, script};
use ringfence_shell::{Code, Ir};

/// Samples in which a marker ran, in the normal run.
const SHORT: usize = 400;

const SEED: u64 = 20_261_115;

/// The user that owns nothing.
const NOBODY: u32 = 65534;

/// How long one sample may take.
const PATIENCE: Duration = Duration::from_millis(1500);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

/// Whether the IR says that it does not know everything that runs. A marker is also a script that `.`
/// finds on `PATH`, so sourcing counts.
fn is_computed(ir: &Ir) -> bool {
    [
        Code::ComputedCommand,
        Code::ComputedCode,
        Code::OpaqueInterpreter,
        Code::Source,
    ]
    .iter()
    .any(|code| ir.has(*code))
}

/// What the IR names: commands, and the scripts that shells are given, which they look for on `PATH`.
fn named(ir: &Ir) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for command in &ir.commands {
        names.extend(command.name());
        if matches!(command.name(), Some("bash" | "sh")) {
            names.extend(command.words.iter().filter_map(|word| word.literal()));
        }
    }
    names
}

/// A directory with markers, where samples run.
struct Arena {
    root: tempfile::TempDir,
    serial: usize,
    user: Option<u32>,
}

impl Arena {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        let bin = root.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let logs = root.path().join("logs");
        fs::create_dir(&logs).unwrap();
        fs::set_permissions(&logs, Permissions::from_mode(0o777)).unwrap();
        for index in 0..10 {
            let marker = bin.join(format!("PWN{index}"));
            // Odd markers fail, so that both branches of everything are taken.
            fs::write(
                &marker,
                format!(
                    "#!/bin/sh\necho PWN{index} >> \"$RF_LOG\"\nexit {}\n",
                    index % 2
                ),
            )
            .unwrap();
            fs::set_permissions(&marker, Permissions::from_mode(0o755)).unwrap();
        }
        let user = fs::metadata("/proc/self")
            .ok()
            .map(|meta| std::os::unix::fs::MetadataExt::uid(&meta));
        Self {
            root,
            serial: 0,
            user: (user == Some(0)).then_some(NOBODY),
        }
    }

    fn clean(&self) -> PathBuf {
        let work = self.root.path().join("work");
        if fs::read_dir(&work).is_ok_and(|mut entries| entries.next().is_none()) {
            return work;
        }
        let _ = fs::remove_dir_all(&work);
        fs::create_dir(&work).unwrap();
        fs::set_permissions(&work, Permissions::from_mode(0o777)).unwrap();
        work
    }

    /// The names of the markers that ran.
    fn run(&mut self, text: &str) -> BTreeSet<String> {
        self.serial += 1;
        let work = self.clean();
        let log = self.root.path().join("logs").join(self.serial.to_string());
        let limited = format!("ulimit -t 1 -f 64 -u 400 -c 0 -v 2000000 2>/dev/null\n{text}");
        let mut command = Command::new("/bin/bash");
        command
            .args(["--norc", "--noprofile", "-c", &limited])
            .current_dir(&work)
            .env_clear()
            .env("PATH", self.root.path().join("bin"))
            .env("RF_LOG", &log)
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let mut child = command.spawn().unwrap();
        let start = Instant::now();
        let finished = loop {
            if child.try_wait().unwrap().is_some() {
                break true;
            }
            if start.elapsed() > PATIENCE {
                break false;
            }
            let soon = start.elapsed() < Duration::from_millis(20);
            thread::sleep(Duration::from_micros(if soon { 300 } else { 5000 }));
        };
        let lone = text.replace("&&", "").replace(">&", "").replace("&>", "");
        let lingers = lone.contains('&')
            || [">(", "<(", "coproc"]
                .iter()
                .any(|part| text.contains(part));
        if finished && lingers {
            thread::sleep(Duration::from_millis(3));
        }
        if !finished || lingers {
            end_group(child.id());
        }
        let _ = child.wait();
        let ran = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        ran.lines().map(str::to_owned).collect()
    }
}

/// Ends what a sample left behind, by its process group.
fn end_group(group: u32) {
    let _ = Command::new("/bin/sh")
        .args(["-c", &format!("kill -KILL -{group} 2>/dev/null")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

#[derive(Default)]
struct Tally {
    generated: usize,
    refused: usize,
    run: usize,
    marked: usize,
    computed: usize,
    evaluated: usize,
    holes: Vec<String>,
}

fn judge(arena: &mut Arena, text: &str, tally: &mut Tally) {
    tally.generated += 1;
    let ir = Ir::from_bash(text);
    if ir.refusal.is_some() {
        tally.refused += 1;
        return;
    }
    if !text.contains("PWN") && !text.contains("$'") {
        return;
    }
    if is_computed(&ir) {
        // Nothing to learn from running it: the IR says that it does not know.
        tally.computed += 1;
        return;
    }
    tally.run += 1;
    let ran = arena.run(text);
    if ran.is_empty() {
        return;
    }
    tally.marked += 1;
    let named = named(&ir);
    if ran.iter().any(|marker| !named.contains(marker.as_str())) {
        let hole = format!("{text:?}\n    ran {ran:?}, named {named:?}");
        println!("hole: {hole}");
        if ir.has(Code::Arithmetic) {
            // Marked: a value was evaluated. Rare, and worth a look.
            tally.evaluated += 1;
            return;
        }
        tally.holes.push(hole);
    }
}

#[test]
fn bash_runs_nothing_that_is_not_seen() {
    let wanted = usize::try_from(number("RINGFENCE_ORACLE_SAMPLES", SHORT as u64)).unwrap();
    let seed = number("RINGFENCE_ORACLE_SEED", SEED);
    assert!(
        Path::new("/bin/bash").is_file(),
        "the oracle is bash, and there is none"
    );
    let workers = 4;
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn(move || {
                    let mut arena = Arena::new();
                    let mut tally = Tally::default();
                    if worker == 0 {
                        for text in SEEDS {
                            judge(&mut arena, &text.replace("PWN", "PWN0"), &mut tally);
                        }
                    }
                    let mut chance = Chance::new(seed.wrapping_mul(31).wrapping_add(worker));
                    while tally.marked < wanted / 4
                        && tally.generated < wanted * 40 + 4000
                        && tally.holes.len() < 20
                    {
                        let text = script(&mut chance);
                        judge(&mut arena, &text, &mut tally);
                        if tally.generated % 20_000 == 0 {
                            println!(
                                "worker {worker}: {} generated, {} with a marker",
                                tally.generated, tally.marked
                            );
                        }
                    }
                    tally
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap())
            .collect()
    });
    let sum = |count: fn(&Tally) -> usize| tallies.iter().map(count).sum::<usize>();
    let marked = sum(|tally| tally.marked);
    println!(
        "seed {seed}: {} generated, {} refused, {} computed, {} run by bash, a marker ran in {marked}, {} by evaluating a value",
        sum(|tally| tally.generated),
        sum(|tally| tally.refused),
        sum(|tally| tally.computed),
        sum(|tally| tally.run),
        sum(|tally| tally.evaluated),
    );
    let holes: Vec<_> = tallies.iter().flat_map(|tally| &tally.holes).collect();
    assert!(holes.is_empty(), "{} holes", holes.len());
    assert!(
        marked * 10 >= wanted * 9,
        "only {marked} of {wanted} samples ran a marker; the oracle is blind"
    );
}

#[test]
fn the_oracle_can_see() {
    let mut arena = Arena::new();
    assert_eq!(
        arena.run("PWN3; : $(PWN4)"),
        BTreeSet::from(["PWN3".to_owned(), "PWN4".to_owned()])
    );
    assert_eq!(arena.run(": PWN3"), BTreeSet::new());
    assert_eq!(arena.run("while :; do :; done; PWN1"), BTreeSet::new());
}
