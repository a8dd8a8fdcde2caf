use crate::world::World;

#[test]
fn every_mistake_of_a_file_is_shown_at_once_with_its_line() {
    let world = World::new();
    world.user_settings(
        r#"{
  "presett": "agent",
  "git": "writ",
  "terminal": {
    "sandbox": {
      "enabled": "yes",
      "allowed_env_vars": ["PATH", "*"],
      "additional_read_only_paths": ["", "~other/x", "a\u0000b"],
    },
  },
  "agent": { "sandbox_permissions": { "write_paths": ["relative/path"] } },
  "network": { "hosts": ["*", "*.com", "https://example.org/"], "loopback_in": [0] },
  "unix_sockets": ["ssh-agnet"],
  "limits": { "wall": "10 minutes" },
  "protect": { "add": ["../outside"] },
  "git": "read",
}
"#,
    );

    let ran = world.run(&["settings", "check"]);

    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.golden());
}

/// What README shows is what is printed.
#[test]
fn the_mistake_of_the_readme_is_shown_so() {
    let readme = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, shown) = readme.split_once("$ ringfence settings check\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let world = World::new();
    let text = r#"{
  "terminal": {
    "sandbox": {
      "alow_network": true
    }
  }
}
"#;
    world.user_settings(text);

    let ran = world.run(&["settings", "check"]);

    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.errors.replace("[HOME]", "/home/me"), shown);
}

#[test]
fn a_mistake_in_the_syntax_is_shown_where_it_is() {
    let world = World::new();
    world.user_settings("{\n  \"preset\": \"agent\"\n  \"git\": \"read\"\n}\n");

    let ran = world.run(&["run", "--dry-run", "--", "true"]);

    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.golden());
}

#[test]
fn mistakes_of_both_files_and_the_environment_come_together() {
    let world = World::new();
    world.user_settings("{ \"presett\": \"agent\" }\n");
    world.project_settings("[]\n");
    let output = world
        .command()
        .env("RINGFENCE_RO", "/usr::relative")
        .args(["settings", "check"])
        .output()
        .unwrap();

    let ran = world.ran(&output);

    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.golden());
}

#[test]
fn a_granted_path_that_does_not_exist_is_underlined() {
    let world = World::new();
    world.user_settings(
        "{\n  \"terminal\": { \"sandbox\": { \"additional_read_write_paths\": [\"~/no \\\"such\\\" place\", \"~/.ssh\"] } }\n}\n",
    );

    let ran = world.run(&["explain", "--plan"]);

    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.golden());
}

#[test]
fn contradictory_rules_are_refused() {
    let world = World::new();
    world
        .user_settings("{\n  \"secrets\": { \"hide\": [\"~/.ssh\"], \"show\": [\"~/.ssh\"] }\n}\n");
    let in_file = world.run(&["settings", "check"]);
    let other = World::new();
    let in_flags = other.run(&[
        "run",
        "--dry-run",
        "--read",
        "src",
        "--write",
        "src",
        "--",
        "true",
    ]);

    assert_eq!((in_file.code, in_flags.code), (Some(2), Some(2)));
    insta::assert_snapshot!(in_file.golden() + &in_flags.golden());
}

#[test]
fn flags_that_cannot_be_carried_out_say_which_flag() {
    let world = World::new();
    world.write("home/project/.vscode/x", "");

    let ran = world.run(&[
        "run",
        "--dry-run",
        "--read",
        "missing",
        "--allow-protected",
        "../x",
        "--allow-protected",
        ".vscod",
        "--allow-protected",
        ".githooks",
        // Below one that is: nothing to complain of, if it is there, or may be made.
        "--allow-protected",
        ".vscode/x",
        "--allow-protected",
        ".vscode/absent",
        "--allow-protected",
        ".idea",
        "--allow-protected",
        ".idea/absent",
        "--unix-socket",
        "docker",
        "--",
        "true",
    ]);

    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.golden());
}

#[test]
fn problems_are_data_for_programs() {
    let world = World::new();
    world.user_settings("{\n  \"presett\": \"agent\",\n  \"git\": 3\n}\n");

    let ran = world.run(&["settings", "check", "--json"]);

    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.golden());
}

/// A mistake is called by where it was made, and told once.
#[test]
fn a_mistake_is_named_for_its_place() {
    let world = World::new();
    let run = |flags: &[&str], variable: &str| {
        let mut command = world.command();
        command.arg("run").args(flags).args(["--", "true"]);
        if !variable.is_empty() {
            command.env("RINGFENCE_RO", variable);
        }
        world.ran(&command.output().unwrap()).errors
    };
    let track = run(&["--preset", "track", "--allow-host", "x.example"], "");
    assert_eq!(track.matches("restricts nothing").count(), 1, "{track}");
    for (flags, variable, said) in [
        (&["--read", "absent"][..], "", "with a mistake in a flag"),
        (&[], "/absent", "with a mistake in a variable"),
        (
            &["--read", "absent", "--write", "missing"],
            "",
            "with 2 mistakes in the flags",
        ),
        (
            &["--read", "absent"],
            "/absent",
            "with 2 mistakes in the flags and the variables",
        ),
    ] {
        let errors = run(flags, variable);
        let last = errors.lines().last().unwrap();
        assert_eq!(last, format!("error: nothing starts {said}"), "{errors}");
    }
    world.user_settings("{ \"presett\": \"agent\" }\n");
    let errors = run(&["--read", "absent"], "");
    // What cannot be read is not resolved, so nobody knows of the flag yet.
    assert!(errors.contains("in the settings"), "{errors}");
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_what_to_do() {
    let world = World::new();
    world.write("home/.config/ringfence/settings.json/x", "");

    let ran = world.run(&["run", "--", "true"]);

    assert_eq!(ran.code, Some(2));
    let help = "= help: let it be a file that you can read, or move it away";
    assert!(ran.errors.contains(help), "{}", ran.errors);
}
