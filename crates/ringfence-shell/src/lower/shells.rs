//! Shells: where on their command line the code is.

use super::Lowering;
use super::code::OnError;
use crate::interpreters::Language;
use crate::parse::Reader;
use crate::{Code, Command, Refusal, Word};

impl Lowering<'_> {
    pub(super) fn shell(
        &mut self,
        index: usize,
        command: &Command,
        words: &[Word],
        language: Language,
    ) -> Result<(), Refusal> {
        let line = shell_line(words);
        if line.startup {
            self.out.find(Code::ComputedCode, command.span);
        }
        if line.unsure {
            self.out.find(Code::ComputedCommand, command.span);
        }
        if !line.code {
            return Ok(());
        }
        if language == Language::OtherShell {
            self.out.find(Code::ComputedCode, command.span);
        }
        let code = words
            .get(line.operands..line.operands + 1)
            .unwrap_or_default();
        let (reader, on_error) = match language {
            Language::Bash => (Reader::Bash, OnError::Refuse),
            Language::Awk
            | Language::JavaScript
            | Language::Other
            | Language::Perl
            | Language::Php
            | Language::Python
            | Language::OtherShell
            | Language::Ruby
            | Language::Shell => (Reader::OtherShell, OnError::Mark),
        };
        self.code(index, command, code, reader, on_error)
    }
}

/// How the words behind the name of a shell read.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent options of one program"
)]
pub(super) struct ShellLine {
    /// Index of the first operand.
    pub(super) operands: usize,
    /// `-c`: the first operand is code.
    pub(super) code: bool,
    /// `-s`: code comes from standard input, whatever the operands.
    pub(super) stdin: bool,
    /// `-i` or a start-up file: other code runs first, and aliases are on.
    startup: bool,
    unsure: bool,
}

pub(super) fn shell_line(words: &[Word]) -> ShellLine {
    let mut line = ShellLine {
        operands: 0,
        code: false,
        stdin: false,
        startup: false,
        unsure: false,
    };
    while let Some(word) = words.get(line.operands) {
        if word.holes.first().is_some_and(|hole| hole.at == 0) {
            // `bash $x code`: it may be `-c`. With a slash in it, it can only be a script.
            line.unsure = !word.text.contains('/') || !word.is_one_word();
            break;
        }
        let text = word.text.as_str();
        if !text.starts_with(['-', '+']) {
            break;
        }
        line.operands += 1;
        match text {
            "--" | "-" => break,
            "--rcfile" | "--init-file" => {
                line.startup = true;
                line.operands += 1;
            }
            "--norc" | "--noprofile" | "--posix" | "--login" | "--restricted" | "--verbose"
            | "--noediting" | "--debugger" | "--dump-strings" | "--dump-po-strings" | "--help"
            | "--version" => {}
            _ if text.starts_with("--") => line.unsure = true,
            _ => {
                for letter in text.chars().skip(1) {
                    match letter {
                        'c' => line.code = true,
                        's' => line.stdin = true,
                        'i' => line.startup = true,
                        'o' | 'O' => line.operands += 1,
                        _ => {}
                    }
                }
                line.unsure |= !word.holes.is_empty();
            }
        }
    }
    line.unsure |= words
        .iter()
        .take(line.operands)
        .any(|word| !word.is_one_word());
    line
}
