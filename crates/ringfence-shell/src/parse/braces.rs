//! `${ }`.
//!
//! bash looks for the end of the braces twice, once when it reads and once when it expands, with
//! different ideas of quoting. Wherever the two could disagree, this refuses.

use super::dollar::yields;
use super::word::{Quote, WordBuf};
use super::{Parsed, Parser, is_name_part, is_name_start};
use crate::{Code, HoleKind, RefusalKind, Yields};

impl Parser<'_, '_> {
    /// At `${`.
    pub(super) fn braces(&mut self, buf: &mut WordBuf, quote: Quote) -> Parsed<()> {
        let start = self.pos;
        self.enter()?;
        self.pos += 2;
        let many = self.braces_parameter()?;
        match self.peek() {
            b'}' => {}
            b'@' => self.transformation(start)?,
            b':' => match self.at(1) {
                b'-' | b'=' | b'?' | b'+' => {
                    self.pos += 2;
                    self.braces_operand(start, quote)?;
                }
                _ => {
                    self.pos += 1;
                    self.arithmetic_offset(start)?;
                }
            },
            b'-' | b'=' | b'?' | b'+' => {
                self.pos += 1;
                self.braces_operand(start, quote)?;
            }
            b'#' | b'%' | b'^' | b',' | b'~' | b'/' => {
                self.pos += 1;
                self.braces_operand(start, quote)?;
                self.only_bash(start);
            }
            0 => return self.refuse_at(start, RefusalKind::Unterminated),
            _ => return self.refuse(RefusalKind::AmbiguousBraces),
        }
        self.pos += 1;
        self.leave();
        let raw = self.src.get(start..self.pos).unwrap_or_default();
        let yields = if many || raw.contains(&b'@') {
            Yields::Many
        } else {
            yields(quote)
        };
        buf.hole(HoleKind::Parameter, yields);
        self.find(Code::Expansion, start);
        Ok(())
    }

    /// The parameter, with `!` or `#` in front and a subscript behind; says whether it is a list.
    fn braces_parameter(&mut self) -> Parsed<bool> {
        let start = self.pos;
        let first = self.peek();
        // `${ cmd;}` and `${|cmd;}` run commands in newer versions.
        if matches!(first, b' ' | b'\t' | b'\n' | b'|' | b'(') {
            return self.refuse(RefusalKind::Unsupported);
        }
        let mut lists = false;
        if first == b'!' && self.at(1) != b'}' {
            self.pos += 1;
            if !is_name_part(self.peek()) && !matches!(self.peek(), b'#' | b'@' | b'*') {
                return self.refuse(RefusalKind::AmbiguousBraces);
            }
            lists = true;
            self.simple_parameter()?;
            // An indirect value may name `a[$(cmd)]`.
            self.find(Code::Arithmetic, start);
        } else if first == b'#' && (is_name_part(self.at(1)) || matches!(self.at(1), b'@' | b'*')) {
            self.pos += 1;
            self.simple_parameter()?;
            if !matches!(self.peek(), b'}' | b'[') {
                return self.refuse(RefusalKind::AmbiguousBraces);
            }
        } else if first == b'#' && matches!(self.at(1), b'?' | b'-' | b'$' | b'!' | b'#') {
            if self.at(2) != b'}' {
                return self.refuse(RefusalKind::AmbiguousBraces);
            }
            self.pos += 2;
        } else {
            self.simple_parameter()?;
        }
        if self.peek() == b'[' {
            self.subscript()?;
            self.only_bash(start);
        }
        if lists {
            self.only_bash(start);
            if matches!(self.peek(), b'@' | b'*') && self.at(1) == b'}' {
                self.pos += 1;
            }
        }
        Ok(lists)
    }

    fn simple_parameter(&mut self) -> Parsed<()> {
        let first = self.peek();
        if is_name_start(first) {
            while is_name_part(self.peek()) {
                self.pos += 1;
            }
        } else if first.is_ascii_digit() {
            while self.peek().is_ascii_digit() {
                self.pos += 1;
            }
        } else if matches!(first, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') {
            self.pos += 1;
        } else {
            return self.refuse(RefusalKind::AmbiguousBraces);
        }
        Ok(())
    }

    /// `@Q` and its like. `@P` expands the value as a prompt, which runs substitutions in it.
    fn transformation(&mut self, start: usize) -> Parsed<()> {
        if !self.at(1).is_ascii_alphabetic() || self.at(2) != b'}' {
            return self.refuse(RefusalKind::AmbiguousBraces);
        }
        if self.at(1) == b'P' {
            self.find(Code::ComputedCode, start);
        }
        self.pos += 2;
        self.only_bash(start);
        Ok(())
    }

    /// The word behind an operator, up to `}`.
    fn braces_operand(&mut self, start: usize, quote: Quote) -> Parsed<()> {
        let mut ignored = WordBuf::default();
        loop {
            match self.peek() {
                0 => return self.refuse_at(start, RefusalKind::Unterminated),
                b'}' => return Ok(()),
                b'\\' => {
                    if self.at(1) == 0 {
                        return self.refuse(RefusalKind::Unterminated);
                    }
                    if self.at(1) == b'\n' {
                        self.line_inside()?;
                    }
                    if matches!(self.at(1), b'$' | b'`') {
                        self.quoted_code(self.pos);
                    }
                    self.pos += 2;
                }
                b'$' => match self.at(1) {
                    // The escape is removed before the second reading: `"${x:-"$\(cmd)"}"` runs cmd, and so
                    // does `"$(: ${x:-$'$(cmd)'})"`.
                    b'\\' | b'"' | b'\'' => return self.refuse(RefusalKind::AmbiguousBraces),
                    _ => self.dollar(&mut ignored, quote)?,
                },
                b'`' => self.backticks(&mut ignored, quote)?,
                b'"' => match quote {
                    Quote::None => self.double_quotes(&mut ignored)?,
                    Quote::Double => self.quotes_in_quotes()?,
                    Quote::Heredoc => return self.refuse(RefusalKind::AmbiguousBraces),
                },
                b'\'' => match quote {
                    Quote::None => self.single_quotes(&mut ignored)?,
                    // The quotes pair up for one reading and mean themselves for the other.
                    Quote::Double => self.quoted_key(b"$`\\}\"\n")?,
                    Quote::Heredoc => return self.refuse(RefusalKind::AmbiguousBraces),
                },
                b'<' | b'>' if self.at(1) == b'(' => {
                    return self.refuse(RefusalKind::AmbiguousBraces);
                }
                b'\n' => {
                    self.line_inside()?;
                    self.pos += 1;
                }
                _ => self.pos += 1,
            }
        }
    }

    /// `"text"` inside `"${x-..}"`: expansions in it run either way; escapes and quotes do not agree.
    fn quotes_in_quotes(&mut self) -> Parsed<()> {
        let start = self.pos;
        let mut ignored = WordBuf::default();
        self.pos += 1;
        loop {
            match self.peek() {
                0 => return self.refuse_at(start, RefusalKind::Unterminated),
                b'"' => break,
                b'\\' | b'\'' | b'}' => return self.refuse(RefusalKind::AmbiguousBraces),
                b'$' if matches!(self.at(1), b'\\' | b'\'' | b'"') => {
                    return self.refuse(RefusalKind::AmbiguousBraces);
                }
                b'$' => self.dollar(&mut ignored, Quote::Double)?,
                b'`' => self.backticks(&mut ignored, Quote::Double)?,
                b'<' | b'>' if self.at(1) == b'(' => {
                    return self.refuse(RefusalKind::AmbiguousBraces);
                }
                b'\n' => {
                    self.line_inside()?;
                    self.pos += 1;
                }
                _ => self.pos += 1,
            }
        }
        self.pos += 1;
        Ok(())
    }
}
