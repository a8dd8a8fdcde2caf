//! 40: files in the user's home that a shell, git, ssh, the desktop or the session manager obeys later.

use std::fs;

use ringfence_testkit::{binaries, denied, for_each_user, op};

const NAMES: &[&str] = &[
    ".bashrc",
    ".config/autostart/x.desktop",
    ".config/fish/config.fish",
    ".config/git/config",
    ".config/systemd/user/x.service",
    ".gitconfig",
    ".local/bin/ls",
    ".profile",
    ".zshrc",
];

#[test]
fn what_a_login_obeys_stays_as_it_is() {
    for_each_user(binaries!(), |world| {
        let mut cases = Vec::new();
        for name in NAMES {
            let path = world.home(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "old").unwrap();
            cases.push(denied(op!["write", &path], "EROFS"));
            let new = path.with_extension("new");
            cases.push(denied(op!["create", &new], "EROFS"));
            cases.push(denied(op!["rename", &path, &new], "EROFS"));
            cases.push(denied(op!["rename", &new, &path], "EROFS"));
        }
        world.own();
        world.check_confined(&world.setup(), &cases);
        for name in NAMES {
            let text = fs::read_to_string(world.home(name)).unwrap();
            assert_eq!(text, "old", "{name}");
            // The control: outside it is the user's own file.
            let write = world.probe(op!["write", world.home(name)]);
            assert_eq!(write.line(), "ok", "{name}");
        }
    });
}
