//! git: its options before the subcommand, and what each subcommand writes.

use super::WriteTarget;
use crate::{Command, Word};

/// Where the subcommand stands.
pub(crate) struct Subcommand<'w> {
    /// Its index among the words behind `git`.
    pub(crate) at: usize,
    /// Its name; absent when it is computed.
    pub(crate) name: Option<&'w str>,
}

/// Options before the subcommand that take the next word.
const VALUES: &[&str] = &[
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--list-cmds",
    "--namespace",
    "--super-prefix",
    "--work-tree",
];

/// Finds the subcommand behind any global options.
pub(crate) fn subcommand(words: &[Word]) -> Option<Subcommand<'_>> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let computed = word.holes.first().is_some_and(|hole| hole.at == 0);
        if computed || !word.text.starts_with('-') {
            // `git -C $d status`: what is in `d` may bring a subcommand of its own.
            let sure = words.iter().take(at).all(Word::is_one_word);
            return Some(Subcommand {
                at,
                name: word.literal().filter(|_| sure),
            });
        }
        at += if VALUES.contains(&word.text.as_str()) {
            2
        } else {
            1
        };
    }
    None
}

/// Subcommands whose operands are the files they change.
const NAMED: &[&str] = &["add", "checkout", "mv", "restore", "rm", "stage"];

/// Subcommands that change files or refs which they do not name.
const UNNAMED: &[&str] = &[
    "am",
    "apply",
    "bisect",
    "checkout-index",
    "cherry-pick",
    "clean",
    "filter-branch",
    "filter-repo",
    "merge",
    "pull",
    "read-tree",
    "rebase",
    "reset",
    "revert",
    "sparse-checkout",
    "stash",
    "submodule",
    "switch",
];

/// Subcommands that write what an option or their last operand names.
const OUTPUTS: &[&str] = &["-o", "--output", "--output-directory"];

/// Adds what a git command line writes.
pub(super) fn targets(command: &Command, words: &[Word], targets: &mut Vec<WriteTarget>) {
    let Some(subcommand) = subcommand(words) else {
        return;
    };
    let rest = words.get(subcommand.at + 1..).unwrap_or_default();
    let Some(name) = subcommand.name else {
        targets.push(WriteTarget::computed(command.span));
        return;
    };
    for (index, word) in rest.iter().enumerate() {
        let Some((option, value)) = word.prefix().split_once('=') else {
            if OUTPUTS.contains(&word.text.as_str())
                && matches!(name, "archive" | "format-patch" | "diff" | "log" | "show")
            {
                targets.extend(rest.get(index + 1).map(WriteTarget::of));
            }
            continue;
        };
        if OUTPUTS.contains(&option) {
            let path = word.holes.is_empty().then(|| value.to_owned());
            targets.push(WriteTarget {
                span: word.span,
                path,
            });
        }
    }
    if NAMED.contains(&name) {
        let mut skip = false;
        for word in rest {
            let text = word.prefix();
            if std::mem::take(&mut skip) || (text.starts_with('-') && text != "-") {
                skip = matches!(
                    text,
                    "--source" | "-s" | "-b" | "-B" | "--orphan" | "--pathspec-from-file"
                ) && word.holes.is_empty();
                continue;
            }
            targets.push(WriteTarget::of(word));
        }
    } else if matches!(name, "clone" | "init" | "worktree") {
        let last = rest.iter().rev().find(|word| !word.text.starts_with('-'));
        if name != "worktree"
            || rest
                .first()
                .is_some_and(|word| word.literal() != Some("list"))
        {
            targets.push(last.map_or_else(|| WriteTarget::computed(command.span), WriteTarget::of));
        }
    } else if UNNAMED.contains(&name) && !crate::verify::git_only_reads(name, rest) {
        targets.push(WriteTarget::computed(command.span));
    }
}
