//! Programs that start other commands.

use std::sync::LazyLock;

use super::code::OnError;
use super::known::{ENV, PARALLEL, WATCH, XARGS};
use super::options;
use super::wrappers::WRAPPERS;
use super::{Lowering, filled, input};
use crate::index::{self, Index};
use crate::interpreters::{self, Language, Program};
use crate::parse::Reader;
use crate::{Code, Command, Refusal, Word, Yields};

static INDEX: LazyLock<Index> = LazyLock::new(|| index::of(WRAPPERS.iter().map(|row| row.names)));

static RUNNING: LazyLock<Index> =
    LazyLock::new(|| index::of(RUNNING_OPTIONS.iter().map(|(names, _)| *names)));

impl Lowering<'_> {
    /// Adds what `command` starts, if it starts anything; says whether it is that kind of command.
    pub(super) fn run_by(
        &mut self,
        index: usize,
        command: &Command,
        name: &str,
    ) -> Result<bool, Refusal> {
        let words = command.words.get(1..).unwrap_or_default();
        self.running_options(command, words, name);
        match name {
            "env" | "genv" => self.env(index, command, words)?,
            "xargs" | "gxargs" => self.xargs(index, command, words)?,
            "find" | "gfind" | "bfs" => self.find(index, command, words)?,
            "fd" | "fdfind" => self.fd(index, command, words)?,
            "watch" => self.watch(index, command, words)?,
            "parallel" => self.parallel(index, command, words)?,
            "su" | "sg" | "runuser" | "script" | "nix-shell" | "nix" | "flock"
                if self.code_option(index, command, words, name)? => {}
            "git" => self.git(index, command, words)?,
            _ => match interpreters::language(name) {
                Some(language @ (Language::Bash | Language::OtherShell | Language::Shell)) => {
                    self.shell(index, command, words, language)?;
                }
                Some(_) => {
                    if let Some((_, Program::Inline(code))) = interpreters::program(command) {
                        self.out.find(Code::InlineInterpreter, code.span);
                    }
                }
                None => return self.wrapper(index, command, words, name),
            },
        }
        Ok(true)
    }

    /// Options whose value is a command: `tar --to-command`, `ssh -o ProxyCommand=`.
    fn running_options(&mut self, command: &Command, words: &[Word], name: &str) {
        let Some((_, options)) = index::rows(&RUNNING, RUNNING_OPTIONS, name).next() else {
            return;
        };
        let runs = |word: &Word| {
            options
                .iter()
                .any(|option| word.prefix().starts_with(option))
        };
        if words.iter().any(runs) {
            self.out.find(Code::ComputedCode, command.span);
        }
    }

    /// A row of the table.
    fn wrapper(
        &mut self,
        index: usize,
        command: &Command,
        words: &[Word],
        name: &str,
    ) -> Result<bool, Refusal> {
        if name == "command" && words.first().is_some_and(is_lookup) {
            return Ok(true);
        }
        let mut known = false;
        for row in index::rows(&INDEX, WRAPPERS, name) {
            let words = match row.subcommand {
                None => words,
                Some(subcommand) => match words.split_first() {
                    Some((first, rest)) if first.literal() == Some(subcommand) => rest,
                    _ => continue,
                },
            };
            known = true;
            if name == "jobs" && words.first().is_none_or(|word| word.prefix() != "-x") {
                continue;
            }
            let walk = options::walk(words, row.options);
            let mut at = walk.operands;
            if row.assigns {
                at += self.assignments(words.get(at..).unwrap_or_default());
            }
            self.begin(index, command, words, at + row.skips, walk.unsure)?;
        }
        Ok(known)
    }

    /// Starts `words[at..]`; an unsure beginning is marked.
    pub(super) fn begin(
        &mut self,
        index: usize,
        command: &Command,
        words: &[Word],
        at: usize,
        unsure: bool,
    ) -> Result<(), Refusal> {
        let inner = words.get(at..).unwrap_or_default();
        if unsure || may_split(words, at) {
            self.out.find(Code::ComputedCommand, command.span);
        }
        if inner.is_empty() {
            Ok(())
        } else {
            self.start(index, command, inner.to_vec())
        }
    }

    /// How many words in front are `NAME=value`.
    fn assignments(&mut self, words: &[Word]) -> usize {
        let is_assignment = |word: &&Word| word.prefix().contains('=');
        let count = words.iter().take_while(is_assignment).count();
        for word in words.iter().take(count) {
            let name = word.text.split('=').next().unwrap_or_default();
            super::builtins::assigned(self.out, name, word.span);
        }
        count
    }

    fn env(&mut self, index: usize, command: &Command, words: &[Word]) -> Result<(), Refusal> {
        let walk = options::walk(words, ENV);
        let mut at = walk.operands;
        if words
            .get(at)
            .is_some_and(|word| word.literal() == Some("-"))
        {
            at += 1;
        }
        if let Some((text, word)) = walk.value(&["S", "split-string"]) {
            return self.split_string(
                index,
                command,
                text,
                word,
                words.get(at..).unwrap_or_default(),
            );
        }
        at += self.assignments(words.get(at..).unwrap_or_default());
        self.begin(index, command, words, at, walk.unsure)
    }

    /// `env -S 'A=1 cmd -x' more`: split at blanks, with quotes and escapes of its own.
    fn split_string(
        &mut self,
        index: usize,
        command: &Command,
        text: &str,
        word: &Word,
        rest: &[Word],
    ) -> Result<(), Refusal> {
        let plain = word.holes.is_empty() && !text.contains(['\\', '\'', '"', '$', '#']);
        if !plain {
            self.out.find(Code::ComputedCommand, word.span);
        }
        let mut words: Vec<Word> = text
            .split_whitespace()
            .map(|part| Word {
                span: word.span,
                text: part.trim_matches(['"', '\'']).to_owned(),
                holes: Vec::new(),
            })
            .collect();
        words.extend_from_slice(rest);
        let walk = options::walk(&words, ENV);
        let at = walk.operands + self.assignments(words.get(walk.operands..).unwrap_or_default());
        self.begin(index, command, &words, at, walk.unsure)
    }

    fn xargs(&mut self, index: usize, command: &Command, words: &[Word]) -> Result<(), Refusal> {
        let walk = options::walk(words, XARGS);
        let inner = words.get(walk.operands..).unwrap_or_default();
        if walk.unsure || may_split(words, walk.operands) {
            self.out.find(Code::ComputedCommand, command.span);
        }
        if inner.is_empty() {
            return Ok(());
        }
        // `-i` and `--replace` have an optional, attached marker.
        let attached = words
            .iter()
            .take(walk.operands)
            .find_map(|word| word.text.strip_prefix("-i"));
        let marker = match walk.value(&["I", "replace"]) {
            Some((marker, _)) => Some(marker),
            None if walk.has("i") || walk.has("replace") => {
                Some(attached.filter(|text| !text.is_empty()).unwrap_or("{}"))
            }
            None => None,
        };
        let inner = if let Some(marker) = marker {
            filled(inner, marker, Yields::One)
        } else {
            let mut inner = inner.to_vec();
            inner.push(input(command.span));
            inner
        };
        self.start(index, command, inner)
    }

    fn find(&mut self, index: usize, command: &Command, words: &[Word]) -> Result<(), Refusal> {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            // `find $x` may hold `-exec`, and so may every word that can be several.
            if !word.is_one_word() {
                self.out.find(Code::ComputedCommand, word.span);
            }
            if !matches!(
                word.literal(),
                Some("-exec" | "-execdir" | "-ok" | "-okdir")
            ) {
                continue;
            }
            let inner = words.get(at..).unwrap_or_default();
            let end = inner
                .iter()
                .position(|word| matches!(word.literal(), Some(";" | "+")))
                .unwrap_or(inner.len());
            let inner = inner.get(..end).unwrap_or_default();
            at += end;
            if !inner.is_empty() {
                self.start(index, command, filled(inner, "{}", Yields::One))?;
            }
        }
        Ok(())
    }

    fn fd(&mut self, index: usize, command: &Command, words: &[Word]) -> Result<(), Refusal> {
        let runs = |word: &Word| {
            matches!(
                word.literal(),
                Some("-x" | "-X" | "--exec" | "--exec-batch")
            )
        };
        let Some(at) = words.iter().position(runs) else {
            return Ok(());
        };
        let inner = words.get(at + 1..).unwrap_or_default();
        let end = inner
            .iter()
            .position(|word| word.literal() == Some(";"))
            .unwrap_or(inner.len());
        let inner = inner.get(..end).unwrap_or_default();
        if inner.is_empty() {
            return Ok(());
        }
        let mut inner = filled(inner, "{}", Yields::One);
        inner.push(input(command.span));
        self.start(index, command, inner)
    }

    /// `watch` joins its operands and gives them to a shell.
    fn watch(&mut self, index: usize, command: &Command, words: &[Word]) -> Result<(), Refusal> {
        let walk = options::walk(words, WATCH);
        let inner = words.get(walk.operands..).unwrap_or_default();
        if walk.has("x") || walk.has("exec") {
            return self.begin(index, command, words, walk.operands, walk.unsure);
        }
        if walk.unsure || may_split(words, walk.operands) {
            self.out.find(Code::ComputedCommand, command.span);
        }
        self.code(index, command, inner, Reader::OtherShell, OnError::Mark)
    }

    /// `parallel CMD {} ::: a b`: a shell runs the text with its inputs filled in.
    fn parallel(&mut self, index: usize, command: &Command, words: &[Word]) -> Result<(), Refusal> {
        let walk = options::walk(words, PARALLEL);
        if walk.unsure || may_split(words, walk.operands) {
            self.out.find(Code::ComputedCommand, command.span);
        }
        let rest = words.get(walk.operands..).unwrap_or_default();
        let separates =
            |word: &Word| matches!(word.literal(), Some(":::" | "::::" | ":::+" | "::::+"));
        let end = rest.iter().position(separates).unwrap_or(rest.len());
        let (inner, inputs) = rest.split_at(end);
        if inner.is_empty() {
            // Each input is a command of its own.
            let code = if inputs.is_empty() {
                Code::OpaqueInterpreter
            } else {
                Code::ComputedCode
            };
            self.out.find(code, command.span);
            for word in inputs.iter().filter(|word| !separates(word)) {
                self.code(
                    index,
                    command,
                    std::slice::from_ref(word),
                    Reader::OtherShell,
                    OnError::Mark,
                )?;
            }
            return Ok(());
        }
        let mut inner = filled(inner, "{}", Yields::Many);
        inner.push(input(command.span));
        // A shell reads the filled text, so what is filled in may be code; the words say what is known.
        self.start(index, command, inner.clone())?;
        self.code(index, command, &inner, Reader::OtherShell, OnError::Mark)
    }

    /// `su -c CODE`, `script -c CODE`, `nix-shell --run CODE`, `flock FILE -c CODE`.
    fn code_option(
        &mut self,
        index: usize,
        command: &Command,
        words: &[Word],
        name: &str,
    ) -> Result<bool, Refusal> {
        let options: &[&str] = match name {
            "nix-shell" => &["--run", "--command"],
            "nix" => &["-c", "--command"],
            _ => &["-c", "--command", "--session-command"],
        };
        let Some(at) = words
            .iter()
            .position(|word| options.contains(&word.prefix()))
        else {
            let attached = words.iter().find(|word| {
                word.prefix().starts_with("--command=") || (name != "nix" && is_cluster(word))
            });
            if attached.is_some() {
                self.out.find(Code::ComputedCode, command.span);
            }
            return Ok(false);
        };
        let rest = words.get(at + 1..).unwrap_or_default();
        if name == "nix" {
            if !rest.is_empty() {
                self.start(index, command, rest.to_vec())?;
            }
        } else {
            self.code(
                index,
                command,
                rest.get(..1).unwrap_or_default(),
                Reader::OtherShell,
                OnError::Mark,
            )?;
        }
        Ok(true)
    }
}

/// Programs that run the value of an option as a command.
const RUNNING_OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["tar", "gtar", "bsdtar"],
        &[
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "-I",
        ],
    ),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (
        &["ssh", "scp", "sftp"],
        &[
            "ProxyCommand",
            "-oProxyCommand",
            "LocalCommand",
            "-oLocalCommand",
            "KnownHostsCommand",
            "-oKnownHostsCommand",
        ],
    ),
    (&["sort", "gsort"], &["--compress-program"]),
    (&["split"], &["--filter"]),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["man"], &["-P", "--pager", "-H", "--html"]),
    (
        &["gdb"],
        &["-ex", "--ex", "-x", "--eval-command", "--command"],
    ),
    (&["make", "gmake"], &["SHELL=", "--eval", "-E"]),
];

/// Whether one of the first words can be several, which may bring a command of their own: `env A=$x`.
fn may_split(words: &[Word], before: usize) -> bool {
    words.iter().take(before).any(|word| !word.is_one_word())
}

fn is_lookup(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        text.starts_with('-')
            && text.bytes().skip(1).all(|byte| b"pvV".contains(&byte))
            && text.contains(['v', 'V'])
    })
}

fn is_cluster(word: &Word) -> bool {
    let text = word.prefix();
    text.starts_with('-') && !text.starts_with("--") && text.len() > 2 && text.contains('c')
}
