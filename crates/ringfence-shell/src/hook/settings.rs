//! What must stand in an agent's settings for it to call the hook.

use serde_json::{Value, json};

use super::Agent;

/// Why an agent's settings were left alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The agent has no settings file that is known.
    #[error("this agent has no settings to change; call the hook from its own configuration")]
    NoSettings,
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

    /// The entry that makes this agent call `command` before each shell command.
    pub fn settings_entry(self, command: &str) -> Option<Value> {
        self.event()?;
        let matcher = format!("^{}$", self.shell_tool());
        // Claude Code compares plain names exactly, and reads others as patterns.
        let matcher = if self == Self::ClaudeCode {
            self.shell_tool().to_owned()
        } else {
            matcher
        };
        Some(json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": command }] }))
    }
}

/// Adds the hook to `settings`; says whether anything changed.
///
/// # Errors
///
/// On any [`SettingsError`] `settings` is as it was.
pub fn install(agent: Agent, settings: &mut Value, command: &str) -> Result<bool, SettingsError> {
    let (Some(event), Some(entry)) = (agent.event(), agent.settings_entry(command)) else {
        return Err(SettingsError::NoSettings);
    };
    if entries(event, settings)?
        .iter()
        .any(|entry| calls(entry, command))
    {
        return Ok(false);
    }
    let mut changed = settings.clone();
    let root = changed.as_object_mut().ok_or(SettingsError::WrongShape)?;
    let hooks = root.entry("hooks").or_insert_with(|| json!({}));
    let hooks = hooks.as_object_mut().ok_or(SettingsError::WrongShape)?;
    let list = hooks.entry(event).or_insert_with(|| json!([]));
    list.as_array_mut()
        .ok_or(SettingsError::WrongShape)?
        .push(entry);
    *settings = changed;
    Ok(true)
}

/// Removes every entry that calls `command` from `settings`; says whether anything changed.
///
/// # Errors
///
/// On any [`SettingsError`] `settings` is as it was.
pub fn uninstall(agent: Agent, settings: &mut Value, command: &str) -> Result<bool, SettingsError> {
    let Some(event) = agent.event() else {
        return Err(SettingsError::NoSettings);
    };
    if !entries(event, settings)?
        .iter()
        .any(|entry| calls(entry, command))
    {
        return Ok(false);
    }
    let Some(list) = settings
        .get_mut("hooks")
        .and_then(|hooks| hooks.get_mut(event))
        .and_then(Value::as_array_mut)
    else {
        return Ok(false);
    };
    for entry in list.iter_mut() {
        if let Some(hooks) = entry.get_mut("hooks").and_then(Value::as_array_mut) {
            hooks.retain(|hook| !is_call(hook, command));
        }
    }
    list.retain(|entry| {
        entry
            .get("hooks")
            .and_then(Value::as_array)
            .is_none_or(|hooks| !hooks.is_empty())
    });
    Ok(true)
}

fn entries<'v>(event: &str, settings: &'v Value) -> Result<&'v [Value], SettingsError> {
    let root = settings.as_object().ok_or(SettingsError::WrongShape)?;
    let Some(hooks) = root.get("hooks") else {
        return Ok(&[]);
    };
    let Some(list) = hooks
        .as_object()
        .ok_or(SettingsError::WrongShape)?
        .get(event)
    else {
        return Ok(&[]);
    };
    list.as_array()
        .map(Vec::as_slice)
        .ok_or(SettingsError::WrongShape)
}

fn calls(entry: &Value, command: &str) -> bool {
    let hooks = entry.get("hooks").and_then(Value::as_array);
    hooks.is_some_and(|hooks| hooks.iter().any(|hook| is_call(hook, command)))
}

fn is_call(hook: &Value, command: &str) -> bool {
    hook.get("command").and_then(Value::as_str) == Some(command)
}
