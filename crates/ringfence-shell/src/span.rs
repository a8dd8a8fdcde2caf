//! Byte ranges in the text that was given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A half-open byte range of the text.
///
/// Code that is nested through an unescaping step (back-ticks with escapes, `eval 'text'`, joined
/// here-document lines) has no range of its own: everything in it carries the range of what holds it.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    Deserialize,
    Eq,
    Hash,
    JsonSchema,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Whether `other` lies inside `self`; equal ranges do.
    pub fn holds(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The text of the range, or the empty string when it does not fit `text`.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}
