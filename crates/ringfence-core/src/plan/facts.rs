//! What a machine can enforce, as plain data.
//!
//! The library finds these facts by trying; here they are only read. A table of named hosts lets
//! anybody see what a policy would become elsewhere.

use serde::{Deserialize, Serialize};

use crate::settings::Os;

/// Whether something works on this machine.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Feature {
    /// It was tried and it worked.
    Works,
    /// It did not work.
    Missing {
        /// What the machine answered, in words.
        why: String,
        /// What would make it work.
        fix: String,
    },
}

impl Feature {
    /// Whether it works.
    pub fn works(&self) -> bool {
        matches!(self, Self::Works)
    }

    fn missing(why: &str, fix: &str) -> Self {
        Self::Missing {
            why: why.to_owned(),
            fix: fix.to_owned(),
        }
    }
}

/// A processor whose system calls ringfence knows by number.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    /// 64-bit ARM.
    Aarch64,
    /// None of the others.
    Other,
    /// 64-bit x86.
    X86_64,
}

/// How mounts can be made.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountApi {
    /// By descriptor: a source is opened once and never looked up again (Linux 5.12).
    Descriptors,
    /// By path only.
    Paths,
}

/// What Landlock can do here.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LandlockFacts {
    /// Version of its interface; zero if there is none.
    pub abi: u32,
    /// Which known mistakes are mended, as the kernel numbers them from bit 0.
    pub errata: u32,
}

/// How the processes of a session can be found again.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CgroupFacts {
    /// Whether a cgroup can be made for a session.
    pub own: Feature,
    /// Which controllers could bound it.
    pub controllers: Vec<String>,
}

/// A bubblewrap of the system.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Bwrap {
    /// None at the fixed places.
    Absent,
    /// One that may create user namespaces.
    Usable {
        /// Where it is.
        path: String,
    },
    /// One that ringfence will not run, because it would run as root.
    Setuid {
        /// Where it is.
        path: String,
    },
}

/// Everything a plan needs to know about a machine.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostFacts {
    /// The operating system.
    pub os: Os,
    /// Its version, for people.
    pub version: String,
    /// The processor.
    pub arch: Arch,
    /// Creating a user namespace, with the other namespaces inside.
    pub user_namespaces: Feature,
    /// A network namespace with its own loopback.
    pub network_namespaces: Feature,
    /// A fresh `/proc` in a pid namespace.
    pub proc_mount: Feature,
    /// How mounts can be made.
    pub mount_api: MountApi,
    /// Landlock.
    pub landlock: LandlockFacts,
    /// Seccomp filters.
    pub seccomp: Feature,
    /// Filters that ask a supervisor: only one can in a chain of filters.
    pub seccomp_listener: Feature,
    /// A bound on processes without a cgroup: it does not bind root.
    pub process_limit: Feature,
    /// Cgroups, version 2.
    pub cgroup: CgroupFacts,
    /// A mark that every process inherits and that can be read from outside.
    pub mark: Feature,
    /// A bubblewrap of the system.
    pub bwrap: Bwrap,
    /// The sandbox of macOS.
    pub seatbelt: Feature,
}

impl HostFacts {
    /// Hosts that golden tests and `explain --plan --host NAME` know by name.
    pub const NAMED: [&'static str; 6] = [
        "linux-6.18",
        "ubuntu-24.04",
        "docker-default",
        "linux-5.13",
        "linux-5.10",
        "macos-15",
    ];

    /// The facts of a named host.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "linux-6.18" => Self::full_linux(),
            "ubuntu-24.04" => Self {
                version: "6.8.0-31-generic".to_owned(),
                landlock: LandlockFacts { abi: 4, errata: 0 },
                user_namespaces: Feature::missing(
                    "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
                    "install an AppArmor profile that allows ringfence `userns`, or use a packaged bwrap",
                ),
                network_namespaces: Feature::missing(
                    "it needs a user namespace",
                    "allow user namespaces first",
                ),
                proc_mount: Feature::missing(
                    "it needs a user namespace",
                    "allow user namespaces first",
                ),
                ..Self::full_linux()
            },
            "docker-default" => Self {
                user_namespaces: Feature::missing(
                    "the container's seccomp profile refuses clone with namespace flags",
                    "start the container with a seccomp profile that allows user namespaces",
                ),
                network_namespaces: Feature::missing(
                    "it needs a user namespace",
                    "allow user namespaces first",
                ),
                proc_mount: Feature::missing(
                    "parts of /proc are masked in this container",
                    "start the container with an unmasked /proc",
                ),
                cgroup: CgroupFacts {
                    own: Feature::missing(
                        "/sys/fs/cgroup is read-only",
                        "start the container with a writable cgroup",
                    ),
                    controllers: Vec::new(),
                },
                ..Self::full_linux()
            },
            "linux-5.13" => Self {
                version: "5.13.0".to_owned(),
                landlock: LandlockFacts { abi: 1, errata: 0 },
                ..Self::full_linux()
            },
            "linux-5.10" => Self {
                version: "5.10.0".to_owned(),
                landlock: LandlockFacts { abi: 0, errata: 0 },
                mount_api: MountApi::Paths,
                ..Self::full_linux()
            },
            "macos-15" => Self {
                os: Os::Macos,
                version: "15.5".to_owned(),
                arch: Arch::Aarch64,
                seatbelt: Feature::Works,
                ..Self::nothing(Os::Macos)
            },
            _ => return None,
        })
    }

    /// A machine that can enforce nothing.
    pub fn nothing(os: Os) -> Self {
        let absent = || Feature::missing("this operating system has none", "none");
        Self {
            os,
            version: String::new(),
            arch: Arch::Other,
            user_namespaces: absent(),
            network_namespaces: absent(),
            proc_mount: absent(),
            mount_api: MountApi::Paths,
            landlock: LandlockFacts { abi: 0, errata: 0 },
            seccomp: absent(),
            seccomp_listener: absent(),
            process_limit: absent(),
            cgroup: CgroupFacts {
                own: absent(),
                controllers: Vec::new(),
            },
            mark: absent(),
            bwrap: Bwrap::Absent,
            seatbelt: absent(),
        }
    }

    fn full_linux() -> Self {
        Self {
            version: "6.18.0".to_owned(),
            arch: Arch::X86_64,
            user_namespaces: Feature::Works,
            network_namespaces: Feature::Works,
            proc_mount: Feature::Works,
            mount_api: MountApi::Descriptors,
            landlock: LandlockFacts { abi: 7, errata: 7 },
            seccomp: Feature::Works,
            seccomp_listener: Feature::Works,
            process_limit: Feature::Works,
            cgroup: CgroupFacts {
                own: Feature::Works,
                controllers: vec!["memory".to_owned(), "pids".to_owned()],
            },
            mark: Feature::Works,
            ..Self::nothing(Os::Linux)
        }
    }
}
