//! 27, 28, 114: devices, made or found.

use ringfence_core::plan::Step;
use ringfence_testkit::{Who, binaries, case, denied, for_each_user, is_root, op};

#[test]
fn only_the_devices_every_program_expects_are_there() {
    for_each_user(binaries!(), |world| {
        let expected = "ok:fd full null ptmx pts random shm stderr stdin stdout tty urandom zero";
        let listed = world.inside(&world.setup(), ["list", "/dev"]);
        assert_eq!(listed.line(), expected);
        let absent = [
            "kmsg",
            "mem",
            "kvm",
            "fuse",
            "net/tun",
            "vhost-vsock",
            "input",
            "dri",
            "snapshot",
            "loop-control",
            "mapper",
            "hpet",
            "port",
            "sda",
            "vda",
            "ttyS0",
            "console",
            "uinput",
        ];
        let cases: Vec<_> = absent
            .iter()
            .map(|name| case(op!["stat", format!("/dev/{name}")], "", "ENOENT"))
            .collect();
        world.check_confined(&world.setup(), &cases);
        let usable = [
            case(op!["write", "/dev/null"], "ok", "ok"),
            case(op!["write", "/dev/full"], "ENOSPC", "ENOSPC"),
            case(op!["create", "/dev/shm/file"], "ok", "ok"),
            denied(op!["chmod", "/dev/null", "0o666"], "EROFS"),
        ];
        world.check_confined(&world.setup(), &usable);
    });
}

#[test]
fn terminals_of_others_are_not_there() {
    for_each_user(binaries!(), |world| {
        // A terminal of the host's, open as long as this test needs it.
        let outer = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
        rustix::pty::grantpt(&outer).unwrap();
        rustix::pty::unlockpt(&outer).unwrap();
        let path = rustix::pty::ptsname(&outer, Vec::new()).unwrap();
        let path = path.to_str().unwrap().to_owned();
        if world.who() == Who::Plain {
            let owner = Some(ringfence_testkit::PLAIN);
            std::os::unix::fs::chown(&path, owner, None).unwrap();
        }
        let cases = [denied(op!["write", &path], "ENOENT")];
        world.check(&world.setup(), &cases);
        let listed = world.inside(&world.setup(), ["list", "/dev/pts"]);
        assert_eq!(listed.line(), "ok:ptmx");
    });
}

#[test]
fn no_device_is_made_and_none_that_was_planted_opens() {
    for_each_user(binaries!(), |world| {
        let made = world.project("device");
        let free = if world.ids().0 == 0 { "ok" } else { "EPERM" };
        world.control(&[case(op!["device", &made], free, "")]);
        let _ = std::fs::remove_file(&made);
        // Landlock gives nobody the right; without it there is no capability for it either.
        let refused = |errno| [case(op!["device", &made], free, errno)];
        world.check_confined(&world.setup(), &refused("EACCES"));
        world.check_confined(&world.setup().without(Step::Landlock), &refused("EPERM"));
        // Only root can plant one.
        if is_root() {
            let planted = world.project("planted");
            let node = world.path("bin/probe");
            let done = std::process::Command::new(node)
                .args(op!["device", &planted])
                .status();
            assert!(done.unwrap().success());
            world.own();
            let cases = [denied(op!["write", &planted], "EACCES")];
            world.check(&world.setup(), &cases);
            // Mounts and Landlock both look at devices.
            world.check_confined(&world.setup().without(Step::Landlock), &cases);
        }
    });
}
