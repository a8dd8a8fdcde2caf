//! The interpreters: how each is given code, and when it reads it from standard input.

use std::sync::LazyLock;

use crate::device::is_standard_input;
use crate::index::{self, Index};
use crate::{Command, HoleKind, Word};

/// What kind of code an interpreter runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Language {
    /// A program is always its first operand.
    Awk,
    /// bash itself, or a shell close enough that only its own extensions differ.
    Bash,
    JavaScript,
    /// Anything that is only known to run what it reads.
    Other,
    /// A shell with a grammar of its own.
    OtherShell,
    Perl,
    Php,
    Python,
    Ruby,
    /// A shell that reads what POSIX says, and no more.
    Shell,
}

struct Interpreter {
    names: &'static [&'static str],
    language: Language,
    /// Options whose value is code.
    code: &'static [&'static str],
    /// Options that name what to run, so that standard input is data.
    runs: &'static [&'static str],
    /// Options with a value in the next word.
    values: &'static [&'static str],
    /// Operands are something else than a program: a time.
    operands_are_data: bool,
}

const fn row(names: &'static [&'static str], language: Language) -> Interpreter {
    Interpreter {
        names,
        language,
        code: &[],
        runs: &[],
        values: &[],
        operands_are_data: false,
    }
}

const TABLE: &[Interpreter] = &[
    row(&["bash", "rbash"], Language::Bash),
    row(&["sh", "dash", "ash", "posh", "yash"], Language::Shell),
    row(
        &["ksh", "mksh", "rksh", "zsh", "rzsh", "fish", "csh", "tcsh"],
        Language::OtherShell,
    ),
    Interpreter {
        code: &["-c"],
        runs: &["-m"],
        values: &["-W", "-X", "-Q"],
        ..row(
            &["python", "pypy", "jython", "ipython", "python3-dbg"],
            Language::Python,
        )
    },
    Interpreter {
        code: &["-e", "-E"],
        values: &["-I", "-M"],
        ..row(&["perl"], Language::Perl)
    },
    Interpreter {
        code: &["-e"],
        values: &["-I", "-r", "-C"],
        ..row(&["ruby", "jruby", "irb"], Language::Ruby)
    },
    Interpreter {
        code: &["-e", "-p", "--eval", "--print", "-pe"],
        runs: &["--test", "--check", "--version", "-v", "--help"],
        values: &["-r", "--require", "--import", "--loader"],
        ..row(
            &["node", "nodejs", "bun", "tsx", "ts-node"],
            Language::JavaScript,
        )
    },
    Interpreter {
        runs: &[
            "eval", "run", "test", "task", "fmt", "lint", "check", "install",
        ],
        ..row(&["deno"], Language::JavaScript)
    },
    Interpreter {
        code: &["-r", "-B", "-R", "-E"],
        runs: &["-f", "-S", "-v", "-m", "-i"],
        values: &["-d", "-c"],
        ..row(&["php"], Language::Php)
    },
    Interpreter {
        code: &["-e"],
        ..row(&["lua", "luajit", "texlua"], Language::Other)
    },
    Interpreter {
        code: &["-e", "-E"],
        ..row(&["julia"], Language::Other)
    },
    Interpreter {
        code: &["-e"],
        ..row(
            &[
                "rscript",
                "Rscript",
                "R",
                "octave",
                "guile",
                "racket",
                "osascript",
                "elixir",
                "groovy",
                "scala",
                "gnuplot",
            ],
            Language::Other,
        )
    },
    Interpreter {
        code: &["-c", "-Command"],
        runs: &["-File"],
        ..row(
            &["pwsh", "powershell", "nu", "xonsh", "elvish"],
            Language::Other,
        )
    },
    Interpreter {
        code: &["-c"],
        ..row(&["tclsh", "wish", "expect"], Language::Other)
    },
    row(
        &["awk", "gawk", "mawk", "nawk", "original-awk"],
        Language::Awk,
    ),
    // They take commands for later from their input.
    Interpreter {
        operands_are_data: true,
        runs: &["-l", "-c", "-d", "-r", "-f"],
        values: &["-q", "-t"],
        ..row(&["at", "batch"], Language::Other)
    },
    Interpreter {
        runs: &["-l", "-r", "-e"],
        values: &["-u"],
        ..row(&["crontab"], Language::Other)
    },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| index::of(TABLE.iter().map(|row| row.names)));

/// What an interpreter is told to run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program<'w> {
    /// Code on the command line.
    Inline(&'w Word),
    /// A script, module or subcommand.
    Named,
    /// Whatever its standard input holds.
    StandardInput,
    /// The output of a command, by `<( )`.
    Substituted,
}

/// `python3.11` is `python`.
fn base(name: &str) -> &str {
    let base =
        name.trim_end_matches(|byte: char| byte.is_ascii_digit() || byte == '.' || byte == '-');
    if base.is_empty() { name } else { base }
}

/// The language of the interpreter called `name`.
pub(crate) fn language(name: &str) -> Option<Language> {
    find(name).map(|interpreter| interpreter.language)
}

fn find(name: &str) -> Option<&'static Interpreter> {
    let rows = |name| index::rows(&INDEX, TABLE, name).next();
    rows(base(name)).or_else(|| rows(name))
}

/// What `command` runs, when it is an interpreter other than a shell.
pub(crate) fn program(command: &Command) -> Option<(Language, Program<'_>)> {
    let interpreter = find(command.name()?)?;
    let words = command.words.get(1..).unwrap_or_default();
    let program = match interpreter.language {
        Language::Bash | Language::OtherShell | Language::Shell => return None,
        Language::Awk => awk(words),
        Language::JavaScript
        | Language::Other
        | Language::Perl
        | Language::Php
        | Language::Python
        | Language::Ruby => general(interpreter, words),
    };
    Some((interpreter.language, program))
}

fn general<'w>(interpreter: &Interpreter, words: &'w [Word]) -> Program<'w> {
    let mut index = 0;
    while let Some(word) = words.get(index) {
        let text = word.text.as_str();
        let starts_computed = word.holes.first().is_some_and(|hole| hole.at == 0);
        if starts_computed || !text.starts_with('-') || text == "-" {
            if interpreter.operands_are_data {
                index += 1;
                continue;
            }
            return operand(word);
        }
        index += 1;
        if text == "--" {
            continue;
        }
        if interpreter.code.contains(&text) {
            return words
                .get(index)
                .map_or(Program::StandardInput, Program::Inline);
        }
        if interpreter.runs.contains(&text) {
            return Program::Named;
        }
        if interpreter.values.contains(&text) {
            index += 1;
            continue;
        }
        if let Some(code) = cluster(interpreter, text) {
            // `-pe CODE`, or `-cCODE` in one word.
            let attached = text.len() > code + 1;
            return words
                .get(if attached { index - 1 } else { index })
                .map_or(Program::StandardInput, Program::Inline);
        }
        if interpreter
            .runs
            .iter()
            .any(|run| run.len() == 2 && text.starts_with(run))
        {
            return Program::Named;
        }
    }
    Program::StandardInput
}

/// Where in a cluster like `-ne` the letter of code stands.
fn cluster(interpreter: &Interpreter, text: &str) -> Option<usize> {
    if text.starts_with("--") {
        let name = text.split('=').next().unwrap_or(text);
        return (interpreter.code.contains(&name) && name.len() < text.len()).then_some(0);
    }
    for (index, letter) in text.char_indices().skip(1) {
        if interpreter.code.iter().any(|code| {
            code.strip_prefix('-')
                .is_some_and(|rest| rest == letter.to_string())
        }) {
            return Some(index);
        }
        // The rest of the word is the value of this one.
        if interpreter.values.iter().any(|value| {
            value
                .strip_prefix('-')
                .is_some_and(|rest| rest == letter.to_string())
        }) {
            return None;
        }
    }
    None
}

pub(crate) fn operand(word: &Word) -> Program<'_> {
    if word
        .holes
        .iter()
        .any(|hole| hole.kind == HoleKind::ProcessSubstitution)
    {
        return Program::Substituted;
    }
    if word.literal().is_some_and(is_standard_input) {
        Program::StandardInput
    } else {
        Program::Named
    }
}

fn awk(words: &[Word]) -> Program<'_> {
    let mut index = 0;
    while let Some(word) = words.get(index) {
        let text = word.text.as_str();
        index += 1;
        match text {
            "--" => return words.get(index).map_or(Program::Named, Program::Inline),
            "-f" | "--file" | "-E" | "--exec" => {
                return words.get(index).map_or(Program::Named, operand);
            }
            "-F" | "-v" | "-i" | "-l" | "--field-separator" | "--assign" | "--include"
            | "--load" => index += 1,
            _ if text.starts_with("-e") || text == "--source" => {
                return words.get(index).map_or(Program::Named, Program::Inline);
            }
            _ if text.len() > 1 && text.starts_with("-f") => return Program::Named,
            _ if text.len() > 1 && text.starts_with('-') && word.holes.is_empty() => {}
            _ => return Program::Inline(word),
        }
    }
    Program::Named
}
