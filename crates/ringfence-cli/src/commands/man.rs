//! `ringfence man`.

use std::io;
use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Exit;
use crate::output::{answer_exactly, complain};

pub(super) fn run(directory: Option<&Path>) -> Result<Exit, Exit> {
    let failed = |error: io::Error| {
        complain(&format!("cannot write the manual: {error}"), None);
        Exit::Refused
    };
    match directory {
        None => {
            let mut page = Vec::new();
            let manual = clap_mangen::Man::new(Cli::command());
            manual.render(&mut page).map_err(failed)?;
            Ok(answer_exactly(&String::from_utf8_lossy(&page)))
        }
        Some(directory) => {
            clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
            Ok(Exit::Success)
        }
    }
}
