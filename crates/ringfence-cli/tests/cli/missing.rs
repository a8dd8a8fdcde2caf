//! Programs that are not found inside, and why.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::world::World;

/// Makes a script that somebody can run.
fn script(path: &Path, text: &str) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_owned()
}

/// A compiled program whose loader is called something else.
fn without_loader(path: &Path) {
    let mut program = fs::read("/bin/true").unwrap();
    let (usual, other) = (b"/ld-linux", b"/ld-absen");
    let at = program.windows(usual.len()).position(|part| part == usual);
    let at = at.unwrap();
    program[at..at + other.len()].copy_from_slice(other);
    fs::write(path, program).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Each is refused with its reason; with what the help says it runs, where that is a flag.
#[test]
fn it_is_said_why_a_program_is_not_found() {
    let world = World::new();
    let (home, project) = (world.home(), world.project());
    let own = "#!/bin/sh\nexit 7\n";
    let hidden = script(&home.join(".ssh/tool"), own);
    symlink(&hidden, project.join("seen-link")).unwrap();
    script(&project.join("works"), own);
    symlink(project.join("works"), home.join(".ssh/link")).unwrap();
    script(&project.join("no-sh"), "#!/absent/sh\nexit 7\n");
    script(&project.join("dos"), "#!/bin/sh\r\nexit 7\r\n");
    let by_hidden = format!("#!{}\n", hidden.display());
    script(&project.join("by-hidden"), &by_hidden);
    let hidden = hidden.to_str().unwrap();
    let link = home.join(".ssh/link");
    let key = home.join(".ssh/key");
    fs::write(&key, "secret").unwrap();
    script(&project.join("by-key"), &format!("#!{}\n", key.display()));
    let granted = "`--exec [HOME]/.ssh/tool` lets it be run";
    for (command, flags, reason, help) in [
        (
            hidden,
            &["--exec", hidden][..],
            "the policy hides [HOME]/.ssh/tool",
            granted,
        ),
        (
            "./seen-link",
            &["--exec", hidden],
            "the policy hides [HOME]/.ssh/tool",
            granted,
        ),
        (
            link.to_str().unwrap(),
            &[],
            "the policy hides [HOME]/.ssh/link",
            "it leads to [PROJECT]/works: with `--exec [PROJECT]/works`",
        ),
        (
            "./by-hidden",
            &["--exec", hidden],
            "the policy hides its interpreter [HOME]/.ssh/tool",
            granted,
        ),
        (
            "./no-sh",
            &[],
            "its interpreter /absent/sh is not there",
            "install it",
        ),
        (
            "./dos",
            &[],
            "its interpreter /bin/sh\\u{d} is not there",
            "install it",
        ),
        // Whether a key is there is nobody's business.
        (
            "./by-key",
            &[],
            "its interpreter [HOME]/.ssh/key is not there",
            "install it",
        ),
    ] {
        let ran = world.run(&["run", "--", command]);
        assert_eq!(ran.code, Some(127), "{command}: {}", ran.errors);
        let said = format!("command not found: {reason}\n");
        assert!(ran.errors.contains(&said), "{command}: {}", ran.errors);
        assert!(ran.errors.contains(help), "{command}: {}", ran.errors);
        if !flags.is_empty() {
            let ran = world.run(&[&["run"], flags, &["--", command]].concat());
            assert_eq!(ran.code, Some(7), "{command}: {}", ran.errors);
        }
    }
    without_loader(&project.join("no-loader"));
    let ran = world.run(&["run", "--", "./no-loader"]);
    assert_eq!(ran.code, Some(127), "{}", ran.errors);
    assert!(ran.errors.contains("/ld-absen"), "{}", ran.errors);
    let ran = world.run(&["run", "--", ""]);
    assert_eq!(ran.code, Some(127), "{}", ran.errors);
    assert_eq!(ran.errors, "error: '': command not found\n");
    // What is nowhere, and what nobody could run outside either.
    for command in ["./absent", "no-such-program", key.to_str().unwrap()] {
        let ran = world.run(&["run", "--", command]);
        assert_eq!(ran.code, Some(127), "{command}: {}", ran.errors);
        assert!(
            ran.errors.ends_with("command not found\n"),
            "{command}: {}",
            ran.errors
        );
    }
}

/// The kernel's answer alone does not say what is wrong with it.
#[test]
fn it_is_said_why_a_program_cannot_be_run() {
    let world = World::new();
    script(&world.project().join("bare"), "echo x\n");
    fs::create_dir(world.project().join("directory")).unwrap();
    for (command, help) in [
        (
            "./bare",
            "it has no `#!` line, and is no program for this machine: name what runs it, such as `sh ./bare`",
        ),
        ("./directory", "it is a directory"),
    ] {
        let ran = world.run(&["run", "--", command]);
        assert_eq!(ran.code, Some(126), "{}", ran.errors);
        assert!(
            ran.errors.contains(&format!("help: {help}\n")),
            "{}",
            ran.errors
        );
    }
    assert_eq!(world.run(&["run", "--", "sh", "./bare"]).out, "x\n");
}

/// A flag's rule takes the place of the one that let programs be run.
#[test]
fn it_is_said_that_a_program_may_only_be_read() {
    let world = World::new();
    let tool = script(&world.home().join("tools/tool"), "#!/bin/sh\nexit 7\n");
    let tool = tool.to_str().unwrap();
    let ran = world.run(&["run", "--read", "../tools", "--", tool]);
    assert_eq!(ran.code, Some(126), "{}", ran.errors);
    let said = "cannot be run: [HOME]/tools/tool may only be read (flag --read)";
    assert!(ran.errors.contains(said), "{}", ran.errors);
    let help = "  help: `--exec [HOME]/tools/tool` lets it be run\n";
    assert!(ran.errors.ends_with(help), "{}", ran.errors);
    let told = world.run(&["explain", "--read", "../tools", tool]).out;
    assert!(
        told.contains("to run once:   --exec [HOME]/tools/tool\n"),
        "{told}"
    );
    let ran = world.run(&["run", "--read", "../tools", "--exec", tool, "--", tool]);
    assert_eq!(ran.code, Some(7), "{}", ran.errors);
    // The same of what runs it.
    let ran = world.run(&[
        "run", "--read", "/", "--write", ".", "--exec", tool, "--", "true",
    ]);
    assert_eq!(ran.code, Some(126), "{}", ran.errors);
    assert!(
        ran.errors.contains("true may only be read (flag --read)"),
        "{}",
        ran.errors
    );
}

/// A limit of the caller's, and a place that is there: neither is taken for something else.
#[test]
fn what_stands_in_the_way_of_any_program_is_named() {
    let world = World::new();
    let program = env!("CARGO_BIN_EXE_ringfence");
    let sh = |script: &str| {
        let mut command = std::process::Command::new("bash");
        command.env_clear().env("HOME", world.home());
        command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(world.project());
        world.ran(&command.args(["-c", script]).output().unwrap())
    };
    let ran = sh(&format!(
        "trap '' XFSZ; ulimit -f 0; '{program}' run -- true"
    ));
    assert_eq!(ran.code, Some(125), "{}", ran.errors);
    assert!(ran.errors.contains("`ulimit -f`"), "{}", ran.errors);
    assert!(!ran.errors.contains("memfd_noexec"), "{}", ran.errors);

    let name = "d".repeat(200);
    let deep =
        format!("for i in $(seq 24); do mkdir {name}; cd {name}; done; '{program}' run -- true");
    let ran = sh(&deep);
    assert_eq!(ran.code, Some(125), "{}", ran.errors);
    assert!(
        ran.errors.contains("a directory with a shorter path"),
        "{}",
        ran.errors
    );
}

/// Bubblewrap leaves a mount as it is that its user does not reach; the second stage takes that for what
/// it is, and nothing else.
#[test]
fn a_mount_behind_a_closed_directory_is_no_reason_to_refuse() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: this takes root, to mount something");
        return;
    }
    let stage = crate::stage::Stage::new(Some(crate::stage::PLAIN));
    let closed = tempfile::tempdir_in("/var/lib").unwrap();
    fs::create_dir(closed.path().join("in")).unwrap();
    // Whose the directory is, and its mode.
    let run = |owner: u32, mode: &str| {
        let script = r#"
            chown "$2" "$1"
            chmod "$3" "$1"
            mount -t tmpfs -o mode=0777 none "$1/in"
            shift 3
            exec "$@"
        "#;
        let plain = crate::stage::PLAIN.to_string();
        let mut command = std::process::Command::new("unshare");
        command
            .args(["-m", "--propagation", "private", "sh", "-ec", script, "sh"])
            .arg(closed.path())
            .args([&owner.to_string(), mode])
            .args(["setpriv", "--reuid", &plain, "--regid", &plain])
            .args(["--clear-groups"])
            .arg(&stage.program)
            .args(["run", "--engine", "bwrap", "--", "sh", "-c"])
            .args([r#"! touch "$1/in/new" 2>/dev/null && echo ran"#, "sh"])
            .arg(closed.path())
            .env_clear()
            .env("HOME", stage.world.home())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(stage.world.project());
        stage.world.ran(&command.output().unwrap())
    };
    for (mode, held_by) in [("700", "the directory"), ("755", "bubblewrap")] {
        let ran = run(0, mode);
        assert_eq!(ran.code, Some(0), "{held_by}: {}", ran.errors);
        assert_eq!(ran.out, "ran\n", "{held_by}");
    }
    // Its owner could open it.
    let refused = run(crate::stage::PLAIN, "000");
    assert_eq!(refused.code, Some(125), "{}", refused.errors);
    let what = "something that is mounted below /";
    assert!(refused.errors.contains(what), "{}", refused.errors);
}
