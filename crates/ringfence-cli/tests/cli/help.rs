use crate::world::World;

#[test]
fn help_of_every_command() {
    let world = World::new();
    for (name, arguments) in [
        ("ringfence", &["--help"][..]),
        ("run", &["run", "--help"]),
        ("explain", &["explain", "--help"]),
        ("doctor", &["doctor", "--help"]),
        ("settings", &["settings", "--help"]),
        ("settings_show", &["settings", "show", "--help"]),
        ("settings_path", &["settings", "path", "--help"]),
        ("check", &["check", "--help"]),
        ("hook", &["hook", "--help"]),
        ("hook_install", &["hook", "install", "--help"]),
        ("completions", &["completions", "--help"]),
        ("man", &["man", "--help"]),
    ] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(0), "{name}");
        insta::assert_snapshot!(format!("help_{name}"), ran.golden());
    }
}

#[test]
fn there_is_a_version() {
    let ran = World::new().run(&["--version"]);

    assert_eq!(
        ran.out,
        format!("ringfence {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions_for_every_shell() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = world.run(&["completions", shell]);
        assert_eq!(ran.code, Some(0), "{shell}");
        assert!(ran.out.contains("allow-host"), "{shell}");
    }
    assert_eq!(world.run(&["completions", "cmd"]).code, Some(2));
}

#[test]
fn a_manual_page_for_every_command() {
    let world = World::new();
    // Made if it is not there.
    let pages = world.root().join("share/man");

    let ran = world.run(&["man".as_ref(), "--dir".as_ref(), pages.as_os_str()]);

    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    let mut names: Vec<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "ringfence-check.1",
            "ringfence-completions.1",
            "ringfence-doctor.1",
            "ringfence-explain.1",
            "ringfence-grants-add.1",
            "ringfence-grants-list.1",
            "ringfence-grants-revoke.1",
            "ringfence-grants.1",
            "ringfence-hook-install.1",
            "ringfence-hook-uninstall.1",
            "ringfence-hook.1",
            "ringfence-log.1",
            "ringfence-man.1",
            "ringfence-run.1",
            "ringfence-sessions-clean.1",
            "ringfence-sessions-kill.1",
            "ringfence-sessions-list.1",
            "ringfence-sessions.1",
            "ringfence-settings-check.1",
            "ringfence-settings-path.1",
            "ringfence-settings-schema.1",
            "ringfence-settings-show.1",
            "ringfence-settings.1",
            "ringfence-shell.1",
            "ringfence-trust.1",
            "ringfence.1",
        ]
    );
    let run = std::fs::read_to_string(pages.join("ringfence-run.1")).unwrap();
    assert!(run.contains("allow\\-host"), "{run}");
    assert!(world.run(&["man"]).out.starts_with(".ie"));
    let ran = world.run(&["man", "--dir", "/dev/null/pages"]);
    assert_eq!(ran.code, Some(125));
    assert!(
        ran.errors.contains("to /dev/null/pages: "),
        "{}",
        ran.errors
    );
    // Examples are lines, not prose.
    let page = std::fs::read_to_string(pages.join("ringfence-run.1")).unwrap();
    let (_, examples) = page.split_once(".SH EXAMPLES\n.nf\n").unwrap();
    let first = examples.lines().next().unwrap();
    assert_eq!(first, r"ringfence run \-\- cargo test");
}

/// What bash would offer at the end of a line.
fn offered(world: &World, line: &[&str]) -> Vec<String> {
    let script = world.run(&["completions", "bash"]).out;
    let file = world.write("completions.bash", script);
    let complete = r#". "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _ringfence_or_command ringfence "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let output = std::process::Command::new("bash")
        .args(["--norc", "-c", complete, "bash"])
        .arg(file)
        .args(line)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Completions know the usual values, also where others are taken.
#[test]
fn completions_offer_usual_values_and_commands() {
    let world = World::new();
    for (line, value) in [
        (&["ringfence", "hook", ""][..], "claude-code"),
        (&["ringfence", "hook", "install", ""], "gemini"),
        (&["ringfence", "run", "--shell-policy", ""], "verify"),
        (&["ringfence", "check", "--rules", "re"], "relaxed"),
        (&["ringfence", "run", "--limit", "me"], "memory="),
        (&["ringfence", "run", "--unix-socket", ""], "ssh-agent"),
        (&["ringfence", "run", "--pres"], "--preset"),
        (&["ringfence", "run", "--", "mkfif"], "mkfifo"),
        (&["ringfence", "run", "-v", "--", "mkfif"], "mkfifo"),
    ] {
        let offered = offered(&world, line);
        assert!(
            offered.iter().any(|it| it == value),
            "{line:?}: {offered:?}"
        );
    }
    // Behind a command nothing of ours is offered.
    let offered = offered(&world, &["ringfence", "run", "--", "true", "--pre"]);
    assert_eq!(offered, [""]);
    // And whatever is taken otherwise still is.
    let socket = world.root().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let socket = socket.to_str().unwrap();
    let ran = world.run(&["settings", "show", "--unix-socket", socket]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
}
