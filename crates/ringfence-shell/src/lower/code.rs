//! Text that is run as shell code.

use super::{Lowering, MAX_CODE_DEPTH};
use crate::parse::{self, Base, Reader};
use crate::{BlockKind, Code, Command, HoleKind, Refusal, RefusalKind, Span, Word};

/// Whether text that does not parse can still run in part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum OnError {
    /// Another shell, or text that may never run: mark it and go on.
    Mark,
    /// bash runs the lines before the error.
    Refuse,
}

impl Lowering<'_> {
    /// Reads `words`, joined by blanks, as code that the command at `index` runs.
    pub(super) fn code(
        &mut self,
        index: usize,
        by: &Command,
        words: &[Word],
        reader: Reader,
        on_error: OnError,
    ) -> Result<(), Refusal> {
        let Some(first) = words.first() else {
            return Ok(());
        };
        let span = words.iter().fold(first.span, |span, word| Span {
            start: span.start.min(word.span.start),
            end: span.end.max(word.span.end),
        });
        self.out.find(Code::Eval, span);
        let computed = words.iter().any(|word| !word.holes.is_empty());
        let mut text = String::new();
        for (position, word) in words.iter().enumerate() {
            if position > 0 {
                text.push(' ');
            }
            render(word, &mut text);
        }
        if computed {
            let fed = words.iter().flat_map(|word| &word.holes).any(|hole| {
                matches!(
                    hole.kind,
                    HoleKind::CommandSubstitution | HoleKind::Input | HoleKind::ProcessSubstitution
                )
            });
            // The output of a command as code is `curl | sh` in other clothes.
            let bare = words.iter().all(|word| word.text.trim().is_empty());
            let code = if fed && bare {
                Code::OpaqueInterpreter
            } else {
                Code::ComputedCode
            };
            self.out.find(code, span);
            self.out.find(Code::ComputedCode, span);
        }
        let on_error = if computed { OnError::Mark } else { on_error };
        let base = self.base(span, text.as_bytes());
        self.parse_code(index, by, text.as_bytes(), (span, base), reader, on_error)
    }

    fn parse_code(
        &mut self,
        index: usize,
        by: &Command,
        text: &[u8],
        (span, base): (Span, Base),
        reader: Reader,
        on_error: OnError,
    ) -> Result<(), Refusal> {
        if self.depth >= MAX_CODE_DEPTH {
            return Err(Refusal {
                kind: RefusalKind::TooDeep,
                span,
            });
        }
        let marks = (
            self.out.blocks.len(),
            self.out.commands.len(),
            self.out.findings.len(),
        );
        let parsed = parse::vet(text).and_then(|_| {
            let block = self.out.open(BlockKind::Code, span, by.block);
            if let Some(entry) = self.out.block(block) {
                entry.piped = by.piped;
                entry.redirections.clone_from(&by.redirections);
                entry.started_by = u32::try_from(index).ok();
            }
            parse::parse(text, base, reader, 0, block, self.out)
        });
        match parsed {
            Ok(()) => {
                // Everything new is one level deeper.
                self.depths.resize(marks.1, 0);
                self.depths.resize(self.out.commands.len(), self.depth + 1);
                Ok(())
            }
            Err(_) if on_error == OnError::Mark => {
                self.out.blocks.truncate(marks.0);
                self.out.commands.truncate(marks.1);
                self.out.findings.truncate(marks.2);
                self.out.find(Code::ComputedCode, span);
                Ok(())
            }
            // Where the code stands as it is, the very place can be shown.
            Err(refusal) if matches!(base, Base::At(_)) => Err(refusal),
            Err(_) => Err(Refusal {
                kind: RefusalKind::InnerCode,
                span,
            }),
        }
    }

    /// Where places in `code` are: exactly there, if the text holds the code as it is in `span`,
    /// bare or between quotes.
    fn base(&self, span: Span, code: &[u8]) -> Base {
        let held = self.text.get(span.start as usize..span.end as usize);
        match held {
            Some(held) if held == code => Base::At(span.start),
            Some([b'\'', held @ .., b'\''] | [b'"', held @ .., b'"']) if held == code => {
                Base::At(span.start.saturating_add(1))
            }
            _ => Base::Within(span),
        }
    }
}

/// The text of a word with each hole as an expansion, so that what is literal around it can be read.
fn render(word: &Word, text: &mut String) {
    let mut from = 0;
    for hole in &word.holes {
        let at = (hole.at as usize).clamp(from, word.text.len());
        text.push_str(word.text.get(from..at).unwrap_or_default());
        if !matches!(hole.kind, HoleKind::Brace | HoleKind::Glob) {
            text.push_str("${_}");
        }
        from = at;
    }
    text.push_str(word.text.get(from..).unwrap_or_default());
}
