//! An agent's loop: commands that nobody has read, run one after the other in a sandbox with limits.
//!
//! ```console
//! $ cargo run -p ringfence --example agent -- /path/to/project
//! ```
//!
//! Commands come from standard input, one a line; what an agent would send back to its model is
//! printed, one JSON object a line.
#![expect(clippy::print_stdout, reason = "an example talks to whoever tries it")]

use std::error::Error;
use std::io::BufRead;
use std::time::Duration;

use ringfence::{Cause, Event, Policy, Sandbox, Stdio};

fn main() -> Result<(), Box<dyn Error>> {
    // Only where a packaged bubblewrap has to make the namespaces is this program started again.
    ringfence::shim::run_if_asked();
    let project = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let policy = Policy::agent(project)
        .wall_time(Duration::from_secs(5))
        .file_size(1 << 20)
        .open_files(256);
    // Made once; it fails here, and not later, if this host cannot hold what it says.
    let sandbox = Sandbox::new(policy)?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        println!("{}", run(&sandbox, &line)?);
    }
    Ok(())
}

/// Runs one command and says what came of it.
fn run(sandbox: &Sandbox, line: &str) -> Result<serde_json::Value, Box<dyn Error>> {
    let mut command = sandbox.command("sh");
    command.args(["-c", line]).keep(2000);
    let output = command.output()?;
    let status = match output.report.cause {
        Cause::Exited { status } => format!("exited with {status}"),
        Cause::Killed { signal } => format!("killed by signal {signal}"),
        Cause::WallTime => "took too long, and was ended".to_owned(),
        _ => "ended".to_owned(),
    };
    // A second way to run the same: start it, do something else, and hear of it.
    let mut session = sandbox
        .command("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let ended = session
        .events()
        .filter(|event| matches!(event, Event::Ended(_)))
        .count();
    Ok(serde_json::json!({
        "command": line,
        "status": status,
        "output": String::from_utf8_lossy(&output.stdout),
        "errors": String::from_utf8_lossy(&output.stderr),
        "truncated": output.truncated,
        "sessions_ended": 1 + ended,
    }))
}
