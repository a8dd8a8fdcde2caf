//! What `ringfence doctor` found, as a table.

use ringfence::probe::report::{Report, Row, RowState};

use crate::output::{Colour, visible};

/// One row for each thing that was tried, with why and fix below those that do not work, and the
/// guarantee line last.
///
/// Ready to be written as it is: all but the colours of our own is made visible.
pub(crate) fn render(report: &Report, colour: Colour) -> String {
    let mut page = Page {
        out: String::new(),
        colour,
    };
    page.text(&format!("{} {}\n\n", report.facts.os, report.facts.version));
    let [name_head, state_head, need_head] = ["FEATURE", "STATE", "NEEDED BY"];
    let width = |head: &str, cell: fn(&Row) -> &str| {
        let cells = report.features.iter().map(|row| cell(row).len());
        cells.max().unwrap_or(0).max(head.len())
    };
    let widths = Widths {
        name: width(name_head, |row| &row.name),
        need: width(need_head, |row| row.needed_by),
    };
    let name = widths.name;
    page.text(&format!("{name_head:name$}  {state_head:7}  {need_head}\n"));
    for row in &report.features {
        page.row(row, &widths);
    }
    if !report.circumstances.is_empty() {
        page.text("\n");
    }
    for remark in &report.circumstances {
        page.text(&format!("note: {}\n", remark.text));
    }
    page.text(&format!("\n{}\n", report.guarantee.tracking()));
    page.text(&format!("{}\n", report.line));
    page.broken(report);
    page.out
}

struct Widths {
    name: usize,
    need: usize,
}

/// Text as it grows.
struct Page {
    out: String,
    colour: Colour,
}

impl Page {
    fn text(&mut self, text: &str) {
        self.out.push_str(&visible(text));
    }

    fn row(&mut self, row: &Row, widths: &Widths) {
        let Widths { name, need } = *widths;
        self.text(&format!("{:name$}  ", row.name));
        self.state(row.state);
        let follows = row.follows.map(|other| format!("no {other}"));
        match row.detail.as_ref().or(follows.as_ref()) {
            Some(detail) => self.text(&format!("  {:need$}  {detail}\n", row.needed_by)),
            None => self.text(&format!("  {}\n", row.needed_by)),
        }
        if follows.is_some() {
            return;
        }
        // Why and fix stand on lines of their own, so that a fix can be pasted.
        for (label, text) in [("why", &row.why), ("fix", &row.fix)] {
            if let Some(text) = text {
                self.text(&format!("{:name$}  {label}: {text}\n", ""));
            }
        }
    }

    fn state(&mut self, state: RowState) {
        const GREEN: &str = "\u{1b}[32m";
        const RED: &str = "\u{1b}[31m";
        const PLAIN: &str = "\u{1b}[0m";
        let (word, paint) = match state {
            RowState::Missing => ("missing", RED),
            RowState::Works => ("works  ", GREEN),
        };
        match self.colour {
            Colour::None => self.out.push_str(word),
            Colour::Some => self.out.extend([paint, word, PLAIN]),
        }
    }

    /// What would not hold of the default preset; of the others only that.
    fn broken(&mut self, report: &Report) {
        let mut presets = report.guarantee.presets.iter();
        if let Some(default) = presets.next() {
            for reason in &default.broken {
                self.text(&format!("  - {reason}\n    fix: {}\n", reason.fix));
            }
        }
        for entry in presets.filter(|entry| !entry.broken.is_empty()) {
            let (preset, count) = (entry.preset, entry.broken.len());
            let reasons = if count == 1 { "reason" } else { "reasons" };
            self.text(&format!(
                "preset {preset} does not hold, for {count} {reasons}: see --json\n"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use ringfence::probe::{Finding, Findings, Probed};
    use ringfence_core::plan::{Feature, HostFacts};

    use super::*;

    fn report() -> Report {
        let finding = |probed, state, follows| Finding {
            probed,
            state,
            detail: None,
            follows,
        };
        let missing = |why: &str| Feature::Missing {
            why: why.to_owned(),
            fix: "sudo fix".to_owned(),
        };
        Report::new(&Findings {
            facts: HostFacts {
                version: "6.18\u{1b}[2J".to_owned(),
                ..HostFacts::named("linux-6.18").unwrap()
            },
            findings: vec![
                finding(Probed::Seccomp, Feature::Works, None),
                finding(Probed::UserNamespace, missing("a\u{1b}[31mb"), None),
                finding(
                    Probed::PidNamespace,
                    missing("c"),
                    Some(Probed::UserNamespace),
                ),
            ],
            circumstances: Vec::new(),
        })
    }

    #[test]
    fn table_says_why_and_what_to_type_once() {
        let expected = "\
linux 6.18\\u{1b}[2J

FEATURE         STATE    NEEDED BY
seccomp filter  works    every engine
user namespace  missing  engine namespaces
                why: a\\u{1b}[31mb
                fix: sudo fix
pid namespace   missing  engine namespaces  no user namespace

processes are tracked by a pid namespace; with preset track by a cgroup of its own
namespaces+landlock7+seccomp: all promises hold
";
        assert_eq!(render(&report(), Colour::None), expected);
    }

    #[test]
    fn only_our_own_colours_reach_a_terminal() {
        let text = render(&report(), Colour::Some);
        let ours = ["\u{1b}[32mworks  \u{1b}[0m", "\u{1b}[31mmissing\u{1b}[0m"];
        let rest = ours.iter().fold(text.clone(), |text, paint| {
            assert!(text.contains(paint), "{text}");
            text.replace(paint, "")
        });
        assert!(!rest.contains('\u{1b}'), "{rest}");
    }
}
