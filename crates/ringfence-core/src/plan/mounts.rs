//! The new root: which mounts carry the file rules.
//!
//! Mounts hide, and carry denials inside grants; they cannot hold a descriptor that is already
//! open. That is Landlock's part, so both are always planned together.

use std::fmt;

use serde::Serialize;

use crate::origin::{BuiltIn, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, FileRule, Found, Policy};
use crate::settings::{Limit, Tmp};

/// What a new root starts from.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "base")]
pub enum Base {
    /// Nothing but the links in the host's root directory, such as `/bin`.
    Empty,
    /// Everything the host has, read-only.
    Host {
        /// [`Access::Read`] or more; whether programs may be run.
        access: Access,
    },
}

/// One mount of the new root.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Mount {
    /// Where it is mounted.
    pub at: AbsPath,
    /// What it is.
    #[serde(flatten)]
    pub kind: MountKind,
}

/// What a mount shows.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum MountKind {
    /// Nothing of its own: the links that lead from this name to something else that is mounted.
    Alias {
        /// Where it leads.
        path: AbsPath,
    },
    /// The same path of the host, with everything mounted below it.
    Bind {
        /// What may be done with it: never more than this.
        access: Access,
    },
    /// One device, pipe or socket of the host.
    Device {
        /// What may be done with it.
        access: Access,
    },
    /// A `/dev` with the few devices every program expects, and terminals of its own.
    Devices,
    /// Nothing: an empty directory, or a file that cannot be opened.
    Mask {
        /// Which of the two.
        over: Found,
    },
    /// A `/proc` of its own.
    Proc,
    /// An empty directory of its own, in memory.
    Tmpfs {
        /// How many bytes fit into it.
        size: Option<u64>,
    },
}

/// Base, mounts, and the protected names that no mount can carry because nothing is there.
pub(super) struct Root {
    pub(super) base: Base,
    pub(super) mounts: Vec<Mount>,
    pub(super) absent: Vec<AbsPath>,
}

/// What is seen at some depth while walking down the rules.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum View {
    /// What the host has, as far as this access.
    Host(Access),
    /// Something empty.
    Private,
}

/// Lays the rules of a policy out as mounts, parents first.
pub(super) fn root(policy: &Policy) -> Root {
    let rules = policy.files();
    let top = rules.access(&AbsPath::root()).access;
    let base = match top {
        Access::None => Base::Empty,
        access => Base::Host { access },
    };
    let mut mounts = Vec::new();
    let mut absent = Vec::new();
    let mut above: Vec<(&AbsPath, View)> = Vec::new();
    for (rule, access_above) in rules.with_surroundings() {
        while above
            .last()
            .is_some_and(|(path, _)| !path.covers(&rule.path))
        {
            above.pop();
        }
        let view_above = above.last().map_or_else(
            || match base {
                Base::Empty => View::Private,
                Base::Host { access } => View::Host(access),
            },
            |(_, view)| *view,
        );
        if rule.found == Found::Absent {
            if access_above == Access::Write && rule.access != Access::Write {
                absent.push(rule.path.clone());
            }
            continue;
        }
        if rule.path == AbsPath::root() {
            // A root that may be written is the host's root again, mounted over itself.
            if rule.access == Access::Write {
                mounts.push(Mount {
                    at: rule.path.clone(),
                    kind: MountKind::Bind {
                        access: Access::Write,
                    },
                });
            }
            above.push((&rule.path, View::Host(rule.access)));
            continue;
        }
        if belongs_to_system(&rule.path) {
            continue;
        }
        let (kind, view) = mount(policy, rule, view_above);
        if let Some(kind) = kind {
            mounts.push(Mount {
                at: rule.path.clone(),
                kind,
            });
        }
        above.push((&rule.path, view));
    }
    mounts.extend(system_mounts());
    // Grants of single devices come after the `/dev` they go into, and so on: parents first.
    mounts.extend(single_devices(policy));
    mounts.sort_by_key(|mount| mount.at.depth());
    if base == Base::Empty {
        mounts.extend(aliases(policy));
    }
    Root {
        base,
        mounts,
        absent,
    }
}

fn mount(policy: &Policy, rule: &FileRule, above: View) -> (Option<MountKind>, View) {
    let private =
        rule.origin == Origin::BuiltIn(BuiltIn::Tmp) && policy.tmp().value == Tmp::Private;
    if private && rule.access == Access::Write {
        let size = match policy.limits().tmp_size.value {
            Limit::At(bytes) => Some(bytes),
            Limit::Unlimited => None,
        };
        return (Some(MountKind::Tmpfs { size }), View::Private);
    }
    match (rule.access, above) {
        // Nothing to hide where nothing is seen.
        (Access::None, View::Private) => (None, View::Private),
        (Access::None, View::Host(Access::None)) => (None, View::Private),
        (Access::None, View::Host(_)) => {
            (Some(MountKind::Mask { over: rule.found }), View::Private)
        }
        (access, View::Host(seen)) if access == seen => (None, View::Host(seen)),
        (access, _) if rule.found == Found::Other => {
            (Some(MountKind::Device { access }), View::Host(access))
        }
        (access, _) => (Some(MountKind::Bind { access }), View::Host(access)),
    }
}

/// Links of the host that have to be made again, because nothing around them is seen.
fn aliases(policy: &Policy) -> impl Iterator<Item = Mount> {
    let aliases = policy.aliases().iter();
    aliases
        .filter(|alias| {
            // A name that is hidden by a rule stays hidden, whatever it leads to.
            let verdict = policy.files().access(&alias.name);
            !belongs_to_system(&alias.name)
                && !(verdict.rule.is_some() && verdict.access == Access::None)
        })
        .map(|alias| Mount {
            at: alias.name.clone(),
            kind: MountKind::Alias {
                path: alias.path.clone(),
            },
        })
}

/// Trees that a session always has its own of.
fn belongs_to_system(path: &AbsPath) -> bool {
    ["/proc", "/dev"]
        .iter()
        .any(|tree| path.as_path().starts_with(tree))
}

fn system_mounts() -> Vec<Mount> {
    let at = |path: &str| AbsPath::root().below(path);
    vec![
        Mount {
            at: at("dev"),
            kind: MountKind::Devices,
        },
        Mount {
            at: at("proc"),
            kind: MountKind::Proc,
        },
    ]
}

/// What lies below `/dev` and is not part of every session: shared memory, and granted devices.
fn single_devices(policy: &Policy) -> Vec<Mount> {
    let dev = AbsPath::root().below("dev");
    let below =
        policy.files().rules().iter().filter(|rule| {
            rule.path != dev && dev.covers(&rule.path) && rule.found != Found::Absent
        });
    below
        .filter_map(|rule| {
            let above = View::Private;
            let (kind, _) = mount(policy, rule, above);
            Some(Mount {
                at: rule.path.clone(),
                kind: kind?,
            })
        })
        .collect()
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing"),
            Self::Host { .. } => f.write_str("the host's files, read-only"),
        }
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = &self.at;
        match &self.kind {
            MountKind::Bind { access } | MountKind::Device { access } => {
                write!(f, "{at}: {access}")
            }
            MountKind::Alias { path } => write!(f, "{at}: leads to {path}"),
            MountKind::Devices => write!(f, "{at}: a minimal set of devices"),
            MountKind::Mask { .. } => write!(f, "{at}: hidden"),
            MountKind::Proc => write!(f, "{at}: processes of this session only"),
            MountKind::Tmpfs { .. } => write!(f, "{at}: private, empty, in memory"),
        }
    }
}
