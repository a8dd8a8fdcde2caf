//! What git starts: commands behind some subcommands, and programs named by settings on its command line.

use super::Lowering;
use super::code::OnError;
use crate::parse::Reader;
use crate::{Code, Command, Refusal, Word};

impl Lowering<'_> {
    /// `git bisect run CMD`, `git submodule foreach CODE`, `git rebase -x CODE`, `git -c alias.x='!CODE'`.
    pub(super) fn git(
        &mut self,
        index: usize,
        command: &Command,
        words: &[Word],
    ) -> Result<(), Refusal> {
        let Some(sub) = crate::writes::git::subcommand(words) else {
            return Ok(());
        };
        for word in words.iter().take(sub.at) {
            // Settings on the command line can name programs: aliases, pagers, editors, hooks.
            let runs = word.prefix().split_once('=').is_some_and(|(key, value)| {
                let key = key
                    .trim_start_matches("-c")
                    .trim_start_matches("--config-env")
                    .to_ascii_lowercase();
                value.starts_with('!')
                    || RUNNING_KEYS
                        .iter()
                        .any(|known| key.starts_with(known) || key.ends_with(known))
            });
            if runs {
                self.out.find(Code::ComputedCode, word.span);
            }
        }
        let rest = words.get(sub.at + 1..).unwrap_or_default();
        match sub.name {
            Some("bisect")
                if rest
                    .first()
                    .is_some_and(|word| word.literal() == Some("run")) =>
            {
                self.begin(index, command, rest, 1, false)
            }
            Some("submodule") => match rest
                .iter()
                .position(|word| word.literal() == Some("foreach"))
            {
                Some(at) => {
                    let rest = rest.get(at + 1..).unwrap_or_default();
                    let skip = rest
                        .iter()
                        .take_while(|word| word.prefix().starts_with('-'))
                        .count();
                    let code = rest.get(skip..).unwrap_or_default();
                    self.code(index, command, code, Reader::OtherShell, OnError::Mark)
                }
                None => Ok(()),
            },
            Some("rebase") => match rest
                .iter()
                .position(|word| matches!(word.literal(), Some("-x" | "--exec")))
            {
                Some(at) => self.code(
                    index,
                    command,
                    rest.get(at + 1..at + 2).unwrap_or_default(),
                    Reader::OtherShell,
                    OnError::Mark,
                ),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// Settings that name a program, by how they begin or end.
const RUNNING_KEYS: &[&str] = &[
    "--exec-path",
    "alias.",
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "diff.external",
    "gpg.program",
    "include.",
    "includeif.",
    "interactive.difffilter",
    "pager.",
    "protocol.",
    "sequence.editor",
    ".clean",
    ".cmd",
    ".command",
    ".defaultkeycommand",
    ".driver",
    ".helper",
    ".insteadof",
    ".packobjectshook",
    ".process",
    ".program",
    ".receivepack",
    ".smudge",
    ".textconv",
    ".uploadpack",
    ".vcs",
];
