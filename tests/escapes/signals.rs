//! 106: ending, or slowing, processes of the host.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use ringfence_core::plan::Step;
use ringfence_testkit::{Canary, Done, World, binaries, case, denied, for_each_user, op};

#[test]
fn no_process_outside_is_signalled() {
    for_each_user(binaries!(), |world| {
        for operation in ["kill", "pidfd-kill"] {
            let control = Canary::start(world.command("sleep").arg("60"));
            let free = world.probe([operation, &control.pid().to_string()]);
            assert_eq!(free.line(), "ok");
            let mut canary = Canary::start(world.command("sleep").arg("60"));
            let pid = canary.pid().to_string();
            let refused = [denied([operation, &pid], "ESRCH")];
            world.check_confined(&world.setup(), &refused);
            world.check_confined(&world.setup().without(Step::Landlock), &refused);
            canary.assert_alive();
        }
        // Everybody, as far as the session can see.
        let mut canary = Canary::start(world.command("sleep").arg("60"));
        let done = world.run(&world.setup(), ["sh", "-c", "kill -9 -1; true"]);
        assert!([0, 137].contains(&done.status));
        canary.assert_alive();
    });
}

/// Runs a program in the process group of somebody else; says whether that ended them.
fn beside(world: &World, program: &mut Command) -> (Done, bool) {
    let mut leader = world.command("sleep");
    let canary = Canary::start(leader.arg("60").process_group(0));
    let group = i32::try_from(canary.pid()).unwrap();
    let done = Done::of(program.process_group(group));
    (done, canary.was_ended_before())
}

/// A process group can reach over the edge of a pid namespace: the launcher is in it, and whoever
/// was started beside it.
#[test]
fn the_callers_process_group_is_not_signalled() {
    for_each_user(binaries!(), |world| {
        let probe = world.path("bin/probe");
        let (free, dead) = beside(world, world.command(&probe).arg("kill-group"));
        assert_eq!((free.line(), dead), ("ok", true), "the control");
        let setup = world.setup();
        let (done, dead) = beside(world, world.confine(&setup, [&probe]).arg("kill-group"));
        assert!(!dead, "the neighbour is dead");
        assert_eq!(done.status, 0, "the launcher is dead: {}", done.stderr);
    });
}

/// Where Landlock does not keep signals inside, the filter refuses the one number that means
/// processes outside.
#[test]
fn without_scopes_the_callers_process_group_is_not_signalled() {
    for_each_user(binaries!(), |world| {
        let mut setup = world.setup();
        setup.landlock_abi = Some(5);
        let probe = world.path("bin/probe");
        let (done, dead) = beside(world, world.confine(&setup, [&probe]).arg("kill-group"));
        assert_eq!((done.line(), dead), ("EPERM", false));
        let setup = setup.without(Step::Seccomp);
        let (_, dead) = beside(world, world.confine(&setup, [&probe]).arg("kill-group"));
        assert!(dead, "the filter is what holds");
    });
}

#[test]
fn the_callers_process_group_is_not_slowed() {
    for_each_user(binaries!(), |world| {
        let probe = world.path("bin/probe");
        let nice = |pid: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            let fields: Vec<_> = stat
                .rsplit(')')
                .next()
                .unwrap()
                .split_whitespace()
                .collect();
            fields[16].to_owned()
        };
        let neighbours = |program: &mut Command| {
            let mut leader = world.command("sleep");
            let canary = Canary::start(leader.arg("60").process_group(0));
            let group = i32::try_from(canary.pid()).unwrap();
            let done = Done::of(program.process_group(group));
            (done, nice(canary.pid()))
        };
        // setpriority(PRIO_PGRP, 0, 10)
        let slow = op!["call", libc::SYS_setpriority.to_string(), "1", "0", "10"];
        let (free, nice) = neighbours(world.command(&probe).args(&slow));
        assert_eq!((free.line(), nice.as_str()), ("ok", "10"), "the control");
        let setup = world.setup();
        let (_, nice) = neighbours(world.confine(&setup, [&probe]).args(&slow));
        assert_eq!(nice, "0", "the neighbour was slowed");
    });
}

#[test]
fn the_first_process_cannot_be_ended_from_inside() {
    for_each_user(binaries!(), |world| {
        let cases = [case(["kill", "1"], "", "ok")];
        // The kernel takes the signal and drops it; the session goes on.
        world.check_confined(&world.setup().without(Step::Landlock), &cases);
        let done = world.run(&world.setup(), ["sh", "-c", "kill -9 1; echo on"]);
        assert_eq!(done.text(), "on");
    });
}

/// The first process has nothing to do but to wait; one that may have no descriptors cannot even do that.
#[test]
fn nobody_takes_from_the_first_process() {
    for_each_user(binaries!(), |world| {
        let take = "prlimit --pid 1 --nofile=0:0";
        let done = world.run(&world.setup(), ["sh", "-c", take]);
        assert_ne!(done.status, 0);
        assert!(done.stderr.contains("not permitted"), "{}", done.stderr);
        // Its own are the command's business, by number as well.
        let own = "prlimit --pid $$ --nofile=50:50 && ulimit -n";
        let done = world.run(&world.setup(), ["sh", "-c", own]);
        assert_eq!((done.status, done.line()), (0, "50"), "{}", done.stderr);
        // Without the filter it is taken, and then the session ends: nobody spins, nobody is left.
        let setup = world.setup_with(r#""limits": {"wall": 60}"#);
        let open = setup.without(Step::Seccomp);
        let start = Instant::now();
        let script = format!("{take} && (sleep 0 & sleep 0); sleep 50");
        let done = world.run(&open, ["sh", "-c", &script]);
        assert_ne!(done.status, 0, "{}", done.stderr);
        assert!(start.elapsed() < Duration::from_secs(40), "it went on");
    });
}
