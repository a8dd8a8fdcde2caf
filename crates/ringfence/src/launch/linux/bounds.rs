//! The cgroup of a session, and the limits that it or the kernel's own bounds hold.

use std::io;
use std::path::Path;

use ringfence_core::plan::{Act, LimitName, Plan, Step};
use ringfence_sys::Errno;
use ringfence_sys::process::{Limit, LimitedResource};

use super::acts::Ready;
use super::init::{Boundary, Going};
use super::prepare::{Gathered, refused};
use crate::launch::{LaunchError, Linger, Options, StepName};
use crate::sessions::{Entry, Making, Registry, RegistryError};
use crate::track::group::{NoSite, SessionGroup, Site};
use crate::track::mark::Mark;

/// How many processes every session has.
const LEAST_PROCESSES: u64 = 2;

/// What a session has before anything of it is made.
pub(super) struct Announced {
    pub(super) entry: Option<Entry>,
    /// The mark, and the limit that carries it.
    pub(super) marked: Option<(Mark, Limit)>,
}

/// Writes a session down that could leave something behind, before any of that is made, and draws the
/// mark of one without a pid namespace.
///
/// What cannot be written down is held by its supervisor all the same. Only what lingers has to be found
/// when nobody waits for it any more.
pub(super) fn announced(
    options: &Options,
    plan: &Plan,
    boundary: Boundary,
) -> Result<Announced, LaunchError> {
    let leaves = plan.acts().contains(&Act::Cgroup) || boundary == Boundary::Descent;
    let mut entry = match (options.findable()?, &options.registry) {
        (Some((registry, about)), _) => {
            let entry = registry.announce(about);
            Some(entry.map_err(|errno| unfindable(registry.path(), errno))?)
        }
        (None, Some((path, about))) if leaves => {
            let registry = Registry::open(path).ok();
            registry.and_then(|registry| registry.announce(about).ok())
        }
        _ => None,
    };
    let marked = match boundary {
        Boundary::Descent => Mark::draw().map_err(|errno| refused("draw a mark", errno))?,
        Boundary::PidNamespace => None,
    };
    if let (Some(entry), Some((mark, _))) = (&mut entry, &marked) {
        entry.bear(*mark);
    }
    Ok(Announced { entry, marked })
}

fn unfindable(path: &Path, errno: Errno) -> LaunchError {
    let (path, source) = (path.to_owned(), errno.into());
    let source = RegistryError::Directory { path, source };
    LaunchError::Unfindable { source }
}

impl Gathered {
    /// Writes down everything that was made, by what the kernel knows it by: nothing is in it yet, and
    /// from here on something may be.
    pub(super) fn settle(&mut self, linger: Linger) -> Result<(), LaunchError> {
        let holds = self.group.is_some() || self.tmp.is_some() || linger == Linger::Yes;
        match self.entry.as_mut().map(Entry::settle) {
            // A session that has made nothing is held by its supervisor all the same.
            Some(Err(errno)) if holds => Err(refused("write the session down", errno)),
            _ => Ok(()),
        }
    }

    /// Makes the session's cgroup, written down before and (by [`settle`](Self::settle)) after.
    pub(super) fn new_group(&mut self) -> Result<SessionGroup, LaunchError> {
        let failed = |errno: Errno| LaunchError::Act {
            step: StepName(Step::Cgroup),
            object: None,
            source: errno.into(),
        };
        let needed: Vec<&str> = self
            .controlled
            .iter()
            .filter_map(|name| name.controller())
            .collect();
        let site = Site::find(&needed).map_err(|none| match none {
            NoSite::NoTree => failed(Errno::NODEV),
            NoSite::Own(errno) | NoSite::NotOurs(errno) => failed(errno),
        })?;
        let name = SessionGroup::draw_name().map_err(failed)?;
        if let Some(entry) = &mut self.entry {
            let planned = SessionGroup::planned(&site, &name);
            entry.expect(Making::Group(planned)).map_err(failed)?;
        }
        let group = SessionGroup::create(site, name).map_err(failed)?;
        if let Some(entry) = &mut self.entry {
            entry.make(Making::Group(group.identity()));
        }
        Ok(group)
    }

    /// When the first process goes. A cgroup is removed when nobody is in it any more.
    pub(super) fn going(&self, boundary: Boundary) -> Going {
        match (boundary, &self.group) {
            (Boundary::Descent, Some(_)) => Going::AtOnce,
            _ => Going::WhenLetGo,
        }
    }

    pub(super) fn limits(&mut self, bounds: &[(LimitName, u64)]) -> Result<(), LaunchError> {
        let mut limits = Vec::new();
        for (name, bound) in bounds {
            if *name == LimitName::Processes && *bound < LEAST_PROCESSES {
                // The kernel would say so too, when all else is made.
                return Err(LaunchError::Limit {
                    limit: *name,
                    bound: *bound,
                    step: StepName(Step::Command),
                    source: io::Error::other("a session has its first process and the command"),
                });
            }
            let group = self.group.as_ref().filter(|group| group.can_bound(*name));
            if *name == LimitName::Wall {
                self.wall = Some(*bound);
            } else if let Some(group) = group {
                let set = group.bound(*name, *bound);
                set.map_err(|errno| refused(&format!("set the limit {name}"), errno))?;
            } else if self.controlled.contains(name) {
                // The plan counts on a controller that is not here after all.
                return Err(LaunchError::Act {
                    step: StepName(Step::Cgroup),
                    object: Some(format!("limit {name}")),
                    source: Errno::NOENT.into(),
                });
            } else if let Some(resource) = resource(*name) {
                limits.push((resource, limit_of(*name, *bound)));
            }
        }
        self.acts.push((Step::Limits, Ready::Limits(limits)));
        Ok(())
    }
}

fn resource(name: LimitName) -> Option<LimitedResource> {
    match name {
        LimitName::Cpu => Some(LimitedResource::Cpu),
        LimitName::Processes => Some(LimitedResource::Nproc),
        LimitName::Files => Some(LimitedResource::Nofile),
        LimitName::FileSize => Some(LimitedResource::Fsize),
        // For each process by itself, and only where that was accepted as better than nothing.
        LimitName::Memory => Some(LimitedResource::Data),
        _ => None,
    }
}

/// A limit as the kernel takes it.
///
/// At the lower bound on processor time a process is told by a signal of its own, which is how
/// anybody knows what it died of; a second later it is ended whatever it does.
fn limit_of(name: LimitName, bound: u64) -> Limit {
    match name {
        LimitName::Cpu => Limit {
            current: Some(bound),
            maximum: Some(bound.saturating_add(1)),
        },
        _ => exactly(bound),
    }
}

pub(super) fn exactly(bound: u64) -> Limit {
    Limit {
        current: Some(bound),
        maximum: Some(bound),
    }
}
