use proptest::prelude::*;

use super::{SettingsError, install, uninstall};
use crate::hook::Agent;

const AGENTS: [Agent; 3] = [Agent::ClaudeCode, Agent::Codex, Agent::Gemini];

fn call(agent: Agent) -> String {
    format!("/usr/bin/ringfence hook {agent}")
}

/// Settings as people have them: other hooks, comments, other layouts.
const TEXTS: &[&str] = &[
    "{}\n",
    "{\n  \"theme\": \"dark\"\n}\n",
    "{\n\t\"theme\": \"dark\", // mine\n\t/* kept */\n\t\"b\": [1, 2.50, 1e3],\n}\n",
    "{\n  \"hooks\": {\n    \"Stop\": []\n  },\n  \"theme\": \"dark\"\n}\n",
    "{\r\n  \"theme\": \"dark\"\r\n}\r\n",
];

#[test]
fn settings_are_changed_and_restored_to_the_byte() {
    for agent in AGENTS {
        for text in TEXTS {
            let changed = install(agent, text, &call(agent)).unwrap().unwrap();
            assert!(changed.contains(&call(agent)), "{changed}");
            for line in text.lines().filter(|line| line.contains("//")) {
                assert!(changed.contains(line.trim()), "{changed}");
            }
            assert_eq!(
                install(agent, &changed, &call(agent)),
                Ok(None),
                "twice is once"
            );
            assert_eq!(uninstall(agent, &changed).unwrap().as_deref(), Some(*text));
            assert_eq!(uninstall(agent, text), Ok(None));
        }
    }
}

#[test]
fn a_new_file_holds_the_hook_alone() {
    let text = install(Agent::ClaudeCode, "", "ringfence hook claude-code")
        .unwrap()
        .unwrap();
    assert_eq!(
        text,
        r#"{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {
            "type": "command",
            "command": "ringfence hook claude-code"
          }
        ]
      }
    ]
  }
}
"#
    );
}

#[test]
fn another_call_of_the_hook_is_replaced_and_other_hooks_stay() {
    let text = r#"{"hooks": {"PreToolUse": [
  {"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"},
    {"type": "command", "command": "'/old place/ringfence' hook claude-code --rules verify", "timeout": 5}]}
]}}"#;
    let agent = Agent::ClaudeCode;
    let changed = install(agent, text, &call(agent)).unwrap().unwrap();
    assert_eq!(changed.matches("ringfence").count(), 1, "{changed}");
    assert!(
        changed.contains(r#""timeout": 5"#) && changed.contains("lint"),
        "{changed}"
    );
    let removed = uninstall(agent, &changed).unwrap().unwrap();
    assert!(
        removed.contains("lint") && !removed.contains("ringfence"),
        "{removed}"
    );
}

#[test]
fn what_is_not_understood_is_refused() {
    let agent = Agent::ClaudeCode;
    for (text, shape) in [
        ("{ \"hooks\": [] }", true),
        ("{ \"hooks\": { \"PreToolUse\": {} } }", true),
        ("[]", true),
        ("{ \"a\": 1,, }", false),
        ("{ a: 1 }", false),
        ("{", false),
    ] {
        let error = install(agent, text, &call(agent)).unwrap_err();
        assert_eq!(error == SettingsError::WrongShape, shape, "{text}: {error}");
        assert!(uninstall(agent, text).is_err(), "{text}");
    }
    // Programs differ on which of two keys counts, so neither is touched.
    let twice = "{ \"hooks\": {}, \"hooks\": { \"PreToolUse\": [] } }";
    assert!(install(agent, twice, &call(agent)).is_err());
    assert_eq!(
        install(Agent::Generic, "{}", "x"),
        Err(SettingsError::NoSettings)
    );
}

#[test]
fn only_calls_of_the_hook_are_its_own() {
    let agent = Agent::Codex;
    for (command, own) in [
        ("ringfence hook codex", true),
        ("/opt/ringfence hook codex --rules verify", true),
        ("'/a b/ringfence' hook codex", true),
        ("ringfence hook gemini", false),
        ("ringfence check -", false),
        ("other && ringfence hook codex", false),
        ("\"ringfence hook", false),
    ] {
        assert_eq!(agent.is_own(command), own, "{command}");
    }
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[ -~\u{e9}\u{1f600}\n]{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::btree_map("[a-c]|hooks|PreToolUse|command", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_settings_are_restored_or_refused(value in value(), pretty in any::<bool>()) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        };
        let agent = Agent::ClaudeCode;
        if let Ok(Some(changed)) = install(agent, &text, &call(agent)) {
            prop_assert_eq!(install(agent, &changed, &call(agent)), Ok(None));
            let restored = uninstall(agent, &changed).unwrap().unwrap();
            let mut restored: serde_json::Value = serde_json::from_str(&restored).unwrap();
            // What was empty before is gone: it meant nothing.
            let mut before = value;
            for value in [&mut before, &mut restored] {
                let root = value.as_object_mut().unwrap();
                if let Some(hooks) = root.get_mut("hooks").and_then(|hooks| hooks.as_object_mut()) {
                    if hooks.get("PreToolUse").is_some_and(|list| list == &serde_json::json!([])) {
                        hooks.remove("PreToolUse");
                    }
                    if hooks.is_empty() {
                        root.remove("hooks");
                    }
                }
            }
            prop_assert_eq!(restored, before);
        }
    }
}
