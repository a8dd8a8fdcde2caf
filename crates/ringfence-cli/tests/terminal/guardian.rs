//! The user's terminal when ringfence itself is killed.

use std::time::Duration;

use crate::driver::{
    PATIENCE, Terminal, World, children, for_each_user, is_alive, kill, processes_with, say, until,
};
use crate::ends::mark;

/// However busy the machine is.
const SOON: Duration = PATIENCE;
const NAME: &str = "tty-guardian";

/// The guardian beside a supervisor, once it has its name.
#[track_caller]
fn guardian_of(program: u32) -> u32 {
    let mut found = Vec::new();
    until("there is a guardian", SOON, || {
        found = children(program, NAME);
        found.len() == 1
    });
    found[0]
}

/// A session that has done everything to the terminal, and its guardian.
fn disturbed(world: &World, mark: &str) -> (Terminal, u32) {
    let script = format!(
        "stty raw -echo -isig; printf '\\033[?1049h\\033[?1003h\\033[?25l\\033[31m rea''dy\\033]0;half'; sleep {mark}"
    );
    let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", &script]);
    terminal.expect("ready");
    let guardian = guardian_of(terminal.program());
    (terminal, guardian)
}

#[test]
fn a_killed_supervisor_leaves_the_terminal_as_it_was() {
    for_each_user(|world| {
        // Alone, and with its whole job, as a shell's `kill -9 %1` does.
        for group in [false, true] {
            let mark = mark();
            let (mut terminal, guardian) = disturbed(world, &mark);
            let plain = terminal.modes_before();
            assert_ne!(terminal.modes(), plain, "the control");
            let program = i64::from(terminal.program());
            kill("KILL", if group { -program } else { program });
            let shown = terminal.expect("\x18\x1b[?1049l\x1b[?1003l\x1b[?25h\x1b[m");
            assert!(shown.contains("half"), "{shown:?}");
            assert_eq!(terminal.modes(), plain);
            until("the guardian is gone", SOON, || !is_alive(guardian));
            until("everything is gone", SOON, || processes_with(&mark) == 0);
        }
    });
}

/// Killed at points nobody chose, from before the terminal is taken until it is given back.
#[test]
fn a_supervisor_killed_anywhere_leaves_the_terminal_as_it_was() {
    const ROUNDS: u64 = 60;
    for_each_user(|world| {
        let plain = world.ringfence(&["--version"]).modes();
        let mut random = u64::from(std::process::id()) | 1;
        let seed = random;
        let (mut early, mut late, mut over) = (0, 0, 0);
        for round in 0..ROUNDS {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mark = mark();
            // Some of them end by themselves about then.
            let rest = if round % 3 == 0 { "exit" } else { "sleep" };
            let script = format!("printf '\\033[?1049hre''ady'; {rest} {mark}");
            let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", &script]);
            // On a busy machine none of the others might come as far as the command.
            let mut shown = String::new();
            if round % 20 == 19 {
                shown = terminal.expect("ready");
            } else {
                std::thread::sleep(Duration::from_micros(random % 120_000));
            }
            terminal.kill();
            let what = format!("round {round}, seed {seed}");
            until(&what, SOON, || terminal.modes() == plain);
            until(&what, SOON, || processes_with(&mark) == 0);
            let rest = terminal.rest(Duration::from_millis(20));
            shown.push_str(&String::from_utf8_lossy(&rest));
            match (shown.contains("ready"), shown.contains("\x1b[?1049l")) {
                (false, _) => early += 1,
                (true, true) => late += 1,
                // The guardian may be about to say it.
                (true, false) => {
                    terminal.expect("\x1b[?1049l");
                    over += 1;
                }
            }
        }
        say(&format!(
            "killed {ROUNDS} times (seed {seed}): {early} before the command wrote, {} after",
            late + over
        ));
        assert!(late + over > 0, "never after");
    });
}

/// Without it the terminal stays as it is: so it is the guardian that restores it.
#[test]
fn without_a_guardian_nobody_restores_it() {
    for_each_user(|world| {
        let mark = mark();
        let (mut terminal, guardian) = disturbed(world, &mark);
        let disturbed = terminal.modes();
        kill("KILL", guardian.into());
        until("the guardian is gone", SOON, || !is_alive(guardian));
        kill("KILL", terminal.program().into());
        until("everything is gone", SOON, || processes_with(&mark) == 0);
        assert_eq!(terminal.modes(), disturbed);
        assert_eq!(terminal.expect("half"), "\x1b]0;half");
        assert_eq!(terminal.rest(Duration::from_millis(100)), b"");
    });
}

#[test]
fn signals_do_not_reach_a_guardian() {
    for_each_user(|world| {
        let mark = mark();
        let (terminal, guardian) = disturbed(world, &mark);
        for signal in ["HUP", "INT", "QUIT", "TERM", "TTOU", "TSTP", "USR1", "PIPE"] {
            kill(signal, guardian.into());
        }
        std::thread::sleep(Duration::from_millis(50));
        assert!(is_alive(guardian));
        // It holds the terminal, what is to be undone, and a pipe; and is nowhere.
        let at = |name: &str| std::fs::read_link(format!("/proc/{guardian}/{name}"));
        let open = std::fs::read_dir(format!("/proc/{guardian}/fd")).unwrap();
        assert_eq!(open.count(), 3);
        assert_eq!(at("cwd").unwrap().to_str(), Some("/"));
        drop(terminal);
        until("the guardian is gone", SOON, || !is_alive(guardian));
    });
}

/// While the session is suspended the terminal is the shell's, and nobody else's business.
#[test]
fn a_suspended_session_has_no_guardian() {
    for_each_user(|world| {
        let mut terminal = world.shell();
        let before = terminal.modes();
        terminal.line("rf run --tty -- sh -c 'echo rea''dy; read x'");
        terminal.expect("ready\r\n");
        let shell = crate::jobs::shell_below(terminal.process());
        let [program] = children(shell.parse().unwrap(), "ringfence")[..] else {
            panic!("it runs");
        };
        let guardian = guardian_of(program);
        terminal.keys("\x1a");
        terminal.expect("Stopped");
        terminal.expect("outside> ");
        assert!(!is_alive(guardian));
        assert_eq!(children(program, NAME), []);
        terminal.line("kill -9 %1");
        until("it is gone", SOON, || !is_alive(program));
        terminal.line("echo st''ill");
        terminal.expect("still");
        terminal.expect("outside> ");
        assert_eq!(terminal.modes(), before);
    });
}

#[test]
fn a_terminal_that_is_closed_keeps_no_guardian() {
    for_each_user(|world| {
        let mark = mark();
        let (mut terminal, guardian) = disturbed(world, &mark);
        terminal.hang_up();
        until("the guardian is gone", SOON, || !is_alive(guardian));
        until("everything is gone", SOON, || processes_with(&mark) == 0);
    });
}
