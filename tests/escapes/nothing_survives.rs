//! 119, 120, 125: the end of a session, whoever brings it about.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ringfence_testkit::{Canary, World, binaries, comes_within, for_each_user, op, wait_until};

/// What is promised.
const SOON: Duration = Duration::from_secs(2);

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |meta| meta.len())
}

/// Whether anybody still writes to the file.
fn grows(file: &Path) -> bool {
    let before = size(file);
    std::thread::sleep(Duration::from_millis(150));
    size(file) > before
}

fn wait_for(file: &Path) {
    wait_until("somebody writes", || size(file) > 0);
}

/// Processes whose program lies in this world.
fn survivors(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let Ok(program) = fs::read_link(path.join("exe")) else {
            continue;
        };
        if program.starts_with(world.path("bin")) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn assert_gone(world: &World, file: &Path) {
    let gone = comes_within(SOON, || survivors(world).is_empty());
    assert!(gone, "{:?}", survivors(world));
    assert!(!grows(file), "somebody still writes");
}

#[test]
fn a_daemon_ends_with_its_session() {
    for_each_user(binaries!(), |world| {
        let file = world.project("growing");
        // The control: without a sandbox it goes on.
        let free = world.probe(op!["daemon", &file]);
        assert_eq!(free.line(), "ok");
        wait_for(&file);
        let before = size(&file);
        wait_until("the control goes on", || size(&file) > before);
        wait_until("the control is ended", || {
            for process in survivors(world) {
                let number = process.rsplit('/').next().unwrap().parse().unwrap();
                let pid = rustix::process::Pid::from_raw(number).unwrap();
                // Whoever is on the way out is gone by now.
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
            survivors(world).is_empty()
        });
        for operation in [op!["daemon", &file], op!["storm", &file, "4"]] {
            fs::remove_file(&file).unwrap();
            // Long enough for it to have settled in.
            let mut operations = operation;
            operations.extend(op![",", "sleep", "400"]);
            let done = world.inside(&world.setup(), &operations);
            done.assert_status(0);
            wait_for(&file);
            assert_gone(world, &file);
        }
    });
}

#[test]
fn stopped_and_deaf_processes_end_too() {
    for_each_user(binaries!(), |world| {
        let file = world.project("growing");
        let script = format!(
            "trap '' HUP TERM INT QUIT; (trap '' HUP TERM; nohup '{probe}' grow '{file}' >/dev/null 2>&1 &) ; \
             '{probe}' grow '{file}' & kill -STOP $!; sleep 0.3",
            probe = world.path("bin/probe").display(),
            file = file.display(),
        );
        world
            .run(&world.setup(), ["bash", "-c", &script])
            .assert_status(0);
        wait_for(&file);
        assert_gone(world, &file);
    });
}

/// The supervisor is killed at many points, most of them while the session is being set up.
#[test]
fn everything_ends_with_its_supervisor() {
    for_each_user(binaries!(), |world| {
        let file = world.project("growing");
        let mut canary = Canary::start(world.command("sleep").arg("60"));
        let (mut early, mut late) = (0, 0);
        for round in 0..50_u64 {
            let mut setup = world.setup();
            setup.pause = round % 2;
            let _ = fs::remove_file(&file);
            let mut command = world.confine(&setup, [world.path("bin/probe")]);
            command
                .args(op!["daemon", &file, ",", "grow", &file])
                .stdout(Stdio::null());
            let mut supervisor = command.spawn().unwrap();
            if round % 10 == 9 {
                wait_for(&file);
            } else {
                std::thread::sleep(Duration::from_micros(round * 700));
            }
            supervisor.kill().unwrap();
            supervisor.wait().unwrap();
            let gone = comes_within(SOON, || survivors(world).is_empty());
            assert!(gone, "round {round}: {:?}", survivors(world));
            match fs::metadata(&file) {
                Ok(_) => late += 1,
                Err(_) => early += 1,
            }
        }
        ringfence_testkit::say(&format!(
            "killed {early} times before the command wrote, {late} times after"
        ));
        assert!(early > 0 && late > 0);
        assert!(!grows(&file));
        canary.assert_alive();
    });
}

#[test]
fn two_sessions_know_nothing_of_each_other() {
    for_each_user(binaries!(), |world| {
        let script = "echo 1 > /tmp/shared; : > there; until [ -e go ]; do sleep 0.05; done
            ls /tmp; ls /proc | grep -c '^[0-9]'";
        let setup = world.setup();
        let mut first = world.confine(&setup, ["sh", "-c", script]);
        let first = first.stdout(Stdio::piped()).spawn().unwrap();
        wait_until("the first session is there", || {
            world.project("there").try_exists().unwrap()
        });
        let second = world.run(
            &setup,
            [
                "sh",
                "-c",
                "ls /tmp; ls /proc | grep -c '^[0-9]'; kill -9 -1; true",
            ],
        );
        let text = second.text();
        assert!(!text.contains("shared"), "{text}");
        fs::write(world.project("go"), "").unwrap();
        let output = first.wait_with_output().unwrap();
        assert!(output.status.success(), "the other session was ended");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("shared\n"));
    });
}
