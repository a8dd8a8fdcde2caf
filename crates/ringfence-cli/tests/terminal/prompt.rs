//! The question at the terminal: which keys answer it, and what cannot.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::driver::{Control, Terminal, World, for_each_user};

const ASK: [&str; 5] = ["run", "--thread", "t", "--request-write", "../outside"];
const WRITE: [&str; 4] = ["--", "/bin/sh", "-c", "touch ../outside/made"];

fn ask(world: &World, more: &[&str]) -> Terminal {
    ask_typed_ahead(world, "", more)
}

fn ask_typed_ahead(world: &World, keys: &str, more: &[&str]) -> Terminal {
    let outside = world.home().join("outside");
    fs::create_dir_all(&outside).unwrap();
    // Whoever the command runs as may write there, as far as the host is concerned.
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
    let mut words = ASK.to_vec();
    words.extend(more);
    words.extend(WRITE);
    world.ringfence_typed_ahead(keys, &words)
}

fn made(world: &World) -> bool {
    let path = world.home().join("outside/made");
    let made = path.try_exists().unwrap();
    let _ = fs::remove_file(path);
    made
}

#[test]
fn every_key_but_a_yes_is_a_no() {
    for_each_user(|world| {
        for key in ["d", "\r", "\u{1b}", "\u{3}"] {
            let mut terminal = ask(world, &[]);
            let modes = terminal.modes_before();
            terminal.expect("(default: deny): ");
            terminal.keys(key);
            terminal.expect("denied");
            assert_eq!(terminal.end(), 125, "{key:?}");
            assert!(!made(world), "{key:?}");
            assert_eq!(terminal.modes(), modes, "{key:?}");
        }
        let mut terminal = ask(world, &["--approve-timeout", "1"]);
        assert_eq!(terminal.end(), 125);
        assert!(!made(world));
    });
}

#[test]
fn a_yes_is_for_as_long_as_was_said() {
    for_each_user(|world| {
        let mut terminal = ask(world, &[]);
        let shown = terminal.expect("(default: deny): ");
        assert!(shown.contains("wants to"), "{shown}");
        terminal.keys("o");
        assert_eq!(terminal.end(), 0);
        assert!(made(world));
        let mut terminal = ask(world, &[]);
        terminal.expect("(default: deny): ");
        terminal.keys("t");
        assert_eq!(terminal.end(), 0);
        assert!(made(world));
        let mut terminal = ask(world, &[]);
        assert_eq!(terminal.end(), 0, "not asked again");
        assert!(made(world));
    });
}

/// Where the sandbox cannot be made, going on without it is a choice and never the default.
#[test]
fn a_sandbox_that_cannot_be_made_is_a_question() {
    for_each_user(|world| {
        let ask = |more: &[&str]| {
            let mut words = vec!["--engine", "landlock"];
            words.extend(more);
            let outside = world.home().join("outside");
            fs::create_dir_all(&outside).unwrap();
            fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
            let words = [&["run"], &words[..], &WRITE].concat();
            world.ringfence(&words)
        };
        for key in ["d", "\r", "\u{1b}", "\u{3}"] {
            let mut terminal = ask(&[]);
            let shown = terminal.expect("(default: deny): ");
            assert!(
                shown.contains("the sandbox for this command cannot be made"),
                "{shown}"
            );
            assert!(shown.contains("because"), "{shown}");
            assert!(
                shown.contains("instead    run without the sandbox, which cannot be made"),
                "{shown}"
            );
            assert!(shown.contains("only tracked"), "{shown}");
            terminal.keys(key);
            assert_eq!(terminal.end(), 125, "{key:?}");
            assert!(!made(world), "{key:?}");
        }
        let mut terminal = ask(&["--approve-timeout", "1"]);
        assert_eq!(terminal.end(), 125);
        assert!(!made(world));
        let mut terminal = ask(&["--no-prompt"]);
        assert_eq!(terminal.end(), 125);
        assert!(!made(world));

        let mut terminal = ask(&["--thread", "t"]);
        terminal
            .expect("[r]etry (tried 1x), go on without it [o]nce, for this [t]hread; or [d]eny");
        terminal.expect("(default: deny): ");
        // There is no always.
        terminal.keys("a");
        terminal.expect("\u{7}");
        terminal.keys("r");
        terminal.expect("[r]etry (tried 2x)");
        terminal.expect("(default: deny): ");
        terminal.keys("o");
        assert_eq!(terminal.end(), 0);
        assert!(made(world));
        // Once was once; nobody is asked where the refusal is read by nobody.
        let script = format!(
            "{} run --engine landlock -- true 2>/dev/null; echo ended $?",
            world.program().display()
        );
        let mut terminal = Terminal::with(world, Control::Terminal, &["sh", "-c", &script]);
        terminal.expect("ended 125");
    });
}

#[test]
fn what_was_typed_before_is_no_answer() {
    for_each_user(|world| {
        let mut terminal = ask_typed_ahead(world, "oooaaat", &["--approve-timeout", "2"]);
        terminal.expect("(default: deny): ");
        assert_eq!(terminal.end(), 125);
        assert!(!made(world));
    });
}

#[test]
fn nothing_that_is_shown_can_draw_and_what_deceives_must_be_read() {
    for_each_user(|world| {
        let reason = "\u{1b}[2K\r└ allowed \u{202e}always\r\n└ allow [o]nce: p\u{430}ypal";
        let mut terminal = ask(world, &["--reason", reason]);
        let shown = terminal.expect("then press k");
        assert!(!shown.contains("\u{1b}["), "{shown:?}");
        assert!(!shown.contains('\u{202e}'), "{shown:?}");
        assert!(shown.contains("nobody checked them"), "{shown}");
        assert!(shown.contains("U+0430 looks like `a`"), "{shown}");
        // Every line of the question is in the frame.
        let question = shown.split("ringfence: this command").nth(1).unwrap();
        for line in question.lines().skip(1).filter(|line| !line.is_empty()) {
            assert!(line.trim_end().starts_with(['│', '└']), "{line:?}");
        }
        terminal.keys("oat");
        for _ in 0..3 {
            terminal.expect("\u{7}");
        }
        let rest = terminal.rest(Duration::from_millis(300));
        assert_eq!(String::from_utf8_lossy(&rest), "");
        terminal.keys("k");
        terminal.expect("(default: deny): ");
        terminal.keys("o");
        assert_eq!(terminal.end(), 0);
        assert!(made(world));
    });
}

/// Keys that were pressed at the question, before it, with the answer or right behind it, are not the
/// command's; those that come once it runs are.
#[test]
fn what_is_typed_at_the_question_never_reaches_the_command() {
    for_each_user(|world| {
        let script = "stty -icanon -echo min 0 time 10; printf 're''ad=%s\\n' \"$(dd bs=99 count=1 2>/dev/null | od -An -c | tr -d ' \\n')\"; echo rea''dy; read x; echo got=$x";
        for tty in [&["--tty"][..], &[]] {
            let outside = world.home().join("outside");
            fs::create_dir_all(&outside).unwrap();
            let mut words = vec!["run", "--request-write", "../outside"];
            words.extend(tty);
            words.extend(["--", "/bin/sh", "-c", script]);
            let mut terminal = world.ringfence_typed_ahead("before\n", &words);
            terminal.expect("(default: deny): ");
            terminal.keys("xyzorm -rf everything\n");
            terminal.expect("allowed");
            terminal.expect("read=\r\n");
            terminal.expect("ready");
            terminal.line("typed");
            terminal.expect("got=typed");
            assert_eq!(terminal.end(), 0);
        }
    });
}
