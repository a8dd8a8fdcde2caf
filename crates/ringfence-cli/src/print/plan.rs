//! A plan in words.

use std::fmt::Write as _;

use ringfence_core::origin::Layer;
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{Act, Gap, HostFacts, Plan, Step};
use ringfence_core::policy::Policy;
use ringfence_core::seatbelt::{Own, SessionDirectory};
use ringfence_core::text::printable;
use serde::Serialize;

/// How much is said.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Detail {
    /// The acts and the reason for each position.
    Acts,
    /// Every mount and rule as well.
    Rules,
    /// And every name that must not appear.
    Everything,
}

impl Detail {
    /// From the number of `-v`.
    pub(crate) fn from_count(count: u8) -> Self {
        match count {
            0 => Self::Acts,
            1 => Self::Rules,
            _ => Self::Everything,
        }
    }
}

/// The acts in order, with the reason for each position, and the gaps.
pub(crate) fn render(policy: &Policy, facts: &HostFacts, plan: &Plan, detail: Detail) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "project  {}", policy.project());
    let preset = policy.preset();
    let origin: &dyn std::fmt::Display = if preset.origin.layer() == Layer::BuiltIn {
        &"default"
    } else {
        &preset.origin
    };
    let _ = writeln!(out, "preset   {} ({origin})", preset.value);
    let _ = writeln!(out, "engine   {}", plan.engine());
    let _ = writeln!(out, "tracked  by {}", plan.tracking());
    let host = printable(&facts.version);
    let _ = writeln!(out, "host     {} {host}", facts.os);
    for note in policy.notes() {
        let _ = writeln!(out, "note     {note}");
    }
    out.push('\n');
    for (index, act) in plan.acts().iter().enumerate() {
        let _ = writeln!(out, "{:>3}. {act}", index + 1);
        let _ = writeln!(out, "       {}", act.step().reason());
        if detail != Detail::Acts {
            details(&mut out, act, detail);
        }
    }
    out.push('\n');
    gaps(&mut out, plan);
    out
}

fn details(out: &mut String, act: &Act, detail: Detail) {
    let mut item = |text: &dyn std::fmt::Display| {
        let _ = writeln!(out, "         - {text}");
    };
    if let Act::Names { absent } = act {
        if detail == Detail::Rules {
            item(&"-vv lists them");
            return;
        }
        for path in absent {
            item(path);
        }
    }
    if let Act::Root { mounts, .. } = act {
        for mount in mounts {
            item(mount);
        }
    }
    if let Act::Landlock(plan) = act {
        for rule in &plan.rules {
            item(&format_args!("{}: {}", rule.path, rule.access));
        }
    }
    if let Act::Seatbelt(profile) = act {
        // As it would be written for a session; only the session's own paths are not known yet.
        let session = SessionDirectory::new(&AbsPath::root(), 0);
        match profile.bind(&session, &Own::default()) {
            Ok(bound) => {
                for line in bound.text.lines() {
                    item(&printable(line));
                }
                for (name, value) in &bound.parameters {
                    item(&format_args!("{name} = {}", printable(value)));
                }
            }
            Err(error) => item(&error),
        }
    }
}

fn gaps(out: &mut String, plan: &Plan) {
    let count = plan.gaps().len();
    if count == 0 {
        out.push_str("No gaps: every rule holds.\n");
        return;
    }
    let rules = if count == 1 { "rule" } else { "rules" };
    let outcome = if plan.may_launch() {
        "the command would start without them, and the report would say so"
    } else {
        "nothing would start"
    };
    let _ = writeln!(out, "{count} {rules} cannot be enforced here: {outcome}.");
    for group in gaps_by_reason(plan) {
        out.push('\n');
        for gap in &group {
            let _ = writeln!(out, "  - {} ({})", gap.rule, gap.origin);
        }
        if let Some(gap) = group.first() {
            let _ = writeln!(out, "    lost: {}", gap.lost);
            let _ = writeln!(out, "    fix:  {}", gap.fix);
        }
    }
    if !plan.may_launch() {
        out.push_str(
            "\nTo start without these rules, and have them in the report: --on-gap report\n",
        );
    }
}

/// Gaps that have one reason and one fix, together: what cannot hold for one file mostly cannot
/// hold for many.
pub(crate) fn gaps_by_reason(plan: &Plan) -> Vec<Vec<&Gap>> {
    let mut groups: Vec<Vec<&Gap>> = Vec::new();
    for gap in plan.gaps() {
        let same = |group: &&mut Vec<&Gap>| {
            group
                .first()
                .is_some_and(|first| first.lost == gap.lost && first.fix == gap.fix)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(gap),
            None => groups.push(vec![gap]),
        }
    }
    groups
}

/// How many more gaps there are with the reason of one that is named.
pub(crate) fn and_more(group: &[&Gap]) -> String {
    match group.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

/// A plan as programs read it.
#[derive(Debug, Serialize)]
pub(crate) struct Record<'a> {
    version: u32,
    project: &'a AbsPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<std::borrow::Cow<'a, str>>>,
    engine: ringfence_core::plan::Engine,
    may_launch: bool,
    notes: Vec<String>,
    ignored: &'a [ringfence_core::policy::Ignored],
    acts: Vec<ActRecord<'a>>,
    gaps: &'a [Gap],
}

#[derive(Debug, Serialize)]
struct ActRecord<'a> {
    step: Step,
    text: String,
    reason: &'static str,
    #[serde(flatten)]
    act: &'a Act,
}

impl<'a> Record<'a> {
    /// The same plan as data.
    pub(crate) fn new(
        policy: &'a Policy,
        plan: &'a Plan,
        command: Option<&'a [std::ffi::OsString]>,
    ) -> Self {
        let acts = plan.acts().iter().map(|act| ActRecord {
            step: act.step(),
            text: act.to_string(),
            reason: act.step().reason(),
            act,
        });
        let command = command.map(|words| words.iter().map(|word| word.to_string_lossy()));
        Self {
            version: 1,
            project: policy.project(),
            command: command.map(Iterator::collect),
            engine: plan.engine(),
            may_launch: plan.may_launch(),
            notes: policy.notes().iter().map(ToString::to_string).collect(),
            ignored: policy.ignored(),
            acts: acts.collect(),
            gaps: plan.gaps(),
        }
    }
}
