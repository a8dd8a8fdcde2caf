//! A project's file takes away and never adds, whatever it says.

use proptest::prelude::*;
use ringfence_core::host::Host;
use ringfence_core::origin::Layer;
use ringfence_core::plan::{EngineChoice, HostFacts, compile};
use ringfence_core::policy::{Access, EnvVerdict, FileVerdict, Ignored, Policy};
use ringfence_core::settings::{
    GitLevel, Keys, Kind, Limit, NetworkMode, Preset, ProjectTrust, Settings,
};

use crate::carried::{Effect, effect};
use crate::given::given_by;
use crate::random;
use crate::world::{World, path};

/// What of the host a verdict lets a command use.
fn of_host(verdict: FileVerdict<'_>) -> Access {
    if verdict.content().is_own() {
        Access::None
    } else {
        verdict.access
    }
}

fn variable(policy: &Policy, name: &str) -> Option<String> {
    match policy.environment().verdict(name) {
        EnvVerdict::Set(value) => Some(value.value.clone()),
        EnvVerdict::Passes(_) => Some("the caller's".to_owned()),
        EnvVerdict::Removed(_) | EnvVerdict::LeadsToSocket { .. } => None,
    }
}

fn limits(policy: &Policy) -> [Limit; 7] {
    let limits = policy.limits();
    [
        &limits.wall,
        &limits.cpu,
        &limits.processes,
        &limits.memory,
        &limits.files,
        &limits.file_size,
        &limits.tmp_size,
    ]
    .map(|limit| limit.value)
}

fn check(without: &Policy, with: &Policy) {
    assert!(with.git().value <= without.git().value);
    assert!(with.on_gap().value <= without.on_gap().value);
    assert!(with.tmp().value <= without.tmp().value);
    assert!(with.unsandboxed().value <= without.unsandboxed().value);
    assert!(!with.only_tracks() || without.only_tracks());
    assert_eq!(with.kind(), without.kind());
    assert_eq!(with.project(), without.project());
    for (mine, theirs) in limits(with).into_iter().zip(limits(without)) {
        assert_eq!(mine.min(theirs), mine);
    }
    for name in [
        "PATH",
        "LC_ALL",
        "LC_",
        "SECRET",
        "SSH_AUTH_SOCK",
        "SSH_X",
        "X",
        "OTHER",
    ] {
        let (mine, theirs) = (variable(with, name), variable(without, name));
        assert!(
            mine.is_none() || mine == theirs,
            "{name}: {mine:?}, not {theirs:?}"
        );
    }
    for host in ["a.test", "b.a.test", "c.test", "192.0.2.1", "192.0.2.2"] {
        let host = Host::parse(host).unwrap();
        for port in [22, 80, 443, 8080] {
            let (mine, theirs) = (
                with.network().verdict(&host, port).reach,
                without.network().verdict(&host, port).reach,
            );
            assert!(mine <= theirs, "{host}:{port}");
        }
    }
    assert!(with.network().mode() <= without.network().mode());
    for port in 1..4 {
        for ports in [
            |policy: &Policy| policy.network().loopback_in().to_vec(),
            |policy: &Policy| policy.network().loopback_out().to_vec(),
        ] {
            let open = |policy: &Policy| ports(policy).iter().any(|open| open.value == port);
            assert!(!open(with) || open(without), "{port}");
        }
    }
    for grant in with.sockets() {
        assert!(
            without
                .sockets()
                .iter()
                .any(|known| known.path == grant.path)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_projects_file_never_widens(
        user in random::keys(Layer::User), project in random::keys(Layer::Project),
        flag in random::keys(Layer::Flag), kind in random::kind(), world in random::world(),
        paths in proptest::collection::vec(random::path(), 24),
    ) {
        let trusted = Settings::new().with(Layer::User, user).with(Layer::Flag, flag);
        let all = trusted.clone().with(Layer::Project, project);
        // Facts do not count on anybody: those who look with the project's file may find all there are.
        let mut believed = world.clone();
        believed.repositories = given_by(&trusted, kind, &world);
        let (Ok(without), Ok(with)) = (believed.resolve(kind, &trusted), world.resolve(kind, &all)) else {
            return Ok(());
        };
        check(&without, &with);
        let facts = HostFacts::named("linux-6.18").unwrap();
        let plan = |policy| compile(policy, &facts, EngineChoice::Auto);
        let plans = (!without.only_tracks()).then(|| (plan(&without), plan(&with)));
        for path in paths {
            let (mine, theirs) = (with.files().access(&path), without.files().access(&path));
            prop_assert!(mine.access <= theirs.access, "{path}");
            prop_assert!(of_host(mine) <= of_host(theirs), "{path} of the host");
            if let Some((without, with)) = &plans {
                let seen = |plan| match effect(plan, &path) {
                    Effect::Host(access) => access,
                    Effect::Hidden | Effect::Own(_) => Access::None,
                };
                prop_assert!(seen(with) <= seen(without), "{path} is mounted");
            }
        }
    }

    #[test]
    fn the_order_of_layers_does_not_matter(
        user in random::keys(Layer::User), project in random::keys(Layer::Project),
        flag in random::keys(Layer::Flag), kind in random::kind(), path in random::path(),
    ) {
        let world = World::linux();
        let one = Settings::new()
            .with(Layer::User, user.clone())
            .with(Layer::Project, project.clone())
            .with(Layer::Flag, flag.clone());
        let other = Settings::new()
            .with(Layer::Flag, flag)
            .with(Layer::Project, project)
            .with(Layer::User, user);
        match (world.resolve(kind, &one), world.resolve(kind, &other)) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(one.files().access(&path).access, other.files().access(&path).access);
                prop_assert_eq!(one.files().rules(), other.files().rules());
            }
            (one, other) => prop_assert_eq!(one.err(), other.err()),
        }
    }
}

fn with_project(user: &str, project: &str) -> Policy {
    let world = World::linux();
    let settings = Settings::new()
        .with(Layer::User, world.keys(Layer::User, user))
        .with(Layer::Project, world.keys(Layer::Project, project));
    world.resolve(Kind::Tool, &settings).unwrap()
}

#[test]
fn a_read_grant_in_a_private_directory_shows_nothing_of_the_hosts() {
    let project = r#"{ "terminal": { "sandbox": { "additional_read_only_paths": ["/tmp", "/tmp/a", "/dev/kvm"] } } }"#;
    let policy = with_project("{}", project);
    let facts = HostFacts::named("linux-6.18").unwrap();
    let plan = compile(&policy, &facts, EngineChoice::Auto);

    for own in ["/tmp", "/tmp/a", "/dev/kvm"] {
        assert!(matches!(effect(&plan, &path(own)), Effect::Own(_)), "{own}");
    }
}

#[test]
fn a_project_that_asks_for_restrictions_gets_them() {
    let user = r#"{ "terminal": { "sandbox": { "enabled": false } } }"#;
    let project = r#"{ "terminal": { "sandbox": { "enabled": true } }, "tmp": "private" }"#;
    let policy = with_project(user, project);

    assert_eq!(policy.preset().value, Preset::Agent);
    assert!(
        policy.notes().is_empty(),
        "no word of `only tracked`: {:?}",
        policy.notes()
    );
    assert_eq!(
        policy.files().access(&path("/home/u/.ssh")).access,
        Access::None
    );
}

#[test]
fn what_a_project_tried_is_listed() {
    let project = r#"{
        "preset": "track",
        "git": "full",
        "on_gap": "report",
        "tmp": "host",
        "secrets": { "show": ["~/.ssh"] },
        "protect": { "allow": [".vscode"] },
        "network": { "mode": "all", "hosts": ["a.test"], "loopback_in": [1], "loopback_out": [2] },
        "unix_sockets": ["ssh-agent"],
        "env": { "allow": ["SECRET"], "set": { "PATH": "/evil" } },
        "limits": { "processes": "none" },
        "agent": { "sandbox_permissions": { "write_paths": ["/etc"], "allow_unsandboxed": true } },
    }"#;
    let tried = |policy: Policy| -> Vec<String> {
        let tried = policy.ignored().iter();
        tried
            .map(|Ignored { what, origin }| format!("{what} ({origin})"))
            .collect()
    };
    insta::assert_snapshot!(tried(with_project("{}", project)).join("\n"));
    let restricted = project.replace("\"preset\": \"track\",", "");
    insta::assert_snapshot!(tried(with_project("{}", &restricted)).join("\n"));
    assert_eq!(
        with_project("{}", project).network().mode(),
        NetworkMode::None
    );
}

/// Whoever looked for repositories with the project's file in hand has found those that it names.
#[test]
fn a_projects_file_gives_no_repository() {
    let world = World::linux().with_repositories();
    let sandbox = r#"{ "terminal": { "sandbox": { "additional_read_write_paths":
        ["/data/d", "/home/other", "/tmp/a", "/home/u/.config"] } } }"#;
    let permissions = r#"{ "agent": { "sandbox_permissions": { "write_paths":
        ["/data/d", "/home/other", "/tmp/a", "/home/u/.config"] } } }"#;
    let allowing = r#"{ "terminal": { "sandbox": { "additional_read_write_paths": ["/data/d"] } },
        "protect": { "allow": [".vscode"] } }"#;
    for preset in [Preset::Agent, Preset::Strict, Preset::Terminal] {
        for level in [
            GitLevel::Hidden,
            GitLevel::Read,
            GitLevel::Write,
            GitLevel::Full,
        ] {
            for (kind, text) in [
                (Kind::Terminal, sandbox),
                (Kind::Tool, sandbox),
                (Kind::Tool, permissions),
                (Kind::Tool, allowing),
            ] {
                let user = format!(r#"{{ "preset": "{preset}", "git": "{level}" }}"#);
                let user = world.keys(Layer::User, &user);
                let project: Keys = world.keys(Layer::Project, text);
                let trusted = Settings::new().with(Layer::User, user);
                let all = trusted.clone().with(Layer::Project, project);
                assert!(
                    given_by(&all, kind, &world).is_empty(),
                    "nobody looks there"
                );
                let without = world.resolve(kind, &trusted).unwrap();
                let with = world.resolve(kind, &all).unwrap();
                let access = |policy: &Policy, at: &str| policy.files().access(&path(at)).access;
                for tree in [
                    "/data/d/.git",
                    "/home/other/.git",
                    "/home/main/.git",
                    "/home/u/.config",
                ] {
                    for name in ["", "hooks/x", "config", "refs/heads/x"] {
                        let at = path(tree).below(name).to_string();
                        assert!(
                            access(&with, &at) <= access(&without, &at),
                            "{at} {preset} {level}"
                        );
                        assert!(access(&with, &at) < Access::Write, "{at} {preset} {level}");
                    }
                }
                assert!(access(&with, "/data/d/.vscode/x") < Access::Write);
                // Trusted, it gives them as the user does.
                if level == GitLevel::Full {
                    let all = all.trusting(ProjectTrust::Trusted);
                    assert!(!given_by(&all, kind, &world).is_empty());
                    let with = world.resolve(kind, &all).unwrap();
                    assert_eq!(access(&with, "/data/d/.git/hooks/x"), Access::Write);
                }
            }
        }
    }
}

/// Files of directories above the project: each takes away, and no other one's word gives it back.
#[test]
fn what_lies_above_the_project_only_takes_away() {
    let world = World::linux();
    let keys = |layer, text: &str| world.keys(layer, text);
    let user = r#"{ "git": "write", "network": { "mode": "all" } }"#;
    let outer = r#"{ "git": "hidden", "secrets": { "hide": ["/data"] }, "shell": { "rules": [
        { "action": "deny", "prefix": ["make"] }, { "action": "allow", "prefix": ["rm"] } ] } }"#;
    let inner = r#"{ "git": "full", "network": { "mode": "none" },
        "terminal": { "sandbox": { "additional_read_write_paths": ["/data"] } } }"#;
    let shows =
        r#"{ "git": "full", "network": { "mode": "all" }, "secrets": { "show": ["/data"] } }"#;
    let lifts = r#"{ "git": "full", "network": { "mode": "all" } }"#;
    for (project, trust) in [
        (shows, ProjectTrust::NarrowsOnly),
        (lifts, ProjectTrust::Trusted),
    ] {
        let settings = Settings::new()
            .with(Layer::User, keys(Layer::User, user))
            .with(Layer::Project, keys(Layer::Project, project))
            .trusting(trust)
            .within(keys(Layer::Project, inner))
            .within(keys(Layer::Project, outer));

        let policy = world.resolve(Kind::Tool, &settings).unwrap();

        let access = |at: &str| policy.files().access(&path(at)).access;
        assert_eq!(access("/data/d"), Access::None, "{trust:?}");
        assert_eq!(access("/home/u/p/.git/config"), Access::None, "{trust:?}");
        assert_eq!(access("/home/u/p/src/main.rs"), Access::Write, "{trust:?}");
        assert_eq!(policy.git().value, GitLevel::Hidden);
        assert_eq!(policy.network().mode(), NetworkMode::None);
        let rules = settings.shell_rules();
        assert_eq!((rules.rules.len(), rules.ignored.len()), (1, 1));
        let level = ringfence_core::policy::git_level(&settings, Kind::Tool);
        assert_eq!(level, GitLevel::Hidden, "what is looked for");
    }
}
