//! Do mounts and Landlock really carry the rules?
//!
//! A plan's mounts are walked as the kernel would, and what is seen at a path is held against what
//! the policy says, for random policies and paths.

use proptest::prelude::*;
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{
    Act, Base, DEVICES, EngineChoice, HostFacts, LandlockPlan, Mount, MountKind, Plan, compile,
};
use ringfence_core::policy::{Access, Content, FileRule, Found, Policy};

use crate::random;
use crate::world::World;

/// What is seen at a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Effect {
    Hidden,
    Host(Access),
    Own(Content),
}

/// Walks the mounts: the last one made over a path is the one that is seen.
pub(crate) fn effect(plan: &Plan, path: &AbsPath) -> Effect {
    let (base, mounts) = root(plan);
    // A link shows nothing of its own: whoever follows it asks about where it leads.
    let shows = |mount: &&Mount| !matches!(mount.kind, MountKind::Alias { .. });
    let over = mounts
        .iter()
        .filter(shows)
        .filter(|mount| mount.at.covers(path));
    let last = over.max_by_key(|mount| mount.at.depth());
    let Some(mount) = last else {
        return match base {
            Base::Empty => Effect::Hidden,
            // The base is read-only, whatever its rule says.
            Base::Host { access } => Effect::Host((*access).min(Access::Execute)),
        };
    };
    match &mount.kind {
        MountKind::Bind { access } | MountKind::Device { access } => Effect::Host(*access),
        MountKind::Devices => Effect::Own(Content::Devices),
        MountKind::Mask { .. } => Effect::Hidden,
        MountKind::Proc => Effect::Own(Content::Processes),
        MountKind::Tmpfs { .. } => Effect::Own(Content::Memory),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn root(plan: &Plan) -> (&Base, &[Mount]) {
    for act in plan.acts() {
        if let Act::Root { base, mounts } = act {
            return (base, mounts);
        }
    }
    panic!("{plan:?} has no root");
}

fn landlock(plan: &Plan) -> &LandlockPlan {
    for act in plan.acts() {
        if let Act::Landlock(ruleset) = act {
            return ruleset;
        }
    }
    panic!("{plan:?} has no ruleset");
}

/// What Landlock allows: rights add up on the way down.
fn allowed(ruleset: &LandlockPlan, path: &AbsPath) -> Access {
    let covering = ruleset.rules.iter().filter(|rule| rule.path.covers(path));
    covering
        .map(|rule| rule.access)
        .max()
        .unwrap_or(Access::None)
}

/// The rule that decides, among those that something stands behind; by definition, not by index.
fn deciding<'a>(policy: &'a Policy, path: &AbsPath) -> Option<&'a FileRule> {
    let rules = policy.files().rules().iter();
    rules
        .filter(|rule| rule.found != Found::Absent && rule.path.covers(path))
        .max_by_key(|rule| rule.path.depth())
}

fn shows(content: Content, path: &AbsPath) -> bool {
    let name = path
        .as_path()
        .iter()
        .nth(2)
        .unwrap_or_default()
        .to_str()
        .unwrap();
    match content {
        Content::Devices => DEVICES.contains(&name),
        Content::Processes => name.is_empty() || name.parse::<u32>().is_err(),
        Content::Host | Content::Memory => false,
    }
}

fn check_mounts(policy: &Policy, plan: &Plan, path: &AbsPath) {
    let seen = effect(plan, path);
    let rule = deciding(policy, path);
    let access = rule.map_or_else(|| policy.files().default_access(), |rule| rule.access);
    let content = rule.map_or(Content::Host, |rule| rule.content);
    match (access, seen) {
        (Access::None, Effect::Own(own)) => assert!(!shows(own, path), "{path} is seen"),
        (Access::None, seen) => assert_eq!(seen, Effect::Hidden, "{path}"),
        (_, Effect::Own(_)) => assert!(content.is_own(), "{path} is not the host's"),
        (access, seen) => {
            assert_eq!(seen, Effect::Host(access), "{path}");
            assert_eq!(content, Content::Host, "{path}");
        }
    }
}

/// A directory that could be renamed takes the rules below it along; then the name is free.
fn check_pins(policy: &Policy, plan: &Plan) {
    let (_, mounts) = root(plan);
    let writable = |path: &AbsPath| effect(plan, path) == Effect::Host(Access::Write);
    for rule in policy.files().rules() {
        let mounted = mounts.iter().any(|mount| mount.at == rule.path);
        if rule.found == Found::Absent || !mounted {
            continue;
        }
        for directory in std::iter::successors(rule.path.parent(), AbsPath::parent) {
            let Some(parent) = directory.parent() else {
                break;
            };
            if writable(&directory) && writable(&parent) {
                let pinned = mounts.iter().any(|mount| mount.at == directory);
                assert!(
                    pinned,
                    "{directory} could be renamed, with {} in it",
                    rule.path
                );
            }
        }
    }
}

fn check_order(plan: &Plan) {
    let (_, mounts) = root(plan);
    // Links come last: they need what they lead to, and nothing needs them.
    let links = |mount: &&Mount| matches!(mount.kind, MountKind::Alias { .. });
    assert!(mounts.is_sorted_by_key(|mount| links(&mount)));
    let mounts: Vec<&Mount> = mounts.iter().filter(|mount| !links(mount)).collect();
    for (index, mount) in mounts.iter().enumerate() {
        for earlier in &mounts[..index] {
            assert!(
                !mount.at.covers(&earlier.at),
                "{} after {}",
                mount.at,
                earlier.at
            );
        }
    }
    assert!(plan.acts().is_sorted_by_key(Act::step));
}

/// With mounts around it, Landlock never allows more than some rule on the way down.
fn check_landlock(policy: &Policy, plan: &Plan, path: &AbsPath) {
    let rules = policy.files().rules().iter();
    let most = rules
        .filter(|rule| rule.path.covers(path))
        .map(|rule| rule.access)
        .max()
        .unwrap_or(Access::None)
        .max(policy.files().default_access());
    assert!(allowed(landlock(plan), path) <= most, "{path}");
    // And it never takes away what the mounts show: a rule that holds twice must agree twice.
    if let Effect::Host(access) = effect(plan, path) {
        assert!(allowed(landlock(plan), path) >= access, "{path}");
    }
}

/// Alone, Landlock allows what the policy says; where it cannot, a gap names the rule.
fn check_landlock_alone(policy: &Policy, plan: &Plan, path: &AbsPath) {
    let verdict = policy.files().access(path);
    let decided = verdict.rule;
    let above = decided.and_then(|rule| rule.path.parent());
    let late = decided.is_some_and(|rule| rule.found == Found::Absent)
        && above.is_some_and(|above| policy.files().access(&above).access != Access::Write);
    let host = if verdict.content().is_own() {
        Access::None
    } else {
        verdict.access
    };
    let got = allowed(landlock(plan), path);
    let named = plan.gaps().iter().any(|gap| {
        let name = gap.rule.split(": ").next().unwrap_or_default();
        let name = name.trim_end_matches(" of the session's own");
        AbsPath::parse(name).is_ok_and(|rule| rule.covers(path))
    });
    let harmless = verdict.content() == Content::Devices && shows(Content::Devices, path);
    assert!(
        got <= host || named || late || harmless,
        "{path}: {got}, not {host}, and no gap"
    );
    // A name that is not there can be granted only where things can be made.
    let there = decided.is_none_or(|rule| rule.found != Found::Absent);
    assert!(got >= host || !there, "{path}: {got} is less than {host}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn mounts_and_landlock_carry_every_rule(
        settings in random::settings(), kind in random::kind(), world in random::world(),
        paths in proptest::collection::vec(random::path(), 24),
    ) {
        let Ok(policy) = world.resolve(kind, &settings) else { return Ok(()) };
        if policy.only_tracks() { return Ok(()) }
        let facts = HostFacts::named("linux-6.18").unwrap();
        let plan = compile(&policy, &facts, EngineChoice::Auto);
        check_order(&plan);
        check_pins(&policy, &plan);
        let alone = compile(&policy, &facts, "landlock".parse().unwrap());
        let rules = policy.files().rules().iter().map(|rule| rule.path.clone());
        for path in paths.into_iter().chain(rules) {
            check_mounts(&policy, &plan, &path);
            check_landlock(&policy, &plan, &path);
            check_landlock_alone(&policy, &alone, &path);
        }
    }
}

#[test]
fn a_directory_above_a_protected_name_cannot_be_renamed() {
    let policy = World::linux().tool(r#"{ "git": "write" }"#);
    let facts = HostFacts::named("linux-6.18").unwrap();
    let plan = compile(&policy, &facts, EngineChoice::Auto);

    let (_, mounts) = root(&plan);
    let mounted = |at: &str| {
        mounts
            .iter()
            .any(|mount| mount.at.as_path().to_str() == Some(at))
    };

    assert!(mounted("/home/u/p/.github/workflows"));
    assert!(
        mounted("/home/u/p/.github"),
        "else it is moved away and made again"
    );
    assert!(
        mounted("/home/u/p/.git"),
        "else it is moved away and made again"
    );
}

#[test]
fn a_hidden_device_below_a_granted_directory_stays_hidden() {
    let policy = World::linux().tool(
        r#"{ "terminal": { "sandbox": { "additional_read_write_paths": ["/dev/dri"] } },
             "secrets": { "hide": ["/dev/dri/card0", "/dev/tty", "/proc/cpuinfo"] } }"#,
    );
    let facts = HostFacts::named("linux-6.18").unwrap();
    let plan = compile(&policy, &facts, EngineChoice::Auto);

    for hidden in ["/dev/dri/card0", "/dev/tty", "/proc/cpuinfo"] {
        assert_eq!(
            effect(&plan, &crate::world::path(hidden)),
            Effect::Hidden,
            "{hidden}"
        );
    }
}
