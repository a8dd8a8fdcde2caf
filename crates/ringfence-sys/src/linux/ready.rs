//! Waiting until one of several descriptors is ready: here rustix has all of it.

pub use rustix::event::{PollFd, PollFlags, Timespec, poll};
