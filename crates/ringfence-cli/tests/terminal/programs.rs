//! Programs that draw on the whole screen.

use crate::driver::{for_each_user, has};

#[test]
fn vim_edits_is_suspended_and_writes() {
    if !has("vim") {
        return;
    }
    for_each_user(|world| {
        let mut terminal = world.shell();
        let before = terminal.modes();
        terminal.line("rf run --tty -- vim -u NONE notes.txt");
        // The alternate screen, and the line for a new file.
        terminal.expect("\x1b[?1049h");
        terminal.expect("[New File]");
        terminal.keys("ifirst line\x1b");
        terminal.expect("first line");
        terminal.keys("\x1a");
        terminal.expect("\x1b[?1049l");
        terminal.expect("Stopped");
        terminal.expect("outside> ");
        assert_eq!(terminal.modes(), before);
        terminal.resize(30, 100);
        terminal.line("fg");
        terminal.expect("\x1b[?1049h");
        terminal.expect("first line");
        terminal.keys("osecond \u{fc}\u{4e16}\x1b:put =&lines\r");
        terminal.keys(":wq\r");
        terminal.expect("\x1b[?1049l");
        terminal.expect("outside> ");
        assert_eq!(terminal.modes(), before);
        let text = std::fs::read_to_string(world.project().join("notes.txt")).unwrap();
        assert_eq!(text, "first line\nsecond \u{fc}\u{4e16}\n30\n");
    });
}

#[test]
fn less_takes_its_text_from_a_pipe_and_its_keys_from_the_terminal() {
    if !has("less") {
        return;
    }
    for_each_user(|world| {
        let mut terminal = world.shell();
        terminal.line("seq 1 1000 | rf run --tty -- less; echo st=$?");
        terminal.expect("\r\n23");
        terminal.keys("G");
        terminal.expect("1000");
        terminal.keys("?^77$\n");
        terminal.expect("77");
        terminal.keys("q");
        terminal.expect("st=0");
    });
}

#[test]
fn top_draws_and_leaves() {
    if !has("top") {
        return;
    }
    for_each_user(|world| {
        let mut terminal = world.ringfence(&["run", "--tty", "--", "top"]);
        terminal.expect("Tasks:");
        // Its own process, and the first one of the session.
        terminal.expect("(sessi");
        terminal.keys("q");
        assert_eq!(terminal.end(), 0);
    });
}

#[test]
fn htop_draws_and_leaves() {
    if !has("htop") {
        return;
    }
    for_each_user(|world| {
        let mut terminal = world.ringfence(&["run", "--tty", "--", "htop"]);
        let before = terminal.modes_before();
        terminal.expect("\x1b[?1049h");
        terminal.expect("Load average");
        terminal.keys("q");
        assert_eq!(terminal.end(), 0);
        assert_eq!(terminal.modes(), before);
    });
}

#[test]
fn tmux_opens_terminals_inside() {
    if !has("tmux") {
        return;
    }
    for_each_user(|world| {
        let mut terminal = world.ringfence(&["run", "--tty", "--", "tmux", "-f", "/dev/null"]);
        let before = terminal.modes_before();
        // Its own line at the bottom.
        terminal.expect("[0] 0:");
        terminal.line("echo in''side $(tty)");
        terminal.expect("inside /dev/pts/1");
        // A second window: another terminal.
        terminal.keys("\x02c");
        terminal.line_until("echo sec''ond $(tty)", "second /dev/pts/2");
        terminal.line("tmux kill-server");
        terminal.end();
        assert_eq!(terminal.modes(), before);
    });
}
