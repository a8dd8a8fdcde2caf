//! 50, 52, 53: switches of the kernel's that are files.

use std::fs;

use ringfence_testkit::{binaries, case, for_each_user, op};

#[test]
fn no_switch_of_the_kernel_can_be_written() {
    for_each_user(binaries!(), |world| {
        let switches = [
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/modprobe",
            "/proc/sys/kernel/hostname",
            "/proc/sys/vm/overcommit_memory",
            "/proc/sys/net/ipv4/ip_forward",
            "/proc/sys/user/max_user_namespaces",
            "/proc/sysrq-trigger",
            "/proc/self/oom_score_adj",
            "/proc/self/uid_map",
            "/proc/self/setgroups",
            "/proc/1/oom_score_adj",
        ];
        // Not every kernel has all of them.
        let there = |path: &&&str| fs::exists(path).unwrap();
        let switches: Vec<&str> = switches.iter().filter(there).copied().collect();
        assert!(switches.len() > 6);
        let before: Vec<_> = switches.iter().map(|path| fs::read(path).ok()).collect();
        // Even who may not open one for lack of rights hears of the mount or of those rights.
        for path in &switches {
            let done = world.inside(&world.setup(), op!["write", path]);
            let answer = done.line();
            assert!(
                ["EROFS", "EACCES", "EPERM"].contains(&answer),
                "{path}: {answer}"
            );
        }
        let after: Vec<_> = switches.iter().map(|path| fs::read(path).ok()).collect();
        assert_eq!(before, after);
        // As root the file modes allow it, so that only the mount can be what refuses.
        if world.ids().0 == 0 {
            let pattern = op!["write", "/proc/sys/kernel/core_pattern"];
            world.check_confined(&world.setup(), &[case(pattern, "", "EROFS")]);
        }
    });
}

#[test]
fn no_cgroup_can_be_changed() {
    for_each_user(binaries!(), |world| {
        let mut cases = vec![];
        for root in [
            "/sys/fs/cgroup",
            "/sys/fs/cgroup/unified",
            "/sys/fs/cgroup/memory",
        ] {
            for (operation, name) in [
                ("mkdir", "new"),
                ("write", "cgroup.procs"),
                ("overwrite", "release_agent"),
            ] {
                cases.push((operation, format!("{root}/{name}")));
            }
        }
        for (operation, path) in cases {
            let done = world.inside(&world.setup(), op![operation, &path]);
            let answer = done.line();
            let refused = ["EROFS", "EACCES", "EPERM", "ENOENT"].contains(&answer);
            assert!(refused, "{operation} {path}: {answer}");
            if world.ids().0 == 0 {
                assert!(["EROFS", "ENOENT"].contains(&answer), "{path}: {answer}");
            }
        }
        let own = world.inside(&world.setup(), ["cat", "/proc/self/cgroup"]);
        for line in own.line().strip_prefix("ok:").unwrap().split("\\n") {
            let relative = line.is_empty() || line.ends_with(":/");
            assert!(relative, "the host's names are shown: {line}");
        }
    });
}

#[test]
fn no_file_of_the_kernels_other_trees_can_be_written() {
    for_each_user(binaries!(), |world| {
        for path in [
            "/sys/kernel/uevent_helper",
            "/sys/kernel/mm/ksm/run",
            "/sys/power/state",
            "/sys/kernel/debug/new",
            "/sys/kernel/tracing/trace",
            "/sys/fs/bpf/new",
            "/sys/kernel/security/new",
            "/proc/sys/fs/binfmt_misc/register",
        ] {
            let done = world.inside(&world.setup(), op!["overwrite", path]);
            let answer = done.line();
            let refused = ["EROFS", "EACCES", "EPERM", "ENOENT"].contains(&answer);
            assert!(refused, "{path}: {answer}");
        }
    });
}
