//! 26, 128: temporary directories are the session's own, and have a bound.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ringfence_core::plan::Step;
use ringfence_testkit::{CANARY, binaries, case, denied, for_each_user, op};

#[test]
fn the_hosts_temporary_files_are_not_there() {
    for_each_user(binaries!(), |world| {
        for directory in ["/tmp", "/var/tmp", "/dev/shm"] {
            let planted = tempfile::Builder::new()
                .prefix("ringfence-canary-")
                .tempdir_in(directory)
                .unwrap();
            fs::set_permissions(planted.path(), fs::Permissions::from_mode(0o777)).unwrap();
            let canary = planted.path().join("canary");
            fs::write(&canary, CANARY).unwrap();
            let new = planted.path().join("new");
            let cases = [
                denied(op!["read", &canary], "ENOENT"),
                denied(op!["create", &new], "ENOENT"),
            ];
            world.control(&cases);
            fs::remove_file(&new).unwrap();
            let before = ringfence_testkit::Snapshot::of([planted.path()]);
            world.check_confined(&world.setup(), &cases);
            before.assert_same([planted.path()]);
            let listed = world.inside(&world.setup(), ["list", directory]);
            assert_eq!(listed.line(), "ok:");
            // The mount is what hides them.
            let shown = world.inside(&world.setup().without(Step::Root), op!["read", &canary]);
            assert_eq!(shown.line(), "ok");
        }
    });
}

#[test]
fn what_is_left_in_it_is_gone() {
    for_each_user(binaries!(), |world| {
        let name = format!("/tmp/{}", world.around().file_name().unwrap().display());
        let made = [case(op!["create", &name], "", "ok")];
        world.check_confined(&world.setup(), &made);
        assert!(!fs::exists(&name).unwrap(), "it reached the host");
        // The next session starts empty, so the name is free again.
        world.check_confined(&world.setup(), &made);
    });
}

#[test]
fn it_is_bounded() {
    for_each_user(binaries!(), |world| {
        let setup = world.setup_with(r#""limits": {"tmp_size": "8MiB", "file_size": "32MiB"}"#);
        let cases = [
            case(op!["fill", "/tmp/small", "4"], "", "ok"),
            case(op!["fill", "/tmp/large", "16"], "", "ENOSPC"),
            case(op!["fill", "/dev/shm/large", "16"], "", "ENOSPC"),
            // As many files as pages, and some that every session may have.
            case(op!["inodes", "/tmp/some", "3000"], "", "ok"),
            case(op!["inodes", "/tmp/many", "10000"], "", "ENOSPC"),
        ];
        world.check_confined(&setup, &cases);
        // A file in the project has a bound of its own; beyond it a signal ends the writer.
        let large = world.project("large");
        let done = world.inside(&setup, op!["fill", &large, "64"]);
        assert_eq!(done.status, 128 + libc::SIGXFSZ);
        assert_eq!(fs::metadata(&large).unwrap().len(), 32 << 20);
    });
}
