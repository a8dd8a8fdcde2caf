//! Text that is safe to put on somebody's terminal.
//!
//! Paths, host names and settings may hold anything, written by anybody. What is shown is
//! always escaped here, so that no name can draw, recolour or reorder what surrounds it.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

/// `text` with everything that is not plainly visible written as an escape.
///
/// Control, bidirectional, zero-width and private characters become `\u{…}`, a backslash
/// becomes `\\`; everything else, non-Latin scripts included, stays as it is.
pub fn printable(text: &str) -> String {
    if let Some(text) = plain(text.as_bytes()) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        push_printable(&mut out, character);
    }
    out
}

/// The same for bytes: what is not UTF-8 becomes `\xNN`.
pub fn printable_bytes(bytes: &[u8]) -> String {
    if let Some(text) = plain(bytes) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_printable(&mut out, character);
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The same for what the operating system calls a string.
pub fn printable_os(text: &OsStr) -> String {
    printable_bytes(text.as_encoded_bytes())
}

/// The same for paths.
pub fn printable_path(path: &Path) -> String {
    printable_os(path.as_os_str())
}

/// A text that shows as it is, as nearly every one does.
fn plain(bytes: &[u8]) -> Option<&str> {
    let text = str::from_utf8(bytes).ok().filter(|_| is_plain(bytes))?;
    (!text.contains('\\')).then_some(text)
}

/// Whether these are characters of ASCII that can be seen, and blanks. Told without a branch for
/// each, since it is asked of everything that is shown or written down.
fn is_plain(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
}

fn push_printable(out: &mut String, character: char) {
    match character {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if is_hidden(character) => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
        }
        _ => out.push(character),
    }
}

/// JSON with everything but line ends that a terminal would obey written as an escape.
///
/// Only strings can hold such characters, and JSON has escapes of its own for them: the text means
/// what it meant.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    escape(json, |character, out| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Text with everything but line ends that a terminal would obey shown instead.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape(text, |character, out| {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
    })
}

fn escape(text: &str, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let obeyed = |character: char| is_hidden(character) && character != '\n';
    if is_plain(text.as_bytes()) || !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if obeyed(character) {
            write(character, &mut out);
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Characters that a reader cannot see, or that change how their neighbours are shown.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            u32::from(character),
            0x00AD // soft hyphen
            | 0x034F // combining grapheme joiner
            | 0x061C // Arabic letter mark
            | 0x115F..=0x1160 // Hangul fillers
            | 0x17B4..=0x17B5
            | 0x180B..=0x180F
            | 0x200B..=0x200F // zero width, direction marks
            | 0x2028..=0x202E // separators, direction overrides
            | 0x2060..=0x206F
            | 0x3164
            | 0xE000..=0xF8FF // private use
            | 0xFE00..=0xFE0F // variation selectors
            | 0xFEFF
            | 0xFFA0
            | 0xFFF0..=0xFFFB
            | 0xE0000..=0xE0FFF // tags
            | 0xF0000..=0x10_FFFF
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(
            printable("a\u{1b}[2J\u{202e}b\\\n"),
            "a\\u{1b}[2J\\u{202e}b\\\\\\n"
        );
        assert_eq!(printable("żółw 漢字 é"), "żółw 漢字 é");
        assert_eq!(printable_bytes(b"ok\xff\x9b"), "ok\\xff\\x9b");
        for plain in ["", "/usr/bin", " !~"] {
            assert_eq!(printable(plain), plain);
            assert_eq!(printable_bytes(plain.as_bytes()), plain);
        }
        for (shown, hidden) in [("\\\\", "\\"), ("a\\u{7f}", "a\x7f"), ("\\t", "\t")] {
            assert_eq!(printable(hidden), shown);
            assert_eq!(printable_bytes(hidden.as_bytes()), shown);
        }
        assert_eq!(escape_lines("a b\n"), "a b\n");
        assert_eq!(escape_lines("a\u{1b}b\n"), "a\\u{1b}b\n");
    }
}
