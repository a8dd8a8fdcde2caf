//! What a text would do, as data: the only thing that policy looks at.
//!
//! Owns the shape of the IR and its version. It holds no syntax nodes, so that a better parser never
//! changes a stored decision, and no absolute promise: a word is either literal or says that it is
//! computed, a command is named or says that it cannot be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Code, Refusal, Span};

/// The version that [`Ir::from_bash`] writes and [`decide`](crate::decide) accepts.
pub const IR_VERSION: u32 = 1;

/// Which shell the text is meant for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Dialect {
    /// `bash -c TEXT`, without aliases and with history expansion off, as `bash` starts.
    #[default]
    Bash,
}

/// Everything that a text could run.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ir {
    /// See [`IR_VERSION`].
    pub version: u32,
    /// How the text was read.
    pub dialect: Dialect,
    /// Length of the text in bytes.
    pub length: u32,
    /// The constructs that hold commands, as a tree: entry 0 is the whole text, and each parent comes
    /// before its children.
    pub blocks: Vec<Block>,
    /// Every simple command that could run, also those that other commands start.
    pub commands: Vec<Command>,
    /// The risk codes, in order of place, then of name; no entry twice.
    pub findings: Vec<Finding>,
    /// Why the text was refused; then there is no block, no command, and one finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// One risk code at one place.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Where.
    pub span: Span,
    /// What.
    pub code: Code,
}

/// A construct that holds commands.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Which construct.
    pub kind: BlockKind,
    /// Its range, redirections included.
    pub span: Span,
    /// The block around it; only the whole text has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<u32>,
    /// Whether its standard input is the output of the command before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub piped: bool,
    /// Redirections of the whole construct.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirections: Vec<Redirection>,
    /// The name of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The command that runs this code: `eval`, `bash -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<u32>,
}

/// The constructs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BlockKind {
    /// `(( ))`, `$(( ))`.
    Arithmetic,
    /// `case`.
    Case,
    /// Text that a command runs as code: `eval`, `trap`, `bash -c`.
    Code,
    /// `$( )` or back-ticks.
    CommandSubstitution,
    /// `coproc`.
    Coprocess,
    /// `for`.
    For,
    /// A function definition; its body runs when it is called, and counts as if it were.
    Function,
    /// `{ }`.
    Group,
    /// The body of a here-document.
    Heredoc,
    /// `if`.
    If,
    /// `<( )`.
    ProcessInput,
    /// `>( )`.
    ProcessOutput,
    /// The whole text.
    Script,
    /// `select`.
    Select,
    /// `( )`.
    Subshell,
    /// `[[ ]]`.
    Test,
    /// `until`.
    Until,
    /// `while`.
    While,
}

/// A simple command: words, assignments and redirections, any of which may be absent.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Its range; for a command that another starts, that of its words.
    pub span: Span,
    /// The innermost block around it.
    pub block: u32,
    /// The command that starts this one: `sudo`, `xargs`, `find -exec`, `bash -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<u32>,
    /// Whether its standard input is the output of the command before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub piped: bool,
    /// The name and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
    /// `NAME=value` in front of the name, or alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assignments: Vec<Assignment>,
    /// Redirections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirections: Vec<Redirection>,
}

/// A word after quote removal.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Its range, quotes included.
    pub span: Span,
    /// The literal characters; what is computed contributes none. Patterns keep theirs.
    pub text: String,
    /// What is computed, in order of place; empty for a literal word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
}

/// A part of a word that is only known when the command runs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hole {
    /// The byte of [`Word::text`] in front of which it stands.
    pub at: u32,
    /// What fills it.
    pub kind: HoleKind,
    /// How many words it can make.
    pub yields: Yields,
}

/// What fills a hole.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HoleKind {
    /// `$(( ))`.
    Arithmetic,
    /// `name=( )`.
    Array,
    /// `{a,b}`.
    Brace,
    /// Bytes that are not UTF-8, from `$'\xff'`.
    Bytes,
    /// `$( )` or back-ticks.
    CommandSubstitution,
    /// `*`, `?`, `[ ]`, `@( )`.
    Glob,
    /// Text that the starting command puts in: a found file, a line of input.
    Input,
    /// `$x`, `${x}`.
    Parameter,
    /// `<( )` or `>( )`.
    ProcessSubstitution,
    /// `~`.
    Tilde,
}

/// How many words an expansion can make.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Yields {
    /// Any number, none included.
    Many,
    /// Part of exactly one.
    One,
}

/// `NAME=value`.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The variable; for an element of an array, the array.
    pub name: String,
    /// The value.
    pub value: Word,
}

/// A redirection.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Redirection {
    /// Operator and target.
    pub span: Span,
    /// What it does.
    pub kind: RedirectionKind,
    /// The descriptor, where one was written as a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<u32>,
    /// The file, descriptor, string or here-document delimiter.
    pub target: Word,
}

/// What a redirection does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RedirectionKind {
    /// `>>`, `&>>`.
    Append,
    /// `<<`, `<<-`.
    Heredoc,
    /// `<<<`.
    HereString,
    /// `>&` with a descriptor.
    Duplicate,
    /// `<&`.
    DuplicateInput,
    /// `<`.
    Read,
    /// `<>`.
    ReadWrite,
    /// `>`, `>|`, `&>`, `>&` with a file.
    Write,
}

impl Word {
    /// The value, when all of it is known.
    pub fn literal(&self) -> Option<&str> {
        self.holes.is_empty().then_some(self.text.as_str())
    }

    /// What is known of the beginning.
    pub fn prefix(&self) -> &str {
        let end = self
            .holes
            .first()
            .map_or(self.text.len(), |hole| hole.at as usize);
        self.text.get(..end).unwrap_or_default()
    }

    /// Whether it is certain to be exactly one word.
    pub fn is_one_word(&self) -> bool {
        self.holes.iter().all(|hole| hole.yields == Yields::One)
    }

    /// The last component of the path that it names, when that is known: `rm` of `"$dir"/rm`.
    pub fn basename(&self) -> Option<&str> {
        if self.holes.is_empty() {
            return Some(
                self.text
                    .rsplit_once('/')
                    .map_or(self.text.as_str(), |(_, base)| base),
            );
        }
        let (directory, base) = self.text.rsplit_once('/')?;
        let known = self
            .holes
            .iter()
            .all(|hole| hole.at as usize <= directory.len());
        (known && self.is_one_word()).then_some(base)
    }
}

impl Command {
    /// The program or builtin that runs, without its directory, when it is known.
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(Word::basename)
    }
}

impl RedirectionKind {
    /// Whether it opens its target for writing.
    pub fn writes(self) -> bool {
        matches!(self, Self::Append | Self::ReadWrite | Self::Write)
    }
}

impl Ir {
    /// Whether `code` was found anywhere.
    pub fn has(&self, code: Code) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }

    /// The codes that were found, in order of name, each once.
    pub fn codes(&self) -> Vec<Code> {
        let mut codes: Vec<_> = self.findings.iter().map(|finding| finding.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// The first place of `code`.
    pub fn first(&self, code: Code) -> Option<Span> {
        self.findings
            .iter()
            .find(|finding| finding.code == code)
            .map(|finding| finding.span)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_false(value: &bool) -> bool {
    !value
}
