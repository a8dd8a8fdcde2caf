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
use std::io::{self, BufRead, Read};
use std::time::Duration;

use ringfence::{Cause, Happened, Policy, Sandbox, Stdio};

/// How much of what a command prints a model is shown.
const SHOWN: u64 = 2000;

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
    for line in io::stdin().lock().lines() {
        let line = line?;
        println!("{}", run(&sandbox, &line)?);
    }
    Ok(())
}

/// Runs one command and says what came of it.
fn run(sandbox: &Sandbox, line: &str) -> Result<serde_json::Value, Box<dyn Error>> {
    let mut session = sandbox
        .command("sh")
        .args(["-c", &format!("exec 2>&1\n{line}")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut output, mut rest) = (Vec::new(), 0);
    if let Some(mut stdout) = session.stdout.take() {
        stdout.by_ref().take(SHOWN).read_to_end(&mut output)?;
        // Or a flood would make the command wait for us.
        rest = io::copy(&mut stdout, &mut io::sink())?;
    }
    // Nothing survives the session, so its output ends with it; these are told while it runs, too.
    let (mut status, mut events, mut advice) = (String::new(), Vec::new(), Vec::new());
    for event in session.events() {
        events.push(serde_json::from_str::<serde_json::Value>(
            &event.to_json()?,
        )?);
        match event.happened {
            Happened::Denied(denial) => {
                advice.push(format!("{} needs {}", denial.target, denial.fix));
            }
            Happened::Limited(limit) => advice.push(format!("it reached its limit of {limit}")),
            Happened::Ended(ended) => {
                status = match ended.report.cause {
                    Cause::Exited { status } => format!("exited with {status}"),
                    Cause::Killed { signal } => format!("killed by signal {signal}"),
                    other => format!("ended by ringfence: {other:?}"),
                }
            }
            _ => {}
        }
    }
    Ok(serde_json::json!({
        "command": line,
        "status": status,
        "output": String::from_utf8_lossy(&output),
        "truncated": rest > 0,
        "advice": advice,
        "events": events,
    }))
}
