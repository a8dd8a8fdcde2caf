//! The pure heart of ringfence.
//!
//! Everything here is data and functions over data: no file is opened, no clock is read, no
//! system call is made, and nothing asks which operating system it was compiled for. So any
//! plan, for any host, can be built, printed and tested on any machine.
//!
//! The way of a command through this crate is [`settings`] –resolve→ [`policy`] –compile→
//! [`plan`], one noun for each stage and one verb between.
#![forbid(unsafe_code)]

pub mod binding;
pub mod cleanup;
pub mod git;
pub mod host;
pub mod kinfo;
pub mod origin;
pub mod path;
pub mod permission;
pub mod plan;
pub mod policy;
pub mod problem;
pub mod request;
pub mod seatbelt;
pub mod seccomp;
pub mod settings;
pub mod shown;
pub mod startup;
pub mod terminal;
pub mod text;
pub mod wsl;
