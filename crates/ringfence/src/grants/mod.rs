//! What was granted, and for how long it is kept.
//!
//! Answers for a thread are kept where they are forgotten when the machine stops ([`threads`]);
//! answers for always are written into the user's own settings ([`always`]), where they can be seen
//! and changed like everything else; a project's file is trusted by its contents ([`trust`]).

pub mod always;
pub mod threads;
pub mod trust;

#[cfg(test)]
mod tests;
