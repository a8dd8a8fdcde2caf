//! A user's rules for shell commands, from settings to what judges by them.
//!
//! Settings know where a rule is written, and the shell policy knows what it matches; only here are
//! both at hand. Rules whose examples do not hold are never in force: they stop everything, as any
//! other mistake in the settings does.

use ringfence_core::origin::Located;
use ringfence_core::policy::Complaint;
use ringfence_core::settings::{ShellAction, ShellRule, ShellWords};
use ringfence_shell::{Action, Element, Rule, RuleError, Rules};

/// The rules, each with its place, their examples checked.
///
/// # Errors
///
/// Every rule that contradicts its own examples.
pub fn rules(written: &[Located<ShellRule>]) -> Result<Rules, Vec<Complaint>> {
    let mut complaints = Vec::new();
    let mut rules = Vec::with_capacity(written.len());
    for located in written {
        let rule = rule(located);
        // One by one: every mistake is told, not only the first.
        if let Err(error) = Rules::load(vec![rule.clone()]) {
            complaints.push(complaint(located, &error));
        }
        rules.push(rule);
    }
    if !complaints.is_empty() {
        return Err(complaints);
    }
    Rules::load(rules).map_err(|error| {
        let written = written.first();
        written
            .map(|located| complaint(located, &error))
            .into_iter()
            .collect()
    })
}

fn rule(located: &Located<ShellRule>) -> Rule {
    let written = &located.value;
    let prefix = written.prefix.iter().map(|words| match words {
        ShellWords::One(word) => Element::Word(word.clone()),
        ShellWords::AnyOf(words) => Element::AnyOf(words.clone()),
    });
    let texts = |list: &[Located<String>]| list.iter().map(|text| text.value.clone()).collect();
    Rule {
        action: match written.action {
            ShellAction::Allow => Action::Allow,
            ShellAction::Ask => Action::Ask,
            ShellAction::Deny => Action::Deny,
        },
        prefix: prefix.collect(),
        justification: written.justification.clone(),
        matches: texts(&written.matches),
        not_matches: texts(&written.not_matches),
        origin: Some(located.origin.to_string()),
    }
}

/// What is wrong with a rule, at the example that shows it.
fn complaint(located: &Located<ShellRule>, error: &RuleError) -> Complaint {
    let rule = &located.value;
    let (message, example) = match error {
        RuleError::ExampleMissed { example, .. } => {
            ("the rule does not match this example", Some(example))
        }
        RuleError::ExampleMatched { example, .. } => (
            "the rule matches this example, which it says it does not",
            Some(example),
        ),
        RuleError::ExampleUnreadable { example, .. } => (
            "this example cannot be read as a command, so it shows nothing",
            Some(example),
        ),
        _ => ("the rule has an empty word", None),
    };
    let examples = match error {
        RuleError::ExampleMatched { .. } => [&rule.not_matches, &rule.matches],
        _ => [&rule.matches, &rule.not_matches],
    };
    let place = examples
        .into_iter()
        .flatten()
        .find(|written| Some(&written.value) == example);
    Complaint {
        origin: place.map_or(&located.origin, |place| &place.origin).clone(),
        message: message.to_owned(),
        help: Some(format!("the rule's prefix is `{rule}`")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ringfence_core::origin::{Layer, Source};
    use ringfence_core::settings::{Base, Os, Settings, SettingsFile};
    use ringfence_shell::{Answer, Ir};

    use super::*;

    fn settings(layers: &[(Layer, &str)]) -> Settings {
        let mut settings = Settings::new();
        for (layer, text) in layers {
            let source = Source::new(*layer, Path::new("/s.json"), *text);
            let (file, problems) = SettingsFile::read(&source, &Base::default());
            assert_eq!(problems, []);
            settings = settings.with(*layer, file.on(Os::Linux));
        }
        settings
    }

    fn answer(settings: &Settings, command: &str) -> Option<Answer> {
        let rules = rules(&settings.shell_rules().rules).unwrap();
        rules.answer(&Ir::from_bash(command))
    }

    #[test]
    fn a_rule_decides_and_says_where_it_stands() {
        let text = r#"{ "shell": { "rules": [
            { "action": "allow", "prefix": ["git", ["status", "log"]], "match": ["git log -1"] },
            { "action": "deny", "prefix": ["git", "push"], "justification": "public", "not_match": ["git log"] },
        ] } }"#;
        let settings = settings(&[(Layer::User, text)]);
        assert_eq!(
            answer(&settings, "git status").unwrap().action,
            Action::Allow
        );
        let denied = answer(&settings, "git status && git push").unwrap();
        assert_eq!((denied.action, denied.rule), (Action::Deny, 1));
        assert_eq!(denied.origin.as_deref(), Some("/s.json:3:13"));
        assert_eq!(denied.justification.as_deref(), Some("public"));
        assert_eq!(answer(&settings, "make"), None);
    }

    #[test]
    fn a_projects_file_adds_refusals_and_no_allowance() {
        let user = r#"{ "shell": { "rules": [{ "action": "allow", "prefix": ["make"] }] } }"#;
        let project = r#"{ "shell": { "rules": [
            { "action": "allow", "prefix": ["rm"] },
            { "action": "ask", "prefix": ["make", "install"] } ] } }"#;
        let settings = settings(&[(Layer::User, user), (Layer::Project, project)]);
        assert_eq!(answer(&settings, "rm x"), None);
        assert_eq!(answer(&settings, "make").unwrap().action, Action::Allow);
        assert_eq!(
            answer(&settings, "make install").unwrap().action,
            Action::Ask
        );
        let ignored = settings.shell_rules().ignored;
        assert_eq!(ignored.len(), 1);
        assert_eq!(ignored[0].value.to_string(), "rm");
    }

    #[test]
    fn examples_that_do_not_hold_are_told_at_their_places() {
        let text = r#"{ "shell": { "rules": [
            { "action": "deny", "prefix": ["rm"], "match": ["rm x", "ls"] },
            { "action": "deny", "prefix": ["mv"], "not_match": ["mv a b"] },
            { "action": "deny", "prefix": ["cp"], "match": ["cp 'a"] } ] } }"#;
        let settings = settings(&[(Layer::User, text)]);
        let complaints = rules(&settings.shell_rules().rules).unwrap_err();
        let places: Vec<String> = complaints
            .iter()
            .map(|told| told.origin.to_string())
            .collect();
        assert_eq!(places, ["/s.json:2:69", "/s.json:3:65", "/s.json:4:61"]);
    }
}
