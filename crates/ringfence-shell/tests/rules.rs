//! A user's own rules.

#![expect(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "an integration test is all test"
)]

use ringfence_shell::{Action, Ir, Rule, RuleError, Rules};

fn rules(json: &str) -> Result<Rules, RuleError> {
    Rules::load(serde_json::from_str::<Vec<Rule>>(json).unwrap())
}

fn answer(rules: &Rules, text: &str) -> Option<Action> {
    rules
        .answer(&Ir::from_bash(text))
        .map(|answer| answer.action)
}

const SOME: &str = r#"[
    { "action": "allow", "prefix": ["git", ["status", "log", "diff"]], "match": ["git status", "git log -1"], "not_match": ["git push"] },
    { "action": "allow", "prefix": ["ls"] },
    { "action": "allow", "prefix": ["sudo"] },
    { "action": "ask", "prefix": ["git", "push"], "justification": "pushing is public", "match": ["git -C . push", "/usr/bin/git push"] },
    { "action": "deny", "prefix": ["git", "push", ["--force", "-f"]] },
    { "action": "deny", "prefix": ["rm", "-rf"], "match": ["sudo rm -rf x", "find . -exec rm -rf {} +", "bash -c 'rm -rf x'"] }
]"#;

#[test]
fn the_strictest_match_over_all_commands_wins() {
    let rules = rules(SOME).unwrap();
    for (text, expected) in [
        ("ls -l", Some(Action::Allow)),
        ("git status && ls", Some(Action::Allow)),
        ("git status; make", None),
        ("make", None),
        ("git push", Some(Action::Ask)),
        ("ls; git push", Some(Action::Ask)),
        ("git push --force", Some(Action::Deny)),
        ("git push && git push -f", Some(Action::Deny)),
        ("git -c a=b push --force", Some(Action::Deny)),
        ("ls $(rm -rf x)", Some(Action::Deny)),
        ("sudo rm -rf x", Some(Action::Deny)),
        ("sudo ls", Some(Action::Allow)),
        ("sudo make", None),
        ("r\\m -rf x", Some(Action::Deny)),
        ("f() { rm -rf x; }", Some(Action::Deny)),
    ] {
        assert_eq!(answer(&rules, text), expected, "{text}");
    }
}

#[test]
fn what_is_computed_is_never_allowed_and_at_most_asked() {
    let rules = rules(SOME).unwrap();
    assert_eq!(answer(&rules, "git $x"), Some(Action::Ask));
    assert_eq!(answer(&rules, "rm $x"), Some(Action::Ask));
    assert_eq!(answer(&rules, "$x"), None);
    assert_eq!(answer(&rules, "ls; $x"), None);
    assert_eq!(answer(&rules, "ls; eval \"$x\""), None);
    assert_eq!(answer(&rules, "ls 'unterminated"), None);
    assert_eq!(answer(&rules, ""), None);
}

#[test]
fn an_allowance_is_for_the_program_as_written() {
    let rules = rules(SOME).unwrap();
    assert_eq!(answer(&rules, "./ls"), None);
    assert_eq!(answer(&rules, "/tmp/git status"), None);
    assert_eq!(answer(&rules, "git -c core.pager=x log"), None);
    assert_eq!(answer(&rules, "/tmp/git push"), Some(Action::Ask));
}

#[test]
fn the_answer_says_which_rule_and_why() {
    let answer = rules(SOME)
        .unwrap()
        .answer(&Ir::from_bash("ls; git push"))
        .unwrap();
    assert_eq!(
        (answer.rule, answer.span.start, answer.span.end),
        (3, 4, 12)
    );
    assert_eq!(answer.justification.as_deref(), Some("pushing is public"));
}

#[test]
fn rules_that_contradict_themselves_are_not_loaded() {
    for (json, error) in [
        (
            r#"[{ "action": "deny", "prefix": [] }]"#,
            RuleError::EmptyPrefix { rule: 0 },
        ),
        (
            r#"[{ "action": "deny", "prefix": ["a", []] }]"#,
            RuleError::EmptyElement {
                rule: 0,
                position: 1,
            },
        ),
        (
            r#"[{ "action": "deny", "prefix": [""] }]"#,
            RuleError::EmptyElement {
                rule: 0,
                position: 0,
            },
        ),
        (
            r#"[{ "action": "deny", "prefix": ["a"], "match": ["b"] }]"#,
            RuleError::ExampleMissed {
                rule: 0,
                example: "b".to_owned(),
            },
        ),
        (
            r#"[{ "action": "ask", "prefix": ["a"] }, { "action": "deny", "prefix": ["a"], "not_match": ["sudo a"] }]"#,
            RuleError::ExampleMatched {
                rule: 1,
                example: "sudo a".to_owned(),
            },
        ),
        (
            r#"[{ "action": "deny", "prefix": ["a"], "match": ["a '"] }]"#,
            RuleError::ExampleUnreadable {
                rule: 0,
                example: "a '".to_owned(),
            },
        ),
    ] {
        assert_eq!(rules(json), Err(error), "{json}");
    }
}

#[test]
fn unknown_keys_are_errors_and_the_schema_names_the_known_ones() {
    assert!(
        serde_json::from_str::<Rule>(r#"{ "action": "deny", "prefix": ["a"], "prefixes": [] }"#)
            .is_err()
    );
    assert!(serde_json::from_str::<Rule>(r#"{ "action": "forbid", "prefix": ["a"] }"#).is_err());
    let schema = serde_json::to_string(&schemars::schema_for!(Rule)).unwrap();
    for key in ["action", "prefix", "justification", "match", "not_match"] {
        assert!(schema.contains(&format!("\"{key}\"")), "{schema}");
    }
}
