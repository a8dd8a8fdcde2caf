//! What must stand in an agent's settings for it to call the hook.
//!
//! Owns the change of such a file, as text to text: comments, order and layout of everything else stay.
//! What a file means after a change is worked out on its values first, and the changed text must mean
//! exactly that, or it is not given out.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};
use serde_json::{Value, json};

use super::Agent;
use crate::Ir;

/// Why an agent's settings were left alone.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The agent has no settings file that is known.
    #[error("this agent has no settings to change; call the hook from its own configuration")]
    NoSettings,
    /// The file is not JSON, with or without comments.
    #[error("the settings are not JSON: {reason}")]
    NotJson {
        /// What is wrong, and where.
        reason: String,
    },
    /// The changed text would not mean what it should: a key written twice, for one.
    #[error("the settings cannot be changed without changing something else in them")]
    NotEditable,
    /// The file holds something else where hooks belong.
    #[error("the settings do not have the shape that this agent documents")]
    WrongShape,
}

impl Agent {
    /// The user's settings file of this agent, relative to the home directory.
    pub fn settings_path(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some(".claude/settings.json"),
            Self::Codex => Some(".codex/hooks.json"),
            Self::Gemini => Some(".gemini/settings.json"),
            Self::Generic => None,
        }
    }

    /// The variable that names another directory for that file, and the file's name in it.
    pub fn settings_variable(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::ClaudeCode => Some(("CLAUDE_CONFIG_DIR", "settings.json")),
            Self::Codex => Some(("CODEX_HOME", "hooks.json")),
            Self::Gemini | Self::Generic => None,
        }
    }

    /// Which of its tools the hook is for, as the agent writes it.
    fn matcher(self) -> String {
        // Claude Code compares plain names exactly, and reads others as patterns.
        if self == Self::ClaudeCode {
            self.shell_tool().to_owned()
        } else {
            format!("^{}$", self.shell_tool())
        }
    }

    /// Whether `command` is a call of this hook, whatever its options and wherever the program is.
    fn is_own(self, command: &str) -> bool {
        let ir = Ir::from_bash(command);
        let [only] = ir.commands.as_slice() else {
            return false;
        };
        let word = |index: usize| only.words.get(index).and_then(|word| word.literal());
        only.name() == Some("ringfence") && word(1) == Some("hook") && word(2) == Some(self.name())
    }
}

/// The text with the hook in it, or nothing if `text` already calls exactly this `command`.
///
/// Another call of the same hook, with other options or from another place, is replaced. An empty
/// text is an empty file.
///
/// # Errors
///
/// On any [`SettingsError`] the file must be left as it is.
pub fn install(agent: Agent, text: &str, command: &str) -> Result<Option<String>, SettingsError> {
    let event = agent.event().ok_or(SettingsError::NoSettings)?;
    let fresh = text.trim().is_empty();
    let text = if fresh { "{}\n" } else { text };
    let (root, before) = parsed(text)?;
    let Some(after) = installed(agent, &before, command)? else {
        return Ok(None);
    };
    let object = root.object_value().ok_or(SettingsError::WrongShape)?;
    let hooks = object
        .object_value_or_create("hooks")
        .ok_or(SettingsError::WrongShape)?;
    let list = hooks
        .array_value_or_create(event)
        .ok_or(SettingsError::WrongShape)?;
    let mut calls = own_calls(agent, &list).into_iter();
    if let Some(call) = calls.next() {
        let written = call.get("command").ok_or(SettingsError::NotEditable)?;
        written.set_value(CstInputValue::String(command.to_owned()));
    } else {
        list.append(input(&entry(agent, command)));
    }
    meaning(&root, &after)
}

/// The text without the hook, whatever its options, or nothing if it is not in `text`.
///
/// Lists and objects that are empty then and were not before are gone too.
///
/// # Errors
///
/// On any [`SettingsError`] the file must be left as it is.
pub fn uninstall(agent: Agent, text: &str) -> Result<Option<String>, SettingsError> {
    let event = agent.event().ok_or(SettingsError::NoSettings)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let (root, before) = parsed(text)?;
    let Some(after) = uninstalled(agent, &before)? else {
        return Ok(None);
    };
    let object = root.object_value().ok_or(SettingsError::WrongShape)?;
    let hooks = object.get("hooks").ok_or(SettingsError::NotEditable)?;
    let events = hooks.object_value().ok_or(SettingsError::NotEditable)?;
    let own = events.get(event).ok_or(SettingsError::NotEditable)?;
    let list = own.array_value().ok_or(SettingsError::NotEditable)?;
    for call in own_calls(agent, &list) {
        call.remove();
    }
    for entry in list.elements() {
        let emptied = entry
            .as_object()
            .and_then(|entry| entry.array_value("hooks"))
            .is_some_and(|calls| calls.elements().is_empty());
        if emptied {
            entry.remove();
        }
    }
    if list.elements().is_empty() {
        own.remove();
    }
    if events.properties().is_empty() {
        hooks.remove();
    }
    meaning(&root, &after)
}

/// The text of the tree, if it means `wanted`.
fn meaning(root: &CstRootNode, wanted: &Value) -> Result<Option<String>, SettingsError> {
    let text = root.to_string();
    let (_, value) = parsed(&text)?;
    if value == *wanted {
        Ok(Some(text))
    } else {
        Err(SettingsError::NotEditable)
    }
}

fn parsed(text: &str) -> Result<(CstRootNode, Value), SettingsError> {
    let options = ParseOptions {
        allow_bare_decimal_point_numbers: false,
        allow_comments: true,
        allow_extended_string_escapes: false,
        allow_hexadecimal_numbers: false,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_non_finite_numbers: false,
        allow_single_quoted_strings: false,
        allow_trailing_commas: true,
        allow_unary_plus_numbers: false,
    };
    let root = CstRootNode::parse(text, &options).map_err(|error| SettingsError::NotJson {
        reason: error.to_string(),
    })?;
    let value = root.to_serde_value().ok_or(SettingsError::WrongShape)?;
    Ok((root, value))
}

fn entry(agent: Agent, command: &str) -> Value {
    let call = json!({ "type": "command", "command": command });
    json!({ "matcher": agent.matcher(), "hooks": [call] })
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(map) => {
            // `matcher` and `type` first, as everybody writes them.
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| !matches!(key.as_str(), "matcher" | "type"));
            let pairs = pairs.into_iter();
            CstInputValue::Object(
                pairs
                    .map(|(key, value)| (key.clone(), input(value)))
                    .collect(),
            )
        }
    }
}

/// The calls of the hook in the list of an event.
fn own_calls(agent: Agent, list: &CstArray) -> Vec<CstObject> {
    let entries = list.elements().into_iter();
    let calls = entries
        .filter_map(|entry| entry.as_object()?.array_value("hooks"))
        .flat_map(|calls| calls.elements());
    calls
        .filter_map(|call| call.as_object())
        .filter(|call| {
            let command = call.get("command").and_then(|command| command.value());
            let command = command.and_then(|command| command.as_string_lit());
            command.is_some_and(|command| {
                command
                    .decoded_value()
                    .is_ok_and(|text| agent.is_own(&text))
            })
        })
        .collect()
}

fn entries<'v>(event: &str, settings: &'v Value) -> Result<&'v [Value], SettingsError> {
    let root = settings.as_object().ok_or(SettingsError::WrongShape)?;
    let Some(hooks) = root.get("hooks") else {
        return Ok(&[]);
    };
    let hooks = hooks.as_object().ok_or(SettingsError::WrongShape)?;
    let Some(list) = hooks.get(event) else {
        return Ok(&[]);
    };
    let list = list.as_array().ok_or(SettingsError::WrongShape)?;
    Ok(list)
}

fn commands(entry: &Value) -> impl Iterator<Item = &str> {
    let calls = entry.get("hooks").and_then(Value::as_array);
    let calls = calls.into_iter().flatten();
    calls.filter_map(|call| call.get("command")?.as_str())
}

/// What the settings mean with the hook in them, or nothing if they have it.
fn installed(
    agent: Agent,
    settings: &Value,
    command: &str,
) -> Result<Option<Value>, SettingsError> {
    let event = agent.event().ok_or(SettingsError::NoSettings)?;
    let list = entries(event, settings)?;
    let own = list
        .iter()
        .flat_map(commands)
        .find(|known| agent.is_own(known));
    if own == Some(command) {
        return Ok(None);
    }
    let replaced = own.is_some();
    let mut changed = settings.clone();
    let root = changed.as_object_mut().ok_or(SettingsError::WrongShape)?;
    let hooks = root.entry("hooks").or_insert_with(|| json!({}));
    let hooks = hooks.as_object_mut().ok_or(SettingsError::WrongShape)?;
    let list = hooks.entry(event).or_insert_with(|| json!([]));
    let list = list.as_array_mut().ok_or(SettingsError::WrongShape)?;
    if replaced {
        let calls = list.iter_mut().filter_map(|entry| entry.get_mut("hooks"));
        let mut calls = calls.filter_map(Value::as_array_mut).flatten();
        let written = calls.find_map(|call| {
            let written = call.get_mut("command")?;
            agent.is_own(written.as_str()?).then_some(written)
        });
        *written.ok_or(SettingsError::NotEditable)? = json!(command);
    } else {
        list.push(entry(agent, command));
    }
    Ok(Some(changed))
}

/// What the settings mean without the hook, or nothing if they do not have it.
fn uninstalled(agent: Agent, settings: &Value) -> Result<Option<Value>, SettingsError> {
    let event = agent.event().ok_or(SettingsError::NoSettings)?;
    let list = entries(event, settings)?;
    if !list
        .iter()
        .flat_map(commands)
        .any(|command| agent.is_own(command))
    {
        return Ok(None);
    }
    let mut changed = settings.clone();
    let root = changed.as_object_mut().ok_or(SettingsError::WrongShape)?;
    let hooks = root.get_mut("hooks").and_then(Value::as_object_mut);
    let hooks = hooks.ok_or(SettingsError::WrongShape)?;
    let list = hooks.get_mut(event).and_then(Value::as_array_mut);
    let list = list.ok_or(SettingsError::WrongShape)?;
    for entry in list.iter_mut() {
        if let Some(calls) = entry.get_mut("hooks").and_then(Value::as_array_mut) {
            calls.retain(|call| {
                let command = call.get("command").and_then(Value::as_str);
                !command.is_some_and(|command| agent.is_own(command))
            });
        }
    }
    list.retain(|entry| {
        let calls = entry.get("hooks").and_then(Value::as_array);
        calls.is_none_or(|calls| !calls.is_empty())
    });
    if list.is_empty() {
        hooks.remove(event);
    }
    if hooks.is_empty() {
        root.remove("hooks");
    }
    Ok(Some(changed))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
