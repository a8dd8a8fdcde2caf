//! What a program has done to a terminal and did not undo.
//!
//! A program that is killed leaves the other screen, a hidden cursor, a mouse that types. Whoever lent
//! it the terminal listens to what it shows, and undoes what is left when it is gone.

use std::collections::BTreeSet;

use super::parse::{EightBit, Kind, Parser, Said};

/// Modes that a terminal is switched into with `CSI ? N h`, and back with `CSI ? N l`.
const MODES: [u16; 20] = [
    1, 9, 47, 66, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026,
    2027, 2031, 2048,
];
/// Modes that are on in a fresh terminal.
const USUAL: [u16; 2] = [7, 25];

/// Listens to what is shown, and knows what has to be undone.
///
/// # Examples
///
/// ```
/// use ringfence_core::terminal::Aftermath;
///
/// let mut aftermath = Aftermath::new();
/// aftermath.listen(b"\x1b[?1049h\x1b[?25l an editor, and then nothing");
/// assert_eq!(aftermath.undo(), b"\x1b[?1049l\x1b[?25h");
/// ```
#[derive(Clone, Debug)]
pub struct Aftermath {
    parser: Parser,
    left: Left,
}

#[derive(Clone, Debug, Default)]
struct Left {
    /// Modes that were switched on, in that order.
    on: Vec<u16>,
    /// Modes that were switched off.
    off: Vec<u16>,
    odd: BTreeSet<Odd>,
    /// How many ways of reporting keys lie over the usual one.
    keys: u32,
    /// Whether the terminal was asked something, and may still answer.
    asked: bool,
}

/// States that have sequences of their own.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Odd {
    OtherKeys,
    Keypad,
    Colour,
}

impl Default for Aftermath {
    fn default() -> Self {
        Self::new()
    }
}

impl Aftermath {
    /// One that has heard nothing.
    pub fn new() -> Self {
        Self {
            parser: Parser::new(EightBit::Unreadable),
            left: Left::default(),
        }
    }

    /// Hears what is shown.
    pub fn listen(&mut self, bytes: &[u8]) {
        let Self { parser, left } = self;
        for byte in bytes {
            parser.byte(*byte, &mut |said| left.hear(said));
        }
    }

    /// Whether the terminal was ever asked something: its answer comes as if it were typed.
    pub fn was_asked(&self) -> bool {
        self.left.asked
    }

    /// What has to be written to the terminal to undo what is left.
    pub fn undo(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.parser.is_inside() {
            // Or what comes now would become a part of it.
            out.push(CANCEL);
        }
        self.left.undo(&mut out);
        out
    }

    /// The same for somebody who may have missed the last bytes: whatever sequence or colour they
    /// left the terminal in is ended, too.
    pub fn undo_unheard(&self) -> Vec<u8> {
        let mut out = vec![CANCEL];
        let mut left = self.left.clone();
        left.odd.insert(Odd::Colour);
        left.undo(&mut out);
        out
    }
}

const CANCEL: u8 = 0x18;

impl Left {
    fn undo(&self, out: &mut Vec<u8>) {
        let Self {
            on, off, odd, keys, ..
        } = self;
        if *keys > 0 {
            out.extend_from_slice(format!("\x1b[<{keys}u").as_bytes());
        }
        for mode in on {
            out.extend_from_slice(format!("\x1b[?{mode}l").as_bytes());
        }
        for mode in off {
            out.extend_from_slice(format!("\x1b[?{mode}h").as_bytes());
        }
        for odd in odd {
            out.extend_from_slice(match odd {
                Odd::OtherKeys => b"\x1b[>4m",
                Odd::Keypad => b"\x1b>",
                Odd::Colour => b"\x1b[m",
            });
        }
    }

    fn hear(&mut self, said: Said<'_>) {
        self.asked |= is_question(said);
        match said {
            Said::Sequence([b'?', modes @ ..], end @ (b'h' | b'l')) => {
                for mode in numbers(modes) {
                    self.switch(mode, end == b'h');
                }
            }
            Said::Sequence(parameters, b'm') => match parameters {
                [b'>', b'4', b';', rest @ ..] => self.set(Odd::OtherKeys, rest != b"0"),
                [b'>', b'4'] | [b'>'] => self.set(Odd::OtherKeys, false),
                [b'>' | b'?', ..] => {}
                plain => {
                    let reset = plain.iter().all(|byte| matches!(byte, b'0' | b';'));
                    self.set(Odd::Colour, !reset);
                }
            },
            // Nobody needs more of these than there are fingers.
            Said::Sequence([b'>', ..], b'u') => self.keys = (self.keys + 1).min(99),
            Said::Sequence([b'<', count @ ..], b'u') => {
                let count = numbers(count).next().unwrap_or(1).max(1);
                self.keys = self.keys.saturating_sub(u32::from(count));
            }
            Said::Escape(b"", b'=') => self.set(Odd::Keypad, true),
            Said::Escape(b"", b'>') => self.set(Odd::Keypad, false),
            // A reset undoes everything.
            Said::Escape(b"", b'c') => {
                *self = Self {
                    asked: self.asked,
                    ..Self::default()
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, odd: Odd, left: bool) {
        if left {
            self.odd.insert(odd);
        } else {
            self.odd.remove(&odd);
        }
    }

    fn switch(&mut self, mode: u16, set: bool) {
        let (list, left) = if MODES.contains(&mode) {
            (&mut self.on, set)
        } else if USUAL.contains(&mode) {
            (&mut self.off, !set)
        } else {
            return;
        };
        list.retain(|known| *known != mode);
        if left {
            list.push(mode);
        }
    }
}

const ENQUIRY: u8 = 0x05;

/// Whether a terminal answers this, as if somebody typed the answer.
fn is_question(said: Said<'_>) -> bool {
    match said {
        // Sizes, positions and titles.
        Said::Sequence(parameters, b't') => {
            matches!(numbers(parameters).next(), Some(11..=21))
        }
        Said::Sequence(parameters, b'p') => parameters.ends_with(b"$"),
        Said::Sequence(parameters, b'q') => parameters.starts_with(b">"),
        Said::Sequence(parameters, b'u') => parameters.starts_with(b"?"),
        Said::String(Kind::System, text) => text.contains(&b'?'),
        // Status and cursor, attributes, parameters, checksums; and whatever has an answer of its own.
        Said::Sequence(_, b'n' | b'c' | b'x' | b'y')
        | Said::String(Kind::Device | Kind::Application, _)
        | Said::Control(ENQUIRY)
        | Said::Escape(b"", b'Z') => true,
        _ => false,
    }
}

/// Numbers between semicolons; what is none is left out.
fn numbers(parameters: &[u8]) -> impl Iterator<Item = u16> {
    parameters
        .split(|byte| *byte == b';')
        .filter_map(|number| str::from_utf8(number).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(bytes: &[u8]) -> String {
        let mut aftermath = Aftermath::new();
        aftermath.listen(bytes);
        String::from_utf8(aftermath.undo()).unwrap()
    }

    fn asked(bytes: &[u8]) -> bool {
        let mut aftermath = Aftermath::new();
        aftermath.listen(bytes);
        aftermath.was_asked()
    }

    #[test]
    fn what_was_undone_is_not_undone_again() {
        for bytes in [
            &b"plain text\r\n"[..],
            b"\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[?25h\x1b[?2004l\x1b[?1049l",
            b"\x1b[31mred\x1b[0m\x1b=\x1b>\x1b[>4;2m\x1b[>4;0m\x1b[>1u\x1b[<u",
            b"\x1b[?1000;1006h\x1b[?1006;1000l",
            b"\x1b[?1049h\x1b[?1003h\x1bc",
        ] {
            assert_eq!(undone(bytes), "", "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn what_is_left_is_undone() {
        assert_eq!(undone(b"\x1b[?1000;1006h"), "\x1b[?1000l\x1b[?1006l");
        assert_eq!(
            undone(b"\x1b[?1049h\x1b[?25l\x1b[1m"),
            "\x1b[?1049l\x1b[?25h\x1b[m"
        );
        assert_eq!(
            undone(b"\x1b[>1u\x1b[>3u\x1b[>4;2m\x1b="),
            "\x1b[<2u\x1b[>4m\x1b>"
        );
        assert_eq!(undone(b"\x1b]0;never ends"), "\x18");
        assert_eq!(undone(b"half a sequence \x1b[?104"), "\x18");
    }

    #[test]
    fn who_missed_the_last_bytes_undoes_whatever_they_were() {
        let mut aftermath = Aftermath::new();
        assert_eq!(aftermath.undo_unheard(), b"\x18\x1b[m");
        aftermath.listen(b"\x1b[31m\x1b[?1049h\x1b[m");
        assert_eq!(aftermath.undo_unheard(), b"\x18\x1b[?1049l\x1b[m");
        // Text and colours change nothing about it.
        aftermath.listen(b"text \x1b[1;32mgreen");
        assert_eq!(aftermath.undo_unheard(), b"\x18\x1b[?1049l\x1b[m");
    }

    #[test]
    fn questions_are_noticed() {
        for question in [
            &b"\x1b[6n"[..],
            b"\x1b[c",
            b"\x1b[>c",
            b"\x1b[21t",
            b"\x1b[?2026$p",
            b"\x1bP$qm\x1b\\",
            b"\x1b]11;?\x07",
            b"\x1b]52;c;?\x1b\\",
            b"\x05",
            b"\x1bZ",
            b"\x1b[?u",
            b"\x1b[>q",
        ] {
            assert!(asked(question), "{:?}", String::from_utf8_lossy(question));
        }
        assert!(!asked(
            b"text \x1b[22;0;0t\x1b[31m\x1b[2J\x1b[1;1H\x1b]0;title\x07"
        ));
    }
}
