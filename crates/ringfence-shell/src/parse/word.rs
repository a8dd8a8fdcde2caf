//! Words: quotes, escapes, patterns, and what is computed in them.

use super::{Parsed, Parser};
use crate::{Code, Hole, HoleKind, RefusalKind, Span, Word, Yields};

/// Where a word stands, which decides how some characters read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// Anywhere a plain word may stand; extended patterns are recognised.
    Argument,
    /// An element of an array. A syntax error there does not stop bash: it goes on with the next line.
    Element,
    /// The name of a command, where `x(` may be a function or a pattern.
    Name,
    /// The right side of `=~`.
    Regex,
    /// The value of an assignment.
    Value,
}

/// How the text around an expansion is quoted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Quote {
    /// In double quotes.
    Double,
    /// In a here-document body.
    Heredoc,
    /// Not at all.
    None,
}

/// A word while it grows.
#[derive(Debug, Default)]
pub(super) struct WordBuf {
    pub(super) text: Vec<u8>,
    pub(super) holes: Vec<Hole>,
    /// Where an unquoted `{`, and then a `,` or `..` in it, was seen.
    brace: Option<usize>,
    brace_splits: bool,
    /// Where an unquoted `[` was seen.
    bracket: Option<usize>,
}

impl WordBuf {
    pub(super) fn hole(&mut self, kind: HoleKind, yields: Yields) {
        self.hole_at(self.text.len(), kind, yields);
    }

    fn hole_at(&mut self, at: usize, kind: HoleKind, yields: Yields) {
        let hole = Hole {
            at: u32::try_from(at).unwrap_or(u32::MAX),
            kind,
            yields,
        };
        let place = self.holes.partition_point(|other| other.at <= hole.at);
        self.holes.insert(place, hole);
    }

    /// Whether the literal text holds code, or the beginning of some: `'$''(cmd)'`, `'$'`.
    fn may_become_code(&self) -> bool {
        let open = |at: usize| {
            // Holes are in order of place.
            let before_hole = self
                .holes
                .binary_search_by_key(&(at + 1), |hole| hole.at as usize);
            let last = at + 1 == self.text.len();
            last || before_hole.is_ok() || matches!(self.text.get(at + 1), Some(b'(' | b'{'))
        };
        let mut dollars = self
            .text
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'$');
        self.text.contains(&b'`') || dollars.any(|(at, _)| open(at))
    }

    pub(super) fn finish(self, parser: &Parser<'_, '_>, start: usize) -> Word {
        self.into_word(parser.since(start))
    }

    fn into_word(self, span: Span) -> Word {
        let text = match String::from_utf8(self.text) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        Word {
            span,
            text,
            holes: self.holes,
        }
    }
}

/// Bytes that an unquoted word copies as they are.
static PLAIN: [bool; 256] = {
    let mut table = [true; 256];
    let special = b"\0 \t\n;&|()<>\\'\"`$*?[]{},.";
    let mut index = 0;
    while index < special.len() {
        table[special[index] as usize] = false;
        index += 1;
    }
    table
};

impl Parser<'_, '_> {
    /// A word; refuses when there is none.
    pub(super) fn word(&mut self, place: Place) -> Parsed<Word> {
        let start = self.pos;
        let word = self.word_into(WordBuf::default(), start, place)?;
        if self.pos == start {
            self.refuse(RefusalKind::Unexpected)
        } else {
            Ok(word)
        }
    }

    /// The rest of a word that began at `start`.
    pub(super) fn word_into(
        &mut self,
        mut buf: WordBuf,
        start: usize,
        place: Place,
    ) -> Parsed<Word> {
        if self.peek() == b'~' {
            self.tilde(&mut buf);
        }
        loop {
            let byte = self.peek();
            if PLAIN[byte as usize] {
                self.plain(&mut buf, place);
                continue;
            }
            match byte {
                b'|' if place == Place::Regex => self.push(&mut buf),
                0 | b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' => break,
                b'(' if place == Place::Regex => self.pattern_group(&mut buf)?,
                b'(' => {
                    let before = self.src.get(self.pos.wrapping_sub(1)).copied().unwrap_or(0);
                    let pattern =
                        self.pos > start && matches!(before, b'?' | b'*' | b'+' | b'@' | b'!');
                    if !pattern {
                        break;
                    }
                    if matches!(place, Place::Element | Place::Name) {
                        return self.refuse(RefusalKind::AmbiguousPattern);
                    }
                    self.pattern_group(&mut buf)?;
                }
                b'<' | b'>' => {
                    if self.at(1) != b'(' {
                        break;
                    }
                    self.process_substitution(&mut buf)?;
                }
                b'\\' => {
                    if self.at(1) == b'\n' {
                        break;
                    }
                    self.escape(&mut buf)?;
                }
                b'\'' => self.single_quotes(&mut buf)?,
                b'"' => self.double_quotes(&mut buf)?,
                b'`' => self.backticks(&mut buf, Quote::None)?,
                b'$' => self.dollar(&mut buf, Quote::None)?,
                b'*' | b'?' => {
                    self.glob(buf.text.len(), &mut buf);
                    self.push(&mut buf);
                }
                b'[' => {
                    buf.bracket.get_or_insert(buf.text.len());
                    self.push(&mut buf);
                }
                b']' => {
                    if let Some(at) = buf.bracket.take() {
                        self.glob(at, &mut buf);
                    }
                    self.push(&mut buf);
                }
                _ => self.brace(&mut buf),
            }
        }
        self.word_end = self.pos;
        if buf.may_become_code() {
            self.quoted_code(start);
        }
        Ok(buf.finish(self, start))
    }

    fn push(&mut self, buf: &mut WordBuf) {
        buf.text.push(self.peek());
        self.pos += 1;
    }

    fn plain(&mut self, buf: &mut WordBuf, place: Place) {
        let start = self.pos;
        while PLAIN[self.peek() as usize] {
            self.pos += 1;
            // `PATH=~/a:~/b` expands after each colon.
            let colon = matches!(self.src.get(self.pos - 1), Some(b':' | b'='));
            if colon && self.peek() == b'~' && place != Place::Name {
                break;
            }
        }
        let run = self.src.get(start..self.pos).unwrap_or_default();
        if !run.is_ascii() && has_lookalike(run) {
            self.find(Code::Lookalike, start);
        }
        buf.text.extend_from_slice(run);
        if self.peek() == b'~' {
            self.tilde(buf);
        }
    }

    fn tilde(&mut self, buf: &mut WordBuf) {
        let start = self.pos;
        self.pos += 1;
        buf.hole(HoleKind::Tilde, Yields::One);
        self.find(Code::Expansion, start);
    }

    fn glob(&mut self, at: usize, buf: &mut WordBuf) {
        let span = self.span(self.pos, self.pos + 1);
        self.out.find(Code::Glob, span);
        buf.hole_at(at, HoleKind::Glob, Yields::Many);
    }

    /// `{`, `}`, `,` and `.`, which together may make several words.
    fn brace(&mut self, buf: &mut WordBuf) {
        match self.peek() {
            b'{' => {
                buf.brace.get_or_insert(buf.text.len());
            }
            b'}' => {
                if let (Some(at), true) = (buf.brace, buf.brace_splits) {
                    buf.hole_at(at, HoleKind::Brace, Yields::Many);
                    let start = self.pos;
                    let span = self.span(start, start + 1);
                    self.out.find(Code::BraceExpansion, span);
                    // Once is enough: the whole word is computed from here.
                    buf.brace = None;
                    buf.brace_splits = false;
                }
            }
            b',' => buf.brace_splits |= buf.brace.is_some(),
            b'.' => buf.brace_splits |= buf.brace.is_some() && self.at(1) == b'.',
            _ => {}
        }
        self.push(buf);
    }

    fn escape(&mut self, buf: &mut WordBuf) -> Parsed<()> {
        self.pos += 1;
        if self.pos >= self.end {
            return self.refuse_at(self.pos - 1, RefusalKind::Unterminated);
        }
        if matches!(self.peek(), b'$' | b'`') {
            self.quoted_code(self.pos - 1);
        }
        self.push(buf);
        while self.peek() & 0xc0 == 0x80 {
            self.push(buf);
        }
        Ok(())
    }

    /// `'text'`.
    pub(super) fn single_quotes(&mut self, buf: &mut WordBuf) -> Parsed<()> {
        let start = self.pos;
        let rest = self.src.get(start + 1..self.end).unwrap_or_default();
        let Some(length) = rest.iter().position(|&byte| byte == b'\'') else {
            return self.refuse_at(start, RefusalKind::Unterminated);
        };
        let body = &rest[..length];
        if body.contains(&b'\n') {
            self.line_inside()?;
        }
        buf.text.extend_from_slice(body);
        let code = holds_code(body);
        self.pos = start + length + 2;
        if code {
            self.quoted_code(start);
        }
        Ok(())
    }

    /// `"text"`.
    pub(super) fn double_quotes(&mut self, buf: &mut WordBuf) -> Parsed<()> {
        let start = self.pos;
        self.enter()?;
        self.pos += 1;
        loop {
            match self.peek() {
                0 => return self.refuse_at(start, RefusalKind::Unterminated),
                b'"' => break,
                b'\\' => self.double_escape(buf)?,
                b'`' => self.backticks(buf, Quote::Double)?,
                b'$' => self.dollar(buf, Quote::Double)?,
                b'\n' => {
                    self.line_inside()?;
                    self.push(buf);
                }
                _ => {
                    let from = self.pos;
                    while !matches!(self.peek(), 0 | b'"' | b'\\' | b'`' | b'$' | b'\n') {
                        self.pos += 1;
                    }
                    buf.text
                        .extend_from_slice(self.src.get(from..self.pos).unwrap_or_default());
                }
            }
        }
        self.pos += 1;
        self.leave();
        Ok(())
    }

    fn double_escape(&mut self, buf: &mut WordBuf) -> Parsed<()> {
        match self.at(1) {
            0 => return self.refuse(RefusalKind::Unterminated),
            b'\n' => self.line_inside()?,
            escaped @ (b'$' | b'`' | b'"' | b'\\') => {
                buf.text.push(escaped);
                if matches!(escaped, b'$' | b'`') {
                    self.quoted_code(self.pos);
                }
            }
            _ => {
                buf.text.push(b'\\');
                self.pos += 1;
                return Ok(());
            }
        }
        self.pos += 2;
        Ok(())
    }

    /// `( )` of an extended pattern or a regular expression: raw text with quotes and expansions.
    fn pattern_group(&mut self, buf: &mut WordBuf) -> Parsed<()> {
        let start = self.pos;
        self.enter()?;
        self.glob(buf.text.len(), buf);
        let mut open = 0_u32;
        loop {
            match self.peek() {
                0 => return self.refuse_at(start, RefusalKind::Unterminated),
                b'(' => {
                    open += 1;
                    self.push(buf);
                }
                b')' => {
                    open -= 1;
                    self.push(buf);
                    if open == 0 {
                        break;
                    }
                }
                b'<' | b'>' if self.at(1) == b'(' => {
                    return self.refuse(RefusalKind::AmbiguousPattern);
                }
                b'\\' if self.at(1) == b'\n' => {
                    return self.refuse(RefusalKind::AmbiguousContinuation);
                }
                b'\\' => self.escape(buf)?,
                b'\'' => self.single_quotes(buf)?,
                b'"' => self.double_quotes(buf)?,
                b'`' => self.backticks(buf, Quote::None)?,
                b'$' => self.dollar(buf, Quote::None)?,
                b'\n' => {
                    self.line_inside()?;
                    self.push(buf);
                }
                _ => self.push(buf),
            }
        }
        self.leave();
        Ok(())
    }
}

/// Whether text would run something if it were evaluated.
pub(super) fn holds_code(text: &[u8]) -> bool {
    text.contains(&b'`') || text.windows(2).any(|pair| pair == b"$(" || pair == b"${")
}

/// Characters outside quotes that a reader cannot see or takes for others.
fn has_lookalike(run: &[u8]) -> bool {
    std::str::from_utf8(run).is_ok_and(|text| text.chars().any(is_deceptive))
}

/// Blanks that are none to bash, marks without width, and marks that turn the direction of text.
pub(crate) fn is_deceptive(character: char) -> bool {
    matches!(character,
        '\u{85}' | '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}'
        | '\u{180e}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Marks that turn the direction of text: they deceive even in quotes and comments.
pub(crate) fn turns_text(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
