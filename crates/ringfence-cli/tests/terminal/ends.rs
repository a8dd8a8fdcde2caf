//! Every way in which a session on a terminal ends, and what is left of it.

use std::time::{Duration, Instant};

use crate::driver::{Control, PATIENCE, Terminal, for_each_user, processes_with, sleepers, until};

/// A number that no other process has in its arguments.
pub(crate) fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}.{}", 3_000_000 + std::process::id(), 100 + next)
}

#[test]
fn a_killed_command_leaves_the_terminal_as_it_was() {
    for_each_user(|world| {
        let script = "stty raw -echo -isig; printf '\\033[?1049h'; kill -9 $$";
        let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", script]);
        let before = terminal.modes_before();
        assert_eq!(terminal.end(), 137);
        assert_eq!(terminal.modes(), before);
    });
}

#[test]
fn a_supervisor_that_is_told_to_end_does_so() {
    for_each_user(|world| {
        for signal in ["TERM", "HUP"] {
            let mark = mark();
            // Like an interactive shell, it does not end by being asked to.
            let script = format!("trap '' TERM HUP; echo rea''dy; sleep {mark}; sleep {mark}");
            let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", &script]);
            let before = terminal.modes_before();
            terminal.expect("ready");
            let told = Instant::now();
            let all = world
                .command("pkill")
                .args([
                    &format!("-{signal}"),
                    "--full",
                    "--",
                    &format!("^{}.*{mark}", world.program().display()),
                ])
                .status();
            assert!(all.unwrap().success());
            terminal.end_unread(PATIENCE);
            assert!(
                told.elapsed() > Duration::from_millis(500),
                "it had its chance"
            );
            assert_eq!(terminal.modes(), before);
            assert_eq!(processes_with(&mark), 0);
        }
    });
}

#[test]
fn nothing_survives_a_terminal_that_is_closed() {
    for_each_user(|world| {
        let mark = mark();
        let script =
            format!("trap '' HUP; sleep {mark} & setsid sleep {mark} & echo rea''dy; wait");
        let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", &script]);
        terminal.expect("ready");
        until("both sleep", PATIENCE, || sleepers(&mark).len() == 2);
        terminal.hang_up();
        until("everything is gone", PATIENCE, || {
            processes_with(&mark) == 0
        });
    });
}

#[test]
fn a_reader_who_does_not_read_keeps_nobody_alive() {
    for_each_user(|world| {
        let mark = mark();
        let script = format!("exec sh -c 'yes {mark}'");
        let wall = [
            "run", "--tty", "--limit", "wall=1", "--", "sh", "-c", &script,
        ];
        let started = Instant::now();
        let mut terminal = world.ringfence(&wall);
        // Nothing is read, so everything between it and us is full.
        let status = terminal.end_unread(PATIENCE);
        assert_eq!(status.code(), Some(124));
        assert!(started.elapsed() > Duration::from_secs(1));
        assert_eq!(processes_with(&mark), 0);
    });
}

#[test]
fn the_same_on_a_terminal_of_somebody_else() {
    for_each_user(|world| {
        let wall = ["run", "--tty", "--limit", "wall=1", "--", "yes"];
        let program = world.program();
        let mut words = vec![program.to_str().unwrap()];
        words.extend(wall);
        // Not the one that controls its jobs; and a plain user may not even open it again.
        let mut terminal = Terminal::with(world, Control::Borrowed, &words);
        let before = terminal.modes_before();
        let status = terminal.end_unread(PATIENCE);
        assert_eq!(status.code(), Some(124));
        assert_eq!(terminal.modes(), before);
    });
}

#[test]
fn a_command_that_never_reads_can_be_interrupted_and_ended() {
    for_each_user(|world| {
        let script = "stty -icanon -echo; echo rea''dy; exec sleep 1000";
        let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", script]);
        terminal.expect("ready");
        std::thread::sleep(Duration::from_millis(300));
        terminal.keys("x".repeat(2000));
        terminal.keys("\x03");
        assert_eq!(terminal.end(), 130);
    });
}

#[test]
fn what_was_typed_for_the_command_is_not_left_for_the_shell() {
    for_each_user(|world| {
        let mut terminal =
            world.ringfence(&["run", "--tty", "--", "sh", "-c", "echo rea''dy; sleep 0.5"]);
        terminal.expect("ready");
        terminal.keys("rm -rf everything\n");
        assert_eq!(terminal.end(), 0);
        assert_eq!(terminal.left_over(), 0);
    });
}

#[test]
fn output_right_before_the_end_is_shown() {
    for_each_user(|world| {
        for _ in 0..5 {
            let mut terminal = world.ringfence(&[
                "run",
                "--tty",
                "--",
                "sh",
                "-c",
                "seq 1 3000; printf la''st",
            ]);
            assert_eq!(terminal.end(), 0);
            // The kernel passes on what was written in its own time.
            terminal.expect("3000\r\nlast");
            assert_eq!(terminal.rest(Duration::from_millis(50)), b"");
        }
    });
}

#[test]
fn what_the_terminal_answers_late_is_not_left_for_the_shell() {
    for_each_user(|world| {
        // It asks where the cursor is, and is gone before the answer comes.
        let script = "printf '\\033[6n'; exit 4";
        let left_over = |_| {
            let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", script]);
            terminal.expect("\x1b[6n");
            std::thread::sleep(Duration::from_millis(50));
            terminal.keys("\x1b[24;80R");
            // What it is asked after that is answered in its turn.
            terminal.expect("\x1b[5n");
            terminal.keys("\x1b[0n");
            assert_eq!(terminal.end(), 4);
            terminal.left_over()
        };
        // A terminal is waited for, and not for long: on a busy machine we may be too late ourselves.
        assert!((0..5).map(left_over).any(|left| left == 0));
        // One that never answers is not waited for.
        let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", script]);
        assert_eq!(terminal.end(), 4);
        assert_eq!(terminal.left_over(), 0);
    });
}

#[test]
fn what_a_killed_program_did_to_the_screen_is_undone() {
    for_each_user(|world| {
        let script = "printf '\\033[?1049h\\033[?1003h\\033[?2004h\\033[?25l\\033[31mtext\\033]0;half'; kill -9 $$";
        let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", script]);
        assert_eq!(terminal.end(), 137);
        terminal.expect("half\x18\x1b[?1049l\x1b[?1003l\x1b[?2004l\x1b[?25h\x1b[m");
        assert_eq!(terminal.rest(Duration::from_millis(50)), b"");
    });
}
