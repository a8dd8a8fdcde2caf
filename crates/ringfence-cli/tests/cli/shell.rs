//! `ringfence check` and `ringfence hook`.

use std::io::Write as _;
use std::process::Stdio;

use crate::world::{Ran, World};

fn asked(world: &World, arguments: &[&str], question: &str) -> Ran {
    let mut command = world.command();
    command.args(arguments);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(question.as_bytes()).unwrap();
    drop(input);
    world.ran(&child.wait_with_output().unwrap())
}

#[test]
fn what_no_rule_objects_to_is_allowed() {
    let world = World::new();
    let ran = world.run(&["check", "-c", "make test | tail -5"]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
}

#[test]
fn a_denial_points_at_its_place() {
    let world = World::new();
    let text = "make test && rm -rf build";
    let ran = world.run(&["check", "--rules", "verify", "-c", text]);
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(ran.golden());
    let ran = world.run(&["check", "--json", "--rules", "verify", "-c", text]);
    assert_eq!(ran.code, Some(1));
    let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(answer["verdict"], "deny");
    assert_eq!(answer["write_targets"][0]["path"], "build");
}

#[test]
fn files_and_standard_input_are_read() {
    let world = World::new();
    let script = world.write("home/project/x.sh", "cd /tmp\n");
    let ran = world.run(&["check".as_ref(), script.as_os_str()]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert_eq!(asked(&world, &["check", "-"], "cd /tmp").code, Some(1));
    assert_eq!(asked(&world, &["check", "-"], "ls").code, Some(0));
    assert_eq!(world.run(&["check", "/nonexistent"]).code, Some(2));
    assert_eq!(world.run(&["check"]).code, Some(2));
}

#[test]
fn an_agent_is_answered_in_its_own_words() {
    let world = World::new();
    let question =
        r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm x"}}"#;
    let ran = asked(
        &world,
        &["hook", "claude-code", "--rules", "verify"],
        question,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
    let ran = asked(&world, &["hook", "generic"], "not json");
    assert_eq!(ran.code, Some(2), "what cannot be read is not allowed");
    assert_eq!(ran.out, "");
}

#[test]
fn an_explanation_is_a_tree() {
    let world = World::new();
    let text = "make && sudo bash -c 'cd /tmp; rm -rf \"$x\"' > log";
    let ran = world.run(&["check", "--explain", "-c", text]);
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(ran.golden());
}

const RULES: &str = r#"{ "shell": { "rules": [
  { "action": "allow", "prefix": ["make"], "match": ["make test"] },
  { "action": "ask", "prefix": ["git", "push"], "justification": "pushing is public" },
  { "action": "deny", "prefix": [["npm", "yarn"], "publish"] },
] } }"#;

#[test]
fn rules_of_the_settings_are_heard_by_check_and_hook() {
    let world = World::new();
    world.user_settings(RULES);
    assert_eq!(world.run(&["check", "-c", "make test"]).code, Some(0));
    let ran = world.run(&["check", "-c", "make && yarn publish"]);
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(ran.golden());
    let ran = world.run(&["check", "--json", "-c", "git -C . push"]);
    assert_eq!(ran.code, Some(1), "without anybody to ask the answer is no");
    let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(answer["verdict"], "ask");
    assert_eq!(answer["code"], "user-rule");

    // The agent says where it will run; the project there has its say.
    world.write("home/other/Cargo.toml", "");
    world.write(
        "home/other/.ringfence/settings.json",
        r#"{ "shell": { "rules": [
            { "action": "allow", "prefix": ["rm"] }, { "action": "deny", "prefix": ["make"] } ] } }"#,
    );
    let question = |command: &str, directory: &str| {
        let cwd = world.home().join(directory);
        let question = serde_json::json!({ "command": command, "cwd": cwd });
        let ran = asked(&world, &["hook", "generic"], &question.to_string());
        assert_eq!(ran.code, Some(0), "{}", ran.errors);
        let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        answer["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!(question("make", "project"), "allow");
    assert_eq!(question("make", "other"), "deny");
    assert_eq!(question("git push", "project"), "ask");
    assert_eq!(
        question("rm x", "other"),
        "pass",
        "a project's file only narrows"
    );
}

#[test]
fn a_mistake_in_the_rules_starts_and_allows_nothing() {
    let world = World::new();
    world.user_settings(
        r#"{ "shell": { "rules": [
  { "action": "deny", "prefix": ["rm"], "match": ["ls"] },
  { "action": "denny", "prefix": [] },
  { "prefix": ["a", [], ""], "pattern": 1 },
] } }"#,
    );
    let ran = world.run(&["settings", "check"]);
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.golden());
    world.user_settings(
        r#"{ "shell": { "rules": [
  { "action": "deny", "prefix": ["rm"], "match": ["rm x", "ls"] },
  { "action": "allow", "prefix": ["ls"], "not_match": ["ls -l"] },
] } }"#,
    );
    let ran = world.run(&["settings", "check"]);
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.golden());
    assert_eq!(world.run(&["check", "-c", "ls"]).code, Some(2));
    assert_eq!(world.run(&["run", "--", "true"]).code, Some(2));
    let ran = asked(&world, &["hook", "generic"], r#"{"command": "ls"}"#);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
}

#[test]
fn rules_are_shown_with_their_places() {
    let world = World::new();
    world.user_settings(RULES);
    world
        .project_settings(r#"{ "shell": { "rules": [{ "action": "allow", "prefix": ["rm"] }] } }"#);
    let ran = world.run(&["settings", "show"]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    let from = ran.out.find("\nshell rules").unwrap();
    insta::assert_snapshot!(&ran.out[from..]);
}

#[test]
fn a_command_is_read_before_it_is_run() {
    let world = World::new();
    let run = |words: &[&str]| {
        let mut arguments = vec!["run", "--shell-policy", "verify", "--"];
        arguments.extend(words);
        world.run(&arguments)
    };
    let made = world.project().join("made");
    let text = format!("true && touch {}", made.display());
    let words: [&[&str]; 5] = [
        &["/bin/bash", "-c", &text],
        &["/bin/sh", "-c", &text],
        &["env", "A=b", "bash", "-lc", &text],
        &["touch", made.to_str().unwrap()],
        &["bash", "-c", "echo 'open"],
    ];
    for words in words {
        let ran = run(words);
        assert_eq!(ran.code, Some(125), "{words:?}: {}", ran.errors);
        assert!(ran.errors.contains("nothing was started"), "{}", ran.errors);
        assert!(!made.try_exists().unwrap(), "{words:?}");
    }
    let ran = run(&["/bin/bash", "-c", "true && touch made"]);
    insta::assert_snapshot!(ran.golden());
    // The control: the same command is fine without the policy, and another one with it.
    assert_eq!(
        world.run(&["run", "--", "/bin/sh", "-c", &text]).code,
        Some(0)
    );
    assert!(made.try_exists().unwrap());
    let ran = run(&["/bin/bash", "-c", "exit 3"]);
    assert_eq!(ran.code, Some(3), "{}", ran.errors);
}

#[test]
fn what_the_policy_said_is_in_the_report() {
    let world = World::new();
    world.user_settings(RULES);
    let report = world.root().join("report.json");
    let path = report.to_str().unwrap();
    for (command, code, verdict) in [
        ("git push", 125, "ask"),
        ("npm publish", 125, "deny"),
        ("exit 0", 0, "allow"),
    ] {
        let ran = world.run(&[
            "run",
            "--report",
            path,
            "--shell-policy",
            "relaxed",
            "--",
            "bash",
            "-c",
            command,
        ]);
        assert_eq!(ran.code, Some(code), "{command}: {}", ran.errors);
        let report = std::fs::read_to_string(&report).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let said = &report["shell_policy"];
        assert_eq!(said["verdict"], verdict, "{report}");
        assert_eq!(said["rules"], "relaxed");
        assert_eq!(said["command"], format!("bash -c '{command}'"));
        assert_eq!(report["cause"] == "refused", code == 125);
    }
}

#[test]
fn a_hook_is_installed_once_and_taken_out_again() {
    let world = World::new();
    let file = world.home().join(".claude/settings.json");
    let before = "{\n  // mine\n  \"theme\": \"dark\"\n}\n";
    world.write("home/.claude/settings.json", before);
    let read = || std::fs::read_to_string(&file).unwrap();

    let ran = world.run(&["hook", "install", "claude-code", "--print"]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert_eq!(read(), before);
    let program = env!("CARGO_BIN_EXE_ringfence");
    insta::assert_snapshot!(ran.out.replace(program, "[PROGRAM]"));

    let install = ["hook", "install", "claude-code", "--rules", "verify"];
    assert_eq!(world.run(&install).code, Some(0));
    let installed = read();
    assert!(installed.contains("// mine"), "{installed}");
    assert_eq!(world.run(&install).code, Some(0));
    assert_eq!(read(), installed, "twice is once");

    // What was written is what the agent would run.
    let settings = installed.replace("// mine", "");
    let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str();
    let question =
        r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm x"}}"#;
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", command.unwrap()])
        .current_dir(world.project());
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(question.as_bytes())
        .unwrap();
    let answer = world.ran(&child.wait_with_output().unwrap());
    assert!(answer.out.contains("deny"), "{answer:?}");

    assert_eq!(
        world.run(&["hook", "uninstall", "claude-code"]).code,
        Some(0)
    );
    assert_eq!(read(), before);
    let left: Vec<_> = std::fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn settings_that_are_not_understood_are_left_alone() {
    let world = World::new();
    for text in ["{ \"hooks\": [] }", "{,}", "\u{0}", "theme = 'dark'"] {
        let file = world.write("home/.gemini/settings.json", text);
        for change in ["install", "uninstall"] {
            let ran = world.run(&["hook", change, "gemini"]);
            assert_eq!(ran.code, Some(125), "{text}: {}", ran.errors);
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
    assert_eq!(world.run(&["hook", "install", "generic"]).code, Some(2));
    assert_eq!(world.run(&["hook", "install"]).code, Some(2));
    assert_eq!(world.run(&["hook"]).code, Some(2));
}

#[test]
fn settings_behind_a_link_are_changed_where_they_are() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let world = World::new();
    let real = world.write("home/dotfiles/hooks.json", "{}\n");
    let owner = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(&real, owner).unwrap();
    std::fs::create_dir(world.home().join(".codex")).unwrap();
    let link = world.home().join(".codex/hooks.json");
    symlink(&real, &link).unwrap();
    let ran = world.run(&["hook", "install", "codex"]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = std::fs::metadata(&real).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(std::fs::read_to_string(&real).unwrap().contains("^Bash$"));
    // A variable names another place, and an absent file is made.
    let mut elsewhere = world.command();
    elsewhere.args(["hook", "install", "codex"]);
    elsewhere.env("CODEX_HOME", world.home().join("codex"));
    assert!(elsewhere.status().unwrap().success());
    assert!(world.home().join("codex/hooks.json").try_exists().unwrap());
}

/// The rules would have read the name of the shell alone.
#[test]
fn no_rules_are_promised_for_what_is_typed() {
    let world = World::new();
    let ran = world.run(&["shell", "--shell-policy", "verify"]);
    assert_eq!(ran.code, Some(2), "{}", ran.errors);
    assert!(ran.errors.contains("ringfence run"), "{}", ran.errors);
}
