//! Why a text is refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Span;

/// A text that is not read any further.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize, thiserror::Error,
)]
#[serde(deny_unknown_fields)]
#[error("{kind}")]
pub struct Refusal {
    /// Why.
    pub kind: RefusalKind,
    /// Where.
    pub span: Span,
}

/// The reasons. All of them deny: a text that we might read differently from bash is not worth a guess.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize, thiserror::Error,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RefusalKind {
    /// `((` that does not end in `))`: bash reads it as arithmetic or as nested subshells.
    #[error("`((` must end in `))`; write `( (` for nested subshells")]
    AmbiguousArithmetic,
    /// A quote or escape inside `${ }` that bash reads differently at different times.
    #[error("quoting inside `${{ }}` can be read in two ways")]
    AmbiguousBraces,
    /// Backslash and new line in the middle of a token.
    #[error("a line continuation inside a token can be read in two ways")]
    AmbiguousContinuation,
    /// A pattern like `!(x)` where a command could stand.
    #[error("an extended pattern here can be read in two ways")]
    AmbiguousPattern,
    /// A here-document delimiter with expansions or odd quoting, or a body whose end is unclear.
    #[error("the end of this here-document can be read in two ways")]
    AmbiguousHeredoc,
    /// `>&` with a quoted `$` in its file, which bash expands twice.
    #[error("bash expands the file of `>&` twice; use `&>`")]
    AmbiguousRedirection,
    /// `time` with options other than `-p`.
    #[error("`time` with options can be the keyword or the program")]
    AmbiguousTime,
    /// A control character that bash itself uses inside, or a carriage return.
    #[error("a control character stands in the text")]
    ControlCharacter,
    /// Code handed to another command does not parse.
    #[error("the code given to this command does not parse")]
    InnerCode,
    /// Not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// A NUL byte.
    #[error("the text holds a NUL byte")]
    Nul,
    /// Nested deeper than anybody writes.
    #[error("nested too deeply")]
    TooDeep,
    /// Larger than the cap.
    #[error("larger than {} bytes", crate::MAX_TEXT)]
    TooLarge,
    /// Wrappers inside wrappers beyond any use.
    #[error("too many commands inside commands")]
    TooManyWrapped,
    /// A token where the grammar allows none.
    #[error("unexpected token")]
    Unexpected,
    /// A construct that newer versions of bash have and older ones read differently.
    #[error("this construct is not supported")]
    Unsupported,
    /// Something opened and never closed.
    #[error("opened here and never closed")]
    Unterminated,
}
