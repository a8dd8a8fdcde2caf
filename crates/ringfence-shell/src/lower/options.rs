//! Walks the options of a command line, by a description of which options take a value.

use crate::Word;

/// Which options a program knows. An option in neither list leaves the walk unsure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Short options without a value.
    pub(crate) flags: &'static str,
    /// Short options with a value, attached or in the next word.
    pub(crate) values: &'static str,
    /// Long options without a value, or with one only behind `=`.
    pub(crate) long_flags: &'static [&'static str],
    /// Long options with a value, behind `=` or in the next word.
    pub(crate) long_values: &'static [&'static str],
}

impl Options {
    /// No option at all.
    pub(crate) const NONE: Self = Self {
        flags: "",
        values: "",
        long_flags: &[],
        long_values: &[],
    };
}

/// One option that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'w> {
    /// The letter or long name, without dashes.
    pub(crate) name: &'w str,
    /// Its value and the word that holds it; the text is what is literal of it.
    pub(crate) value: Option<(&'w str, &'w Word)>,
}

/// Where the operands begin, and how sure that is.
#[derive(Debug)]
pub(crate) struct Walk<'w> {
    /// Options in order.
    pub(crate) found: Vec<Found<'w>>,
    /// Index of the first operand.
    pub(crate) operands: usize,
    /// An unknown or computed option came first, so the operands may begin elsewhere.
    pub(crate) unsure: bool,
}

impl<'w> Walk<'w> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.found.iter().any(|found| found.name == name)
    }

    pub(crate) fn value(&self, names: &[&str]) -> Option<(&'w str, &'w Word)> {
        self.found
            .iter()
            .find(|found| names.contains(&found.name))
            .and_then(|found| found.value)
    }
}

/// Walks `words`, which begin behind the name of the program, up to the first operand.
pub(crate) fn walk(words: &[Word], options: Options) -> Walk<'_> {
    let mut walk = Walk {
        found: Vec::new(),
        operands: 0,
        unsure: false,
    };
    while let Some(word) = words.get(walk.operands) {
        let text = word.text.as_str();
        let computed_start = word.holes.first().is_some_and(|hole| hole.at == 0);
        if computed_start {
            // `$opts cmd`: it may be options, an operand, or nothing.
            walk.unsure = true;
            break;
        }
        if text == "--" && word.holes.is_empty() {
            walk.operands += 1;
            break;
        }
        if text == "-" || !text.starts_with('-') {
            break;
        }
        walk.operands += 1;
        let next = words.get(walk.operands);
        let used = if let Some(long) = text.strip_prefix("--") {
            long_option(&mut walk, long, word, next, options)
        } else {
            short_options(&mut walk, word, next, options)
        };
        walk.operands += usize::from(used);
    }
    walk
}

/// Reads one long option; says whether it used up the next word.
fn long_option<'w>(
    walk: &mut Walk<'w>,
    long: &'w str,
    word: &'w Word,
    next: Option<&'w Word>,
    options: Options,
) -> bool {
    if let Some((name, value)) = long.split_once('=') {
        walk.found.push(Found {
            name,
            value: Some((value, word)),
        });
        return false;
    }
    if options.long_flags.contains(&long) {
        walk.found.push(Found {
            name: long,
            value: None,
        });
        return false;
    }
    // GNU programs accept any unambiguous beginning.
    let full = options
        .long_values
        .iter()
        .find(|full| **full == long)
        .or_else(|| {
            let abbreviated =
                long.len() > 1 && !options.long_flags.iter().any(|flag| flag.starts_with(long));
            options
                .long_values
                .iter()
                .find(|full| abbreviated && full.starts_with(long))
        });
    if let Some(full) = full {
        walk.found.push(Found {
            name: full,
            value: next.map(|next| (next.text.as_str(), next)),
        });
        return true;
    }
    walk.unsure |= !options.long_flags.iter().any(|flag| flag.starts_with(long));
    walk.found.push(Found {
        name: long,
        value: None,
    });
    false
}

/// Reads a cluster of short options; says whether it used up the next word.
fn short_options<'w>(
    walk: &mut Walk<'w>,
    word: &'w Word,
    next: Option<&'w Word>,
    options: Options,
) -> bool {
    let cluster = word.text.get(1..).unwrap_or_default();
    for (index, letter) in cluster.char_indices() {
        let end = index + letter.len_utf8();
        let name = cluster.get(index..end).unwrap_or_default();
        if options.values.contains(letter) {
            let attached = cluster.get(end..).unwrap_or_default();
            let holes_follow = word.holes.iter().any(|hole| hole.at as usize > end);
            if attached.is_empty() && !holes_follow {
                walk.found.push(Found {
                    name,
                    value: next.map(|next| (next.text.as_str(), next)),
                });
                return true;
            }
            walk.found.push(Found {
                name,
                value: Some((attached, word)),
            });
            return false;
        }
        walk.unsure |= !options.flags.contains(letter);
        walk.found.push(Found { name, value: None });
    }
    walk.unsure |= !word.holes.is_empty();
    false
}
