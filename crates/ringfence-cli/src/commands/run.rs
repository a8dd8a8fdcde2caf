//! `ringfence run`.

use std::ffi::OsString;
use std::process::ExitCode;

use ringfence_core::plan::{Plan, compile};
use ringfence_core::policy::Policy;
use ringfence_core::settings::Kind;

use super::host_facts;
use crate::args::RunArguments;
use crate::exit::Exit;
use crate::flags::Flags;
use crate::load::{Purpose, Scene};
use crate::output::{answer, answer_json, complain, tell, visible};
use crate::print::plan::{self, Detail};
use crate::print::policy::ignored;
use crate::print::verdict::shell_word;

/// How much of what is ignored is said before every run.
const MOST_IGNORED: usize = 10;

pub(super) fn run(arguments: &RunArguments) -> ExitCode {
    match prepare(arguments) {
        Ok(code) => code,
        Err(exit) => exit.into(),
    }
}

fn prepare(arguments: &RunArguments) -> Result<ExitCode, Exit> {
    let scene = Scene::set(
        Kind::Tool,
        Purpose::Start,
        &Flags {
            place: &arguments.place,
            files: Some(&arguments.files),
            network: Some(&arguments.network),
            environment: Some(&arguments.environment),
            limits: Some(&arguments.limits),
            engine: Some(&arguments.engine),
        },
    )?;
    let policy = scene.policy()?;
    let facts = host_facts(arguments.host_facts.as_ref())?;
    let plan = compile(&policy, &facts, arguments.engine.engine);
    let weaker = arguments.engine.weaker_than_required(&plan);
    if arguments.dry_run {
        let written = if arguments.json {
            answer_json(&plan::Record::new(&policy, &plan, Some(&arguments.command)))
        } else {
            let detail = Detail::from_count(arguments.verbose);
            let mut out = format!("command  {}\n", command_line(&arguments.command));
            out.push_str(&plan::render(&policy, &facts, &plan, detail));
            ignored(&mut out, policy.ignored());
            answer(&out)
        };
        if let Some(weaker) = weaker {
            complain(&weaker, None);
            return Err(Exit::Refused);
        }
        if written == Exit::Success && !plan.may_launch() {
            return Err(Exit::Refused);
        }
        return Ok(written.into());
    }
    if let Some(weaker) = weaker {
        complain(&weaker, Some("`ringfence explain --plan` says why"));
        return Err(Exit::Refused);
    }
    say_what_matters(&policy);
    if !plan.may_launch() {
        refuse(&plan);
        return Err(Exit::Refused);
    }
    Ok(launch(&policy, &plan, &arguments.command, arguments))
}

/// What a user must know even without `-v`: what was asked for and is not done.
fn say_what_matters(policy: &Policy) {
    for note in policy.notes() {
        tell(&format!("ringfence: {note}\n"));
    }
    for entry in policy.ignored().iter().take(MOST_IGNORED) {
        tell(&visible(&format!(
            "ringfence: ignored, since a project's file can only narrow: {} ({})\n",
            entry.what, entry.origin
        )));
    }
    if policy.ignored().len() > MOST_IGNORED {
        tell("ringfence: and more, see `ringfence settings show`\n");
    }
}

fn refuse(plan: &Plan) {
    for gap in plan.gaps() {
        complain(
            &format!(
                "this host cannot enforce a rule: {} ({}): {}",
                gap.rule, gap.origin, gap.lost
            ),
            Some(&gap.fix),
        );
    }
    tell("ringfence: nothing was started; `--on-gap report` starts without these rules\n");
}

/// Starts the command. There is no launcher in this version, so it refuses: a command that ran
/// unconfined would be worse than none.
fn launch(
    _policy: &Policy,
    _plan: &Plan,
    command: &[OsString],
    _options: &RunArguments,
) -> ExitCode {
    complain(
        &format!(
            "this version can plan but not yet start a command: {}",
            command_line(command)
        ),
        Some("add `--dry-run` to see the plan"),
    );
    Exit::Refused.into()
}

fn command_line(words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    words.join(" ")
}
