//! Here-documents.

use super::word::{Quote, WordBuf};
use super::{Inner, Parsed, Parser, ends_word};
use crate::{BlockKind, RefusalKind, Word};

/// A here-document whose body has not been reached.
#[derive(Debug)]
pub(super) struct Pending {
    delimiter: Vec<u8>,
    expands: bool,
    strips_tabs: bool,
    operator: usize,
}

impl Parser<'_, '_> {
    /// Behind `<<` or `<<-`: the delimiter.
    pub(super) fn heredoc_start(&mut self, strips_tabs: bool) -> Parsed<Word> {
        let operator = self.pos - 2;
        while matches!(self.peek(), b' ' | b'\t') {
            self.pos += 1;
        }
        let start = self.pos;
        let mut delimiter = Vec::new();
        let mut expands = true;
        loop {
            let byte = self.peek();
            match byte {
                b'\'' | b'"' => {
                    expands = false;
                    self.pos += 1;
                    while self.peek() != byte {
                        match self.peek() {
                            0 => return self.refuse_at(start, RefusalKind::Unterminated),
                            b'\n' | b'\\' | b'$' | b'`' => {
                                return self.refuse(RefusalKind::AmbiguousHeredoc);
                            }
                            inner => delimiter.push(inner),
                        }
                        self.pos += 1;
                    }
                    self.pos += 1;
                }
                b'\\' => {
                    expands = false;
                    if matches!(self.at(1), 0 | b'\n') {
                        return self.refuse(RefusalKind::AmbiguousHeredoc);
                    }
                    delimiter.push(self.at(1));
                    self.pos += 2;
                }
                b'$' | b'`' | b'(' => return self.refuse(RefusalKind::AmbiguousHeredoc),
                b'<' | b'>' if self.at(1) == b'(' => {
                    return self.refuse(RefusalKind::AmbiguousHeredoc);
                }
                _ if ends_word(byte) => break,
                _ => {
                    delimiter.push(byte);
                    self.pos += 1;
                }
            }
        }
        if self.pos == start {
            return self.refuse(RefusalKind::Unexpected);
        }
        self.word_end = self.pos;
        let mut word = WordBuf::default();
        word.text.clone_from(&delimiter);
        self.pending.push(Pending {
            delimiter,
            expands,
            strips_tabs,
            operator,
        });
        Ok(word.finish(self, start))
    }

    /// At the start of a line: the bodies of all here-documents that wait.
    pub(super) fn heredoc_bodies(&mut self) -> Parsed<()> {
        for pending in std::mem::take(&mut self.pending) {
            self.heredoc_body(&pending)?;
        }
        Ok(())
    }

    fn heredoc_body(&mut self, pending: &Pending) -> Parsed<()> {
        let start = self.pos;
        let mut joined = false;
        let mut tabs = false;
        let end = loop {
            if self.pos >= self.end {
                // bash only warns, and takes the rest of the text as the body.
                return self.refuse_at(pending.operator, RefusalKind::Unterminated);
            }
            let line_start = self.pos;
            let continued = self.heredoc_line(pending.expands);
            joined |= continued;
            let line = self.src.get(line_start..self.pos).unwrap_or_default();
            tabs |= pending.strips_tabs && line.first() == Some(&b'\t');
            if self.ends_heredoc(line, continued, pending)? {
                break line_start;
            }
            if self.pos < self.end {
                self.pos += 1;
            }
        };
        // The cursor stands behind the delimiter, in front of its new line or at the end.
        let after = if self.pos < self.end {
            self.pos + 1
        } else {
            self.pos
        };
        let body = self.src.get(start..end).unwrap_or_default();
        if !pending.expands && super::word::holds_code(body) {
            self.quoted_code(start);
        }
        if pending.expands && body.iter().any(|byte| matches!(byte, b'$' | b'`')) {
            self.pos = after;
            let block = self.open(BlockKind::Heredoc, start)?;
            if joined || tabs {
                let text = flatten(body, pending);
                let span = self.span(start, after);
                self.isolated(|parser| parser.copied(&text, span, Inner::HeredocText))?;
            } else {
                self.isolated(|parser| parser.window(start, end, Inner::HeredocText))?;
            }
            self.close(block, start);
        }
        self.pos = after;
        Ok(())
    }

    /// Moves to the end of a line, or of the lines that a trailing backslash joins.
    fn heredoc_line(&mut self, joins: bool) -> bool {
        let mut joined = false;
        loop {
            match self.peek() {
                0 | b'\n' => return joined,
                b'\\' if joins && self.at(1) == b'\n' => {
                    joined = true;
                    self.pos += 2;
                }
                b'\\' if joins && self.at(1) != 0 => self.pos += 2,
                _ => self.pos += 1,
            }
        }
    }

    fn ends_heredoc(&self, line: &[u8], joined: bool, pending: &Pending) -> Parsed<bool> {
        let line = if joined {
            flatten(line, pending)
        } else {
            strip(line, pending).to_vec()
        };
        if line == pending.delimiter {
            // `E\<newline>OF` spells the delimiter after joining.
            return if joined {
                self.refuse(RefusalKind::AmbiguousHeredoc)
            } else {
                Ok(true)
            };
        }
        // Inside `$( )`, bash also ends the body at a line like `EOF)`.
        if self.in_substitution && line.starts_with(&pending.delimiter) && line.contains(&b')') {
            return self.refuse(RefusalKind::AmbiguousHeredoc);
        }
        Ok(false)
    }

    /// A body: only `$`, back-ticks and backslashes mean anything.
    pub(super) fn heredoc_text(&mut self) -> Parsed<()> {
        let mut ignored = WordBuf::default();
        loop {
            match self.peek() {
                0 => return Ok(()),
                b'\\' => {
                    if matches!(self.at(1), b'$' | b'`') {
                        self.quoted_code(self.pos);
                    }
                    self.pos += if self.at(1) == 0 { 1 } else { 2 };
                }
                b'$' => self.dollar(&mut ignored, Quote::Heredoc)?,
                b'`' => self.backticks(&mut ignored, Quote::Heredoc)?,
                _ => self.pos += 1,
            }
            ignored.text.clear();
            ignored.holes.clear();
        }
    }
}

fn strip<'a>(line: &'a [u8], pending: &Pending) -> &'a [u8] {
    let tabs = if pending.strips_tabs {
        line.iter().take_while(|&&byte| byte == b'\t').count()
    } else {
        0
    };
    &line[tabs..]
}

/// The body as bash sees it: lines joined, then leading tabs removed.
fn flatten(body: &[u8], pending: &Pending) -> Vec<u8> {
    let mut text = Vec::with_capacity(body.len());
    let mut at_start = true;
    let mut index = 0;
    while let Some(&byte) = body.get(index) {
        let next = body.get(index + 1).copied();
        if pending.strips_tabs && at_start && byte == b'\t' {
            index += 1;
            continue;
        }
        at_start = false;
        match (byte, next) {
            (b'\\', Some(b'\n')) if pending.expands => index += 2,
            (b'\\', Some(next)) if pending.expands => {
                text.extend_from_slice(&[byte, next]);
                index += 2;
            }
            _ => {
                text.push(byte);
                at_start = byte == b'\n';
                index += 1;
            }
        }
    }
    text
}
