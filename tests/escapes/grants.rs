//! 8, 9: a grant is exactly the path that it names.

use std::fs;

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, case, denied, for_each_user, op};

#[test]
fn a_name_that_only_begins_alike_is_not_granted() {
    for_each_user(binaries!(), |world| {
        for name in ["project-evil", "projec", "project.d"] {
            fs::create_dir(world.path(name)).unwrap();
            fs::write(world.path(name).join("canary"), "x").unwrap();
        }
        world.own();
        let around = world.project("../project-evil/canary");
        let refused = |errno: &str| {
            [
                denied(op!["write", world.path("project-evil/canary")], errno),
                denied(op!["write", &around], errno),
                denied(op!["create", world.path("projec/new")], errno),
                denied(op!["create", world.path("project.d/new")], errno),
            ]
        };
        world.control(&refused("EROFS"));
        for name in ["projec", "project.d"] {
            fs::remove_file(world.path(name).join("new")).unwrap();
        }
        world.check_confined(&world.setup(), &refused("EROFS"));
        let landlock = world.setup().without(Step::Root);
        world.check_confined(&landlock, &refused("EACCES"));
    });
}

#[test]
fn a_path_that_is_not_there_is_refused_and_not_widened() {
    for_each_user(binaries!(), |world| {
        let absent = world.path("other/a/b");
        let setup = world.setup().settings(world.settings("", &[&absent]));
        let marker = world.project("marker");
        let command = ["touch".as_ref(), marker.as_os_str()];
        let done = world.run(&setup, command);
        done.assert_status(125);
        assert!(done.stderr.contains("does not exist"), "{}", done.stderr);
        assert!(!marker.try_exists().unwrap());
        assert!(!absent.try_exists().unwrap(), "it was created");
        // There, it is granted, and nothing around it.
        fs::create_dir_all(&absent).unwrap();
        world.own();
        let cases = [
            case(op!["create", absent.join("new")], "ok", "ok"),
            denied(op!["create", world.path("other/a/new")], "EROFS"),
        ];
        let done = world.inside(&setup, op!["create", absent.join("new")]);
        assert_eq!(done.line(), "ok");
        world.check_confined(&setup, &cases[1..]);
    });
}
