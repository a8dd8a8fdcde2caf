//! `ringfence hook`.

use std::io::Read as _;

use ringfence_shell::hook::{Agent, Call, judge, parse, reply};
use ringfence_shell::{RuleSet, Rules};

use crate::exit::Exit;
use crate::output::{answer_json, complain};

/// Far more than a question about one command.
const LARGEST_QUESTION: u64 = 4 << 20;

/// Reads the agent's question and answers it. A question that cannot be read is answered by an
/// error, which every agent takes for a no.
pub(super) fn run(agent: Agent, rules: RuleSet) -> Result<Exit, Exit> {
    let mut question = Vec::new();
    let read = std::io::stdin()
        .take(LARGEST_QUESTION)
        .read_to_end(&mut question);
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
    let Call::Shell { command, .. } = call else {
        return Ok(Exit::Success);
    };
    let opinion = judge(&command, rules, &Rules::default());
    match reply(agent, &opinion) {
        Some(answer) => Ok(answer_json(&answer)),
        None => Ok(Exit::Success),
    }
}
