//! ringfence's own program, settings and state stay what they are.

use ringfence_core::origin::{BuiltIn, Layer, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{EngineChoice, HostFacts, compile};
use ringfence_core::policy::{Access, Complaint, Policy, resolve};
use ringfence_core::settings::{Kind, Settings};

use crate::carried::{Effect, effect, root};
use crate::world::{World, path};

const PROGRAM: &str = "/home/u/.cargo/bin/ringfence";

/// With the program in a place, and these settings of the user's.
fn resolved(program: &str, user: &str) -> Result<Policy, Vec<Complaint>> {
    let world = World::linux().file(program);
    let mut place = world.place(Kind::Tool);
    place.program = Some(path(program));
    let settings = Settings::new().with(Layer::User, world.keys(Layer::User, user));
    resolve(&settings, &place, &world)
}

fn written(path: &str) -> String {
    format!(r#"{{ "terminal": {{ "sandbox": {{ "additional_read_write_paths": ["{path}"] }} }} }}"#)
}

#[test]
fn the_program_is_protected_where_it_could_be_replaced() {
    let all = r#"{ "agent": { "sandbox_permissions": { "allow_fs_write_all": true } } }"#;
    let target = "/home/u/p/target/debug/ringfence";
    for (program, user) in [
        (PROGRAM, written("/home/u/.cargo").as_str()),
        (PROGRAM, all),
        (target, "{}"),
    ] {
        let policy = resolved(program, user).unwrap();
        let verdict = policy.files().access(&path(program));
        assert_eq!(verdict.access, Access::Execute, "{program} {user}");
        assert_eq!(verdict.origin, &Origin::BuiltIn(BuiltIn::Program));
        let beside = path(program).parent().unwrap().below("x");
        assert_eq!(policy.files().access(&beside).access, Access::Write);

        let facts = HostFacts::named("linux-6.18").unwrap();
        let plan = compile(&policy, &facts, EngineChoice::Auto);
        assert!(plan.may_launch());
        let program = path(program);
        assert_eq!(effect(&plan, &program), Effect::Host(Access::Execute));
        // Whatever lies between is a mount point, which nobody can rename.
        let given = policy.files().rules().iter().rev();
        let mut given =
            given.filter(|rule| rule.access == Access::Write && rule.path.covers(&program));
        let given = given.next().unwrap().path.clone();
        let between = std::iter::successors(program.parent(), AbsPath::parent);
        for directory in between.take_while(|directory| *directory != given) {
            let mounts = root(&plan).1;
            assert!(
                mounts.iter().any(|mount| mount.at == directory),
                "{directory}"
            );
        }
    }
}

#[test]
fn where_nothing_can_replace_it_no_rule_is_made() {
    for (program, user) in [
        (PROGRAM, "{}"),
        ("/usr/bin/ringfence", "{}"),
        ("/tmp/ringfence", "{}"),
        (PROGRAM, r#"{ "preset": "track" }"#),
    ] {
        let policy = resolved(program, user).unwrap();
        let mut rules = policy.files().rules().iter();
        assert!(
            rules.all(|rule| rule.path != path(program)),
            "{program} {user}"
        );
    }
}

#[test]
fn whoever_gives_what_is_ringfences_own_is_told_that_it_is_not() {
    let settings = "/home/u/.config/ringfence/settings.json";
    for (given, expected) in [
        (
            PROGRAM,
            "is the program that is running, and no session may write it",
        ),
        (
            "/home/u/.config/ringfence",
            "is ringfence's own, and no session may write it",
        ),
        (settings, "is ringfence's own, and no session may write it"),
    ] {
        let world = World::linux().file(PROGRAM).file(settings);
        let mut place = world.place(Kind::Tool);
        place.program = Some(path(PROGRAM));
        let user = world.keys(Layer::User, &written(given));
        let user = Settings::new().with(Layer::User, user);
        let complaints = resolve(&user, &place, &world).unwrap_err();
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert_eq!(complaints[0].message, format!("{given} {expected}"));
    }
    // What is given around them does not give them.
    let policy = World::linux()
        .file(settings)
        .tool(&written("/home/u/.config"));
    let access = |at| policy.files().access(&path(at)).access;
    assert_eq!(access(settings), Access::None);
    assert_eq!(access("/home/u/.config/app"), Access::Write);
}
