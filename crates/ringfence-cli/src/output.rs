//! The way out: standard output and standard error.
//!
//! Everything printed goes through here. `println!` would panic when the reader has gone away;
//! for us that is an ordinary end. Each answer is built whole and written at once, so that half
//! an answer is never taken for one.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use ringfence_core::text::{escape_json, escape_lines};

use crate::exit::Exit;

/// Whether to use colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Colour {
    /// For a person at a terminal.
    Some,
    /// For a pipe, a file, or somebody who asked for none.
    None,
}

impl Colour {
    /// What standard error should get.
    pub(crate) fn of_errors() -> Self {
        Self::of(&io::stderr())
    }

    /// What standard output should get.
    pub(crate) fn of_answers() -> Self {
        Self::of(&io::stdout())
    }

    fn of(stream: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if !unwanted && stream.is_terminal() {
            Self::Some
        } else {
            Self::None
        }
    }
}

/// Writes an answer for people to standard output.
pub(crate) fn answer(text: &str) -> Exit {
    answer_exactly(&visible(text))
}

/// Writes what ringfence itself made for a program, byte for byte: a script, a page.
pub(crate) fn answer_exactly(text: &str) -> Exit {
    match write(&mut io::stdout(), text) {
        Ok(()) => Exit::Success,
        Err(error) => {
            complain(&format!("cannot write the answer: {error}"), None);
            Exit::Refused
        }
    }
}

/// Writes an answer for programs.
pub(crate) fn answer_json(value: &impl serde::Serialize) -> Exit {
    match serde_json::to_string_pretty(value) {
        Ok(text) => answer_exactly(&(escape_json(&text) + "\n")),
        Err(error) => {
            complain(&format!("cannot write the answer as JSON: {error}"), None);
            Exit::Refused
        }
    }
}

/// Text with everything but line ends that a terminal would obey shown instead.
///
/// Names are escaped where they are printed; this holds for whatever was forgotten.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape_lines(text)
}

/// Writes ready text to standard error. If that is not possible there is nobody left to tell.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// What went wrong first, for a record of it that is written later by somebody else.
static FIRST: OnceLock<String> = OnceLock::new();

/// Remembers what went wrong, unless something did before: the rest mostly follows from that.
pub(crate) fn remember(message: &str) {
    let _ = FIRST.set(message.to_owned());
}

/// What went wrong first, in words, if anything did.
pub(crate) fn first_complaint() -> Option<&'static str> {
    FIRST.get().map(String::as_str)
}

/// Says what went wrong, and what would mend it.
pub(crate) fn complain(message: &str, help: Option<&str>) {
    remember(message);
    let mut text = format!("error: {message}\n");
    if let Some(help) = help {
        let _ = writeln!(text, "  help: {help}");
    }
    tell(&visible(&text));
}

/// A reader that has gone away has all it wanted.
fn write(stream: &mut impl Write, text: &str) -> io::Result<()> {
    let written = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::text::is_hidden;

    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn json_keeps_its_meaning_when_it_is_made_visible() {
        let value = "a\u{1b}\u{9b}\u{202e}\u{e0041}\"\\ö\n";
        let text = serde_json::to_string_pretty(&[value]).unwrap();

        let shown = escape_json(&text);

        assert!(!shown.chars().any(|c| is_hidden(c) && c != '\n'), "{shown}");
        let back: Vec<String> = serde_json::from_str(&shown).unwrap();
        assert_eq!(back, [value]);
    }

    #[test]
    fn a_reader_that_left_is_no_failure_and_a_full_disk_is() {
        assert!(write(&mut Failing(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(write(&mut Failing(ErrorKind::StorageFull), "x").is_err());
    }
}
