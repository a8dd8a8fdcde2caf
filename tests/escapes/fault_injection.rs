//! Every act of a launch fails once: nothing has run, and nothing is left.

use std::collections::BTreeSet;
use std::fs;

use ringfence_core::plan::Step;
use ringfence_testkit::{Hands, binaries, for_each_user, steps};

/// The mounts of the host, without those that other programs come and go with.
fn mounts() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Processes whose program lies in `directory`.
fn processes_of(directory: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let Ok(program) = fs::read_link(path.join("exe")) else {
            continue;
        };
        if program.starts_with(directory) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn no_act_that_fails_leaves_anything() {
    for_each_user(binaries!(), |world| {
        let marker = world.project("marker");
        let before = mounts();
        let snapshot = world.snapshot();
        let ways = steps().flat_map(|step| Hands::ALL.map(|hands| (step, hands)));
        for (step, hands) in ways {
            let mut setup = world.setup().failing_at(step).by(hands);
            if step == Step::Gate {
                setup = setup.settings(r#"{ "network": { "hosts": ["example.org"] } }"#);
            }
            let command = ["touch".as_ref(), marker.as_os_str()];
            let done = world.run(&setup, command);
            let ran = fs::symlink_metadata(&marker).is_ok();
            assert!(!ran, "{step:?}: the command ran");
            if done.status == 77 {
                // A plan has a cgroup only where one may be made.
                assert_eq!(step, Step::Cgroup, "{}", done.stderr);
                ringfence_testkit::not_run("cgroup, to be refused one");
                continue;
            }
            assert_eq!(done.status, 125, "{step:?}: {}", done.stderr);
            assert!(
                done.stderr.contains("could not"),
                "{step:?}: {}",
                done.stderr
            );
            assert_eq!(processes_of(&world.path("bin")), [""; 0], "{step:?}");
        }
        assert_eq!(mounts(), before);
        snapshot.assert_same(world.guarded());
        let left: Vec<_> = fs::read_dir(world.project(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left.len(), 2, "only what was there: {left:?}");
    });
}

#[test]
fn a_launch_without_a_fault_runs() {
    for_each_user(binaries!(), |world| {
        let marker = world.project("marker");
        let command = ["touch".as_ref(), marker.as_os_str()];
        world.run(&world.setup(), command).assert_status(0);
        assert!(marker.try_exists().unwrap());
    });
}
