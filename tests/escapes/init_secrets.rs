//! 58: what the first process, or anybody's command line, gives away.

use ringfence_testkit::{binaries, for_each_user};

const SECRET: &str = "SECRET-93c1d7";

#[test]
fn no_variable_of_the_launcher_is_found_inside() {
    for_each_user(binaries!(), |world| {
        let probe = world.path("bin/probe");
        let search = |command: &mut std::process::Command| {
            command
                .env("TOKEN", SECRET)
                .args(["search-processes", SECRET]);
            ringfence_testkit::Done::of(command)
        };
        let free = search(&mut world.command(&probe));
        assert!(free.line().contains("self/environ"), "{}", free.line());
        let setup = world.setup();
        let inside = search(&mut world.confine(&setup, [&probe]));
        assert_eq!(inside.line(), "ok:");
    });
}

#[test]
fn no_argument_of_the_launcher_is_found_inside() {
    for_each_user(binaries!(), |world| {
        let probe = world.path("bin/probe");
        // The setup is an argument of the launcher's, as a token might be.
        let setup = world.setup_with(&format!(
            r#""env": {{"set": {{"NAME": "{SECRET}"}}}}, "git": "hidden""#
        ));
        let mut command = world.confine(&setup, [&probe]);
        let shown = ringfence_testkit::Done::of(command.args(["cat", "/proc/1/cmdline"]));
        assert!(!shown.text().contains(SECRET), "{}", shown.text());
    });
}
