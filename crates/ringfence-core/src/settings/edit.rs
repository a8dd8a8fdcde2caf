//! Changes to a settings file that leave the rest of it alone.
//!
//! A change is a handful of insertions and deletions in the text, found by the positions of the
//! parser. What somebody wrote elsewhere (comments, order, indentation, ends of lines) stays byte
//! for byte; comments are never deleted, not even beside an entry that is.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::{CollectOptions, parse_to_ast};

use super::read::{span_of, strict, unmarked};

/// Why a file cannot be changed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// It does not read as settings.
    #[error("the file is not valid JSON")]
    Syntax,
    /// Something else stands where the change has to go.
    #[error("`{key}` is not {expected}")]
    Type {
        /// The key, with dots.
        key: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// One change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change<'a> {
    /// Adds a text to a list, which is made if it is not there. Known entries are not repeated.
    Add(&'a str),
    /// Takes every entry with this text from a list.
    Remove(&'a str),
    /// Writes a value, as JSON, in place of any other.
    Set(&'a str),
    /// Takes a key away.
    Unset,
}

/// `text` with one change at a key.
///
/// # Errors
///
/// See [`EditError`]; nothing is half changed.
pub fn edited(text: &str, key: &[&str], change: &Change<'_>) -> Result<String, EditError> {
    let mut text = text.to_owned();
    for splice in splices(&text, key, change)? {
        text.replace_range(splice.at, &splice.with);
    }
    Ok(text)
}

/// Whether a key is written, and is not `null`.
pub fn is_written(text: &str, key: &[&str]) -> bool {
    with_value(text, key, |value| !matches!(value, Value::NullKeyword(_))).unwrap_or(false)
}

/// The texts of a list; nothing if there is no such list.
pub fn entries_of(text: &str, key: &[&str]) -> Vec<String> {
    let texts = with_value(text, key, |value| match value {
        Value::Array(array) => entries(array).flatten().map(str::to_owned).collect(),
        _ => Vec::new(),
    });
    texts.unwrap_or_default()
}

fn with_value<R>(text: &str, key: &[&str], look: impl FnOnce(&Value<'_>) -> R) -> Option<R> {
    let readable = unmarked(text);
    let parsed = parse_to_ast(&readable, &CollectOptions::default(), &strict()).ok()?;
    let mut value = &parsed.value?;
    for name in key {
        let Value::Object(object) = value else {
            return None;
        };
        let mut properties = object.properties.iter();
        let found = properties.find(|property| property.name.as_str() == *name)?;
        value = &found.value;
    }
    Some(look(value))
}

/// A piece of text and what stands there afterwards.
#[derive(Debug)]
struct Splice {
    at: Range<usize>,
    with: String,
}

fn insert(at: usize, with: impl Into<String>) -> Splice {
    Splice {
        at: at..at,
        with: with.into(),
    }
}

/// Last place first, so that none moves another.
fn splices(text: &str, key: &[&str], change: &Change<'_>) -> Result<Vec<Splice>, EditError> {
    let readable = unmarked(text);
    let parsed = parse_to_ast(&readable, &CollectOptions::default(), &strict());
    let parsed = parsed.map_err(|_| EditError::Syntax)?;
    let page = Page { text };
    let mut out = match &parsed.value {
        // Nothing, or only comments, which stay where they are.
        None => match page.fresh(key, change, "") {
            None => Vec::new(),
            Some(value) => {
                let lone = text.is_empty() || text.ends_with('\n');
                let gap = if lone { "" } else { page.newline() };
                vec![insert(
                    text.len(),
                    format!("{gap}{value}{}", page.newline()),
                )]
            }
        },
        Some(Value::Object(object)) => page.change(object, key, &[], change)?,
        Some(_) => {
            return Err(EditError::Type {
                key: "the file".to_owned(),
                expected: "an object",
            });
        }
    };
    out.sort_by_key(|splice| std::cmp::Reverse(splice.at.start));
    Ok(out)
}

struct Page<'a> {
    text: &'a str,
}

impl Page<'_> {
    fn change(
        &self,
        object: &Object<'_>,
        key: &[&str],
        above: &[&str],
        change: &Change<'_>,
    ) -> Result<Vec<Splice>, EditError> {
        let Some((name, rest)) = key.split_first() else {
            return Ok(Vec::new());
        };
        let mut path = above.to_vec();
        path.push(name);
        let mut properties = object.properties.iter();
        let found = properties.position(|property| property.name.as_str() == *name);
        let Some(place) = found else {
            let indent = self.indent_in(span_of(object), first_of(object));
            return Ok(match self.fresh(rest, change, &indent) {
                None => Vec::new(),
                Some(value) => {
                    let spans = object.properties.iter().map(span_of).collect::<Vec<_>>();
                    self.append(
                        &span_of(object),
                        &spans,
                        &format!("{}: {value}", json(name)),
                    )
                }
            });
        };
        let value = &object.properties[place].value;
        let wrong = |expected| EditError::Type {
            key: path.join("."),
            expected,
        };
        match (rest, value, change) {
            ([], _, Change::Unset) => {
                let spans = object.properties.iter().map(span_of).collect::<Vec<_>>();
                Ok(self.delete(&span_of(object), &spans, place))
            }
            ([], _, Change::Set(new)) => Ok(vec![Splice {
                at: span_of(value),
                with: (*new).to_owned(),
            }]),
            // `null` says nothing.
            (_, Value::NullKeyword(_), _) => {
                let indent = self.indent_in(span_of(object), first_of(object));
                let fresh = self.fresh(rest, change, &indent);
                Ok(fresh
                    .map(|with| Splice {
                        at: span_of(value),
                        with,
                    })
                    .into_iter()
                    .collect())
            }
            ([], Value::Array(array), Change::Add(entry)) => {
                if entries(array).any(|known| known == Some(*entry)) {
                    return Ok(Vec::new());
                }
                let spans = array.elements.iter().map(span_of).collect::<Vec<_>>();
                Ok(self.append(&span_of(array), &spans, &json(entry)))
            }
            ([], Value::Array(array), Change::Remove(entry)) => {
                let place = entries(array).position(|known| known == Some(*entry));
                let spans = array.elements.iter().map(span_of).collect::<Vec<_>>();
                Ok(place.map_or_else(Vec::new, |place| {
                    self.delete(&span_of(array), &spans, place)
                }))
            }
            ([], _, Change::Add(_) | Change::Remove(_)) => Err(wrong("a list")),
            (_, Value::Object(inner), _) => self.change(inner, rest, &path, change),
            _ => Err(wrong("an object")),
        }
    }

    /// A value for what is not there yet, or nothing if there is nothing to take away.
    fn fresh(&self, key: &[&str], change: &Change<'_>, indent: &str) -> Option<String> {
        let value = match change {
            Change::Remove(_) | Change::Unset => return None,
            Change::Add(entry) => format!("[{}]", json(entry)),
            Change::Set(value) => (*value).to_owned(),
        };
        let newline = self.newline();
        let unit = self.unit();
        let levels = key.len();
        let mut out = value;
        for (depth, name) in key.iter().enumerate().rev() {
            let outer = format!("{indent}{}", unit.repeat(depth));
            out = format!(
                "{{{newline}{outer}{unit}{}: {out}{newline}{outer}}}",
                json(name)
            );
        }
        debug_assert!(levels == 0 || out.starts_with('{'));
        Some(out)
    }

    /// Puts an entry behind the last one of a list or object.
    fn append(&self, whole: &Range<usize>, entries: &[Range<usize>], new: &str) -> Vec<Splice> {
        let newline = self.newline();
        let inside = whole.start + 1..whole.end - 1;
        let Some(last) = entries.last() else {
            let outer = self.indent_of_line(whole.start);
            let inner = format!("{outer}{}", self.unit());
            // A short list stays on its line.
            if new.starts_with('"') && !new.contains(newline) && self.is_list(whole) {
                if self.text[inside.clone()].trim().is_empty() {
                    return vec![Splice {
                        at: inside,
                        with: new.to_owned(),
                    }];
                }
                return vec![insert(
                    inside.start,
                    format!("{newline}{inner}{new}{newline}"),
                )];
            }
            if self.text[inside.clone()].trim().is_empty() {
                let with = format!("{newline}{inner}{new}{newline}{outer}");
                return vec![Splice { at: inside, with }];
            }
            return vec![insert(
                inside.start,
                format!("{newline}{inner}{new}{newline}"),
            )];
        };
        let comma = self.comma(last.end, inside.end);
        let behind = comma.map_or(last.end, |comma| comma + 1);
        let mut out = Vec::new();
        if comma.is_none() {
            out.push(insert(last.end, ","));
        }
        let own_line = self.starts_line(last.start);
        let (at, alone) = self.rest_of_line(behind, inside.end);
        let tail = if comma.is_some() { "," } else { "" };
        if own_line || alone {
            let indent = self.indent_of_line(last.start);
            out.push(insert(at, format!("{newline}{indent}{new}{tail}")));
        } else {
            out.push(insert(behind, format!(" {new}{tail}")));
        }
        // Two insertions at one place must stay in this order once they are applied backwards.
        if let [first, second] = &out[..]
            && first.at == second.at
        {
            return vec![insert(
                first.at.start,
                format!("{}{}", first.with, second.with),
            )];
        }
        out
    }

    /// Takes an entry away, with the comma that goes with it.
    fn delete(&self, whole: &Range<usize>, entries: &[Range<usize>], place: usize) -> Vec<Splice> {
        let entry = &entries[place];
        let end = whole.end - 1;
        let behind = self.comma(entry.end, end);
        let mut out = Vec::new();
        let mut cut = entry.clone();
        match behind {
            // Nothing but blanks between the two: one piece.
            Some(comma) if self.text[entry.end..comma].trim().is_empty() => cut.end = comma + 1,
            Some(comma) => out.push(Splice {
                at: comma..comma + 1,
                with: String::new(),
            }),
            None => {
                let before = place
                    .checked_sub(1)
                    .and_then(|before| self.comma(entries[before].end, entry.start));
                if let Some(comma) = before {
                    out.push(Splice {
                        at: comma..comma + 1,
                        with: String::new(),
                    });
                }
            }
        }
        let line = self.text[..cut.start].rfind('\n').map_or(0, |at| at + 1);
        let rest = self.text[cut.end..].find('\n').map(|at| cut.end + at);
        let blank = |range: Range<usize>| self.text[range].trim().is_empty();
        match rest {
            Some(rest) if blank(line..cut.start) && blank(cut.end..rest) && line > whole.start => {
                cut = line..rest + 1;
            }
            _ => {
                let after = &self.text[cut.end..end];
                let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
                // The gap to the next entry goes too, unless a comment is in it.
                if behind.is_some() && !after[blanks..].starts_with('/') {
                    cut.end += blanks;
                }
            }
        }
        out.push(Splice {
            at: cut,
            with: String::new(),
        });
        out
    }

    /// The comma behind an entry, comments skipped.
    fn comma(&self, from: usize, end: usize) -> Option<usize> {
        let mut at = from;
        loop {
            let rest = &self.text[at..end];
            let skipped = rest.trim_start();
            at += rest.len() - skipped.len();
            if skipped.starts_with(',') {
                return Some(at);
            }
            at += comment(skipped)?;
        }
    }

    /// Where the line of `from` ends, and whether only blanks and comments stand before that.
    fn rest_of_line(&self, from: usize, end: usize) -> (usize, bool) {
        let mut at = from;
        loop {
            let rest = &self.text[at..end];
            let skipped = rest.trim_start_matches([' ', '\t']);
            let here = at + rest.len() - skipped.len();
            if skipped.starts_with('\n') || skipped.starts_with("\r\n") {
                return (at, true);
            }
            match comment(skipped) {
                Some(length) if !skipped[..length].contains('\n') => at = here + length,
                _ => return (from, false),
            }
        }
    }

    fn starts_line(&self, at: usize) -> bool {
        let line = self.text[..at].rfind('\n');
        line.is_some_and(|line| self.text[line + 1..at].trim().is_empty())
    }

    fn indent_of_line(&self, at: usize) -> &str {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let text = &self.text[line..at];
        &text[..text.len() - text.trim_start_matches([' ', '\t']).len()]
    }

    /// The indentation that a new key of this object has.
    fn indent_in(&self, object: Range<usize>, first: Option<Range<usize>>) -> String {
        match first {
            Some(first) if self.starts_line(first.start) => {
                self.indent_of_line(first.start).to_owned()
            }
            Some(_) => self.indent_of_line(object.start).to_owned(),
            None => format!("{}{}", self.indent_of_line(object.start), self.unit()),
        }
    }

    fn is_list(&self, whole: &Range<usize>) -> bool {
        self.text[whole.start..].starts_with('[')
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// One step of indentation, as the file has it.
    fn unit(&self) -> String {
        let indented = self.text.lines().find_map(|line| {
            let trimmed = line.trim_start_matches([' ', '\t']);
            let indent = &line[..line.len() - trimmed.len()];
            (trimmed.starts_with('"') && !indent.is_empty()).then(|| indent.to_owned())
        });
        indented.unwrap_or_else(|| "  ".to_owned())
    }
}

fn first_of(object: &Object<'_>) -> Option<Range<usize>> {
    object.properties.first().map(span_of)
}

fn entries<'a>(array: &'a Array<'_>) -> impl Iterator<Item = Option<&'a str>> {
    array.elements.iter().map(|element| match element {
        Value::StringLit(literal) => Some(literal.value.as_ref()),
        _ => None,
    })
}

/// How long the comment is that a text starts with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        let line = text.split('\n').next().unwrap_or(text);
        return Some(line.strip_suffix('\r').unwrap_or(line).len());
    }
    let rest = text.strip_prefix("/*")?;
    rest.find("*/").map(|end| end + 4)
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
