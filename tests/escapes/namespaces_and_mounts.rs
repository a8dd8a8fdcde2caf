//! 46: a namespace or a mount of one's own, to undo what hides and protects.

use ringfence_core::plan::Step;
use ringfence_testkit::{Case, binaries, case, for_each_user, op};

const BAD: u64 = u64::MAX;

/// A call with bad addresses, and what the kernel says to them where no filter does.
fn call(number: libc::c_long, words: &[u64], free: &str, confined: &str) -> Case {
    let mut operation = op!["call", number.to_string()];
    operation.extend(words.iter().map(|word| word.to_string().into()));
    case(operation, free, confined)
}

fn flag(flag: libc::c_int) -> u64 {
    u64::from(flag.cast_unsigned())
}

#[test]
fn no_new_namespace() {
    for_each_user(binaries!(), |world| {
        let user = flag(libc::CLONE_NEWUSER);
        let mut cases = vec![
            call(libc::SYS_unshare, &[user], "ok", "EPERM"),
            call(
                libc::SYS_unshare,
                &[user | flag(libc::CLONE_NEWNS)],
                "ok",
                "EPERM",
            ),
            call(
                libc::SYS_clone,
                &[user | flag(libc::SIGCHLD)],
                "ok",
                "EPERM",
            ),
            // Flags in memory cannot be read by a filter.
            call(libc::SYS_clone3, &[BAD, 88], "EFAULT", "ENOSYS"),
            call(libc::SYS_setns, &[BAD, user], "EBADF", "EPERM"),
        ];
        for one in [
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWCGROUP,
        ] {
            let free = if world.ids().0 == 0 { "ok" } else { "EPERM" };
            cases.push(call(libc::SYS_unshare, &[flag(one)], free, "EPERM"));
        }
        // The upper half of the word changes nothing.
        let high = user | 0xdead_0000_0000;
        cases.push(call(
            libc::SYS_clone,
            &[high | flag(libc::SIGCHLD)],
            "ok",
            "EPERM",
        ));
        world.check(&world.setup(), &cases);
        // Threads and plain children are not namespaces.
        let plain = call(libc::SYS_unshare, &[flag(libc::CLONE_FILES)], "ok", "ok");
        world.check(&world.setup(), &[plain]);
        // The filter is what holds.
        let nested = &cases[..1];
        world.mutation(&world.setup().without(Step::Seccomp), nested);
    });
}

#[test]
fn no_mount_call_reaches_the_kernel() {
    for_each_user(binaries!(), |world| {
        let root = world.ids().0 == 0;
        // What a plain user hears anyway is no proof; the calls that look at their arguments
        // first are.
        let privileged = |errno| if root { errno } else { "EPERM" };
        let cases = [
            call(libc::SYS_mount, &[BAD, BAD, BAD, 0, 0], "EFAULT", "EPERM"),
            call(libc::SYS_umount2, &[BAD, 0], "EFAULT", "EPERM"),
            call(
                libc::SYS_pivot_root,
                &[BAD, BAD],
                privileged("EFAULT"),
                "EPERM",
            ),
            call(libc::SYS_chroot, &[BAD], "EFAULT", "EPERM"),
            call(libc::SYS_fsopen, &[BAD, 0], privileged("EFAULT"), "EPERM"),
            call(
                libc::SYS_fsconfig,
                &[BAD, BAD, BAD, BAD, BAD],
                "EINVAL",
                "EPERM",
            ),
            call(
                libc::SYS_fsmount,
                &[BAD, 0, 0],
                privileged("EBADF"),
                "EPERM",
            ),
            call(
                libc::SYS_fspick,
                &[BAD, BAD, 0],
                privileged("EFAULT"),
                "EPERM",
            ),
            call(libc::SYS_open_tree, &[BAD, BAD, 0], "EFAULT", "EPERM"),
            call(
                libc::SYS_move_mount,
                &[BAD, BAD, BAD, BAD, 0],
                privileged("EFAULT"),
                "EPERM",
            ),
            call(
                libc::SYS_mount_setattr,
                &[BAD, BAD, 0, BAD, 32],
                privileged("EFAULT"),
                "EPERM",
            ),
        ];
        world.check(&world.setup(), &cases);
    });
}

/// Even a session that could make a namespace could not undo its masks: they are locked, and
/// Landlock refuses every mount.
#[test]
fn without_the_filter_the_masks_still_hold() {
    for_each_user(binaries!(), |world| {
        let secret = world.home(".ssh");
        let script = format!(
            "unshare -Um sh -c 'umount {0} 2>/dev/null; mount --bind / /mnt 2>/dev/null; \
             ls {0}; ls /mnt{0}' 2>/dev/null; true",
            secret.display()
        );
        let control = format!("ls {}", secret.display());
        let shown = ringfence_testkit::Done::of(world.command("sh").args(["-c", &control]));
        assert_eq!(shown.text(), "id_canary");
        for without in [Step::Seccomp, Step::Capabilities] {
            let setup = world.setup().without(without);
            let done = world.run(&setup, ["sh", "-c", &script]);
            done.assert_status(0);
            assert!(
                !done.text().contains("id_canary"),
                "{without:?}: {}",
                done.text()
            );
        }
    });
}
