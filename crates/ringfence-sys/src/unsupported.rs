//! Systems on which nothing can be confined yet.
//!
//! Every function answers with an error and none with `Ok`: what is not enforced here must
//! never look as if it were. Only what portable code calls exists here; the rest of the
//! Linux side has no counterpart that could be mistaken for it.

use std::fmt;

/// This operating system has no engine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unsupported;

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("this operating system has no engine")
    }
}

impl std::error::Error for Unsupported {}

/// The calling process, when it is one that may be restricted: here it never is.
#[derive(Debug)]
pub enum Subject {}

impl Subject {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn this_process() -> Result<Self, Unsupported> {
        Err(Unsupported)
    }
}
