//! Runs a command so that it can only touch what it was given, and so that nothing it started
//! survives.
//!
//! This crate is where the pure types of [`ringfence_core`] meet a machine: it finds out where
//! it is called from ([`place`]), reads settings ([`load`]), asks the host what it can enforce
//! ([`probe`]), plans for it ([`planned`]) and starts commands ([`launch`]).
#![forbid(unsafe_code)]

pub mod elf;
pub mod launch;
pub mod load;
mod lookout;
pub mod place;
pub mod planned;
pub mod probe;
pub mod programs;
pub mod report;
pub mod shim;

pub use ringfence_core as core;
