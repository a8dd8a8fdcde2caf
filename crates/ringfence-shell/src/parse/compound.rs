//! Compound commands: groups, loops, conditionals, functions, coprocesses.

use super::list::{Need, Reserved, Stop, Stops};
use super::word::Place;
use super::{Parsed, Parser, ends_word, is_name_part, is_name_start};
use crate::lower::assigned;
use crate::{BlockKind, Code, RefusalKind};

impl Parser<'_, '_> {
    /// Redirections behind a compound command, which count as part of it.
    fn finish(&mut self, block: u32, start: usize, piped: bool) -> Parsed<()> {
        loop {
            let end = self.pos;
            self.blanks()?;
            if !self.at_redirection() {
                // Leave trailing blanks and comments out of the range; they are skipped again.
                self.pos = end;
                break;
            }
            let redirection = self.redirection()?;
            if let Some(entry) = self.out.block(block) {
                entry.redirections.push(redirection);
            }
        }
        if let Some(entry) = self.out.block(block) {
            entry.piped = piped;
        }
        self.close(block, start);
        Ok(())
    }

    pub(super) fn subshell(&mut self, start: usize, piped: bool) -> Parsed<()> {
        let block = self.open(BlockKind::Subshell, start)?;
        self.pos += 1;
        self.list(Stops::PAREN, Need::Command)?;
        self.find(Code::Subshell, start);
        self.finish(block, start, piped)
    }

    pub(super) fn group(&mut self, start: usize, piped: bool) -> Parsed<()> {
        let block = self.open(BlockKind::Group, start)?;
        self.pos += 1;
        self.list(Stops::BRACE, Need::Command)?;
        self.finish(block, start, piped)
    }

    pub(super) fn arithmetic_command(&mut self, start: usize, piped: bool) -> Parsed<()> {
        let block = self.open(BlockKind::Arithmetic, start)?;
        self.pos += 2;
        self.arithmetic_parens(start)?;
        self.only_bash(start);
        self.finish(block, start, piped)
    }

    pub(super) fn test(&mut self, start: usize, piped: bool) -> Parsed<()> {
        let block = self.open(BlockKind::Test, start)?;
        self.pos += 2;
        self.test_expression()?;
        self.only_bash(start);
        self.finish(block, start, piped)
    }

    pub(super) fn conditional(&mut self, start: usize, piped: bool) -> Parsed<()> {
        let block = self.open(BlockKind::If, start)?;
        self.demand(Reserved::If)?;
        loop {
            self.list(Stops::THEN, Need::Command)?;
            match self.list(Stops::BRANCH, Need::Command)? {
                Stop::Elif => {}
                Stop::Else => {
                    self.list(Stops::FI, Need::Command)?;
                    break;
                }
                Stop::Brace
                | Stop::ClauseEnd
                | Stop::Do
                | Stop::Done
                | Stop::End
                | Stop::Esac
                | Stop::Fi
                | Stop::Paren
                | Stop::Then => break,
            }
        }
        self.finish(block, start, piped)
    }

    pub(super) fn while_loop(
        &mut self,
        start: usize,
        keyword: usize,
        kind: BlockKind,
        piped: bool,
    ) -> Parsed<()> {
        let block = self.open(kind, start)?;
        self.pos += keyword;
        self.list(Stops::DO, Need::Command)?;
        self.list(Stops::DONE, Need::Command)?;
        self.finish(block, start, piped)
    }

    pub(super) fn for_loop(
        &mut self,
        start: usize,
        keyword: usize,
        kind: BlockKind,
        piped: bool,
    ) -> Parsed<()> {
        let block = self.open(kind, start)?;
        self.pos += keyword;
        self.blanks()?;
        if kind == BlockKind::For && self.looking_at(b"((") {
            let header = self.pos;
            self.pos += 2;
            self.arithmetic_parens(header)?;
            self.only_bash(start);
            self.blanks()?;
            if self.peek() == b';' {
                self.pos += 1;
            }
            self.lines()?;
        } else {
            self.variable_name()?;
            self.blanks()?;
            if self.peek() == b';' {
                self.pos += 1;
                self.lines()?;
            } else {
                self.lines()?;
                if self.take(Reserved::In)? {
                    self.for_words()?;
                }
            }
        }
        self.loop_body()?;
        if kind == BlockKind::Select {
            self.only_bash(start);
        }
        self.finish(block, start, piped)
    }

    fn variable_name(&mut self) -> Parsed<()> {
        if !is_name_start(self.peek()) {
            return self.refuse(RefusalKind::Unexpected);
        }
        let start = self.pos;
        while is_name_part(self.peek()) {
            self.pos += 1;
        }
        let name = String::from_utf8_lossy(self.src.get(start..self.pos).unwrap_or_default());
        let span = self.since(start);
        assigned(self.out, &name, span);
        let continued = self.peek() == b'\\' && self.at(1) == b'\n';
        if ends_word(self.peek()) || continued {
            Ok(())
        } else {
            self.refuse(RefusalKind::Unexpected)
        }
    }

    fn for_words(&mut self) -> Parsed<()> {
        loop {
            self.blanks()?;
            match self.peek() {
                b';' => {
                    self.pos += 1;
                    return self.lines();
                }
                b'\n' => return self.lines(),
                0 | b'&' | b'|' | b'(' | b')' => return self.refuse(RefusalKind::Unexpected),
                _ => {
                    self.word(Place::Argument)?;
                }
            }
        }
    }

    /// `do list done`, or the old `{ list }`.
    fn loop_body(&mut self) -> Parsed<()> {
        if self.take(Reserved::Do)? {
            self.list(Stops::DONE, Need::Command)?;
        } else {
            self.demand(Reserved::LeftBrace)?;
            self.list(Stops::BRACE, Need::Command)?;
        }
        Ok(())
    }

    pub(super) fn case(&mut self, start: usize, piped: bool) -> Parsed<()> {
        let block = self.open(BlockKind::Case, start)?;
        self.demand(Reserved::Case)?;
        self.blanks()?;
        self.word(Place::Argument)?;
        self.lines()?;
        self.demand(Reserved::In)?;
        loop {
            self.lines()?;
            if self.take(Reserved::Esac)? {
                break;
            }
            if self.peek() == b'(' {
                self.pos += 1;
                self.blanks()?;
            }
            self.case_patterns()?;
            if self.list(Stops::CLAUSE, Need::Nothing)? == Stop::Esac {
                break;
            }
        }
        self.finish(block, start, piped)
    }

    fn case_patterns(&mut self) -> Parsed<()> {
        loop {
            self.blanks()?;
            self.word(Place::Argument)?;
            self.blanks()?;
            match self.peek() {
                b'|' if self.at(1) != b'|' => self.pos += 1,
                b')' => {
                    self.pos += 1;
                    return Ok(());
                }
                _ => return self.refuse(RefusalKind::Unexpected),
            }
        }
    }

    /// `function name`, with or without `()`.
    pub(super) fn function_keyword(&mut self, start: usize) -> Parsed<()> {
        self.demand(Reserved::Function)?;
        self.blanks()?;
        let name_start = self.pos;
        let word = self.word(Place::Argument)?;
        let raw = self.src.get(name_start..self.pos).unwrap_or_default();
        if word.literal().map(str::as_bytes) != Some(raw) || raw.is_empty() {
            return self.refuse_at(name_start, RefusalKind::Unexpected);
        }
        self.blanks()?;
        if self.peek() == b'(' {
            let mut ahead = 1;
            while matches!(self.at(ahead), b' ' | b'\t') {
                ahead += 1;
            }
            if self.at(ahead) == b')' {
                if ends_like_pattern(word.text.as_bytes()) {
                    return self.refuse(RefusalKind::AmbiguousPattern);
                }
                self.pos += ahead + 1;
            }
        }
        self.function(start, word.text)
    }

    /// The body of a function, from behind its name and parentheses.
    pub(super) fn function(&mut self, start: usize, name: String) -> Parsed<()> {
        let block = self.open(BlockKind::Function, start)?;
        if let Some(entry) = self.out.block(block) {
            entry.name = Some(name);
        }
        self.lines()?;
        self.compound()?;
        self.find(Code::FunctionDefinition, start);
        self.close(block, start);
        Ok(())
    }

    /// `coproc [NAME] compound` or `coproc simple`.
    pub(super) fn coprocess(&mut self, start: usize) -> Parsed<()> {
        let block = self.open(BlockKind::Coprocess, start)?;
        self.demand(Reserved::Coproc)?;
        self.blanks()?;
        if self.at_compound()? {
            self.compound()?;
        } else if self.reserved()?.is_some() {
            return self.refuse(RefusalKind::Unexpected);
        } else if let Some(length) = self.coprocess_name()? {
            self.pos += length;
            self.blanks()?;
            self.compound()?;
        } else {
            self.simple(false)?;
        }
        self.find(Code::Coprocess, start);
        self.only_bash(start);
        if let Some(entry) = self.out.block(block) {
            // The shell writes to it through a pipe.
            entry.piped = true;
        }
        self.close(block, start);
        Ok(())
    }

    /// The length of a name that a compound command follows.
    fn coprocess_name(&self) -> Parsed<Option<usize>> {
        let mut length = 0;
        while is_name_part(self.at(length)) {
            length += 1;
        }
        let mut ahead = length;
        while matches!(self.at(ahead), b' ' | b'\t') {
            ahead += 1;
        }
        if length == 0 || ahead == length || !is_name_start(self.peek()) {
            return Ok(None);
        }
        match self.at(ahead) {
            b'(' => Ok(Some(length)),
            b'{' if ends_word(self.at(ahead + 1)) => Ok(Some(length)),
            // `coproc NAME while ...`: whether the keyword counts depends on the version.
            b'a'..=b'z' | b'[' | b'!' | b'}' if self.word_may_be_reserved(ahead) => {
                self.refuse(RefusalKind::Unsupported)
            }
            _ => Ok(None),
        }
    }

    fn word_may_be_reserved(&self, ahead: usize) -> bool {
        let mut length = 0;
        while !ends_word(self.at(ahead + length)) && length < 9 {
            length += 1;
        }
        let word = self
            .src
            .get(self.pos + ahead..self.pos + ahead + length)
            .unwrap_or_default();
        matches!(
            word,
            b"!" | b"[["
                | b"case"
                | b"coproc"
                | b"for"
                | b"function"
                | b"if"
                | b"select"
                | b"time"
                | b"until"
                | b"while"
        )
    }
}

/// Whether `name(` could also begin an extended pattern.
pub(super) fn ends_like_pattern(name: &[u8]) -> bool {
    matches!(name.last(), None | Some(b'?' | b'*' | b'+' | b'@' | b'!'))
}
