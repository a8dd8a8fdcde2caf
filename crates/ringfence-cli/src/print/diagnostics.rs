//! Mistakes in settings, with the line shown and the place underlined.

use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Origin as Location, Renderer, Snippet};
use ringfence::load::Mistake;
use ringfence_core::origin::{Origin, Source};
use ringfence_core::problem::{Problem, Severity};
use ringfence_core::text::{is_hidden, printable_path};
use serde::Serialize;

use crate::output::{self, Colour};

/// More than this many are not read by anybody.
const MOST: usize = 100;
/// A line longer than this is not shown, and a message is cut: nobody wrote them by hand.
const LONGEST: usize = 400;

/// All mistakes, one after the other, and how many there are.
pub(crate) fn render(mistakes: &[Mistake<'_>], colour: Colour) -> String {
    let renderer = match colour {
        Colour::Some => Renderer::styled(),
        Colour::None => Renderer::plain(),
    };
    let mut out = String::new();
    for mistake in mistakes.iter().take(MOST) {
        out.push_str(&render_one(mistake, &renderer));
        out.push_str("\n\n");
    }
    let errors = mistakes
        .iter()
        .filter(|mistake| mistake.severity() == Severity::Error)
        .count();
    if let Some(more) = mistakes.len().checked_sub(MOST).filter(|more| *more > 0) {
        let _ = writeln!(out, "… and {more} more");
    }
    let wrong = where_wrong(mistakes);
    let _ = match (errors, &*wrong) {
        (0, _) => Ok(()),
        (1, ["flags"]) => writeln!(out, "error: nothing starts with a mistake in a flag"),
        (1, ["variables"]) => writeln!(out, "error: nothing starts with a mistake in a variable"),
        (1, _) => writeln!(out, "error: nothing starts with a mistake in the settings"),
        (many, _) => writeln!(
            out,
            "error: nothing starts with {many} mistakes in the {}",
            wrong.join(" and the ")
        ),
    };
    out
}

/// What the errors are in.
fn where_wrong(mistakes: &[Mistake<'_>]) -> Vec<&'static str> {
    let errors = mistakes
        .iter()
        .filter(|mistake| mistake.severity() == Severity::Error);
    let places = errors.map(|mistake| match mistake {
        Mistake::Elsewhere(complaint) => match complaint.origin {
            Origin::Flag { .. } => "flags",
            Origin::Environment { .. } => "variables",
            _ => "settings",
        },
        _ => "settings",
    });
    let places: std::collections::BTreeSet<_> = places.collect();
    places.into_iter().collect()
}

fn render_one(mistake: &Mistake<'_>, renderer: &Renderer) -> String {
    match mistake {
        Mistake::Written { source, problem } => render_written(source, problem, renderer),
        Mistake::Unreadable { path, error } => {
            let title = format!("{} cannot be read", printable_path(path));
            let group = Level::ERROR
                .primary_title(title)
                .element(Level::NOTE.message(visible(&error.to_string())))
                .element(Level::HELP.message(
                    "let it be a file that you can read, or move it away: nobody can say what it forbids",
                ));
            renderer.render(&[group])
        }
        Mistake::Elsewhere(complaint) => {
            let group = Level::ERROR
                .primary_title(visible(&complaint.message))
                .element(Level::NOTE.message(from(&complaint.origin)));
            let group = match &complaint.help {
                Some(help) => group.element(Level::HELP.message(visible(help))),
                None => group,
            };
            renderer.render(&[group])
        }
        other => visible(&format!("error: {other:?}")),
    }
}

fn from(origin: &Origin) -> String {
    if let Origin::BuiltIn(list) = origin {
        format!("this is the {list}")
    } else {
        format!("given by {origin}")
    }
}

fn render_written(source: &Source, problem: &Problem, renderer: &Renderer) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    // One line is shown; a value that goes on for longer is underlined to its end.
    let (line, column) = source.position(problem.span.start);
    let start = source.line_start(line).unwrap_or_default();
    let text = source.line(line).unwrap_or_default();
    let within = |offset: usize| offset.saturating_sub(start).min(text.len());
    let span = within(problem.span.start)..within(problem.span.end);
    let path = printable_path(source.path());
    let number = usize::try_from(line).unwrap_or(usize::MAX);
    let title = level.primary_title(visible(&problem.message));
    let group = if text.len() > LONGEST {
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        let place = Location::path(path).line(number).char_column(column);
        title
            .element(place)
            .element(Level::NOTE.message(visible(&problem.label)))
    } else {
        let (text, span) = visible_line(text, &span);
        let label = visible(&problem.label);
        let snippet = Snippet::source(text).line_start(number).path(path);
        title.element(snippet.annotation(AnnotationKind::Primary.span(span).label(label)))
    };
    let group = match &problem.help {
        Some(help) => group.element(Level::HELP.message(visible(help))),
        None => group,
    };
    renderer.render(&[group])
}

/// A message fit to be shown: nothing in it that a terminal would obey, and not too long.
fn visible(message: &str) -> String {
    let end = message.char_indices().nth(LONGEST);
    let cut = end.map(|(end, _)| format!("{}…", &message[..end]));
    let message = cut.as_deref().unwrap_or(message);
    output::visible(message).replace('\n', "\\n")
}

/// A line of a file with hidden characters replaced, and the span where it then is.
fn visible_line(line: &str, span: &Range<usize>) -> (String, Range<usize>) {
    let mut out = String::with_capacity(line.len());
    let mut moved = usize::MAX..usize::MAX;
    for (offset, character) in line.char_indices() {
        if offset >= span.start && moved.start == usize::MAX {
            moved.start = out.len();
        }
        if offset >= span.end && moved.end == usize::MAX {
            moved.end = out.len();
        }
        match character {
            '\t' => out.push('\t'),
            hidden if is_hidden(hidden) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(hidden));
            }
            plain => out.push(plain),
        }
    }
    let start = moved.start.min(out.len());
    let end = moved.end.min(out.len());
    (out, start..end.max(start))
}

/// One mistake as programs read it.
#[derive(Debug, Serialize)]
pub(crate) struct Record<'a> {
    severity: Severity,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    origin: Where<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Where<'a> {
    File { path: std::borrow::Cow<'a, str> },
    Place(Origin),
    Said(&'a Origin),
}

impl<'a> Record<'a> {
    /// The same mistake as data.
    pub(crate) fn new(mistake: &'a Mistake<'_>) -> Option<Self> {
        Some(match mistake {
            Mistake::Written { source, problem } => Self {
                severity: problem.severity,
                message: problem.message.clone(),
                label: Some(&problem.label),
                help: problem.help.as_deref(),
                origin: Where::Place(source.origin(problem.span.start)),
            },
            Mistake::Unreadable { path, error } => Self {
                severity: Severity::Error,
                message: error.to_string(),
                label: None,
                help: None,
                origin: Where::File {
                    path: path.to_string_lossy(),
                },
            },
            Mistake::Elsewhere(complaint) => Self {
                severity: Severity::Error,
                message: complaint.message.clone(),
                label: None,
                help: complaint.help.as_deref(),
                origin: Where::Said(&complaint.origin),
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_core::origin::Layer;

    fn shown(text: &str, span: Range<usize>) -> String {
        let source = Source::new(Layer::User, "/s\u{1b}.json", text);
        let problem = Problem::error(span, "a \u{1b}[31mmessage", "a \u{202e}label");
        render(
            &[Mistake::Written {
                source: &source,
                problem,
            }],
            Colour::None,
        )
    }

    #[test]
    fn nothing_a_terminal_obeys_gets_through() {
        let out = shown("{ \"\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{200b}\": 1 }", 2..18);
        assert!(
            !out.chars().any(|c| is_hidden(c) && c != '\n'),
            "{}",
            out.escape_debug()
        );
        assert!(out.contains("\\u{1b}]0;x"), "{out}");
    }

    #[test]
    fn the_caret_stays_under_its_word_when_characters_before_it_are_replaced() {
        let (line, span) = visible_line("\u{1b}\u{1b}abc", &(2..5));
        assert_eq!(&line[span], "abc");
        let (line, span) = visible_line("abc", &(3..3));
        assert_eq!((line.as_str(), span), ("abc", 3..3));
    }

    #[test]
    fn any_span_of_any_text_can_be_shown() {
        let text = "{\n\t\"ö\": \"漢字\",\r\n}\n";
        for start in 0..text.len() + 3 {
            for end in start..text.len() + 5 {
                shown(text, start..end);
            }
        }
    }
}
