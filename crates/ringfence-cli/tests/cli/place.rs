use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::stage::{PLAIN, Stage};
use crate::world::{Ran, World};

fn from(world: &World, directory: &Path, arguments: &[&str]) -> Ran {
    let output = world
        .command()
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap();
    world.ran(&output)
}

fn project_line(ran: &Ran) -> String {
    let line = ran.out.lines().find(|line| line.starts_with("project"));
    let line = line.unwrap_or_else(|| panic!("{}", ran.golden()));
    line.trim_start_matches("project").trim().to_owned()
}

#[test]
fn the_project_is_the_nearest_directory_with_a_marker() {
    let world = World::new();
    world.write("home/plain/deep/x", "");
    world.write("home/mono/.git", "gitdir: elsewhere\n");
    world.write("home/mono/a/package.json", "{}");
    world.write("home/mono/b/x", "");
    for (directory, project) in [
        ("home/project", "[PROJECT]"),
        ("home/project/src", "[PROJECT]"),
        ("home/mono/a", "[HOME]/mono/a"),
        ("home/mono/b", "[HOME]/mono"),
        ("home/plain/deep", "[HOME]/plain/deep"),
    ] {
        let ran = from(&world, &world.root().join(directory), &["settings", "path"]);
        let settings = format!("{project}/.ringfence/settings.json  (missing)");
        assert_eq!(project_line(&ran), settings, "{directory}");
    }
}

#[test]
fn the_home_and_the_root_are_a_project_only_by_name() {
    let world = World::new();
    // Some keep their home in git.
    world.write("home/.git/HEAD", "");

    let home = from(&world, &world.home(), &["run", "--dry-run", "--", "true"]);
    let above = from(&world, world.root(), &["run", "--dry-run", "--", "true"]);
    let root = from(&world, Path::new("/"), &["run", "--dry-run", "--", "true"]);
    let below = world.root().join("home/plain");
    std::fs::create_dir(&below).unwrap();
    let below = from(&world, &below, &["settings", "path"]);
    let named = from(
        &world,
        &world.home(),
        &["settings", "path", "--project", "."],
    );

    for refused in [&home, &above, &root] {
        assert_eq!(refused.code, Some(2));
        assert!(
            refused.errors.contains("--project PATH"),
            "{}",
            refused.errors
        );
    }
    assert_eq!(
        project_line(&below),
        "[HOME]/plain/.ringfence/settings.json  (missing)"
    );
    assert_eq!(
        project_line(&named),
        "[HOME]/.ringfence/settings.json  (missing)"
    );
    insta::assert_snapshot!(home.golden());
}

#[test]
fn the_systems_own_directories_are_a_project_only_by_name() {
    let world = World::new();
    for directory in ["/tmp", "/var/tmp", "/etc", "/usr/share"] {
        let directory = Path::new(directory);
        let started = from(&world, directory, &["run", "--", "true"]);
        assert_eq!(started.code, Some(2), "{directory:?}: {}", started.golden());
        assert!(started.errors.contains("there is no project here"));
        assert!(started.errors.contains("`--project .`"));
        let named = ["run", "--dry-run", "--project", ".", "--", "true"];
        let named = from(&world, directory, &named);
        assert_eq!(named.code, Some(0), "{directory:?}: {}", named.golden());
        let asked = from(&world, directory, &["explain", "."]);
        assert_eq!(asked.code, Some(0), "{directory:?}: {}", asked.golden());
    }
    let below = tempfile::tempdir_in("/tmp").unwrap();
    let below = from(&world, below.path(), &["run", "--dry-run", "--", "true"]);
    assert_eq!(below.code, Some(0), "{}", below.golden());
}

#[test]
fn a_question_is_answered_at_home_too() {
    let world = World::new();

    let ran = from(&world, &world.home(), &["explain", ".ssh/id_ed25519"]);

    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(ran.golden());
}

#[test]
fn settings_come_from_the_root_of_the_project_and_never_from_below() {
    let world = World::new();
    world.write("home/project/src/.ringfence/settings.json", "{ mistake");
    world.project_settings("{}");

    let at_root = world.run(&["settings", "check"]);
    let named = from(
        &world,
        &world.project().join("src"),
        &["settings", "check", "--project", ".."],
    );

    assert_eq!(at_root.code, Some(0), "{}", at_root.errors);
    assert_eq!(named.code, Some(0), "{}", named.errors);
}

#[test]
fn a_named_project_must_be_a_directory() {
    let world = World::new();
    for project in ["missing", "Cargo.toml", ""] {
        let ran = world.run(&["settings", "path", "--project", project]);
        assert_eq!(ran.code, Some(2), "{project}");
    }
}

#[test]
fn xdg_directories_are_honoured_and_hidden() {
    let world = World::new();
    world.write("xdg/ringfence/settings.json", "{ \"git\": \"read\" }");
    let ask = |config: &Path, arguments: &[&str]| {
        let output = world
            .command()
            .env("XDG_CONFIG_HOME", config)
            .args(arguments)
            .output()
            .unwrap();
        world.ran(&output)
    };
    let xdg = world.root().join("xdg");

    let path = ask(&xdg, &["settings", "path"]);
    let own = ask(&xdg, &["explain", "../../xdg/ringfence/settings.json"]);
    let climbing = ask(&xdg.join("../xdg"), &["settings", "show"]);
    let relative = ask(Path::new("xdg"), &["settings", "path"]);

    assert!(
        path.out.contains("[WORLD]/xdg/ringfence/settings.json\n"),
        "{}",
        path.out
    );
    assert!(
        own.out.contains("hidden: built-in secrets list"),
        "{}",
        own.out
    );
    assert!(
        climbing.out.contains("settings.json:1:10"),
        "{}",
        climbing.out
    );
    assert!(
        relative.out.contains("[HOME]/.config/ringfence"),
        "{}",
        relative.out
    );
}

#[test]
fn a_relative_home_is_refused() {
    let world = World::new();
    let mut command = world.command();
    command.env("HOME", "relative").args(["settings", "path"]);
    assert_eq!(command.output().unwrap().status.code(), Some(2));
}

/// The home that the user database has for whoever runs the tests, if that is a directory.
fn account_home() -> Option<PathBuf> {
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
    let own = rustix::process::getuid().as_raw().to_string();
    let mut accounts = accounts.lines().map(|line| line.split(':'));
    let account = accounts.find(|account| account.clone().nth(2) == Some(&own))?;
    let home = std::fs::canonicalize(account.clone().nth(5)?).ok()?;
    home.is_dir().then_some(home)
}

/// Taking the variable away, or setting it to another place, makes nobody's home a project and shows
/// none of its keys.
#[test]
fn the_accounts_home_is_guarded_whatever_the_variable_says() {
    let world = World::new();
    let ask = |home: Option<&Path>, directory: &Path, arguments: &[&str]| {
        let mut command = world.command();
        command.env_remove("HOME").current_dir(directory);
        command.envs(home.map(|home| ("HOME", home)));
        world.ran(&command.args(arguments).output().unwrap())
    };
    let Some(account) = account_home() else {
        // Nobody's account: then that is said.
        let ran = ask(None, &world.project(), &["settings", "show"]);
        assert!(ran.out.contains("no home is known"), "{}", ran.golden());
        return;
    };
    let own = world.home();
    for home in [None, Some(Path::new("/nonexistent")), Some(&own)] {
        let refused = ask(home, &account, &["run", "--dry-run", "--", "true"]);
        assert_eq!(refused.code, Some(2), "{home:?}: {}", refused.golden());
        assert!(refused.errors.contains("--project PATH"), "{home:?}");
        for secret in [".ssh", ".config/ringfence", ".local/state/ringfence"] {
            // By the list of secrets: `agent` hides every home that is not `HOME`.
            let arguments = ["explain", "--preset", "strict", "--project", ".", secret];
            let hidden = ask(home, &account, &arguments);
            assert!(
                hidden.out.contains("hidden: built-in secrets list"),
                "{home:?} {secret}: {}",
                hidden.golden()
            );
        }
    }
    let settings = account.join(".config/ringfence/settings.json");
    let found = ask(None, &world.project(), &["settings", "path"]);
    assert!(
        found.out.contains(settings.to_str().unwrap()),
        "{}",
        found.out
    );
}

/// What is the user's own is so wherever he stands; only a command has to start somewhere.
#[test]
fn without_a_current_directory_only_places_are_missing() {
    let world = World::new();
    world.user_settings("{ \"git\": \"read\" }");
    let ask = |arguments: &[&str], input: &str| {
        let gone = world.root().join("gone");
        std::fs::create_dir(&gone).unwrap();
        let script = "rmdir \"$PWD\" && exec \"$0\" \"$@\"";
        let mut command = std::process::Command::new("/bin/sh");
        command
            .args(["-c", script, env!("CARGO_BIN_EXE_ringfence")])
            .args(arguments)
            .env_clear()
            .env("HOME", world.home())
            .current_dir(&gone)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Not every command reads it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        world.ran(&child.wait_with_output().unwrap())
    };
    let question =
        r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    let path = world.home();
    let path = path.to_str().unwrap();
    for arguments in [
        &["sessions", "list"][..],
        &["sessions", "clean"],
        &["log"],
        &["grants", "list"],
        &["grants", "add", "--write", path],
        &["check", "-c", "ls"],
        &["hook", "claude-code"],
    ] {
        let ran = ask(arguments, question);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.golden());
    }
    let killed = ask(&["sessions", "kill", "nobody"], "");
    assert_eq!(killed.code, Some(1), "{}", killed.golden());
    assert!(ask(&["grants", "list"], "").out.contains("git metadata"));
    let doctor = ask(&["doctor"], "");
    assert!(!doctor.out.contains("current directory"), "{}", doctor.out);

    for arguments in [
        &["run", "--", "true"][..],
        &["run", "--project", path, "--", "true"],
        &["grants", "add", "--write", "relative"],
        &["settings", "show"],
    ] {
        let ran = ask(arguments, "");
        assert_eq!(ran.code, Some(125), "{arguments:?}: {}", ran.golden());
        assert!(
            ran.errors.contains("the current directory cannot be found"),
            "{arguments:?}: {}",
            ran.errors
        );
    }
}

/// Only root can be somebody without an account.
#[test]
fn without_any_home_a_session_says_what_is_not_read() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let stage = Stage::new(Some(PLAIN));
    for home in [None, Some(""), Some("/nonexistent"), Some("/dev/null")] {
        let mut command = stage.command(&["run", "--", "true"]);
        command.env_remove("HOME");
        command.envs(home.map(|home| ("HOME", home)));
        let ran = stage.world.ran(&command.output().unwrap());

        assert_eq!(ran.code, Some(0), "{home:?}: {}", ran.errors);
        assert!(ran.errors.contains("settings are not read"), "{home:?}");
    }
}

#[test]
fn a_protected_name_below_a_link_is_protected_where_the_link_leads() {
    let world = World::new();
    world.write("home/project/real/x", "");
    std::os::unix::fs::symlink("real", world.project().join(".forgejo")).unwrap();

    let ran = world.run(&["explain", "real/workflows", "real/x"]);

    insta::assert_snapshot!(ran.golden());
}

/// The same answers for root and for a plain user; only root can try both.
#[test]
fn a_plain_user_gets_the_same_answers() {
    let world = World::public();
    let program = world.copied_program();
    world.user_settings("{ \"git\": \"read\" }");
    let arguments = ["explain", "../.ssh/id_ed25519", "src/main.rs", ".git"];
    let run = |command: &mut std::process::Command| {
        let output = command
            .env_clear()
            .env("HOME", world.home())
            .current_dir(world.project())
            .args(arguments)
            .output()
            .unwrap();
        world.ran(&output)
    };
    let ours = run(&mut std::process::Command::new(&program));
    assert_eq!(ours.code, Some(0), "{}", ours.errors);
    if !rustix::process::geteuid().is_root() {
        return;
    }

    let mut plain = std::process::Command::new(&program);
    let theirs = run(plain.uid(65534).gid(65534));
    let settings = world.user_settings("{ \"git\": \"read\" }");
    std::fs::set_permissions(settings, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut locked_out = std::process::Command::new(&program);
    let locked_out = run(locked_out.uid(65534).gid(65534));

    assert_eq!(theirs.golden(), ours.golden());
    assert_eq!(locked_out.code, Some(2));
    assert!(
        locked_out.errors.contains("permission denied"),
        "{}",
        locked_out.errors
    );
}

/// Where the host itself refuses, no line of ours helps.
#[test]
fn what_the_host_keeps_from_a_user_is_said_to_be_kept_by_it() {
    let world = World::public();
    let program = world.copied_program();
    let secret = world.home().join(".ssh/id_ed25519");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).unwrap();
    let asked = |plain: bool| {
        let mut command = std::process::Command::new(&program);
        command
            .env_clear()
            .env("HOME", world.home())
            .current_dir(world.project())
            .args(["explain", "../.ssh/id_ed25519"]);
        if plain && rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        world.ran(&command.output().unwrap()).out
    };
    let told = asked(true);
    let why = "its own permissions do not let you read it, with or without ringfence\n";
    assert!(told.contains(why), "{told}");
    assert!(!told.contains("once:"), "{told}");
    if rustix::process::geteuid().is_root() {
        assert!(asked(false).contains("to read once:"), "root may");
    }
}

#[test]
fn a_call_from_windows_is_the_call_that_was_typed_there() {
    let world = World::new();
    let encoded = |words: &[&str]| {
        let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
        let mut word = String::new();
        for byte in bytes {
            write!(word, "{byte:02x}").unwrap();
        }
        word
    };
    let flag = "--ringfence-arguments-from-windows";
    let word = encoded(&["check", "-c", "cd 'a \"b\\' $x"]);
    assert_eq!(world.run(&[flag, &word]).code, Some(1));
    let word = encoded(&["check", "-c", "ls"]);
    assert_eq!(world.run(&[flag, &word]).code, Some(0));
    for garbled in ["0", "zz", "61"] {
        assert_eq!(world.run(&[flag, garbled]).code, Some(125), "{garbled}");
    }
    assert_eq!(world.run(&[flag]).code, Some(125));
}

#[test]
fn a_repository_that_a_variable_names_has_the_projects_level() {
    let world = World::new();
    for (file, text) in [
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", "[core]\n"),
        ("objects/x", ""),
        ("refs/x", ""),
    ] {
        world.write(Path::new("home/store").join(file), text);
    }
    let store = world.home().join("store");
    let read = |variable: Option<&str>, level: &str| {
        let mut command = world.command();
        command.envs(variable.map(|variable| (variable, &store)));
        command.args(["run", "--git", level, "--", "/bin/cat"]);
        let ran = world.ran(&command.arg(store.join("config")).output().unwrap());
        (ran.code, ran.out)
    };
    let seen = (Some(0), "[core]\n".to_owned());
    // Without a variable it is a directory like any other.
    assert_eq!(read(None, "hidden"), seen);
    for variable in ["GIT_DIR", "GIT_COMMON_DIR"] {
        assert_eq!(read(Some(variable), "hidden"), (Some(1), String::new()));
        assert_eq!(read(Some(variable), "read"), seen);
    }
}

/// Keys and logins that variables of the caller's say are elsewhere.
#[test]
fn a_secret_elsewhere_is_hidden_where_its_variable_says() {
    let world = World::new();
    let root = world.root().join("elsewhere");
    for file in [
        "config/gh/hosts.yml",
        "gnupg/key",
        "kube",
        "cargo/credentials.toml",
        "netrc",
    ] {
        world.write(format!("elsewhere/{file}"), "canary\n");
    }
    let read = "cd \"$1\"; cat config/gh/hosts.yml gnupg/key kube cargo/credentials.toml netrc";
    let command = |program: &str, before: &[&str]| {
        let mut command = world.command();
        if program != "ringfence" {
            command = std::process::Command::new(program);
            command.env_clear();
        }
        command.args(before).args(["-c", read, "sh"]).arg(&root);
        for (name, path) in [
            ("XDG_CONFIG_HOME", "config"),
            ("GNUPGHOME", "gnupg"),
            ("KUBECONFIG", "kube"),
            ("CARGO_HOME", "cargo"),
            ("NETRC", "netrc"),
        ] {
            command.env(name, root.join(path));
        }
        // Such values are usual, and hide nothing.
        command
            .env("HISTFILE", "/dev/null")
            .env("DOCKER_CONFIG", world.home());
        world.ran(&command.output().unwrap())
    };
    let free = command("/bin/sh", &[]);
    assert_eq!(free.out.matches("canary").count(), 5, "{}", free.errors);
    let confined = command("ringfence", &["run", "--", "/bin/sh"]);
    assert_eq!(confined.out, "", "{}", confined.errors);
    assert_eq!(confined.code, Some(1), "{}", confined.errors);
    let plain = world
        .command()
        .env("HISTFILE", "/dev/null")
        .env("DOCKER_CONFIG", world.home())
        .args([
            "run",
            "--",
            "/bin/sh",
            "-c",
            "echo x > /dev/null && echo x > made && ls ~ && echo ok",
        ])
        .output();
    let plain = world.ran(&plain.unwrap());
    assert!(plain.out.ends_with("ok\n"), "{}", plain.golden());
}

/// A session in a part of a project makes that part one that is found first; what the real one hides
/// stays hidden.
#[test]
fn what_is_above_the_project_restricts_it_whatever_is_planted() {
    let world = World::new();
    world.write("home/mono/.git/HEAD", "ref: refs/heads/main\n");
    world.write("home/mono/config/key", "SECRET");
    world.write("home/mono/pkg/src/generated/x", "old");
    let settings = r#"{
        "secrets": { "hide": ["../config/key"] },
        "protect": { "add": ["pkg/src/generated"], "allow": [".vscode"] },
    }"#;
    world.write("home/mono/.ringfence/settings.json", settings);
    let inside = world.root().join("home/mono/pkg/src");
    let script = "cat ../../config/key; echo evil > generated/x; mkdir .vscode; echo done";
    let tried = |what: &str| {
        let ran = from(&world, &inside, &["run", "--", "sh", "-c", script]);
        assert_eq!(ran.out, "done\n", "{what}: {}", ran.golden());
        assert_eq!(ran.code, Some(0), "{what}");
    };
    tried("nothing is planted");
    for (planted, text) in [
        ("package.json", "{}"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (
            ".ringfence/settings.json",
            r#"{ "secrets": { "show": ["../../../config/key"] }, "protect": { "allow": ["generated"] } }"#,
        ),
    ] {
        world.write(Path::new("home/mono/pkg/src").join(planted), text);
        tried(planted);
    }
    let kept = std::fs::read_to_string(inside.join("generated/x")).unwrap();
    assert_eq!(kept, "old");
}

/// In a directory of everybody's anybody can leave something by the name of the settings.
#[test]
fn what_others_leave_above_the_project_keeps_nobody_from_starting() {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::lasting();
    let shared = world.root().join("shared");
    world.write("shared/mine/package.json", "{}");
    world.write("shared/key", "SECRET");
    let everybody = std::fs::Permissions::from_mode(0o1777);
    std::fs::set_permissions(&shared, everybody).unwrap();
    let inside = shared.join("mine");
    let start = || from(&world, &inside, &["run", "--", "cat", "../key"]);
    let settings = shared.join(".ringfence");
    let other = Some(54_321);

    symlink("nowhere", &settings).unwrap();
    assert_eq!(start().code, Some(2), "a link of the user's");
    lchown(&settings, other, other).unwrap();
    let ran = start();
    assert_eq!((ran.code, &*ran.out), (Some(0), "SECRET"), "{ran:?}");

    std::fs::remove_file(&settings).unwrap();
    let file = world.write("shared/.ringfence/settings.json", "{");
    assert_eq!(start().code, Some(2), "a mistake of the user's");
    lchown(&file, other, other).unwrap();
    assert_eq!(start().code, Some(0), "a file of another's");
    lchown(&settings, other, other).unwrap();
    assert_eq!(start().code, Some(0), "all of another's");

    // What is the user's holds, whoever may write beside it; so does what is the project's owner's.
    std::fs::write(&file, r#"{ "secrets": { "hide": ["../key"] } }"#).unwrap();
    lchown(&inside, other, other).unwrap();
    assert_ne!(start().code, Some(0), "of the project's owner");
    for path in [&inside, &settings, &file] {
        lchown(path, Some(0), Some(0)).unwrap();
    }
    assert_ne!(start().code, Some(0), "of the user");
}
