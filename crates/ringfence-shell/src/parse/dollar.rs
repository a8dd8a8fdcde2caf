//! Expansions that begin with `$`, back-ticks, and process substitution.

use super::list::{Need, Stops};
use super::word::{Quote, WordBuf};
use super::{Inner, Parsed, Parser, is_name_part, is_name_start};
use crate::{BlockKind, Code, HoleKind, RefusalKind, Yields};

impl Parser<'_, '_> {
    /// At `$`.
    pub(super) fn dollar(&mut self, buf: &mut WordBuf, quote: Quote) -> Parsed<()> {
        let start = self.pos;
        let next = self.at(1);
        match next {
            b'(' if self.at(2) == b'(' => {
                let block = self.open(BlockKind::Arithmetic, start)?;
                self.pos += 3;
                self.arithmetic_parens(start)?;
                self.close(block, start);
                self.find(Code::Expansion, start);
                buf.hole(HoleKind::Arithmetic, yields(quote));
            }
            b'(' => {
                let block = self.open(BlockKind::CommandSubstitution, start)?;
                self.pos += 2;
                self.substitution()?;
                self.close(block, start);
                self.find(Code::CommandSubstitution, start);
                buf.hole(HoleKind::CommandSubstitution, yields(quote));
            }
            b'{' => self.braces(buf, quote)?,
            b'[' => {
                let block = self.open(BlockKind::Arithmetic, start)?;
                self.pos += 2;
                self.arithmetic_bracket(start)?;
                self.close(block, start);
                self.find(Code::Expansion, start);
                self.only_bash(start);
                buf.hole(HoleKind::Arithmetic, yields(quote));
            }
            b'\'' if quote == Quote::None => {
                self.pos += 1;
                self.ansi_quotes(buf)?;
                self.only_bash(start);
            }
            b'"' if quote == Quote::None => {
                self.pos += 1;
                self.double_quotes(buf)?;
                self.only_bash(start);
            }
            b'\\' if self.at(2) == b'\n' => return self.refuse(RefusalKind::AmbiguousContinuation),
            _ => self.parameter(buf, quote),
        }
        Ok(())
    }

    /// `$name`, `$1`, `$@`; or a dollar that means itself.
    fn parameter(&mut self, buf: &mut WordBuf, quote: Quote) {
        let start = self.pos;
        let next = self.at(1);
        self.pos += 1;
        if is_name_start(next) {
            while is_name_part(self.peek()) {
                self.pos += 1;
            }
        } else if next.is_ascii_digit()
            || matches!(next, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')
        {
            self.pos += 1;
        } else {
            buf.text.push(b'$');
            return;
        }
        let yields = if next == b'@' {
            Yields::Many
        } else {
            yields(quote)
        };
        buf.hole(HoleKind::Parameter, yields);
        self.find(Code::Expansion, start);
    }

    /// The commands of `$( )` or `<( )`, up to and with the parenthesis.
    fn substitution(&mut self) -> Parsed<()> {
        let within = self.in_substitution;
        self.in_substitution = true;
        self.isolated(|parser| parser.list(Stops::PAREN, Need::Nothing))?;
        self.in_substitution = within;
        Ok(())
    }

    /// At `<(` or `>(`.
    pub(super) fn process_substitution(&mut self, buf: &mut WordBuf) -> Parsed<()> {
        let start = self.pos;
        let kind = if self.peek() == b'<' {
            BlockKind::ProcessInput
        } else {
            BlockKind::ProcessOutput
        };
        let block = self.open(kind, start)?;
        self.pos += 2;
        self.substitution()?;
        if let Some(entry) = self.out.block(block) {
            entry.piped = kind == BlockKind::ProcessOutput;
        }
        self.close(block, start);
        self.find(Code::ProcessSubstitution, start);
        self.only_bash(start);
        buf.hole(HoleKind::ProcessSubstitution, Yields::One);
        Ok(())
    }

    /// At a back-tick. The text up to the next one that is not escaped is unescaped, then read.
    pub(super) fn backticks(&mut self, buf: &mut WordBuf, quote: Quote) -> Parsed<()> {
        let start = self.pos;
        let block = self.open(BlockKind::CommandSubstitution, start)?;
        let mut copy: Option<Vec<u8>> = None;
        let mut end = start + 1;
        loop {
            let byte = if end < self.end {
                self.src.get(end).copied().unwrap_or(0)
            } else {
                0
            };
            match byte {
                0 => return self.refuse_at(start, RefusalKind::Unterminated),
                b'`' => break,
                b'\\' => {
                    let next = if end + 1 < self.end {
                        self.src.get(end + 1).copied().unwrap_or(0)
                    } else {
                        0
                    };
                    let escapes = matches!(next, b'$' | b'`' | b'\\')
                        || (next == b'"' && quote == Quote::Double);
                    if escapes && copy.is_none() {
                        copy = Some(self.src.get(start + 1..end).unwrap_or_default().to_vec());
                    }
                    if let Some(copy) = &mut copy {
                        if !escapes {
                            copy.push(b'\\');
                        }
                        copy.push(next);
                    }
                    end += 2;
                    continue;
                }
                b'\n' => self.line_inside()?,
                _ => {}
            }
            if let Some(copy) = &mut copy {
                copy.push(byte);
            }
            end += 1;
        }
        self.isolated(|parser| match copy {
            Some(text) => {
                let span = parser.span(start, end + 1);
                parser.copied(&text, span, Inner::Commands)
            }
            None => parser.window(start + 1, end, Inner::Commands),
        })?;
        self.pos = end + 1;
        self.close(block, start);
        self.find(Code::CommandSubstitution, start);
        buf.hole(HoleKind::CommandSubstitution, yields(quote));
        Ok(())
    }

    /// At the quote of `$'text'`.
    fn ansi_quotes(&mut self, buf: &mut WordBuf) -> Parsed<()> {
        let start = self.pos;
        self.pos += 1;
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                0 => return self.refuse_at(start, RefusalKind::Unterminated),
                b'\'' => break,
                b'\\' => self.ansi_escape(&mut bytes)?,
                byte => {
                    if byte == b'\n' {
                        self.line_inside()?;
                    }
                    bytes.push(byte);
                    self.pos += 1;
                }
            }
        }
        self.pos += 1;
        if super::word::holds_code(&bytes) {
            self.quoted_code(start);
        }
        if std::str::from_utf8(&bytes).is_ok() {
            buf.text.extend_from_slice(&bytes);
        } else {
            buf.hole(HoleKind::Bytes, Yields::One);
        }
        Ok(())
    }

    fn ansi_escape(&mut self, bytes: &mut Vec<u8>) -> Parsed<()> {
        let start = self.pos;
        let letter = self.at(1);
        self.pos += 2;
        let value = match letter {
            0 => return self.refuse_at(start, RefusalKind::Unterminated),
            b'a' => 7,
            b'b' => 8,
            b'e' | b'E' => 0x1b,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'\\' | b'\'' | b'"' | b'?' => letter,
            b'0'..=b'7' => {
                self.pos -= 1;
                u8::try_from(self.digits(8, 3).unwrap_or(0) & 0xff).unwrap_or(0)
            }
            // `\x{..}` and `\cX` differ between versions.
            b'x' if self.peek() == b'{' => return self.refuse_at(start, RefusalKind::Unsupported),
            b'c' => return self.refuse_at(start, RefusalKind::Unsupported),
            b'x' => {
                let Some(value) = self.digits(16, 2) else {
                    bytes.extend_from_slice(b"\\x");
                    return Ok(());
                };
                u8::try_from(value).unwrap_or(0)
            }
            b'u' | b'U' => {
                let Some(value) = self.digits(16, if letter == b'u' { 4 } else { 8 }) else {
                    bytes.extend_from_slice(&[b'\\', letter]);
                    return Ok(());
                };
                let Some(character) = char::from_u32(value).filter(|character| *character != '\0')
                else {
                    return self.refuse_at(start, RefusalKind::Unsupported);
                };
                let mut encoded = [0; 4];
                bytes.extend_from_slice(character.encode_utf8(&mut encoded).as_bytes());
                return Ok(());
            }
            _ => {
                bytes.push(b'\\');
                self.pos -= 1;
                return Ok(());
            }
        };
        // A NUL ends the string for bash, whatever follows; 1 and 0x7f are its own quoting marks.
        if matches!(value, 0 | 1 | 0x7f) {
            return self.refuse_at(start, RefusalKind::ControlCharacter);
        }
        bytes.push(value);
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = char::from(self.peek()).to_digit(radix) else {
                break;
            };
            value = Some(
                value
                    .unwrap_or(0_u32)
                    .wrapping_mul(radix)
                    .wrapping_add(digit),
            );
            self.pos += 1;
        }
        value
    }
}

/// Unquoted expansions are split into words; quoted ones are not.
pub(super) fn yields(quote: Quote) -> Yields {
    match quote {
        Quote::None => Yields::Many,
        Quote::Double | Quote::Heredoc => Yields::One,
    }
}
