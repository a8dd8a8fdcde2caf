//! The new root: which mounts carry the file rules.
//!
//! Mounts hide, and carry denials inside grants; they cannot hold a descriptor that is already
//! open. That is Landlock's part, so both are always planned together.

use std::ffi::OsStr;
use std::fmt;

use foldhash::{HashMap, HashSet};
use serde::Serialize;

use crate::origin::{BuiltIn, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Content, FileRule, Found, Policy};
use crate::settings::{GitLevel, Limit};

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
    /// Nothing of the host's.
    Own(Content),
    /// Nothing at all.
    Nothing,
}

/// A rule on the way down: what is seen there, and the mount that shows it.
struct Level<'a> {
    path: &'a AbsPath,
    view: View,
    mounted_at: AbsPath,
}

/// Lays the rules of a policy out as mounts, parents first.
pub(super) fn root(policy: &Policy) -> Root {
    let rules = policy.files();
    let base = match rules.access(&AbsPath::root()).access {
        Access::None => Base::Empty,
        access @ (Access::Read | Access::Execute | Access::Write) => Base::Host { access },
    };
    let mut mounts = Mounts::default();
    let mut absent = Vec::new();
    let mut above: Vec<Level<'_>> = Vec::new();
    for (rule, access_above) in rules.with_surroundings() {
        while above
            .last()
            .is_some_and(|level| !level.path.covers(&rule.path))
        {
            above.pop();
        }
        let (view, mounted_at) = above.last().map_or_else(
            || match base {
                Base::Empty => (View::Nothing, AbsPath::root()),
                Base::Host { access } => (View::Host(access), AbsPath::root()),
            },
            |level| (level.view, level.mounted_at.clone()),
        );
        if rule.found == Found::Absent {
            if access_above == Access::Write && rule.access != Access::Write {
                // Whoever could move the project away could make the name in it there.
                if let Some(level) = above.last()
                    && view == View::Host(Access::Write)
                {
                    mounts.pin_up_to(&mounted_at, level.path.clone());
                }
                absent.push(rule.path.clone());
            }
            continue;
        }
        if rule.path == AbsPath::root() {
            // A root that may be written is the host's root again, mounted over itself.
            if rule.access == Access::Write {
                let access = rule.access;
                mounts.push(&rule.path, MountKind::Bind { access });
            }
            above.push(Level {
                path: &rule.path,
                view: match rule.access {
                    Access::None => View::Nothing,
                    access @ (Access::Read | Access::Execute | Access::Write) => View::Host(access),
                },
                mounted_at,
            });
            continue;
        }
        let (kind, seen) = mount(policy, rule, view);
        if kind.is_none() && is_mark(policy, rule) && view == View::Host(Access::Write) {
            mounts.pin_up_to(&mounted_at, rule.path.clone());
        }
        let shown_by = match kind {
            None => mounted_at,
            Some(kind) => {
                if view == View::Host(Access::Write)
                    && let Some(parent) = rule.path.parent()
                {
                    mounts.pin_up_to(&mounted_at, parent);
                }
                mounts.push(&rule.path, kind);
                rule.path.clone()
            }
        };
        above.push(Level {
            path: &rule.path,
            view: seen,
            mounted_at: shown_by,
        });
    }
    let mut mounts = mounts.parents_first();
    if base == Base::Empty {
        mounts.extend(aliases(policy));
    }
    Root {
        base,
        mounts,
        absent,
    }
}

/// What carries a rule, if anything has to, and what is seen there then.
fn mount(policy: &Policy, rule: &FileRule, above: View) -> (Option<MountKind>, View) {
    let mask = Some(MountKind::Mask { over: rule.found });
    match (rule.access, rule.content, above) {
        // Nothing to hide where nothing is seen.
        (Access::None, _, View::Nothing) => (None, View::Nothing),
        (Access::None, _, View::Own(content)) if !shows(content, &rule.path) => {
            (None, View::Own(content))
        }
        (Access::None, _, View::Host(_) | View::Own(_)) => (mask, View::Nothing),
        (_, content, View::Own(seen)) if content == seen => (None, View::Own(seen)),
        (_, Content::Devices, _) => (Some(MountKind::Devices), View::Own(Content::Devices)),
        (_, Content::Processes, _) => (Some(MountKind::Proc), View::Own(Content::Processes)),
        (_, Content::Memory, _) if rule.found == Found::Directory => {
            let size = match policy.limits().tmp_size.value {
                Limit::At(bytes) => Some(bytes),
                Limit::Unlimited => None,
            };
            let kind = MountKind::Tmpfs { size };
            (Some(kind), View::Own(Content::Memory))
        }
        (_, Content::Memory, _) => (mask, View::Nothing),
        (access, Content::Host, View::Host(seen)) if access == seen => (None, above),
        (access, Content::Host, _) if rule.found == Found::Other => {
            (Some(MountKind::Device { access }), View::Host(access))
        }
        (access, Content::Host, _) => (Some(MountKind::Bind { access }), View::Host(access)),
    }
}

/// Whether a rule is for what a repository is known by, which may be written and not moved away.
fn is_mark(policy: &Policy, rule: &FileRule) -> bool {
    rule.origin == Origin::BuiltIn(BuiltIn::Git)
        && rule.access == Access::Write
        && policy.git().value != GitLevel::Full
}

/// Links of the host that have to be made again, because nothing around them is seen.
fn aliases(policy: &Policy) -> impl Iterator<Item = Mount> {
    let aliases = policy.aliases().iter();
    aliases
        .filter(|alias| {
            // A name that is hidden by a rule stays hidden, whatever it leads to.
            let verdict = policy.files().access(&alias.name);
            verdict.rule.is_none() || verdict.access != Access::None
        })
        .map(|alias| Mount {
            at: alias.name.clone(),
            kind: MountKind::Alias {
                path: alias.path.clone(),
            },
        })
}

/// Whether a tree of the session's own has something at this path.
fn shows(content: Content, path: &AbsPath) -> bool {
    let name = path.as_path().iter().nth(2).and_then(OsStr::to_str);
    match (content, name) {
        // Hidden whole: the mount itself is left out.
        (Content::Devices | Content::Processes, None) => true,
        (Content::Devices, Some(name)) => DEVICES.contains(&name),
        // Processes of the host are not there; all else is.
        (Content::Processes, Some(name)) => !name.bytes().all(|byte| byte.is_ascii_digit()),
        (Content::Host | Content::Memory, _) => false,
    }
}

/// What is in the `/dev` that every session has.
pub const DEVICES: [&str; 9] = [
    "full", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero",
];

/// Those mounts that only keep a directory in its place: they show what is seen there anyway, with
/// the same access. Mounts come parents first.
pub fn pins<'m>(mounts: impl Iterator<Item = &'m Mount>) -> HashSet<&'m AbsPath> {
    // By their text: there may be hundreds, and there is one way to write each.
    let mut above: HashMap<&OsStr, &MountKind> = HashMap::default();
    let mut pins = HashSet::default();
    for mount in mounts {
        if matches!(mount.kind, MountKind::Bind { .. }) {
            let mut directories = mount.at.above();
            let around = directories.find_map(|path| above.get(path.as_os_str()).copied());
            if around == Some(&mount.kind) {
                pins.insert(&mount.at);
            }
        }
        above.insert(mount.at.as_path().as_os_str(), &mount.kind);
    }
    pins
}

#[derive(Debug, Default)]
struct Mounts {
    list: Vec<Mount>,
    /// Where they are: a project may have hundreds of repositories in it.
    places: HashSet<AbsPath>,
}

impl Mounts {
    fn push(&mut self, at: &AbsPath, kind: MountKind) {
        let at = at.clone();
        self.places.insert(at.clone());
        self.list.push(Mount { at, kind });
    }

    /// Mounts a directory that has a rule in it over itself, and those above it up to the writable
    /// mount they are in.
    ///
    /// A directory that is mounted on cannot be renamed or removed, but those above it can: then
    /// the name could be built again without the rule. With each of them a mount, none can.
    fn pin_up_to(&mut self, mounted_at: &AbsPath, directory: AbsPath) {
        let between = std::iter::successors(Some(directory), AbsPath::parent)
            .take_while(|directory| directory != mounted_at);
        for directory in between {
            if !self.places.contains(&directory) {
                let access = Access::Write;
                self.push(&directory, MountKind::Bind { access });
            }
        }
    }

    fn parents_first(mut self) -> Vec<Mount> {
        self.list.sort_by_key(|mount| mount.at.depth());
        self.list
    }
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
