//! What `ringfence doctor` found, as a table.

use std::fmt::Write as _;

use ringfence::probe::report::{Report, Row, RowState};
use ringfence_core::text::printable;

use crate::output::Colour;

/// One row for each thing that was tried, with why and fix below those that do not work, and the
/// guarantee line last.
pub(crate) fn render(report: &Report, colour: Colour) -> String {
    let mut out = String::new();
    let version = printable(&report.facts.version);
    let _ = writeln!(out, "{} {version}\n", report.facts.os);
    let heads = ["FEATURE", "STATE", "NEEDED BY"];
    let width = |head: &str, cell: fn(&Row) -> &str| {
        let cells = report.features.iter().map(|row| cell(row).len());
        cells.max().unwrap_or(0).max(head.len())
    };
    let name_width = width(heads[0], |row| &row.name);
    let need_width = width(heads[2], |row| row.needed_by);
    let _ = writeln!(
        out,
        "{:name_width$}  {:7}  {}",
        heads[0], heads[1], heads[2]
    );
    for row in &report.features {
        let _ = write!(out, "{:name_width$}  ", row.name);
        out.push_str(&state(row.state, colour));
        let follows = row.follows.map(|other| format!("no {other}"));
        match row.detail.as_ref().or(follows.as_ref()) {
            Some(detail) => {
                let _ = writeln!(out, "  {:need_width$}  {detail}", row.needed_by);
            }
            None => {
                let _ = writeln!(out, "  {}", row.needed_by);
            }
        }
        if row.follows.is_some() {
            continue;
        }
        // Why and fix stand on lines of their own, so that a fix can be pasted.
        for (label, text) in [("why", &row.why), ("fix", &row.fix)] {
            if let Some(text) = text {
                let _ = writeln!(out, "{:name_width$}  {label}: {text}", "");
            }
        }
    }
    if !report.circumstances.is_empty() {
        out.push('\n');
    }
    for remark in &report.circumstances {
        let _ = writeln!(out, "note: {}", remark.text);
    }
    let _ = writeln!(out, "\n{}", report.line);
    broken(&mut out, report);
    out
}

/// What would not hold of the default preset; of the others only that.
fn broken(out: &mut String, report: &Report) {
    let mut presets = report.guarantee.presets.iter();
    if let Some(default) = presets.next() {
        for reason in &default.broken {
            let _ = writeln!(out, "  - {reason}\n    fix: {}", reason.fix);
        }
    }
    for entry in presets.filter(|entry| !entry.broken.is_empty()) {
        let (preset, count) = (entry.preset, entry.broken.len());
        let reasons = if count == 1 { "reason" } else { "reasons" };
        let _ = writeln!(
            out,
            "preset {preset} does not hold, for {count} {reasons}: see --json"
        );
    }
}

fn state(state: RowState, colour: Colour) -> String {
    const GREEN: &str = "\u{1b}[32m";
    const RED: &str = "\u{1b}[31m";
    const PLAIN: &str = "\u{1b}[0m";
    let (word, paint) = match state {
        RowState::Missing => ("missing", RED),
        RowState::Works => ("works", GREEN),
    };
    match colour {
        Colour::None => format!("{word:7}"),
        Colour::Some => format!("{paint}{word:7}{PLAIN}"),
    }
}
