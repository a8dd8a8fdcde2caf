//! Scripts for the oracle: built from the grammar, from loose tokens, and by changing others.

/// A small, repeatable source of chance.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Tokens that mean something to bash; `PWN` is the marker program.
const TOKENS: &[&str] = &[
    "/bin/bash -c '",
    "/bin/bash -c \"",
    "/bin/bash -ec ",
    "/bin/sh -c '",
    "/bin/sh -c ",
    "/usr/bin/env ",
    "/usr/bin/env -i ",
    "/usr/bin/env -S '",
    "/usr/bin/env A=1 ",
    "/usr/bin/nice ",
    "/usr/bin/nice -n 1 ",
    "/usr/bin/timeout 1 ",
    "/usr/bin/timeout -s KILL 1 ",
    "/usr/bin/nohup ",
    "/usr/bin/setsid -w ",
    "/usr/bin/stdbuf -oL ",
    "/usr/bin/xargs ",
    "/usr/bin/xargs -I{} ",
    "/usr/bin/find . -exec ",
    " \\;",
    " {} +",
    "PWN",
    "PWN",
    "PWN",
    "PWN",
    " ",
    " ",
    " ",
    " ",
    "\n",
    "\n",
    ";",
    ";",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    "(",
    ")",
    "((",
    "))",
    "{ ",
    " }",
    "; }",
    "$(",
    "`",
    "\\`",
    "$((",
    "${",
    "}",
    "${x:-",
    "${x:+",
    "${x-",
    "${x#",
    "${x%%",
    "${x/",
    "${x//",
    "${x:",
    "${x^",
    "${x,,",
    "${!x",
    "${#x",
    "${x[",
    "${x@Q}",
    "\"",
    "\"",
    "'",
    "'",
    "$'",
    "$\"",
    "\\",
    "\\\n",
    "\\$",
    "\\\"",
    "\\'",
    "$",
    "#",
    " # ",
    "<(",
    ">(",
    "<<E\n",
    "<<-E\n",
    "<<'E'\n",
    "<<\"E\"\n",
    "<<\\E\n",
    "\nE\n",
    "\n\tE\n",
    "<<<",
    "<<E",
    "E",
    ">f",
    ">>f",
    "2>&1",
    ">&2",
    "&>f",
    ">|f",
    "<f",
    "<>f",
    "{fd}>f",
    "3<f",
    "if ",
    "then ",
    "elif ",
    "else ",
    "fi",
    "while ",
    "until ",
    "do ",
    "done",
    "for x in ",
    "for ((;;)) ",
    "for x ",
    "in ",
    "case x in ",
    "x) ",
    "(x) ",
    "*) ",
    ";;",
    ";&",
    ";;&",
    "esac",
    "select x in ",
    "function f ",
    "f() ",
    "f ",
    "{",
    "}",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "=~ ",
    "== ",
    "!= ",
    "-eq ",
    "-n ",
    "! ",
    "!",
    "time ",
    "time -p ",
    "coproc ",
    "coproc N ",
    "x=",
    "x+=",
    "x=(",
    "x[",
    "]=",
    "x[0]=",
    "declare x=",
    "local x=(",
    "export x=",
    "eval ",
    "eval '",
    "trap '",
    "' EXIT",
    "command ",
    "builtin ",
    "exec ",
    ". ",
    "true ",
    "false ",
    ": ",
    ":",
    "echo ",
    "test ",
    "break",
    "return ",
    "exit ",
    "a",
    "b",
    "x",
    "0",
    "1",
    "*",
    "?",
    "[a]",
    "@(",
    "!(",
    "+(",
    "?(",
    "*(",
    "~",
    "{a,b}",
    "{PWN,a}",
    "{1..2}",
    "=",
    ",",
    ".",
    "-",
    "+",
    "%",
    "^",
    "@",
    "\t",
    "&>",
    ">&",
    "<&",
    "$x",
    "$1",
    "$@",
    "\"$x\"",
    "\"$@\"",
    "$[",
    "]",
    "[",
    "|\n",
    "&&\n",
    "\\\n ",
    " \\\n",
    "((x",
    "$((x",
    "))\n",
    "let x=",
    "unset x",
    "printf -v x ",
    "read x ",
    "shopt -s extglob\n",
    "set -- ",
    "''",
    "\"\"",
    "${x}",
    "<(:)",
    "$(:)",
    "`:`",
    "\u{e9}",
    "$'\\x50WN'",
    "P\\WN",
    "'PWN'",
    "\"PWN\"",
    "P\"W\"N",
    "${x:-$(PWN)}",
    "\"${x:-$(PWN)}\"",
    "\"${x:-'$(PWN)'}\"",
    "\"`PWN`\"",
    "$(PWN)",
    "`PWN`",
    "<(PWN)",
];

/// Characters for small changes.
const BYTES: &[u8] = b"\\'\"`$(){}[]<>|&;\n\t #!=*?@+-:/%^,~E0xP";

/// Texts that have hidden commands from parsers before, or might.
pub(crate) const SEEDS: &[&str] = &[
    "x='a[$''(PWN)]'; RANDOM=$x",
    "x='$'; y='(PWN)'; z=a[$x$y]; ((z))",
    ": ${x:='a[$(PWN)]'}; ((x))",
    "RANDOM='a[$(PWN)]'",
    "OPTIND='a[$(PWN)]'",
    "HISTCMD='a[$(PWN)]'",
    "SRANDOM='a[$(PWN)]'",
    "export RANDOM='a[$(PWN)]'",
    "f() { local 'a[$(PWN)]=1'; }; f",
    "for x in 1; do [[ -v 'a[$(PWN)]' ]]; done",
    "x='a[$(PWN)]'; echo ${!x}",
    "x='a[$(PWN)]'; declare -n y=$x; echo $y",
    "x=y; y='a[$(PWN)]'; echo $((x))",
    "exec {a[$(PWN)]}>/dev/null",
    "set -- 'a[$(PWN)]'; (($1))",
    "compgen -W '$(PWN)'",
    "PS4='$(PWN)'; set -x; :",
    "declare -A m; x='$(PWN)'; unset \"m[$x]\"",
    "declare -A m; x='$(PWN)'; printf -v \"m[$x]\" a",
    "x='a[$(PWN)]'; [[ x -eq 0 ]]",
    "x='a[$(PWN)]'; y=(1 2); echo ${y[x]}",
    "x='a[$(PWN)]'; y[x]=1",
    "x='a[$(PWN)]'; declare -i z; z=x",
    "x='a[$(PWN)]'; z=(1 2); unset z[x]",
    "x='$(PWN)'; echo \"${x@P}\"",
    "trap 'PWN' DEBUG; :",
    "f() { PWN; }; trap f ERR; false",
    "command_not_found_handle() { PWN; }; nosuch",
    ": 1>&'$(PWN)'",
    "read RANDOM <<< 'a[$(PWN)]'",
    "printf -v RANDOM '%s' 'a[$(PWN)]'",
    "for RANDOM in 'a[$(PWN)]'; do :; done",
    "declare RANDOM='a[$(PWN)]'",
    "x='a[$(PWN)]'; RANDOM=$x",
    "x='a[$(PWN)]'; OPTIND=x :",
    "mapfile RANDOM <<< 'a[$(PWN)]'",
    "read OPTIND <<E\na[\\$(PWN)]\nE",
    "x=a[\\$\\(PWN\\)]; ((x))",
    "x=\"a[\\$(PWN)]\"; ((x))",
    "read x <<< 'a[$(PWN)]'; ((x))",
    "for x in 'a[$(PWN)]'; do ((x)); done",
    "f() { ((x)); }; x='a[$(PWN)]' f",
    "let 'a[$(PWN)]=1'",
    "test -v 'a[$(PWN)]'",
    "[ -v 'a[$(PWN)]' ]",
    "printf -v 'a[$(PWN)]' x",
    "read 'a[$(PWN)]' <<< x",
    "wait -p 'a[$(PWN)]' -n",
    ": >& \"a\\$(PWN)\"",
    ": >& '`PWN`'",
    ": <& '$(PWN)'; PWN",
    ": > '$(PWN)'; PWN",
    ": &> '$(PWN)'; PWN",
    "x='$(PWN)'; : >& $x",
    ": <<< '$(PWN)'; PWN",
    ": {fd}>& '$(PWN)'; PWN",
    ": 2>& '$(PWN)'; PWN",
    "a=$(b)\\\nc PWN0",
    "echo a\\ \\\nPWN",
    ": \"$(: ${x:-$'$(PWN)'})\"",
    "x=(@(a) b)\nPWN",
    "x=(a)% PWN",
    "declare x=(a)b\nPWN",
    "cat <<A | PWN $(PWN)\nx\nA\n",
    "echo $(case a in a) PWN;; esac)",
    "echo `PWN`",
    "echo `echo \\`PWN\\``",
    "echo \"`PWN \\\"a\\\"`\"",
    "echo \"${x:-\"$(PWN)\"}\"",
    "echo \"${x:-'$(PWN)'}\"",
    "echo ${x:-'$(PWN)'}",
    "echo \"${x#'$(PWN)'}\"",
    "echo ${x:-`PWN`}",
    "echo $((1+$(PWN)))",
    "(( $(PWN) ))",
    "((PWN); (PWN))",
    "echo $((PWN) )",
    "echo $(( (1) ))",
    "x=(a $(PWN) b)",
    "x[$(PWN)]=1",
    "x=([$(PWN)]=a)",
    "declare -a x=($(PWN))",
    "for x in $(PWN); do PWN; break; done",
    "for ((i=$(PWN);0;)); do PWN; done",
    "select x in $(PWN); do PWN; done",
    "case $(PWN) in *) PWN;; esac",
    "case x in $(PWN)) ;; *) PWN;& y) PWN;; esac",
    "if PWN; then PWN; elif PWN; then PWN; else PWN; fi",
    "while PWN; do PWN; break; done",
    "until PWN; do PWN; break; done",
    "f() { PWN; }; f",
    "f() (PWN); f",
    "function f { PWN; }; f",
    "function f() { PWN; } >f; f",
    "f() if PWN; then PWN; fi; f",
    "f() [[ -n $(PWN) ]]; f",
    "f() ((1)); f; PWN",
    "f() { :; } > $(PWN); f",
    "{ PWN; } | { PWN; }",
    "(PWN) & PWN",
    "! PWN",
    "! ! PWN",
    "time PWN",
    "time -p PWN",
    "time ! PWN",
    "coproc PWN",
    "coproc { PWN; }",
    "coproc N { PWN; }",
    "coproc N (PWN)",
    "[[ -n $(PWN) ]]",
    "[[ a == $(PWN) ]]",
    "[[ a =~ ($(PWN)) ]]",
    "[[ a =~ a|$(PWN) ]] && PWN",
    "[[ ! -n a || ( -n $(PWN) && a < b ) ]]",
    "cat <<E\n$(PWN)\nE\nPWN",
    "cat <<'E'\n$(PWN)\nE\nPWN",
    "cat <<-E\n\t$(PWN)\n\tE\nPWN",
    "cat <<E; PWN\n`PWN`\nE\nPWN",
    "cat <<E\n${x:-$(PWN)}\nE",
    "cat <<E\n\\$(PWN)\nE\nPWN",
    "cat <<E\na\\\nE\n$(PWN)\nE\nPWN",
    "cat <<A <<B\n$(PWN)\nA\n$(PWN)\nB\nPWN",
    "cat <<<$(PWN)",
    "cat <<<\"$(PWN)\"",
    "echo >f $(PWN)",
    "> $(PWN)",
    "2>&1 PWN",
    ">f PWN",
    "x=1 PWN",
    "x=$(PWN)",
    "x=$(PWN) PWN",
    "x=1 >f y=2 PWN a",
    "{fd}>f PWN",
    "PWN {fd}>f",
    "PWN &>f",
    "PWN >&f",
    "PWN >|f",
    "PWN <(PWN) >(PWN)",
    "PWN > >(PWN)",
    "echo a<(PWN)b",
    "echo $'a\\'b' $(PWN)",
    "echo $\"$(PWN)\"",
    "$'\\x50\\x57\\x4e0'",
    "P\\WN",
    "'PWN'",
    "\"PWN\"",
    "P''WN",
    "eval PWN",
    "eval 'PWN; PWN'",
    "eval \"PWN $(PWN)\"",
    "trap PWN EXIT",
    "trap 'PWN; PWN' EXIT",
    "command PWN",
    "builtin command PWN",
    "exec PWN",
    "exec -a x PWN",
    "command -p PWN",
    "PWN # PWN\nPWN",
    "PWN#x",
    "echo # $(PWN)\nPWN",
    "echo a #'\nPWN #'",
    "PWN \\\n PWN\nPWN",
    "echo \\\nPWN",
    "PWN &&\nPWN ||\n# c\nPWN",
    "PWN | # c\nPWN",
    "PWN;PWN&PWN",
    "if PWN\nthen\nPWN\nfi",
    "case a in (a) PWN ;; esac",
    "case a in a|b) PWN ;; *) ;; esac; PWN",
    "case a in esac; PWN",
    "for x do PWN; done",
    "for x; do PWN; done; PWN",
    "for x in a; { PWN; }",
    "{ PWN\n}",
    "( ( PWN ) )",
    "$(echo) PWN",
    "echo {a,$(PWN)}",
    "echo ~$(PWN)",
    "echo *$(PWN)*",
    "echo @(a|$(PWN))",
    "shopt -s extglob\necho @(a|$(PWN)) !(b)\nPWN",
    "echo ${x/$(PWN)/$(PWN)}",
    "echo ${x:$(PWN):1}",
    "echo ${x[$(PWN)]}",
    "echo ${!x} $(PWN)",
    "echo ${#x} ${##} $(PWN)",
    "echo \"$(echo \"$(PWN)\")\"",
    "echo \"$(echo '$(PWN)')\"",
    "echo '$(PWN)'; PWN",
    "echo \\$(PWN",
    "echo \"\\$(PWN)\"; PWN",
    "echo \"\\`PWN\\`\"; PWN",
    "echo $(cat <<E\n$(PWN)\nE\n)",
    "echo $(cat <<E\nx\nE\n) PWN\nPWN",
    "echo \"$(cat <<'E'\n\"$(PWN)\nE\n)\"; PWN",
    "echo $(# c )\nPWN)",
    "echo $(PWN # c )\n)",
    "echo `PWN # c`",
    "echo `# c`; PWN",
    "x=`PWN`; PWN",
    "echo ${x:-a}b}; PWN",
    "echo ${x:-\\}$(PWN)}",
    "echo ${x:-{a,b}$(PWN)}; PWN",
    "echo \"${x:-}}\"; PWN",
    "let 'x=1'; PWN",
    "declare x=$(PWN)",
    "export x=`PWN`",
    "local x=(a)\nPWN",
    "readonly x=1 && PWN",
    "printf -v x '%s' $(PWN)",
    "read x <<< $(PWN)",
    "mapfile -t x < <(PWN)",
    "while read x; do PWN; done < <(PWN)",
    "PWN;;",
    ";PWN",
    "PWN )",
    "fi; PWN",
    "} ; PWN",
    "PWN }",
    "PWN fi",
    "echo if; PWN",
    "if=1 PWN",
    "for=1; PWN",
    "x=\"a\nb\" PWN\nPWN",
    "'a\nb'; PWN",
    "echo a\\\n; PWN",
    "a=b\\\nc PWN",
    "PW\\\nN",
    "ec\\\nho; PWN",
    "PWN |\\\nPWN",
    "PWN\\\n",
    "if\\\n PWN; then PWN; fi",
    "((1)) && PWN",
    "((1)); PWN",
    "(( 1 < 2 )) && PWN",
    "((x=1)) || PWN",
    "$[1+$(PWN)]",
    "echo $[1]; PWN",
    "set -- a; PWN \"$@\"",
    "echo $\\(PWN)",
    "x() { PWN; }\nx",
    "x() \n{ PWN\n}\nx",
    "echo a=(b); PWN",
    "x=(a\nb # c\n$(PWN))\nPWN",
    "x+=(`PWN`)",
    "test -n \"$(PWN)\" && PWN",
    "[ -n `PWN` ] || PWN",
    "PWN || { PWN; } && (PWN)",
    "if ! PWN; then :; fi; PWN",
    "echo <<E $(PWN)\nE\nPWN",
    "PWN <<E &\n$(PWN)\nE\nPWN",
    "(cat <<E\n$(PWN)\nE\n); PWN",
    "f() { cat <<E\n$(PWN)\nE\n}; f; PWN",
    "echo `cat <<E\n$(PWN)\nE\n`; PWN",
    "if cat <<E; then PWN; fi\n$(PWN)\nE\nPWN",
    "echo \"a\\\n$(PWN)\"",
    "echo 'a\\\n'; PWN",
    "echo $(echo \\\nPWN; PWN)",
    "echo \"$(PWN \\\n PWN)\"",
    "PWN 2>/dev/null >&2",
    "echo 1>f2 PWN; PWN",
    "echo ?(a) *(b); PWN",
    "case a in @(a|b)) PWN;; esac",
    "[[ a == @(a|b) ]] && PWN",
    "[[ a == !(b) ]] && PWN",
    "[[ ab =~ ^(a|b)+$ ]] && PWN",
    "[[ 'a b' =~ (a\\ b) ]] && PWN",
];

/// A script.
pub(crate) fn script(chance: &mut Chance) -> String {
    let mut text = match chance.below(10) {
        0..=2 => soup(chance),
        3..=6 => {
            let mut builder = Builder {
                chance,
                bodies: Vec::new(),
            };
            builder.list(4)
        }
        _ => chance.pick(SEEDS).to_owned(),
    };
    if chance.one_in(4) {
        let other = chance.pick(SEEDS);
        let between = chance.pick(&["; ", "\n", " && ", " | ", " ", ""]);
        text = format!("{text}{between}{other}");
    }
    for _ in 0..chance.below(4) {
        text = change(chance, &text);
    }
    number(&text)
}

/// Gives each marker a name of its own, so that one that is seen cannot cover for one that is not.
fn number(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split("PWN").enumerate() {
        if index > 0 {
            out.push_str("PWN");
            out.push(char::from(
                b'0' + u8::try_from((index - 1) % 10).unwrap_or(0),
            ));
        }
        out.push_str(part);
    }
    out
}

fn soup(chance: &mut Chance) -> String {
    let mut text = String::new();
    for _ in 0..2 + chance.below(14) {
        text.push_str(chance.pick(TOKENS));
    }
    text
}

/// One small change.
fn change(chance: &mut Chance, text: &str) -> String {
    let mut places: Vec<usize> = text.char_indices().map(|(index, _)| index).collect();
    places.push(text.len());
    let at = places[chance.below(places.len())];
    let to = places[chance.below(places.len())];
    let (from, to) = (at.min(to), at.max(to).min(at.min(to) + 12));
    let to = places
        .iter()
        .copied()
        .find(|place| *place >= to)
        .unwrap_or(text.len());
    match chance.below(6) {
        0 => format!("{}{}", &text[..from], &text[to..]),
        1 => format!("{}{}{}", &text[..at], chance.pick(TOKENS), &text[at..]),
        2 => {
            let byte = BYTES[chance.below(BYTES.len())];
            format!("{}{}{}", &text[..at], char::from(byte), &text[at..])
        }
        3 => format!("{}{}{}", &text[..to], &text[from..to], &text[to..]),
        4 => {
            let byte = BYTES[chance.below(BYTES.len())];
            let next = places
                .iter()
                .copied()
                .find(|place| *place > at)
                .unwrap_or(text.len());
            format!("{}{}{}", &text[..at], char::from(byte), &text[next..])
        }
        _ => {
            let (open, close) = match chance.below(9) {
                0 => ("$(", ")"),
                1 => ("`", "`"),
                2 => ("\"", "\""),
                3 => ("'", "'"),
                4 => ("{ ", "; }"),
                5 => ("${x:-", "}"),
                6 => ("(", ")"),
                7 => ("eval '", "'"),
                _ => ("<(", ")"),
            };
            format!(
                "{}{open}{}{close}{}",
                &text[..from],
                &text[from..to],
                &text[to..]
            )
        }
    }
}

/// Builds text that is mostly right.
struct Builder<'c> {
    chance: &'c mut Chance,
    bodies: Vec<String>,
}

impl Builder<'_> {
    fn list(&mut self, depth: usize) -> String {
        let mut text = self.pipeline(depth);
        for _ in 0..self.chance.below(3) {
            let separator = self
                .chance
                .pick(&["; ", ";", "\n", " && ", " || ", " & ", "&&\n", " \\\n&& "]);
            text.push_str(separator);
            if separator.ends_with('\n') {
                self.flush(&mut text);
            }
            let next = self.pipeline(depth);
            text.push_str(&next);
        }
        if !self.bodies.is_empty() {
            text.push('\n');
            self.flush(&mut text);
        }
        text
    }

    fn flush(&mut self, text: &mut String) {
        for body in std::mem::take(&mut self.bodies) {
            text.push_str(&body);
        }
    }

    fn pipeline(&mut self, depth: usize) -> String {
        let mut text = self
            .chance
            .pick(&["", "", "", "", "", "! ", "time ", "time -p ", "! ! "])
            .to_owned();
        text.push_str(&self.command(depth));
        while self.chance.one_in(5) {
            text.push_str(self.chance.pick(&[" | ", "|", " |& ", " | # c\n"]));
            let next = self.command(depth);
            text.push_str(&next);
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 || self.chance.below(10) < 6 {
            return self.simple(depth);
        }
        let inner = depth - 1;
        let a = self.list(inner);
        let compound = match self.chance.below(16) {
            0 => format!("({a})"),
            1 => format!("{{ {a}; }}"),
            2 => format!("{{ {a}\n}}"),
            3 => format!("if {a}; then {}; fi", self.list(inner)),
            4 => format!(
                "if {a}\nthen {}\nelse {}\nfi",
                self.list(inner),
                self.list(inner)
            ),
            5 => format!("while {a}; do {}; break; done", self.list(inner)),
            6 => format!(
                "for x in {} {}; do {a}; done",
                self.word(inner),
                self.word(inner)
            ),
            7 => format!(
                "for ((i={}; i<1; i++)); do {a}; break; done",
                self.chance.pick(&["0", "$(PWN)", "0+0"])
            ),
            8 => format!(
                "case {} in {}) {a};; *) {};; esac",
                self.word(inner),
                self.word(inner),
                self.list(inner)
            ),
            9 => format!("f() {{ {a}; }}; f {}", self.word(inner)),
            10 => format!("function f {{ {a}\n}}\nf"),
            11 => format!(
                "[[ {} {} {} ]]",
                self.word(inner),
                self.chance.pick(&["==", "!=", "=~", "<", "-nt"]),
                self.word(inner)
            ),
            12 => format!(
                "[[ ! -n {} && ( {} || -z a ) ]]",
                self.word(inner),
                self.word(inner)
            ),
            13 => format!(
                "(( {} + 1 ))",
                self.chance.pick(&["1", "$(PWN)", "x", "`PWN`", "(2)"])
            ),
            14 => format!("coproc {{ {a}; }}"),
            _ => format!("until {a}; do {}; break; done", self.list(inner)),
        };
        let tail = match self.chance.below(8) {
            0 => self.redirection(inner),
            _ => String::new(),
        };
        format!("{compound}{tail}")
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut text = String::new();
        if self.chance.one_in(6) {
            text.push_str(self.chance.pick(&["x=", "x+=", "x[0]=", "x[$(PWN)]="]));
            if self.chance.one_in(3) && text.len() < 4 {
                let (a, b) = (self.word(depth), self.word(depth));
                text = format!("{text}({a} {b})");
            } else {
                text.push_str(&self.word(depth));
            }
            text.push_str(self.chance.pick(&["", " "]));
        }
        if self.chance.one_in(10) {
            let redirection = self.redirection(depth);
            text.push_str(&redirection);
            text.push(' ');
        }
        text.push_str(self.chance.pick(&[
            "PWN",
            "PWN",
            "PWN",
            "PWN",
            "PWN",
            "PWN",
            "echo",
            ":",
            "true",
            "P\\WN",
            "'PWN'",
            "P\"\"WN",
            "command PWN",
            "builtin echo",
            "eval",
            "eval PWN",
            "$'PWN'",
            "exec -a b PWN",
            "\"PWN\"",
            "/usr/bin/env PWN",
            "/usr/bin/nice -n 1 PWN",
            "/usr/bin/timeout 1 /usr/bin/env A=b PWN",
            "/bin/bash -c PWN",
            "/bin/sh -c \'PWN; PWN\'",
            "/usr/bin/xargs PWN",
            "/usr/bin/find . -exec PWN {} +",
            "declare y=a",
            "test",
            "false",
            "trap PWN EXIT;",
            "export z=",
        ]));
        for _ in 0..self.chance.below(4) {
            text.push_str(self.chance.pick(&[" ", "  ", "\t", " \\\n"]));
            let word = self.word(depth);
            text.push_str(&word);
        }
        while self.chance.one_in(6) {
            let redirection = self.redirection(depth);
            text.push_str(&redirection);
        }
        if self.chance.one_in(15) {
            text.push_str(" # c '\n");
            self.flush(&mut text);
            text.push(':');
        }
        text
    }

    fn redirection(&mut self, depth: usize) -> String {
        let number = self.chance.pick(&["", "", "", "2", "{fd}"]);
        match self.chance.below(10) {
            0 => format!(" {number}>{}", self.word(depth)),
            1 => format!(" {number}>>f"),
            2 => " 2>&1".to_owned(),
            3 => " &>f".to_owned(),
            4 => format!(" {number}<{}", self.word(depth)),
            5 => format!(" <<<{}", self.word(depth)),
            6 => " >&2".to_owned(),
            7 => " < <(PWN)".to_owned(),
            _ => {
                let (operator, end) = match self.chance.below(5) {
                    0 => ("<<E", "E\n"),
                    1 => ("<<-E", "\tE\n"),
                    2 => ("<<'E'", "E\n"),
                    3 => ("<<\\E", "E\n"),
                    _ => ("<<\"E\"", "E\n"),
                };
                let line = self.chance.pick(&[
                    "a\n",
                    "$(PWN)\n",
                    "`PWN`\n",
                    "\\$(PWN)\n",
                    "${x:-$(PWN)}\n",
                    "'$(PWN)'\n",
                    "\"$(PWN)\"\n",
                    "a\\\nE\n",
                    "\t$x\n",
                    "$((1+$(PWN)))\n",
                    "",
                    "E \n",
                    "$(\nPWN\n)\n",
                ]);
                self.bodies.push(format!("{line}{end}"));
                format!(" {operator}")
            }
        }
    }

    fn word(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self
                .chance
                .pick(&[
                    "a", "b", "$x", "'a b'", "\"a $x\"", "1", "*", "~", "a\\ b", "''", "if",
                    "{a,b}", "$'\\n'", "\"\\\"\"", "a#b", "E", "-n",
                ])
                .to_owned();
        }
        let inner = depth - 1;
        match self.chance.below(22) {
            0 => format!("$({})", self.list(inner)),
            1 => format!("\"$({})\"", self.list(inner)),
            2 => {
                let list = self
                    .list(inner)
                    .replace('\\', "\\\\")
                    .replace('`', "\\`")
                    .replace('$', "\\$");
                format!("`{list}`")
            }
            3 => format!("<({})", self.list(inner)),
            4 => format!("${{x:-{}}}", self.word(inner)),
            5 => format!("\"${{x:-{}}}\"", self.word(inner)),
            6 => format!(
                "${{x{}{}}}",
                self.chance
                    .pick(&["#", "%", "##", "/", "//", "^", ":+", "=", "?"]),
                self.word(inner)
            ),
            7 => format!(
                "\"${{x{}{}}}\"",
                self.chance.pick(&["#", "%", "/", ",", ":+", "+"]),
                self.word(inner)
            ),
            8 => format!(
                "$(({}+1))",
                self.chance.pick(&["1", "$(PWN)", "x", "(1)", "`PWN`"])
            ),
            9 => format!("a{}b", self.word(inner)),
            10 => format!(
                "\"a{}b\"",
                self.chance.pick(&[
                    "$(PWN)",
                    "`PWN`",
                    "\\$(PWN)",
                    "\\`PWN\\`",
                    "$x",
                    "${x}",
                    "\\\n",
                    "'",
                    "#",
                    "$"
                ])
            ),
            11 => format!(
                "'{}'",
                self.chance.pick(&["$(PWN)", "`PWN`", "\\", "\"", "#", "a"])
            ),
            12 => format!(
                "$'{}'",
                self.chance
                    .pick(&["$(PWN)", "\\'$(PWN)", "\\\\", "\\n", "\\x41"])
            ),
            13 => format!("{{{},{}}}", self.word(inner), self.word(inner)),
            14 => format!("@({}|b)", self.word(inner)),
            15 => format!(
                "${{x[{}]}}",
                self.chance
                    .pick(&["0", "$(PWN)", "@", "`PWN`", "\"$(PWN)\""])
            ),
            16 => format!(
                "${{x:{}}}",
                self.chance.pick(&["0", "$(PWN)", "0:1", " -1"])
            ),
            17 => format!(
                "\"{}\"'{}'",
                self.chance.pick(&["a", "$x", "$(PWN)"]),
                self.chance.pick(&["b", "$(PWN)"])
            ),
            _ => self.word(0),
        }
    }
}
