//! A cgroup of a session's own: made below ours, used and removed again.

use std::ffi::CString;
use std::os::fd::AsFd;

use ringfence_sys::cgroup::{self, Group};
use ringfence_sys::mountinfo::unescaped;
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Ended;
use ringfence_sys::{Errno, Signal, Subject, process};
use rustix::time::Timespec;

use super::causes::CgroupTrouble;

/// What a session's cgroup could do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Delegated {
    /// Where our own group is.
    pub(super) own: String,
    /// Which controllers could bound a session.
    pub(super) controllers: Vec<String>,
}

/// Makes a group, lets a process be born in it, ends that process, and removes the group.
pub(super) fn try_out() -> Result<Delegated, CgroupTrouble> {
    let path = own_group()?;
    let own = Group::open(&path).map_err(CgroupTrouble::Own)?;
    let name = fresh_name().map_err(CgroupTrouble::Create)?;
    let group = own.create(&name).map_err(CgroupTrouble::Create)?;
    let tried = live_and_die(&group);
    // Also after a failure: nothing of ours may stay.
    let removed = own.remove(&name).map_err(CgroupTrouble::Kill);
    let controllers = tried?;
    removed?;
    Ok(Delegated {
        own: ringfence_core::text::printable_bytes(path.as_bytes()),
        controllers,
    })
}

fn live_and_die(group: &Group) -> Result<Vec<String>, CgroupTrouble> {
    let mut buffer = [0; 512];
    let controllers = group
        .read(c"cgroup.controllers", &mut buffer)
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .unwrap_or_default();
    let born = Spawn::new(Memory::Copied)
        .cgroup(group.as_fd())
        .start(&mut (), sleep);
    let child = born.map_err(CgroupTrouble::Birth)?;
    let killed = group.kill();
    if killed.is_err() {
        // The child must go in any case; if it is gone already that is as good.
        let _ = child.signal(Signal::KILL);
    }
    let ended = child.wait().map_err(CgroupTrouble::Kill)?;
    killed.map_err(CgroupTrouble::Kill)?;
    match ended {
        Ended::Killed { .. } => Ok(controllers.split_whitespace().map(str::to_owned).collect()),
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

fn own_group() -> Result<CString, CgroupTrouble> {
    let groups = std::fs::read("/proc/self/cgroup").map_err(|_| CgroupTrouble::NoTree)?;
    let mounts = std::fs::read("/proc/self/mountinfo").map_err(|_| CgroupTrouble::NoTree)?;
    let own = cgroup::own_path(&groups).ok_or(CgroupTrouble::NoTree)?;
    let tree = cgroup::mount(&mounts).ok_or(CgroupTrouble::NoTree)?;
    let mut path: Vec<u8> = unescaped(tree.point).collect();
    path.extend_from_slice(own);
    CString::new(path).map_err(|_| CgroupTrouble::Own(Errno::INVAL))
}

fn fresh_name() -> Result<CString, Errno> {
    let mut random = [0; 8];
    process::fill_random(&mut random)?;
    let number = u64::from_ne_bytes(random);
    CString::new(format!("ringfence-probe-{number:016x}")).map_err(|_| Errno::INVAL)
}
