//! A user's own rules: allow, ask or deny by the beginning of a command line.
//!
//! Owns matching. A rule is tried against every command of the text, also those that wrappers start,
//! and the strictest match wins. An allowance is only given when every command is covered; it spares a
//! question, and never lifts the sandbox or a rule set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::writes::git;
use crate::{Code, Command, Ir, Span, Word};

/// One rule, as written in settings.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What to do with a command that matches.
    pub action: Action,
    /// The beginning of the command line, word by word. A list in the place of a word gives
    /// alternatives.
    pub prefix: Vec<Element>,
    /// Why; shown with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// Commands that the rule must match; checked when it is loaded.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Commands that the rule must not match; checked when it is loaded.
    #[serde(default, rename = "not_match", skip_serializing_if = "Vec::is_empty")]
    pub not_matches: Vec<String>,
    /// Where it was written, for messages; not part of the written form.
    #[serde(skip)]
    pub origin: Option<String>,
}

/// What a rule does.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Run without asking.
    Allow,
    /// Ask first.
    Ask,
    /// Do not run.
    Deny,
}

/// One place in a prefix.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Element {
    /// Exactly this word.
    Word(String),
    /// Any of these words.
    AnyOf(Vec<String>),
}

/// Why rules were not loaded. Then none of them is in force, and the launch must stop.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// A rule without a prefix would match everything.
    #[error("rule {rule} has an empty prefix")]
    EmptyPrefix {
        /// Its position, from 0.
        rule: usize,
    },
    /// A list of alternatives, or a word, that can match nothing.
    #[error("rule {rule} has an empty element at position {position}")]
    EmptyElement {
        /// The position of the rule, from 0.
        rule: usize,
        /// The position in its prefix, from 0.
        position: usize,
    },
    /// An example under `match` does not match.
    #[error("rule {rule} does not match its own example {example:?}")]
    ExampleMissed {
        /// The position of the rule, from 0.
        rule: usize,
        /// The example.
        example: String,
    },
    /// An example under `not_match` matches.
    #[error("rule {rule} matches {example:?}, which it says it does not")]
    ExampleMatched {
        /// The position of the rule, from 0.
        rule: usize,
        /// The example.
        example: String,
    },
    /// An example does not parse, so it proves nothing.
    #[error("an example of rule {rule} does not parse: {example:?}")]
    ExampleUnreadable {
        /// The position of the rule, from 0.
        rule: usize,
        /// The example.
        example: String,
    },
}

/// Rules whose examples hold.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rules(Vec<Rule>);

/// What the rules say of a text.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What to do.
    pub action: Action,
    /// The position of the rule that decided, from 0.
    pub rule: usize,
    /// The command that it matched.
    pub span: Span,
    /// The reason that the rule gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// Where the rule was written, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// How a command stands to a prefix.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Match {
    No,
    /// A computed word stands where the prefix asks for one.
    Perhaps,
    Yes,
}

impl Rules {
    /// Checks `rules` and their examples.
    ///
    /// # Errors
    ///
    /// The first rule that is empty or contradicts its own examples.
    pub fn load(rules: Vec<Rule>) -> Result<Self, RuleError> {
        for (index, rule) in rules.iter().enumerate() {
            check(index, rule)?;
        }
        Ok(Self(rules))
    }

    /// The rules, as written.
    pub fn as_slice(&self) -> &[Rule] {
        &self.0
    }

    /// What the rules say of `ir`, or nothing when no rule applies.
    ///
    /// The strictest match over all commands wins. A denial that hangs on a computed word becomes a
    /// question. An allowance needs every command to be allowed and nothing to be computed or refused.
    pub fn answer(&self, ir: &Ir) -> Option<Answer> {
        let mut strictest: Option<Answer> = None;
        let mut covered = ir.refusal.is_none() && !ir.commands.is_empty();
        covered &= !ir.has(Code::ComputedCommand)
            && !ir.has(Code::ComputedCode)
            && !ir.has(Code::OpaqueInterpreter);
        for command in ir
            .commands
            .iter()
            .filter(|command| !command.words.is_empty())
        {
            let mut allowed = false;
            for (rule_index, rule) in self.0.iter().enumerate() {
                let action = match (matching(rule, command), rule.action) {
                    (Match::No, _) | (Match::Perhaps, Action::Allow) => continue,
                    (Match::Perhaps, Action::Ask | Action::Deny) => Action::Ask,
                    (Match::Yes, action) => action,
                };
                allowed |= action == Action::Allow;
                if strictest
                    .as_ref()
                    .is_none_or(|answer| answer.action < action)
                {
                    strictest = Some(Answer {
                        action,
                        rule: rule_index,
                        span: command.span,
                        justification: rule.justification.clone(),
                        origin: rule.origin.clone(),
                    });
                }
            }
            covered &= allowed;
        }
        strictest.filter(|answer| answer.action != Action::Allow || covered)
    }
}

fn check(index: usize, rule: &Rule) -> Result<(), RuleError> {
    if rule.prefix.is_empty() {
        return Err(RuleError::EmptyPrefix { rule: index });
    }
    for (position, element) in rule.prefix.iter().enumerate() {
        let empty = match element {
            Element::Word(word) => word.is_empty(),
            Element::AnyOf(words) => words.is_empty() || words.iter().any(String::is_empty),
        };
        if empty {
            return Err(RuleError::EmptyElement {
                rule: index,
                position,
            });
        }
    }
    let matched = |example: &String| {
        let ir = Ir::from_bash(example);
        if ir.refusal.is_some() {
            return Err(RuleError::ExampleUnreadable {
                rule: index,
                example: example.clone(),
            });
        }
        Ok(ir
            .commands
            .iter()
            .any(|command| matching(rule, command) == Match::Yes))
    };
    for example in &rule.matches {
        if !matched(example)? {
            return Err(RuleError::ExampleMissed {
                rule: index,
                example: example.clone(),
            });
        }
    }
    for example in &rule.not_matches {
        if matched(example)? {
            return Err(RuleError::ExampleMatched {
                rule: index,
                example: example.clone(),
            });
        }
    }
    Ok(())
}

fn matching(rule: &Rule, command: &Command) -> Match {
    let written = prefix_matches(rule, command.words.iter());
    // `git -C . push` is `git push` to a rule that restricts; an allowance takes words as written.
    if rule.action == Action::Allow || command.name() != Some("git") {
        return written;
    }
    let (Some(name), Some(words)) = (command.words.first(), command.words.get(1..)) else {
        return written;
    };
    let at = git::subcommand(words).map_or(words.len(), |subcommand| subcommand.at);
    let plain = prefix_matches(
        rule,
        std::iter::once(name).chain(words.get(at..).unwrap_or_default()),
    );
    written.max(plain)
}

fn prefix_matches<'w>(rule: &Rule, mut words: impl Iterator<Item = &'w Word>) -> Match {
    let mut matched = Match::Yes;
    for (position, element) in rule.prefix.iter().enumerate() {
        let Some(word) = words.next() else {
            return Match::No;
        };
        let is = |wanted: &String| match word.literal() {
            Some(text) if text == wanted => Match::Yes,
            // `/usr/bin/git` is git to a rule that restricts.
            _ if position == 0
                && rule.action != Action::Allow
                && word.basename() == Some(wanted) =>
            {
                Match::Yes
            }
            None => Match::Perhaps,
            Some(_) => Match::No,
        };
        let here = match element {
            Element::Word(wanted) => is(wanted),
            Element::AnyOf(wanted) => wanted.iter().map(is).max().unwrap_or(Match::No),
        };
        matched = matched.min(here);
        if matched == Match::No || (position == 0 && here == Match::Perhaps) {
            // A computed name is a risk code of its own, not a match of every rule.
            return Match::No;
        }
    }
    matched
}
