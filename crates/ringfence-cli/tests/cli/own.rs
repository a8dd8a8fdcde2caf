//! ringfence's own program, settings and state, where a session was given what they lie in.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::stage::{Stage, for_each_user};
use crate::world::Ran;

const EVIL: &str = "#!/bin/sh\necho evil\n";

/// Copies the program to a place in the home, by a process of its own: see `copy_program`.
fn installed(stage: &Stage, at: &str) -> std::path::PathBuf {
    let program = stage.world.home().join(at);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_ringfence")).arg(&program);
    assert!(copy.status().unwrap().success());
    for part in program
        .ancestors()
        .take_while(|part| *part != stage.world.home())
    {
        stage.give(part);
    }
    program
}

fn run(stage: &Stage, program: &Path, words: &[&str]) -> Ran {
    stage
        .world
        .ran(&stage.other(program, words).output().unwrap())
}

/// What lies beside it is written, and the program is what it was.
#[test]
fn the_program_is_not_replaced_by_what_it_starts() {
    for_each_user(|stage| {
        for (at, given) in [
            (".cargo/bin/ringfence", "../.cargo"),
            ("project/target/debug/ringfence", "target"),
        ] {
            let program = installed(stage, at);
            let before = fs::read(&program).unwrap();
            let replace = format!(
                "printf '{EVIL}' > {given}/x; chmod 755 {given}/x; mv -f {given}/x '{0}'; rm -f '{0}'; echo >> '{0}'",
                program.display()
            );
            let ran = run(
                stage,
                &program,
                &["run", "--write", given, "--", "sh", "-c", &replace],
            );
            assert!(
                ran.errors.contains("busy") || ran.errors.contains("Read-only"),
                "{}",
                ran.errors
            );
            assert_eq!(fs::read(&program).unwrap(), before, "{}", ran.errors);
            assert_eq!(
                fs::read(stage.world.project().join(given).join("x")).unwrap(),
                EVIL.as_bytes()
            );

            let words = ["explain", "--write", given, program.to_str().unwrap()];
            let ran = run(stage, &program, &words);
            assert!(
                ran.out
                    .contains("built-in rule for ringfence's own program"),
                "{}",
                ran.out
            );
            assert!(!ran.out.contains("to write once"), "{}", ran.out);

            let ran = run(
                stage,
                &program,
                &["run", "--write", program.to_str().unwrap(), "--", "true"],
            );
            assert_eq!(ran.code, Some(2), "{}", ran.errors);
            assert!(
                ran.errors.contains("is the program that is running"),
                "{}",
                ran.errors
            );

            // The control: whoever is not confined replaces it.
            let ran = run(
                stage,
                &program,
                &["run", "--preset", "track", "--", "sh", "-c", &replace],
            );
            assert_ne!(
                fs::read(&program).unwrap_or_default(),
                before,
                "{}",
                ran.errors
            );
        }
    });
}

#[test]
fn its_settings_and_state_are_given_to_nobody() {
    for_each_user(|stage| {
        let settings = stage.world.user_settings("{}");
        stage.give(settings.parent().unwrap());
        stage.give(&settings);
        let write = format!("echo '{{ \"git\": \"full\" }}' > '{}'", settings.display());
        for given in ["../.config/ringfence", "../.config/ringfence/settings.json"] {
            let ran = stage.run(&["run", "--write", given, "--", "sh", "-c", &write]);
            assert_eq!(ran.code, Some(2), "{}", ran.errors);
            assert!(ran.errors.contains("is ringfence's own"), "{}", ran.errors);
        }
        stage.run(&["run", "--write", "../.config", "--", "sh", "-c", &write]);
        assert_eq!(fs::read(&settings).unwrap(), b"{}");
        stage.run(&["run", "--preset", "track", "--", "sh", "-c", &write]);
        assert_ne!(fs::read(&settings).unwrap(), b"{}", "the control");
    });
}
