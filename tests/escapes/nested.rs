//! R8: a sandbox in a sandbox, and worlds with names that no parser likes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ringfence_testkit::{Setup, Who, World, binaries, denied, for_each_user, is_root, op};

/// A second sandbox needs what the first takes away; it says so, and runs nothing.
#[test]
fn a_sandbox_inside_refuses_to_start() {
    for_each_user(binaries!(), |world| {
        let marker = world.project("marker");
        let mut command = op![world.path("bin/confine"), world.setup().to_argument()];
        command.extend(op!["touch", &marker]);
        let done = world.run(&world.setup(), &command);
        done.assert_status(125);
        let why = ["namespaces", "another seccomp filter"];
        let told = why.iter().any(|why| done.stderr.contains(why));
        assert!(told, "{}", done.stderr);
        assert!(!marker.try_exists().unwrap());
    });
}

#[test]
fn odd_names_change_nothing() {
    let names: [&[u8]; 6] = [
        b"with space",
        b"with \"quotes\" and 'more'",
        b"a\")(allow default)(\"",
        b"--bind",
        b"line\nbreak",
        b"not\xfftext",
    ];
    for name in names {
        for who in [Who::Caller, Who::Plain] {
            if who == Who::Plain && !is_root() {
                continue;
            }
            let world = World::new(binaries!(), who, OsStr::from_bytes(name));
            // A settings file is text, so a world without a text for a name is shown by its
            // surroundings.
            let around = world.around().to_str().unwrap().to_owned();
            let settings = format!(
                r#"{{"terminal": {{"sandbox": {{"additional_executable_paths": ["{around}"]}}}}}}"#
            );
            let setup = Setup::new(&world.project(""), &world.home("")).settings(settings);
            let cases = [
                denied(op!["write", world.outside("canary")], "EROFS"),
                denied(op!["read", world.home(".ssh/id_canary")], "ENOENT"),
                denied(op!["read", world.home(".netrc")], "EACCES"),
                ringfence_testkit::case(op!["overwrite", world.project("new")], "ok", "ok"),
            ];
            world.check(&setup, &cases);
        }
    }
}
