//! Why nothing was started, and what would help.

use std::path::Path;

use ringfence::launch::LaunchError;
use ringfence::planned::Planned;
use ringfence::probe::Findings;
use ringfence_core::plan::{Feature, Gap, Step};

use super::with_causes;
use crate::exit::Exit;
use crate::output::{complain, tell, visible};
use crate::print::grant::shell_word;
use crate::print::plan::{and_more, gaps_by_reason};

/// Says it; the result is the status that tells a shell about it.
pub(super) fn explain_refusal(error: &LaunchError) -> Exit {
    let text = with_causes(error);
    let called;
    let hint = match error {
        LaunchError::Directory { .. } => {
            Some("start it somewhere else, or grant the directory with `--read` or `--write`")
        }
        LaunchError::Act { step, source, .. } if ran_out_of_keys(step.0, source) => Some(
            "your user has as many keys in the kernel as it may: end other sessions, or raise \
             the limit with `sudo sysctl -w kernel.keys.maxkeys=2000`",
        ),
        LaunchError::Act { .. } => Some("`ringfence explain --plan` shows every act"),
        LaunchError::Hidden { file, link, .. } => {
            called = how_to_show(file, link.as_deref());
            Some(&*called)
        }
        LaunchError::Limit { limit, .. } => {
            called = format!("write a larger limit `{limit}`, or `none`");
            Some(&*called)
        }
        LaunchError::NoInterpreter { .. } => {
            Some("install it, or have the program name another one")
        }
        LaunchError::NotExecutable { program, source } => {
            called = why_not(program, source);
            (!called.is_empty()).then_some(&*called)
        }
        LaunchError::NotToBeRun { file, .. } => {
            called = how_to_show(file, None);
            Some(&*called)
        }
        LaunchError::Stream { .. } => Some(
            "pass a pipe: `cat FILE | ringfence run ...`, or `ringfence run ... | cat >> FILE`",
        ),
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        LaunchError::Unfindable { .. } => Some(super::linger::WHERE_TO_BE_FOUND),
        _ => None,
    };
    complain(&text, hint);
    match error {
        LaunchError::NotExecutable { .. } | LaunchError::NotToBeRun { .. } => Exit::NotExecutable,
        LaunchError::Hidden { .. }
        | LaunchError::NoInterpreter { .. }
        | LaunchError::NotFound { .. } => Exit::NotFound,
        _ => Exit::Refused,
    }
}

fn ran_out_of_keys(step: Step, answer: &std::io::Error) -> bool {
    step == Step::Keyring && answer.kind() == std::io::ErrorKind::QuotaExceeded
}

/// Says what stands in the way, cause first, and which rules would not hold for it; the same in short.
pub(super) fn explain_gaps(planned: &Planned) -> String {
    let mut short = Vec::new();
    for finding in planned.findings().into_iter().flat_map(Findings::causes) {
        if let Feature::Missing { why, fix } = &finding.state {
            complain(&format!("no {}: {why}", finding.probed), Some(fix));
            short.push(format!("no {}: {why}", finding.probed));
        }
    }
    for group in gaps_by_reason(planned.plan()) {
        let Some(gap) = group.first() else { continue };
        let more = and_more(&group);
        complain(
            &format!(
                "this host cannot enforce a rule: {} ({}){more}: {}",
                gap.rule, gap.origin, gap.lost
            ),
            Some(&gap.fix),
        );
        short.push(format!("not enforced: {}{more}", gap.rule));
    }
    let gaps = planned.plan().gaps();
    if gaps.iter().all(Gap::is_grant) {
        let mut origins: Vec<String> = gaps.iter().map(|gap| gap.origin.to_string()).collect();
        origins.dedup();
        tell(&visible(&format!(
            "ringfence: nothing was started; leave out {}, or start without it: `--on-gap report`\n",
            origins.join(", ")
        )));
    } else {
        tell("ringfence: nothing was started; `--on-gap report` starts without these rules\n");
    }
    short.join("; ")
}

/// What lets a program be run that is hidden, or may only be read.
fn how_to_show(file: &Path, link: Option<&Path>) -> String {
    let file = shell_word(file.as_os_str());
    match link {
        None => format!("`--exec {file}` lets it be run"),
        Some(_) => {
            format!("it leads to {file}: with `--exec {file}` that can be run, by that name")
        }
    }
}

/// What the kernel means by its answer to a program that cannot be run; empty where it says so itself.
fn why_not(program: &Path, source: &std::io::Error) -> String {
    use rustix::io::Errno;
    let shown = shell_word(program.as_os_str());
    match Errno::from_io_error(source) {
        Some(Errno::NOEXEC) => format!(
            "it has no `#!` line, and is no program for this machine: name what runs it, such as `sh {shown}`"
        ),
        Some(Errno::ACCESS) if program.is_dir() => "it is a directory".to_owned(),
        _ => String::new(),
    }
}
