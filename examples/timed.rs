//! Starts a session for each line that it reads, and says how long it took in microseconds.
//!
//! `benches/run.py --library` measures by this what a session costs a program that runs already: no
//! program is loaded and no settings are read, only the command's own policy is made and held.
//!
//! ```console
//! $ yes | head -3 | cargo run --release --example timed
//! ```

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use ringfence::{Policy, Sandbox, Stdio};

fn main() -> Result<(), Box<dyn Error>> {
    let sandbox = Sandbox::new(Policy::agent("."))?;
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        line?;
        // Whoever has asked is still on its way to sleep, and takes the other processor for that.
        std::thread::sleep(Duration::from_millis(2));
        let started = Instant::now();
        let report = sandbox.command("/bin/true").stdin(Stdio::null()).status()?;
        let took = started.elapsed();
        if !report.success() {
            return Err(format!("{:?}", report.cause).into());
        }
        writeln!(out, "{}", took.as_micros())?;
        out.flush()?;
    }
    Ok(())
}
