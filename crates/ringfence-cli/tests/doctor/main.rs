//! `ringfence doctor` tells the truth about a host, and `ringfence run` acts on it.
//!
//! Each test changes what is around the program for real (a namespace that allows no others, a
//! filter that hides calls), in a process made for it, as root and as a plain user. The machine
//! itself is never touched. Each begins with the same call in plain surroundings: a refusal proves
//! nothing where nothing would have worked.
#![cfg(target_os = "linux")]

#[cfg(test)]
#[path = "../cli/answering.rs"]
mod answering;
#[cfg(test)]
mod fallback;
#[cfg(test)]
mod honest;
#[cfg(test)]
mod stage;
