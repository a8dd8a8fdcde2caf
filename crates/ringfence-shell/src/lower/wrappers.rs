//! The programs that run another command given as their operands: data, one row each.

use super::known::{SETARCH, TIME};
use super::options::Options;

/// A program that runs its operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapper {
    /// What it is called.
    pub(crate) names: &'static [&'static str],
    /// The subcommand that runs its operands, if only one does.
    pub(crate) subcommand: Option<&'static str>,
    /// Its options.
    pub(crate) options: Options,
    /// How many operands come before the command: a time limit, a file to lock.
    pub(crate) skips: usize,
    /// Whether `NAME=value` operands come before the command.
    pub(crate) assigns: bool,
}

const fn row(names: &'static [&'static str], options: Options) -> Wrapper {
    Wrapper {
        names,
        subcommand: None,
        options,
        skips: 0,
        assigns: false,
    }
}

const fn sub(
    names: &'static [&'static str],
    subcommand: &'static str,
    options: Options,
) -> Wrapper {
    Wrapper {
        names,
        subcommand: Some(subcommand),
        options,
        skips: 0,
        assigns: false,
    }
}

const fn short(flags: &'static str, values: &'static str) -> Options {
    Options {
        flags,
        values,
        long_flags: &[],
        long_values: &[],
    }
}

/// The table. Rows with their own reading (`env -S`, `xargs -I`, `find -exec`) are in the module above.
pub(crate) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        assigns: true,
        ..row(
            &["sudo"],
            Options {
                flags: "ABbEHiKklNnPSsVv",
                values: "CDghpRrTtUu",
                long_flags: &[
                    "askpass",
                    "background",
                    "bell",
                    "help",
                    "list",
                    "login",
                    "no-update",
                    "non-interactive",
                    "preserve-env",
                    "preserve-groups",
                    "remove-timestamp",
                    "reset-timestamp",
                    "set-home",
                    "shell",
                    "stdin",
                    "validate",
                    "version",
                ],
                long_values: &[
                    "chdir",
                    "chroot",
                    "close-from",
                    "command-timeout",
                    "group",
                    "host",
                    "other-user",
                    "prompt",
                    "role",
                    "type",
                    "user",
                ],
            },
        )
    },
    row(&["doas"], short("Lns", "Cu")),
    row(
        &[
            "nohup",
            "catchsegv",
            "dbus-run-session",
            "busybox",
            "toybox",
            "builtin",
            "winpty",
            "eatmydata",
        ],
        Options::NONE,
    ),
    row(&["command"], short("p", "")),
    row(&["exec"], short("cl", "a")),
    row(
        &["setsid"],
        Options {
            flags: "cfw",
            long_flags: &["ctty", "fork", "wait"],
            ..Options::NONE
        },
    ),
    row(
        &["nice"],
        Options {
            flags: "0123456789",
            values: "n",
            long_flags: &[],
            long_values: &["adjustment"],
        },
    ),
    row(
        &["ionice"],
        Options {
            flags: "t",
            values: "cnpPu",
            long_flags: &["ignore"],
            long_values: &["class", "classdata", "pid", "pgid", "uid"],
        },
    ),
    Wrapper {
        skips: 1,
        ..row(
            &["timeout", "gtimeout"],
            Options {
                flags: "fpv",
                values: "ks",
                long_flags: &["foreground", "preserve-status", "verbose"],
                long_values: &["kill-after", "signal"],
            },
        )
    },
    Wrapper {
        skips: 1,
        ..row(
            &["taskset"],
            Options {
                flags: "apc",
                long_flags: &["all-tasks", "cpu-list", "pid"],
                ..Options::NONE
            },
        )
    },
    Wrapper {
        skips: 1,
        ..row(
            &["chrt"],
            Options {
                flags: "abdfioprR",
                values: "DPT",
                long_flags: &[
                    "all-tasks",
                    "batch",
                    "deadline",
                    "fifo",
                    "idle",
                    "other",
                    "pid",
                    "rr",
                    "reset-on-fork",
                ],
                long_values: &["sched-deadline", "sched-period", "sched-runtime"],
            },
        )
    },
    row(
        &["prlimit"],
        Options {
            // A limit stands behind the letter, or not at all.
            flags: "cdefilmnqrstuvxy",
            values: "op",
            long_flags: &[
                "as",
                "core",
                "cpu",
                "data",
                "fsize",
                "locks",
                "memlock",
                "msgqueue",
                "nice",
                "nofile",
                "noheadings",
                "nproc",
                "raw",
                "rss",
                "rtprio",
                "rttime",
                "sigpending",
                "stack",
                "verbose",
            ],
            long_values: &["output", "pid"],
        },
    ),
    // An architecture is a name of the same program, and may also be its first operand.
    row(
        &[
            "setarch", "aarch64", "arm64", "armv7l", "armv8l", "i386", "i486", "i586", "i686",
            "linux32", "linux64", "uname26", "x86_64",
        ],
        SETARCH,
    ),
    row(
        &["choom"],
        Options {
            values: "np",
            long_values: &["adjust", "pid"],
            ..Options::NONE
        },
    ),
    row(
        &["nsenter"],
        Options {
            // A file stands behind the letter, or not at all.
            flags: "aceFimnpruUTCwWZ",
            values: "GSt",
            long_flags: &[
                "all",
                "cgroup",
                "env",
                "follow-context",
                "ipc",
                "join-cgroup",
                "keep-caps",
                "mount",
                "net",
                "no-fork",
                "pid",
                "preserve-credentials",
                "root",
                "time",
                "user",
                "uts",
                "wd",
                "wdns",
            ],
            long_values: &["setgid", "setuid", "target"],
        },
    ),
    row(
        &["uclampset"],
        Options {
            flags: "asRv",
            values: "mMp",
            long_flags: &["all-tasks", "reset-on-fork", "system", "verbose"],
            long_values: &["pid"],
        },
    ),
    row(
        &["pkexec"],
        Options {
            long_flags: &["disable-internal-agent", "keep-cwd"],
            long_values: &["user"],
            ..Options::NONE
        },
    ),
    row(
        &["numactl"],
        Options {
            flags: "abl",
            values: "CNimpPw",
            long_flags: &["all", "balancing", "localalloc"],
            long_values: &[
                "cpunodebind",
                "interleave",
                "membind",
                "physcpubind",
                "preferred",
                "weighted-interleave",
            ],
        },
    ),
    row(&["time", "gtime"], TIME),
    row(
        &["stdbuf", "gstdbuf"],
        Options {
            values: "eio",
            long_values: &["error", "input", "output"],
            ..Options::NONE
        },
    ),
    row(&["unbuffer"], short("p", "")),
    Wrapper {
        skips: 1,
        ..row(
            &["chroot"],
            Options {
                long_flags: &["skip-chdir"],
                long_values: &["groups", "userspec"],
                ..Options::NONE
            },
        )
    },
    Wrapper {
        skips: 1,
        ..row(
            &["flock"],
            Options {
                flags: "eFnosuvx",
                values: "Ew",
                long_flags: &[
                    "close",
                    "exclusive",
                    "no-fork",
                    "nonblock",
                    "shared",
                    "unlock",
                    "verbose",
                ],
                long_values: &["conflict-exit-code", "timeout", "wait"],
            },
        )
    },
    row(
        &["strace", "ltrace"],
        Options {
            flags: "cCdDfFhiklnNqrStTvVwxyYzZ",
            values: "abeEIoOpPsuUX",
            long_flags: &["follow-forks", "summary", "summary-only"],
            long_values: &["output", "trace", "string-limit"],
        },
    ),
    row(
        &["valgrind"],
        Options {
            flags: "qv",
            long_flags: &["quiet", "verbose"],
            ..Options::NONE
        },
    ),
    row(
        &["setpriv"],
        Options {
            flags: "d",
            long_flags: &[
                "clear-groups",
                "dump",
                "init-groups",
                "keep-groups",
                "nnp",
                "no-new-privs",
                "reset-env",
            ],
            long_values: &[
                "egid", "euid", "gid", "groups", "inh-caps", "regid", "reuid", "rgid", "ruid",
                "uid",
            ],
            ..Options::NONE
        },
    ),
    row(
        &["unshare"],
        Options {
            flags: "cCfimnpruUT",
            values: "GRSw",
            long_flags: &[
                "cgroup",
                "fork",
                "ipc",
                "keep-caps",
                "kill-child",
                "map-current-user",
                "map-root-user",
                "mount",
                "mount-proc",
                "net",
                "pid",
                "time",
                "user",
                "uts",
            ],
            long_values: &["root", "setgid", "setuid", "wd"],
        },
    ),
    row(
        &["runuser"],
        Options {
            flags: "flmP",
            values: "uGgsw",
            long_flags: &["login"],
            long_values: &["user", "group", "shell"],
        },
    ),
    row(
        &["systemd-run"],
        Options {
            flags: "dGPqrSt",
            values: "EHMpu",
            long_flags: &[
                "collect", "no-block", "pipe", "pty", "quiet", "scope", "shell", "user", "wait",
            ],
            long_values: &[
                "property",
                "service-type",
                "setenv",
                "slice",
                "unit",
                "working-directory",
            ],
        },
    ),
    row(
        &["xvfb-run"],
        Options {
            flags: "ahl",
            values: "efnpsw",
            long_flags: &["auto-servernum", "auto-display"],
            long_values: &["server-num", "server-args", "error-file"],
        },
    ),
    row(
        &["fakeroot"],
        Options {
            flags: "u",
            values: "bils",
            ..Options::NONE
        },
    ),
    Wrapper {
        skips: 1,
        ..row(&["faketime"], short("fm", ""))
    },
    row(&["caffeinate"], short("dimsu", "tw")),
    row(&["jobs"], short("x", "")),
    row(
        &["npx", "bunx", "pnpx"],
        Options {
            flags: "qy",
            values: "pw",
            long_flags: &["no", "no-install", "yes", "quiet"],
            long_values: &["package", "workspace"],
        },
    ),
    sub(
        &[
            "npm", "pnpm", "yarn", "bundle", "asdf", "rbenv", "pyenv", "nodenv", "opam", "stack",
            "cabal",
        ],
        "exec",
        Options {
            flags: "ry",
            long_flags: &["recursive", "yes"],
            ..Options::NONE
        },
    ),
    sub(&["mise", "rtx"], "exec", Options::NONE),
    sub(&["mise", "rtx"], "x", Options::NONE),
    sub(
        &["uv"],
        "run",
        Options {
            flags: "qv",
            values: "p",
            long_flags: &[
                "all-extras",
                "dev",
                "frozen",
                "isolated",
                "locked",
                "no-dev",
                "no-project",
                "no-sync",
                "offline",
                "quiet",
            ],
            long_values: &[
                "extra",
                "group",
                "package",
                "project",
                "python",
                "with",
                "with-requirements",
            ],
        },
    ),
    sub(
        &["poetry", "pipenv", "pdm", "rye", "hatch", "pixi"],
        "run",
        Options {
            flags: "qv",
            ..Options::NONE
        },
    ),
    sub(
        &["conda", "mamba", "micromamba"],
        "run",
        Options {
            flags: "v",
            values: "np",
            long_flags: &["live-stream", "no-capture-output"],
            long_values: &["cwd", "name", "prefix"],
        },
    ),
    Wrapper {
        skips: 1,
        ..sub(&["direnv"], "exec", Options::NONE)
    },
    sub(
        &["perf"],
        "stat",
        Options {
            flags: "adgv",
            values: "eor",
            ..Options::NONE
        },
    ),
    sub(&["ringfence"], "run", Options::NONE),
];
