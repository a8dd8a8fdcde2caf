//! 142: a command that begins like a harmless one. No rule about first words lifts the sandbox.

use std::fs;

use crate::answering::{answering, questions, there};
use crate::stage::for_each_user;

/// Each begins with `echo ok` and writes outside in another way.
const CHAINS: [(&str, &str); 9] = [
    (";", "echo ok; touch ../outside/made"),
    ("&&", "echo ok && touch ../outside/made"),
    ("|", "echo ok | tee ../outside/made"),
    ("$()", "echo ok $(touch ../outside/made)"),
    ("<()", "cat <(echo ok; touch ../outside/made); sleep 0.2"),
    (
        "here-document",
        "bash <<'END'\necho ok\ntouch ../outside/made\nEND",
    ),
    ("line end", "echo ok\ntouch ../outside/made"),
    ("env", "env X=1 touch ../outside/made"),
    ("redirection", "echo ok > ../outside/made"),
];

#[test]
fn no_beginning_lifts_the_sandbox() {
    for_each_user(|stage| {
        let home = stage.world.home();
        let outside = home.join("outside");
        fs::create_dir(&outside).unwrap();
        stage.give(&outside);
        let made = outside.join("made");
        // Everything that could be meant to allow such commands by how they begin.
        stage.world.user_settings(
            r#"{ "shell": { "rules": [
                { "prefix": ["echo"], "action": "allow", "justification": "harmless" },
                { "prefix": ["cat"], "action": "allow", "justification": "harmless" },
                { "prefix": ["bash"], "action": "allow", "justification": "harmless" },
                { "prefix": ["env"], "action": "allow", "justification": "harmless" }
            ] } }"#,
        );
        let asked = home.join("asked");
        let yes = answering(&asked, "once");
        // The plain beginning was approved before, for everything.
        let approve = ["run", "--no-prompt", "--thread", "t", "--approve-cmd", &yes];
        let wanted = ["--request-write", "../outside", "--request-unsandboxed"];
        let command = ["--", "bash", "-c", "echo ok"];
        stage.done(&[&approve[..], &wanted, &command].concat());
        assert_eq!(questions(&asked).len(), 1);
        for (what, chain) in CHAINS {
            let control = stage.other("bash", &["-c", chain]).output().unwrap();
            assert!(fs::remove_file(&made).is_ok(), "{what}: {control:?}");
            for flags in [&[][..], &["--shell-policy", "relaxed"], &["--thread", "t"]] {
                let words = [&["run", "--no-prompt"], flags, &["--", "bash", "-c", chain]];
                let ran = stage.run(&words.concat());
                assert!(!there(&made), "{what} {flags:?}: {ran:?}");
            }
        }
        assert_eq!(questions(&asked).len(), 1, "nobody was asked for less");
    });
}
