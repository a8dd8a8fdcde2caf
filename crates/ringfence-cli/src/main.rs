//! The `ringfence` command.
//!
//! Arguments become settings ([`flags`]), settings become a policy and a plan, and the answer is
//! printed ([`mod@print`]). What is allowed is decided in the libraries below; nothing here decides.

#[cfg(unix)]
mod args;
#[cfg(unix)]
mod asking;
#[cfg(unix)]
mod commands;
#[cfg(unix)]
mod exit;
#[cfg(unix)]
mod flags;
#[cfg(unix)]
mod hinted;
#[cfg(unix)]
mod lent;
#[cfg(unix)]
mod load;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod print;
#[cfg(unix)]
mod record;
#[cfg(not(unix))]
mod windows;

use std::process::ExitCode;

/// musl's own allocator asks the kernel for every few pages and gives them back at once: two
/// hundred system calls in a program that should make none of them.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: ringfence_sys::heap::Heap = ringfence_sys::heap::Heap::new();

#[cfg(not(target_os = "linux"))]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[cfg(unix)]
fn main() -> ExitCode {
    ringfence::shim::run_if_asked();
    #[cfg(target_os = "linux")]
    ringfence::launch::Signals::outlive_file_size();
    let mut arguments = std::env::args_os();
    // Somebody called from Windows: see `ringfence_core::wsl`.
    if arguments
        .nth(1)
        .is_some_and(|first| first == ringfence_core::wsl::ENCODED)
    {
        return commands::run_from_windows(arguments.next().as_deref());
    }
    commands::run(std::env::args_os())
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    windows::main()
}
