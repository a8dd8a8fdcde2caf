//! The network gate: how a session that has no network reaches the hosts it was given.
//!
//! The session lives in a network namespace with nothing but a loopback. The sockets served here
//! were made in that namespace and handed out of it, so nobody but the session can talk to them,
//! and when they are closed, for whatever reason, nothing is left to talk to. There is no other
//! way out that would have to be closed.
//!
//! Where there are no such namespaces the session may reach nothing but one port of the host's
//! loopback, which other processes reach as well: there a client has to say a [`token`] first.
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
pub mod token;
pub mod upstream;
pub mod vet;

#[cfg(unix)]
mod agreement;
#[cfg(unix)]
mod answer;
#[cfg(unix)]
mod bulk;
#[cfg(unix)]
pub mod dial;
#[cfg(unix)]
mod http;
#[cfg(unix)]
pub mod lookup;
#[cfg(unix)]
mod relay;
#[cfg(unix)]
pub mod serve;
#[cfg(unix)]
mod stash;
#[cfg(unix)]
mod stream;
#[cfg(unix)]
mod visit;

pub use authority::Destination;
