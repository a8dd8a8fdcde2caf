//! What this host can enforce.

use ringfence_core::plan::HostFacts;

/// The facts of the machine that this program runs on, as far as a few system calls tell them.
///
/// User namespaces are taken to work: the launch itself is the probe for them, and refuses when
/// they do not.
#[cfg(target_os = "linux")]
pub fn host_facts() -> HostFacts {
    use ringfence_core::plan::{Arch, Feature, LandlockFacts, MountApi};
    use ringfence_core::settings::Os;
    use ringfence_sys::landlock;
    use rustix::thread::SecureComputingMode;

    let system = rustix::system::uname();
    HostFacts {
        version: system.release().to_string_lossy().into_owned(),
        arch: if cfg!(target_arch = "x86_64") {
            Arch::X86_64
        } else {
            Arch::Aarch64
        },
        user_namespaces: Feature::Works,
        network_namespaces: Feature::Works,
        proc_mount: Feature::Works,
        mount_api: MountApi::Descriptors,
        landlock: LandlockFacts {
            abi: landlock::abi().unwrap_or(0),
            errata: landlock::errata().map_or(0, |errata| errata.bits()),
        },
        seccomp: Feature::Works,
        // A filter around us may have a listener already, and there can be only one.
        seccomp_listener: match rustix::thread::secure_computing_mode() {
            Ok(SecureComputingMode::Disabled) => Feature::Works,
            _ => Feature::Missing {
                why: "another seccomp filter is in force".to_owned(),
                fix: "run outside of it".to_owned(),
            },
        },
        process_limit: if rustix::process::geteuid().is_root() {
            Feature::Missing {
                why: "the limit does not bind root".to_owned(),
                fix: "run as another user".to_owned(),
            }
        } else {
            Feature::Works
        },
        bwrap: crate::launch::system_bwrap(),
        ..HostFacts::nothing(Os::Linux)
    }
}

/// Nothing can be enforced on this operating system yet.
#[cfg(not(target_os = "linux"))]
pub fn host_facts() -> HostFacts {
    HostFacts::nothing(crate::place::OS)
}
