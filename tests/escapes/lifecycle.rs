//! 121, 123, 127, 131: holding on to a pipe, dodging the time limit, taking every process or
//! processor.

use std::time::{Duration, Instant};

use ringfence_testkit::{Canary, Setup, World, binaries, for_each_user, keeps_within, say};

/// Each kind of session, with further settings.
fn setups(world: &World, keys: &str) -> [(&'static str, Setup); 3] {
    let mut landlock = world.setup_with(&format!(r#""on_gap": "report", {keys}"#));
    landlock.landlock_engine = true;
    [
        ("namespaces", world.setup_with(keys)),
        ("landlock", landlock),
        (
            "track",
            world.setup_with(&format!(r#""preset": "track", {keys}"#)),
        ),
    ]
}

/// Whoever reads what a command prints must not wait for those it left behind.
#[test]
fn a_pipe_that_somebody_holds_is_let_go() {
    for_each_user(binaries!(), |world| {
        let script = "(setsid sleep 60 &); echo whole";
        let reads = |command: &mut std::process::Command, patience| {
            let mut child = command
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut out = child.stdout.take().unwrap();
            let reader = std::thread::spawn(move || {
                let mut text = String::new();
                std::io::Read::read_to_string(&mut out, &mut text).unwrap();
                text
            });
            child.wait().unwrap();
            let start = Instant::now();
            while !reader.is_finished() && start.elapsed() < patience {
                std::thread::sleep(Duration::from_millis(5));
            }
            reader.is_finished().then(|| reader.join().unwrap())
        };
        // The control: outside, the reader waits for the one that was left behind, which is there
        // for far longer than anybody looks.
        let mut free = world.command("sh");
        free.args(["-c", "(setsid sleep 20 &); echo whole"])
            .stderr(std::process::Stdio::null());
        assert_eq!(reads(&mut free, Duration::from_secs(1)), None);
        for (name, setup) in setups(world, r#""limits": {"wall": 60}"#) {
            let mut confined = world.confine(&setup, ["sh", "-c", script]);
            let read = reads(&mut confined, Duration::from_secs(30));
            assert_eq!(read.as_deref(), Some("whole\n"), "{name}");
        }
    });
}

#[test]
fn the_time_limit_cannot_be_dodged() {
    for_each_user(binaries!(), |world| {
        for (name, setup) in setups(world, r#""limits": {"wall": 1}"#) {
            for dodge in [
                "trap '' TERM HUP INT QUIT XCPU ALRM; while :; do sleep 60; done",
                "kill -STOP $$; sleep 60",
                "kill -STOP 0; sleep 60",
                "while :; do (sleep 60 &) ; sleep 0.01; done",
            ] {
                let what = format!("{name}, {dodge}");
                keeps_within(Duration::from_secs(3), &what, || {
                    let start = Instant::now();
                    // In a group of its own, so that stopping the group stops nobody else.
                    let script = format!("exec setsid -w sh -c \"{dodge}\"");
                    let done = world.run(&setup, ["sh", "-c", &script]);
                    let took = start.elapsed();
                    assert_eq!(done.status, 124, "{what}: {}", done.stderr);
                    assert!(took >= Duration::from_secs(1), "{what}: {took:?}");
                    took
                });
            }
        }
    });
}

/// A limit on processes holds inside, and the user outside can still start some.
#[test]
fn a_fork_bomb_runs_into_its_limit() {
    for_each_user(binaries!(), |world| {
        if world.ids().0 == 0 {
            // Root is held by a controller alone, and the plan refuses where there is none.
            let refused = world.run(
                &world.setup_with(r#""limits": {"processes": 64}"#),
                ["true"],
            );
            assert!([0, 125].contains(&refused.status), "{}", refused.stderr);
            return;
        }
        let setup = world.setup_with(r#""limits": {"processes": 64, "wall": 20}"#);
        let mut canary = Canary::start(world.command("sleep").arg("60"));
        // Counts how many it gets, and ends.
        let bomb = "i=0; while [ $i -lt 500 ]; do sleep 5 & i=$((i+1)); done; wait";
        let done = world.run(&setup, ["bash", "-c", bomb]);
        assert_ne!(done.status, 0, "500 processes were given");
        let refusals = done.stderr.matches("fork").count();
        assert!(refusals > 0, "{}", done.stderr);
        let free = world.command("true").status().unwrap();
        assert!(free.success());
        canary.assert_alive();
        say(&format!("a fork bomb was refused {refusals} times"));
    });
}

/// Nobody inside gets ahead of every other process of the machine.
#[test]
fn a_real_time_priority_is_not_given() {
    for_each_user(binaries!(), |world| {
        let ahead = [["chrt", "-f", "1", "true"], ["nice", "-n", "-9", "true"]];
        for words in ahead {
            let free = world.command(words[0]).args(&words[1..]).output().unwrap();
            if world.ids().0 == 0 {
                assert!(free.status.success(), "the control: {words:?}");
                assert!(free.stderr.is_empty(), "the control: {words:?}");
            }
            for (name, setup) in setups(world, r#""limits": {"wall": 60}"#) {
                // Whoever restricts nothing does not restrict this.
                if name == "track" {
                    continue;
                }
                let done = world.run(&setup, words);
                let refused = done.status != 0 || done.stderr.contains("ermission denied");
                assert!(refused, "{name}, {words:?}: {}", done.stderr);
            }
        }
    });
}
