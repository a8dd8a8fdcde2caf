//! Input that means harm: a verdict in bounded time and space, and no more than a little stack.

#![expect(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "an integration test is all test"
)]

use std::thread;
use std::time::{Duration, Instant};

use ringfence_shell::{Code, Ir, MAX_TEXT, RefusalKind, RuleSet, decide, write_targets};

/// A quarter of what a thread gets by default, and these are unoptimised frames.
const STACK: usize = 512 << 10;

/// Generous for an unoptimised build on a busy machine; quadratic work would take minutes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads and judges `text` on a small stack, and gives the verdict's code.
fn judge(text: Vec<u8>) -> Option<Code> {
    let beginning = String::from_utf8_lossy(&text[..text.len().min(20)]).into_owned();
    let start = Instant::now();
    let reader = move || {
        let ir = Ir::from_bash(&text);
        let _ = write_targets(&ir);
        decide(&ir, RuleSet::Verify).code()
    };
    let code = thread::Builder::new()
        .stack_size(STACK)
        .spawn(reader)
        .unwrap()
        .join()
        .unwrap();
    assert!(
        start.elapsed() < PATIENCE,
        "{:?} for {beginning:?}",
        start.elapsed()
    );
    code
}

/// Openings of everything that can hold itself.
const NESTS: &[&str] = &[
    "(",
    "( ",
    "{ ",
    "$(",
    "`",
    "\"$(",
    "${x:-",
    "\"${x:-",
    "${x:-\"",
    "$((",
    "((",
    "$[",
    "<(",
    ">(",
    "if ",
    "if a; then ",
    "while ",
    "until a; do ",
    "for x in a; do ",
    "for ((;;)) { ",
    "select x in a; do ",
    "case a in a) ",
    "case $(",
    "f() { ",
    "f() (",
    "function f { ",
    "coproc ",
    "coproc { ",
    "! ",
    "time ",
    "time -p ",
    "[[ ",
    "[[ ( ",
    "[[ a =~ (",
    "@(",
    "echo @(",
    "x=(",
    "x[",
    "x=$(",
    "a=(b=$(",
    "eval ",
    "eval '",
    "eval \"",
    "bash -c '",
    "bash -c \"",
    "sudo ",
    "env ",
    "env -S ",
    "xargs ",
    "find . -exec ",
    "nice -n 1 ",
    "timeout 1 ",
    "cat <<E\n$(",
    "cat <<E\n${x:-",
    "\"",
    "'",
    "$'",
    "\\",
    "\\\n",
    "a\\\n",
    "a|",
    "a&&",
    "a;",
    "a&",
    "a\n",
    ">f ",
    "<<E ",
    "<<E\n",
    "<<<",
    "x=1 ",
    "{a,",
    "[",
    "${x[",
    "${x/",
    "${x:",
    "${!x",
    "echo {",
    "~",
    "*",
    "#",
    "git -c a=b ",
    "trap '",
    "\\`",
    "\"\\\"",
    "if a; then b; elif ",
    "then ",
    "parallel ",
    "command ",
    "builtin ",
    "exec ",
    "watch ",
    "$x ",
    "sh -c ",
    "alias a=",
    "declare a=(",
    "{fd}>",
    "2>&1 ",
    "|&",
    ";;",
    "esac ",
    "))",
    "]]",
    "}",
    ")",
    "fi ",
];

#[test]
fn nesting_a_hundred_thousand_deep_gives_a_verdict() {
    for nest in NESTS {
        for depth in [10, 64, 65, 100_000] {
            let length = nest.len() * depth;
            let mut text = nest.repeat(depth.min(MAX_TEXT / nest.len()));
            text.push('a');
            if length > 2_000 {
                judge(text.into_bytes());
            } else {
                judge(text.clone().into_bytes());
                // And closed again, as far as that is simple.
                let close = match *nest {
                    "(" | "( " | "$(" | "<(" | "@(" | "x=(" | "x=$(" | "echo @(" => ")",
                    "{ " | "f() { " | "coproc { " => "; }",
                    "${x:-" => "}",
                    "\"${x:-" => "}\"",
                    "\"$(" => ")\"",
                    _ => continue,
                };
                text.push_str(&close.repeat(depth));
                judge(text.into_bytes());
            }
        }
    }
}

#[test]
fn what_nests_reasonably_is_read_and_what_does_not_is_refused() {
    let nested =
        |depth: usize| Ir::from_bash(format!("{}ls{}", "$(".repeat(depth), ")".repeat(depth)));
    assert_eq!(nested(60).refusal, None);
    assert_eq!(nested(65).refusal.unwrap().kind, RefusalKind::TooDeep);
}

#[test]
fn a_megabyte_is_read_and_more_is_refused() {
    let line = "grep -rn \"$x\" src | sort | uniq -c && echo 'done' # comment\n";
    let text = line.repeat(MAX_TEXT / line.len());
    let ir = Ir::from_bash(&text);
    assert_eq!(ir.refusal, None);
    let over = Ir::from_bash(vec![b'a'; MAX_TEXT + 1]);
    assert_eq!(over.refusal.unwrap().kind, RefusalKind::TooLarge);
}

#[test]
fn long_texts_of_one_kind_are_linear() {
    // An eighth of the cap: linear work is done at once, quadratic work is not.
    let repeated = |unit: &str| unit.repeat(MAX_TEXT / 8 / unit.len()).into_bytes();
    for unit in [
        "a ",
        "\\$a$y",
        "[*",
        "[a]*",
        "x=$y\\$ ",
        "a;",
        "a\n",
        "$x ",
        "\"$x\" ",
        "'a' ",
        "{a,b} ",
        "*",
        "[a]",
        "~:",
        "a|",
        "$(a) ",
        "`a` ",
        "\\a",
        "<<E\nE\n",
        "cat <<E\n$x\nE\n",
        "f() { a; }\n",
        "x=1 ",
        "x=(1)\n",
        "a[1]=2\n",
        "sudo ",
        "nice ",
        "env A=1 ",
        "$x a ",
        "xargs ",
        "eval a\n",
        "bash -c 'a'\n",
        "find . -exec a {} \\;\n",
        "git -c a=b ",
        "{}",
        "a=b",
        "bash\n",
        "f() { bash; }; f\n",
        "a | bash\n",
        "${x} ",
        "$((1)) ",
        "[[ a ]]\n",
        ">f ",
        "#\n",
        "é",
        "case a in a) b;; esac\n",
        "if a; then b; fi\n",
        "-c ",
        "ls -l ",
        "trap 'a' EXIT\n",
        "alias a=b\n",
    ] {
        judge(repeated(unit));
    }
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    for (text, kind) in [
        (&b"ls\0rm f"[..], RefusalKind::Nul),
        (b"\0", RefusalKind::Nul),
        (b"ls \xff", RefusalKind::NotUtf8),
        (b"ls \xc3", RefusalKind::NotUtf8),
        (b"ls\rrm f", RefusalKind::ControlCharacter),
        (b"ls\x01", RefusalKind::ControlCharacter),
        (b"ls\x7f", RefusalKind::ControlCharacter),
        (b"$'a\\0b'", RefusalKind::ControlCharacter),
    ] {
        let ir = Ir::from_bash(text);
        assert_eq!(ir.refusal.unwrap().kind, kind, "{text:?}");
        assert_eq!(
            decide(&ir, RuleSet::Relaxed).code(),
            Some(Code::SyntaxError)
        );
    }
}

#[test]
fn unterminated_everything_is_refused() {
    for text in [
        "'",
        "\"",
        "`",
        "$(",
        "${",
        "${x",
        "$((",
        "((",
        "(",
        "{ a",
        "<(",
        "$'",
        "$\"",
        "a\\",
        "if a",
        "while a; do b",
        "for x in a; do",
        "case x in",
        "case x in a) b",
        "[[ a",
        "f() {",
        "x=(",
        "x[1",
        "cat <<E",
        "cat <<E\nx",
        "eval 'a",
        "bash -c 'if'",
        "echo @(a",
        "coproc {",
        "function f",
        "a |",
        "a &&",
    ] {
        assert!(Ir::from_bash(text).refusal.is_some(), "{text}");
    }
}
