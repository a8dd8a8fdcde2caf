//! 119, 120, 125: the end of a session, whoever brings it about.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ringfence_testkit::{Canary, World, binaries, for_each_user, op};

/// Waits until something has written to the file; then says whether anybody still does.
fn grows(file: &Path) -> bool {
    let size = || fs::metadata(file).map_or(0, |meta| meta.len());
    let before = size();
    std::thread::sleep(Duration::from_millis(150));
    size() > before
}

fn wait_for(file: &Path) {
    let start = Instant::now();
    while fs::metadata(file).map_or(0, |meta| meta.len()) == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "nobody writes");
        std::thread::sleep(Duration::from_millis(5));
    }
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
    let start = Instant::now();
    while !survivors(world).is_empty() {
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{:?}",
            survivors(world)
        );
        std::thread::sleep(Duration::from_millis(10));
    }
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
        assert!(grows(&file), "the control");
        for process in survivors(world) {
            let number = process.rsplit('/').next().unwrap().parse().unwrap();
            let pid = rustix::process::Pid::from_raw(number).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        assert_gone(world, &file);
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
            let start = Instant::now();
            while !survivors(world).is_empty() {
                assert!(
                    start.elapsed() < Duration::from_secs(2),
                    "round {round}: {:?}",
                    survivors(world)
                );
                std::thread::sleep(Duration::from_millis(2));
            }
            match fs::metadata(&file) {
                Ok(_) => late += 1,
                Err(_) => early += 1,
            }
        }
        eprintln!("killed {early} times before the command wrote, {late} times after");
        assert!(early > 0 && late > 0);
        assert!(!grows(&file));
        canary.assert_alive();
    });
}

#[test]
fn two_sessions_know_nothing_of_each_other() {
    for_each_user(binaries!(), |world| {
        let script = "echo 1 > /tmp/shared; sleep 1; ls /tmp; ls /proc | grep -c '^[0-9]'";
        let setup = world.setup();
        let mut first = world.confine(&setup, ["sh", "-c", script]);
        let first = first.stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
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
        let output = first.wait_with_output().unwrap();
        assert!(output.status.success(), "the other session was ended");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("shared\n"));
    });
}
