//! `ringfence hook`.

mod install;

use std::io::Read as _;
use std::path::Path;

use ringfence_core::settings::Kind;
use ringfence_shell::RuleSet;
use ringfence_shell::hook::{Agent, BLOCKING_EXIT, Call, MAX_MESSAGE, judge, parse, reply};

use crate::args::{Hook, HookCommand};
use crate::exit::Exit;
use crate::load::shell_rules;
use crate::output::{answer_json, complain};

// What is not understood must stop the agent, and only this status does.
const _: () = assert!(Exit::Usage.code() == BLOCKING_EXIT);

pub(super) fn run(arguments: &Hook) -> Result<Exit, Exit> {
    match &arguments.command {
        Some(HookCommand::Install(change)) => install::install(change),
        Some(HookCommand::Uninstall(change)) => install::uninstall(change),
        None => {
            let agent = arguments.agent.ok_or(Exit::Usage)?;
            // Any other failure of a hook counts as consent.
            question(agent, arguments.rules).map_err(|_| Exit::Usage)
        }
    }
}

/// Reads the agent's question and answers it. A question that cannot be read is answered by an
/// error, which every agent takes for a no.
fn question(agent: Agent, rule_set: RuleSet) -> Result<Exit, Exit> {
    let mut question = Vec::new();
    // One byte more than is allowed is enough to know.
    let limit = u64::try_from(MAX_MESSAGE)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let read = std::io::stdin().take(limit).read_to_end(&mut question);
    read.map_err(|error| {
        complain(&format!("cannot read the question: {error}"), None);
        Exit::Usage
    })?;
    let call = parse(agent, &question).map_err(|error| {
        complain(
            &error.to_string(),
            Some("see docs/SHELL.md for the formats"),
        );
        Exit::Usage
    })?;
    let Call::Shell { command, directory } = call else {
        return Ok(Exit::Success);
    };
    let rules = shell_rules(Kind::Tool, directory.as_deref().map(Path::new))?;
    let opinion = judge(&command, rule_set, &rules);
    match reply(agent, &opinion) {
        // An answer that could not be given is no answer, and no answer is consent.
        Some(answer) => match answer_json(&answer) {
            Exit::Success => Ok(Exit::Success),
            _ => Err(Exit::Usage),
        },
        None => Ok(Exit::Success),
    }
}
