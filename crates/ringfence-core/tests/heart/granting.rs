//! What grants and trust do to a policy.

use ringfence_core::binding::{Binding, Bound, FileIdentity};
use ringfence_core::origin::{Layer, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::permission::{Permission, Permissions};
use ringfence_core::policy::{Access, Policy, git_level};
use ringfence_core::request::{Forbidden, Request, Scope};
use ringfence_core::settings::{GitLevel, Kind, NetworkMode, ProjectTrust, Settings};

use crate::world::{World, path};

fn host(text: &str) -> Permission {
    Permission::Host(text.parse().unwrap())
}

fn write(text: &str) -> Permission {
    Permission::Write(path(text))
}

fn set(permissions: &[Permission]) -> Permissions {
    permissions.iter().cloned().collect()
}

fn resolve(world: &World, settings: &Settings) -> Policy {
    world.resolve(Kind::Tool, settings).unwrap()
}

fn with(world: &World, layers: &[(Layer, &str)]) -> Settings {
    let layers = layers.iter();
    layers.fold(Settings::new(), |settings, (layer, text)| {
        settings.with(*layer, world.keys(*layer, text))
    })
}

fn granted(settings: &Settings, permissions: &[Permission]) -> Settings {
    settings.clone().granting(&set(permissions), Scope::Thread)
}

#[test]
fn what_is_granted_holds_and_is_not_asked_again() {
    let world = World::linux();
    let before = resolve(&world, &Settings::new());
    let wanted = set(&[
        host("example.org"),
        write("/data/d"),
        Permission::Git(GitLevel::Write),
    ]);
    assert_eq!(wanted.missing(&before, &Permissions::new()), wanted);

    let after = resolve(&world, &Settings::new().granting(&wanted, Scope::Once));

    assert!(wanted.missing(&after, &Permissions::new()).is_empty());
    let below = after.files().access(&path("/data/d/x"));
    assert_eq!(below.access, Access::Write);
    let origin = Origin::Grant { scope: Scope::Once };
    assert_eq!(below.origin, &origin);
    assert_eq!(after.git().origin, origin);
    assert_eq!(after.files().access(&path("/data")).access, Access::Execute);
    assert!(!host("other.org").stands_in(&after));
    assert!(!Permission::AnyHost.stands_in(&after));
}

/// A higher level must see more repositories to hold, so whoever looks for them has to know of it.
#[test]
fn who_looks_for_repositories_knows_the_level_that_was_granted() {
    let world = World::linux();
    let settings = granted(&Settings::new(), &[Permission::Git(GitLevel::Write)]);
    let level = git_level(&settings, Kind::Tool);
    assert_eq!(level, GitLevel::Write);
    assert_eq!(resolve(&world, &settings).git().value, level);
}

#[test]
fn a_grant_only_adds() {
    let world = World::linux();
    let settings = with(
        &world,
        &[(
            Layer::User,
            r#"{ "git": "full", "network": { "mode": "all" } }"#,
        )],
    );
    let policy = resolve(
        &world,
        &granted(&settings, &[host("a.org"), Permission::Git(GitLevel::Read)]),
    );
    assert_eq!(policy.git().value, GitLevel::Full);
    assert_eq!(policy.network().mode(), NetworkMode::All);
}

#[test]
fn a_granted_host_does_not_switch_on_others() {
    let world = World::linux();
    let text = r#"{ "network": { "mode": "none", "hosts": ["listed.org"] } }"#;
    let settings = with(&world, &[(Layer::User, text)]);
    let policy = resolve(&world, &granted(&settings, &[host("a.org")]));
    assert!(host("a.org").stands_in(&policy));
    assert!(!host("listed.org").stands_in(&policy));
}

#[test]
fn a_grant_is_stronger_than_the_project_and_weaker_than_a_flag() {
    let world = World::linux();
    let none = r#"{ "network": { "mode": "none" }, "git": "hidden" }"#;
    let wanted = [host("a.org"), Permission::Git(GitLevel::Write)];
    let project = with(&world, &[(Layer::Project, none)]);
    let policy = resolve(&world, &granted(&project, &wanted));
    assert!(wanted.iter().all(|wanted| wanted.stands_in(&policy)));
    let flag = with(&world, &[(Layer::Flag, none)]);
    let policy = resolve(&world, &granted(&flag, &wanted));
    assert!(!wanted.iter().any(|wanted| wanted.stands_in(&policy)));
}

#[test]
fn a_grant_shows_no_secret_below_it() {
    let world = World::linux();
    let policy = resolve(
        &world,
        &granted(&Settings::new(), &[write("/home/u"), Permission::WriteAll]),
    );
    assert_eq!(
        policy.files().access(&path("/home/u/x")).access,
        Access::Write
    );
    for hidden in ["/home/u/.ssh", "/home/u/.ssh/id_ed25519"] {
        assert_eq!(
            policy.files().access(&path(hidden)).access,
            Access::None,
            "{hidden}"
        );
    }
}

#[test]
fn write_everything_reaches_the_home_and_nothing_hidden() {
    let world = World::linux();
    let text = r#"{ "agent": { "sandbox_permissions": { "allow_fs_write_all": true } } }"#;
    for settings in [
        with(&world, &[(Layer::User, text)]),
        granted(&Settings::new(), &[Permission::WriteAll]),
    ] {
        let policy = resolve(&world, &settings);
        assert!(Permission::WriteAll.stands_in(&policy));
        assert_eq!(
            policy.files().access(&path("/home/u/new")).access,
            Access::Write
        );
        assert_eq!(
            policy.files().access(&path("/home/u/.ssh")).access,
            Access::None
        );
        assert!(!host("a.org").stands_in(&policy));
    }
}

#[test]
fn running_outside_is_its_own_switch() {
    let world = World::linux();
    let allow = r#"{ "agent": { "sandbox_permissions": { "allow_unsandboxed": true } } }"#;
    let policy = resolve(&world, &with(&world, &[(Layer::User, allow)]));
    assert!(Permission::Unsandboxed.stands_in(&policy));
    for other in [host("a.org"), write("/data/d"), Permission::Fallback] {
        assert!(!other.stands_in(&policy), "{other}");
    }
    let request = Request {
        permissions: set(&[Permission::Unsandboxed]),
        reason: None,
    };
    assert_eq!(request.longest(&policy), Scope::Always);

    // Whoever hides a path does not mean it to be seen from outside.
    let hide = r#"{ "secrets": { "hide": ["/data/d"] } }"#;
    let both = with(&world, &[(Layer::User, allow), (Layer::Flag, hide)]);
    let policy = resolve(&world, &both);
    assert!(!Permission::Unsandboxed.stands_in(&policy));
    assert_eq!(request.longest(&policy), Scope::Thread);

    let never = r#"{ "agent": { "sandbox_permissions": { "allow_unsandboxed": "never" } } }"#;
    let policy = resolve(&world, &with(&world, &[(Layer::User, never)]));
    assert_eq!(request.check(&policy), Err(Forbidden::Unsandboxed));
}

#[test]
fn a_trusted_project_is_a_layer_like_any_other() {
    let world = World::linux();
    let text = r#"{ "git": "write", "network": { "hosts": ["a.org"] } }"#;
    let settings = with(&world, &[(Layer::Project, text)]);
    let narrow = resolve(&world, &settings);
    assert_eq!(narrow.git().value, GitLevel::Hidden);
    assert!(!narrow.ignored().is_empty());

    let trusted = resolve(&world, &settings.trusting(ProjectTrust::Trusted));

    assert_eq!(trusted.git().value, GitLevel::Write);
    assert!(host("a.org").stands_in(&trusted));
    assert!(trusted.ignored().is_empty());
}

#[test]
fn a_grant_does_not_follow_a_link_that_was_put_there_since() {
    let world = World::linux().link("/swapped", "/etc");
    let text = r#"{ "agent": { "sandbox_permissions": { "write_paths": ["/swapped"] } } }"#;
    for settings in [
        with(&world, &[(Layer::User, text)]),
        granted(&Settings::new(), &[write("/swapped")]),
    ] {
        let complaints = world.resolve(Kind::Tool, &settings).unwrap_err();
        let message = &complaints[0].message;
        assert!(message.contains("a link leads to /etc"), "{message}");
    }
}

fn file(name: &str) -> FileIdentity {
    FileIdentity {
        path: AbsPath::parse(name).unwrap(),
        device: 1,
        inode: 2,
        changed: (3, 4),
        size: 5,
    }
}

/// Makes one thing different.
type Change = fn(&mut Bound<'_>);

#[test]
fn every_part_of_what_was_shown_is_bound() {
    use std::ffi::OsStr;
    let world = World::linux();
    let policy = resolve(&world, &Settings::new());
    let other = resolve(&world, &granted(&Settings::new(), &[host("a.org")]));
    let os = OsStr::new;
    let whole = || Bound {
        command: vec![os("sh"), os("x")],
        directory: file("/p"),
        environment: vec![(os("A"), os("1")), (os("B"), os("2"))],
        files: vec![file("/p/x")],
        paths: vec![file("/srv")],
        policy: &policy,
    };
    let binding = Binding::new(&whole());
    let mut turned = whole();
    turned.environment.reverse();
    assert_eq!(Binding::new(&turned), binding, "variables have no order");
    let changes: [(&str, Change); 10] = [
        ("a word", |bound| bound.command[1] = OsStr::new("y")),
        ("one word more", |bound| bound.command.push(OsStr::new(""))),
        ("words joined", |bound| {
            bound.command = vec![OsStr::new("sh x")];
        }),
        ("directory", |bound| bound.directory.inode += 1),
        ("variable", |bound| {
            bound.environment.pop();
        }),
        ("value", |bound| bound.environment[1].1 = OsStr::new("3")),
        ("script", |bound| bound.files[0].changed.1 += 1),
        ("script's length", |bound| bound.files[0].size += 1),
        ("file asked for", |bound| {
            let file = bound.files.remove(0);
            bound.paths.insert(0, file);
        }),
        ("path", |bound| bound.paths[0] = file("/srw")),
    ];
    for (what, change) in changes {
        let mut bound = whole();
        change(&mut bound);
        assert_ne!(Binding::new(&bound), binding, "{what}");
    }
    let elsewhere = Bound {
        policy: &other,
        ..whole()
    };
    assert_ne!(Binding::new(&elsewhere), binding, "policy");
}
