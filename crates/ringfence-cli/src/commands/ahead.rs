//! Starts a session's first process before the arguments are read, where that is likely to help.

use std::cell::RefCell;
use std::ffi::OsString;

use ringfence::launch;

/// A first process that waits for its orders, if there is one.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    process: RefCell<Option<launch::Ahead>>,
    is_refused: bool,
}

impl Waiting {
    /// Whoever launches first takes it.
    pub(super) fn take(&self) -> Option<launch::Ahead> {
        self.process.take()
    }

    /// Whether there is none because the kernel would not have it.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }
}

/// What says that a session will need another first process, or none for now: two words, of which
/// the second may be any.
const OTHERWISE: [(&str, Option<&str>); 8] = [
    ("--dry-run", None),
    ("--engine", None),
    ("--help", None),
    ("--linger", None),
    ("--net", Some("all")),
    ("--preset", Some("track")),
    ("--version", None),
    ("-h", None),
];

/// Starts one if these look like the arguments of a plain `run`. A wrong guess costs some time, and
/// nothing else.
pub(super) fn guess(arguments: &[OsString]) -> Waiting {
    match is_plain(arguments).then(launch::Ahead::begin).flatten() {
        None => Waiting::default(),
        Some(begun) => Waiting {
            is_refused: begun.is_err(),
            process: RefCell::new(begun.ok()),
        },
    }
}

fn is_plain(arguments: &[OsString]) -> bool {
    let [_, run, flags @ ..] = arguments else {
        return false;
    };
    let mut flags = flags.iter().take_while(|word| *word != "--").peekable();
    if run != "run" {
        return false;
    }
    while let Some(word) = flags.next() {
        let word = word.to_string_lossy();
        let next = flags.peek().map(|next| next.to_string_lossy());
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&*word, next.as_deref()),
        };
        let is_it = |(flag, wanted): &(&str, Option<&str>)| {
            *flag == name && (wanted.is_none() || *wanted == value)
        };
        if OTHERWISE.iter().any(is_it) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_run_is_told_from_others() {
        let plain = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            is_plain(&words)
        };
        for line in [
            "ringfence run true",
            "ringfence run -- true",
            "ringfence run --net none --write /a -- true",
            "ringfence run --net=none -v -- make --engine --help --dry-run",
            "ringfence run --preset agent true",
        ] {
            assert!(plain(line), "{line}");
        }
        for line in [
            "ringfence",
            "ringfence doctor",
            "ringfence run --help",
            "ringfence run --engine landlock -- true",
            "ringfence run --engine=landlock -- true",
            "ringfence run --net all -- true",
            "ringfence run --net=all -- true",
            "ringfence run --preset=track -- true",
            "ringfence run --linger -- true",
        ] {
            assert!(!plain(line), "{line}");
        }
    }
}
