//! What passes through, byte for byte, and what passes beside.

use std::process::Stdio;
use std::time::Duration;

use crate::driver::for_each_user;

#[test]
fn every_byte_reaches_a_program_that_wants_them() {
    for_each_user(|world| {
        let script = "stty raw -echo; echo rea''dy; head -c 512 | od -An -v -tu1 | tr -s ' \\n' ' '; echo; sleep 0.1";
        let mut terminal = world.ringfence(&["run", "--tty", "--", "sh", "-c", script]);
        terminal.expect("ready");
        let all: Vec<u8> = (0..=u8::MAX).chain(0..=u8::MAX).collect();
        terminal.keys(&all);
        let shown = terminal.expect(" 255 0 1 2");
        assert!(shown.contains("0 1 2 3 4"), "{shown:?}");
        let shown = terminal.expect(" 255");
        let rest: Vec<String> = (3..=255).map(|byte: u8| byte.to_string()).collect();
        assert_eq!(shown.trim(), rest.join(" "));
        assert_eq!(terminal.end(), 0);
    });
}

#[test]
fn what_is_shown_is_what_was_printed() {
    for_each_user(|world| {
        // Colours, the alternate screen, a paste, halves of characters, and plain binary.
        let mut bytes =
            b"\x1b[31mred\x1b[m\x1b[?1049h\x1b[2J\x1b[?1049l\x1b[200~paste\x1b[201~\xc3".to_vec();
        bytes.extend(
            (0..200_u32)
                .flat_map(u32::to_le_bytes)
                .filter(|byte| *byte != b'\n'),
        );
        bytes.extend_from_slice(b"end-of-bytes");
        std::fs::write(world.project().join("bytes"), &bytes).unwrap();
        let mut terminal = world.ringfence(&["run", "--tty", "--", "cat", "bytes"]);
        assert_eq!(terminal.end(), 0);
        let shown = terminal.expect_bytes("end-of-bytes");
        assert_eq!(shown, bytes);
    });
}

#[test]
fn a_flood_arrives_whole() {
    for_each_user(|world| {
        let mut terminal = world.ringfence(&["run", "--tty", "--", "seq", "1", "200000"]);
        let shown = terminal.expect("\r\n200000\r\n");
        assert_eq!(shown.matches("\r\n").count(), 200_000);
        assert_eq!(terminal.end(), 0);
    });
}

#[test]
fn pipes_and_files_stay_what_they_are() {
    for_each_user(|world| {
        let mut terminal = world.shell();
        let which = "for n in 0 1 2; do test -t $n && echo $n is >&2; done";
        terminal.line(&format!(
            "echo text | rf run --tty -- sh -c '{which}; cat' | cat; echo en''d"
        ));
        let shown = terminal.expect("end\r\n");
        let shown = shown.rsplit_once("en''d").unwrap().1;
        assert!(
            !shown.contains("0 is") && !shown.contains("1 is"),
            "{shown:?}"
        );
        assert!(
            shown.contains("2 is") && shown.contains("text\r\n"),
            "{shown:?}"
        );
    });
}

#[test]
fn without_a_terminal_a_shell_reads_its_input() {
    for_each_user(|world| {
        let mut command = world.command(world.program());
        command.arg("shell").stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"echo one; test -t 0 || echo none\nexit 5\n")
            .unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "one\nnone\n");
        assert_eq!(output.status.code(), Some(5));
    });
}

#[test]
fn a_terminal_that_is_not_there_is_not_promised() {
    for_each_user(|world| {
        let mut command = world.command(world.program());
        command.args(["run", "--tty", "--", "true"]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("neither standard input, output nor error is a terminal"),
            "{said}"
        );
    });
}

/// What `printf` makes of it is full of everything a terminal obeys, in pieces.
const HOSTILE: &str = "printf '\\033[31mred\\033[m \\033]0;ti'; sleep 0.05; printf 'tle\\007\\033[6'; sleep 0.05; printf 'n\\033]52;c;ZXZpbA==\\033\\\\\\302\\2336n\\2336n\\033P$qm\\033\\\\text\\303\\274\\033[2J\\n'; printf 'error\\033c\\n' >&2";

#[test]
fn text_and_colours_are_left_when_asked_for() {
    for_each_user(|world| {
        let control = world.command("sh").args(["-c", HOSTILE]).output().unwrap();
        assert!(control.stdout.contains(&0x07), "the control");
        for (place, flags) in [
            (
                "a pipe",
                &["run", "--sanitize", "--", "sh", "-c", HOSTILE][..],
            ),
            ("a shell", &["shell", "--sanitize"]),
        ] {
            let mut command = world.command(world.program());
            command.args(flags).stdin(Stdio::piped());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut input = child.stdin.take().unwrap();
            std::io::Write::write_all(&mut input, HOSTILE.as_bytes()).unwrap();
            drop(input);
            let output = child.wait_with_output().unwrap();
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "\x1b[31mred\x1b[m text\u{fc}\n",
                "{place}"
            );
            assert_eq!(
                String::from_utf8_lossy(&output.stderr),
                "error\n",
                "{place}"
            );
        }
        let flags = ["run", "--tty", "--sanitize", "--", "sh", "-c", HOSTILE];
        let mut terminal = world.ringfence(&flags);
        assert_eq!(terminal.end(), 0);
        let shown = terminal.expect("error\r\n");
        assert_eq!(shown, "\x1b[31mred\x1b[m text\u{fc}\r\nerror\r\n");
        assert_eq!(terminal.rest(Duration::from_millis(100)), b"");
    });
}

#[test]
fn a_filtered_flood_arrives_whole_and_nobody_is_kept_alive_by_it() {
    for_each_user(|world| {
        let mut command = world.command(world.program());
        command.args(["run", "--sanitize", "--", "seq", "1", "200000"]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        assert_eq!(lines.lines().count(), 200_000);
        assert!(lines.ends_with("\n200000\n"));
        assert_eq!(output.status.code(), Some(0));
        // A reader who goes away is heard of inside, as through a plain pipe.
        let mut command = world.command(world.program());
        command.args(["run", "--sanitize", "--limit", "wall=20", "--", "yes"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(128 + 13));
    });
}
