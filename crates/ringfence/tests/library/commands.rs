//! A command, as `std::process::Command` would be used.

use std::io::{Read, Write};
use std::time::Duration;

use ringfence::{Cause, Policy, Sandbox, Size, SpawnError, Stdio};

use crate::policies::place;
use crate::world::also_as_plain_user;

fn sandbox(project: &std::path::Path) -> Sandbox {
    Sandbox::new(Policy::agent(project)).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn output_has_both_streams_and_the_status() {
    let (_top, project) = place();
    let output = sandbox(&project)
        .command("sh")
        .args(["-c", "echo out; echo err >&2; pwd; exit 3"])
        .output()
        .unwrap();
    assert_eq!(output.report.cause, Cause::Exited { status: 3 });
    assert_eq!(text(&output.stderr), "err\n");
    assert_eq!(
        text(&output.stdout),
        format!("out\n{}\n", project.display())
    );
    assert!(!output.truncated);
    also_as_plain_user("commands::output_has_both_streams_and_the_status");
}

#[test]
fn standard_input_is_a_pipe_a_file_or_nothing() {
    let (_top, project) = place();
    let sandbox = sandbox(&project);
    let mut session = sandbox
        .command("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    session.stdin.take().unwrap().write_all(b"piped").unwrap();
    let mut shown = String::new();
    session
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut shown)
        .unwrap();
    assert_eq!(shown, "piped");
    assert!(session.wait().unwrap().success());

    let file = project.join("file");
    std::fs::write(&file, "from a file").unwrap();
    let file = std::fs::File::open(file).unwrap();
    let output = sandbox.command("cat").stdin(file.into()).output().unwrap();
    assert_eq!(text(&output.stdout), "from a file");
    // Not the caller's own.
    let output = sandbox.command("cat").output().unwrap();
    assert_eq!((output.report.success(), output.stdout.len()), (true, 0));
    let status = sandbox
        .command("cat")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn a_stream_that_leads_out_is_refused() {
    let (_top, project) = place();
    let directory = std::fs::File::open("/").unwrap();
    let refusal = sandbox(&project)
        .command("true")
        .stdin(directory.into())
        .status();
    assert!(matches!(
        refusal,
        Err(SpawnError::Launch(ringfence::LaunchError::Stream { .. }))
    ));
}

#[test]
fn variables_set_here_pass_and_others_only_by_policy() {
    let (_top, project) = place();
    let print = |policy: Policy, change: fn(&mut ringfence::Command)| {
        let sandbox = Sandbox::new(policy).unwrap();
        let mut command = sandbox.command("/usr/bin/env");
        change(&mut command);
        text(&command.output().unwrap().stdout)
    };
    let plain = || Policy::agent(&project);
    // Cargo sets this one for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!print(plain(), |_| {}).contains("CARGO_MANIFEST_DIR="));
    let passed = print(plain().pass_env("CARGO_MANIFEST_DIR"), |_| {});
    assert!(passed.contains("CARGO_MANIFEST_DIR="));
    let set = print(plain(), |command| {
        command
            .env("SET_HERE", "first")
            .env("SET_HERE", "second")
            .env("GONE", "x")
            .env_remove("GONE");
    });
    assert_eq!(set.matches("SET_HERE=").count(), 1);
    assert!(set.contains("SET_HERE=second\n") && !set.contains("GONE="));
    let policy = plain()
        .pass_env("CARGO_MANIFEST_DIR")
        .set_env("BY_POLICY", "p");
    let cleared = print(policy, |command| {
        command
            .env_clear()
            .env("ONLY", "this")
            .env("BY_POLICY", "mine");
    });
    assert!(!cleared.contains("CARGO_MANIFEST_DIR=") && cleared.contains("ONLY=this\n"));
    assert_eq!(cleared.matches("BY_POLICY=").count(), 1, "{cleared}");
    assert!(cleared.contains("BY_POLICY=mine\n"), "{cleared}");
}

#[test]
fn what_cannot_be_run_says_why() {
    let (_top, project) = place();
    let sandbox = sandbox(&project);
    let missing = sandbox.command("no-such-program").spawn();
    assert!(matches!(
        missing,
        Err(SpawnError::Launch(ringfence::LaunchError::NotFound { .. }))
    ));
    let plain = project.join("plain");
    std::fs::write(&plain, "text").unwrap();
    let refused = sandbox.command(&plain).spawn();
    assert!(matches!(
        refused,
        Err(SpawnError::Launch(
            ringfence::LaunchError::NotExecutable { .. }
        ))
    ));
    let outside = sandbox.command("true").current_dir("/nonexistent").spawn();
    assert!(outside.is_err());
    let below = project.join("below");
    std::fs::create_dir(&below).unwrap();
    let output = sandbox
        .command("pwd")
        .current_dir("below")
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout).trim_end(), below.to_str().unwrap());
}

#[test]
fn a_flood_is_kept_in_part_and_the_command_is_not_held_up() {
    let (_top, project) = place();
    let output = sandbox(&project)
        .command("sh")
        .args([
            "-c",
            "head -c 30000000 /dev/zero; head -c 20000000 /dev/zero >&2; echo en''d",
        ])
        .keep(1000)
        .output()
        .unwrap();
    assert!(output.report.success() && output.truncated);
    assert_eq!((output.stdout.len(), output.stderr.len()), (1000, 1000));
}

#[test]
fn a_terminal_of_its_own_is_read_typed_to_and_resized() {
    let (_top, project) = place();
    let size = Size {
        rows: 31,
        columns: 97,
    };
    let mut session = sandbox(&project)
        .command("sh")
        .args([
            "-c",
            "tty; stty size; read x; echo got=$x; stty size; test -t 2",
        ])
        .pty(size)
        .spawn()
        .unwrap();
    let mut terminal = session.terminal.take().unwrap();
    let mut shown = String::new();
    let mut until = |wanted: &str, terminal: &mut ringfence::Terminal| {
        while !shown.contains(wanted) {
            let mut buffer = [0; 1024];
            let count = terminal.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "it ended: {shown:?}");
            shown.push_str(&text(&buffer[..count]));
        }
    };
    until("/dev/pts/0\r\n31 97\r\n", &mut terminal);
    session
        .resize(Size {
            rows: 50,
            columns: 60,
        })
        .unwrap();
    terminal.write_all(b"typed\n").unwrap();
    until("got=typed\r\n50 60\r\n", &mut terminal);
    assert!(session.wait().unwrap().success());
    // It ends with the session.
    assert_eq!(terminal.read(&mut [0; 16]).unwrap(), 0);
    also_as_plain_user("commands::a_terminal_of_its_own_is_read_typed_to_and_resized");
}

#[test]
fn time_runs_out() {
    let (_top, project) = place();
    let policy = Policy::agent(&project).wall_time(Duration::from_millis(300));
    let report = Sandbox::new(policy)
        .unwrap()
        .command("sleep")
        .arg("1000")
        .status();
    assert_eq!(report.unwrap().cause, Cause::WallTime);
}
