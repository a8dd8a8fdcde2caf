//! Profiles for the sandbox of macOS, as data and as text.
//!
//! Owns what a policy means to Seatbelt, and the text in which that is told. Pure: a profile is
//! compiled anywhere, and only a launch on macOS binds it to a session.
//!
//! Two things make the text safe. A path is never written into it: paths are parameters, which
//! Seatbelt takes as values and never parses. And what is written has an alphabet without quotes,
//! backslashes and line ends, because everything in it is a word of this program or was spelled out
//! letter by letter ([`names`]).
//!
//! The last rule that matches decides, so rules are written in the order of the policy's own: a
//! subtree before what is inside it.

mod bind;
mod compile;
mod names;
mod services;
mod session;

pub use bind::{BindError, Bound, Own};
pub use compile::{compile, tracking};
pub use names::{pattern, spellings};
pub use services::{DEVICES, SERVICES, Service};
pub use session::{Fingerprint, Points, Probe, SessionDirectory};

use serde::Serialize;

use crate::path::AbsPath;

/// What Seatbelt is told.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Profile {
    /// What holds where no rule does.
    pub default: Action,
    /// The rules, in order; the last one that matches decides.
    pub rules: Vec<Rule>,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The operation may be done.
    Allow,
    /// The operation is refused.
    Deny,
}

/// One rule.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Rule {
    /// What it does.
    pub action: Action,
    /// For which operations.
    pub operations: &'static [&'static str],
    /// On what: any of these, or everything if there is none.
    pub filters: Vec<Filter>,
    /// Why, in a comment of the text.
    pub why: &'static str,
}

/// What a rule is about.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Filter {
    /// The port of the session's gate on the loopback, if it has one.
    GatePort,
    /// A service by its global name.
    GlobalName(&'static str),
    /// A class of drivers.
    IokitClass(&'static str),
    /// Exactly this path.
    Literal(PathValue),
    /// A port on the loopback, for those who listen.
    LocalPort(u16),
    /// A name that was spelled out, and what is below it, in any case of letters.
    Name(String),
    /// The session's own terminal, if it has one, by its name and as the one that controls it.
    OwnTerminal,
    /// A name of shared memory.
    PosixName(&'static str),
    /// A terminal that was opened as a pseudo-terminal inside.
    PseudoTerminal,
    /// A port on the loopback, for those who connect.
    RemotePort(u16),
    /// This path and everything below it.
    Subpath(PathValue),
    /// A value of the kernel's.
    SysctlName(&'static str),
    /// A process, seen from the one that acts.
    Target(Target),
    /// A socket that is addressed by a path.
    UnixSocket,
}

/// A process, seen from the one that acts.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// What it started.
    Children,
    /// Any process under the same profile.
    SameSandbox,
}

/// A path in a rule.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathValue {
    /// One that the policy names.
    Host(AbsPath),
    /// One of the session's own, known when it starts.
    Session(SessionPath),
}

/// A path of the session's own.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionPath {
    /// The point of the fingerprint that may be read.
    Allowed,
    /// The point of the fingerprint that may not.
    Denied,
    /// The directory that holds the others.
    Directory,
    /// The temporary directory.
    Tmp,
}
