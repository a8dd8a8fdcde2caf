//! Where no session begins before it is known what it is for.

use std::io;

use ringfence_core::plan::Plan;

/// A first process that cannot exist here.
#[derive(Debug)]
pub struct Ahead(std::convert::Infallible);

impl Ahead {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`io::ErrorKind::Unsupported`].
    #[doc(hidden)]
    pub fn begin_anyway() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether one would be of use: never.
    pub(crate) fn is_worth_it() -> bool {
        false
    }

    /// Whether one would become what a plan wants: never.
    pub(crate) fn suits(_plan: &Plan) -> bool {
        false
    }
}
