//! The hooks that agents call before they use a tool.
//!
//! Owns the formats: what each agent says on standard input ([`parse`]), what it understands as an
//! answer ([`reply`]), and what must stand in its settings ([`install`], [`uninstall`]). Pure: reading,
//! printing and exit codes belong to the binary.
//!
//! Everything fails closed. Input that cannot be read is an error, and the binary must then exit with
//! [`BLOCKING_EXIT`], which all of these agents take as a refusal; any other failure they ignore. An
//! answer that an agent does not understand is as good as none, so a question becomes a refusal where
//! the agent cannot ask. Having no objection is told by silence: an explicit "allow" would skip the
//! questions that the agent itself asks.
//!
//! docs/SHELL.md names the source of each format.

mod settings;

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::judge::told;
use crate::{Ir, Judgement, RuleSet, Rules};

pub use settings::{SettingsError, install, uninstall};

/// The exit status with which a hook refuses without an answer; its standard error is the reason.
pub const BLOCKING_EXIT: u8 = 2;

/// The largest message that is read, in bytes: a text of the largest size, escaped, with room around it.
pub const MAX_MESSAGE: usize = crate::MAX_TEXT * 6 + (1 << 16);

/// Who calls.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Agent {
    /// Claude Code, `PreToolUse`.
    ClaudeCode,
    /// Codex, `PreToolUse`.
    Codex,
    /// Gemini CLI, `BeforeTool`.
    Gemini,
    /// Anything that can write `{"command": "..."}` and read an answer.
    Generic,
}

impl Agent {
    /// Every agent.
    pub const ALL: &'static [Self] = &[Self::ClaudeCode, Self::Codex, Self::Gemini, Self::Generic];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Generic => "generic",
        }
    }

    /// The event that is called before a tool runs.
    fn event(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode | Self::Codex => Some("PreToolUse"),
            Self::Gemini => Some("BeforeTool"),
            Self::Generic => None,
        }
    }

    /// The tool that runs shell commands.
    fn shell_tool(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Codex => "Bash",
            Self::Gemini => "run_shell_command",
            Self::Generic => "",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An agent that is not known.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no agent is called {name:?}; there are claude-code, codex, gemini and generic")]
pub struct UnknownAgent {
    /// What was asked for.
    pub name: String,
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|agent| agent.name() == name);
        found.ok_or_else(|| UnknownAgent {
            name: name.to_owned(),
        })
    }
}

/// Why a message was not understood. The binary must refuse the call.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// A shell tool is called without a command in the place where it belongs.
    #[error("the message names a shell tool but holds no command")]
    NoCommand,
    /// Not JSON.
    #[error("the message is not JSON")]
    NotJson,
    /// Larger than [`MAX_MESSAGE`].
    #[error("the message is larger than {MAX_MESSAGE} bytes")]
    TooLarge,
    /// Another event than the one before a tool runs.
    #[error("the message is not about a tool that is going to run")]
    WrongEvent,
    /// JSON of another shape.
    #[error("the message has another shape than this agent writes")]
    WrongShape,
}

/// A tool that an agent is about to use.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Call {
    /// A tool that runs no shell command; there is nothing to say about it.
    Other,
    /// A shell command.
    Shell {
        /// The text.
        command: String,
        /// Where it will run, if the agent says so.
        directory: Option<String>,
    },
}

/// What to tell the agent.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Opinion {
    /// A user's rule allows it.
    Allow {
        /// Why.
        reason: String,
    },
    /// A user's rule wants a question.
    Ask {
        /// Why.
        reason: String,
    },
    /// It must not run.
    Deny {
        /// Why, and what to do instead.
        reason: String,
    },
    /// No objection; the agent decides as it would have.
    Pass,
}

/// Reads what `agent` wrote.
///
/// # Errors
///
/// On any [`HookError`] nothing is known about the call, and it must be refused.
pub fn parse(agent: Agent, message: &[u8]) -> Result<Call, HookError> {
    if message.len() > MAX_MESSAGE {
        return Err(HookError::TooLarge);
    }
    let value: Value = serde_json::from_slice(message).map_err(|_| HookError::NotJson)?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if !value.is_object() {
        return Err(HookError::WrongShape);
    }
    let Some(event) = agent.event() else {
        let command = text(&value, "command").ok_or(HookError::NoCommand)?;
        return Ok(Call::Shell {
            command,
            directory: text(&value, "cwd"),
        });
    };
    // The event decides what an answer means, so it must be the right one.
    match value.get("hook_event_name").and_then(Value::as_str) {
        Some(found) if found == event => {}
        Some(_) => return Err(HookError::WrongEvent),
        None => return Err(HookError::WrongShape),
    }
    let tool = value
        .get("tool_name")
        .and_then(Value::as_str)
        .ok_or(HookError::WrongShape)?;
    if tool != agent.shell_tool() {
        return Ok(Call::Other);
    }
    let input = value.get("tool_input").ok_or(HookError::NoCommand)?;
    let command = text(input, "command").ok_or(HookError::NoCommand)?;
    Ok(Call::Shell {
        command,
        directory: text(&value, "cwd"),
    })
}

/// What the rule set and the user's rules say of `command`, the strictest of both.
pub fn judge(command: &str, rule_set: RuleSet, rules: &Rules) -> Opinion {
    match crate::judge(&Ir::from_bash(command), rule_set, rules) {
        Judgement::Allow { answer: None } => Opinion::Pass,
        Judgement::Allow {
            answer: Some(answer),
        } => Opinion::Allow {
            reason: format!("ringfence: {}", told(&answer)),
        },
        Judgement::Ask { answer, .. } => Opinion::Ask {
            reason: format!("ringfence: {}", told(&answer)),
        },
        Judgement::Deny {
            code,
            message,
            instead,
            ..
        } => Opinion::Deny {
            reason: format!("ringfence ({code}): {message}. Instead: {instead}."),
        },
    }
}

/// The answer that `agent` understands; nothing means that the hook prints nothing.
pub fn reply(agent: Agent, opinion: &Opinion) -> Option<Value> {
    match agent {
        Agent::ClaudeCode => claude_code(opinion),
        Agent::Codex => codex(opinion),
        Agent::Gemini => gemini(opinion),
        Agent::Generic => Some(generic(opinion)),
    }
}

fn permission(decision: &str, reason: &str) -> Value {
    json!({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    })
}

fn claude_code(opinion: &Opinion) -> Option<Value> {
    match opinion {
        Opinion::Allow { reason } => Some(permission("allow", reason)),
        Opinion::Ask { reason } => Some(permission("ask", reason)),
        Opinion::Deny { reason } => Some(permission("deny", reason)),
        Opinion::Pass => None,
    }
}

/// Codex takes "allow" and "ask" here for mistakes, and then runs the tool.
fn codex(opinion: &Opinion) -> Option<Value> {
    match opinion {
        Opinion::Ask { reason } | Opinion::Deny { reason } => Some(permission("deny", reason)),
        Opinion::Allow { .. } | Opinion::Pass => None,
    }
}

/// Gemini CLI knows "allow" and "deny"; its own questions come later either way.
fn gemini(opinion: &Opinion) -> Option<Value> {
    match opinion {
        Opinion::Ask { reason } | Opinion::Deny { reason } => {
            Some(json!({ "decision": "deny", "reason": reason }))
        }
        Opinion::Allow { .. } | Opinion::Pass => None,
    }
}

fn generic(opinion: &Opinion) -> Value {
    match opinion {
        Opinion::Allow { reason } => json!({ "decision": "allow", "reason": reason }),
        Opinion::Ask { reason } => json!({ "decision": "ask", "reason": reason }),
        Opinion::Deny { reason } => json!({ "decision": "deny", "reason": reason }),
        Opinion::Pass => json!({ "decision": "pass" }),
    }
}

#[cfg(test)]
mod tests;
