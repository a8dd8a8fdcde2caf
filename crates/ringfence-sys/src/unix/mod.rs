//! What Linux and macOS have in common.

pub mod mask;
pub mod terminal;
