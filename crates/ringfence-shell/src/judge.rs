//! A rule set and a user's rules, together.
//!
//! Owns which of the two decides: a denial of the rule set stands whatever a user's rule allows, and
//! otherwise the user's rules speak. Nothing here lifts the sandbox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Action, Answer, Code, Ir, RuleSet, Rules, Span, Verdict, decide};

/// What a rule set and a user's rules say of a text.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
#[must_use = "a judgement that nobody looks at protects nobody"]
pub enum Judgement {
    /// Nobody objects.
    Allow {
        /// The user's rule that allows it by name, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Answer>,
    },
    /// A user's rule wants a question first. Where nobody can be asked, that is a no.
    Ask {
        /// Always [`Code::UserRule`].
        code: Code,
        /// Where.
        span: Span,
        /// What is asked about, in one sentence.
        message: String,
        /// What to do instead, in one sentence.
        instead: String,
        /// The rule's own words.
        answer: Answer,
    },
    /// The rule set or a user's rule objects.
    Deny {
        /// Which rule; [`Code::UserRule`] for a user's.
        code: Code,
        /// Where.
        span: Span,
        /// What is wrong, in one sentence.
        message: String,
        /// What to do instead, in one sentence.
        instead: String,
    },
}

impl Judgement {
    /// Whether nobody objects, nor wants to be asked.
    pub fn is_allow(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }
}

/// What `rule_set` and `rules` say of `ir`, the strictest of both.
pub fn judge(ir: &Ir, rule_set: RuleSet, rules: &Rules) -> Judgement {
    if let Verdict::Deny {
        code,
        span,
        message,
        instead,
    } = decide(ir, rule_set)
    {
        return Judgement::Deny {
            code,
            span,
            message,
            instead,
        };
    }
    let Some(answer) = rules.answer(ir) else {
        return Judgement::Allow { answer: None };
    };
    match answer.action {
        Action::Allow => Judgement::Allow {
            answer: Some(answer),
        },
        Action::Ask => Judgement::Ask {
            code: Code::UserRule,
            span: answer.span,
            message: told(&answer),
            instead: "have a person run it, or do without it".to_owned(),
            answer,
        },
        Action::Deny => Judgement::Deny {
            code: Code::UserRule,
            span: answer.span,
            message: told(&answer),
            instead: "do without it; only who wrote the rule can lift it".to_owned(),
        },
    }
}

/// What a user's rule says, and where it stands.
pub(crate) fn told(answer: &Answer) -> String {
    let verb = match answer.action {
        Action::Allow => "allows this",
        Action::Ask => "asks first",
        Action::Deny => "denies this",
    };
    let rule = match &answer.origin {
        Some(origin) => format!("the rule at {origin} {verb}"),
        None => format!("rule {} {verb}", answer.rule),
    };
    match &answer.justification {
        Some(justification) => format!("{rule}: {justification}"),
        None => rule,
    }
}
