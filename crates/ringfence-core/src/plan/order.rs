//! The order of acts, and the reason for each position.
//!
//! This list is the security argument, and it stands here and nowhere else: plans are sorted by
//! it, documents and `explain --plan` print it, and the launcher walks it.

use serde::Serialize;

/// What kind of act, in the order in which acts happen.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Step {
    /// Environment: what the command will find.
    Environment,
    /// Names that are watched.
    Names,
    /// The cgroup of the session.
    Cgroup,
    /// Namespaces.
    Namespaces,
    /// A keyring of its own.
    Keyring,
    /// The user's ids.
    Ids,
    /// The mounts of the new root.
    Root,
    /// The loopback interface.
    Loopback,
    /// The ways out of a network of the session's own.
    Gate,
    /// Descriptors above standard error.
    Descriptors,
    /// Bounds.
    Limits,
    /// Capabilities.
    Capabilities,
    /// `no_new_privs`.
    Privileges,
    /// Landlock.
    Landlock,
    /// Seccomp.
    Seccomp,
    /// The sandbox of macOS.
    Seatbelt,
    /// The first process inside.
    Init,
    /// The command.
    Command,
}

impl Step {
    /// Every step, in order.
    pub const ALL: [Self; 18] = [
        Self::Environment,
        Self::Names,
        Self::Cgroup,
        Self::Namespaces,
        Self::Keyring,
        Self::Ids,
        Self::Root,
        Self::Loopback,
        Self::Gate,
        Self::Descriptors,
        Self::Limits,
        Self::Capabilities,
        Self::Privileges,
        Self::Landlock,
        Self::Seccomp,
        Self::Seatbelt,
        Self::Init,
        Self::Command,
    ];

    /// Why a step has its place.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Environment => {
                "before anything runs, so that no value the policy removes is ever in a process inside"
            }
            Self::Names => {
                "before the command starts, so that what it creates is told from what was there"
            }
            Self::Cgroup => "at birth, so that no process of the session ever lives outside it",
            Self::Namespaces => {
                "first in the new process: everything after acts on its private copies"
            }
            Self::Keyring => "while the kernel still lets us; the filter refuses keyrings later",
            Self::Ids => "before mounts: without an id of its own the process may not make any",
            Self::Root => {
                "while it still has the capabilities of its namespace, and before any rule binds it"
            }
            Self::Loopback => "needs a capability that is dropped below",
            Self::Gate => {
                "inside the new network, where its sockets must be made, and before anything of the command's could make them first"
            }
            Self::Descriptors => {
                "after the last source was mounted: until then they are what is mounted"
            }
            Self::Limits => "after set-up, which must not run into them",
            Self::Capabilities => {
                "after the last act that needs one: from here on mounts cannot be undone"
            }
            Self::Privileges => {
                "before Landlock and seccomp, which ask for it; no program regains a capability"
            }
            Self::Landlock => {
                "after the root is final, so that rules hold the files that are really seen"
            }
            Self::Seccomp => "last of all restrictions: it refuses the calls that made the others",
            Self::Seatbelt => "last before the command: it cannot be loosened, only tightened",
            Self::Init => {
                "inside every restriction, so that the reaper holds nothing the command could steal"
            }
            Self::Command => "only now: no code of the command has run before every act held",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_the_order_of_the_type() {
        assert!(Step::ALL.is_sorted());
        assert_eq!(Step::ALL.last(), Some(&Step::Command));
    }
}
