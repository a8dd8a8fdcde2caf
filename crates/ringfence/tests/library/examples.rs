//! The examples do what they say.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::policies::place;

/// Where cargo puts examples: beside the tests it built them with.
fn example(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let built = own.parent().and_then(Path::parent).unwrap();
    let path = built.join("examples").join(name);
    if !path.is_file() {
        let _ = writeln!(
            std::io::stderr(),
            "NOT RUN, it needs the example {name}, which `cargo test --test` does not build"
        );
        return None;
    }
    Some(path)
}

#[test]
fn the_agent_reports_what_became_of_each_command() {
    let Some(agent) = example("agent") else {
        return;
    };
    let (_top, project) = place();
    let mut child = Command::new(agent)
        .arg(&project)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let neighbour = project.with_file_name("neighbour");
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "echo hello; exit 3").unwrap();
    writeln!(input, "echo x >> {}", neighbour.display()).unwrap();
    writeln!(input, "head -c 2000000 /dev/zero > large; echo $?").unwrap();
    writeln!(
        input,
        "mkdir .vscode; exec head -c 2000000 /dev/zero > large"
    )
    .unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let lines: Vec<serde_json::Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [hello, outside, large, denied] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(hello["status"], "exited with 3");
    assert_eq!(hello["output"], "hello\n");
    assert_ne!(outside["status"], "exited with 0");
    assert_eq!(std::fs::read_to_string(&neighbour).unwrap(), "secret");
    assert_ne!(large["output"], "0\n", "the limit holds: {large}");
    let events = denied["events"].as_array().unwrap().iter();
    let events: Vec<&str> = events.map(|one| one["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "denial", "limit", "end"], "{denied}");
    let advice = denied["advice"].to_string();
    assert!(advice.contains("--allow-protected .vscode"), "{advice}");
    assert!(advice.contains("its limit of file-size"), "{advice}");
}

#[test]
fn the_terminal_draws_what_it_is_shown() {
    let Some(terminal) = example("terminal") else {
        return;
    };
    let (_top, project) = place();
    let output = Command::new(terminal)
        .args([
            "sh",
            "-c",
            "tty; stty size; printf '\\033[31mred\\033[m\\n'",
        ])
        .current_dir(&project)
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    let lines: Vec<&str> = shown
        .lines()
        .map(|line| line.trim_matches(['|', ' ']))
        .collect();
    for wanted in ["/dev/pts/0", "12 60", "red"] {
        assert!(lines.contains(&wanted), "{wanted}: {shown}");
    }
}
