//! A cgroup of a session's own: looked for, and made, used and removed again.

use std::os::fd::AsFd;
use std::time::Duration;

use ringfence_core::plan::CgroupFacts;
use ringfence_core::plan::Feature;
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Ended;
use ringfence_sys::{Errno, Subject};
use rustix::time::Timespec;

use super::causes::{CgroupTrouble, missing};
use crate::track::group::{NoSite, SessionGroup, Site};

/// The controllers that a limit can ask for.
pub(super) const WANTED: [&str; 2] = ["memory", "pids"];

/// What a session's cgroup could do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Delegated {
    /// Where sessions' groups are made.
    pub(super) site: String,
    /// Which controllers could bound a session.
    pub(super) controllers: Vec<String>,
}

/// Whether a group could be made, by looking alone: the launch itself will try.
pub(super) fn look() -> CgroupFacts {
    match Site::find(&WANTED) {
        Ok(site) => CgroupFacts {
            own: Feature::Works,
            controllers: site.controllers().to_vec(),
        },
        Err(_) => CgroupFacts {
            own: missing(
                "no cgroup can be made here",
                "`ringfence doctor` says why, and what to do",
            ),
            controllers: Vec::new(),
        },
    }
}

/// Makes a group, lets a process be born in it, ends that process, and removes the group.
pub(super) fn try_out() -> Result<Delegated, CgroupTrouble> {
    let site = Site::find(&WANTED).map_err(|none| match none {
        NoSite::NoTree => CgroupTrouble::NoTree,
        NoSite::Own(errno) => CgroupTrouble::Own(errno),
        NoSite::NotOurs(errno) => CgroupTrouble::Create(errno),
    })?;
    let delegated = Delegated {
        site: ringfence_core::text::printable_path(site.path()),
        controllers: site.controllers().to_vec(),
    };
    let name = SessionGroup::draw_name().map_err(CgroupTrouble::Create)?;
    // Goes by itself, after a failure too: nothing of ours may stay.
    let mut group = SessionGroup::create(site, name).map_err(CgroupTrouble::Create)?;
    live_and_die(&group)?;
    group.remove().map_err(CgroupTrouble::Kill)?;
    Ok(delegated)
}

fn live_and_die(group: &SessionGroup) -> Result<(), CgroupTrouble> {
    let born = Spawn::new(Memory::Copied)
        .cgroup(group.as_fd())
        .start(&mut (), sleep);
    let child = born.map_err(CgroupTrouble::Birth)?;
    let ended = group.end(Duration::from_secs(2));
    if ended.is_err() {
        // The child must go in any case; if it is gone already that is as good.
        let _ = child.signal(ringfence_sys::Signal::KILL);
    }
    let how = child.wait().map_err(CgroupTrouble::Kill)?;
    ended.map_err(CgroupTrouble::Kill)?;
    match how {
        Ended::Killed { .. } => Ok(()),
        Ended::Exited(_) => Err(CgroupTrouble::Kill(Errno::NOTRECOVERABLE)),
    }
}

/// Waits to be killed, for longer than that can take, and not for ever.
fn sleep(_subject: &Subject, _nothing: &mut ()) -> u8 {
    let patience = Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    let _ = rustix::thread::nanosleep(&patience);
    1
}
