//! Reads bash text, in one pass, without going back.
//!
//! Owns the grammar. It writes straight into the [`Builder`], so there is no tree to keep and none to
//! leak. It never runs, opens or looks up anything.
//!
//! The promise is that whatever simple command bash would run from the text is written down, or its
//! name is marked as computed, or the text is refused. So wherever bash reads a construct differently
//! in different places (or versions), this parser does not choose: it refuses. Each such rule says at
//! its place what bash would do.
//!
//! Depth is counted at every construct that can hold itself, so the stack is bounded; repetition
//! (lists, pipelines, prefixes, `elif`) is always a loop. Text that must be unescaped before it can be
//! read (back-ticks, joined here-document lines) is copied, and what is copied counts as depth too, so
//! the work is at most the length times the depth.

mod arithmetic;
mod braces;
mod builder;
mod command;
mod compound;
mod dollar;
mod heredoc;
mod list;
mod redirect;
mod test;
mod word;

pub(crate) use builder::Builder;
pub(crate) use word::turns_text;

use crate::{BlockKind, Code, Refusal, RefusalKind, Span};
use heredoc::Pending;

/// How deep constructs may nest, quotes and substitutions included.
pub(crate) const MAX_DEPTH: u32 = 64;

type Parsed<T> = Result<T, Refusal>;

/// How places in the source become places in the text that was given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    /// The source stands in the text as it is, from this byte on.
    At(u32),
    /// The source was unescaped out of this range.
    Within(Span),
}

/// What the nested source will be read by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reader {
    /// bash.
    Bash,
    /// Some other shell, which reads `[[`, `<( )` or `$'..'` as something else.
    OtherShell,
}

/// What a part of the source, or text copied out of it, holds.
#[derive(Clone, Copy, Debug)]
enum Inner {
    Commands,
    HeredocText,
}

/// The state of one reading.
pub(crate) struct Parser<'s, 'o> {
    src: &'s [u8],
    pos: usize,
    end: usize,
    base: Base,
    reader: Reader,
    out: &'o mut Builder,
    block: u32,
    depth: u32,
    /// Here-documents whose bodies begin at the next new line.
    pending: Vec<Pending>,
    /// A construct around this one waits for its own here-documents, so no new line may come first.
    outer_pending: bool,
    /// Where the last word ended, so that what directly follows is known to touch it.
    word_end: usize,
    /// Inside `$( )` or `<( )`, where bash also ends a here-document at `DELIMITER)`.
    in_substitution: bool,
}

/// Reads `src` into `out`, inside `block`.
pub(crate) fn parse(
    src: &[u8],
    base: Base,
    reader: Reader,
    depth: u32,
    block: u32,
    out: &mut Builder,
) -> Parsed<()> {
    let mut parser = Parser {
        src,
        pos: 0,
        end: src.len(),
        base,
        reader,
        out,
        block,
        depth,
        pending: Vec::new(),
        outer_pending: false,
        word_end: usize::MAX,
        in_substitution: false,
    };
    parser.script()
}

/// Checks what holds for every byte, before anything is read.
pub(crate) fn vet(text: &[u8]) -> Parsed<&str> {
    let at = |index: usize, kind| Refusal {
        kind,
        span: Span {
            start: u32::try_from(index).unwrap_or(u32::MAX),
            end: u32::try_from(index + 1).unwrap_or(u32::MAX),
        },
    };
    if text.len() > crate::MAX_TEXT {
        return Err(at(crate::MAX_TEXT, RefusalKind::TooLarge));
    }
    if let Some(index) = text.iter().position(|&byte| byte == 0) {
        return Err(at(index, RefusalKind::Nul));
    }
    // \x01 and \x7f are bash's own quoting marks; text that holds them has been misread before.
    if let Some(index) = text
        .iter()
        .position(|byte| matches!(byte, 1 | b'\r' | 0x7f))
    {
        return Err(at(index, RefusalKind::ControlCharacter));
    }
    std::str::from_utf8(text).map_err(|error| at(error.valid_up_to(), RefusalKind::NotUtf8))
}

impl Parser<'_, '_> {
    fn script(&mut self) -> Parsed<()> {
        self.list(list::Stops::END, list::Need::Nothing)?;
        if self.pending.is_empty() {
            Ok(())
        } else {
            self.refuse(RefusalKind::Unterminated)
        }
    }

    /// The current byte; 0 at the end, which no text can hold.
    fn peek(&self) -> u8 {
        self.at(0)
    }

    fn at(&self, ahead: usize) -> u8 {
        let index = self.pos + ahead;
        if index < self.end {
            self.src.get(index).copied().unwrap_or(0)
        } else {
            0
        }
    }

    fn looking_at(&self, text: &[u8]) -> bool {
        self.src
            .get(self.pos..self.end)
            .is_some_and(|rest| rest.starts_with(text))
    }

    fn span(&self, start: usize, end: usize) -> Span {
        match self.base {
            Base::At(offset) => Span {
                start: u32::try_from(start)
                    .unwrap_or(u32::MAX)
                    .saturating_add(offset),
                end: u32::try_from(end)
                    .unwrap_or(u32::MAX)
                    .saturating_add(offset),
            },
            Base::Within(span) => span,
        }
    }

    fn since(&self, start: usize) -> Span {
        self.span(start, self.pos)
    }

    fn refuse<T>(&self, kind: RefusalKind) -> Parsed<T> {
        self.refuse_at(self.pos, kind)
    }

    fn refuse_at<T>(&self, start: usize, kind: RefusalKind) -> Parsed<T> {
        let start = start.min(self.end);
        // One whole character, so that the range can always be shown.
        let mut end = (start + 1).min(self.end);
        while self.src.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
            end += 1;
        }
        Err(Refusal {
            kind,
            span: self.span(start, end),
        })
    }

    fn find(&mut self, code: Code, start: usize) {
        let span = self.since(start);
        self.out.find(code, span);
    }

    /// Marks a construct that only bash reads this way.
    fn only_bash(&mut self, start: usize) {
        if self.reader == Reader::OtherShell {
            let span = self.since(start);
            self.out.find(Code::ComputedCode, span);
        }
    }

    /// Notes quoted text that would be code if it were evaluated.
    fn quoted_code(&mut self, start: usize) {
        let span = self.span(start, (start + 1).max(self.pos));
        self.out.quoted_code.get_or_insert(span);
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.refuse(RefusalKind::TooDeep)
        } else {
            Ok(())
        }
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Opens a block, and counts it as depth.
    fn open(&mut self, kind: BlockKind, start: usize) -> Parsed<u32> {
        self.enter()?;
        let span = self.span(start, start);
        let block = self.out.open(kind, span, self.block);
        self.block = block;
        Ok(block)
    }

    fn close(&mut self, block: u32, start: usize) {
        let span = self.since(start);
        self.block = self.out.close(block, span);
        self.leave();
    }

    /// A new line inside a quote, a pattern or an expansion.
    ///
    /// With a here-document waiting, bash versions differ on where its body begins.
    fn line_inside(&self) -> Parsed<()> {
        if self.pending.is_empty() && !self.outer_pending {
            Ok(())
        } else {
            self.refuse(RefusalKind::AmbiguousHeredoc)
        }
    }

    /// Runs `inner` as a context of its own: here-documents opened in it must end in it.
    fn isolated<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let pending = std::mem::take(&mut self.pending);
        let outer = self.outer_pending;
        self.outer_pending = outer || !pending.is_empty();
        let value = inner(self)?;
        if !self.pending.is_empty() {
            return self.refuse(RefusalKind::Unterminated);
        }
        self.pending = pending;
        self.outer_pending = outer;
        Ok(value)
    }

    /// Reads a part of the source, as if it ended there.
    fn window(&mut self, start: usize, end: usize, inner: Inner) -> Parsed<()> {
        let (pos, old_end, substitution) = (self.pos, self.end, self.in_substitution);
        (self.pos, self.end, self.in_substitution) = (start, end, false);
        self.inner(inner)?;
        (self.pos, self.end, self.in_substitution) = (pos, old_end, substitution);
        Ok(())
    }

    /// Reads text that was unescaped out of `span`.
    fn copied(&mut self, text: &[u8], span: Span, inner: Inner) -> Parsed<()> {
        self.enter()?;
        let mut parser = Parser {
            src: text,
            pos: 0,
            end: text.len(),
            base: Base::Within(span),
            reader: self.reader,
            out: self.out,
            block: self.block,
            depth: self.depth,
            pending: Vec::new(),
            outer_pending: false,
            word_end: usize::MAX,
            in_substitution: false,
        };
        parser.inner(inner)?;
        self.leave();
        Ok(())
    }

    fn inner(&mut self, inner: Inner) -> Parsed<()> {
        match inner {
            Inner::Commands => self.script(),
            Inner::HeredocText => self.heredoc_text(),
        }
    }

    /// Skips blanks, line continuations and a comment; stops at a new line.
    fn blanks(&mut self) -> Parsed<()> {
        loop {
            match self.peek() {
                b' ' | b'\t' => self.pos += 1,
                b'\\' if self.at(1) == b'\n' => self.continuation()?,
                b'#' => {
                    while !matches!(self.peek(), 0 | b'\n') {
                        self.pos += 1;
                    }
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }

    /// Backslash and new line, which bash removes, so that what stands on both sides may grow together.
    ///
    /// Accepted only where nothing does.
    fn continuation(&mut self) -> Parsed<()> {
        self.line_inside()?;
        let before = self
            .pos
            .checked_sub(1)
            .and_then(|index| self.src.get(index))
            .copied()
            .unwrap_or(0);
        let start = self.pos;
        while self.peek() == b'\\' && self.at(1) == b'\n' {
            self.pos += 2;
        }
        let next = self.peek();
        let apart = if start == self.word_end {
            // The end of a word, whatever its last character: `$(a)`, `\ `, `x`.
            matches!(next, 0 | b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')')
        } else {
            let operator = |byte| matches!(byte, b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>');
            match before {
                0 | b' ' | b'\t' | b'\n' => true,
                _ if operator(before) => !operator(next),
                _ => ends_word(next) && !matches!(next, b'(' | b'<' | b'>'),
            }
        };
        if apart {
            Ok(())
        } else {
            self.refuse_at(start, RefusalKind::AmbiguousContinuation)
        }
    }

    /// Skips blanks, comments and new lines, with the here-document bodies behind them.
    fn lines(&mut self) -> Parsed<()> {
        loop {
            self.blanks()?;
            if self.peek() != b'\n' {
                return Ok(());
            }
            self.line()?;
        }
    }

    /// One new line between commands.
    fn line(&mut self) -> Parsed<()> {
        if self.outer_pending {
            return self.refuse(RefusalKind::AmbiguousHeredoc);
        }
        self.pos += 1;
        self.heredoc_bodies()
    }
}

/// Whether a byte ends an unquoted word.
fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        0 | b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>'
    )
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
