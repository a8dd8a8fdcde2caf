use serde_json::{Value, json};

use super::{Agent, Call, HookError, Opinion, judge, parse, reply};
use crate::{Action, Element, Rule, RuleSet, Rules};

fn claude(tool: &str, input: &Value) -> Vec<u8> {
    let message = json!({
        "session_id": "s", "transcript_path": "/t", "cwd": "/project", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": "u",
    });
    message.to_string().into_bytes()
}

fn gemini(tool: &str, input: &Value) -> Vec<u8> {
    let message = json!({
        "session_id": "s", "transcript_path": "/t", "cwd": "/project", "hook_event_name": "BeforeTool",
        "timestamp": "2026-01-01T00:00:00Z", "tool_name": tool, "tool_input": input,
    });
    message.to_string().into_bytes()
}

fn shell(command: &str) -> Call {
    Call::Shell {
        command: command.to_owned(),
        directory: Some("/project".to_owned()),
    }
}

#[test]
fn each_agent_is_understood() {
    let input = json!({ "command": "ls -l", "description": "list" });
    assert_eq!(
        parse(Agent::ClaudeCode, &claude("Bash", &input)),
        Ok(shell("ls -l"))
    );
    assert_eq!(
        parse(Agent::Codex, &claude("Bash", &input)),
        Ok(shell("ls -l"))
    );
    assert_eq!(
        parse(Agent::Gemini, &gemini("run_shell_command", &input)),
        Ok(shell("ls -l"))
    );
    let generic = br#"{"command": "ls", "cwd": "/project"}"#;
    assert_eq!(parse(Agent::Generic, generic), Ok(shell("ls")));
    assert_eq!(
        parse(
            Agent::ClaudeCode,
            &claude("Read", &json!({ "file_path": "/x" }))
        ),
        Ok(Call::Other)
    );
    assert_eq!(
        parse(Agent::Gemini, &gemini("read_file", &json!({}))),
        Ok(Call::Other)
    );
}

#[test]
fn what_is_not_understood_is_an_error() {
    assert_eq!(parse(Agent::ClaudeCode, b"ls"), Err(HookError::NotJson));
    assert_eq!(parse(Agent::ClaudeCode, b"[]"), Err(HookError::WrongShape));
    assert_eq!(parse(Agent::ClaudeCode, b"{}"), Err(HookError::WrongShape));
    assert_eq!(
        parse(Agent::ClaudeCode, &claude("Bash", &json!({}))),
        Err(HookError::NoCommand)
    );
    assert_eq!(
        parse(
            Agent::ClaudeCode,
            &claude("Bash", &json!({ "command": ["ls"] }))
        ),
        Err(HookError::NoCommand)
    );
    assert_eq!(
        parse(Agent::ClaudeCode, &gemini("run_shell_command", &json!({}))),
        Err(HookError::WrongEvent)
    );
    assert_eq!(
        parse(Agent::Gemini, &claude("Bash", &json!({}))),
        Err(HookError::WrongEvent)
    );
    assert_eq!(
        parse(Agent::Generic, br#"{"cmd": "ls"}"#),
        Err(HookError::NoCommand)
    );
    assert_eq!(
        parse(Agent::Generic, &vec![b' '; super::MAX_MESSAGE + 1]),
        Err(HookError::TooLarge)
    );
}

#[test]
fn a_denial_reaches_each_agent_with_its_reason() {
    let opinion = judge("cd /tmp", RuleSet::Default, &Rules::default());
    let Opinion::Deny { reason } = &opinion else {
        panic!("{opinion:?}")
    };
    assert!(
        reason.contains("(cd)") && reason.contains("Instead"),
        "{reason}"
    );

    for agent in [Agent::ClaudeCode, Agent::Codex] {
        let output = &reply(agent, &opinion).unwrap()["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "PreToolUse");
        assert_eq!(output["permissionDecision"], "deny");
        assert_eq!(output["permissionDecisionReason"], reason.as_str());
    }
    assert_eq!(
        reply(Agent::Gemini, &opinion),
        Some(json!({ "decision": "deny", "reason": reason }))
    );
    assert_eq!(
        reply(Agent::Generic, &opinion),
        Some(json!({ "decision": "deny", "reason": reason }))
    );
}

#[test]
fn no_objection_is_silence_and_a_question_is_never_lost() {
    assert_eq!(
        judge("ls", RuleSet::Default, &Rules::default()),
        Opinion::Pass
    );
    for agent in [Agent::ClaudeCode, Agent::Codex, Agent::Gemini] {
        assert_eq!(reply(agent, &Opinion::Pass), None);
    }
    let ask = Opinion::Ask {
        reason: "r".to_owned(),
    };
    assert_eq!(
        reply(Agent::ClaudeCode, &ask).unwrap()["hookSpecificOutput"]["permissionDecision"],
        "ask"
    );
    assert_eq!(
        reply(Agent::Codex, &ask).unwrap()["hookSpecificOutput"]["permissionDecision"],
        "deny"
    );
    assert_eq!(reply(Agent::Gemini, &ask).unwrap()["decision"], "deny");
    // Codex would take this for a mistake, and run the tool without its own question.
    assert_eq!(
        reply(
            Agent::Codex,
            &Opinion::Allow {
                reason: "r".to_owned()
            }
        ),
        None
    );
}

#[test]
fn a_users_allowance_does_not_lift_a_rule_set() {
    let rule = Rule {
        action: Action::Allow,
        prefix: vec![Element::Word("cd".to_owned())],
        justification: None,
        matches: Vec::new(),
        not_matches: Vec::new(),
        origin: None,
    };
    let rules = Rules::load(vec![rule]).unwrap();
    assert!(matches!(
        judge("cd /tmp", RuleSet::Default, &rules),
        Opinion::Deny { .. }
    ));
    assert!(matches!(
        judge("cd /tmp", RuleSet::Relaxed, &rules),
        Opinion::Allow { .. }
    ));
}

#[test]
fn names_round_trip() {
    for agent in Agent::ALL {
        assert_eq!(agent.name().parse(), Ok(*agent));
    }
    assert!("claude".parse::<Agent>().is_err());
}
