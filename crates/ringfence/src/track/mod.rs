//! What finds every process of a session again, where no pid namespace holds them.
//!
//! Two things, each of which is enough by itself: a cgroup of the session's own ([`group`]), which
//! the kernel ends at once; and a mark ([`mark`]) that every process inherits and nobody loses by
//! forking, by becoming a daemon or by outliving its parents. Neither restricts a command, and
//! neither is ever taken for more than it is: whoever asks another service of the host to run
//! something for him has not started it.

pub(crate) mod group;
pub(crate) mod mark;
