//! The `verify` rules: build and test, but change nothing in the project.
//!
//! Owns the lists of commands that change things. What a command line names as written is found by
//! [`write_targets`]; this adds the commands that change what they do not name, and everything whose
//! name or code is computed, because here an allowance must be certain.
//!
//! Allowed on purpose: installs that tests need (`npm ci`, `pip install`), `kill` (a test may stop its
//! own server), filters, builds and test runners.

mod git;
mod lists;

use crate::interpreters::{self, Language, Program};
use crate::{Code, Command, Ir, Verdict, Word, write_targets};
use git::git_mutates;
pub(crate) use git::git_only_reads;
use lists::{MARKERS, MUTATORS};

const REPORT: &str = "leave the change to the one who applies it, and report what should be done";

pub(crate) fn decide(ir: &Ir) -> Verdict {
    for command in &ir.commands {
        if let Some(message) = mutates(command) {
            return Verdict::deny(Code::MutatingCommand, command.span, message, REPORT);
        }
    }
    let targets = write_targets(ir);
    if let Some(first) = targets.first() {
        let mut names: Vec<_> = targets
            .iter()
            .map(|target| target.path.as_deref().unwrap_or("a computed path"))
            .collect();
        names.dedup();
        let more = names.len().saturating_sub(3);
        names.truncate(3);
        let mut message = format!("this would write to {}", names.join(", "));
        if more > 0 {
            message = format!("{message} and {more} more");
        }
        return Verdict::deny(Code::WriteTarget, first.span, message, REPORT);
    }
    for command in &ir.commands {
        if let Some((_, Program::Inline(code))) = interpreters::program(command)
            && let Some(marker) = inline_mutation(command, code)
        {
            return Verdict::deny(
                Code::InlineInterpreter,
                code.span,
                format!(
                    "the inline program uses `{marker}`, which can change files or run commands"
                ),
                REPORT,
            );
        }
    }
    if let Some(span) = ir.first(Code::ComputedCode) {
        return Verdict::deny(
            Code::ComputedCode,
            span,
            "which code runs here is only known when it runs",
            "write the commands out instead of building them from text",
        );
    }
    if let Some(span) = ir.first(Code::ComputedCommand) {
        return Verdict::deny(
            Code::ComputedCommand,
            span,
            "which command runs here is only known when it runs",
            "write the name of the command out",
        );
    }
    Verdict::Allow
}

fn mutates(command: &Command) -> Option<String> {
    let name = command.name()?;
    let words = command.words.get(1..).unwrap_or_default();
    if name == "git" {
        return git_mutates(words);
    }
    if name == "sudo"
        && words
            .iter()
            .any(|word| matches!(word.literal(), Some("-e" | "--edit")))
    {
        return Some("`sudo -e` edits files".to_owned());
    }
    let at = words
        .iter()
        .position(|word| !word.prefix().starts_with(['-', '+']));
    // An option like `-Z$x` may bring a subcommand of its own.
    let sure = words.iter().take(at.unwrap_or(0)).all(Word::is_one_word);
    let subcommand = at
        .and_then(|at| words.get(at))
        .map(|word| word.literal().filter(|_| sure));
    for mutator in MUTATORS.iter().filter(|mutator| mutator.name == name) {
        let excused = words.iter().any(|word| {
            word.literal()
                .is_some_and(|text| mutator.unless.contains(&text))
        });
        if excused {
            continue;
        }
        if mutator.subcommands.is_empty() {
            return Some(format!("`{name}` changes the machine"));
        }
        match subcommand {
            Some(Some(sub)) if mutator.subcommands.contains(&sub) => {
                return Some(format!("`{name} {sub}` changes the project"));
            }
            Some(None) => {
                return Some(format!(
                    "which subcommand of `{name}` runs is only known when it runs"
                ));
            }
            _ => {}
        }
    }
    package_change(name, words)
}

/// Subcommands that change the project only with some operands or options.
fn package_change(name: &str, words: &[Word]) -> Option<String> {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.prefix()));
    let mut operands = words.iter().filter(|word| !word.prefix().starts_with('-'));
    let sub = operands.next()?.literal()?;
    let operand = operands.next();
    let changes = match (name, sub) {
        ("npm", "install" | "i" | "add" | "in" | "ins" | "isntall") => {
            operand.is_some() && !has(&["--no-save", "-g", "--global", "--location=global"])
        }
        ("npm", "audit") => operand.is_some_and(|word| word.literal() == Some("fix")),
        ("npm", "pkg" | "config" | "set") => {
            operand.is_none_or(|word| !matches!(word.literal(), Some("get" | "list" | "ls")))
        }
        ("bun" | "pnpm", "install" | "i") => operand.is_some(),
        ("cargo", "clippy") => has(&["--fix"]),
        ("go", "mod") => operand.is_none_or(|word| {
            !matches!(
                word.literal(),
                Some("download" | "graph" | "verify" | "why")
            )
        }),
        ("go", "env") => has(&["-w", "-u"]),
        ("ruff", "format") => !has(&["--check", "--diff"]),
        ("ruff", _) => has(&["--fix", "--fix-only"]),
        _ => false,
    };
    changes.then(|| format!("`{name} {sub}` changes the project here"))
}

/// The first such word in an inline program.
fn inline_mutation(command: &Command, code: &Word) -> Option<&'static str> {
    let language = interpreters::language(command.name()?)?;
    let (_, markers) = MARKERS.iter().find(|(of, _)| *of == language)?;
    if !code.holes.is_empty() && language != Language::Awk {
        return Some("text that is only known when it runs");
    }
    markers
        .iter()
        .copied()
        .find(|marker| code.text.contains(marker))
}
