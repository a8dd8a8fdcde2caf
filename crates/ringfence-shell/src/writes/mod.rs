//! The files that a text would create, change or delete.
//!
//! Owns the command models: one row per command, each with its own examples, which the tests run. A
//! path is reported as it is written, or as computed when it cannot be known from the text. Builds and
//! tests write too, where they please; they are not modelled, and the sandbox is what holds them.

pub(crate) mod git;
mod models;
mod special;
mod table;

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::index::{self, Index};
use crate::{Command, HoleKind, Ir, Redirection, Span, Word, device};

static INDEX: LazyLock<Index> =
    LazyLock::new(|| index::of(table::MODELS.iter().map(|model| model.names)));

/// A file that would be written to.
#[derive(Clone, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WriteTarget {
    /// The word that names it, or the command when no word does.
    pub span: Span,
    /// The path as written; absent when it is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl WriteTarget {
    fn computed(span: Span) -> Self {
        Self { span, path: None }
    }

    fn of(word: &Word) -> Self {
        Self {
            span: word.span,
            path: word.literal().map(str::to_owned),
        }
    }
}

/// Every file that the commands and redirections of `ir` would write to, harmless devices left out, in
/// order of place, each once.
pub fn write_targets(ir: &Ir) -> Vec<WriteTarget> {
    let mut targets = Vec::new();
    for redirection in ir.blocks.iter().flat_map(|block| &block.redirections) {
        redirected(redirection, &mut targets);
    }
    for command in &ir.commands {
        for redirection in &command.redirections {
            redirected(redirection, &mut targets);
        }
        of_command(command, &mut targets);
    }
    targets.retain(|target| {
        !target
            .path
            .as_deref()
            .is_some_and(|path| path.is_empty() || device::is_harmless(path))
    });
    targets.sort_by(|a, b| (a.span, &a.path).cmp(&(b.span, &b.path)));
    targets.dedup();
    targets
}

fn redirected(redirection: &Redirection, targets: &mut Vec<WriteTarget>) {
    let substituted = redirection
        .target
        .holes
        .iter()
        .any(|hole| hole.kind == HoleKind::ProcessSubstitution);
    if redirection.kind.writes() && !substituted {
        targets.push(WriteTarget::of(&redirection.target));
    }
}

fn of_command(command: &Command, targets: &mut Vec<WriteTarget>) {
    let Some(name) = command.name() else { return };
    let words = command.words.get(1..).unwrap_or_default();
    for model in index::rows(&INDEX, table::MODELS, name) {
        models::apply(model, command, words, targets);
    }
}

#[cfg(test)]
mod tests {
    use super::{table, write_targets};
    use crate::Ir;

    #[test]
    fn every_row_of_the_table_does_what_its_examples_say() {
        let mut wrong = Vec::new();
        for model in table::MODELS {
            assert!(
                !model.examples.is_empty(),
                "{:?} has no example",
                model.names
            );
            for (text, expected) in model.examples {
                let ir = Ir::from_bash(text);
                assert_eq!(ir.refusal, None, "{text}");
                let targets = write_targets(&ir);
                let found: Vec<_> = targets
                    .iter()
                    .map(|target| target.path.as_deref().unwrap_or("?"))
                    .collect();
                if found != *expected {
                    wrong.push(format!("{text}: {found:?}, not {expected:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn wrappers_and_constructs_do_not_hide_targets() {
        for text in [
            "sudo -u bob rm f",
            "env -u A nice -n 5 rm f",
            "timeout -s KILL 5 rm f",
            "echo $(rm f)",
            "cat <(rm f)",
            "f() { rm f; }",
            "bash -c 'rm f'",
            "eval 'rm f'",
            "if true; then rm f; fi",
            "r\\m f",
            "$'\\x72m' f",
            "/bin/rm f",
            "trap 'rm f' EXIT",
        ] {
            let paths: Vec<_> = write_targets(&Ir::from_bash(text))
                .into_iter()
                .map(|target| target.path)
                .collect();
            assert_eq!(paths, [Some("f".to_owned())], "{text}");
        }
    }
}
