//! 2: a kernel that lacks something is a refusal, never a downgrade.

use ringfence_testkit::{Setup, binaries, for_each_user};

/// Every call that set-up makes and an older kernel, a container or a policy may refuse. A kernel
/// that makes no Landlock rulesets is a gap, which the last test here is about.
const CALLS: &[(&str, libc::c_long)] = &[
    ("capset", libc::SYS_capset),
    ("clone3 and clone", libc::SYS_clone3),
    ("close_range", libc::SYS_close_range),
    ("fsconfig", libc::SYS_fsconfig),
    ("fsmount", libc::SYS_fsmount),
    ("fsopen", libc::SYS_fsopen),
    ("keyctl", libc::SYS_keyctl),
    ("landlock_add_rule", libc::SYS_landlock_add_rule),
    ("landlock_restrict_self", libc::SYS_landlock_restrict_self),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("move_mount", libc::SYS_move_mount),
    ("open_tree", libc::SYS_open_tree),
    ("openat2", libc::SYS_openat2),
    ("pivot_root", libc::SYS_pivot_root),
    ("prctl", libc::SYS_prctl),
    ("seccomp", libc::SYS_seccomp),
];

#[test]
fn every_refused_call_refuses_the_launch() {
    for_each_user(binaries!(), |world| {
        let marker = world.project("marker");
        let run = |setup: &Setup| world.run(setup, ["touch".as_ref(), marker.as_os_str()]);
        // Under a filter of somebody else's a name can be made and is put aside in the end, which is
        // said, and is no reason here.
        let refusing = |calls: &[(u32, u16)]| {
            let mut setup = world.setup_with(r#""on_gap": "report""#);
            setup.refused_calls = calls.to_vec();
            setup
        };
        // The marker tells: without one of these refusals it is there.
        let number = |call: libc::c_long| u32::try_from(call).unwrap();
        let harmless = (number(libc::SYS_sync), u16::try_from(libc::EPERM).unwrap());
        run(&refusing(&[harmless])).assert_status(0);
        std::fs::remove_file(&marker).unwrap();
        for (name, call) in CALLS {
            for errno in [libc::EPERM, libc::ENOSYS] {
                let errno = u16::try_from(errno).unwrap();
                let mut calls = vec![(number(*call), errno)];
                if *name == "clone3 and clone" {
                    calls.push((number(libc::SYS_clone), errno));
                }
                let done = run(&refusing(&calls));
                assert_eq!(done.status, 125, "{name}: {}", done.stderr);
                assert!(
                    done.stderr.starts_with("confine: "),
                    "{name}: {}",
                    done.stderr
                );
                let ran = std::fs::symlink_metadata(&marker).is_ok();
                assert!(!ran, "{name}: the command ran");
            }
        }
    });
}

#[test]
fn a_kernel_without_landlock_is_named() {
    for_each_user(binaries!(), |world| {
        let mut setup = world.setup();
        let number = u32::try_from(libc::SYS_landlock_create_ruleset).unwrap();
        let errno = u16::try_from(libc::EOPNOTSUPP).unwrap();
        setup.refused_calls = vec![(number, errno)];
        let done = world.run(&setup, ["true"]);
        done.assert_status(125);
        assert!(done.stderr.contains("Landlock"), "{}", done.stderr);
    });
}

/// Where there are no namespaces, nothing that is refused is about them.
#[test]
fn the_step_that_was_refused_is_the_one_that_is_named() {
    for_each_user(binaries!(), |world| {
        let mut setup = world.setup_with(r#""on_gap": "report""#);
        setup.landlock_engine = true;
        world.run(&setup, ["true"]).assert_status(0);
        let errno = u16::try_from(libc::EPERM).unwrap();
        setup.refused_calls = vec![(u32::try_from(libc::SYS_prctl).unwrap(), errno)];
        let done = world.run(&setup, ["true"]);
        done.assert_status(125);
        let expected = "could not start the first process";
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    });
}
