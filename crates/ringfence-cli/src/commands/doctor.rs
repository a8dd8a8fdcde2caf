//! `ringfence doctor`.

use ringfence::probe;
use ringfence::probe::report::Report;

use crate::exit::Exit;
use crate::output::{Colour, answer, answer_json};
use crate::print::doctor;

/// Who the answer is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reader {
    Person,
    Program,
}

impl From<bool> for Reader {
    fn from(json: bool) -> Self {
        if json { Self::Program } else { Self::Person }
    }
}

pub(super) fn run(reader: Reader) -> Result<Exit, Exit> {
    let report = Report::new(&probe::examine());
    let written = match reader {
        Reader::Person => answer(&doctor::render(&report, Colour::of_answers())),
        Reader::Program => answer_json(&report),
    };
    Ok(match written {
        Exit::Success if !report.default_preset_holds => Exit::No,
        other => other,
    })
}
