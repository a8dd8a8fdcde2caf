//! Text and colours, and nothing else.

use super::parse::{EightBit, Parser, Said};

/// What stands where something could not be read, or must not be shown.
const INSTEAD: char = char::REPLACEMENT_CHARACTER;

/// Lets text and colours through, and nothing that a terminal or a user interface would obey.
///
/// What comes out is valid UTF-8. Of control characters it has line feeds, carriage returns, tabs and
/// backspaces; of sequences those that colour text. Titles, clipboards, links, questions, cursor
/// movements, other screens and every string for the terminal itself are gone, in both spellings of
/// each and wherever they were cut into pieces. Characters that reorder text, so that it reads as
/// something else, are replaced, as is what is not UTF-8.
///
/// # Examples
///
/// ```
/// use ringfence_core::terminal::Sanitizer;
///
/// let mut sanitizer = Sanitizer::new();
/// let mut out = Vec::new();
/// sanitizer.filter(b"\x1b]0;a ti", &mut out);
/// sanitizer.filter(b"tle\x07\x1b[31mred\x1b[m", &mut out);
/// assert_eq!(out, b"\x1b[31mred\x1b[m");
/// ```
#[derive(Clone, Debug)]
pub struct Sanitizer {
    parser: Parser,
    colour: Colour,
}

/// Whether text is coloured at the moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Colour {
    Plain,
    Set,
}

impl Default for Sanitizer {
    fn default() -> Self {
        Self::new()
    }
}

impl Sanitizer {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self {
            parser: Parser::new(EightBit::Control),
            colour: Colour::Plain,
        }
    }

    /// Reads some bytes and adds what is left of them to `out`: never more than three for each.
    pub fn filter(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Self { parser, colour } = self;
        for byte in bytes {
            parser.byte(*byte, &mut |said| pass(said, colour, out));
        }
    }

    /// Adds what has to stand at the end: text is not left coloured.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let Self { parser, colour } = self;
        parser.finish(&mut |said| pass(said, colour, out));
        if *colour == Colour::Set {
            out.extend_from_slice(b"\x1b[m");
            *colour = Colour::Plain;
        }
    }
}

fn pass(said: Said<'_>, colour: &mut Colour, out: &mut Vec<u8>) {
    match said {
        Said::Text(character) => {
            let shown = if reorders(character) {
                INSTEAD
            } else {
                character
            };
            out.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Said::Unreadable => {
            out.extend_from_slice(INSTEAD.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Said::Control(byte @ (b'\n' | b'\r' | b'\t' | 0x08)) => out.push(byte),
        Said::Sequence(parameters, b'm') if parameters.iter().copied().all(of_colour) => {
            out.extend_from_slice(b"\x1b[");
            out.extend_from_slice(parameters);
            out.push(b'm');
            let plain = parameters.iter().all(|byte| matches!(byte, b'0' | b';'));
            *colour = if plain { Colour::Plain } else { Colour::Set };
        }
        Said::Control(_) | Said::Escape(..) | Said::Sequence(..) | Said::String(..) => {}
    }
}

/// Digits and their separators: a colour has neither a mark of privacy nor anything in between.
fn of_colour(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b';' | b':')
}

/// Characters that change the order in which others are shown.
fn reorders(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clean(bytes: &[u8]) -> Vec<u8> {
        let (mut sanitizer, mut out) = (Sanitizer::new(), Vec::new());
        sanitizer.filter(bytes, &mut out);
        sanitizer.finish(&mut out);
        out
    }

    fn cleaned(bytes: &[u8]) -> String {
        String::from_utf8(clean(bytes)).unwrap()
    }

    /// Reads the output by other means than it was written with.
    fn assert_harmless(out: &[u8]) {
        let text = std::str::from_utf8(out).unwrap();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            if character == '\x1b' {
                let sequence = rest.as_str();
                let end = sequence.find('m').unwrap();
                let inner = sequence[..end].strip_prefix('[').unwrap();
                assert!(
                    inner
                        .chars()
                        .all(|c| c.is_ascii_digit() || c == ';' || c == ':')
                );
                rest = sequence[end + 1..].chars();
            } else if character.is_control() {
                assert!("\n\r\t\x08".contains(character), "{character:?}");
            }
        }
    }

    #[test]
    fn text_and_colours_pass() {
        for text in [
            "plain text\r\nsecond\tline\n",
            "\u{fc}ml\u{e4}ut \u{4e16}\u{754c} \u{1f469}\u{200d}\u{1f680} e\u{301}",
            "\x1b[1;31mred\x1b[0m \x1b[38;5;208morange\x1b[m \x1b[38:2::1:2:3mtrue\x1b[m",
            "progress 10%\rprogress 20%\x08\x08",
        ] {
            assert_eq!(cleaned(text.as_bytes()), text);
        }
    }

    #[test]
    fn everything_that_a_terminal_obeys_is_gone() {
        for (name, sequence) in [
            ("title", "\x1b]0;title\x07"),
            ("title with ST", "\x1b]2;title\x1b\\"),
            ("clipboard", "\x1b]52;c;ZXZpbA==\x07"),
            ("link", "\x1b]8;;https://example.org\x1b\\"),
            ("notification", "\x1b]777;notify;a;b\x07"),
            ("file", "\x1b]1337;File=name=eA==:AAAA\x07"),
            ("report of the title", "\x1b[21t"),
            ("report of the cursor", "\x1b[6n"),
            ("device attributes", "\x1b[c\x1b[>c\x1b[=c\x1bZ"),
            ("settings", "\x1bP$qm\x1b\\"),
            ("capabilities", "\x1bP+q544e\x1b\\"),
            ("sixel", "\x1bPq#0;2;0;0;0\n#0~~\n\x1b\\"),
            ("application", "\x1b_Gi=1;AAAA\x1b\\"),
            ("privacy", "\x1b^x\x1b\\"),
            ("start of string", "\x1bXx\x1b\\"),
            ("reset", "\x1bc"),
            ("other screen", "\x1b[?1049h"),
            ("cursor up, line erased", "\x1b[1A\x1b[2K"),
            ("cursor anywhere", "\x1b[1;1H\x1b7\x1b8"),
            ("mouse", "\x1b[?1003h\x1b[?1006h"),
            ("keys", "\x1b[>4;2m\x1b[>1u\x1b="),
            ("colour with a mark", "\x1b[?4m"),
            ("characters", "\x1b(0\x1b#8\x1b%G\x0e\x0f"),
            ("bell, nothing, delete", "\x07\x00\x7f\x05"),
            ("sequence in UTF-8", "\u{9b}6n"),
            ("title in UTF-8", "\u{9d}0;x\u{9c}"),
            ("device control in UTF-8", "\u{90}$qm\u{9c}"),
            ("other controls", "\u{84}\u{85}\u{8d}\u{9a}"),
            ("cancelled", "\x1b[31\x18\x1b]0;x\x1a"),
        ] {
            let text = format!("before{sequence}after");
            assert_eq!(cleaned(text.as_bytes()), "beforeafter", "{name}");
        }
    }

    #[test]
    fn raw_bytes_are_controls_too_and_never_text() {
        assert_eq!(cleaned(b"a\x9b6nb"), "ab");
        assert_eq!(cleaned(b"a\x9d0;title\x07b"), "ab");
        assert_eq!(cleaned(b"a\x90$qm\x9cb"), "ab");
        assert_eq!(cleaned(b"a\xffb\xc3"), "a\u{fffd}b\u{fffd}");
        // Half a character, a sequence, and a byte that could be its other half.
        assert_eq!(cleaned(b"\xc2\x1b[6n\x9b6nx"), "\u{fffd}x");
        // The bytes of these characters are controls by themselves.
        assert_eq!(
            cleaned("\u{dc}\u{1b}]0;\u{dc}\u{7}\u{dd}".as_bytes()),
            "\u{dc}\u{dd}"
        );
    }

    #[test]
    fn a_string_that_never_ends_does_not_swallow_what_follows() {
        assert_eq!(cleaned(b"a\x1b]0;title\nnext"), "a\nnext");
        let mut long = b"a\x1bP".to_vec();
        long.extend(std::iter::repeat_n(b'x', 70_000));
        long.extend_from_slice(b"\nend");
        let out = cleaned(&long);
        assert!(
            out.starts_with('a') && out.ends_with("x\nend"),
            "{}",
            out.len()
        );
        assert!(out.len() < 10_000);
        // One that is too long to be a colour is none.
        let digits = "1;".repeat(100);
        assert_eq!(cleaned(format!("a\x1b[{digits}mb").as_bytes()), "ab");
    }

    #[test]
    fn text_that_reorders_is_shown_as_unreadable() {
        assert_eq!(
            cleaned("a\u{202e}b\u{2066}c".as_bytes()),
            "a\u{fffd}b\u{fffd}c"
        );
    }

    #[test]
    fn colours_do_not_outlive_the_text() {
        assert_eq!(cleaned(b"\x1b[31mred"), "\x1b[31mred\x1b[m");
        assert_eq!(cleaned(b"\x1b[31mred\x1b[0m"), "\x1b[31mred\x1b[0m");
    }

    /// Bytes as a hostile program would print them.
    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let pieces = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            "[ -~]{0,5}".prop_map(String::into_bytes),
            prop::sample::select(vec![
                "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x07", "\u{9b}", "\u{9c}", "\u{9d}",
                "31", ";", "m", "6n", "?1049h", "0;t", "\x18", "\n", "\u{202e}", "\u{4e16}",
            ])
            .prop_map(|piece| piece.as_bytes().to_vec()),
        ];
        prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn what_comes_out_is_harmless(bytes in hostile()) {
            let out = clean(&bytes);
            assert_harmless(&out);
            prop_assert!(out.len() <= bytes.len() * 3 + 3);
            prop_assert_eq!(clean(&out), out.clone(), "cleaning twice changes nothing");
        }

        #[test]
        fn where_it_is_cut_does_not_matter(bytes in hostile(), cut in any::<prop::sample::Index>()) {
            let at = cut.index(bytes.len() + 1);
            let (mut sanitizer, mut out) = (Sanitizer::new(), Vec::new());
            sanitizer.filter(&bytes[..at], &mut out);
            assert!(std::str::from_utf8(&out).is_ok(), "no half of a character is shown");
            sanitizer.filter(&bytes[at..], &mut out);
            sanitizer.finish(&mut out);
            prop_assert_eq!(out, clean(&bytes));
        }

        #[test]
        fn any_text_passes(text in "[^\u{0}-\u{8}\u{b}\u{c}\u{e}-\u{1f}\u{7f}-\u{9f}\u{61c}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}]*") {
            prop_assert_eq!(cleaned(text.as_bytes()), text);
        }
    }
}
