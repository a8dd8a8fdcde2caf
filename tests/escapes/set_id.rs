//! 29, 158: programs that run with the rights of others, left behind or started.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, denied, for_each_user, is_root, op};

#[test]
fn no_set_id_program_is_left_behind() {
    for_each_user(binaries!(), |world| {
        let file = world.project("src/file");
        let cases = [
            denied(op!["chmod", &file, "0o4755"], "EPERM"),
            denied(op!["chmod", &file, "0o2755"], "EPERM"),
            denied(op!["chmod", &file, "0o6777"], "EPERM"),
        ];
        world.control(&cases);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        world.check_confined(&world.setup(), &cases);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o644);
        // The filter is what holds.
        let open = world.inside(
            &world.setup().without(Step::Seccomp),
            op!["chmod", &file, "0o4755"],
        );
        assert_eq!(open.line(), "ok");
    });
}

#[test]
fn a_set_id_program_gives_nothing() {
    if !is_root() {
        ringfence_testkit::not_run("root, to make a program that belongs to it");
        return;
    }
    for_each_user(binaries!(), |world| {
        // A program of root's that whoever runs becomes root by.
        let program = world.path("become-root");
        ringfence_testkit::copy_program(world.path("bin/probe"), &program);
        std::os::unix::fs::chown(&program, Some(0), Some(0)).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
        let (uid, _) = world.ids();
        let run = op!["run", &program, "ids"];
        assert_eq!(world.probe(&run).line(), format!("ok:ok:{uid} 0 [0]"));
        let expected = format!("ok:ok:{uid} {uid} [0]");
        assert_eq!(world.inside(&world.setup(), &run).line(), expected);
        // Mounts without set-id bits and the promise never to gain rights both hold it.
        let mounts = world.setup().without(Step::Landlock);
        assert_eq!(world.inside(&mounts, &run).line(), expected);
        let promise = world.setup().without(Step::Root);
        assert_eq!(world.inside(&promise, &run).line(), expected);
    });
}
