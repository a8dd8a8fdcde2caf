//! What holds for every text.

#![expect(
    clippy::expect_used,
    clippy::tests_outside_test_module,
    reason = "an integration test is all test"
)]

use proptest::prelude::*;
use ringfence_shell::{Code, Ir, RuleSet, Verdict, decide, write_targets};

/// Commands that every rule set allows.
const ALLOWED: &[&str] = &[
    "ls",
    "make -j4 test",
    "echo 'a b' \"c\"",
    "grep -rn x src | sort | uniq -c",
    "cargo test && cargo clippy",
    "for f in a b; do cat \"$f\"; done",
    "if [ -f a ]; then wc -l a; else echo none; fi",
    "case $x in a|b) ls;; *) pwd;; esac",
    "cat <<E\n$x\nE",
    "cat <<'E'\n$(not run)\nE\nls",
    "f() { ls \"$1\"; }; f a",
    "( ls; pwd ) 2>&1",
    "x=$(date) y=1",
    "[[ -n $x && a == b* ]] || ls",
    "git -C sub status",
    "ls > /dev/null 2>&1",
    "find . -name '*.rs' | xargs grep -n foo",
    "python3 -m pytest -q",
    "ls\n# just a comment",
    "ls # a comment",
];

/// A command, and the code with which the default rules or `verify` deny it.
const DENIED: &[(&str, RuleSet, Code)] = &[
    ("cd /tmp", RuleSet::Default, Code::Cd),
    ("echo a > out", RuleSet::Default, Code::RedirectOut),
    ("curl u | bash", RuleSet::Relaxed, Code::OpaqueInterpreter),
    ("rm -rf d", RuleSet::Verify, Code::WriteTarget),
    ("git commit -m x", RuleSet::Verify, Code::MutatingCommand),
    ("sudo -u bob rm f", RuleSet::Verify, Code::WriteTarget),
    ("bash -c 'rm f'", RuleSet::Verify, Code::WriteTarget),
    ("npm publish", RuleSet::Verify, Code::MutatingCommand),
];

/// Ways to put one text around or behind another.
fn combine(way: usize, allowed: &str, denied: &str) -> String {
    match way {
        0 => format!("{allowed}\n{denied}"),
        1 => format!("{denied}; {allowed}"),
        2 => format!("{denied} && {allowed}"),
        3 => format!("{denied} || {allowed}"),
        4 => format!("{denied} | {allowed}"),
        5 => format!("echo $({denied})\n{allowed}"),
        6 => format!("cat <({denied})\n{allowed}"),
        7 => format!("g() {{ {denied}; }}\n{allowed}"),
        8 => format!("while :; do {denied}; done\n{allowed}"),
        9 => format!("{allowed}\nif :; then {denied}; fi"),
        10 => format!("{allowed}\n( {denied} )"),
        11 => format!("{allowed}\ncase a in a) {denied};; esac"),
        12 => format!("{allowed}\necho \"$( {denied} )\""),
        13 => format!("{allowed}\ncat <<Q\n$({denied})\nQ"),
        14 => format!("{allowed}\nx=$({denied})"),
        15 => format!("{allowed}\necho ${{x:-$({denied})}}"),
        16 => format!("{allowed}\ncoproc {{ {denied}; }}"),
        17 => format!("{allowed}\n[[ -n $({denied}) ]]"),
        18 => format!("{allowed}\n{denied} &"),
        19 => format!("{allowed}\n! {denied}"),
        20 => format!("{allowed}\ntime {denied}"),
        21 => format!("{allowed}\nselect x in a; do {denied}; done"),
        _ => format!("{allowed}\n{{ {denied}; }} 2>&1"),
    }
}

const WAYS: usize = 23;

#[test]
fn adding_a_denied_command_to_an_allowed_text_denies() {
    for allowed in ALLOWED {
        for rules in RuleSet::ALL {
            assert!(
                decide(&Ir::from_bash(allowed), *rules).is_allow(),
                "{allowed} by {rules}"
            );
        }
        for (denied, rules, code) in DENIED {
            for way in 0..WAYS {
                let text = combine(way, allowed, denied);
                let verdict = decide(&Ir::from_bash(&text), *rules);
                assert_eq!(verdict.code(), Some(*code), "{text}\n{verdict:?}");
            }
        }
    }
}

/// Texts that look like shell.
fn texts() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("ls"),
        Just("rm"),
        Just(" "),
        Just("\n"),
        Just(";"),
        Just("&&"),
        Just("|"),
        Just("&"),
        Just("("),
        Just(")"),
        Just("{ "),
        Just("; }"),
        Just("$("),
        Just("`"),
        Just("${x:-"),
        Just("}"),
        Just("\""),
        Just("'"),
        Just("\\"),
        Just("$x"),
        Just("<<E\n"),
        Just("\nE\n"),
        Just(">f"),
        Just("if "),
        Just("then "),
        Just("fi"),
        Just("for x in "),
        Just("do "),
        Just("done"),
        Just("case x in "),
        Just("esac"),
        Just(";;"),
        Just("[[ "),
        Just(" ]]"),
        Just("(("),
        Just("))"),
        Just("x="),
        Just("x=("),
        Just("eval '"),
        Just("bash -c '"),
        Just("sudo "),
        Just("xargs "),
        Just("find . -exec "),
        Just("git "),
        Just("sed -i "),
        Just("é"),
        Just("<("),
        Just("#"),
        Just("*"),
        Just("{a,b}"),
        Just("$'\\x41'"),
        Just("f() "),
        Just("-c "),
        Just("env -S "),
    ];
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

fn check(text: &[u8]) {
    let ir = Ir::from_bash(text);
    assert_eq!(ir, Ir::from_bash(text), "the same text gives the same IR");
    let json = serde_json::to_string(&ir).expect("an IR can be written");
    let back: Ir = serde_json::from_str(&json).expect("and read again");
    assert_eq!(back, ir);
    assert_eq!(
        serde_json::to_string(&back).expect("and written again"),
        json
    );

    let end = u32::try_from(text.len()).expect("short texts");
    let inside = |span: ringfence_shell::Span| span.start <= span.end && span.end <= end;
    for (index, block) in ir.blocks.iter().enumerate() {
        assert!(inside(block.span), "{block:?}");
        assert_eq!(block.within.is_none(), index == 0);
        if let Some(within) = block.within {
            assert!((within as usize) < index, "parents come first");
            assert!(
                ir.blocks[within as usize].span.holds(block.span),
                "{block:?} is not in {:?}",
                ir.blocks[within as usize]
            );
        }
        assert!(
            block
                .redirections
                .iter()
                .all(|redirection| inside(redirection.span))
        );
    }
    for (index, command) in ir.commands.iter().enumerate() {
        let block = &ir.blocks[command.block as usize];
        assert!(
            block.span.holds(command.span),
            "{command:?} is not in {block:?}"
        );
        assert!(
            command.started_by.is_none_or(|by| (by as usize) < index),
            "starters come first"
        );
        for word in &command.words {
            assert!(inside(word.span), "{word:?}");
            let mut last = 0;
            for hole in &word.holes {
                assert!(
                    hole.at >= last && hole.at as usize <= word.text.len(),
                    "{word:?}"
                );
                last = hole.at;
            }
        }
        assert!(
            command
                .redirections
                .iter()
                .all(|redirection| inside(redirection.target.span))
        );
    }
    assert!(ir.findings.is_sorted() && ir.findings.iter().all(|finding| inside(finding.span)));
    assert!(write_targets(&ir).iter().all(|target| inside(target.span)));
    let mut stricter = true;
    for rules in [RuleSet::Verify, RuleSet::Default, RuleSet::Relaxed] {
        let verdict = decide(&ir, rules);
        if let Verdict::Deny {
            span,
            message,
            instead,
            ..
        } = &verdict
        {
            assert!(inside(*span) && !message.is_empty() && !instead.is_empty());
        }
        // What a strict set allows, the laxer ones allow too.
        assert!(stricter || !verdict.is_allow() || rules != RuleSet::Verify);
        stricter = verdict.is_allow();
    }
    let allows = |rules| decide(&ir, rules).is_allow();
    assert!(!allows(RuleSet::Verify) || allows(RuleSet::Default));
    assert!(!allows(RuleSet::Default) || allows(RuleSet::Relaxed));
    if ir.refusal.is_some() {
        assert!(
            ir.commands.is_empty() && ir.blocks.is_empty() && ir.codes() == [Code::SyntaxError]
        );
        assert!(RuleSet::ALL.iter().all(|rules| !allows(*rules)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_shell_like_text_gives_a_sound_ir(text in texts()) {
        check(text.as_bytes());
    }

    #[test]
    fn any_bytes_give_a_sound_ir(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn quoting_a_name_changes_nothing(way in 0_usize..6, argument in "[a-z]{1,8}") {
        let name = ["rm", "\\rm", "'rm'", "r\"m\"", "$'rm'", "/bin/rm"][way];
        let ir = Ir::from_bash(format!("{name} {argument}"));
        let targets: Vec<_> = write_targets(&ir).into_iter().map(|target| target.path).collect();
        prop_assert_eq!(targets, vec![Some(argument)]);
    }
}
