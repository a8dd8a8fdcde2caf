//! Bytes become characters, control characters and sequences.
//!
//! Characters are put together first, so that a byte in the middle of one is never taken for a
//! control character, and one that stands alone never for text. Only then are sequences looked for,
//! in both their spellings: `ESC [` and the single character U+009B, whether that arrives as UTF-8 or
//! as a raw byte.

/// What a raw byte between 0x80 and 0x9f means, where no UTF-8 character has a place for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EightBit {
    /// A control character, as old terminals take it.
    Control,
    /// Nothing that can be read.
    Unreadable,
}

/// One thing that was said to a terminal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Said<'a> {
    /// A character of text.
    Text(char),
    /// Bytes that are no text.
    Unreadable,
    /// A control character that is not part of a sequence.
    Control(u8),
    /// `ESC`, with what lies between, and how it ends.
    Escape(&'a [u8], u8),
    /// `CSI`, with its parameters and what lies between, and how it ends.
    Sequence(&'a [u8], u8),
    /// A string for the terminal itself, by its kind and its first bytes.
    String(Kind, &'a [u8]),
}

/// Strings for the terminal itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// Application program command.
    Application,
    /// Device control.
    Device,
    /// Operating system command: titles, clipboards, links.
    System,
    /// Privacy message, or a start of string.
    Other,
}

/// No sequence that anybody writes is longer; a longer one is dropped whole.
const LONGEST: usize = 64;
/// A string that does not end by then was none.
const LONGEST_STRING: usize = 64 << 10;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Ground,
    Escape,
    Sequence,
    String(Kind),
    /// In a string, behind an `ESC` that may end it.
    StringEscape(Kind),
}

/// A reader of what is said to a terminal, byte by byte.
#[derive(Clone, Debug)]
pub(super) struct Parser {
    eight_bit: EightBit,
    /// The beginning of a character.
    begun: [u8; 4],
    begun_length: usize,
    state: State,
    /// What was collected of a sequence, or of a string.
    collected: Vec<u8>,
    /// How long it really is.
    length: usize,
}

impl Parser {
    pub(super) fn new(eight_bit: EightBit) -> Self {
        Self {
            eight_bit,
            begun: [0; 4],
            begun_length: 0,
            state: State::Ground,
            collected: Vec::with_capacity(LONGEST),
            length: 0,
        }
    }

    /// Whether something has begun that has not ended.
    pub(super) fn is_inside(&self) -> bool {
        self.state != State::Ground || self.begun_length > 0
    }

    /// Reads one byte.
    pub(super) fn byte(&mut self, byte: u8, tell: &mut impl FnMut(Said<'_>)) {
        if self.begun_length > 0 {
            if self.continues(byte) {
                self.begin(byte);
                self.complete(tell);
                return;
            }
            self.begun_length = 0;
            self.unit(Unit::Unreadable, tell);
        }
        match byte {
            0..=0x7f => self.unit(Unit::Character(char::from(byte)), tell),
            0xc2..=0xf4 => self.begin(byte),
            0x80..=0x9f if self.eight_bit == EightBit::Control => {
                self.unit(Unit::Character(char::from(byte)), tell);
            }
            _ => self.unit(Unit::Unreadable, tell),
        }
    }

    /// Nothing comes any more: what has begun never ends.
    pub(super) fn finish(&mut self, tell: &mut impl FnMut(Said<'_>)) {
        if self.begun_length > 0 {
            self.begun_length = 0;
            self.unit(Unit::Unreadable, tell);
        }
        self.leave();
    }

    fn begin(&mut self, byte: u8) {
        if let Some(slot) = self.begun.get_mut(self.begun_length) {
            *slot = byte;
            self.begun_length += 1;
        }
    }

    /// Whether a byte can stand behind those that have begun a character.
    fn continues(&self, byte: u8) -> bool {
        let [first, ..] = self.begun;
        // The second byte keeps out overlong forms, halves of pairs and what lies beyond Unicode.
        match (self.begun_length, first) {
            (1, 0xe0) => matches!(byte, 0xa0..=0xbf),
            (1, 0xed) => matches!(byte, 0x80..=0x9f),
            (1, 0xf0) => matches!(byte, 0x90..=0xbf),
            (1, 0xf4) => matches!(byte, 0x80..=0x8f),
            _ => matches!(byte, 0x80..=0xbf),
        }
    }

    fn complete(&mut self, tell: &mut impl FnMut(Said<'_>)) {
        let [first, ..] = self.begun;
        let whole = match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        if self.begun_length < whole {
            return;
        }
        let bytes = self.begun;
        self.begun_length = 0;
        let text = bytes
            .get(..whole)
            .and_then(|bytes| str::from_utf8(bytes).ok());
        let unit = text
            .and_then(|text| text.chars().next())
            .map_or(Unit::Unreadable, Unit::Character);
        self.unit(unit, tell);
    }

    fn unit(&mut self, unit: Unit, tell: &mut impl FnMut(Said<'_>)) {
        match self.state {
            State::Ground => self.in_ground(unit, tell),
            State::Escape => self.in_escape(unit, tell),
            State::Sequence => self.in_sequence(unit, tell),
            State::String(kind) => self.in_string(kind, unit, tell),
            State::StringEscape(kind) => {
                // Whatever follows, the string has ended; only a backslash belongs to its end.
                self.end_string(kind, tell);
                if unit != Unit::Character('\\') {
                    self.enter(State::Escape);
                    self.in_escape(unit, tell);
                }
            }
        }
    }

    fn in_ground(&mut self, unit: Unit, tell: &mut impl FnMut(Said<'_>)) {
        match unit {
            Unit::Unreadable => tell(Said::Unreadable),
            Unit::Character('\x1b') => self.enter(State::Escape),
            Unit::Character(character @ '\u{80}'..='\u{9f}') => self.control(character),
            Unit::Character(character) => match u8::try_from(character) {
                Ok(byte) if byte.is_ascii_control() => tell(Said::Control(byte)),
                _ => tell(Said::Text(character)),
            },
        }
    }

    /// A control character above ASCII. Those that begin nothing do nothing that anybody misses.
    fn control(&mut self, character: char) {
        match character {
            '\u{9b}' => self.enter(State::Sequence),
            '\u{90}' => self.enter(State::String(Kind::Device)),
            '\u{9d}' => self.enter(State::String(Kind::System)),
            '\u{9f}' => self.enter(State::String(Kind::Application)),
            '\u{98}' | '\u{9e}' => self.enter(State::String(Kind::Other)),
            _ => self.leave(),
        }
    }

    fn in_escape(&mut self, unit: Unit, tell: &mut impl FnMut(Said<'_>)) {
        let Some(byte) = self.plain(unit, tell) else {
            return;
        };
        match byte {
            b'[' if self.length == 0 => self.enter(State::Sequence),
            b']' if self.length == 0 => self.enter(State::String(Kind::System)),
            b'P' if self.length == 0 => self.enter(State::String(Kind::Device)),
            b'_' if self.length == 0 => self.enter(State::String(Kind::Application)),
            b'X' | b'^' if self.length == 0 => self.enter(State::String(Kind::Other)),
            0x20..=0x2f => self.collect(byte),
            _ => {
                if self.length <= LONGEST {
                    tell(Said::Escape(&self.collected, byte));
                }
                self.leave();
            }
        }
    }

    fn in_sequence(&mut self, unit: Unit, tell: &mut impl FnMut(Said<'_>)) {
        let Some(byte) = self.plain(unit, tell) else {
            return;
        };
        if let 0x20..=0x3f = byte {
            self.collect(byte);
            return;
        }
        if self.length <= LONGEST {
            tell(Said::Sequence(&self.collected, byte));
        }
        self.leave();
    }

    /// A byte that may be part of a sequence; everything else ends it, and is itself.
    fn plain(&mut self, unit: Unit, tell: &mut impl FnMut(Said<'_>)) -> Option<u8> {
        if let Unit::Character(character @ ' '..='~') = unit {
            return u8::try_from(character).ok();
        }
        self.leave();
        // Cancelling is all that these two do.
        if !matches!(unit, Unit::Character('\x18' | '\x1a')) {
            self.in_ground(unit, tell);
        }
        None
    }

    fn in_string(&mut self, kind: Kind, unit: Unit, tell: &mut impl FnMut(Said<'_>)) {
        match unit {
            Unit::Character('\x1b') => self.state = State::StringEscape(kind),
            Unit::Character('\u{9c}' | '\x18' | '\x1a') => self.end_string(kind, tell),
            Unit::Character('\x07') if kind == Kind::System => self.end_string(kind, tell),
            // Titles and clipboards are one line: behind it there is text again.
            Unit::Character('\n') if kind == Kind::System => {
                self.end_string(kind, tell);
                self.in_ground(unit, tell);
            }
            Unit::Character(character @ ' '..='~') => match u8::try_from(character) {
                Ok(byte) => self.collect(byte),
                Err(_) => self.length += 1,
            },
            Unit::Character(_) | Unit::Unreadable => self.length += 1,
        }
        if matches!(self.state, State::String(_)) && self.length > LONGEST_STRING {
            self.end_string(kind, tell);
        }
    }

    fn end_string(&mut self, kind: Kind, tell: &mut impl FnMut(Said<'_>)) {
        tell(Said::String(kind, &self.collected));
        self.leave();
    }

    fn collect(&mut self, byte: u8) {
        self.length += 1;
        if self.length <= LONGEST {
            self.collected.push(byte);
        }
    }

    fn enter(&mut self, state: State) {
        self.leave();
        self.state = state;
    }

    fn leave(&mut self) {
        self.state = State::Ground;
        self.collected.clear();
        self.length = 0;
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    Character(char),
    Unreadable,
}
