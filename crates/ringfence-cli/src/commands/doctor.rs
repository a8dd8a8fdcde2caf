//! `ringfence doctor`.

use ringfence::probe;
use ringfence::probe::report::Report;

use crate::exit::Exit;
use crate::output::{Colour, answer_exactly, answer_json};
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

pub(super) fn run(reader: Reader) -> Exit {
    let report = Report::new(&probe::examine());
    let written = match reader {
        Reader::Person => answer_exactly(&doctor::render(&report, Colour::of_answers())),
        Reader::Program => answer_json(&report),
    };
    if written == Exit::Success && !report.default_preset_holds {
        return Exit::No;
    }
    written
}
