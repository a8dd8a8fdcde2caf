//! What becomes of a session whose handle is dropped.

use ringfence::core::settings::Preset;
use ringfence::launch::{Command, prepare};

use crate::world::{World, also_as_plain_user, wait_until};

/// Processes with this argument.
fn with_argument(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|part| part == word.as_bytes())
        })
        .count()
}

#[test]
fn a_session_outlives_no_handle() {
    let odd = format!("300.{}", std::process::id());
    for preset in [Preset::Agent, Preset::Track] {
        let mut world = World::new(preset);
        world.facts = ringfence::probe::quick();
        world.facts.cgroup = ringfence::probe::cgroup();
        let policy = world.policy();
        let plan = world.plan(&policy);
        let script = format!("trap '' TERM HUP; setsid sleep {odd} & sleep {odd}");
        let command = Command {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            directory: world.project.clone(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        };
        let prepared = prepare(&policy, &plan, &command, world.options.clone()).unwrap();
        let running = prepared.spawn().unwrap();
        wait_until("both sleep", || with_argument(&odd) >= 2);
        drop(running);
        assert_eq!(with_argument(&odd), 0, "{preset:?}");
    }
    also_as_plain_user("handle::a_session_outlives_no_handle");
}
