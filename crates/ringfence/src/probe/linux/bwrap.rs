//! Whether the bubblewrap of the system works.

use std::process::{Command, Stdio};

/// Whether it can make what the engine needs: it runs itself inside and prints its version.
pub(super) fn try_out(path: &str) -> Result<(), String> {
    let arguments = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--",
        path,
        "--version",
    ];
    let output = Command::new(path)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or("it failed without a word");
    // The first sentence is the reason; what follows is advice for another program's users.
    let first = first.split(". ").next().unwrap_or(first);
    Err(ringfence_core::text::printable(first))
}
