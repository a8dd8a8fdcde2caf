//! The network gate: how a session that has no network reaches the hosts it was given.
//!
//! The session lives in a network namespace with nothing but a loopback. The sockets served here
//! were made in that namespace and handed out of it, so nobody but the session can talk to them,
//! and when they are closed, for whatever reason, nothing is left to talk to. There is no other
//! way out that would have to be closed.
//!
//! What a client asks for is parsed once, into a [`Destination`]. That one value is judged
//! ([`judge`]), looked up ([`lookup`]) and dialled ([`dial`]); a name that is not allowed is not
//! even looked up, and an address that a name has no business with is not dialled ([`vet`]).
//!
//! The readers of foreign bytes are pure: [`head`] for HTTP, [`socks`], [`hello`] for TLS and
//! [`dns`]. They never allocate more than they are given, and never panic.
#![forbid(unsafe_code)]

pub mod authority;
pub mod dns;
pub mod event;
pub mod head;
pub mod hello;
pub mod judge;
pub mod names;
pub mod refusal;
pub mod socks;
pub mod upstream;
pub mod vet;

#[cfg(target_os = "linux")]
pub mod dial;
#[cfg(target_os = "linux")]
mod http;
#[cfg(unix)]
pub mod lookup;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
pub mod serve;
#[cfg(target_os = "linux")]
mod stash;
#[cfg(target_os = "linux")]
mod stream;
#[cfg(target_os = "linux")]
mod visit;

pub use authority::Destination;
