//! Links on the way to what is granted: those of the user are followed, those that a session may
//! have made are not.

use ringfence_core::origin::Layer;
use ringfence_core::policy::Access;
use ringfence_core::settings::{Kind, Settings};

use crate::world::{World, path};

fn writing(world: &World, granted: &str) -> Result<Access, Vec<String>> {
    let text = format!(
        r#"{{ "terminal": {{ "sandbox": {{ "additional_read_write_paths": ["{granted}"] }} }} }}"#
    );
    let complaints = world.complaints(&text);
    if complaints.is_empty() {
        Ok(world.tool(&text).files().access(&path("/data/d")).access)
    } else {
        Err(complaints)
    }
}

#[test]
fn a_link_of_the_users_is_followed() {
    let world = World::linux()
        .link("/home/u/data", "/data")
        .link("/elsewhere", "/home/u");
    for granted in [
        "/home/u/data",
        "/home/u/data/d",
        "/elsewhere/data/d",
        "/elsewhere/data/../home/u/data/d",
    ] {
        assert_eq!(writing(&world, granted), Ok(Access::Write), "{granted}");
    }
}

#[test]
fn a_link_from_where_a_session_may_make_links_gives_nothing() {
    let world = World::linux()
        .link("/home/u/p/out", "/data/d")
        .link("/home/u/p/src/deep/up", "../../../../../../data")
        .link("/shortcut", "/home/u/p")
        .link("/home/u/data", "/data")
        .link("/home/u/mine", "p/out")
        .link("/home/u/twice", "/shortcut/src/deep/up");
    for (granted, leads_to) in [
        ("/home/u/p/out", "/data/d"),
        ("/home/u/p/src/../out", "/data/d"),
        ("/home/u/p/src/deep/up/d", "/data/d"),
        // A link of the user's on the way does not make the next one hers.
        ("/shortcut/out", "/data/d"),
        // Nor does one that leads to it.
        ("/home/u/mine", "/data/d"),
        ("/home/u/twice/d", "/data/d"),
        // And one of hers behind it is not the one she means.
        ("/home/u/p/src/deep/up/../home/u/data", "/data"),
        // One that does not show once the path is tidied up.
        ("/home/u/p/src/deep/up/../home/other", "/home/other"),
    ] {
        let said = writing(&world, granted).unwrap_err();
        let about = format!("it leads to {leads_to} through");
        assert!(
            matches!(&said[..], [said] if said.contains(&about)),
            "{granted}: {said:?}"
        );
    }
    // What is itself granted to be written is no better than the project.
    let text = r#"{ "terminal": { "sandbox": {
        "additional_read_write_paths": ["/opt"],
        "additional_read_only_paths": ["/opt/link"],
    } } }"#;
    let world = World::linux().link("/opt/link", "/home/u/.ssh");
    assert_eq!(
        world.complaints(text),
        [
            "/opt/link is not given: it leads to /home/u/.ssh through a link that a command may have made"
        ]
    );
}

/// A session of a repository around the project, or one with the host's temporary files, could make links
/// that this one could not.
#[test]
fn a_link_that_another_session_may_have_made_gives_nothing() {
    let world = World::linux()
        .link("/home/u/around", "/data/d")
        .link("/tmp/left", "/data/d");
    assert_eq!(writing(&world, "/home/u/around"), Ok(Access::Write));
    assert!(writing(&world, "/tmp/left").is_err());
    // The same in a repository that the project lies in.
    let text =
        r#"{ "terminal": { "sandbox": { "additional_read_write_paths": ["/repo/link"] } } }"#;
    let inner = |world: World| {
        let settings = Settings::new().with(Layer::User, world.keys(Layer::User, text));
        let mut place = world.place(Kind::Tool);
        place.project = path("/repo/sub");
        ringfence_core::policy::resolve(&settings, &place, &world).is_ok()
    };
    let world = || {
        let world = World::linux().directory("/repo").directory("/repo/sub");
        world.link("/repo/link", "/data/d")
    };
    assert!(inner(world()));
    assert!(!inner(world().directory("/repo/.git")));
}

/// Who may write everything may not read everything.
#[test]
fn no_link_gives_what_writing_everything_does_not() {
    let world = World::linux().link("/opt/link", "/home/u/.ssh");
    let text = r#"{ "terminal": { "sandbox": {
        "additional_read_write_paths": ["/"],
        "additional_read_only_paths": ["/opt/link"],
    } } }"#;
    let said = world.complaints(text);
    assert!(
        matches!(&said[..], [said] if said.contains("it leads to /home/u/.ssh")),
        "{said:?}"
    );
}

/// What a list lets be read is no reason not to write it, whatever name the list has for it.
#[test]
fn who_may_write_everything_writes_what_links_of_lists_lead_to() {
    let world = World::linux()
        .link("/bin", "usr/bin")
        .link("/home/u/.gitconfig", "/data/d");
    for preset in ["strict", "terminal"] {
        let all = r#""agent": { "sandbox_permissions": { "allow_fs_write_all": true } }"#;
        let policy = world.tool(&format!(r#"{{ "preset": "{preset}", {all} }}"#));
        for at in ["/usr/bin", "/bin", "/data/d"] {
            assert_eq!(
                policy.files().access(&path(at)).access,
                Access::Write,
                "{preset} {at}"
            );
        }
    }
}

#[test]
fn a_socket_behind_such_a_link_is_not_given() {
    let world = World::linux()
        .link("/home/u/p/agent", "/run/agent.sock")
        .link("/home/u/agent", "/run/agent.sock");
    let sockets = |at: &str| format!(r#"{{ "unix_sockets": ["{at}"] }}"#);
    let said = world.complaints(&sockets("/home/u/p/agent"));
    assert_eq!(
        said,
        [
            "/home/u/p/agent is not given: it leads to /run/agent.sock through a link that a command may have made"
        ]
    );
    let policy = world.tool(&sockets("/home/u/agent"));
    assert_eq!(policy.sockets()[0].path, path("/run/agent.sock"));
}

/// Nobody wrote those down, so nothing is refused; they are not given.
#[test]
fn a_cache_that_became_a_link_is_left_out() {
    let world = World::linux()
        .directory("/home/u/go/pkg")
        .directory("/home/u/.cache/pip/go")
        .link("/home/u/.cargo/registry", "/home/other");
    let strict = Settings::new().with(
        Layer::User,
        world.keys(Layer::User, r#"{ "preset": "strict" }"#),
    );
    let access = |world: &World, at: &str| {
        let mut place = world.place(Kind::Tool);
        place.toolchains = vec![("GOCACHE", "/home/u/.cache/pip/go".into())];
        let policy = ringfence_core::policy::resolve(&strict, &place, world).unwrap();
        policy.files().access(&path(at)).access
    };
    // Of a user who keeps her caches elsewhere: the link is in a directory that no session writes.
    assert_eq!(access(&world, "/home/other/stuff"), Access::Write);
    let planted = World::linux().link("/home/u/.cache/pip/go", "/home/other");
    assert_eq!(access(&planted, "/home/other/stuff"), Access::None);
    assert_eq!(access(&planted, "/home/u/.cache/pip/x"), Access::Write);
}
