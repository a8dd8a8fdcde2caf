//! What programs say to a terminal: read, and cleaned of everything that is not text.
//!
//! Pure and total: bytes in, bytes out, whatever the bytes are and wherever they are cut. Nothing here
//! keeps more than a few dozen bytes, so a sequence that never ends costs nothing.
//!
//! [`Sanitizer`] lets text and colours through. [`Aftermath`] lets everything through and remembers
//! what has to be undone when the program is gone.

mod aftermath;
mod parse;
mod sanitize;

pub use aftermath::Aftermath;
pub use sanitize::Sanitizer;
