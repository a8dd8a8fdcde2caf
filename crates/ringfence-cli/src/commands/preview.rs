//! `ringfence run --dry-run`.

use std::ffi::OsString;

use ringfence::planned::Planned;
use ringfence_core::plan::compile;
use ringfence_core::policy::Policy;

use super::host_facts;
use super::run::Job;
use crate::exit::Exit;
use crate::output::{self, answer_json, complain};
use crate::print::grant::shell_word;
use crate::print::plan::{self, Detail};
use crate::print::policy::ignored;

/// Says what would be done.
pub(super) fn answer(job: &Job<'_>, policy: &Policy) -> Result<Exit, Exit> {
    let arguments = job.flags;
    let choice = arguments.engine.engine;
    // The plan that a launch would begin with, or the one of another host.
    let (facts, plan) = if arguments.host_facts.is_some() {
        let facts = host_facts(arguments.host_facts.as_ref())?;
        let plan = compile(policy, &facts, choice);
        (facts, plan)
    } else {
        let planned = Planned::new(policy, choice);
        (planned.facts().clone(), planned.plan().clone())
    };
    let weaker = arguments.engine.weaker_than_required(&plan);
    let written = if arguments.json {
        answer_json(&plan::Record::new(policy, &plan, Some(job.command)))
    } else {
        let detail = Detail::from_count(arguments.verbose);
        let mut out = format!("command  {}\n", command_line(job.command));
        out.push_str(&plan::render(policy, &facts, &plan, detail));
        ignored(&mut out, policy.ignored());
        output::answer(&out)
    };
    if let Some(weaker) = weaker {
        complain(&weaker, None);
        return Err(Exit::Refused);
    }
    if written == Exit::Success && !plan.may_launch() {
        return Err(Exit::Refused);
    }
    Ok(written)
}

fn command_line(words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    words.join(" ")
}
