//! What this host can enforce.
//!
//! Nothing is tried yet, so nothing is claimed: every feature is missing until a probe has seen
//! it work, and a plan made from these facts refuses to launch.

use ringfence_core::plan::{Arch, Bwrap, CgroupFacts, Feature, HostFacts, LandlockFacts, MountApi};
use ringfence_core::settings::Os;

/// The facts of the machine that this program runs on.
pub fn host_facts() -> HostFacts {
    HostFacts {
        os: crate::place::OS,
        version: String::from("unknown"),
        arch: if cfg!(target_arch = "x86_64") {
            Arch::X86_64
        } else if cfg!(target_arch = "aarch64") {
            Arch::Aarch64
        } else {
            Arch::Other
        },
        user_namespaces: unknown(),
        network_namespaces: unknown(),
        proc_mount: unknown(),
        mount_api: MountApi::Paths,
        landlock: LandlockFacts { abi: 0, errata: 0 },
        seccomp: unknown(),
        process_limit: unknown(),
        cgroup: CgroupFacts {
            own: unknown(),
            controllers: Vec::new(),
        },
        bwrap: Bwrap::Absent,
        seatbelt: match crate::place::OS {
            Os::Macos => unknown(),
            Os::Linux | Os::Windows => HostFacts::nothing(Os::Linux).seatbelt,
        },
    }
}

fn unknown() -> Feature {
    Feature::Missing {
        why: "this version does not probe the host yet".to_owned(),
        fix: "name a host with `--host-facts` to see its plan".to_owned(),
    }
}
