//! What is wrong with a settings file, as data.
//!
//! Reading never stops at the first mistake: every problem of a file is collected, each with the
//! bytes it speaks of, and whoever shows them draws the carets.

use std::ops::Range;

use serde::Serialize;

/// One thing that is wrong, or odd, at one place of a text.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// Whether it stops the launch.
    pub severity: Severity,
    /// The bytes it speaks of.
    pub span: Range<usize>,
    /// What is wrong, in one clause.
    pub message: String,
    /// What to show beside the carets.
    pub label: String,
    /// What to write instead, if that is known.
    pub help: Option<String>,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Nothing starts with it.
    Error,
    /// It is only said.
    Warning,
}

impl Problem {
    /// A problem that stops the launch.
    pub fn error(span: Range<usize>, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            span,
            message: message.into(),
            label: label.into(),
            help: None,
        }
    }

    /// The same with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same, only said.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }
}

/// The candidate that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&lower, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let keys = ["allow_network", "apply_to", "enabled"];
        assert_eq!(nearest("alow_netwrok", keys), Some("allow_network"));
        assert_eq!(nearest("ENABLED", keys), Some("enabled"));
        assert_eq!(nearest("zzz", keys), None);
    }
}
