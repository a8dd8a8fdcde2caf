//! What is around us: switches, filters, marks of containers. Read only.
//!
//! What cannot be read is taken for absent: these only explain a refusal that was seen, and a
//! wrong guess here changes a sentence, never a decision.

use std::path::PathBuf;

use ringfence_sys::init::wire::NAME;
use ringfence_sys::mountinfo;
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::switches::{ContainerMark, Switch};

use crate::probe::Circumstance;

/// What is around us, as plain data.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    /// Our real user.
    pub(super) user: u32,
    /// The kernel's version, as it calls itself.
    pub(super) release: String,
    /// Whether a seccomp filter was in force before us.
    pub(super) filter: Filter,
    /// `kernel.unprivileged_userns_clone`.
    pub(super) unprivileged: Option<u64>,
    /// `user.max_user_namespaces`.
    pub(super) most_namespaces: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns`.
    pub(super) apparmor: Option<u64>,
    /// `kernel.yama.ptrace_scope`.
    pub(super) yama: Option<u64>,
    /// The security modules in force, if securityfs shows them.
    pub(super) modules: Option<String>,
    /// Whose container we are in, and where it says so.
    pub(super) container: Option<(String, &'static str)>,
    /// Whether not all user ids exist here.
    pub(super) user_namespace: bool,
    /// Which Windows Subsystem for Linux this is.
    pub(super) wsl: Option<Wsl>,
    /// The name of process 1.
    pub(super) first_process: String,
    /// What is mounted over parts of `/proc`.
    pub(super) covered_proc: Vec<String>,
    /// Whether our root directory is no mount of its own, as after chroot.
    pub(super) chroot: bool,
    /// Our own program.
    pub(super) program: Option<PathBuf>,
}

/// Whether a seccomp filter was in force before us.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Filter {
    /// There was none.
    #[default]
    None,
    /// There was.
    Outer,
}

/// A Windows Subsystem for Linux.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Wsl {
    /// Without a Linux kernel.
    One,
    /// With one.
    Two,
}

impl Surroundings {
    /// Looks around.
    pub(super) fn look() -> Self {
        let mut found = Self {
            user: rustix::process::getuid().as_raw(),
            release: super::release(),
            container: container(),
            program: std::env::current_exe().ok(),
            ..Self::default()
        };
        found.wsl = wsl(&found.release);
        let modules = std::fs::read_to_string("/sys/kernel/security/lsm").ok();
        found.modules = modules.map(|text| text.trim().to_owned());
        if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
            found.filter = filter(&status);
        }
        if let Ok(name) = std::fs::read_to_string("/proc/1/comm") {
            name.trim_end().clone_into(&mut found.first_process);
        }
        if let Ok(text) = std::fs::read("/proc/self/mountinfo") {
            (found.covered_proc, found.chroot) = mounts(&text);
        }
        if let Ok(proc_dir) = ProcDir::open() {
            let read = |switch: Switch| switch.read(&proc_dir).ok().flatten();
            found.unprivileged = read(Switch::UnprivilegedUserNamespaces);
            found.most_namespaces = read(Switch::MaxUserNamespaces);
            found.apparmor = read(Switch::AppArmorRestrictsUserNamespaces);
            found.yama = read(Switch::YamaPtraceScope);
            let mark = ContainerMark::UserNamespace;
            found.user_namespace = mark.is_present(&proc_dir).unwrap_or(false);
            found.container = found.container.or_else(|| marked(&proc_dir));
        }
        found
    }

    /// Whether we are inside a session of ringfence's own.
    pub(super) fn in_session(&self) -> bool {
        self.first_process.as_bytes() == NAME.to_bytes() && self.filter == Filter::Outer
    }

    /// What of it explains anything.
    pub(super) fn circumstances(&self) -> Vec<Circumstance> {
        let mut out = Vec::new();
        if let Some((manager, mark)) = &self.container {
            let (manager, mark) = (manager.clone(), *mark);
            out.push(Circumstance::Container { manager, mark });
        }
        match self.wsl {
            Some(Wsl::One) => out.push(Circumstance::Wsl1),
            Some(Wsl::Two) => out.push(Circumstance::Wsl2),
            None => {}
        }
        if self.in_session() {
            out.push(Circumstance::RingfenceSession);
        }
        if self.user_namespace {
            out.push(Circumstance::ForeignUserNamespace);
        }
        if self.filter == Filter::Outer {
            out.push(Circumstance::OuterFilter);
        }
        // Only what is not as it should be: a switch that stands right explains nothing.
        let switches = [
            (
                "kernel.unprivileged_userns_clone",
                self.unprivileged,
                self.unprivileged == Some(0),
            ),
            (
                "user.max_user_namespaces",
                self.most_namespaces,
                self.most_namespaces == Some(0),
            ),
            (
                "kernel.apparmor_restrict_unprivileged_userns",
                self.apparmor,
                self.apparmor > Some(0),
            ),
            ("kernel.yama.ptrace_scope", self.yama, self.yama > Some(1)),
        ];
        for (name, value, telling) in switches {
            if let Some(value) = value.filter(|_| telling) {
                out.push(Circumstance::Switch { name, value });
            }
        }
        out
    }
}

fn filter(status: &str) -> Filter {
    const FILTERED: &str = "2";
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    match mode.map(str::trim) {
        Some(FILTERED) => Filter::Outer,
        _ => Filter::None,
    }
}

fn wsl(release: &str) -> Option<Wsl> {
    if release.ends_with("-Microsoft") {
        Some(Wsl::One)
    } else if release.to_ascii_lowercase().contains("microsoft") {
        Some(Wsl::Two)
    } else {
        None
    }
}

/// The name that the manager of a container wrote down, for systemd or for itself.
fn container() -> Option<(String, &'static str)> {
    const MARK: &str = "/run/systemd/container";
    let text = std::fs::read_to_string(MARK).ok()?;
    let word: String = text
        .trim()
        .chars()
        .take_while(|character| character.is_ascii_alphanumeric() || *character == '-')
        .collect();
    (!word.is_empty()).then_some((word, MARK))
}

fn marked(proc_dir: &ProcDir) -> Option<(String, &'static str)> {
    let marks = [
        (ContainerMark::Docker, "docker", "/.dockerenv"),
        (ContainerMark::Podman, "podman", "/run/.containerenv"),
    ];
    let present = |mark: ContainerMark| mark.is_present(proc_dir).unwrap_or(false);
    let (_, manager, place) = marks.into_iter().find(|(mark, ..)| present(*mark))?;
    Some((manager.to_owned(), place))
}

/// What is mounted below `/proc`, and whether nothing is mounted at the root.
fn mounts(text: &[u8]) -> (Vec<String>, bool) {
    let (mut covered, mut chroot) = (Vec::new(), true);
    for mount in mountinfo::mounts(text).flatten() {
        // A binary format registry is on every ordinary `/proc` and covers an empty directory.
        if mount.point.starts_with(b"/proc/") && mount.point != b"/proc/sys/fs/binfmt_misc" {
            covered.push(ringfence_core::text::printable_bytes(mount.point));
        }
        chroot &= mount.point != b"/";
    }
    (covered, chroot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_filter_of_somebody_else_counts() {
        assert_eq!(
            filter("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"),
            Filter::Outer
        );
        assert_eq!(filter("Seccomp:\t0\nSeccomp_filters:\t2\n"), Filter::None);
        assert_eq!(filter(""), Filter::None);
    }

    #[test]
    fn subsystems_are_told_apart_by_their_names() {
        assert_eq!(wsl("4.4.0-19041-Microsoft"), Some(Wsl::One));
        assert_eq!(wsl("5.15.153.1-microsoft-standard-WSL2"), Some(Wsl::Two));
        assert_eq!(wsl("6.18.0"), None);
    }

    #[test]
    fn covered_parts_and_a_missing_root_are_seen() {
        let container = b"1 0 0:1 / / rw - overlay overlay rw\n\
            2 1 0:2 / /proc rw - proc proc rw\n\
            3 2 0:3 / /proc/acpi ro - tmpfs tmpfs ro\n\
            4 2 0:4 / /proc/sys/fs/binfmt_misc rw - binfmt_misc binfmt_misc rw\n";
        assert_eq!(mounts(container), (vec!["/proc/acpi".to_owned()], false));
        assert_eq!(
            mounts(b"2 1 0:2 / /proc rw - proc proc rw\n"),
            (vec![], true)
        );
    }

    #[test]
    fn switches_that_stand_right_are_not_mentioned() {
        let right = Surroundings {
            unprivileged: Some(1),
            most_namespaces: Some(100),
            apparmor: Some(0),
            yama: Some(1),
            ..Surroundings::default()
        };
        assert_eq!(right.circumstances(), []);
        let wrong = Surroundings {
            apparmor: Some(1),
            ..right
        };
        let expected = Circumstance::Switch {
            name: "kernel.apparmor_restrict_unprivileged_userns",
            value: 1,
        };
        assert_eq!(wrong.circumstances(), [expected]);
    }
}
