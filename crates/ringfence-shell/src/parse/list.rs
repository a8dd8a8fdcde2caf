//! Lists, and-or lists and pipelines.

use super::{Parsed, Parser, ends_word};
use crate::{BlockKind, Code, RefusalKind};

/// What may end a list.
#[derive(Clone, Copy)]
pub(super) struct Stops(u16);

impl Stops {
    pub(super) const END: Self = Self(1);
    pub(super) const PAREN: Self = Self(1 << 1);
    pub(super) const BRACE: Self = Self(1 << 2);
    pub(super) const THEN: Self = Self(1 << 3);
    /// `elif`, `else` or `fi`.
    pub(super) const BRANCH: Self = Self(1 << 4);
    pub(super) const FI: Self = Self(1 << 5);
    pub(super) const DO: Self = Self(1 << 6);
    pub(super) const DONE: Self = Self(1 << 7);
    /// `;;`, `;&`, `;;&` or `esac`.
    pub(super) const CLAUSE: Self = Self(1 << 8);

    fn has(self, stop: Self) -> bool {
        self.0 & stop.0 != 0
    }
}

/// What ended a list; consumed, except the end itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stop {
    Brace,
    ClauseEnd,
    Do,
    Done,
    Elif,
    Else,
    End,
    Esac,
    Fi,
    Paren,
    Then,
}

/// Whether a list may be empty.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Need {
    Command,
    Nothing,
}

/// The reserved words, in command position.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reserved {
    Bang,
    Case,
    Coproc,
    Do,
    Done,
    Elif,
    Else,
    Esac,
    Fi,
    For,
    Function,
    If,
    In,
    LeftBrace,
    RightBrace,
    Select,
    Test,
    Then,
    Time,
    Until,
    While,
}

const RESERVED: &[(&[u8], Reserved)] = &[
    (b"!", Reserved::Bang),
    (b"[[", Reserved::Test),
    (b"case", Reserved::Case),
    (b"coproc", Reserved::Coproc),
    (b"do", Reserved::Do),
    (b"done", Reserved::Done),
    (b"elif", Reserved::Elif),
    (b"else", Reserved::Else),
    (b"esac", Reserved::Esac),
    (b"fi", Reserved::Fi),
    (b"for", Reserved::For),
    (b"function", Reserved::Function),
    (b"if", Reserved::If),
    (b"in", Reserved::In),
    (b"select", Reserved::Select),
    (b"then", Reserved::Then),
    (b"time", Reserved::Time),
    (b"until", Reserved::Until),
    (b"while", Reserved::While),
    (b"{", Reserved::LeftBrace),
    (b"}", Reserved::RightBrace),
];

impl Parser<'_, '_> {
    /// The reserved word here, with its length. Refuses one that a line continuation may complete.
    pub(super) fn reserved(&self) -> Parsed<Option<(Reserved, usize)>> {
        if !matches!(self.peek(), b'a'..=b'z' | b'!' | b'[' | b'{' | b'}') {
            return Ok(None);
        }
        let mut length = 1;
        while length < 9 && matches!(self.at(length), b'a'..=b'z' | b'[') {
            length += 1;
        }
        let after = self.at(length);
        if after == b'\\' && self.at(length + 1) == b'\n' {
            // `the\<newline>n` is `then` to bash; a plain word in front of a blank is sorted out by the
            // caller, but only if no reserved word can come of it.
            let joined = self.at(length + 2);
            if !ends_word(joined) {
                return self.refuse(RefusalKind::AmbiguousContinuation);
            }
        } else if !ends_word(after) {
            return Ok(None);
        }
        let word = self
            .src
            .get(self.pos..self.pos + length)
            .unwrap_or_default();
        let found = RESERVED
            .iter()
            .find(|(text, _)| *text == word)
            .map(|(_, reserved)| (*reserved, length));
        if found.is_some() && after == b'\\' {
            return self.refuse(RefusalKind::AmbiguousContinuation);
        }
        Ok(found)
    }

    /// Consumes the reserved word `wanted`, or says no.
    pub(super) fn take(&mut self, wanted: Reserved) -> Parsed<bool> {
        match self.reserved()? {
            Some((found, length)) if found == wanted => {
                self.pos += length;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(super) fn demand(&mut self, wanted: Reserved) -> Parsed<()> {
        if self.take(wanted)? {
            Ok(())
        } else {
            self.refuse(RefusalKind::Unexpected)
        }
    }

    /// Commands up to one of `stops`.
    pub(super) fn list(&mut self, stops: Stops, need: Need) -> Parsed<Stop> {
        let mut any = false;
        self.lines()?;
        loop {
            if let Some(stop) = self.stop(stops)? {
                if need == Need::Command && !any {
                    return self.refuse(RefusalKind::Unexpected);
                }
                return Ok(stop);
            }
            let start = self.pos;
            if any {
                let span = self.span(start, start);
                self.out.find(Code::Operator, span);
            }
            self.and_or()?;
            any = true;
            self.blanks()?;
            match self.peek() {
                b';' if !matches!(self.at(1), b';' | b'&') => self.pos += 1,
                b'&' => {
                    self.pos += 1;
                    self.find(Code::Background, start);
                }
                b'\n' => self.line()?,
                // `;;`, `)`, a reserved word after a compound command, or an error.
                _ => match self.stop(stops)? {
                    Some(stop) => return Ok(stop),
                    None => return self.refuse(RefusalKind::Unexpected),
                },
            }
            self.lines()?;
        }
    }

    fn stop(&mut self, stops: Stops) -> Parsed<Option<Stop>> {
        match self.peek() {
            0 if self.pos >= self.end => {
                if stops.has(Stops::END) {
                    return Ok(Some(Stop::End));
                }
                return self.refuse(RefusalKind::Unterminated);
            }
            b')' if stops.has(Stops::PAREN) => {
                self.pos += 1;
                return Ok(Some(Stop::Paren));
            }
            b';' if stops.has(Stops::CLAUSE) => {
                let length = match (self.at(1), self.at(2)) {
                    (b';', b'&') => 3,
                    (b';' | b'&', _) => 2,
                    _ => return Ok(None),
                };
                self.pos += length;
                return Ok(Some(Stop::ClauseEnd));
            }
            _ => {}
        }
        let Some((reserved, length)) = self.reserved()? else {
            return Ok(None);
        };
        let (stop, within) = match reserved {
            Reserved::RightBrace => (Stop::Brace, Stops::BRACE),
            Reserved::Then => (Stop::Then, Stops::THEN),
            Reserved::Elif => (Stop::Elif, Stops::BRANCH),
            Reserved::Else => (Stop::Else, Stops::BRANCH),
            Reserved::Fi if stops.has(Stops::FI) => (Stop::Fi, Stops::FI),
            Reserved::Fi => (Stop::Fi, Stops::BRANCH),
            Reserved::Do => (Stop::Do, Stops::DO),
            Reserved::Done => (Stop::Done, Stops::DONE),
            Reserved::Esac => (Stop::Esac, Stops::CLAUSE),
            Reserved::Bang
            | Reserved::Case
            | Reserved::Coproc
            | Reserved::For
            | Reserved::Function
            | Reserved::If
            | Reserved::In
            | Reserved::LeftBrace
            | Reserved::Select
            | Reserved::Test
            | Reserved::Time
            | Reserved::Until
            | Reserved::While => return Ok(None),
        };
        if !stops.has(within) {
            return self.refuse(RefusalKind::Unexpected);
        }
        self.pos += length;
        Ok(Some(stop))
    }

    fn and_or(&mut self) -> Parsed<()> {
        loop {
            self.pipeline()?;
            self.blanks()?;
            if !self.looking_at(b"&&") && !self.looking_at(b"||") {
                return Ok(());
            }
            let start = self.pos;
            self.pos += 2;
            self.find(Code::Operator, start);
            self.lines()?;
        }
    }

    fn pipeline(&mut self) -> Parsed<()> {
        let mut prefixed = false;
        loop {
            self.blanks()?;
            if self.take(Reserved::Bang)? {
                // With extended patterns on, `!(x)` is a pattern; with them off, a negated subshell.
                if self.peek() == b'(' {
                    return self.refuse(RefusalKind::AmbiguousPattern);
                }
                prefixed = true;
            } else if self.take(Reserved::Time)? {
                self.time_options()?;
                prefixed = true;
            } else {
                break;
            }
        }
        // `time` and `!` may stand alone.
        if prefixed && matches!(self.peek(), 0 | b'\n' | b';' | b')') {
            return Ok(());
        }
        let mut piped = false;
        loop {
            let start = self.pos;
            self.command(piped)?;
            self.blanks()?;
            if self.peek() != b'|' || self.at(1) == b'|' {
                return Ok(());
            }
            self.pos += if self.at(1) == b'&' { 2 } else { 1 };
            self.find(Code::Pipeline, start);
            piped = true;
            self.lines()?;
            // Here `time` may be the keyword or the program; both run what follows.
            if self.take(Reserved::Time)? {
                self.time_options()?;
                self.blanks()?;
            }
        }
    }

    /// `-p` and `--` after `time`. Other options would mean the program of that name.
    fn time_options(&mut self) -> Parsed<()> {
        loop {
            self.blanks()?;
            if self.peek() != b'-' {
                return Ok(());
            }
            let length = if matches!(self.at(1), b'p' | b'-') {
                2
            } else {
                1
            };
            if length == 1 || !ends_word(self.at(length)) {
                return self.refuse(RefusalKind::AmbiguousTime);
            }
            self.pos += length;
        }
    }

    /// One command of a pipeline, with what follows a compound one.
    fn command(&mut self, piped: bool) -> Parsed<()> {
        let start = self.pos;
        if self.peek() == b'(' {
            return if self.at(1) == b'(' {
                self.arithmetic_command(start, piped)
            } else {
                self.subshell(start, piped)
            };
        }
        let Some((reserved, length)) = self.reserved()? else {
            return self.simple(piped);
        };
        match reserved {
            Reserved::LeftBrace => self.group(start, piped),
            Reserved::Test => self.test(start, piped),
            Reserved::Case => self.case(start, piped),
            Reserved::For => self.for_loop(start, length, BlockKind::For, piped),
            Reserved::Select => self.for_loop(start, length, BlockKind::Select, piped),
            Reserved::If => self.conditional(start, piped),
            Reserved::While => self.while_loop(start, length, BlockKind::While, piped),
            Reserved::Until => self.while_loop(start, length, BlockKind::Until, piped),
            Reserved::Function => self.function_keyword(start),
            Reserved::Coproc => self.coprocess(start),
            Reserved::Bang
            | Reserved::Do
            | Reserved::Done
            | Reserved::Elif
            | Reserved::Else
            | Reserved::Esac
            | Reserved::Fi
            | Reserved::In
            | Reserved::RightBrace
            | Reserved::Then
            | Reserved::Time => self.refuse(RefusalKind::Unexpected),
        }
    }

    /// Whether a compound command begins here.
    pub(super) fn at_compound(&self) -> Parsed<bool> {
        if self.peek() == b'(' {
            return Ok(true);
        }
        Ok(matches!(
            self.reserved()?,
            Some((
                Reserved::LeftBrace
                    | Reserved::Test
                    | Reserved::Case
                    | Reserved::For
                    | Reserved::Select
                    | Reserved::If
                    | Reserved::While
                    | Reserved::Until,
                _
            ))
        ))
    }

    /// A compound command, as the body of a function or coprocess.
    pub(super) fn compound(&mut self) -> Parsed<()> {
        if self.at_compound()? {
            self.command(false)
        } else {
            self.refuse(RefusalKind::Unexpected)
        }
    }
}
