//! Keys, jobs, sizes: what a shell does on a terminal.

use crate::driver::{PATIENCE, Terminal, for_each_user, is_stopped, processes_of, sleepers, until};
use crate::ends::mark;

/// A confined bash without anybody's start-up files.
fn inside(terminal: &mut Terminal) {
    terminal.line("PS1='in''side> '");
    terminal.expect("inside> ");
}

#[test]
fn a_shell_has_a_terminal_of_its_own() {
    for_each_user(|world| {
        let mut terminal = world.ringfence(&["shell"]);
        inside(&mut terminal);
        terminal.line("tty; shopt -q login_shell && echo log''in; echo $0; stty size");
        let shown = terminal.expect("inside> ");
        for wanted in ["/dev/pts/0\r\n", "login\r\n", "/bin/bash\r\n", "24 80\r\n"] {
            assert!(shown.contains(wanted), "{wanted:?}: {shown:?}");
        }
        // The terminals of the host are not there to be found.
        terminal.line("ls -m /dev/pts; echo on''ly >/dev/tty");
        let shown = terminal.expect("inside> ");
        assert!(
            shown.contains("0, ptmx\r\n") && shown.contains("only\r\n"),
            "{shown:?}"
        );
        terminal.line("exit 7");
        assert_eq!(terminal.end(), 7);
    });
}

#[test]
fn a_new_size_is_told_inside() {
    for_each_user(|world| {
        let script = "trap 'stty size' WINCH; echo rea''dy; while :; do sleep 0.05; done";
        let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", script]);
        terminal.expect("ready");
        terminal.resize(40, 132);
        terminal.expect("40 132");
        terminal.resize(31, 53);
        terminal.expect("31 53");
        terminal.keys("\x03");
        assert_eq!(terminal.end(), 130);
    });
}

#[test]
fn keys_reach_the_foreground_job_inside() {
    for_each_user(|world| {
        let mut terminal = world.ringfence(&["shell"]);
        let before = terminal.modes_before();
        inside(&mut terminal);
        assert_ne!(terminal.modes(), before, "every byte must come through");
        // Ctrl-C, once the job is in the foreground: before it becomes its program it makes sure of that.
        let (first, second) = (mark(), mark());
        terminal.line(&format!("sleep {first}; echo st=$?"));
        until("it sleeps", PATIENCE, || sleepers(&first).len() == 1);
        terminal.keys("\x03");
        terminal.expect("inside> ");
        terminal.line("echo st=$?");
        terminal.expect("st=130");
        // Ctrl-Z, jobs, fg, Ctrl-\
        terminal.line(&format!("sleep {second}"));
        until("it sleeps", PATIENCE, || sleepers(&second).len() == 1);
        terminal.keys("\x1a");
        terminal.expect("Stopped");
        terminal.line("jobs -l");
        terminal.expect("Stopped");
        // A shell gives the foreground to a job before it continues it.
        let sleeper = sleepers(&second)[0];
        until("it is stopped", PATIENCE, || is_stopped(sleeper));
        terminal.line("fg");
        until("it goes on", PATIENCE, || !is_stopped(sleeper));
        terminal.keys("\x1c");
        terminal.expect("Quit");
        // Ctrl-D
        terminal.expect("inside> ");
        terminal.keys("\x04");
        assert_eq!(terminal.end(), 131);
        assert_eq!(terminal.modes(), before);
    });
}

#[test]
fn a_command_is_suspended_with_ringfence_and_continued() {
    for_each_user(|world| {
        let mut terminal = world.shell();
        let before = terminal.modes();
        let mark = mark();
        let script = "echo ready; read x; echo got=$x; exit 3";
        terminal.line(&format!("rf run --tty -- sh -c '{script}' {mark}"));
        terminal.expect("ready\r\n");
        let command = processes_of(&["sh", "-c", script, &mark])[0];
        terminal.keys("\x1a");
        terminal.expect("Stopped");
        terminal.expect("outside> ");
        assert_eq!(terminal.modes(), before);
        // The user's shell is what is typed to now.
        terminal.line("echo again''outside");
        terminal.expect("againoutside");
        for _ in 0..3 {
            terminal.line("fg");
            terminal.expect("ringfence run");
            terminal.wait_until_taken();
            // Whoever is continued forgets that it was asked to stop while it did not run.
            until("it goes on", PATIENCE, || !is_stopped(command));
            terminal.keys("\x1a");
            terminal.expect("Stopped");
            terminal.expect("outside> ");
        }
        terminal.resize(50, 90);
        terminal.line("fg");
        terminal.wait_until_taken();
        terminal.line("typed");
        terminal.expect("got=typed");
        terminal.expect("outside> ");
        terminal.line("echo st=$?");
        terminal.expect("st=3");
        terminal.expect("outside> ");
        assert_eq!(terminal.modes(), before);
    });
}

#[test]
fn a_shell_that_stops_itself_comes_back_with_the_size_of_now() {
    for_each_user(|world| {
        let mut terminal = world.shell();
        terminal.line("rf shell");
        inside(&mut terminal);
        terminal.line("kill -STOP $$");
        terminal.expect("Stopped");
        terminal.expect("outside> ");
        terminal.resize(33, 77);
        terminal.line("fg");
        terminal.wait_until_taken();
        terminal.line("stty size");
        terminal.expect("33 77");
        terminal.line("exit");
        terminal.expect("outside> ");
    });
}

#[test]
fn it_is_stopped_and_continued_by_signals_too() {
    for_each_user(|world| {
        let mut terminal = world.shell();
        let before = terminal.modes();
        for signal in ["TSTP", "STOP"] {
            terminal.line("rf run --tty -- sh -c 'echo rea''dy; read x; echo got=$x'");
            terminal.expect("ready\r\n");
            // By its parent's number: the program has the same name in every test.
            let stopped = world
                .command("sh")
                .args([
                    "-c",
                    &format!("pkill -{signal} --parent $1 ringfence"),
                    "sh",
                ])
                .arg(shell_below(terminal.process()))
                .status();
            assert!(stopped.unwrap().success());
            terminal.expect("Stopped");
            terminal.expect("outside> ");
            assert_eq!(terminal.modes(), before, "{signal}");
            terminal.line("fg");
            terminal.wait_until_taken();
            terminal.line("typed");
            terminal.expect("got=typed");
            terminal.expect("outside> ");
        }
    });
}

/// `setsid` starts the program as its child if it leads a group itself.
pub(crate) fn shell_below(process: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap();
    if name.trim() == "bash" {
        return process.to_string();
    }
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    children.unwrap().trim().to_owned()
}

#[test]
fn in_the_background_it_waits_for_its_turn() {
    for_each_user(|world| {
        let mut terminal = world.shell();
        let before = terminal.modes();
        terminal.line("rf run --tty -- sh -c 'read x; echo got=$x' &");
        terminal.expect("outside> ");
        until("it waits for its turn", PATIENCE, || {
            terminal.line("jobs");
            terminal.expect("outside> ").contains("Stopped")
        });
        assert_eq!(terminal.modes(), before, "the terminal is not its own yet");
        terminal.line("fg");
        terminal.wait_until_taken();
        terminal.line("typed");
        terminal.expect("got=typed");
    });
}

#[test]
fn every_engine_has_terminals() {
    for_each_user(|world| {
        for engine in ["namespaces", "bwrap", "landlock", "track"] {
            let mut flags = vec!["run", "--tty", "--on-gap", "report"];
            match engine {
                "track" => flags.extend(["--preset", "track"]),
                engine => flags.extend(["--engine", engine]),
            }
            flags.extend(["--", "sh", "-c"]);
            flags.push("tty; echo di''rect >/dev/tty; stty size; read x; echo got=$x; exec cat");
            let mut terminal = world.ringfence(&flags);
            let before = terminal.modes_before();
            terminal.expect("/dev/pts/");
            terminal.expect("direct");
            terminal.expect("24 80");
            terminal.line("typed");
            terminal.expect("got=typed");
            // Shells lose an interrupt that comes while they start a program.
            terminal.line("again");
            terminal.expect("again\r\nagain");
            terminal.keys("\x03");
            assert_eq!(terminal.end(), 130, "{engine}");
            assert_eq!(terminal.modes(), before, "{engine}");
        }
    });
}
