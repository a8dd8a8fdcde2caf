//! Why something does not work, and what to type to make it work.
//!
//! Pure: the kernel's answer and what is around us go in, a sentence and a command come out. The
//! order of the questions matters: a switch that is plainly off is named before a filter that
//! might have refused as well.

use std::path::Path;

use ringfence_core::plan::{DELEGATE, Feature};
use ringfence_sys::Errno;

use super::surroundings::{Filter, Surroundings, Wsl};

/// `why` and `fix` as a feature that is missing.
pub(super) fn missing(why: impl Into<String>, fix: impl Into<String>) -> Feature {
    Feature::Missing {
        why: why.into(),
        fix: fix.into(),
    }
}

/// What a session refuses to all that runs in it, it refuses to another ringfence as well.
const OUTSIDE_SESSION: &str = "start it outside the ringfence session around it";

/// For what can only be tried inside a user namespace.
pub(super) fn needs_user_namespace() -> Feature {
    missing("it needs a user namespace", "allow user namespaces first")
}

/// The kernel's answer in its own words, without the number.
pub(super) fn answer(errno: Errno) -> String {
    let message = std::io::Error::from(errno).to_string();
    let words = message.split(" (os error").next().unwrap_or(&message);
    words.to_lowercase()
}

/// Whether a host that answers so makes no user namespaces. Anything else may be over in a moment, as a limit of
/// processes that was reached.
pub(super) fn makes_none(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ACCESS | Errno::INVAL | Errno::NOSPC | Errno::NOSYS | Errno::PERM | Errno::USERS
    )
}

/// Why no user namespace can be made.
pub(super) fn user_namespace(errno: Errno, around: &Surroundings) -> Feature {
    if let Some(wsl) = wsl_one(around) {
        return wsl;
    }
    match errno {
        Errno::NOSPC | Errno::USERS => too_many(around),
        Errno::PERM | Errno::ACCESS => forbidden(errno, around),
        Errno::NOSYS | Errno::INVAL if around.filter == Filter::None => missing(
            format!(
                "this kernel was built without user namespaces ({})",
                answer(errno)
            ),
            "use a kernel with CONFIG_USER_NS",
        ),
        Errno::AGAIN | Errno::NOMEM => missing(
            format!("no process can be made to try it ({})", answer(errno)),
            "try again, or allow more processes (`ulimit -u`)",
        ),
        _ => filtered(
            "user namespaces",
            "clone, clone3 and unshare",
            errno,
            around,
        ),
    }
}

fn too_many(around: &Surroundings) -> Feature {
    const ALLOW: &str = "sudo sysctl -w user.max_user_namespaces=15000";
    match (around.most_namespaces, around.user_namespace) {
        (Some(0), false) => missing("user.max_user_namespaces is 0", ALLOW),
        (Some(0), true) => missing(
            "user.max_user_namespaces is 0 in the user namespace around this process",
            format!("{ALLOW}  # as its root"),
        ),
        (_, true) => missing(
            "a user namespace around this process allows no further ones, or too many are nested",
            format!("{ALLOW}  # outside of it"),
        ),
        (limit, false) => {
            let limit = limit.map_or_else(String::new, |limit| format!(" ({limit})"));
            missing(
                format!(
                    "this user has as many user namespaces as user.max_user_namespaces allows{limit}"
                ),
                "end programs that hold some, or raise it: sudo sysctl -w user.max_user_namespaces=100000",
            )
        }
    }
}

fn forbidden(errno: Errno, around: &Surroundings) -> Feature {
    const ROOT: u32 = 0;
    if around.unprivileged == Some(0) && around.user != ROOT {
        return missing(
            "only root may make user namespaces (kernel.unprivileged_userns_clone is 0)",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        );
    }
    if around.apparmor > Some(0) && around.user != ROOT {
        return missing(
            "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
            apparmor_fix(around.program.as_deref()),
        );
    }
    if around.chroot {
        return missing(
            "this process is in a chroot, where the kernel refuses user namespaces",
            "start ringfence outside the chroot, or enter it with pivot_root",
        );
    }
    filtered(
        "user namespaces",
        "clone, clone3 and unshare",
        errno,
        around,
    )
}

/// A line that gives ringfence, and nothing else, the right to user namespaces.
fn apparmor_fix(program: Option<&Path>) -> String {
    const EVERYBODY: &str = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-+".contains(character);
    let program = program
        .and_then(Path::to_str)
        .filter(|path| path.starts_with('/') && path.chars().all(plain));
    match program {
        Some(program) => format!(
            "printf 'abi <abi/4.0>,\\nprofile ringfence {program} flags=(unconfined) {{\\n  userns,\\n}}\\n' \
             | sudo tee /etc/apparmor.d/ringfence && sudo apparmor_parser -r /etc/apparmor.d/ringfence"
        ),
        // A path that would have to be quoted for three readers at once.
        None => EVERYBODY.to_owned(),
    }
}

/// For a refusal that looks like that of a filter around us.
fn filtered(what: &str, calls: &str, errno: Errno, around: &Surroundings) -> Feature {
    let answer = answer(errno);
    if around.filter == Filter::None {
        let modules = match &around.modules {
            Some(modules) => format!("; security modules: {modules}"),
            None => String::new(),
        };
        return missing(
            format!("the kernel refuses {what} ({answer}{modules})"),
            "ask whoever runs this machine; `sudo dmesg` may say who refused",
        );
    }
    let why = format!("a seccomp filter around this process refuses {what} ({answer})");
    missing(why, filter_fix(calls, around))
}

fn filter_fix(calls: &str, around: &Surroundings) -> String {
    // The marks of a container around the session show through, and are not to blame.
    if around.in_session() {
        return OUTSIDE_SESSION.to_owned();
    }
    let manager = around
        .container
        .as_ref()
        .map(|(manager, _)| manager.as_str());
    match manager {
        Some(manager @ ("docker" | "podman")) => format!(
            "start the container with `{manager} run --security-opt seccomp=unconfined`, or with a profile that allows {calls}"
        ),
        Some("systemd-nspawn") => format!(
            "start the container with `systemd-nspawn --system-call-filter='{}'`",
            calls.replace(" and ", " ").replace(',', "")
        ),
        Some(manager) => {
            format!("let {manager} start the container with a filter that allows {calls}")
        }
        None => format!("start ringfence outside that sandbox, or let its filter allow {calls}"),
    }
}

/// Why a further namespace cannot be made inside a user namespace that could.
pub(super) fn namespace(name: &str, errno: Errno, around: &Surroundings) -> Feature {
    match errno {
        Errno::INVAL => missing(
            format!("this kernel was built without {name} namespaces"),
            format!("use a kernel with {name} namespaces"),
        ),
        Errno::NOSPC | Errno::USERS => missing(
            format!(
                "user.max_{}_namespaces allows no further ones",
                switch_name(name)
            ),
            format!(
                "sudo sysctl -w user.max_{}_namespaces=15000",
                switch_name(name)
            ),
        ),
        _ => filtered(
            &format!("{name} namespaces"),
            "clone, clone3 and unshare",
            errno,
            around,
        ),
    }
}

fn switch_name(name: &str) -> &str {
    match name {
        "mount" => "mnt",
        "network" => "net",
        other => other,
    }
}

/// Why `/proc` cannot be mounted.
pub(super) fn proc_mount(errno: Errno, around: &Surroundings) -> Feature {
    if errno == Errno::PERM
        && let Some(first) = around.covered_proc.first()
    {
        let why = format!(
            "parts of /proc are covered here, such as {first}, and a fresh one would show them"
        );
        let fix = match around
            .container
            .as_ref()
            .map(|(manager, _)| manager.as_str())
        {
            Some("docker") => {
                "start the container with `docker run --security-opt systempaths=unconfined`"
            }
            Some("podman") => "start the container with `podman run --security-opt unmask=ALL`",
            _ => "start the container with an unmasked /proc (Kubernetes: `procMount: Unmasked`)",
        };
        return missing(why, fix);
    }
    mounts(errno, around)
}

/// Why mounts cannot be made by descriptor.
pub(super) fn mounts(errno: Errno, around: &Surroundings) -> Feature {
    const CALLS: &str = "open_tree, move_mount, mount_setattr, fsopen, fsconfig and fsmount";
    match errno {
        Errno::NOSYS if around.filter == Filter::None => {
            missing("this kernel mounts by path only", "use Linux 5.12 or later")
        }
        _ => filtered("mounts", CALLS, errno, around),
    }
}

/// What Landlock's own probe found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LandlockTrouble {
    /// It did not even tell its version.
    Version(Errno),
    /// It told its version, and rules could not be put in force or did not hold.
    Rules(Errno),
}

/// Why Landlock does not hold anything.
pub(super) fn landlock(trouble: LandlockTrouble, around: &Surroundings) -> Feature {
    const CALLS: &str = "landlock_create_ruleset, landlock_add_rule and landlock_restrict_self";
    if let Some(wsl) = wsl_one(around) {
        return wsl;
    }
    match trouble {
        LandlockTrouble::Version(Errno::OPNOTSUPP) => {
            let modules = around.modules.as_deref();
            let list =
                modules.map_or_else(|| "landlock".to_owned(), |rest| format!("landlock,{rest}"));
            missing(
                "this kernel was started without Landlock (it is not in /sys/kernel/security/lsm)",
                format!("add `lsm={list}` to the kernel's command line and restart"),
            )
        }
        LandlockTrouble::Version(Errno::NOSYS) if around.filter == Filter::None => missing(
            "this kernel was built without Landlock, or is older than 5.13",
            "use Linux 6.2 or later with CONFIG_SECURITY_LANDLOCK",
        ),
        LandlockTrouble::Rules(Errno::TOOBIG) => missing(
            "sixteen layers of Landlock are in force already, and the kernel allows no more",
            "start ringfence outside the sandboxes around it",
        ),
        LandlockTrouble::Rules(Errno::NOTRECOVERABLE) => missing(
            "rules were accepted and did not hold: a file could be opened against them",
            "use another kernel: nothing here can rely on Landlock",
        ),
        LandlockTrouble::Version(errno) | LandlockTrouble::Rules(errno) => {
            filtered("Landlock", CALLS, errno, around)
        }
    }
}

/// Why no seccomp filter can be loaded.
pub(super) fn seccomp(errno: Errno, around: &Surroundings) -> Feature {
    if let Some(wsl) = wsl_one(around) {
        return wsl;
    }
    match errno {
        Errno::NOTRECOVERABLE => missing(
            "a filter was accepted and did not answer",
            "use another kernel: nothing here can rely on seccomp",
        ),
        Errno::NOSYS | Errno::INVAL if around.filter == Filter::None => missing(
            "this kernel was built without seccomp filters",
            "use a kernel with CONFIG_SECCOMP_FILTER",
        ),
        _ => filtered("seccomp filters", "seccomp and prctl", errno, around),
    }
}

/// Why no filter with a listener can be loaded.
pub(super) fn listener(errno: Errno, around: &Surroundings) -> Feature {
    match errno {
        Errno::BUSY => missing(
            "a filter around this process has a listener already, and the kernel allows one",
            "start ringfence outside the sandbox that listens",
        ),
        Errno::OVERFLOW => missing(
            "this kernel's notifications are laid out in a way ringfence does not know",
            "use a newer ringfence",
        ),
        _ => filtered("seccomp listeners", "seccomp", errno, around),
    }
}

/// Why a limit on processes does not bind.
pub(super) fn process_limit(user: u32) -> Feature {
    missing(
        format!("the kernel does not hold user {user} to a number of processes"),
        "start ringfence as a plain user",
    )
}

/// Nobody should give everybody a device that nothing here uses.
const NOT_NEEDED: &str = "nothing: ringfence makes no tunnels";

/// Why tunnels cannot be made.
pub(super) fn tun(errno: Errno, around: &Surroundings) -> Feature {
    match errno {
        _ if around.in_session() => missing("a session has no tunnels", OUTSIDE_SESSION),
        Errno::NOENT | Errno::NODEV | Errno::NXIO => {
            missing("there is no /dev/net/tun", NOT_NEEDED)
        }
        _ => missing(
            format!("/dev/net/tun cannot be opened ({})", answer(errno)),
            NOT_NEEDED,
        ),
    }
}

/// What could not be done with a cgroup.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CgroupTrouble {
    /// There is no version 2 tree in sight.
    NoTree,
    /// Our own group could not be found or opened.
    Own(Errno),
    /// No group could be made below ours.
    Create(Errno),
    /// No process could be born in it.
    Birth(Errno),
    /// What was in it could not be ended.
    Kill(Errno),
}

/// Why no session can have a cgroup.
pub(super) fn cgroup(trouble: CgroupTrouble, around: &Surroundings) -> Feature {
    let in_container = around.container.is_some();
    match trouble {
        _ if around.in_session() => missing("a session makes no cgroups", OUTSIDE_SESSION),
        CgroupTrouble::NoTree => missing(
            "no version 2 cgroup tree is mounted",
            "add `systemd.unified_cgroup_hierarchy=1` to the kernel's command line and restart",
        ),
        CgroupTrouble::Own(errno) => missing(
            format!(
                "the cgroup of this process cannot be opened ({})",
                answer(errno)
            ),
            DELEGATE,
        ),
        CgroupTrouble::Create(Errno::ROFS) => missing(
            "the cgroup tree is read-only here",
            if in_container {
                "start the container with a writable cgroup"
            } else {
                DELEGATE
            },
        ),
        CgroupTrouble::Create(errno @ (Errno::ACCESS | Errno::PERM))
        | CgroupTrouble::Birth(errno @ (Errno::ACCESS | Errno::PERM)) => missing(
            format!(
                "the cgroup of this process is not delegated to user {} ({})",
                around.user,
                answer(errno)
            ),
            DELEGATE,
        ),
        CgroupTrouble::Create(errno) => missing(
            format!("no cgroup can be made ({})", answer(errno)),
            DELEGATE,
        ),
        CgroupTrouble::Birth(errno) => missing(
            format!(
                "no process can be born in a cgroup of its own ({})",
                answer(errno)
            ),
            "use Linux 5.14 or later, outside filters that refuse clone3",
        ),
        CgroupTrouble::Kill(errno) => missing(
            format!(
                "what runs in a cgroup cannot be ended at once ({})",
                answer(errno)
            ),
            "use Linux 5.14 or later",
        ),
    }
}

/// The first Windows Subsystem for Linux has no Linux kernel, whatever each call answers.
fn wsl_one(around: &Surroundings) -> Option<Feature> {
    (around.wsl == Some(Wsl::One)).then(|| {
        missing(
            "WSL 1 has no Linux kernel to enforce anything",
            "in Windows: wsl --set-version YOUR-DISTRIBUTION 2",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: u32 = 1000;

    fn plain() -> Surroundings {
        Surroundings {
            user: PLAIN,
            unprivileged: Some(1),
            most_namespaces: Some(63_571),
            apparmor: Some(0),
            program: Some("/usr/bin/ringfence".into()),
            ..Surroundings::default()
        }
    }

    fn filtered_in(manager: &str) -> Surroundings {
        Surroundings {
            filter: Filter::Outer,
            container: Some((manager.to_owned(), "/mark")),
            ..plain()
        }
    }

    fn why_and_fix(feature: &Feature) -> (&str, &str) {
        match feature {
            Feature::Works => panic!("it works"),
            Feature::Missing { why, fix } => (why, fix),
        }
    }

    #[test]
    fn each_switch_is_named_with_the_command_that_turns_it() {
        let none_allowed = Surroundings {
            most_namespaces: Some(0),
            ..plain()
        };
        let root_only = Surroundings {
            unprivileged: Some(0),
            ..plain()
        };
        for (errno, around, why, fix) in [
            (
                Errno::NOSPC,
                none_allowed,
                "user.max_user_namespaces is 0",
                "sudo sysctl -w user.max_user_namespaces=15000",
            ),
            (
                Errno::PERM,
                root_only,
                "only root may make user namespaces (kernel.unprivileged_userns_clone is 0)",
                "sudo sysctl -w kernel.unprivileged_userns_clone=1",
            ),
        ] {
            let cause = user_namespace(errno, &around);
            assert_eq!(why_and_fix(&cause), (why, fix));
        }
    }

    #[test]
    fn what_may_be_over_in_a_moment_is_no_host_without_namespaces() {
        for errno in [Errno::PERM, Errno::NOSPC, Errno::INVAL, Errno::NOSYS] {
            assert!(makes_none(errno), "{errno}");
        }
        for errno in [
            Errno::AGAIN,
            Errno::NOMEM,
            Errno::MFILE,
            Errno::NOTRECOVERABLE,
        ] {
            assert!(!makes_none(errno), "{errno}");
        }
        let cause = user_namespace(Errno::AGAIN, &filtered_in("docker"));
        assert!(why_and_fix(&cause).0.contains("no process can be made"));
    }

    #[test]
    fn apparmor_gets_a_profile_for_ringfence_alone() {
        let restricted = Surroundings {
            apparmor: Some(1),
            ..plain()
        };
        // The namespace is made, and writing its maps is what fails.
        for errno in [Errno::PERM, Errno::ACCESS] {
            let cause = user_namespace(errno, &restricted);
            let (why, fix) = why_and_fix(&cause);
            assert!(why.contains("kernel.apparmor_restrict_unprivileged_userns"));
            assert!(fix.contains("profile ringfence /usr/bin/ringfence flags=(unconfined)"));
            assert!(fix.contains("sudo tee /etc/apparmor.d/ringfence"));
        }
        let odd = Surroundings {
            program: Some("/home/a 'b'/ringfence".into()),
            ..restricted
        };
        let cause = user_namespace(Errno::PERM, &odd);
        let fix = why_and_fix(&cause).1;
        assert_eq!(
            fix,
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        );
    }

    #[test]
    fn switches_do_not_explain_what_root_is_refused() {
        let root = Surroundings {
            user: 0,
            unprivileged: Some(0),
            apparmor: Some(1),
            filter: Filter::Outer,
            ..plain()
        };
        let cause = user_namespace(Errno::PERM, &root);
        assert!(
            why_and_fix(&cause)
                .0
                .starts_with("a seccomp filter around this process")
        );
    }

    #[test]
    fn containers_are_told_how_to_be_started() {
        for (manager, fix) in [
            ("docker", "`docker run --security-opt seccomp=unconfined`"),
            ("podman", "`podman run --security-opt seccomp=unconfined`"),
            (
                "systemd-nspawn",
                "--system-call-filter='clone clone3 unshare'",
            ),
            ("lxc", "let lxc start the container"),
        ] {
            let cause = user_namespace(Errno::PERM, &filtered_in(manager));
            let (why, told) = why_and_fix(&cause);
            assert_eq!(
                why,
                "a seccomp filter around this process refuses user namespaces (operation not permitted)"
            );
            assert!(told.contains(fix), "{told}");
        }
    }

    #[test]
    fn refusal_without_a_known_cause_claims_none() {
        let around = Surroundings {
            modules: Some("capability,selinux".to_owned()),
            ..plain()
        };
        let cause = user_namespace(Errno::ACCESS, &around);
        let why = why_and_fix(&cause).0;
        assert_eq!(
            why,
            "the kernel refuses user namespaces (permission denied; security modules: capability,selinux)"
        );
    }

    #[test]
    fn limits_around_us_are_told_from_our_own() {
        let nested = Surroundings {
            user_namespace: true,
            ..plain()
        };
        let cause = user_namespace(Errno::NOSPC, &nested);
        assert!(
            why_and_fix(&cause)
                .0
                .starts_with("a user namespace around this process")
        );
        let cause = user_namespace(Errno::NOSPC, &plain());
        assert!(why_and_fix(&cause).0.ends_with("allows (63571)"));
    }

    #[test]
    fn chroot_and_the_first_wsl_are_named() {
        let chroot = Surroundings {
            chroot: true,
            ..plain()
        };
        let cause = user_namespace(Errno::PERM, &chroot);
        assert!(why_and_fix(&cause).0.contains("chroot"));
        let wsl = Surroundings {
            wsl: Some(Wsl::One),
            ..plain()
        };
        for cause in [
            user_namespace(Errno::INVAL, &wsl),
            landlock(LandlockTrouble::Version(Errno::NOSYS), &wsl),
            seccomp(Errno::NOSYS, &wsl),
        ] {
            assert!(why_and_fix(&cause).1.contains("wsl --set-version"));
        }
    }

    #[test]
    fn covered_proc_names_what_covers_it() {
        let around = Surroundings {
            covered_proc: vec!["/proc/acpi".to_owned()],
            container: Some(("podman".to_owned(), "/run/.containerenv")),
            ..plain()
        };
        let cause = proc_mount(Errno::PERM, &around);
        let (why, fix) = why_and_fix(&cause);
        assert!(why.contains("/proc/acpi"));
        assert!(fix.contains("podman run --security-opt unmask=ALL"));
        let cause = proc_mount(Errno::NOSYS, &plain());
        assert_eq!(why_and_fix(&cause).0, "this kernel mounts by path only");
    }

    #[test]
    fn landlock_tells_a_kernel_without_it_from_one_that_was_not_asked_to() {
        let booted_without = Surroundings {
            modules: Some("capability,yama".to_owned()),
            ..plain()
        };
        let cause = landlock(LandlockTrouble::Version(Errno::OPNOTSUPP), &booted_without);
        assert_eq!(
            why_and_fix(&cause).1,
            "add `lsm=landlock,capability,yama` to the kernel's command line and restart"
        );
        let cause = landlock(LandlockTrouble::Version(Errno::NOSYS), &plain());
        assert!(why_and_fix(&cause).0.contains("built without Landlock"));
        let cause = landlock(
            LandlockTrouble::Version(Errno::NOSYS),
            &filtered_in("docker"),
        );
        assert!(
            why_and_fix(&cause)
                .0
                .starts_with("a seccomp filter around this process refuses Landlock")
        );
        let cause = landlock(LandlockTrouble::Rules(Errno::TOOBIG), &plain());
        assert!(why_and_fix(&cause).0.starts_with("sixteen layers"));
    }

    #[test]
    fn cgroup_that_is_not_ours_is_told_from_one_that_is_not_there() {
        for (trouble, why) in [
            (CgroupTrouble::NoTree, "no version 2 cgroup tree"),
            (
                CgroupTrouble::Create(Errno::ACCESS),
                "not delegated to user 1000",
            ),
            (CgroupTrouble::Create(Errno::ROFS), "read-only"),
            (CgroupTrouble::Birth(Errno::NOSYS), "no process can be born"),
            (CgroupTrouble::Kill(Errno::NOENT), "cannot be ended at once"),
        ] {
            let cause = cgroup(trouble, &plain());
            assert!(why_and_fix(&cause).0.contains(why), "{trouble:?}");
        }
    }
}
