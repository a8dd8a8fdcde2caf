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

/// What `strict` lets be written is no place where a prompt, an editor, `npx` or git finds what it runs.
#[test]
fn a_strict_session_plants_nothing_in_a_cache() {
    const OBEYED: &[&str] = &[
        ".cache/gitstatus/gitstatusd-linux-x86_64",
        ".cache/nvim/luac/%2finit.luac",
        ".cache/p10k-instant-prompt-u.zsh",
        ".cargo/git/db/x/config",
        ".cargo/registry/index/x/.git/config",
        ".npm/_npx/x/node_modules/.bin/tool",
        "go/pkg/mod/cache/vcs/x/config",
    ];
    const WRITTEN: &[&str] = &[
        ".cache/pip/http-v2/x",
        ".cargo/registry/src/x/lib.rs",
        ".npm/_cacache/tmp/x",
        "go/pkg/mod/x/y.go",
    ];
    for_each_user(binaries!(), |world| {
        let make = |there: bool| {
            for name in OBEYED.iter().filter(|_| there).chain(WRITTEN) {
                let path = world.home(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, "old").unwrap();
            }
            world.own();
        };
        let setup = world.setup_with(r#""preset": "strict""#);
        // Once none of what is obeyed is there before, and once each is.
        for there in [false, true] {
            make(there);
            let write = |name: &&str| {
                let path = world.home(name);
                let shown = path.display();
                format!("mkdir -p $(dirname {shown}); echo evil > {shown}\n")
            };
            let write: String = OBEYED.iter().chain(WRITTEN).map(write).collect();
            let script = format!("exec 2> /dev/null\n{write}true");
            world.run(&setup, ["sh", "-c", &script]).assert_status(0);
            let now = |name: &str| fs::read_to_string(world.home(name)).ok();
            for name in OBEYED {
                assert_eq!(now(name).as_deref(), there.then_some("old"), "{name}");
            }
            for name in WRITTEN {
                assert_eq!(now(name).as_deref(), Some("evil\n"), "{name}");
            }
        }
    });
}

/// Where a session may write the user's runtime directory, what her bus and service manager start stays
/// as it is.
#[test]
fn no_service_is_planted_in_a_runtime_directory() {
    const OBEYED: &[&str] = &[
        "dbus-1/services/x.service",
        "systemd/generator/x.service",
        "systemd/transient/x.service",
        "systemd/user/x.service",
    ];
    for_each_user(binaries!(), |world| {
        let runtime = world.path("other/run");
        fs::create_dir(&runtime).unwrap();
        let settings = world.settings(r#""git": "full""#, &[&runtime]);
        let setup = world.setup().settings(settings).runtime(&runtime);
        for there in [false, true] {
            for name in OBEYED.iter().filter(|_| there) {
                let path = runtime.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, "old").unwrap();
            }
            world.own();
            let shown = runtime.display();
            let write = OBEYED.iter().chain(&["other/x"]).map(|name| {
                format!("mkdir -p $(dirname {shown}/{name}); echo evil > {shown}/{name}\n")
            });
            let write: String = write.collect();
            let script = format!("exec 2> /dev/null\n{write}true");
            world.run(&setup, ["sh", "-c", &script]).assert_status(0);
            let now = |name: &str| fs::read_to_string(runtime.join(name)).ok();
            for name in OBEYED {
                assert_eq!(now(name).as_deref(), there.then_some("old"), "{name}");
            }
            assert_eq!(now("other/x").as_deref(), Some("evil\n"));
        }
    });
}
