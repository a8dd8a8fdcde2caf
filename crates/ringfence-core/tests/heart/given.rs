//! Directories beside the project that somebody gave for writing, and their repositories.

use ringfence_core::git::{Position, Repository};
use ringfence_core::origin::Layer;
use ringfence_core::policy::{Access, Policy, written_paths};
use ringfence_core::settings::{GitLevel, Kind, Settings};

use crate::world::{World, path};

/// The repositories of the directories that settings give for writing, as somebody finds them who looks there.
pub(crate) fn given_by(settings: &Settings, kind: Kind, world: &World) -> Vec<Repository> {
    let given = written_paths(settings, kind);
    let repositories = world.repositories.iter().filter(|repository| {
        let tree = repository.working_tree();
        given.iter().any(|path| path == tree.as_path())
    });
    repositories.cloned().collect()
}

/// A policy of what the user's file and the flags say, written alike.
fn policy(user: &str, flags: &str) -> Policy {
    let mut world = World::linux().with_repositories();
    let settings = Settings::new()
        .with(Layer::User, world.keys(Layer::User, user))
        .with(Layer::Flag, world.keys(Layer::Flag, flags));
    world.repositories = given_by(&settings, Kind::Tool, &world);
    world.resolve(Kind::Tool, &settings).unwrap()
}

fn access(policy: &Policy, at: &str) -> Access {
    policy.files().access(&path(at)).access
}

fn given(tree: &str, level: GitLevel) -> String {
    format!(
        r#"{{ "git": "{level}", "agent": {{ "sandbox_permissions": {{ "write_paths": ["{tree}"] }} }} }}"#
    )
}

const LEVELS: [GitLevel; 4] = [
    GitLevel::Hidden,
    GitLevel::Read,
    GitLevel::Write,
    GitLevel::Full,
];

#[test]
fn a_stronger_word_about_a_directory_holds_for_its_repository() {
    for level in LEVELS {
        for (flags, most) in [
            (r#"{ "secrets": { "hide": ["/data/d"] } }"#, Access::None),
            (
                r#"{ "terminal": { "sandbox": { "additional_read_only_paths": ["/data/d"] } } }"#,
                Access::Read,
            ),
        ] {
            let policy = policy(&given("/data/d", level), flags);
            for name in [
                "x",
                ".git/config",
                ".git/hooks/x",
                ".git/refs/heads/x",
                ".vscode/x",
            ] {
                let at = format!("/data/d/{name}");
                assert!(access(&policy, &at) <= most, "{at} at {level}");
            }
        }
    }
}

/// A rule of ringfence's own in it protects, and never opens what somebody has closed.
#[test]
fn what_is_closed_in_a_given_directory_stays_closed() {
    for level in LEVELS {
        let hide = r#"{ "secrets": { "hide": ["/data/d/.git", "/data/d/.vscode"] } }"#;
        let policy = policy(&given("/data/d", level), hide);
        for name in [
            ".git/config",
            ".git/hooks/x",
            ".git/info/exclude",
            ".vscode/x",
        ] {
            let at = format!("/data/d/{name}");
            assert_eq!(access(&policy, &at), Access::None, "{at} at {level}");
        }
        assert_eq!(access(&policy, "/data/d/x"), Access::Write);
    }
    // A linked working tree leads to a git directory elsewhere.
    let hide = r#"{ "secrets": { "hide": ["/home/main"] } }"#;
    let policy = policy(&given("/tmp/a", GitLevel::Full), hide);
    assert_eq!(access(&policy, "/home/main/.git/config"), Access::None);
    let policy = self::policy(&given("/tmp/a", GitLevel::Full), "{}");
    assert_eq!(access(&policy, "/home/main/.git/config"), Access::Write);
}

/// However it was given: also by the list of what everybody needs.
#[test]
fn a_list_of_system_paths_gives_a_directory_too() {
    let listed = |level: GitLevel| {
        format!(
            r#"{{ "git": "{level}", "terminal": {{ "sandbox": {{ "system_paths": {{ "read_write": ["/data/d"] }} }} }} }}"#
        )
    };
    for level in LEVELS {
        let policy = policy(&listed(level), "{}");
        assert_eq!(access(&policy, "/data/d/x"), Access::Write);
        let full = level == GitLevel::Full;
        for (name, at_full) in [
            (".git/hooks/x", true),
            (".git/config", true),
            (".vscode/x", false),
        ] {
            let writable = access(&policy, &format!("/data/d/{name}")) == Access::Write;
            assert_eq!(writable, full && at_full, "{name} at {level}");
        }
    }
}

/// Also where none was found: its name is kept free, as at the project's root.
#[test]
fn a_given_directory_gets_no_repository() {
    for level in LEVELS {
        let policy = policy(&given("/opt", level), "{}");
        let writable = access(&policy, "/opt/.git/config") == Access::Write;
        assert_eq!(writable, level == GitLevel::Full, "{level}");
        assert_eq!(access(&policy, "/opt/x"), Access::Write);
    }
}

/// The project's own repository is no exception, unless somebody names what is in it as well.
#[test]
fn what_is_hidden_in_the_project_is_opened_by_no_level() {
    let world = || {
        let mut world = World::linux().with_repositories();
        let own = "/home/u/p/.git";
        for name in ["hooks", "info", "objects/info", "refs/heads"] {
            world = world.directory(&format!("{own}/{name}"));
        }
        world = world.file(&format!("{own}/config"));
        let mut repository = world.repositories.remove(0);
        repository.entry = path(own);
        repository.position = Position::Own;
        repository.git_dirs[0].path = path(own);
        world.repositories = vec![repository];
        world
    };
    let resolved = |level: GitLevel, hidden: &str, read: &str| {
        let flags = format!(
            r#"{{ "git": "{level}", "secrets": {{ "hide": [{hidden}] }},
                 "terminal": {{ "sandbox": {{ "additional_read_only_paths": [{read}] }} }} }}"#
        );
        let world = world();
        let settings = Settings::new().with(Layer::Flag, world.keys(Layer::Flag, &flags));
        world.resolve(Kind::Tool, &settings).unwrap()
    };
    let config = "/home/u/p/.git/config";
    let hide = r#""/home/u/p/.git""#;
    for level in [GitLevel::Read, GitLevel::Write] {
        let open = resolved(level, "", "");
        assert!(access(&open, config) >= Access::Read, "at {level}");
        let hidden = resolved(level, hide, "");
        for name in ["config", "hooks/x", "info/exclude", "refs/heads/x", "HEAD"] {
            let at = format!("/home/u/p/.git/{name}");
            assert_eq!(access(&hidden, &at), Access::None, "{at} at {level}");
        }
        assert_eq!(access(&hidden, "/home/u/p/x"), Access::Write);
        let named = resolved(level, hide, &format!("\"{config}\""));
        assert_eq!(access(&named, config), Access::Read, "at {level}");
    }
}
