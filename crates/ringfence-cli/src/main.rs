//! The `ringfence` command.
//!
//! Arguments become settings ([`flags`]), settings become a policy and a plan, and the answer is
//! printed ([`mod@print`]). What is allowed is decided in the libraries below; nothing here decides.

#[cfg(unix)]
mod args;
#[cfg(unix)]
mod commands;
#[cfg(unix)]
mod exit;
#[cfg(unix)]
mod flags;
#[cfg(unix)]
mod load;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod print;
#[cfg(unix)]
mod record;

use std::process::ExitCode;

/// musl's own allocator asks the kernel for every few pages and gives them back at once: two
/// hundred system calls in a program that should make none of them.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[cfg(unix)]
fn main() -> ExitCode {
    ringfence::shim::run_if_asked();
    commands::run(std::env::args_os())
}

/// Says where ringfence works, and starts nothing.
#[cfg(not(unix))]
fn main() -> ExitCode {
    use std::io::Write as _;
    let answer = b"ringfence: nothing can be confined here; run ringfence inside WSL 2\n";
    // Whoever cannot be told still gets the status.
    let _ = std::io::stderr().write_all(answer);
    ExitCode::from(125)
}
