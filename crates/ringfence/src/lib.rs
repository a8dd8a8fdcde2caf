//! Runs a command so that it can only touch what it was given, and so that nothing it started
//! survives.
//!
//! This crate is where the pure types of [`ringfence_core`] meet a machine: it finds out where
//! it is called from ([`place`]), reads settings ([`load`], [`shell`]), asks the host what it can enforce
//! ([`probe`]), plans for it ([`planned`]) and starts commands ([`launch`]).
//!
//! Outside Unix there is nothing here but the pure types: on Windows ringfence runs inside WSL.
#![forbid(unsafe_code)]

#[cfg(unix)]
pub mod audit;
#[cfg(unix)]
pub mod elf;
#[cfg(unix)]
pub mod launch;
#[cfg(target_os = "linux")]
pub mod linger;
#[cfg(unix)]
pub mod load;
#[cfg(unix)]
mod lookout;
#[cfg(unix)]
pub mod place;
#[cfg(unix)]
pub mod planned;
#[cfg(unix)]
pub mod probe;
#[cfg(unix)]
pub mod programs;
#[cfg(unix)]
pub mod report;
#[cfg(target_os = "linux")]
pub mod sessions;
pub mod shell;
#[cfg(unix)]
pub mod shim;
#[cfg(target_os = "linux")]
mod track;

pub use ringfence_core as core;
