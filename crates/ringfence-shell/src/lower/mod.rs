//! Finds the commands that commands start, and what builtins do to the shell.
//!
//! Owns the step from what was written to what would run: `sudo`, `xargs`, `find -exec`, `bash -c` and
//! their like give up the command inside them, to any depth, as an entry of its own; `eval`, `trap` and
//! the builtins that evaluate their arguments are read as code. It judges nothing.
//!
//! Where the inner command cannot be told for certain (an unknown option, a computed word), the best
//! reading is added *and* the place is marked as computed: denials need no certainty, allowances do.

mod builtins;
mod code;
mod git;
mod input;
mod known;
pub(crate) mod options;
mod runners;
mod shells;
pub(crate) mod wrappers;

pub(crate) use builtins::assigned;

use crate::parse::Builder;
use crate::{Code, Command, Hole, HoleKind, Refusal, RefusalKind, Span, Word, Yields};

/// How many times text may be code inside code.
const MAX_CODE_DEPTH: u32 = 12;

pub(crate) struct Lowering<'o> {
    /// What was given, so that code which stands in it as it is keeps its exact places.
    text: &'o [u8],
    out: &'o mut Builder,
    /// How many words may still be copied, so that wrappers in wrappers stay linear.
    budget: usize,
    /// How deep in code each command beyond the written ones is.
    depths: Vec<u32>,
    /// How deep the command at hand is.
    depth: u32,
}

/// Completes `out`, which was read from `text`.
pub(crate) fn lower(text: &[u8], out: &mut Builder) -> Result<(), Refusal> {
    let words: usize = out.commands.iter().map(|command| command.words.len()).sum();
    let depths = vec![0; out.commands.len()];
    let mut lowering = Lowering {
        text,
        out,
        budget: words.saturating_mul(8).saturating_add(4096),
        depths,
        depth: 0,
    };
    let mut index = 0;
    while index < lowering.out.commands.len() {
        lowering.depth = lowering.depths.get(index).copied().unwrap_or(0);
        let command = std::mem::take(&mut lowering.out.commands[index]);
        let outcome = lowering.command(index, &command);
        lowering.out.commands[index] = command;
        outcome?;
        index += 1;
    }
    input::find_opaque(lowering.out);
    quoted_code(lowering.out);
    Ok(())
}

/// Code in quotes and arithmetic in the same text: `x='a[$(cmd)]'; ((x))` runs `cmd`.
fn quoted_code(out: &mut Builder) {
    if let Some(span) = out.quoted_code
        && out
            .findings
            .iter()
            .any(|finding| finding.code == Code::Arithmetic)
    {
        out.find(Code::ComputedCode, span);
    }
}

impl Lowering<'_> {
    fn command(&mut self, index: usize, command: &Command) -> Result<(), Refusal> {
        for assignment in &command.assignments {
            assigned(self.out, &assignment.name, assignment.value.span);
        }
        let Some(first) = command.words.first() else {
            return Ok(());
        };
        let Some(name) = first.basename() else {
            self.out.find(Code::ComputedCommand, first.span);
            return self.behind_computed(index, command);
        };
        if name.is_empty() || !name.is_ascii() {
            self.out.find(
                if name.is_empty() {
                    Code::ComputedCommand
                } else {
                    Code::Lookalike
                },
                first.span,
            );
        }
        if self.run_by(index, command, name)? {
            return Ok(());
        }
        self.builtin(index, command, name)
    }

    /// `$x rm f` runs `rm` when `x` is empty, or `sudo`.
    fn behind_computed(&mut self, index: usize, command: &Command) -> Result<(), Refusal> {
        let vanishes = command
            .words
            .first()
            .is_some_and(|word| word.text.is_empty() && !word.is_one_word());
        let rest = command.words.get(1..).unwrap_or_default();
        if vanishes && !rest.is_empty() {
            self.start(index, command, rest.to_vec())?;
        }
        Ok(())
    }

    /// Adds a command that the one at `index` starts.
    fn start(&mut self, index: usize, by: &Command, words: Vec<Word>) -> Result<(), Refusal> {
        let Some(remaining) = self.budget.checked_sub(words.len() + 1) else {
            return Err(Refusal {
                kind: RefusalKind::TooManyWrapped,
                span: by.span,
            });
        };
        self.budget = remaining;
        let span = words.iter().fold(None, |span: Option<Span>, word| {
            Some(span.map_or(word.span, |span| Span {
                start: span.start.min(word.span.start),
                end: span.end.max(word.span.end),
            }))
        });
        self.depths.resize(self.out.commands.len(), 0);
        self.depths.push(self.depth);
        self.out.commands.push(Command {
            span: span.unwrap_or(by.span),
            block: by.block,
            started_by: u32::try_from(index).ok(),
            piped: by.piped,
            words,
            ..Command::default()
        });
        Ok(())
    }
}

/// The words with every `marker` in them replaced by what the starting command puts there.
pub(crate) fn filled(words: &[Word], marker: &str, yields: Yields) -> Vec<Word> {
    let fill = |word: &Word| {
        if marker.is_empty() || !word.text.contains(marker) {
            return word.clone();
        }
        let mut text = String::new();
        let mut holes = Vec::new();
        let mut from = 0;
        for (at, _) in word.text.match_indices(marker) {
            text.push_str(word.text.get(from..at).unwrap_or_default());
            holes.push(Hole {
                at: u32::try_from(text.len()).unwrap_or(u32::MAX),
                kind: HoleKind::Input,
                yields,
            });
            from = at + marker.len();
        }
        text.push_str(word.text.get(from..).unwrap_or_default());
        // Other holes keep their order, not their exact place; the word is computed either way.
        let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
        holes.extend(word.holes.iter().map(|hole| Hole {
            at: hole.at.min(end),
            ..*hole
        }));
        holes.sort_by_key(|hole| hole.at);
        Word {
            span: word.span,
            text,
            holes,
        }
    };
    words.iter().map(fill).collect()
}

/// A word that stands for arguments added when the command runs.
pub(crate) fn input(span: Span) -> Word {
    let hole = Hole {
        at: 0,
        kind: HoleKind::Input,
        yields: Yields::Many,
    };
    Word {
        span,
        text: String::new(),
        holes: vec![hole],
    }
}
