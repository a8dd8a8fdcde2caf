//! ringfence on Windows, which can confine nothing: it says so, or runs itself inside WSL.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use ringfence_core::wsl;

/// Nothing ran.
const REFUSED: u8 = 125;

/// Runs inside WSL if that was asked for, and otherwise says how to ask.
pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(status) => ExitCode::from(status),
        Err(reason) => {
            let text = format!("ringfence: {reason}\n");
            // Whoever cannot be told still gets the status.
            let _ = std::io::stderr().write_all(text.as_bytes());
            ExitCode::from(REFUSED)
        }
    }
}

fn run() -> Result<u8, String> {
    let arguments = std::env::args_os().skip(1);
    let arguments: Result<Vec<String>, _> =
        arguments.map(std::ffi::OsString::into_string).collect();
    let mut arguments = arguments.map_err(|_| "an argument is not Unicode".to_owned())?;
    if arguments.first().is_none_or(|first| first != "--wsl") {
        return Err(
            "nothing can be confined on Windows itself; `ringfence --wsl ...` does the same \
             inside WSL 2, if ringfence is installed there"
                .to_owned(),
        );
    }
    arguments.remove(0);
    let directory = std::env::current_dir()
        .map_err(|error| format!("the current directory cannot be found: {error}"))?;
    let directory = directory
        .to_str()
        .ok_or("the current directory is not Unicode")?;
    let line = wsl::command_line(directory, &arguments).map_err(|error| error.to_string())?;
    // By its full name: the current directory may hold another program called so.
    let system = std::env::var_os("SystemRoot").ok_or("SystemRoot is not set")?;
    let program = PathBuf::from(system).join("System32").join("wsl.exe");
    let status = Command::new(&program)
        .args(line)
        .status()
        .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    let code = status.code().unwrap_or_else(|| i32::from(REFUSED));
    Ok(u8::try_from(code).unwrap_or(REFUSED))
}
