//! `ringfence completions`.

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Exit;
use crate::output::{answer_exactly, complain};

pub(super) fn run(shell: clap_complete::Shell) -> Result<Exit, Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ringfence", &mut script);
    let text = String::from_utf8(script).map_err(|error| {
        complain(&format!("the script is not text: {error}"), None);
        Exit::Refused
    })?;
    Ok(answer_exactly(&text))
}
