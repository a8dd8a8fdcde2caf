//! A user's rules for shell commands, as written.
//!
//! Only their shape and where they stand: which command they match is known to the room that reads
//! commands, which stands beside this one. So nothing here can say whether an example holds; whoever
//! loads the rules asks there, and stops on the first that does not.

use jsonc_parser::ast::Value;
use schemars::JsonSchema;
use serde::Serialize;

use super::read::{List, Readable, Reader, span_of};
use super::values::ShellAction;
use crate::origin::Located;
use crate::problem::Problem;

/// Allow, ask or deny by the beginning of a command line.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ShellRule {
    /// What to do with a command that matches. The strictest match over all commands of a text
    /// wins, and an allowance never lifts the sandbox.
    pub action: ShellAction,
    /// The beginning of the command line, word by word; a list in the place of a word gives
    /// alternatives.
    #[schemars(length(min = 1))]
    pub prefix: Vec<ShellWords>,
    /// Why; shown with the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// Commands that the rule must match; checked whenever it is read.
    #[schemars(default, with = "Option<Vec<String>>")]
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: List<String>,
    /// Commands that the rule must not match; checked whenever it is read.
    #[schemars(default, with = "Option<Vec<String>>")]
    #[serde(rename = "not_match", skip_serializing_if = "Vec::is_empty")]
    pub not_matches: List<String>,
}

/// One place in a prefix.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ShellWords {
    /// Exactly this word.
    One(#[schemars(length(min = 1))] String),
    /// Any of these words.
    AnyOf(#[schemars(length(min = 1), inner(length(min = 1)))] Vec<String>),
}

impl std::fmt::Display for ShellRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (position, words) in self.prefix.iter().enumerate() {
            if position > 0 {
                f.write_str(" ")?;
            }
            let words = match words {
                ShellWords::One(word) => word.clone(),
                ShellWords::AnyOf(words) => format!("({})", words.join("|")),
            };
            f.write_str(&crate::text::printable(&words))?;
        }
        Ok(())
    }
}

const KEYS: [&str; 5] = ["action", "justification", "match", "not_match", "prefix"];

impl Readable for ShellRule {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Value::Object(object) = value else {
            reader.wrong_type(value, "an object");
            return None;
        };
        let (mut action, mut prefix, mut justification) = (None, None, None);
        let (mut matches, mut not_matches) = (None, None);
        reader.each_key(object, &KEYS, |reader, name, value| {
            match name {
                "action" => action = Some(ShellAction::read(value, reader)),
                "prefix" => prefix = Some(read_prefix(value, reader)),
                // `null` says nothing, here as everywhere.
                _ if matches!(value, Value::NullKeyword(_)) => return KEYS.contains(&name),
                "justification" => justification = Some(String::read(value, reader)),
                "match" => matches = Some(List::<String>::read(value, reader)),
                "not_match" => not_matches = Some(List::<String>::read(value, reader)),
                _ => return false,
            }
            true
        });
        for (name, there) in [("action", action.is_some()), ("prefix", prefix.is_some())] {
            if !there {
                reader.problem(Problem::error(
                    span_of(value),
                    format!("a rule needs the key `{name}`"),
                    "this rule",
                ));
            }
        }
        // What is written must have been understood; what is not written is nothing.
        Some(Self {
            action: action??,
            prefix: prefix??,
            justification: justification.map_or(Some(None), |text| text.map(Some))?,
            matches: matches.unwrap_or_else(|| Some(Vec::new()))?,
            not_matches: not_matches.unwrap_or_else(|| Some(Vec::new()))?,
        })
    }
}

impl Readable for ShellAction {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        super::read::read_word(value, reader)
    }
}

fn read_prefix(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Vec<ShellWords>> {
    let Value::Array(array) = value else {
        reader.wrong_type(value, "an array");
        return None;
    };
    if array.elements.is_empty() {
        reader.problem(
            Problem::error(span_of(value), "the prefix is empty", "write a word")
                .help("a rule without one would match every command"),
        );
        return None;
    }
    let words = array.elements.iter().map(|element| match element {
        Value::Array(words) if words.elements.is_empty() => {
            let nothing = Problem::error(span_of(words), "no alternatives", "write a word");
            reader.problem(nothing);
            None
        }
        Value::Array(words) => {
            let words = words.elements.iter().map(|word| read_one(word, reader));
            // Not the short way: every mistake is told.
            let words: Vec<Option<String>> = words.collect();
            words
                .into_iter()
                .collect::<Option<_>>()
                .map(ShellWords::AnyOf)
        }
        word => read_one(word, reader).map(ShellWords::One),
    });
    let words: Vec<Option<ShellWords>> = words.collect();
    words.into_iter().collect()
}

fn read_one(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<String> {
    let word = String::read(value, reader)?;
    if word.is_empty() || word.contains('\0') {
        let useless = "a word of a prefix cannot be empty or hold a zero byte";
        reader.problem(Problem::error(span_of(value), useless, "write a word"));
        return None;
    }
    Some(word)
}

/// Rules of all layers, and those of a project's file that would have widened.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ShellRules {
    /// What holds, weakest layer first.
    pub rules: List<ShellRule>,
    /// What a project's file tried to allow.
    pub ignored: List<ShellRule>,
}

impl super::Settings {
    /// Every rule for shell commands; a project's file may only ask and deny.
    pub fn shell_rules(&self) -> ShellRules {
        let mut out = ShellRules::default();
        let trusted = self.trust == super::ProjectTrust::Trusted;
        let layers = self.layers.iter();
        let layers = layers.map(|(layer, keys)| {
            let narrows = *layer == crate::origin::Layer::Project && !trusted;
            (keys, narrows)
        });
        for (keys, narrows) in layers.chain(self.around.iter().map(|keys| (keys, true))) {
            let written = keys.shell.rules.written().into_iter();
            for rule in written.flat_map(|list| &list.value) {
                let widens = narrows && rule.value.action == ShellAction::Allow;
                let list = if widens {
                    &mut out.ignored
                } else {
                    &mut out.rules
                };
                list.push(Located::new(rule.value.clone(), rule.origin.clone()));
            }
        }
        out
    }
}
