//! Many sessions of one process: nothing of them stays. A program of its own, since descriptors,
//! memory and children are those of the whole process.
#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "the whole crate is a test module"
)]

#[path = "launch/world.rs"]
mod world;

use std::io::Write as _;
use std::sync::{Arc, Barrier};

use ringfence::core::plan::{EngineChoice, Feature};
use ringfence::core::settings::Preset;
use ringfence::launch::Cause;

use world::{World, also_as_plain_user};

const SEQUENTIAL: usize = 500;
const PARALLEL: usize = 100;
const AT_ONCE: usize = 200;

/// Descriptors that are open, and memory in use, in kilobytes.
fn own() -> (usize, u64) {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let memory = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap();
    (open, memory.parse().unwrap())
}

fn world(preset: Preset) -> World {
    let mut world = World::new(preset);
    world.facts = ringfence::probe::quick();
    world.facts.cgroup = ringfence::probe::cgroup();
    world
}

/// Children of this process, dead or alive.
fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let lists = tasks.map(|task| task.unwrap().path().join("children"));
    lists
        .map(|list| std::fs::read_to_string(list).unwrap_or_default())
        .map(|list| list.split_whitespace().count())
        .sum()
}

/// Groups of sessions below our own, if there are any.
fn groups() -> Vec<String> {
    let trees = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let entries = trees.iter().filter_map(|tree| std::fs::read_dir(tree).ok());
    entries
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("ringfence-"))
        .collect()
}

#[test]
fn many_sessions_leave_nothing() {
    let track = world(Preset::Track);
    let mut landlock = world(Preset::Strict);
    landlock
        .keys
        .on_gap
        .set(ringfence::core::settings::OnGap::Report, world::flag());
    landlock.engine = EngineChoice::Named(ringfence::core::plan::Engine::Landlock);
    let worlds = Arc::new([world(Preset::Agent), track, landlock]);
    assert!(matches!(worlds[0].facts.user_namespaces, Feature::Works));
    let before_groups = groups();
    let run = |world: &World, script: &str, status: u8| {
        let report = world.launch("/bin/sh", &["-c", script]).unwrap();
        assert_eq!(report.cause, Cause::Exited { status });
    };
    // What is made once is made now.
    for world in worlds.iter() {
        run(world, "exit 3", 3);
    }
    let (open, memory) = own();
    for round in 0..SEQUENTIAL {
        let world = &worlds[round % worlds.len()];
        run(world, "(sleep 60 &) ; exit 3", 3);
    }
    let (open_after, memory_after) = own();
    assert_eq!(open_after, open, "descriptors after {SEQUENTIAL} sessions");
    assert!(
        memory_after <= memory + 2048,
        "{memory} kB, then {memory_after} kB"
    );
    for (count, script) in [(PARALLEL, "exit 3"), (AT_ONCE, "sleep 2; exit 3")] {
        let begin = Arc::new(Barrier::new(count));
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let (worlds, begin) = (Arc::clone(&worlds), Arc::clone(&begin));
                std::thread::spawn(move || {
                    begin.wait();
                    run(&worlds[number % worlds.len()], script, 3);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
    assert_eq!(own().0, open, "descriptors after {AT_ONCE} at once");
    assert_eq!(children(), 0);
    // Other programs make groups too; ours are gone.
    let after: Vec<_> = groups();
    assert!(
        after.len() <= before_groups.len() + 8,
        "{before_groups:?} {after:?}"
    );
    let _ = writeln!(
        std::io::stderr(),
        "{SEQUENTIAL} sessions in a row, {PARALLEL} and {AT_ONCE} at once: {open} descriptors, {memory} kB before and {memory_after} kB after"
    );
    also_as_plain_user("many_sessions_leave_nothing");
}
