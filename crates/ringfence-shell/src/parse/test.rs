//! `[[ ]]`.

use super::word::Place;
use super::{Parsed, Parser, ends_word};
use crate::{Code, RefusalKind, Word};

const BINARY: &[&str] = &[
    "=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
];

impl Parser<'_, '_> {
    /// Behind `[[`, up to and with `]]`. Parentheses are counted, not descended into.
    pub(super) fn test_expression(&mut self) -> Parsed<()> {
        let mut open = 0_u32;
        loop {
            self.test_lines()?;
            if self.peek() == b'(' {
                open += 1;
                self.pos += 1;
                continue;
            }
            if self.peek() == b'!' && ends_word(self.at(1)) {
                self.pos += 1;
                continue;
            }
            self.test_primary()?;
            loop {
                self.test_lines()?;
                if self.peek() == b')' && open > 0 {
                    open -= 1;
                    self.pos += 1;
                } else {
                    break;
                }
            }
            if self.looking_at(b"&&") || self.looking_at(b"||") {
                self.pos += 2;
            } else if self.at_test_end() && open == 0 {
                self.pos += 2;
                return Ok(());
            } else {
                return self.refuse(RefusalKind::Unexpected);
            }
        }
    }

    fn test_lines(&mut self) -> Parsed<()> {
        loop {
            self.blanks()?;
            if self.peek() != b'\n' {
                return Ok(());
            }
            self.line_inside()?;
            self.pos += 1;
        }
    }

    fn at_test_end(&self) -> bool {
        self.looking_at(b"]]")
            && (ends_word(self.at(2)) || (self.at(2) == b'\\' && self.at(3) == b'\n'))
    }

    /// `-f word`, `word`, or `word operator word`.
    fn test_primary(&mut self) -> Parsed<()> {
        let start = self.pos;
        let first = self.test_word(Place::Argument)?;
        if is_unary(self.raw(start)) {
            self.blanks()?;
            let operand = self.test_word(Place::Argument)?;
            if matches!(first.text.as_str(), "-v" | "-R") && !is_plain_name(&operand) {
                self.find(Code::Arithmetic, start);
            }
            return Ok(());
        }
        self.blanks()?;
        match self.peek() {
            b'<' | b'>' if self.at(1) != b'(' => {
                self.pos += 1;
                self.blanks()?;
                self.test_word(Place::Argument)?;
            }
            0 => return self.refuse_at(start, RefusalKind::Unterminated),
            b'\n' | b')' | b'&' | b'|' => {}
            _ if self.at_test_end() => {}
            _ => {
                let operator_start = self.pos;
                self.test_word(Place::Argument)?;
                let operator = self.raw(operator_start).to_vec();
                if !BINARY.iter().any(|known| known.as_bytes() == operator) {
                    return self.refuse_at(operator_start, RefusalKind::Unexpected);
                }
                self.blanks()?;
                let place = if operator == b"=~" {
                    Place::Regex
                } else {
                    Place::Argument
                };
                let second = self.test_word(place)?;
                let numeric = matches!(
                    operator.as_slice(),
                    [b'-', b'e' | b'n' | b'l' | b'g', b'q' | b'e' | b't']
                );
                if numeric && !(is_number(&first) && is_number(&second)) {
                    self.find(Code::Arithmetic, start);
                }
            }
        }
        Ok(())
    }

    fn raw(&self, start: usize) -> &[u8] {
        self.src.get(start..self.pos).unwrap_or_default()
    }

    fn test_word(&mut self, place: Place) -> Parsed<Word> {
        let start = self.pos;
        if self.at_test_end() {
            return self.refuse(RefusalKind::Unexpected);
        }
        let word = self.word(place)?;
        // `2<3` is a descriptor in front of a redirection to the reader of tokens.
        let digits = self.raw(start).iter().all(u8::is_ascii_digit);
        if digits && matches!(self.peek(), b'<' | b'>') {
            return self.refuse(RefusalKind::Unexpected);
        }
        Ok(word)
    }
}

fn is_unary(raw: &[u8]) -> bool {
    matches!(raw, [b'-', letter] if b"abcdefghknoprstuvwxzGLNORS".contains(letter))
}

fn is_number(word: &Word) -> bool {
    word.literal()
        .is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_plain_name(word: &Word) -> bool {
    word.literal()
        .is_some_and(|text| text.bytes().all(super::is_name_part))
}
