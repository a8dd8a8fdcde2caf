//! The `ringfence` command.
//!
//! Arguments become settings ([`flags`]), settings become a policy and a plan, and the answer is
//! printed ([`mod@print`]). What is allowed is decided in the libraries below; nothing here decides.

mod args;
mod commands;
mod exit;
mod flags;
mod load;
mod output;
mod print;
mod record;

use std::process::ExitCode;

/// musl's own allocator asks the kernel for every few pages and gives them back at once: two
/// hundred system calls in a program that should make none of them.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    ringfence::shim::run_if_asked();
    commands::run(std::env::args_os())
}
