//! From an IR to a verdict.
//!
//! Owns the rule sets and the words in which a denial is told. Each denial names its rule, the place
//! and a way round it, because the reader is as often a program that will try again as a person.
//! A verdict is advice in front of the sandbox: it never lifts it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Code, IR_VERSION, Ir, Span, verify};

/// How strict to be.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RuleSet {
    /// What an agent should do with its other tools: no `cd`, no output to files, no hidden code.
    #[default]
    Default,
    /// Only what cannot be read: syntax errors, foreign versions, look-alikes, hidden code.
    Relaxed,
    /// Build and test, but change nothing: the default rules, and no command that mutates.
    Verify,
}

impl RuleSet {
    /// Every rule set.
    pub const ALL: &'static [Self] = &[Self::Default, Self::Relaxed, Self::Verify];

    /// The name, as in settings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Relaxed => "relaxed",
            Self::Verify => "verify",
        }
    }
}

impl fmt::Display for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A rule set that does not exist.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no rule set is called {name:?}; there are default, relaxed and verify")]
pub struct UnknownRuleSet {
    /// What was asked for.
    pub name: String,
}

impl FromStr for RuleSet {
    type Err = UnknownRuleSet;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|set| set.name() == name);
        found.ok_or_else(|| UnknownRuleSet {
            name: name.to_owned(),
        })
    }
}

/// What a rule set says of a text.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
#[must_use = "a verdict that nobody looks at protects nobody"]
pub enum Verdict {
    /// No rule objects.
    Allow,
    /// A rule objects.
    Deny {
        /// Which.
        code: Code,
        /// Where.
        span: Span,
        /// What is wrong, in one sentence.
        message: String,
        /// What to do instead, in one sentence.
        instead: String,
    },
}

impl Verdict {
    /// Whether no rule objects.
    pub fn is_allow(&self) -> bool {
        *self == Self::Allow
    }

    /// The code of a denial.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Allow => None,
            Self::Deny { code, .. } => Some(*code),
        }
    }

    pub(crate) fn deny(
        code: Code,
        span: Span,
        message: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Self::Deny {
            code,
            span,
            message: message.into(),
            instead: instead.into(),
        }
    }
}

/// Judges `ir` by `rules`. The first rule that objects decides, the graver ones first.
pub fn decide(ir: &Ir, rules: RuleSet) -> Verdict {
    if let Some(verdict) = unreadable(ir) {
        return verdict;
    }
    if rules == RuleSet::Relaxed {
        return Verdict::Allow;
    }
    if let Some(verdict) = steered(ir) {
        return verdict;
    }
    if rules == RuleSet::Verify {
        return verify::decide(ir);
    }
    Verdict::Allow
}

/// What denies in every rule set: nobody could know what was allowed.
fn unreadable(ir: &Ir) -> Option<Verdict> {
    let whole = Span {
        start: 0,
        end: ir.length,
    };
    if ir.version != IR_VERSION {
        return Some(Verdict::deny(
            Code::VersionMismatch,
            whole,
            format!(
                "this analysis has version {} and {IR_VERSION} is needed, so it cannot be trusted",
                ir.version
            ),
            "analyse the command again with this version",
        ));
    }
    if let Some(refusal) = ir.refusal {
        return Some(Verdict::deny(
            Code::SyntaxError,
            refusal.span,
            format!("the command cannot be read for certain: {refusal}"),
            "fix the syntax, or write the same thing more plainly",
        ));
    }
    // A refused text always says so; an IR that lost it was not made here.
    if let Some(span) = ir.first(Code::SyntaxError) {
        return Some(Verdict::deny(
            Code::SyntaxError,
            span,
            "the command does not parse",
            "fix the syntax, or write the same thing more plainly",
        ));
    }
    if let Some(span) = ir.first(Code::Lookalike) {
        return Some(Verdict::deny(
            Code::Lookalike,
            span,
            "characters here are invisible, turn the direction of the text, or look like others",
            "use plain ASCII for names and blanks, and quote other text",
        ));
    }
    ir.first(Code::OpaqueInterpreter).map(|span| {
        Verdict::deny(
            Code::OpaqueInterpreter,
            span,
            "code reaches an interpreter through a pipe, a here-document or a substitution, where nothing can inspect it",
            "save the code to a file with the editing tool and run that file, or pass a short program with -c or -e",
        )
    })
}

/// What the default rules steer to other tools.
fn steered(ir: &Ir) -> Option<Verdict> {
    if let Some(span) = ir.first(Code::Cd) {
        return Some(Verdict::deny(
            Code::Cd,
            span,
            "the shell stays in the project directory, so it must not change its working directory",
            "use paths relative to the project, or an option such as `git -C`, `make -C` or `cargo --manifest-path`",
        ));
    }
    ir.first(Code::RedirectOut).map(|span| {
        Verdict::deny(
            Code::RedirectOut,
            span,
            "output is redirected to a file",
            "use the writing or editing tool so that the change is tracked; /dev/null and other descriptors are fine",
        )
    })
}
