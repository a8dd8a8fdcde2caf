//! Launching on Linux.
//!
//! One child is born in the new namespaces and carries out every act of the plan, in order. It
//! then stays as the session's first process and starts the command, so both are held by the
//! same restrictions, and the kernel ends everything inside when the first process goes.

mod acts;
mod bounds;
mod broker;
mod bwrap;
mod expected;
mod handover;
mod held;
mod init;
mod links;
mod network;
mod options;
mod prepare;
mod root;
mod running;
mod second;
mod streams;
mod tmp;
mod wire;

pub use bwrap::system_bwrap;
pub use prepare::{Prepared, prepare};
pub use running::{Running, Signals};
pub(crate) use second::live as live_as_second_stage;
