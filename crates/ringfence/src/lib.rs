//! Run a command so that it can only touch what it was given, and nothing it started survives.
#![forbid(unsafe_code)]

#[cfg(unix)]
pub mod elf;
pub mod launch;
#[cfg(unix)]
pub mod programs;

pub use ringfence_core as core;
