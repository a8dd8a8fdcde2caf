//! Finds interpreters whose code comes from where nothing can read it first.

use std::collections::HashMap;

use super::shells::shell_line;
use crate::interpreters::{self, Language, Program};
use crate::parse::Builder;
use crate::{Block, BlockKind, Code, Command, Redirection, RedirectionKind};

/// Where standard input comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Input {
    /// Whoever started the shell.
    Inherited,
    /// A pipe, a file, a here-document or a here-string of this text.
    Redirected,
}

/// Marks every interpreter that reads its code from redirected input.
pub(super) fn find_opaque(out: &mut Builder) {
    let mut found = Vec::new();
    let mut names: Option<Names<'_>> = None;
    for (index, command) in out.commands.iter().enumerate() {
        let opaque = match code_from(command) {
            Source::Elsewhere => false,
            Source::Substitution => true,
            Source::StandardInput => {
                let names = names.get_or_insert_with(|| Names::of(out));
                input(out, names, index) == Input::Redirected
            }
        };
        if opaque {
            found.push(command.span);
        }
    }
    for span in found {
        out.find(Code::OpaqueInterpreter, span);
    }
}

enum Source {
    Elsewhere,
    StandardInput,
    Substitution,
}

fn code_from(command: &Command) -> Source {
    let Some(name) = command.name() else {
        return Source::Elsewhere;
    };
    let words = command.words.get(1..).unwrap_or_default();
    let program = match interpreters::language(name) {
        None => return Source::Elsewhere,
        Some(Language::Bash | Language::OtherShell | Language::Shell) => {
            let line = shell_line(words);
            if line.code {
                return Source::Elsewhere;
            }
            match words.get(line.operands) {
                Some(word) if !line.stdin => interpreters::operand(word),
                _ => Program::StandardInput,
            }
        }
        Some(_) => match interpreters::program(command) {
            Some((_, program)) => program,
            None => return Source::Elsewhere,
        },
    };
    match program {
        Program::Inline(_) | Program::Named => Source::Elsewhere,
        Program::StandardInput => Source::StandardInput,
        Program::Substituted => Source::Substitution,
    }
}

/// Which commands call which function, and whether the shell's own input is replaced.
struct Names<'o> {
    callers: HashMap<&'o str, Vec<usize>>,
    replaced: bool,
}

impl<'o> Names<'o> {
    fn of(out: &'o Builder) -> Self {
        let mut callers: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut replaced = false;
        for (index, command) in out.commands.iter().enumerate() {
            if let Some(name) = command.name() {
                callers.entry(name).or_default().push(index);
                // `exec < file` is for everything that follows.
                replaced |= name == "exec" && redirects_input(&command.redirections);
            }
        }
        Self { callers, replaced }
    }
}

/// How many steps outward are looked at; deeper than any nesting that parses, for each of a few calls.
const MAX_STEPS: u32 = 512;

/// How many callers of a function are looked at before it counts as fed.
const MAX_CALLERS: usize = 64;

fn input(out: &Builder, names: &Names<'_>, index: usize) -> Input {
    if names.replaced {
        return Input::Redirected;
    }
    let mut steps = 0;
    let mut waiting = vec![index];
    let mut seen = Vec::new();
    while let Some(index) = waiting.pop() {
        let Some(mut command) = out.commands.get(index) else {
            return Input::Redirected;
        };
        // The command that started it, and its redirections, come first.
        loop {
            steps += 1;
            if steps > MAX_STEPS || command.piped || redirects_input(&command.redirections) {
                return Input::Redirected;
            }
            let Some(starter) = command
                .started_by
                .and_then(|by| out.commands.get(by as usize))
            else {
                break;
            };
            command = starter;
        }
        let mut block = out.blocks.get(command.block as usize);
        while let Some(around) = block {
            steps += 1;
            if steps > MAX_STEPS || around.piped || redirects_input(&around.redirections) {
                return Input::Redirected;
            }
            if around.kind == BlockKind::Function {
                let callers = around
                    .name
                    .as_deref()
                    .and_then(|name| names.callers.get(name));
                for caller in callers.into_iter().flatten() {
                    if seen.len() >= MAX_CALLERS {
                        return Input::Redirected;
                    }
                    if !seen.contains(caller) {
                        seen.push(*caller);
                        waiting.push(*caller);
                    }
                }
                // Its own place in the text says nothing about its input.
                break;
            }
            if let Some(starter) = around.started_by {
                waiting.push(starter as usize);
                break;
            }
            block = outer(out, around);
        }
    }
    Input::Inherited
}

fn outer<'o>(out: &'o Builder, block: &Block) -> Option<&'o Block> {
    out.blocks.get(block.within? as usize)
}

/// Whether standard input is replaced by something of this text.
fn redirects_input(redirections: &[Redirection]) -> bool {
    redirections.iter().any(|redirection| {
        let reads = match redirection.kind {
            RedirectionKind::DuplicateInput
            | RedirectionKind::Heredoc
            | RedirectionKind::HereString
            | RedirectionKind::Read
            | RedirectionKind::ReadWrite => redirection.descriptor.is_none_or(|number| number == 0),
            RedirectionKind::Append | RedirectionKind::Duplicate | RedirectionKind::Write => {
                redirection.descriptor == Some(0)
            }
        };
        let file = !matches!(
            redirection.kind,
            RedirectionKind::Heredoc | RedirectionKind::HereString
        );
        let nothing = file
            && matches!(
                redirection.target.literal(),
                Some("-" | "/dev/null" | "/dev/tty" | "0")
            );
        reads && !nothing
    })
}
