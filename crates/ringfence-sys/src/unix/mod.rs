//! What Linux and macOS have in common.

pub mod terminal;
