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
