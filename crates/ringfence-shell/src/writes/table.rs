//! The command models, as data. To add a command, add a row with its examples; the tests run them.
// Long: one table, a row for each command.

// Long: one table, which is easier to read whole.

use crate::lower::options::Options;

/// What one command writes.
pub(crate) struct Model {
    pub(crate) names: &'static [&'static str],
    pub(crate) options: Options,
    /// Options with which it writes nothing.
    pub(crate) unless: &'static [&'static str],
    pub(crate) targets: Targets,
    /// A command line, and the paths it writes; `?` is a computed one. Read by the tests, and by
    /// people: a program would mend the address of each at every start, and never read one.
    #[cfg(test)]
    pub(crate) examples: &'static [(&'static str, &'static [&'static str])],
}

/// Which words name the files.
#[derive(Clone, Copy)]
pub(crate) enum Targets {
    /// Every operand.
    All,
    /// Every operand but the first, which is a mode or an owner, unless an option replaces it.
    AllButFirst {
        unless: &'static [&'static str],
    },
    Awk,
    Curl,
    /// The last operand, or the value of `-t`.
    Destination,
    Find,
    First,
    Git,
    /// Every operand, if the option is there.
    IfOption {
        option: &'static str,
    },
    /// `-i` in perl and ruby.
    InPlace,
    /// `of=path`.
    Key(&'static str),
    /// The values of these options.
    Options(&'static [&'static str]),
    Second,
    Sed,
    Tar,
    /// Files that the command line does not name.
    Unknown,
    /// Those, and every operand.
    UnknownAnd,
}

const fn short(flags: &'static str, values: &'static str) -> Options {
    Options {
        flags,
        values,
        long_flags: &[],
        long_values: &[],
    }
}

const fn row(
    names: &'static [&'static str],
    options: Options,
    targets: Targets,
    #[cfg_attr(
        not(test),
        expect(unused_variables, reason = "read by the tests, and by people")
    )]
    examples: &'static [(&'static str, &'static [&'static str])],
) -> Model {
    Model {
        names,
        options,
        unless: &[],
        targets,
        #[cfg(test)]
        examples,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a builder step in constants")]
const fn unless(unless: &'static [&'static str], model: Model) -> Model {
    Model { unless, ..model }
}

/// The table.
pub(crate) const MODELS: &[Model] = &[
    row(
        &["rm", "unlink", "rmdir", "grm"],
        Options::NONE,
        Targets::All,
        &[
            ("rm -rf a 'b c'", &["a", "b c"]),
            ("rm -- -x", &["-x"]),
            ("rm $x", &["?"]),
            ("rm *.o", &["?"]),
            ("unlink a", &["a"]),
            ("rmdir -p a/b", &["a/b"]),
            ("find . | xargs rm", &["?"]),
            ("rm a -f", &["a"]),
        ],
    ),
    row(
        &["shred"],
        Options {
            values: "ns",
            long_values: &["iterations", "size", "random-source"],
            ..Options::NONE
        },
        Targets::All,
        &[("shred -n 3 -u a", &["a"])],
    ),
    row(
        &["truncate"],
        Options {
            flags: "co",
            values: "sr",
            long_values: &["size", "reference"],
            ..Options::NONE
        },
        Targets::All,
        &[
            ("truncate -s 0 f", &["f"]),
            ("truncate --size=0 f g", &["f", "g"]),
        ],
    ),
    row(
        &["touch"],
        Options {
            values: "drt",
            long_values: &["date", "reference"],
            ..Options::NONE
        },
        Targets::All,
        &[("touch -d now a b", &["a", "b"])],
    ),
    row(
        &["mkdir"],
        Options {
            values: "mZ",
            long_values: &["mode"],
            ..Options::NONE
        },
        Targets::All,
        &[("mkdir -p -m 700 a/b", &["a/b"]), ("/bin/mkdir x", &["x"])],
    ),
    row(
        &["mkfifo"],
        Options {
            values: "m",
            long_values: &["mode"],
            ..Options::NONE
        },
        Targets::All,
        &[("mkfifo p", &["p"])],
    ),
    row(
        &["mknod"],
        Options {
            values: "m",
            long_values: &["mode"],
            ..Options::NONE
        },
        Targets::First,
        &[("mknod -m 600 d c 1 3", &["d"])],
    ),
    unless(
        &["u", "dry-run"],
        row(
            &["mktemp"],
            Options {
                values: "pt",
                ..Options::NONE
            },
            Targets::UnknownAnd,
            &[("mktemp", &["?"]), ("mktemp -u", &[])],
        ),
    ),
    row(
        &["tee", "sponge"],
        Options {
            flags: "aip",
            long_flags: &["append", "ignore-interrupts", "output-error"],
            ..Options::NONE
        },
        Targets::All,
        &[
            ("x | tee -a log", &["log"]),
            ("x | tee /dev/stderr", &[]),
            ("x | sponge f", &["f"]),
        ],
    ),
    row(
        &["mv", "gmv"],
        Options {
            values: "St",
            long_values: &["suffix", "target-directory"],
            ..Options::NONE
        },
        Targets::All,
        &[("mv a b", &["a", "b"]), ("mv a /dev/null", &["a"])],
    ),
    row(
        &["mv", "gmv"],
        Options {
            values: "St",
            long_values: &["suffix", "target-directory"],
            ..Options::NONE
        },
        Targets::Options(&["t", "target-directory"]),
        &[("mv -t d a b", &["d", "a", "b"])],
    ),
    row(
        &["cp", "gcp", "ln", "gln"],
        Options {
            values: "St",
            long_values: &["suffix", "target-directory"],
            ..Options::NONE
        },
        Targets::Destination,
        &[
            ("cp a b c", &["c"]),
            ("cp -t d a b", &["d"]),
            ("cp --target-directory=d a b", &["d"]),
            ("ln -sf a b", &["b"]),
            ("cp a \"$d\"", &["?"]),
        ],
    ),
    row(
        &["install", "ginstall"],
        Options {
            values: "gmotS",
            long_values: &["group", "mode", "owner", "suffix", "target-directory"],
            ..Options::NONE
        },
        Targets::Destination,
        &[("install -m 755 a bin/a", &["bin/a"])],
    ),
    row(
        &["rsync"],
        Options {
            values: "eTfM",
            long_values: &["rsh", "exclude", "include", "filter", "files-from"],
            ..Options::NONE
        },
        Targets::Destination,
        &[("rsync -av --exclude x a/ b/", &["b/"])],
    ),
    row(
        &["scp", "sftp"],
        Options {
            values: "FiJloPS",
            ..Options::NONE
        },
        Targets::Destination,
        &[("scp -P 22 h:a b", &["b"])],
    ),
    row(
        &["dd"],
        Options::NONE,
        Targets::Key("of="),
        &[
            ("dd if=a of=b bs=1", &["b"]),
            ("dd if=a of=$x", &["?"]),
            ("dd if=a", &[]),
        ],
    ),
    row(
        &["chmod", "chown", "chgrp", "gchmod"],
        Options {
            flags: "cfhHLPRv",
            long_values: &["reference"],
            ..Options::NONE
        },
        Targets::AllButFirst {
            unless: &["reference"],
        },
        &[
            ("chmod -R 755 a b", &["a", "b"]),
            ("chown me:us f", &["f"]),
            ("chmod --reference=x f", &["f"]),
        ],
    ),
    row(
        &["chattr", "setfacl"],
        Options {
            values: "gmsuxbX",
            ..Options::NONE
        },
        Targets::AllButFirst {
            unless: &["m", "b", "s", "x"],
        },
        &[("chattr +i f", &["f"]), ("setfacl -m u:a:r f", &["f"])],
    ),
    unless(
        &["dry-run"],
        row(
            &["patch"],
            Options {
                values: "BbdDFiopVY",
                ..Options::NONE
            },
            Targets::UnknownAnd,
            &[
                ("patch -p1 -i a.diff", &["?"]),
                ("patch f", &["?", "f"]),
                ("patch --dry-run f", &[]),
            ],
        ),
    ),
    row(
        &["sed", "gsed"],
        Options::NONE,
        Targets::Sed,
        &[
            ("sed -i s/a/b/ f g", &["f", "g"]),
            ("sed -i.bak s/a/b/ f", &["f"]),
            ("sed -ni p f", &["f"]),
            ("sed -Ei s/a/b/ f", &["f"]),
            ("sed --in-place=.orig -e p f", &["f"]),
            ("sed -i -e A -e B f", &["f"]),
            ("sed s/a/b/ f", &[]),
            ("sed -n 's/a/b/w out' f", &["out"]),
            ("sed 'w out' f", &["out"]),
            ("sed -n '/x/,/y/p' f", &[]),
            ("sed 's/a/b/e' f", &["?"]),
            ("sed -n '1~3d;$p' f", &[]),
            ("sed -f prog f", &[]),
            ("sed 's/[^/]*/w x/g' f", &[]),
        ],
    ),
    row(
        &["perl", "ruby"],
        Options::NONE,
        Targets::InPlace,
        &[
            ("perl -pi -e s/a/b/ f", &["f"]),
            ("perl -i.bak -pe s/a/b/ f g", &["f", "g"]),
            ("perl -pe s/a/b/ f", &[]),
            ("perl -ne print f", &[]),
            ("ruby -pi -e x f", &["f"]),
            ("perl -Ilib t.pl", &[]),
        ],
    ),
    row(
        &["awk", "gawk", "mawk", "nawk"],
        Options::NONE,
        Targets::Awk,
        &[
            ("awk '{print $1}' f", &[]),
            ("awk '{print > \"out\"}' f", &["?"]),
            ("awk '{print >> $2}' f", &["?"]),
            ("awk '$1 > 5 {print}' f", &[]),
            ("awk '{system(\"rm x\")}' f", &["?"]),
            ("awk '{print | \"sh\"}' f", &["?"]),
            ("gawk -i inplace '{print}' f", &["f"]),
            ("awk '$1>2||$2>3' f", &[]),
        ],
    ),
    row(
        &["find", "gfind", "bfs"],
        Options::NONE,
        Targets::Find,
        &[
            ("find a b -name x -delete", &["a", "b"]),
            ("find -delete", &["."]),
            ("find a -fprint out", &["out"]),
            ("find $d -delete", &["?"]),
            ("find a -name x", &[]),
            ("find a -exec rm {} +", &["?"]),
            ("find a -exec sed -i s/a/b/ {} \\;", &["?"]),
        ],
    ),
    row(
        &["sort", "gsort"],
        Options {
            values: "kotST",
            long_values: &[
                "key",
                "output",
                "field-separator",
                "buffer-size",
                "temporary-directory",
            ],
            ..Options::NONE
        },
        Targets::Options(&["o", "output"]),
        &[
            ("sort -k 2 -o out in", &["out"]),
            ("sort -oout in", &["out"]),
            ("sort in", &[]),
        ],
    ),
    row(
        &["uniq"],
        Options {
            values: "fsw",
            ..Options::NONE
        },
        Targets::Second,
        &[("uniq a b", &["b"]), ("uniq -c a", &[])],
    ),
    row(
        &["xxd"],
        Options {
            values: "cgloRs",
            ..Options::NONE
        },
        Targets::Second,
        &[("xxd a b", &["b"]), ("xxd -l 9 a", &[])],
    ),
    row(
        &[
            "iconv", "pandoc", "openssl", "time", "gtime", "strace", "perf", "jc", "dot",
        ],
        Options {
            values: "oftFeT",
            long_values: &["output", "from-code", "to-code", "from", "to", "format"],
            ..Options::NONE
        },
        Targets::Options(&["o", "output"]),
        &[
            ("iconv -f a -t b -o out in", &["out"]),
            ("pandoc a.md -o a.html", &["a.html"]),
            ("\\time -o log make", &["log"]),
        ],
    ),
    row(
        &[
            "split", "csplit", "unrar", "cpio", "pax", "7z", "7za", "bsdtar",
        ],
        short("", ""),
        Targets::Unknown,
        &[("split -l 5 f", &["?"]), ("7z x a.7z", &["?"])],
    ),
    row(
        &["tar", "gtar"],
        Options::NONE,
        Targets::Tar,
        &[
            ("tar xzf a.tgz", &["?"]),
            ("tar -xf a.tar -C d", &["d"]),
            ("tar --extract --file=a --directory=d", &["d"]),
            ("tar czf a.tgz d", &["a.tgz"]),
            ("tar -cf a.tar d", &["a.tar"]),
            ("tar tf a.tar", &[]),
            ("tar -c d", &[]),
        ],
    ),
    unless(
        &["l", "t", "p", "v", "Z"],
        row(
            &["unzip"],
            Options {
                flags: "acfjlnopqtuvZ",
                values: "dxP",
                ..Options::NONE
            },
            Targets::Unknown,
            &[("unzip a.zip -d d", &["?"]), ("unzip -l a.zip", &[])],
        ),
    ),
    row(
        &["zip"],
        Options {
            flags: "qr9jm",
            values: "xi",
            ..Options::NONE
        },
        Targets::First,
        &[("zip -r a.zip d", &["a.zip"])],
    ),
    unless(
        &["c", "stdout", "to-stdout", "t", "test", "l", "list"],
        row(
            &[
                "gzip",
                "gunzip",
                "bzip2",
                "bunzip2",
                "xz",
                "unxz",
                "zstd",
                "unzstd",
                "lz4",
                "compress",
                "uncompress",
            ],
            Options {
                flags: "0123456789cdfhklLnNqrtvV",
                values: "STo",
                ..Options::NONE
            },
            Targets::All,
            &[
                ("gzip a", &["a"]),
                ("gzip -c a", &[]),
                ("gunzip -dc a.gz", &[]),
                ("xz -9 a", &["a"]),
            ],
        ),
    ),
    row(
        &["curl", "wget"],
        Options::NONE,
        Targets::Curl,
        &[
            ("curl -o out u", &["out"]),
            ("curl -fsSLo out u", &["out"]),
            ("curl --output=out u", &["out"]),
            ("curl -O u", &["?"]),
            ("curl -s u", &[]),
            ("curl -o /dev/null -w x u", &[]),
            ("wget u", &["?"]),
            ("wget -O out u", &["out"]),
            ("wget -qO- u", &[]),
            ("wget --spider u", &[]),
        ],
    ),
    row(
        &["yq", "clang-format", "autopep8"],
        Options {
            flags: "i",
            long_flags: &["in-place", "inplace"],
            ..Options::NONE
        },
        Targets::IfOption { option: "i" },
        &[("clang-format -i a.c", &["a.c"]), ("yq .a f", &[])],
    ),
    row(
        &["gofmt", "goimports", "shfmt"],
        Options {
            flags: "dlsw",
            values: "ri",
            ..Options::NONE
        },
        Targets::IfOption { option: "w" },
        &[("gofmt -w a.go", &["a.go"]), ("gofmt -l .", &[])],
    ),
    row(
        &["prettier", "biome"],
        Options {
            long_flags: &["write", "check"],
            ..Options::NONE
        },
        Targets::IfOption { option: "write" },
        &[
            ("prettier --write a.js", &["a.js"]),
            ("prettier --check a.js", &[]),
        ],
    ),
    row(
        &["eslint", "stylelint", "rubocop", "golangci-lint"],
        Options {
            flags: "aA",
            long_flags: &["fix"],
            long_values: &["ext", "config"],
            ..Options::NONE
        },
        Targets::IfOption { option: "fix" },
        &[("eslint --fix src", &["src"]), ("eslint src", &[])],
    ),
    unless(
        &["check", "check-only", "diff", "c"],
        row(
            &["black", "isort", "rustfmt", "dos2unix", "unix2dos"],
            Options {
                flags: "qv",
                long_flags: &["check", "diff"],
                long_values: &["line-length", "edition", "config"],
                ..Options::NONE
            },
            Targets::All,
            &[
                ("black .", &["."]),
                ("black --check .", &[]),
                ("rustfmt --edition 2024 a.rs", &["a.rs"]),
            ],
        ),
    ),
    row(
        &["git"],
        Options::NONE,
        Targets::Git,
        &[
            ("git -C . -c x=y --git-dir=.g rm f", &["f"]),
            ("git checkout -- a b", &["a", "b"]),
            ("git restore --source HEAD a", &["a"]),
            ("git mv a b", &["a", "b"]),
            ("git clean -fd", &["?"]),
            ("git reset --hard", &["?"]),
            ("git apply x.diff", &["?"]),
            ("git status", &[]),
            ("git diff --output=f", &["f"]),
            ("git log", &[]),
            ("git $x", &["?"]),
            ("git clone u d", &["d"]),
        ],
    ),
    row(
        &["ed", "ex", "red"],
        Options {
            flags: "sEvV",
            values: "cpST",
            ..Options::NONE
        },
        Targets::All,
        &[("ed -s f <<< w", &["f"])],
    ),
    row(
        &[
            "vi", "vim", "nvim", "emacs", "nano", "pico", "micro", "joe", "mcedit",
        ],
        Options {
            values: "cSuUiw",
            ..Options::NONE
        },
        Targets::All,
        &[("vim -es -c wq f", &["f"])],
    ),
    row(
        &["ssh-keygen"],
        Options {
            flags: "qlyBR",
            values: "bCfNtPm",
            ..Options::NONE
        },
        Targets::Options(&["f"]),
        &[("ssh-keygen -t rsa -f k", &["k"])],
    ),
    row(
        &["mkfs", "mke2fs", "mkswap", "wipefs", "fdisk", "parted"],
        Options::NONE,
        Targets::All,
        &[("mkfs /dev/sdx", &["/dev/sdx"])],
    ),
];
