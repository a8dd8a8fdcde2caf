//! What a filter says about one call, in words.
//!
//! Reads the same data as the compiler and writes it down as an indented list; it decides nothing.

use std::fmt;

use super::decision::{Decision, Judgement, Verdict};
use super::rules;
use super::spec::FilterSpec;
use super::table::Syscall;

/// What the filter for `spec` says about the call named `name`.
///
/// # Errors
///
/// [`UnknownSyscall`] when no call of either architecture has that name.
///
/// # Examples
///
/// ```
/// use ringfence_core::seccomp::{Arch, FilterSpec, explain};
///
/// let spec = FilterSpec::namespaces(Arch::X86_64);
/// let text = explain(spec, "setns")?.to_string();
/// assert!(text.starts_with("setns (308 on x86_64): EPERM"));
/// # Ok::<(), ringfence_core::seccomp::UnknownSyscall>(())
/// ```
pub fn explain(spec: FilterSpec, name: &str) -> Result<Explanation, UnknownSyscall> {
    let Some(syscall) = Syscall::named(name) else {
        return Err(UnknownSyscall {
            name: name.to_owned(),
            nearest: nearest(name),
        });
    };
    let number = syscall.number(spec.arch);
    let decision = match (number, rules::decision(spec, syscall)) {
        (None, _) => end(rules::UNKNOWN),
        (Some(_), None) => end(rules::ORDINARY),
        (Some(_), Some(decision)) => decision,
    };
    Ok(Explanation {
        decision,
        number,
        spec,
        syscall,
    })
}

/// No system call has this name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no system call is named {name:?}")]
pub struct UnknownSyscall {
    /// What was asked for.
    pub name: String,
    /// The name that looks most like it, for a hint.
    pub nearest: Option<&'static str>,
}

/// What a filter says about one call. Its `Display` is the text for people.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    decision: Decision,
    number: Option<u16>,
    spec: FilterSpec,
    syscall: Syscall,
}

impl Explanation {
    /// The verdict and reason, when they do not depend on arguments.
    pub fn judgement(&self) -> Option<Judgement> {
        match self.decision {
            Decision::End(verdict, reason) => Some(Judgement { reason, verdict }),
            Decision::Look(_) => None,
        }
    }

    /// The call's number on this architecture, where it has one.
    pub fn number(&self) -> Option<u16> {
        self.number
    }

    /// Which call.
    pub fn syscall(&self) -> Syscall {
        self.syscall
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, arch) = (self.syscall.name(), self.spec.arch.name());
        match self.number {
            Some(number) => write!(out, "{name} ({number} on {arch})")?,
            None => write!(out, "{name} (not on {arch})")?,
        }
        write_decision(out, self.spec, self.decision, 1)
    }
}

fn write_decision(
    out: &mut fmt::Formatter<'_>,
    spec: FilterSpec,
    decision: Decision,
    depth: usize,
) -> fmt::Result {
    let look = match decision {
        Decision::End(verdict, reason) => return write!(out, ": {}, {reason}", word(verdict)),
        Decision::Look(look) => look,
    };
    let indent = depth * 2;
    for case in look.cases_for(spec) {
        write!(out, "\n{:indent$}{} {}", "", look.what, case.name)?;
        write_decision(out, spec, case.then, depth + 1)?;
    }
    write!(out, "\n{:indent$}any other {}", "", look.what)?;
    write_decision(out, spec, look.otherwise, depth + 1)
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allowed",
        Verdict::Ask => "made by the supervisor",
        Verdict::Kill => "ends the process",
        Verdict::Refuse(errno) => errno.name(),
    }
}

const fn end(judgement: Judgement) -> Decision {
    Decision::End(judgement.verdict, judgement.reason)
}

/// Closer than this, two names are probably the same word.
const LOOKS_ALIKE: f64 = 0.8;

fn nearest(name: &str) -> Option<&'static str> {
    Syscall::ALL
        .iter()
        .map(|call| (strsim::jaro_winkler(call.name(), name), call.name()))
        .filter(|(likeness, _)| *likeness >= LOOKS_ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}
