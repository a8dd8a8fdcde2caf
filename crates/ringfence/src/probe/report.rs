//! Findings as rows: what `ringfence doctor` prints, and what programs read.

use ringfence_core::plan::{Feature, HostFacts};
use serde::Serialize;

use super::guarantee::Guarantee;
use super::{Circumstance, Finding, Findings, Probed};

/// The shape of [`Report`]; a reader that knows another number must not guess.
pub const VERSION: u32 = 1;

/// Everything that was found, ready to be shown.
///
/// # Examples
///
/// ```
/// use ringfence::probe::report::{Report, VERSION};
///
/// // What `ringfence doctor --json` prints.
/// let report = Report::new(&ringfence::probe::thorough());
/// assert_eq!(report.version, VERSION);
/// println!("{}", report.line);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// Whether `ringfence run` can enforce the preset it uses when nobody names one.
    pub default_preset_holds: bool,
    /// The guarantee in one line.
    pub line: String,
    /// The guarantee, preset by preset.
    pub guarantee: Guarantee,
    /// One row for each thing that was tried.
    pub features: Vec<Row>,
    /// What is around us that explains the rows.
    pub circumstances: Vec<Remark>,
    /// What plans are compiled against; `explain --plan --host-facts` reads it back.
    pub facts: HostFacts,
}

/// One thing that was tried.
///
/// # Examples
///
/// ```
/// use ringfence::probe::report::{Report, RowState};
///
/// let report = Report::new(&ringfence::probe::thorough());
/// for row in report.features.iter().filter(|row| row.state == RowState::Missing) {
///     println!("{}: {}", row.name, row.fix.as_deref().unwrap_or("nothing to be done"));
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Row {
    /// What was tried.
    pub feature: Probed,
    /// The same for people.
    pub name: String,
    /// Whether it works.
    pub state: RowState,
    /// What needs it.
    pub needed_by: &'static str,
    /// More about what works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Why it does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What would make it work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// What it could not be tried without, if that is why it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<Probed>,
}

/// Whether a thing works.
///
/// # Examples
///
/// ```
/// use ringfence::probe::report::{Report, RowState};
///
/// let report = Report::new(&ringfence::probe::thorough());
/// let works = report.features.iter().filter(|row| row.state == RowState::Works);
/// println!("{} of {} work", works.count(), report.features.len());
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowState {
    /// It was tried and did not work.
    Missing,
    /// It was tried and worked.
    Works,
}

/// A circumstance, with the sentence that tells it.
///
/// # Examples
///
/// ```
/// let report = ringfence::probe::report::Report::new(&ringfence::probe::thorough());
/// for remark in report.circumstances {
///     println!("{}", remark.text);
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Remark {
    /// The circumstance.
    #[serde(flatten)]
    pub circumstance: Circumstance,
    /// In words.
    pub text: String,
}

impl Report {
    /// Lays the findings out.
    pub fn new(findings: &Findings) -> Self {
        let guarantee = Guarantee::of(&findings.facts);
        // Facts are what should hold; a launch that was tried is what does.
        let launch = findings.of(Probed::Launch).map(|finding| &finding.state);
        let line = match launch {
            Some(Feature::Missing { why, .. }) => format!("{}: {why}", guarantee.layers),
            Some(Feature::Works) | None => guarantee.to_string(),
        };
        let remark = |circumstance: &Circumstance| Remark {
            circumstance: circumstance.clone(),
            text: circumstance.to_string(),
        };
        Self {
            version: VERSION,
            default_preset_holds: guarantee.default_holds() && launch.is_none_or(Feature::works),
            line,
            guarantee,
            features: findings.findings.iter().map(Row::new).collect(),
            circumstances: findings.circumstances.iter().map(remark).collect(),
            facts: findings.facts.clone(),
        }
    }
}

impl Row {
    fn new(finding: &Finding) -> Self {
        let (state, why, fix) = match &finding.state {
            Feature::Works => (RowState::Works, None, None),
            Feature::Missing { why, fix } => {
                (RowState::Missing, Some(why.clone()), Some(fix.clone()))
            }
        };
        Self {
            feature: finding.probed,
            name: finding.probed.to_string(),
            state,
            needed_by: finding.probed.needed_by(),
            detail: finding.detail.clone(),
            why,
            fix,
            follows: finding.follows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(launch: Feature) -> Findings {
        Findings {
            facts: HostFacts::named("linux-6.18").unwrap(),
            findings: vec![Finding {
                probed: Probed::Launch,
                state: launch,
                detail: None,
                follows: None,
            }],
            circumstances: Vec::new(),
        }
    }

    #[test]
    fn launch_that_fails_outweighs_every_fact() {
        assert!(Report::new(&findings(Feature::Works)).default_preset_holds);
        let failed = Feature::Missing {
            why: "no command starts: x".to_owned(),
            fix: "y".to_owned(),
        };
        let report = Report::new(&findings(failed));
        assert!(!report.default_preset_holds);
        assert_eq!(
            report.line,
            "namespaces+landlock7+seccomp: no command starts: x"
        );
    }
}
