//! Probing Linux.

mod bwrap;
mod causes;
mod cgroup;
mod surroundings;

use ringfence_core::plan::{
    Bwrap, CgroupFacts, Engine, Feature, HostFacts, LandlockFacts, MountApi,
};
use ringfence_core::settings::Os;
use ringfence_sys::namespaces::Namespaces;
use ringfence_sys::{Errno, landlock, probe, seccomp};
use rustix::thread::SecureComputingMode;

use self::causes::{LandlockTrouble, missing};
use self::surroundings::Surroundings;
use super::{Finding, Findings, Probed, can_start, this_arch};
use crate::launch::system_bwrap;
use crate::track::mark::Mark;

/// The namespaces of every session, beside that of users.
const FURTHER: [(Probed, &str, Namespaces); 5] = [
    (Probed::MountNamespace, "mount", Namespaces::MOUNT),
    (Probed::PidNamespace, "pid", Namespaces::PID),
    (Probed::IpcNamespace, "ipc", Namespaces::IPC),
    (Probed::UtsNamespace, "uts", Namespaces::UTS),
    (Probed::CgroupNamespace, "cgroup", Namespaces::CGROUP),
];

/// `SECCOMP_RET_ERRNO`: what every refusal of our filters answers with.
const RET_ERRNO: u32 = 0x0005_0000;

/// The facts that a launch needs, by a handful of system calls.
///
/// What only a process could find out (namespaces, mounts) is said to work: the launch tries it
/// before anything else, and when it is refused the caller asks [`thorough`] and compiles again.
/// Nothing that would weaken a plan is assumed.
///
/// # Examples
///
/// ```
/// use ringfence::core::settings::Os;
///
/// assert_eq!(ringfence::probe::quick().os, Os::Linux);
/// ```
pub fn quick() -> HostFacts {
    let abi = landlock::abi();
    HostFacts {
        version: release(),
        arch: this_arch(),
        user_namespaces: Feature::Works,
        network_namespaces: Feature::Works,
        proc_mount: Feature::Works,
        mount_api: MountApi::Descriptors,
        landlock: LandlockFacts {
            abi: abi.unwrap_or(0),
            errata: landlock::errata().map_or(0, |errata| errata.bits()),
        },
        seccomp: match seccomp::action_available(RET_ERRNO) {
            Ok(true) => Feature::Works,
            Ok(false) => missing(
                "this kernel's seccomp is too old to answer with an error",
                "use Linux 4.14 or later",
            ),
            Err(errno) => missing(
                format!("seccomp does not answer ({})", causes::answer(errno)),
                "ask `ringfence doctor`",
            ),
        },
        seccomp_listener: quick_listener(),
        process_limit: process_limit(),
        cgroup: unasked_cgroup(),
        mark: mark(),
        ..HostFacts::nothing(Os::Linux)
    }
}

/// The facts of a host that makes no user namespaces, if this is one.
///
/// For a launch that was refused one: a single try tells, and one of bubblewrap where there is one. The
/// rest is as in [`quick`], since the launch itself will try it. Only [`thorough`] knows the reasons.
#[doc(hidden)]
pub fn without_namespaces() -> Option<HostFacts> {
    let errno = probe::namespaces(Namespaces::empty()).err()?;
    if !causes::makes_none(errno) {
        return None;
    }
    let refused = || {
        missing(
            "this host makes no user namespaces",
            "`ringfence doctor` says why, and what to do",
        )
    };
    Some(HostFacts {
        user_namespaces: refused(),
        network_namespaces: refused(),
        proc_mount: refused(),
        mount_api: MountApi::Paths,
        cgroup: cgroup(),
        bwrap: match bwrap() {
            Bwrap::Usable { path } if bwrap::try_out(&path).is_err() => Bwrap::Absent,
            found => found,
        },
        ..quick()
    })
}

/// Tries each thing that an engine or a rule could need, in children that end at once.
///
/// This takes some milliseconds; nothing is left behind and the calling process is not changed.
///
/// # Examples
///
/// ```
/// let findings = ringfence::probe::thorough();
/// println!("{} things were tried", findings.findings.len());
/// ```
pub fn thorough() -> Findings {
    let around = Surroundings::look();
    let mut trial = Trial {
        facts: quick(),
        findings: Vec::new(),
        around,
    };
    trial.namespaces();
    trial.landlock();
    trial.seccomp();
    trial.bounds();
    trial.bwrap();
    Findings {
        circumstances: trial.around.circumstances(),
        facts: trial.facts,
        findings: trial.findings,
    }
}

/// Probing as it goes on.
struct Trial {
    facts: HostFacts,
    findings: Vec<Finding>,
    around: Surroundings,
}

impl Trial {
    fn found(&mut self, probed: Probed, state: Feature, detail: Option<String>) -> Feature {
        self.findings.push(Finding {
            probed,
            state: state.clone(),
            detail,
            follows: None,
        });
        state
    }

    /// Tries what can only be tried inside a user namespace.
    fn inside(
        &mut self,
        probed: Probed,
        trial: impl FnOnce() -> Result<(), Errno>,
        cause: impl FnOnce(Errno, &Surroundings) -> Feature,
    ) -> Feature {
        let user = self
            .findings
            .iter()
            .find(|finding| finding.probed == Probed::UserNamespace);
        if user.is_some_and(|user| user.state.works()) {
            let state = match trial() {
                Ok(()) => Feature::Works,
                Err(errno) => cause(errno, &self.around),
            };
            return self.found(probed, state, None);
        }
        let state = causes::needs_user_namespace();
        self.findings.push(Finding {
            probed,
            state: state.clone(),
            detail: None,
            follows: Some(Probed::UserNamespace),
        });
        state
    }

    fn namespaces(&mut self) {
        let user = match probe::namespaces(Namespaces::empty()) {
            Ok(()) => Feature::Works,
            Err(errno) => causes::user_namespace(errno, &self.around),
        };
        self.facts.user_namespaces = self.found(Probed::UserNamespace, user, None);
        let mut all = Namespaces::empty();
        for (probed, name, namespace) in FURTHER {
            all |= namespace;
            let state = self.inside(
                probed,
                || probe::namespaces(namespace),
                |errno, around| causes::namespace(name, errno, around),
            );
            if self.facts.user_namespaces.works() {
                self.facts.user_namespaces = state;
            }
        }
        if self.facts.user_namespaces.works()
            && let Err(errno) = probe::namespaces(all)
        {
            self.facts.user_namespaces = causes::namespace("all the other", errno, &self.around);
        }
        self.facts.network_namespaces = self.inside(
            Probed::NetworkNamespace,
            || probe::namespaces(Namespaces::NET).and_then(|()| probe::loopback_device()),
            |errno, around| causes::namespace("network", errno, around),
        );
        self.facts.proc_mount =
            self.inside(Probed::ProcMount, probe::proc_mount, causes::proc_mount);
        let mounts = self.inside(Probed::MountApi, probe::mount_api, causes::mounts);
        if !mounts.works() {
            self.facts.mount_api = MountApi::Paths;
            // No launch builds its root by path, so the engine does not work at all.
            if self.facts.user_namespaces.works() {
                self.facts.user_namespaces = mounts;
            }
        }
    }

    fn landlock(&mut self) {
        let LandlockFacts { abi, errata } = self.facts.landlock;
        let tried = match landlock::abi() {
            Ok(_) => probe::landlock().map_err(LandlockTrouble::Rules),
            Err(errno) => Err(LandlockTrouble::Version(errno)),
        };
        let (state, detail) = match tried {
            Ok(()) => (
                Feature::Works,
                Some(format!("ABI {abi}, errata {errata:#x}")),
            ),
            Err(trouble) => {
                // A version alone holds nothing.
                self.facts.landlock = LandlockFacts { abi: 0, errata: 0 };
                (causes::landlock(trouble, &self.around), None)
            }
        };
        self.found(Probed::Landlock, state, detail);
    }

    fn seccomp(&mut self) {
        let filter = match probe::seccomp_filter() {
            Ok(()) => Feature::Works,
            Err(errno) => causes::seccomp(errno, &self.around),
        };
        self.facts.seccomp = self.found(Probed::Seccomp, filter, None);
        let listener = match probe::seccomp_listener() {
            Ok(()) => Feature::Works,
            Err(errno) => causes::listener(errno, &self.around),
        };
        self.facts.seccomp_listener = self.found(Probed::SeccompListener, listener, None);
    }

    fn bounds(&mut self) {
        let limit = self.facts.process_limit.clone();
        self.found(Probed::ProcessLimit, limit, None);
        let (state, detail) = match cgroup::try_out() {
            Ok(delegated) => {
                let controllers = match delegated.controllers.as_slice() {
                    [] => "none".to_owned(),
                    some => some.join(" "),
                };
                let detail = format!("below {}, controllers: {controllers}", delegated.site);
                self.facts.cgroup.controllers = delegated.controllers;
                (Feature::Works, Some(detail))
            }
            Err(trouble) => (causes::cgroup(trouble, &self.around), None),
        };
        self.facts.cgroup.own = self.found(Probed::Cgroup, state, detail);
        let mark = self.facts.mark.clone();
        self.found(Probed::Mark, mark, None);
        let tun = match probe::tun_device() {
            Ok(()) => Feature::Works,
            Err(errno) => causes::tun(errno, &self.around),
        };
        self.found(Probed::Tun, tun, None);
    }

    fn bwrap(&mut self) {
        self.facts.bwrap = bwrap();
        let (state, detail) = match &self.facts.bwrap {
            Bwrap::Absent => (
                missing(
                    "there is no bwrap of root's in /usr/bin or /usr/local/bin",
                    "install the distribution's bubblewrap package",
                ),
                None,
            ),
            Bwrap::Setuid { path } => (
                missing(
                    format!("{path} has rights of root's, so it would not run as the caller"),
                    format!("sudo chmod u-s,g-s {path}; sudo setcap -r {path}"),
                ),
                None,
            ),
            Bwrap::Usable { path } => match bwrap::try_out(path) {
                Ok(()) => (Feature::Works, Some(path.clone())),
                Err(said) => (
                    missing(
                        format!("{path} cannot make a sandbox here: {said}"),
                        "allow user namespaces first",
                    ),
                    None,
                ),
            },
        };
        let usable = matches!(self.facts.bwrap, Bwrap::Usable { .. });
        if usable && !(state.works() && can_start(Engine::Bwrap)) {
            self.facts.bwrap = Bwrap::Absent;
        }
        self.found(Probed::Bwrap, state, detail);
    }
}

/// A filter around us may have a listener already, and there can be only one.
fn quick_listener() -> Feature {
    match rustix::thread::secure_computing_mode() {
        Ok(SecureComputingMode::Disabled) => Feature::Works,
        _ => missing(
            "another seccomp filter is in force",
            "start ringfence outside of it",
        ),
    }
}

/// Root of the host is never held to a number of processes.
fn process_limit() -> Feature {
    let user = rustix::process::getuid();
    if user.is_root() {
        causes::process_limit(user.as_raw())
    } else {
        Feature::Works
    }
}

/// Most launches need none, and looking for one takes longer than all the rest.
fn unasked_cgroup() -> CgroupFacts {
    CgroupFacts {
        own: missing(
            "nobody has looked for a cgroup",
            "`ringfence doctor` says whether there is one",
        ),
        controllers: Vec::new(),
    }
}

/// What bubblewrap of the system there is, by looking alone. Only launches that name it need it.
#[doc(hidden)]
pub fn bwrap() -> Bwrap {
    system_bwrap()
}

/// Whether a session could have a cgroup of its own, by looking alone.
#[doc(hidden)]
pub fn cgroup() -> CgroupFacts {
    cgroup::look()
}

/// Whether a session could bear a mark, and what stands in the way: the place is taken, or may not be written.
fn mark() -> Feature {
    if Mark::is_possible() {
        return Feature::Works;
    }
    if Mark::is_free() {
        return missing(
            "the limit on file locks, which holds the mark, may not be set here: a seccomp filter refuses it, as the one of another session does",
            "start ringfence outside of that session or container, or allow prlimit64",
        );
    }
    missing(
        "the limit on file locks, which holds the mark, is set already",
        "start ringfence with `ulimit -x unlimited`",
    )
}

/// The kernel's version, as it calls itself.
fn release() -> String {
    let name = rustix::system::uname();
    name.release().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::track::group::Site;

    #[test]
    fn quick_facts_cost_no_launch_anything_that_could_be_noticed() {
        const ENOUGH: Duration = Duration::from_micros(200);
        let once = || {
            let start = Instant::now();
            let facts = std::hint::black_box(quick());
            assert_eq!(facts.os, Os::Linux);
            start.elapsed()
        };
        let best = || (0..100).map(|_| once()).min().unwrap();
        // The best of many is what it costs; a machine that is busy throughout gets another try.
        let mut tries = (0..50).map(|_| best());
        assert!(tries.any(|best| best < ENOUGH), "{:?}", best());
    }

    #[test]
    fn quick_facts_and_thorough_ones_agree_where_everything_works() {
        let findings = thorough();
        let mut quick = quick();
        // Only trying can tell these.
        quick.bwrap = findings.facts.bwrap.clone();
        quick.seccomp_listener = findings.facts.seccomp_listener.clone();
        // Only asked for where it is needed.
        quick.cgroup = cgroup();
        if let Feature::Missing { .. } = findings.facts.cgroup.own {
            assert!(!quick.cgroup.own.works());
            quick.cgroup = findings.facts.cgroup.clone();
        }
        assert_eq!(quick, findings.facts);
    }

    #[test]
    fn probing_leaves_no_cgroup_behind() {
        let Ok(site) = Site::find(&cgroup::WANTED) else {
            return;
        };
        let groups = || {
            let entries = std::fs::read_dir(site.path()).unwrap().flatten();
            let names = entries.map(|entry| entry.path());
            names
                .filter(|path| path.is_dir())
                .collect::<BTreeSet<PathBuf>>()
        };
        let before = groups();
        let tried = cgroup::try_out();
        // Other tests make groups, too, at this very moment; theirs go as well, in their time.
        let new: Vec<PathBuf> = groups().difference(&before).cloned().collect();
        let patience = Instant::now() + Duration::from_mins(1);
        while new.iter().any(|group| group.is_dir()) {
            assert!(Instant::now() < patience, "{tried:?}: {new:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
