//! What builtins do to the shell, and which of them evaluate their arguments.

use super::Lowering;
use super::code::OnError;
use crate::interpreters::{self, Program};
use crate::parse::{Builder, Reader};
use crate::{Code, Command, Refusal, Span, Word};

/// Variables that decide which code trusted programs run.
const HIJACKS: &[&str] = &[
    "BASH_ALIASES",
    "BASH_CMDS",
    "BASH_ENV",
    "BASHOPTS",
    "BROWSER",
    "CDPATH",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "MAKEFLAGS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PAGER",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WRAPPER",
    "SHELL",
    "SHELLOPTS",
    "VISUAL",
];

/// Beginnings of such names.
const HIJACK_PREFIXES: &[&str] = &["BASH_FUNC_", "DYLD_", "GIT_", "LD_", "npm_config_"];

/// Variables whose value bash runs as code, or that change how it reads.
const CODE_VARIABLES: &[&str] = &[
    "BASH_ALIASES",
    "BASH_CMDS",
    "BASH_ENV",
    "BASHOPTS",
    "ENV",
    "POSIXLY_CORRECT",
    "PS4",
    "SHELLOPTS",
];

/// Variables that evaluate what is assigned to them.
const INTEGERS: &[&str] = &[
    "HISTCMD", "LINENO", "OPTIND", "RANDOM", "SECONDS", "SRANDOM",
];

/// Builtins that evaluate a subscript in the names they are given.
const SUBSCRIPTS: &[&str] = &[
    "[",
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "test",
    "typeset",
    "unset",
    "wait",
];

/// Notes that `name` is set.
pub(crate) fn assigned(out: &mut Builder, name: &str, span: Span) {
    let name = name.trim_end_matches('+');
    let name = name.split('[').next().unwrap_or(name);
    if HIJACKS.contains(&name)
        || HIJACK_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
    {
        out.find(Code::EnvironmentHijack, span);
    }
    if INTEGERS.contains(&name) {
        out.find(Code::Arithmetic, span);
    }
    if CODE_VARIABLES.contains(&name) || name.starts_with("BASH_FUNC_") {
        out.find(Code::ComputedCode, span);
    }
}

impl Lowering<'_> {
    pub(super) fn builtin(
        &mut self,
        index: usize,
        command: &Command,
        name: &str,
    ) -> Result<(), Refusal> {
        let words = command.words.get(1..).unwrap_or_default();
        if SUBSCRIPTS.contains(&name) {
            self.subscripts(words, name);
        }
        match name {
            "cd" | "pushd" | "popd" => self.out.find(Code::Cd, command.span),
            "eval" => {
                self.out.find(Code::Eval, command.span);
                let skip = usize::from(
                    words
                        .first()
                        .is_some_and(|word| word.literal() == Some("--")),
                );
                self.code(
                    index,
                    command,
                    words.get(skip..).unwrap_or_default(),
                    Reader::Bash,
                    OnError::Refuse,
                )?;
            }
            "trap" => self.trap(index, command, words)?,
            "alias" => {
                self.out.find(Code::Alias, command.span);
                for word in words {
                    self.alias(index, command, word)?;
                }
            }
            "source" | "." => {
                self.out.find(Code::Source, command.span);
                let skip = usize::from(
                    words
                        .first()
                        .is_some_and(|word| word.literal() == Some("--")),
                );
                if let Some(word) = words.get(skip)
                    && !matches!(interpreters::operand(word), Program::Named)
                {
                    self.out.find(Code::OpaqueInterpreter, command.span);
                }
            }
            "shopt" | "set" => self.shell_options(command, words, name),
            "enable" | "bind" | "fc" => {
                self.out.find(Code::ShellOption, command.span);
                if name == "fc" || words.iter().any(loads) {
                    self.out.find(Code::ComputedCode, command.span);
                }
            }
            "hash" => {
                if let Some(at) = words.iter().position(|word| word.prefix() == "-p") {
                    self.out.find(Code::ComputedCommand, command.span);
                    let path = words.get(at + 1..at + 2).unwrap_or_default();
                    if !path.is_empty() {
                        self.start(index, command, path.to_vec())?;
                    }
                } else if words
                    .iter()
                    .any(|word| word.prefix().starts_with('-') || !word.holes.is_empty())
                {
                    self.hash_options(command, words);
                }
            }
            "mapfile" | "readarray" | "complete" | "compgen" => {
                self.callbacks(index, command, words)?;
            }
            "declare" | "export" | "local" | "readonly" | "typeset" => {
                for word in words {
                    if let Some((name, _)) = word.text.split_once('=') {
                        assigned(self.out, name, word.span);
                    } else if !word.holes.is_empty() {
                        self.out.find(Code::EnvironmentHijack, word.span);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn hash_options(&mut self, command: &Command, words: &[Word]) {
        let harmless = words.iter().all(|word| {
            word.literal().is_some_and(|text| {
                !text.starts_with('-') || text.bytes().skip(1).all(|byte| b"rdtl".contains(&byte))
            })
        });
        if !harmless {
            self.out.find(Code::ComputedCommand, command.span);
        }
    }

    /// `read 'a[$(cmd)]'` runs `cmd`; so do its relatives.
    fn subscripts(&mut self, words: &[Word], name: &str) {
        let evaluates_all = name == "let"
            || words.iter().any(|word| {
                word.literal().is_some_and(|text| {
                    matches!(
                        name,
                        "declare" | "local" | "typeset" | "export" | "readonly"
                    ) && text.starts_with('-')
                        && text.contains(['i', 'n'])
                })
            });
        let tests = matches!(name, "test" | "[");
        for (position, word) in words.iter().enumerate() {
            let named = match name {
                "test" | "[" => {
                    position > 0
                        && words.get(position - 1).is_some_and(|word| {
                            matches!(word.literal(), Some("-v" | "-R")) || !word.holes.is_empty()
                        })
                }
                "printf" => {
                    let before = position.checked_sub(1).and_then(|before| words.get(before));
                    let option =
                        |word: &Word| word.literal() == Some("-v") || !word.holes.is_empty();
                    before.is_some_and(option) || word.prefix().starts_with("-v")
                }
                _ => true,
            };
            if !named {
                continue;
            }
            let text = word.text.as_str();
            if !tests && word.holes.is_empty() && !text.contains('=') {
                // `read PATH`, `printf -v BASH_ENV`.
                assigned(self.out, text.trim_start_matches("-v"), word.span);
            }
            if text.contains('[')
                && (text.contains("$(") || text.contains('`') || text.contains("${"))
            {
                self.out.find(Code::ComputedCode, word.span);
            }
            let computed = !word.holes.is_empty() && !text.contains('=');
            if evaluates_all || computed && !tests || text.contains('[') && text != "[" {
                self.out.find(Code::Arithmetic, word.span);
            }
        }
    }

    fn trap(&mut self, index: usize, command: &Command, words: &[Word]) -> Result<(), Refusal> {
        let skip = usize::from(
            words
                .first()
                .is_some_and(|word| word.literal() == Some("--")),
        );
        let words = words.get(skip..).unwrap_or_default();
        let Some(action) = words.first() else {
            return Ok(());
        };
        let resets = action.literal().is_some_and(|text| {
            text == "-"
                || text.is_empty()
                || text.starts_with("-l")
                || text.starts_with("-p")
                || words.len() == 1
                || text.bytes().all(|byte| byte.is_ascii_digit())
        });
        if resets {
            return Ok(());
        }
        self.code(
            index,
            command,
            words.get(..1).unwrap_or_default(),
            Reader::Bash,
            OnError::Refuse,
        )
    }

    /// The text of an alias; it only counts once aliases are on, and then it may be half a command.
    fn alias(&mut self, index: usize, command: &Command, word: &Word) -> Result<(), Refusal> {
        if !word.holes.is_empty() {
            self.out.find(Code::ComputedCode, word.span);
            return Ok(());
        }
        let Some((_, value)) = word.text.split_once('=') else {
            return Ok(());
        };
        if self.depth > 0 {
            // `sh` may be bash in its POSIX mode, where aliases are on.
            self.out.find(Code::ComputedCode, word.span);
        }
        let value = Word {
            span: word.span,
            text: value.to_owned(),
            holes: Vec::new(),
        };
        self.code(index, command, &[value], Reader::Bash, OnError::Mark)
    }

    fn shell_options(&mut self, command: &Command, words: &[Word], name: &str) {
        let sets_parameters = name == "set"
            && words.first().is_none_or(|word| {
                word.literal()
                    .is_some_and(|text| text == "--" || !text.starts_with(['-', '+']))
            });
        if sets_parameters {
            return;
        }
        self.out.find(Code::ShellOption, command.span);
        let changes_reading = words.iter().any(|word| match word.literal() {
            None => name == "shopt" || !word.prefix().starts_with("--"),
            Some(text) => {
                matches!(text, "expand_aliases" | "histexpand" | "history" | "posix")
                    || text.starts_with("compat")
                    || (name == "set"
                        && text.starts_with(['-', '+'])
                        && !text.starts_with("--")
                        && text.contains('H'))
            }
        });
        if changes_reading {
            self.out.find(Code::ComputedCode, command.span);
        }
    }

    /// `mapfile -C CODE`, `complete -C CODE`, `compgen -W WORDS`, whose values bash expands and runs.
    fn callbacks(
        &mut self,
        index: usize,
        command: &Command,
        words: &[Word],
    ) -> Result<(), Refusal> {
        for (position, word) in words.iter().enumerate() {
            let text = word.prefix();
            if word.holes.first().is_some_and(|hole| hole.at == 0) {
                // It may be the option.
                self.out.find(Code::ComputedCode, command.span);
            }
            if !text.starts_with('-') || text.starts_with("--") {
                continue;
            }
            let value = words.get(position + 1..position + 2).unwrap_or_default();
            match text.chars().last() {
                Some('C') => self.code(index, command, value, Reader::Bash, OnError::Mark)?,
                Some('W')
                    if value
                        .iter()
                        .any(|word| word.text.contains(['$', '`']) || !word.holes.is_empty()) =>
                {
                    self.out.find(Code::ComputedCode, command.span);
                }
                _ if text.contains('C') || text.contains('W') => {
                    self.out.find(Code::ComputedCode, command.span);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn loads(word: &Word) -> bool {
    word.literal()
        .is_none_or(|text| text.starts_with('-') && text.contains(['f', 'x']))
}
