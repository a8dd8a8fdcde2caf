//! The `ringfence` command.
//!
//! Arguments become settings ([`flags`]), settings become a policy and a plan, and the answer is
//! printed ([`print`]). What is allowed is decided in the libraries below; nothing here decides.

mod args;
mod commands;
mod exit;
mod flags;
mod load;
mod output;
mod print;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os())
}
