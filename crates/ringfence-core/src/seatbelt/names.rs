//! The many spellings of a path on macOS.
//!
//! Seatbelt compares the path that the kernel gives a file, and one file can have several: `/tmp` is
//! `/private/tmp`, and the writable volume is seen once at its mount point and once through the
//! root. A file that does not exist yet has the spelling of whoever makes it, and most volumes do
//! not tell capital letters from small ones.

use std::fmt::Write as _;

use crate::path::AbsPath;

/// Where the writable volume is mounted besides being seen through the root.
const DATA_VOLUME: &str = "/System/Volumes/Data";

/// Directories that a link at the root leads to.
const LINKED: [&str; 3] = ["/private/etc", "/private/tmp", "/private/var"];

/// Every spelling of a canonical path, the canonical one first.
pub fn spellings(path: &AbsPath) -> Vec<AbsPath> {
    let mut all = vec![path.clone()];
    let below = |tree: &str| path.as_path().strip_prefix(tree).ok();
    if LINKED.iter().any(|tree| below(tree).is_some())
        && let Some(rest) = below("/private")
    {
        all.push(AbsPath::root().below(rest));
    }
    let elsewhere = path.as_path().starts_with("/System")
        || path.as_path().starts_with("/dev")
        || *path == AbsPath::root();
    if !elsewhere && let (Some(rest), Ok(data)) = (below("/"), AbsPath::parse(DATA_VOLUME)) {
        all.push(data.below(rest));
    }
    all
}

/// A pattern that matches a path and everything below it, whatever the case of the letters below
/// `root`, which is there and so has a spelling.
///
/// The pattern may match a little more than that, and is only for denials: what is not a plain
/// character becomes one that matches anything. So no text, whatever it holds, can end the pattern
/// or the string around it.
pub fn pattern(root: &AbsPath, path: &AbsPath) -> String {
    let mut out = String::from("^");
    let fixed = if root.covers(path) {
        root.as_path().to_string_lossy().chars().count()
    } else {
        0
    };
    for (position, character) in path.as_path().to_string_lossy().chars().enumerate() {
        match character {
            'a'..='z' | 'A'..='Z' if position >= fixed => {
                let small = character.to_ascii_lowercase();
                let capital = character.to_ascii_uppercase();
                let _ = write!(out, "[{small}{capital}]");
            }
            'a'..='z' | 'A'..='Z' | '0'..='9' | '/' | '_' | '-' => out.push(character),
            '.' => out.push_str("[.]"),
            // One character, but how many bytes the matcher takes it for is not known.
            _ => out.push_str("[^/]+"),
        }
    }
    out.push_str("(/|$)");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::parse(text).unwrap()
    }

    fn spelled(text: &str) -> Vec<String> {
        spellings(&path(text))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_path_has_all_its_spellings() {
        assert_eq!(
            spelled("/private/tmp/x"),
            [
                "/private/tmp/x",
                "/tmp/x",
                "/System/Volumes/Data/private/tmp/x"
            ]
        );
        assert_eq!(
            spelled("/private/varied"),
            ["/private/varied", "/System/Volumes/Data/private/varied"]
        );
        assert_eq!(
            spelled("/Users/u"),
            ["/Users/u", "/System/Volumes/Data/Users/u"]
        );
        assert_eq!(spelled("/"), ["/"]);
        assert_eq!(spelled("/dev/null"), ["/dev/null"]);
        assert_eq!(spelled("/System/Library"), ["/System/Library"]);
    }

    #[test]
    fn a_pattern_holds_nothing_that_could_end_it() {
        assert_eq!(
            pattern(&path("/Pr"), &path("/Pr/.vS-1")),
            "^/Pr/[.][vV][sS]-1(/|$)"
        );
        let hostile = "/a\")(allow default)(\\\n\u{1f600}#'[]|*";
        let pattern = pattern(&path(hostile), &path(hostile).below(hostile));
        let allowed = |character: char| {
            character.is_ascii_alphanumeric() || "^/[]._-+()|$".contains(character)
        };
        assert!(pattern.chars().all(allowed), "{pattern}");
        assert!(!pattern.contains('"'));
    }
}
