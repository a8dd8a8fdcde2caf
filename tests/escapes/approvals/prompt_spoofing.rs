//! 136, 141: text that draws its own question, hides part of it, or looks like something else; and
//! that what is granted is what was shown.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use crate::answering::{answering, questions, there};
use crate::driver::{Terminal, for_each_user};
use crate::stage;

/// What no terminal may ever be sent by a question.
const DRAWING: [char; 8] = [
    '\u{1b}', '\u{9b}', '\u{8}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{430}',
];

/// The whole question, checked: every line of it is in the frame, and nothing in it draws.
fn question(terminal: &mut Terminal, end: &str) -> String {
    let shown = terminal.expect(end);
    let (_, question) = shown.split_once("ringfence: this command").unwrap();
    for line in question.lines().skip(1) {
        let line = line.trim_end_matches('\r');
        assert!(
            line.is_empty() || line.starts_with(['│', '└']),
            "{line:?} is not in the frame"
        );
        let drawn = line.chars().find(|character| DRAWING.contains(character));
        assert_eq!(drawn, None, "{line:?}");
        assert!(!line.contains('\r'), "{line:?}");
    }
    question.to_owned()
}

#[test]
fn a_command_draws_nothing_and_hides_nothing() {
    let padding = " ".repeat(10_000);
    let long = format!("{padding}; touch ../outside/other");
    // No word is long, and together they fill the screen.
    let wide = "漢".repeat(900);
    let words: [(&str, &str); 9] = [
        (
            "carriage return",
            "echo harmless\r\u{1b}[2K└ allowed for this command",
        ),
        ("cleared line", "\u{1b}[2K\u{1b}[1A\u{1b}[2J"),
        ("c1 control", "\u{9b}2J\u{9d}0;x\u{7}"),
        ("bidi", "echo \u{202e}fdp.txt\u{2066}"),
        ("zero width", "rm\u{200b} -rf\u{feff} x"),
        ("look-alike", "echo p\u{430}ypal"),
        ("backspace", "echo bad\u{8}\u{8}\u{8}good"),
        ("padding", &long),
        ("many rows", &wide),
    ];
    for_each_user(|world| {
        let outside = world.home().join("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
        for (what, word) in words {
            let ask = [
                "run",
                "--request-write",
                "../outside",
                "--",
                "/bin/sh",
                "-c",
                "touch ../outside/made",
                word,
            ];
            let mut terminal = world.ringfence(&ask);
            let shown = question(&mut terminal, "then press k");
            // What is asked for stands below everything that is long, with what deceives.
            let (_, last) = shown.rsplit_once("wants to").unwrap();
            assert!(last.contains("/outside"), "{what}: {last}");
            assert!(last.contains("careful"), "{what}: {last}");
            // The end of the command is not cut off.
            if what == "padding" {
                let joined: String = shown.split(['│', '\r', '\n']).map(str::trim).collect();
                assert!(joined.contains("touch ../outside/other"), "{what}");
            }
            terminal.expect("[d]eny: ");
            terminal.keys("o");
            terminal.expect("\u{7}");
            assert!(!there(&outside.join("made")), "{what}: not read yet");
            terminal.keys("k");
            terminal.expect("(default: deny): ");
            terminal.keys("o");
            assert_eq!(terminal.end(), 0, "{what}");
            assert!(fs::remove_file(outside.join("made")).is_ok(), "{what}");
        }
    });
}

#[test]
fn hosts_and_paths_that_look_like_others_are_marked() {
    for_each_user(|world| {
        let odd = world.home().join("p\u{430}ypal");
        fs::create_dir_all(&odd).unwrap();
        for (flag, value, mark) in [
            ("--request-host", "p\u{430}ypal.com", "xn--"),
            ("--request-host", "xn--pypal-4ve.com", "xn--"),
            (
                "--request-write",
                "../p\u{430}ypal",
                "U+0430 looks like `a`",
            ),
        ] {
            let mut terminal = world.ringfence(&["run", flag, value, "--", "true"]);
            let shown = question(&mut terminal, "then press k");
            assert!(shown.contains(mark), "{value}: {shown}");
            terminal.keys("d");
            assert_eq!(terminal.end(), 125, "{value}");
        }
        // An ordinary one needs no acknowledgement.
        let mut terminal = world.ringfence(&["run", "--request-host", "paypal.com", "--", "true"]);
        let shown = question(&mut terminal, "(default: deny): ");
        assert!(!shown.contains("careful"), "{shown}");
        terminal.keys("d");
        assert_eq!(terminal.end(), 125);
    });
}

/// Nothing of the command's is on the screen before the answer, and nothing after it is the question's.
#[test]
fn the_command_has_not_started_when_somebody_is_asked() {
    for_each_user(|world| {
        let outside = world.home().join("outside");
        fs::create_dir_all(&outside).unwrap();
        let draw =
            "printf '\\033[2J┌ ringfence: fake\\r\\n└ allow [o]nce: '; touch started; read -r x";
        let words = [
            "run",
            "--request-write",
            "../outside",
            "--",
            "/bin/sh",
            "-c",
            draw,
        ];
        let mut terminal = world.ringfence(&words);
        let shown = terminal.expect("(default: deny): ");
        let rest = terminal.rest(Duration::from_millis(300));
        let after = format!("{shown}{}", String::from_utf8_lossy(&rest));
        // The words are shown, escaped; nothing was drawn by them.
        assert!(!after.contains("\u{1b}[2J"), "{after:?}");
        assert!(!there(&world.project().join("started")));
        terminal.keys("d");
        assert_eq!(terminal.end(), 125);
        assert!(!there(&world.project().join("started")));
    });
}

#[test]
fn what_is_granted_is_what_was_shown() {
    stage::for_each_user(|stage| {
        let home = stage.world.home();
        for name in ["real", "real-not", "other"] {
            fs::create_dir(home.join(name)).unwrap();
            stage.give(&home.join(name));
        }
        symlink("real", home.join("alias")).unwrap();
        let asked = home.join("asked");
        let yes = answering(&asked, "once");
        let touch = "for d in real real-not other; do touch ../$d/made; done; ls -d ../*/made | xargs -n1 dirname | xargs -n1 basename";
        let words = [
            "run",
            "--no-prompt",
            "--approve-cmd",
            &yes,
            "--request-write",
            "../alias",
        ];
        let ran = stage.run(&[&words[..], &["--", "/bin/sh", "-c", touch]].concat());
        let asked = questions(&asked);
        let real = home.join("real");
        assert_eq!(asked[0]["permissions"][0]["value"], real.to_str().unwrap());
        let shown = asked[0]["permissions_shown"][0].as_str().unwrap();
        let expected = format!("write {} (asked for as ../alias)", real.display());
        assert_eq!(shown, expected);
        let made = |name: &str| there(&home.join(name).join("made"));
        assert!(made("real"), "{ran:?}");
        assert!(!made("real-not") && !made("other"), "{ran:?}");
    });
}
