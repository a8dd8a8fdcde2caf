//! How a row of the table reads a command line.

use super::table::{Model, Targets};
use super::{WriteTarget, git, special};
use crate::lower::options::{self, Walk};
use crate::{Command, HoleKind, Word};

/// Adds what `model` says `command` writes.
pub(super) fn apply(
    model: &Model,
    command: &Command,
    words: &[Word],
    targets: &mut Vec<WriteTarget>,
) {
    let line = Line::read(model, words);
    if model.unless.iter().any(|option| line.has(option)) {
        return;
    }
    let operands = line.operands.as_slice();
    match model.targets {
        Targets::All => all(operands, targets),
        Targets::AllButFirst { unless } => {
            let skip = usize::from(!unless.iter().any(|option| line.has(option)));
            all(operands.get(skip..).unwrap_or_default(), targets);
        }
        Targets::First => all(operands.get(..1).unwrap_or_default(), targets),
        Targets::Second => all(operands.get(1..2).unwrap_or_default(), targets),
        Targets::Destination => destination(&line, targets),
        Targets::Unknown => targets.push(WriteTarget::computed(command.span)),
        Targets::UnknownAnd => {
            targets.push(WriteTarget::computed(command.span));
            all(operands, targets);
        }
        Targets::Options(names) => line.values(names, targets),
        Targets::IfOption { option } => {
            if line.has(option) {
                all(operands, targets);
            }
        }
        Targets::Key(prefix) => {
            for word in words {
                if let Some(path) = word.prefix().strip_prefix(prefix) {
                    let path = word.holes.is_empty().then(|| path.to_owned());
                    targets.push(WriteTarget {
                        span: word.span,
                        path,
                    });
                }
            }
        }
        Targets::Sed => special::sed(words, targets),
        Targets::InPlace => special::in_place(words, targets),
        Targets::Awk => special::awk(words, targets),
        Targets::Find => special::find(words, targets),
        Targets::Curl => special::curl(command, words, targets),
        Targets::Tar => special::tar(command, words, targets),
        Targets::Git => git::targets(command, words, targets),
    }
}

fn all(operands: &[&Word], targets: &mut Vec<WriteTarget>) {
    targets.extend(operands.iter().map(|word| WriteTarget::of(word)));
}

fn destination(line: &Line<'_>, targets: &mut Vec<WriteTarget>) {
    let mut named = Vec::new();
    line.values(&["t", "target-directory"], &mut named);
    if named.is_empty() {
        targets.extend(line.operands.last().map(|word| WriteTarget::of(word)));
    } else {
        targets.append(&mut named);
    }
}

/// A command line, options and operands apart, in any order.
struct Line<'w> {
    walks: Vec<Walk<'w>>,
    operands: Vec<&'w Word>,
}

impl<'w> Line<'w> {
    fn read(model: &Model, words: &'w [Word]) -> Self {
        let mut line = Self {
            walks: Vec::new(),
            operands: Vec::new(),
        };
        let mut rest = words;
        let mut ended = words.iter().position(|word| word.literal() == Some("--"));
        while !rest.is_empty() {
            let walk = options::walk(rest, model.options);
            let at = walk.operands;
            line.walks.push(walk);
            let ends_here = ended.is_some_and(|ended| ended < at);
            ended = ended.map(|ended| ended.wrapping_sub(at));
            rest = rest.get(at..).unwrap_or_default();
            if ends_here {
                line.operands.extend(rest);
                return line;
            }
            if let Some((operand, others)) = rest.split_first() {
                // `tee >(cat)` writes to a command, not to a file.
                let command = operand.text.is_empty()
                    && operand
                        .holes
                        .iter()
                        .any(|hole| hole.kind == HoleKind::ProcessSubstitution);
                line.operands.extend((!command).then_some(operand));
                rest = others;
                ended = ended.map(|ended| ended.wrapping_sub(1));
            }
        }
        line
    }

    fn has(&self, name: &str) -> bool {
        self.walks.iter().any(|walk| walk.has(name))
    }

    fn values(&self, names: &[&str], targets: &mut Vec<WriteTarget>) {
        for found in self
            .walks
            .iter()
            .flat_map(|walk| &walk.found)
            .filter(|found| names.contains(&found.name))
        {
            if let Some((text, word)) = found.value {
                let path = word.holes.is_empty().then(|| text.to_owned());
                targets.push(WriteTarget {
                    span: word.span,
                    path,
                });
            }
        }
    }
}
