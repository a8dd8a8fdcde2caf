//! What the shell policy says of a command, for people.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use ringfence_core::text::{is_hidden, printable};
use ringfence_shell::{Code, Judgement, RuleSet, Span};

use crate::output::Colour;

/// An objection with the text, a caret under its place and a way round it; nothing if there is none.
pub(crate) fn objection(
    judgement: &Judgement,
    rules: RuleSet,
    name: &str,
    text: &str,
    colour: Colour,
) -> Option<String> {
    let (code, span, message, instead) = parts(judgement)?;
    let renderer = match colour {
        Colour::Some => Renderer::styled(),
        Colour::None => Renderer::plain(),
    };
    let title = Level::ERROR.primary_title(title(judgement, rules, code, message));
    let help = Level::HELP.message(printable(instead));
    let place = [span.start, span.end].map(|offset| usize::try_from(offset).unwrap_or(text.len()));
    // Only where every character is what it seems can a place be pointed at.
    let seems = |character: char| matches!(character, '\n' | '\t') || !is_hidden(character);
    let group = if text.chars().all(seems) {
        let here = AnnotationKind::Primary
            .span(place[0]..place[1])
            .label("here");
        let snippet = Snippet::source(text).path(name).annotation(here);
        title.element(snippet).element(help)
    } else {
        title.element(help)
    };
    Some(format!("{}\n", renderer.render(&[group])))
}

/// The same in one line, for records.
pub(crate) fn line(judgement: &Judgement, rules: RuleSet) -> Option<String> {
    let (code, _, message, instead) = parts(judgement)?;
    let title = title(judgement, rules, code, message);
    Some(format!("{title}; instead: {}", printable(instead)))
}

fn title(judgement: &Judgement, rules: RuleSet, code: Code, message: &str) -> String {
    let who = match (judgement, code) {
        (Judgement::Ask { .. }, _) => "not without asking".to_owned(),
        (_, Code::UserRule) => "denied by a rule of the settings".to_owned(),
        _ => format!("denied by the {rules} rules"),
    };
    format!("{who}: {} ({code})", printable(message))
}

fn parts(judgement: &Judgement) -> Option<(Code, Span, &str, &str)> {
    match judgement {
        Judgement::Allow { .. } => None,
        Judgement::Ask {
            code,
            span,
            message,
            instead,
            ..
        }
        | Judgement::Deny {
            code,
            span,
            message,
            instead,
        } => Some((*code, *span, message, instead)),
    }
}
