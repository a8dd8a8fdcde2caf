//! Run a command so that it can only touch what it was given, and nothing it started survives.
#![forbid(unsafe_code)]

pub mod launch;

pub use ringfence_core as core;
