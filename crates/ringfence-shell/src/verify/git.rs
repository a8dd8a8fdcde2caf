//! Which git commands leave a repository as it is. Everything that is not known to does not.

use crate::Word;
use crate::writes::git;

/// Subcommands of git that only read, whatever their operands.
const READS: &[&str] = &[
    "annotate",
    "blame",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "cherry",
    "column",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "fsck",
    "get-tar-commit-id",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "merge-tree",
    "name-rev",
    "patch-id",
    "range-diff",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "status",
    "stripspace",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "archive",
];

/// Why a git command line counts as a change.
pub(super) fn git_mutates(words: &[Word]) -> Option<String> {
    let subcommand = git::subcommand(words)?;
    let Some(name) = subcommand.name else {
        return Some("which subcommand of `git` runs is only known when it runs".to_owned());
    };
    let rest = words.get(subcommand.at + 1..).unwrap_or_default();
    if let Some(word) = rest.iter().find(|word| is_more(name, word)) {
        let option = word.prefix();
        return Some(format!(
            "`git {name} {option}` is not known to leave the repository unchanged"
        ));
    }
    if READS.contains(&name) || git_only_reads(name, rest) {
        return None;
    }
    Some(format!(
        "`git {name}` is not known to leave the repository unchanged"
    ))
}

/// Options with which a subcommand that reads starts a program, or writes. Git takes any beginning of a
/// long one that it can tell from others.
const MORE: &[(&str, &[&str])] = &[
    ("archive", &["--exec"]),
    ("fsck", &["--lost-found"]),
    ("grep", &["--open-files-in-pager"]),
    ("ls-remote", &["--exec", "--upload-pack"]),
];

/// Whether this word may make a subcommand that only reads do more than that.
fn is_more(name: &str, word: &Word) -> bool {
    let text = word.prefix();
    let Some((_, options)) = MORE.iter().find(|(known, _)| *known == name) else {
        return false;
    };
    if text.is_empty() {
        // What it becomes when it runs may be an option.
        return word.literal().is_none();
    }
    if !text.starts_with("--") {
        // `-O`, also behind other letters.
        return name == "grep"
            && text.starts_with('-')
            && (text.contains('O') || word.literal().is_none());
    }
    let option = text.split('=').next().unwrap_or(text);
    option.len() > 2 && options.iter().any(|more| more.starts_with(option))
        || word.literal().is_none() && !text.contains('=')
}

/// Options with which `branch` and `tag` list, and those that only shape a list.
const LISTS: &[&str] = &[
    "--contains",
    "--list",
    "--merged",
    "--no-merged",
    "--points-at",
    "-l",
];
const LIST_SHAPES: &[&str] = &[
    "--all",
    "--color",
    "--column",
    "--format",
    "--ignore-case",
    "--no-color",
    "--no-column",
    "--no-contains",
    "--remotes",
    "--show-current",
    "--sort",
    "--verbose",
    "-a",
    "-i",
    "-n",
    "-r",
    "-v",
    "-vv",
];

/// Options of `config` that read, and those that write.
const CONFIG_READS: &[&str] = &[
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "--list",
    "-l",
];
const CONFIG_WRITES: &[&str] = &[
    "--add",
    "--edit",
    "--remove-section",
    "--rename-section",
    "--replace-all",
    "--unset",
    "--unset-all",
    "-e",
];

/// Subcommands of git that only read with these words behind them.
pub(crate) fn git_only_reads(name: &str, rest: &[Word]) -> bool {
    let first = rest.first().map(|word| word.literal().unwrap_or("?"));
    let has = |options: &[&str]| {
        rest.iter()
            .any(|word| word.literal().is_some_and(|text| options.contains(&text)))
    };
    let operands = rest
        .iter()
        .filter(|word| !word.prefix().starts_with('-'))
        .count();
    match name {
        "apply" => has(&["--check", "--numstat", "--stat", "--summary"]) && !has(&["--apply"]),
        // What `view` is given it runs, unless that is an option.
        "bisect" => match first {
            Some("log" | "terms") => true,
            Some("view" | "visualize") => operands == 1,
            _ => false,
        },
        "branch" | "tag" => only_lists(rest) && (operands == 0 || has(LISTS)),
        "bundle" => matches!(first, Some("list-heads" | "verify")),
        "clean" => has(&["--dry-run", "-dn", "-n", "-nd", "-ndx", "-xdn"]),
        "config" => {
            let known = rest.iter().all(|word| word.literal().is_some());
            known
                && !has(CONFIG_WRITES)
                && (has(CONFIG_READS) || operands == 1 || matches!(first, Some("get" | "list")))
        }
        "format-patch" => has(&["--stdout"]),
        "notes" => matches!(first, None | Some("list" | "show")),
        "reflog" => {
            first.is_none_or(|word| !matches!(word, "?" | "delete" | "drop" | "expire" | "write"))
        }
        "remote" => matches!(first, None | Some("--verbose" | "-v" | "get-url" | "show")),
        "stash" => matches!(first, Some("list" | "show")),
        "submodule" => {
            matches!(
                first,
                None | Some("--quiet" | "--recursive" | "foreach" | "status" | "summary")
            ) && !has(&[
                "absorbgitdirs",
                "add",
                "deinit",
                "init",
                "set-branch",
                "set-url",
                "sync",
                "update",
            ])
        }
        "symbolic-ref" => operands == 1 && !has(&["--delete", "-d"]),
        "worktree" => matches!(first, Some("list")),
        _ => false,
    }
}

/// Whether every option of `branch` or `tag` is known to list.
fn only_lists(rest: &[Word]) -> bool {
    rest.iter().all(|word| {
        word.literal().is_some_and(|text| {
            let option = text.split('=').next().unwrap_or(text);
            !text.starts_with('-') || LISTS.contains(&option) || LIST_SHAPES.contains(&option)
        })
    })
}
