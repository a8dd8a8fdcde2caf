//! Text for somebody who is about to say yes.
//!
//! [`crate::text`] makes any text harmless to a terminal. Here a reader is protected as well: what
//! cannot be seen, and letters that look like others, are written as escapes *and* listed, so that
//! whoever asks can point at them. Text without marks is exactly what it looks like.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use crate::host::{HostPattern, Target};
use crate::text::{is_hidden, printable_bytes};

/// Longer text pushes the rest of a question out of sight.
const LONGEST: usize = 4096;

/// A text as it is shown, and what a reader could be wrong about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Shown {
    /// With escapes; printable everywhere.
    pub text: String,
    /// What to point at, each once.
    pub marks: Vec<Mark>,
}

/// Something that a reader could be wrong about.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Mark {
    /// A character that cannot be seen, or that moves others about.
    Hidden(char),
    /// A byte that is no text.
    NotText,
    /// A character that looks like another one.
    LookAlike {
        /// The character.
        found: char,
        /// What it looks like.
        like: char,
    },
    /// Longer than anybody reads.
    Long,
    /// A host name whose real characters are written as an ASCII code.
    Punycode,
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hidden(found) => {
                write!(f, "U+{:04X} cannot be seen", u32::from(*found))
            }
            Self::NotText => f.write_str("some bytes are not text"),
            Self::LookAlike { found, like } => {
                write!(f, "U+{:04X} looks like `{like}`", u32::from(*found))
            }
            Self::Long => f.write_str("it is very long: read it to the end"),
            Self::Punycode => f.write_str("the host name is not written in plain letters"),
        }
    }
}

/// How bytes are shown.
pub fn shown_bytes(bytes: &[u8]) -> Shown {
    let mut out = Shown::default();
    for chunk in bytes.utf8_chunks() {
        out.push_text(chunk.valid());
        if !chunk.invalid().is_empty() {
            out.text.push_str(&printable_bytes(chunk.invalid()));
            out.mark(Mark::NotText);
        }
    }
    if bytes.len() > LONGEST {
        out.mark(Mark::Long);
    }
    out
}

/// How text is shown.
pub fn shown(text: &str) -> Shown {
    shown_bytes(text.as_bytes())
}

/// How a word of a command is shown, in quotation marks if it needs them.
pub fn shown_word(word: &OsStr) -> Shown {
    let mut out = shown_bytes(word.as_encoded_bytes());
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./=:,@%+".contains(character);
    if out.text.is_empty() || !out.text.chars().all(plain) {
        out.text = format!("'{}'", out.text.replace('\'', "'\\''"));
    }
    out
}

/// How a host pattern is shown; a name in punycode with the characters it stands for.
pub fn shown_host(pattern: &HostPattern) -> Shown {
    let written = pattern.to_string();
    let mut out = shown(&written);
    let name = match pattern.target() {
        Target::Below(name) | Target::Exact(crate::host::Host::Name(name)) => name.as_str(),
        Target::Exact(crate::host::Host::Ip(_)) => return out,
    };
    if name.split('.').any(|label| label.starts_with("xn--")) {
        let (decoded, _) = idna::domain_to_unicode(name);
        let decoded = shown(&decoded);
        out.text = format!("{} (which is {})", out.text, decoded.text);
        out.mark(Mark::Punycode);
        for mark in decoded.marks {
            out.mark(mark);
        }
    }
    out
}

impl Shown {
    fn mark(&mut self, mark: Mark) {
        if !self.marks.contains(&mark) {
            self.marks.push(mark);
        }
    }

    /// Appends, marks included.
    pub fn push(&mut self, other: &Self) {
        self.text.push_str(&other.text);
        for mark in &other.marks {
            self.mark(*mark);
        }
    }

    /// Writes text, one run of letters after the other: a look-alike is one only among others.
    fn push_text(&mut self, text: &str) {
        let mut run = String::new();
        for character in text.chars() {
            if character.is_alphanumeric() {
                run.push(character);
                continue;
            }
            self.push_run(&run);
            run.clear();
            self.push_character(character);
        }
        self.push_run(&run);
    }

    fn push_character(&mut self, character: char) {
        let mut encoded = [0; 4];
        let text: &str = character.encode_utf8(&mut encoded);
        if is_hidden(character) {
            // Ends of lines and tabs have escapes that everybody knows.
            if !matches!(character, '\n' | '\t') {
                self.mark(Mark::Hidden(character));
            }
        } else if let Some(like) = look_alike(character) {
            self.escape(character, like);
            return;
        }
        self.text.push_str(&printable_bytes(text.as_bytes()));
    }

    fn push_run(&mut self, run: &str) {
        if run.is_ascii() {
            self.text.push_str(run);
            return;
        }
        // A word in another script is that script's; one that is mixed, or that could be read
        // as ASCII from end to end, is not what it seems.
        let ascii = run.chars().any(|character| character.is_ascii_alphabetic());
        let all = run
            .chars()
            .all(|character| character.is_ascii() || look_alike(character).is_some());
        for character in run.chars() {
            match look_alike(character) {
                Some(like) if ascii || all => self.escape(character, like),
                _ if is_hidden(character) => self.push_character(character),
                _ => self.text.push(character),
            }
        }
    }

    fn escape(&mut self, found: char, like: char) {
        use std::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(self.text, "\\u{{{:x}}}", u32::from(found));
        self.mark(Mark::LookAlike { found, like });
    }
}

/// All marks of several texts, each once, in order.
pub fn marks<'a>(all: impl IntoIterator<Item = &'a Shown>) -> Vec<Mark> {
    let marks = all.into_iter().flat_map(|shown| &shown.marks);
    let sorted: BTreeSet<Mark> = marks.copied().collect();
    sorted.into_iter().collect()
}

/// The ASCII character that another one is easily taken for.
fn look_alike(character: char) -> Option<char> {
    if character.is_ascii() {
        return None;
    }
    let offset = |first: u32, like: char| {
        let distance = u32::from(character) - first;
        char::from_u32(u32::from(like) + distance)
    };
    match u32::from(character) {
        // Full-width forms of all of ASCII.
        0xFF01..=0xFF5E => offset(0xFF01, '!'),
        // Mathematical letters: alphabets of 52 letters one after the other, then digits.
        0x1D400..=0x1D6A3 => {
            let place = (u32::from(character) - 0x1D400) % 52;
            let (first, place) = if place < 26 {
                ('A', place)
            } else {
                ('a', place - 26)
            };
            char::from_u32(u32::from(first) + place)
        }
        0x1D7CE..=0x1D7FF => {
            let place = (u32::from(character) - 0x1D7CE) % 10;
            char::from_u32(u32::from('0') + place)
        }
        0x24B6..=0x24CF => offset(0x24B6, 'A'),
        0x24D0..=0x24E9 => offset(0x24D0, 'a'),
        _ => LOOK_ALIKES
            .iter()
            .find(|(like, _)| like.contains(character))
            .map(|(_, like)| *like),
    }
}

/// Characters by the ASCII character they are taken for. Chosen by eye from Cyrillic, Greek,
/// Armenian, Cherokee, Latin extensions and signs; a longer list would mark honest text.
const LOOK_ALIKES: &[(&str, char)] = &[
    ("аɑα", 'a'),
    ("ЬƄ", 'b'),
    ("сϲᴄ", 'c'),
    ("ԁɗ", 'd'),
    ("еҽ", 'e'),
    ("ƒ", 'f'),
    ("ɡց", 'g'),
    ("һհ", 'h'),
    ("іıιɩ", 'i'),
    ("јϳ", 'j'),
    ("κк", 'k'),
    ("ӏǀ", 'l'),
    ("м", 'm'),
    ("ոո", 'n'),
    ("оοօᴏ", 'o'),
    ("рρ", 'p'),
    ("ԛզ", 'q'),
    ("гᴦ", 'r'),
    ("ѕꜱ", 's'),
    ("τт", 't'),
    ("υսᴜ", 'u'),
    ("νѵᴠ", 'v'),
    ("ѡԝᴡ", 'w'),
    ("хχ", 'x'),
    ("уүγ", 'y'),
    ("ᴢ", 'z'),
    ("АΑᎪ", 'A'),
    ("ВΒᏴ", 'B'),
    ("СᏟ", 'C'),
    ("Ꭰ", 'D'),
    ("ЕΕᎬ", 'E'),
    ("Ϝ", 'F'),
    ("Ԍ", 'G'),
    ("НΗᎻ", 'H'),
    ("ІΙӀ", 'I'),
    ("ЈᎫ", 'J'),
    ("КΚᏦ", 'K'),
    ("Ꮮ", 'L'),
    ("МΜᎷ", 'M'),
    ("Ν", 'N'),
    ("ОΟՕ", 'O'),
    ("РΡᏢ", 'P'),
    ("Ԛ", 'Q'),
    ("Ꭱ", 'R'),
    ("ЅՏᏚ", 'S'),
    ("ТΤᎢ", 'T'),
    ("Ս", 'U'),
    ("ѴᏙ", 'V'),
    ("ԜᎳ", 'W'),
    ("ХΧ", 'X'),
    ("УΥҮ", 'Y'),
    ("ΖᏃ", 'Z'),
    ("⁄∕⧸／", '/'),
    ("．․", '.'),
    ("‐‑‒–−﹣", '-'),
    ("：∶ː", ':'),
    ("＊∗", '*'),
    ("；\u{37e}", ';'),
    ("＂“”", '"'),
    ("‘’ʼ＇", '\''),
    ("｜∣", '|'),
    ("＆", '&'),
    ("＞›", '>'),
    ("＜‹", '<'),
    ("～∼", '~'),
    ("＄", '$'),
    (
        "\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{202f}\u{205f}\u{3000}",
        ' ',
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_text_of_any_script_is_left_alone() {
        for plain in [
            "git push origin main",
            "żółw 漢字 é",
            "привет, мир",
            "Ελλάδα",
            "日本語",
        ] {
            let shown = shown(plain);
            assert_eq!(
                (shown.text.as_str(), &shown.marks),
                (plain, &vec![]),
                "{plain}"
            );
        }
    }

    #[test]
    fn what_deceives_is_escaped_and_marked() {
        let like = |found, like| Mark::LookAlike { found, like };
        for (text, expected, mark) in [
            ("p\u{430}ypal", "p\\u{430}ypal", like('\u{430}', 'a')),
            (
                "\u{441}\u{43e}\u{441}\u{43e}",
                "\\u{441}\\u{43e}\\u{441}\\u{43e}",
                like('\u{441}', 'c'),
            ),
            ("a\u{202e}b", "a\\u{202e}b", Mark::Hidden('\u{202e}')),
            ("a\u{200b}b", "a\\u{200b}b", Mark::Hidden('\u{200b}')),
            ("\u{1b}[2K\r", "\\u{1b}[2K\\r", Mark::Hidden('\u{1b}')),
            ("a\u{2215}b", "a\\u{2215}b", like('\u{2215}', '/')),
            ("rm\u{a0}x", "rm\\u{a0}x", like('\u{a0}', ' ')),
            ("\u{ff41}", "\\u{ff41}", like('\u{ff41}', 'a')),
            ("\u{1d41a}", "\\u{1d41a}", like('\u{1d41a}', 'a')),
        ] {
            let shown = shown(text);
            assert_eq!(shown.text, expected);
            assert!(shown.marks.contains(&mark), "{text:?}: {:?}", shown.marks);
        }
        assert_eq!(shown_bytes(b"a\xff").marks, [Mark::NotText]);
        assert!(shown(&" ".repeat(10_000)).marks.contains(&Mark::Long));
    }

    #[test]
    fn hosts_show_what_their_codes_stand_for() {
        let host = |text: &str| shown_host(&text.parse().unwrap());
        assert!(host("github.com").marks.is_empty());
        assert!(host("*.example.org:8443").marks.is_empty());
        // The Cyrillic look-alike of a well-known name, as a resolver would get it.
        let shown = host("p\u{430}ypal.com");
        assert!(shown.text.starts_with("xn--"), "{}", shown.text);
        assert!(shown.text.contains("p\\u{430}ypal.com"), "{}", shown.text);
        assert!(shown.marks.contains(&Mark::Punycode));
    }

    #[test]
    fn words_are_quoted_so_that_their_ends_can_be_seen() {
        let word = |text: &str| shown_word(OsStr::new(text)).text;
        assert_eq!(word("make"), "make");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word(""), "''");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word("a;b"), "'a;b'");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_ever_in_what_is_shown(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let shown = shown_bytes(&bytes);
            prop_assert!(!shown.text.chars().any(is_hidden));
        }

        #[test]
        fn text_without_marks_is_shown_as_it_is(text in "\\PC{0,40}") {
            let shown = shown(&text);
            if shown.marks.is_empty() {
                prop_assert_eq!(shown.text.replace("\\\\", "\\"), text);
            }
        }
    }
}
