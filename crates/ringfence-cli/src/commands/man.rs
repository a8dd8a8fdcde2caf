//! `ringfence man`.

use std::io;
use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use ringfence_core::text::printable_path;

use crate::args::Cli;
use crate::exit::Exit;
use crate::output::{answer_exactly, complain};

pub(super) fn run(directory: Option<&Path>) -> Result<Exit, Exit> {
    let mut whole = Cli::command();
    whole.build();
    let done = match directory {
        None => page(&whole).map(|page| answer_exactly(&String::from_utf8_lossy(&page))),
        Some(directory) => std::fs::create_dir_all(directory)
            .and_then(|()| write_all(&whole, directory))
            .map(|()| Exit::Success),
    };
    done.map_err(|error| {
        let place = directory.map(|it| format!(" to {}", printable_path(it)));
        let place = place.unwrap_or_default();
        complain(&format!("cannot write the manual{place}: {error}"), None);
        Exit::Refused
    })
}

/// Writes the page of a command, and of every one below it.
fn write_all(command: &clap::Command, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_all(below, directory)?;
    }
    let name = Man::new(command.clone()).get_filename();
    std::fs::write(directory.join(name), page(command)?)
}

/// The page of one command. What stands below its help is laid out here: examples are lines, and
/// would be filled like prose.
fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let manual = Man::new(command.clone());
    let mut out = Vec::new();
    manual.render_title(&mut out)?;
    manual.render_name_section(&mut out)?;
    manual.render_synopsis_section(&mut out)?;
    manual.render_description_section(&mut out)?;
    manual.render_options_section(&mut out)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        manual.render_subcommands_section(&mut out)?;
    }
    let after = command.get_after_help().map(ToString::to_string);
    let mut sections = Roff::new();
    for paragraph in after.unwrap_or_default().split("\n\n") {
        section(paragraph, &mut sections);
    }
    sections.to_writer(&mut out)?;
    Ok(out)
}

fn section(paragraph: &str, section: &mut Roff) {
    let examples = ["Examples:\n", "Example:\n"];
    if let Some(lines) = examples
        .iter()
        .find_map(|head| paragraph.strip_prefix(head))
    {
        section.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in lines.lines() {
            section.text([roman(line.trim_start())]);
        }
        section.control("fi", []);
    } else if let Some(text) = paragraph.strip_prefix("Exit status: ") {
        section.control("SH", ["EXIT STATUS"]).text([roman(text)]);
    } else if !paragraph.is_empty() {
        section.control("SH", ["NOTES"]).text([roman(paragraph)]);
    }
}
