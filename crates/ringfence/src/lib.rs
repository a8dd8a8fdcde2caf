//! Run a command so that it can only touch what it was given, and nothing it started survives.
#![forbid(unsafe_code)]

pub mod launch;
pub mod planned;
pub mod probe;

pub use ringfence_core as core;
