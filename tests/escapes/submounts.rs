//! 47, 160: mounts below mounts. Flags reach them all, and no side sees what the other mounts.

use std::fs;
use std::process::Command;

use ringfence_testkit::{Done, Hands, Who, World, binaries, for_each_user, is_root, not_run};

/// What a test of mounts runs inside a mount namespace of its own, so that nothing of the machine
/// is mounted over: a small file system below what is outside, and one below the project.
pub(super) fn in_own_mounts(world: &World, script: &str) -> Done {
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-ec", script]);
    if world.who() == Who::Plain {
        let plain = ringfence_testkit::PLAIN.to_string();
        command.env(
            "AS",
            format!("setpriv --reuid {plain} --regid {plain} --clear-groups"),
        );
    }
    command.current_dir(world.project(""));
    Done::of(&mut command)
}

#[test]
fn flags_reach_every_mount_below() {
    if !is_root() {
        not_run("root, to mount something below the world");
        return;
    }
    for_each_user(binaries!(), |world| {
        fs::create_dir(world.outside("mounted")).unwrap();
        fs::create_dir(world.project("mounted")).unwrap();
        world.own();
        let probe = world.path("bin/probe");
        let setup = world.setup();
        let script = format!(
            "mount -t tmpfs -o mode=0777 none '{outside}'
             mount -t tmpfs -o mode=0777 none '{project}'
             cp '{probe}' '{project}/set-id'
             chmod 6755 '{project}/set-id'
             mknod -m 0666 '{project}/zero' c 1 5
             $AS '{probe}' create '{outside}/free'
             $AS '{confine}' '{setup}' '{probe}' create '{outside}/new' , create '{project}/new' \
                 , read '{project}/zero' , run '{project}/set-id' ids , ids \
                 , mounts nosuid , mounts ro",
            outside = world.outside("mounted").display(),
            project = world.project("mounted").display(),
            probe = probe.display(),
            confine = world.path("bin/confine").display(),
            setup = setup.to_argument().display(),
        );
        let done = in_own_mounts(world, &script);
        done.assert_status(0);
        let (uid, _) = world.ids();
        let [free, outside, project, device, set_id, ids, suid, writable] = &done.lines[..] else {
            panic!("{done:?}");
        };
        assert_eq!(free, "ok", "the control");
        assert_eq!(outside, "EROFS");
        assert_eq!(project, "ok");
        assert_eq!(device, "EACCES");
        assert_eq!(set_id, &format!("ok:ok:{uid} {uid} [0]"));
        assert_eq!(ids, &format!("ok:{uid} {uid}"));
        assert_eq!(suid, "ok:", "every mount ignores set-id bits");
        let writable = writable.strip_prefix("ok:").unwrap();
        for at in writable.split(' ') {
            let own = ["/dev/shm", "/dev/pts", "/tmp", "/var/tmp"].contains(&at);
            let granted = at.starts_with(world.project("").to_str().unwrap().trim_end_matches('/'));
            assert!(own || granted, "{at} can be written");
        }
    });
}

#[test]
fn no_mount_crosses_over() {
    if !is_root() {
        not_run("root, to mount something below the world");
        return;
    }
    for_each_user(binaries!(), |world| {
        let place = world.outside("late");
        fs::create_dir(&place).unwrap();
        world.own();
        // In a namespace of the test's own, shared so that mounts would travel if they could.
        let script = format!(
            "mount --make-rshared /
             $AS '{confine}' '{setup}' sh -c ': > there; until [ -e go ]; do sleep 0.05; done
                 ls \"{place}\"; grep -c late /proc/self/mountinfo' &
             until [ -e there ]; do sleep 0.05; done
             mount -t tmpfs none '{place}'; touch '{place}/canary'
             grep -c late /proc/self/mountinfo
             touch go; wait",
            confine = world.path("bin/confine").display(),
            setup = world.setup().to_argument().display(),
            place = place.display(),
        );
        let done = in_own_mounts(world, &script);
        // The control sees its mount; the session sees neither the mount nor what is in it.
        assert_eq!(done.lines, ["1", "0"], "{}", done.stderr);
    });
}

/// What was begun before the host mounted or unmounted something is not what the policy is about.
#[test]
fn a_root_that_was_begun_with_other_mounts_is_not_used() {
    if !is_root() {
        not_run("root, to mount something below the world");
        return;
    }
    for_each_user(binaries!(), |world| {
        fs::create_dir(world.outside("mounted")).unwrap();
        world.own();
        let marker = world.project("marker");
        for (before, meanwhile, status) in [
            ("true", "true", 0),
            ("true", "mount -t tmpfs none \"$1\"", 125),
            ("mount -t tmpfs none \"$1\"", "umount \"$1\"", 125),
        ] {
            let _ = fs::remove_file(&marker);
            let mut setup = world.setup().by(Hands::Ahead);
            setup.pause = 2000;
            // The first process has mounts of its own after somebody began to listen for changes.
            let script = format!(
                "set -- '{outside}'; {before}
                 $AS '{confine}' '{setup}' touch '{marker}' &
                 own() {{
                     read -r first _ < /proc/$1/task/$1/children || [ -n \"$first\" ] || return 1
                     mounts=$(readlink /proc/$first/ns/mnt) &&
                         [ \"$mounts\" != \"$(readlink /proc/$1/ns/mnt)\" ]
                 }}
                 until own $!; do sleep 0.01; done
                 {meanwhile}; wait $!",
                outside = world.outside("mounted").display(),
                confine = world.path("bin/confine").display(),
                setup = setup.to_argument().display(),
                marker = marker.display(),
            );
            let done = in_own_mounts(world, &script);
            done.assert_status(status);
            let changed = done.stderr.contains("have changed meanwhile");
            assert_eq!(changed, status == 125, "{}", done.stderr);
            assert_eq!(marker.try_exists().unwrap(), status == 0, "{meanwhile}");
        }
    });
}
