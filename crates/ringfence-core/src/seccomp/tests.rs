//! The filter held against itself, against hand-written expectations, and against a record.
//!
//! `worlds` makes specs and calls, `structure` checks the data and the shape of programs,
//! `agreement` holds programs against the data, `expectations` says by hand what must happen to
//! known techniques, and `oracle` compares all verdicts with the recorded table.

mod agreement;
mod creating;
mod expectations;
mod limits;
mod oracle;
mod passed;
mod signals;
mod structure;
mod worlds;
