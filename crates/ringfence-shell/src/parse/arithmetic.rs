//! Arithmetic: `(( ))`, `$(( ))`, `$[ ]`, subscripts and substring offsets.
//!
//! Values are not computed. What counts is where the text ends, what substitutions it holds, and
//! whether a variable is evaluated: bash evaluates the value again, and `a[$(cmd)]` runs `cmd`.

use super::word::{Quote, WordBuf};
use super::{Parsed, Parser, is_name_start};
use crate::{Code, RefusalKind};

impl Parser<'_, '_> {
    /// Behind `((`, up to and with `))`.
    pub(super) fn arithmetic_parens(&mut self, start: usize) -> Parsed<()> {
        let mut open = 0_u32;
        let mut evaluates = false;
        loop {
            match self.peek() {
                b'(' => {
                    open += 1;
                    self.pos += 1;
                }
                b')' if open > 0 => {
                    open -= 1;
                    self.pos += 1;
                }
                // `((a) ...)` is a subshell in a subshell to bash.
                b')' if self.at(1) != b')' => {
                    return self.refuse_at(start, RefusalKind::AmbiguousArithmetic);
                }
                b')' => break,
                _ => evaluates |= self.arithmetic_text(start)?,
            }
        }
        self.pos += 2;
        if evaluates {
            self.find(Code::Arithmetic, start);
        }
        Ok(())
    }

    /// Behind `$[`, up to and with `]`.
    pub(super) fn arithmetic_bracket(&mut self, start: usize) -> Parsed<()> {
        let mut open = 0_u32;
        loop {
            match self.peek() {
                b'[' => {
                    open += 1;
                    self.pos += 1;
                }
                b']' if open == 0 => break,
                b']' => {
                    open -= 1;
                    self.pos += 1;
                }
                _ => {
                    self.arithmetic_text(start)?;
                }
            }
        }
        self.pos += 1;
        self.find(Code::Arithmetic, start);
        Ok(())
    }

    /// The offset and length of `${x:offset:length}`, up to `}`.
    pub(super) fn arithmetic_offset(&mut self, start: usize) -> Parsed<()> {
        let mut evaluates = false;
        while self.peek() != b'}' {
            evaluates |= self.arithmetic_text(start)?;
        }
        if evaluates {
            self.find(Code::Arithmetic, start);
        }
        Ok(())
    }

    /// One piece of arithmetic; says whether it evaluates a variable.
    fn arithmetic_text(&mut self, start: usize) -> Parsed<bool> {
        match self.peek() {
            0 => return self.refuse_at(start, RefusalKind::Unterminated),
            b'$' if matches!(self.at(1), b'\'' | b'"' | b'\\') => {
                return self.refuse(RefusalKind::AmbiguousArithmetic);
            }
            b'$' => {
                self.dollar(&mut WordBuf::default(), Quote::Double)?;
                return Ok(true);
            }
            b'`' => {
                self.backticks(&mut WordBuf::default(), Quote::Double)?;
                return Ok(true);
            }
            b'"' => {
                self.double_quotes(&mut WordBuf::default())?;
                return Ok(true);
            }
            b'\\' if self.at(1) == b'\n' => {
                self.line_inside()?;
                self.pos += 2;
                return Ok(false);
            }
            // Quotes are removed at one stage and matched at another.
            b'\'' | b'\\' | b'{' | b'}' => return self.refuse(RefusalKind::AmbiguousArithmetic),
            b'\n' => self.line_inside()?,
            _ => {}
        }
        let evaluates = is_name_start(self.peek());
        self.pos += 1;
        Ok(evaluates)
    }

    /// At `[`: a subscript, up to and with the `]` that matches.
    pub(super) fn subscript(&mut self) -> Parsed<()> {
        let start = self.pos;
        self.enter()?;
        self.pos += 1;
        let mut open = 0_u32;
        let mut evaluates = false;
        loop {
            match self.peek() {
                0 => return self.refuse_at(start, RefusalKind::Unterminated),
                b'\n' | b'\\' => return self.refuse(RefusalKind::Unsupported),
                b'[' => open += 1,
                b']' if open == 0 => break,
                b']' => open -= 1,
                b'\'' => {
                    self.quoted_key(b"'$`\\}\n")?;
                    continue;
                }
                b'$' if matches!(self.at(1), b'\'' | b'"' | b'\\') => {
                    return self.refuse(RefusalKind::AmbiguousArithmetic);
                }
                b'$' => {
                    self.dollar(&mut WordBuf::default(), Quote::Double)?;
                    evaluates = true;
                    continue;
                }
                b'`' => {
                    self.backticks(&mut WordBuf::default(), Quote::Double)?;
                    evaluates = true;
                    continue;
                }
                b'"' => {
                    self.double_quotes(&mut WordBuf::default())?;
                    evaluates = true;
                    continue;
                }
                b'<' | b'>' if self.at(1) == b'(' => {
                    return self.refuse(RefusalKind::AmbiguousArithmetic);
                }
                b'}' => return self.refuse(RefusalKind::AmbiguousBraces),
                byte => evaluates |= is_name_start(byte),
            }
            self.pos += 1;
        }
        self.pos += 1;
        self.leave();
        if evaluates {
            self.find(Code::Arithmetic, start);
        }
        Ok(())
    }

    /// A single-quoted run without any of the bytes in `refused`, which bash reads in two ways.
    pub(super) fn quoted_key(&mut self, refused: &[u8]) -> Parsed<()> {
        let start = self.pos;
        self.pos += 1;
        while self.peek() != b'\'' {
            match self.peek() {
                0 => return self.refuse_at(start, RefusalKind::Unterminated),
                byte if refused.contains(&byte) => {
                    return self.refuse(RefusalKind::AmbiguousBraces);
                }
                _ => self.pos += 1,
            }
        }
        self.pos += 1;
        Ok(())
    }
}
