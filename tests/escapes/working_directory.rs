//! 3: where a command starts is not what it may write.

use ringfence_testkit::{Done, binaries, denied, for_each_user, op};

#[test]
fn a_directory_outside_gives_no_right_to_write() {
    for_each_user(binaries!(), |world| {
        let link = world.project("link");
        std::os::unix::fs::symlink(world.outside(""), &link).unwrap();
        world.own();
        let places = [
            world.outside(""),
            world.home(""),
            world.path(""),
            "/".into(),
            link,
        ];
        for place in places {
            let probe = world.path("bin/probe");
            let mut free = world.command(&probe);
            free.current_dir(&place);
            let setup = world.setup().directory(&place);
            let relative = op!["create", "new"];
            let done = Done::of(free.args(&relative));
            // A plain user may not write everywhere anyway.
            let writable = done.line() == "ok";
            assert!(writable || place == std::path::Path::new("/"), "{place:?}");
            if writable {
                std::fs::remove_file(place.join("new")).unwrap();
            }
            world.restore();
            let absolute = world.outside("canary");
            world.check_confined(
                &setup,
                &[
                    denied(relative, "EROFS"),
                    denied(op!["write", absolute], "EROFS"),
                ],
            );
        }
    });
}

#[test]
fn a_hidden_directory_is_refused() {
    for_each_user(binaries!(), |world| {
        let setup = world.setup().directory(&world.home(".ssh"));
        let done = world.run(&setup, ["true"]);
        done.assert_status(125);
        assert!(done.stderr.contains("working directory"), "{}", done.stderr);
        // A link to it shows nothing: what is hidden is hidden by every name.
        let link = world.project("link");
        std::os::unix::fs::symlink(world.home(".ssh"), &link).unwrap();
        let setup = world.setup().directory(&link);
        assert_eq!(world.inside(&setup, ["list", "."]).line(), "ok:");
    });
}
