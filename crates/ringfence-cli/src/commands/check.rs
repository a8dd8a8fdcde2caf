//! `ringfence check`.

use std::io::Read as _;

use ringfence_core::settings::Kind;
use ringfence_core::text::printable_path;
use ringfence_shell::{Code, Command, Ir, Judgement, MAX_TEXT, WriteTarget, judge, write_targets};
use serde::Serialize;

use crate::args::Check;
use crate::exit::Exit;
use crate::load::shell_rules;
use crate::output::{Colour, answer, answer_exactly, answer_json, complain};
use crate::print::{ir, judgement};

/// The answer, for programs.
#[derive(Serialize)]
struct Record<'a> {
    version: u32,
    rules: &'static str,
    #[serde(flatten)]
    judgement: &'a Judgement,
    codes: Vec<Code>,
    commands: &'a [Command],
    write_targets: &'a [WriteTarget],
}

pub(super) fn run(arguments: &Check) -> Result<Exit, Exit> {
    let text = text(arguments)?;
    let rules = shell_rules(Kind::Tool, None)?;
    let read = Ir::from_bash(&text);
    let judged = judge(&read, arguments.rules, &rules);
    let targets = write_targets(&read);
    let written = if arguments.json {
        answer_json(&Record {
            version: 1,
            rules: arguments.rules.name(),
            judgement: &judged,
            codes: read.codes(),
            commands: &read.commands,
            write_targets: &targets,
        })
    } else {
        if arguments.explain {
            answer(&ir::tree(&read, &targets));
        }
        person(&text, arguments, &judged)
    };
    if written == Exit::Success && !judged.is_allow() {
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

fn person(text: &str, arguments: &Check, judged: &Judgement) -> Exit {
    let rules = arguments.rules;
    let name = arguments
        .file
        .as_deref()
        .map_or_else(|| "command".to_owned(), printable_path);
    match judgement::objection(judged, rules, &name, text, Colour::of_answers()) {
        Some(objection) => answer_exactly(&objection),
        None => answer(&format!("allowed by the {rules} rules\n")),
    }
}
