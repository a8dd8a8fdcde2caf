//! `ringfence check`.

use std::fmt::Write as _;
use std::io::Read as _;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use ringfence_core::text::{is_hidden, printable, printable_path};
use ringfence_shell::{Code, Command, Ir, MAX_TEXT, Verdict, WriteTarget, decide, write_targets};
use serde::Serialize;

use crate::args::Check;
use crate::exit::Exit;
use crate::output::{Colour, answer, answer_exactly, answer_json, complain};

/// The answer, for programs.
#[derive(Serialize)]
struct Record<'a> {
    version: u32,
    rules: &'static str,
    #[serde(flatten)]
    verdict: &'a Verdict,
    codes: Vec<Code>,
    commands: &'a [Command],
    write_targets: &'a [WriteTarget],
}

pub(super) fn run(arguments: &Check) -> Result<Exit, Exit> {
    let text = text(arguments)?;
    let ir = Ir::from_bash(&text);
    let verdict = decide(&ir, arguments.rules);
    let targets = write_targets(&ir);
    let written = if arguments.json {
        answer_json(&Record {
            version: 1,
            rules: arguments.rules.name(),
            verdict: &verdict,
            codes: ir.codes(),
            commands: &ir.commands,
            write_targets: &targets,
        })
    } else {
        if arguments.explain {
            answer(&listing(&ir, &targets));
        }
        person(&text, arguments, &verdict)
    };
    if written == Exit::Success && !verdict.is_allow() {
        return Ok(Exit::No);
    }
    Ok(written)
}

/// The text to judge. What is not text, or too long, is judged by its beginning alone: it is
/// refused for that.
fn text(arguments: &Check) -> Result<String, Exit> {
    if let Some(text) = &arguments.text {
        return Ok(text.clone());
    }
    let file = arguments.file.as_deref().unwrap_or_else(|| "-".as_ref());
    let limit = u64::try_from(MAX_TEXT)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let mut bytes = Vec::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        complain(
            &format!("cannot read {}: {error}", printable_path(file)),
            None,
        );
        Exit::Usage
    })?;
    String::from_utf8(bytes).map_err(|_| {
        let shown = printable_path(file);
        complain(
            &format!("{shown} is not UTF-8, so nobody can say what it would run"),
            None,
        );
        Exit::No
    })
}

fn person(text: &str, arguments: &Check, verdict: &Verdict) -> Exit {
    let rules = arguments.rules.name();
    let Verdict::Deny {
        code,
        span,
        message,
        instead,
    } = verdict
    else {
        return answer(&format!("allowed by the {rules} rules\n"));
    };
    let renderer = match Colour::of_answers() {
        Colour::Some => Renderer::styled(),
        Colour::None => Renderer::plain(),
    };
    let name = arguments
        .file
        .as_deref()
        .map_or_else(|| "command".to_owned(), printable_path);
    let title = format!(
        "denied by the {rules} rules: {} ({code})",
        printable(message)
    );
    let title = Level::ERROR.primary_title(title);
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
    answer_exactly(&format!("{}\n", renderer.render(&[group])))
}

/// Everything that could run, and what it would write.
fn listing(ir: &Ir, targets: &[WriteTarget]) -> String {
    let mut out = String::from("could run\n");
    for command in &ir.commands {
        let words: Vec<String> = command
            .words
            .iter()
            .map(|word| {
                word.literal()
                    .map_or_else(|| "<computed>".to_owned(), printable)
            })
            .collect();
        let _ = writeln!(
            out,
            "  {}..{}  {}",
            command.span.start,
            command.span.end,
            words.join(" ")
        );
    }
    out.push_str("would write\n");
    for target in targets {
        let path = target
            .path
            .as_deref()
            .map_or_else(|| "<computed>".to_owned(), printable);
        let _ = writeln!(out, "  {}..{}  {path}", target.span.start, target.span.end);
    }
    let codes: Vec<String> = ir.codes().iter().map(ToString::to_string).collect();
    let _ = writeln!(out, "codes\n  {}", codes.join(" "));
    out
}
