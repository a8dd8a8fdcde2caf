//! The options of programs that run others, where they are many or are read in more than one place.

use super::options::Options;

pub(crate) const ENV: Options = Options {
    flags: "i0v",
    values: "uCSa",
    long_flags: &[
        "ignore-environment",
        "null",
        "debug",
        "block-signal",
        "default-signal",
        "ignore-signal",
        "list-signal-handling",
    ],
    long_values: &["unset", "chdir", "split-string", "argv0"],
};

pub(crate) const XARGS: Options = Options {
    flags: "0oprtxile",
    values: "IEaLndPs",
    long_flags: &[
        "null",
        "interactive",
        "no-run-if-empty",
        "verbose",
        "exit",
        "open-tty",
        "show-limits",
        "replace",
        "eof",
        "max-lines",
    ],
    long_values: &[
        "arg-file",
        "delimiter",
        "max-args",
        "max-procs",
        "max-chars",
        "process-slot-var",
    ],
};

pub(crate) const TIME: Options = Options {
    flags: "apqvV",
    values: "fo",
    long_flags: &["append", "portability", "quiet", "verbose"],
    long_values: &["format", "output"],
};

pub(crate) const SETARCH: Options = Options {
    flags: "3BFILRSTXZv",
    values: "p",
    long_flags: &[
        "32bit",
        "3gb",
        "4gb",
        "addr-compat-layout",
        "addr-no-randomize",
        "fdpic-funcptrs",
        "mmap-page-zero",
        "read-implies-exec",
        "short-inode",
        "sticky-timeouts",
        "uname-2.6",
        "verbose",
        "whole-seconds",
    ],
    long_values: &[],
};

pub(crate) const WATCH: Options = Options {
    flags: "bcCdefgprtwx",
    values: "nqs",
    long_flags: &[
        "beep",
        "color",
        "no-color",
        "differences",
        "errexit",
        "chgexit",
        "precise",
        "no-rerun",
        "no-title",
        "no-wrap",
        "exec",
        "follow",
    ],
    long_values: &["interval", "equexit", "shotsdir"],
};

pub(crate) const PARALLEL: Options = Options {
    flags: "0kmqrtuvxX",
    values: "aCdIijLlNnPSs",
    long_flags: &[
        "bar",
        "dry-run",
        "dryrun",
        "eta",
        "gnu",
        "group",
        "halt",
        "keep-order",
        "line-buffer",
        "lb",
        "null",
        "no-notice",
        "pipe",
        "pipepart",
        "progress",
        "quote",
        "tag",
        "ungroup",
        "verbose",
        "xargs",
        "will-cite",
        "no-run-if-empty",
    ],
    long_values: &[
        "arg-file",
        "arg-sep",
        "block",
        "colsep",
        "delay",
        "delimiter",
        "jobs",
        "joblog",
        "load",
        "max-args",
        "max-procs",
        "memfree",
        "results",
        "retries",
        "sshlogin",
        "timeout",
        "tmpdir",
        "workdir",
    ],
};
