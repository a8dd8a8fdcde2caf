//! Launching on Linux.
//!
//! One child is born in the new namespaces and carries out every act of the plan, in order. It
//! then stays as the session's first process and starts the command, so both are held by the
//! same restrictions, and the kernel ends everything inside when the first process goes.

mod acts;
mod ahead;
mod aside;
mod bounds;
mod broker;
mod bwrap;
mod caller;
mod connecting;
mod cover;
mod expected;
mod gate;
mod guard;
mod handover;
mod held;
mod helper;
mod holders;
mod init;
mod leaving;
mod links;
mod missed;
mod names;
mod options;
mod orphans;
mod planted;
mod prepare;
mod root;
mod running;
mod seat;
mod second;
mod shares;
mod spawn;
mod streams;
mod telling;
mod through;
mod tmp;
mod unix;
mod unwritable;
mod watch;
mod ways;
mod wire;

pub use ahead::Ahead;
pub use bwrap::system_bwrap;
pub use prepare::{Prepared, prepare, prepare_with};
pub use running::Running;
pub(crate) use second::live as live_as_second_stage;
