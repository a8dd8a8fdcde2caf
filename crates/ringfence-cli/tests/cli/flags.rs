use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::world::World;

#[test]
fn every_flag_is_a_line_of_the_settings() {
    let world = World::new();
    world.write("home/data/x", "");

    let ran = world.run(&[
        "settings",
        "show",
        "--preset",
        "strict",
        "--read",
        "../data",
        "--exec",
        "src",
        "--hide",
        "Cargo.toml",
        "--git",
        "read",
        "--allow-protected",
        ".vscode",
        "--tmp",
        "host",
        "--allow-host",
        "*.example.org:8443",
        "--loopback-in",
        "8080",
        "--loopback-out",
        "5432",
        "--env",
        "MY_*",
        "--set-env",
        "A=b=c",
        "--limit",
        "wall=10m",
        "--limit",
        "file-size=1GiB",
        "--limit",
        "tmp_size=none",
    ]);

    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    insta::assert_snapshot!(ran.golden_without_machine());
}

#[test]
fn paths_need_not_be_utf8() {
    let world = World::new();
    let name = OsStr::from_bytes(b"caf\xe9");
    std::fs::write(world.home().join(name), "").unwrap();
    let path = world.home().join(name);

    let ran = world.run(&[
        "explain".as_ref(),
        path.as_os_str(),
        "--write".as_ref(),
        path.as_os_str(),
    ]);
    let hidden = world.run(&[
        "explain".as_ref(),
        path.as_os_str(),
        "--hide".as_ref(),
        path.as_os_str(),
    ]);

    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(
        ran.out
            .contains("caf\\xe9\n    read, execute and write: flag --write")
    );
    assert!(hidden.out.contains("hidden: flag --hide"), "{}", hidden.out);
    assert!(
        hidden.out.contains("$'") && hidden.out.contains("caf\\xe9'"),
        "{}",
        hidden.out
    );
}

#[test]
fn flags_beat_files() {
    let world = World::new();
    world.user_settings("{ \"network\": { \"mode\": \"none\" }, \"git\": \"full\" }");

    let ran = world.run(&[
        "settings",
        "show",
        "--git",
        "hidden",
        "--allow-host",
        "example.org",
    ]);

    let git = ran.out.lines().find(|line| line.starts_with("  git"));
    assert!(git.unwrap().ends_with("  flag --git"), "{}", ran.out);
    assert!(
        ran.out.contains("mode  hosts        flag --allow-host"),
        "{}",
        ran.out
    );
}

#[test]
fn what_is_typed_wrong_is_usage() {
    let world = World::new();
    for wrong in [
        &["run"][..],
        &["run", "--raed", "x", "--", "true"],
        &["run", "--preset", "agnet", "--", "true"],
        &["run", "--net", "hosts", "--", "true"],
        &[
            "run",
            "--net",
            "none",
            "--allow-host",
            "a.example",
            "--",
            "true",
        ],
        &["run", "--allow-host", "*", "--", "true"],
        &["run", "--env", "*", "--", "true"],
        &["run", "--set-env", "A", "--", "true"],
        &["run", "--set-env", "=b", "--", "true"],
        &["run", "--write", "", "--", "true"],
        &["explain", "--env", "A=B"],
        &["explain", "--env", ""],
        &["explain", ""],
        &["run", "--limit", "wall=soon", "--", "true"],
        &["run", "--limit", "wal=1m", "--", "true"],
        &["run", "--loopback-in", "0", "--", "true"],
        &["run", "--json-fd", "2", "--", "true"],
        &["run", "--unix-socket", "dokcer", "--", "true"],
        &["run", "--json", "--", "true"],
        &["run", "--host-facts", "linux-6.18", "--", "true"],
        &["rnu", "--", "true"],
        &[],
    ] {
        let ran = world.run(wrong);
        assert_eq!(ran.code, Some(2), "{wrong:?}: {}", ran.golden());
        assert!(ran.out.is_empty(), "{wrong:?}");
    }
}

#[test]
fn a_slip_is_recognised() {
    let world = World::new();

    insta::assert_snapshot!(
        world
            .run(&["run", "--preset", "agnet", "--", "true"])
            .golden()
    );
    insta::assert_snapshot!(world.run(&["run", "--raed", "x", "--", "true"]).golden());
    insta::assert_snapshot!(
        world
            .run(&["run", "--allow-host", "*.com", "--", "true"])
            .golden()
    );
    insta::assert_snapshot!(
        world
            .run(&["run", "--limit", "wal=1m", "--", "true"])
            .golden()
    );
}

#[test]
fn the_command_keeps_its_own_flags() {
    let world = World::new();
    let line = |words: &[&str]| {
        let mut arguments = vec!["run", "--dry-run", "--host-facts", "linux-6.18"];
        arguments.extend(words);
        let ran = world.run(&arguments);
        ran.out.lines().next().unwrap_or_default().to_owned()
    };

    assert_eq!(line(&["--", "ls", "--read", "-v"]), "command  ls --read -v");
    assert_eq!(line(&["ls", "--read", "-v"]), "command  ls --read -v");
    assert_eq!(line(&["--", "--odd", "a b"]), "command  --odd 'a b'");
}

/// Most shells leave `--hide=~/x` as it is.
#[test]
fn a_home_in_a_flag_is_the_home() {
    let world = World::new();
    world.write("home/data/x", "");
    std::fs::create_dir(world.home().join("other")).unwrap();
    let shown = |flags: &[&str]| {
        let ran = world.run(&[&["settings", "show"], flags].concat());
        assert_eq!(ran.code, Some(0), "{flags:?}: {}", ran.errors);
        squeeze_all(&ran.out)
    };
    for (flag, line) in [
        ("--read=~/data", "[HOME]/data  read  flag --read"),
        (
            "--exec=~/data",
            "[HOME]/data  read and execute  flag --exec",
        ),
        (
            "--write=~/data/",
            "[HOME]/data  read, execute and write  flag --write",
        ),
        ("--hide=~/data/x", "[HOME]/data/x  hidden  flag --hide"),
        ("--project=~/other", "project  [HOME]/other"),
        (
            "--hide=./~root/x",
            "[PROJECT]/~root/x (does not exist)  hidden  flag --hide",
        ),
        (
            "--hide=./~/x",
            "[PROJECT]/~/x (does not exist)  hidden  flag --hide",
        ),
    ] {
        let out = shown(&[flag]);
        assert!(out.contains(line), "{flag}: {out}");
    }
    let asked = world.run(&["run", "--no-prompt", "--request-write=~/data", "--", "true"]);
    assert!(
        asked.errors.contains("write [HOME]/data"),
        "{}",
        asked.errors
    );
}

/// It would be silently a directory of that name, and what was to be hidden would not be.
#[test]
fn the_home_of_somebody_else_is_no_path_of_a_flag() {
    let world = World::new();
    for words in [
        &["settings", "show", "--hide=~me/x"][..],
        &["run", "--hide=~me/x", "--", "true"],
        &["run", "--read=~me/x", "--", "true"],
        &["run", "--exec=~me/x", "--", "true"],
        &["run", "--write=~me/x", "--", "true"],
        &["run", "--project=~me/x", "--", "true"],
        &["run", "--unix-socket=~me/x", "--", "true"],
        &["run", "--request-write=~me/x", "--", "true"],
        &["grants", "add", "--write=~me/x"],
    ] {
        let ran = world.run(words);
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.errors);
        assert!(
            ran.errors.contains("`./~me/x`"),
            "{words:?}: {}",
            ran.errors
        );
    }
}

fn squeeze_all(text: &str) -> String {
    let lines = text.lines().map(crate::world::squeeze);
    lines.collect::<Vec<_>>().join("\n")
}
