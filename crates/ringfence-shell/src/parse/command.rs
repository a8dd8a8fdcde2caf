//! Simple commands and their assignments.

use super::compound::ends_like_pattern;
use super::word::{Place, WordBuf};
use super::{Parsed, Parser, ends_word, is_name_part, is_name_start};
use crate::{Assignment, Code, Command, HoleKind, RefusalKind, Word, Yields};

/// Builtins whose arguments are read as assignments.
const DECLARATIONS: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

impl Parser<'_, '_> {
    /// Words, assignments and redirections up to a separator; or `name() compound`.
    pub(super) fn simple(&mut self, piped: bool) -> Parsed<()> {
        let start = self.pos;
        let index = self.out.reserve(self.block);
        let mut command = Command {
            block: self.block,
            piped,
            ..Command::default()
        };
        let mut end = start;
        let mut declares = false;
        loop {
            self.blanks()?;
            match self.peek() {
                0 | b'\n' | b';' | b'|' | b')' => break,
                b'&' if self.at(1) != b'>' => break,
                b'(' => {
                    return self.function_definition(start, index, &command);
                }
                _ => {}
            }
            if self.at_redirection() {
                command.redirections.push(self.redirection()?);
            } else if command.words.is_empty() {
                match self.assignment_or_word()? {
                    Item::Assignment(assignment) => command.assignments.push(assignment),
                    Item::Word(word) => {
                        declares = word
                            .literal()
                            .is_some_and(|text| DECLARATIONS.contains(&text));
                        command.words.push(word);
                    }
                }
            } else if declares {
                command.words.push(self.declared()?);
            } else {
                command.words.push(self.word(Place::Argument)?);
            }
            end = self.pos;
        }
        if end == start {
            return self.refuse(RefusalKind::Unexpected);
        }
        command.span = self.span(start, end);
        if !command.assignments.is_empty() {
            let code = if command.words.is_empty() {
                Code::Assignment
            } else {
                Code::AssignmentPrefix
            };
            self.out.find(code, command.span);
        }
        if let Some(slot) = self.out.commands.get_mut(index) {
            *slot = command;
        }
        Ok(())
    }

    /// At `(` behind words: only `name ()` is a command.
    fn function_definition(&mut self, start: usize, index: usize, command: &Command) -> Parsed<()> {
        let mut ahead = 1;
        while matches!(self.at(ahead), b' ' | b'\t') {
            ahead += 1;
        }
        let [name] = command.words.as_slice() else {
            return self.refuse(RefusalKind::Unexpected);
        };
        let alone = command.assignments.is_empty()
            && command.redirections.is_empty()
            && index + 1 == self.out.commands.len();
        let raw = self
            .src
            .get(start..start + name.text.len())
            .unwrap_or_default();
        let plain = name.literal().map(str::as_bytes) == Some(raw);
        if ends_like_pattern(name.text.as_bytes()) {
            return self.refuse(RefusalKind::AmbiguousPattern);
        }
        if !alone || !plain || self.at(ahead) != b')' {
            return self.refuse(RefusalKind::Unexpected);
        }
        self.out.commands.pop();
        self.pos += ahead + 1;
        self.function(start, name.text.clone())
    }

    /// The length of `NAME` here when `=`, `+=` or `[` follows.
    fn assigned_name(&self) -> Option<usize> {
        if !is_name_start(self.peek()) {
            return None;
        }
        let mut length = 1;
        while is_name_part(self.at(length)) {
            length += 1;
        }
        match (self.at(length), self.at(length + 1)) {
            (b'=' | b'[', _) | (b'+', b'=') => Some(length),
            _ => None,
        }
    }

    fn assignment_or_word(&mut self) -> Parsed<Item> {
        let Some(length) = self.assigned_name() else {
            return Ok(Item::Word(self.word(Place::Name)?));
        };
        let begin = self.pos;
        let name = String::from_utf8_lossy(self.src.get(begin..begin + length).unwrap_or_default())
            .into_owned();
        self.pos += length;
        let mut buf = WordBuf::default();
        if self.peek() == b'[' {
            self.subscript()?;
            self.only_bash(begin);
            if !self.take_equals() {
                // `name[x]` is a pattern; what it names is only known when it runs.
                buf.text.extend_from_slice(name.as_bytes());
                buf.hole(HoleKind::Glob, Yields::Many);
                return Ok(Item::Word(self.word_into(buf, begin, Place::Name)?));
            }
        } else {
            self.take_equals();
        }
        let value_start = self.pos;
        let value = if self.peek() == b'(' {
            self.array()?;
            self.only_bash(begin);
            buf.hole(HoleKind::Array, Yields::Many);
            self.word_end = self.pos;
            buf.finish(self, value_start)
        } else {
            self.word_into(buf, value_start, Place::Value)?
        };
        Ok(Item::Assignment(Assignment { name, value }))
    }

    fn take_equals(&mut self) -> bool {
        let length = match (self.peek(), self.at(1)) {
            (b'=', _) => 1,
            (b'+', b'=') => 2,
            _ => return false,
        };
        self.pos += length;
        if length == 2 {
            // Elsewhere `x+=1` is the name of a command.
            self.only_bash(self.pos - length);
        }
        true
    }

    /// An argument of `declare` and its like: a word that may be an assignment.
    fn declared(&mut self) -> Parsed<Word> {
        let begin = self.pos;
        let mut buf = WordBuf::default();
        if let Some(length) = self.assigned_name() {
            buf.text
                .extend_from_slice(self.src.get(begin..begin + length).unwrap_or_default());
            self.pos += length;
            if self.peek() == b'[' {
                self.subscript()?;
                buf.hole(HoleKind::Glob, Yields::One);
            }
            if self.take_equals() {
                buf.text.push(b'=');
                if self.peek() == b'(' {
                    self.array()?;
                    self.only_bash(begin);
                    buf.hole(HoleKind::Array, Yields::One);
                }
                return self.word_into(buf, begin, Place::Value);
            }
        }
        self.word_into(buf, begin, Place::Argument)
    }

    /// `( words )` of an array. New lines are blanks in it, operators are errors.
    fn array(&mut self) -> Parsed<()> {
        let start = self.pos;
        self.enter()?;
        self.pos += 1;
        loop {
            self.blanks()?;
            match self.peek() {
                b'\n' => {
                    self.line_inside()?;
                    self.pos += 1;
                }
                b')' => {
                    self.pos += 1;
                    // `x=(a)b cmd` is one assignment to bash, and cmd runs.
                    if !ends_word(self.peek()) {
                        return self.refuse(RefusalKind::Unexpected);
                    }
                    break;
                }
                0 => return self.refuse_at(start, RefusalKind::Unterminated),
                b';' | b'&' | b'|' | b'(' => return self.refuse(RefusalKind::Unexpected),
                b'<' | b'>' if self.at(1) != b'(' => return self.refuse(RefusalKind::Unexpected),
                b'[' => {
                    let begin = self.pos;
                    self.subscript()?;
                    let mut buf = WordBuf::default();
                    buf.hole(HoleKind::Glob, Yields::Many);
                    self.take_equals();
                    self.word_into(buf, begin, Place::Element)?;
                }
                _ => {
                    self.word(Place::Element)?;
                }
            }
        }
        self.leave();
        Ok(())
    }
}

enum Item {
    Assignment(Assignment),
    Word(Word),
}
