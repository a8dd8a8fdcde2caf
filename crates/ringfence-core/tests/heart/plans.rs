//! Golden plans: every named host with every preset, as a person would read them.

use std::fmt::Write as _;

use ringfence_core::origin::Layer;
use ringfence_core::plan::{Act, EngineChoice, Feature, HostFacts, Plan, compile};
use ringfence_core::settings::{Kind, Preset, Settings, Word};

use crate::random;
use crate::world::World;
use proptest::prelude::*;

fn in_words(plan: &Plan) -> String {
    let mut out = format!("engine: {}\n\n", plan.engine());
    for act in plan.acts() {
        writeln!(out, "- {act}").unwrap();
        let parts: Vec<String> = if let Act::Names { absent } = act {
            absent.iter().map(ToString::to_string).collect()
        } else if let Act::Root { mounts, .. } = act {
            mounts.iter().map(ToString::to_string).collect()
        } else if let Act::Landlock(ruleset) = act {
            let rules = ruleset.rules.iter();
            rules
                .map(|rule| format!("{}: {}", rule.path, rule.access))
                .collect()
        } else {
            Vec::new()
        };
        for part in parts {
            writeln!(out, "    {part}").unwrap();
        }
    }
    let verdict = if plan.may_launch() {
        "may launch"
    } else {
        "refused"
    };
    writeln!(out, "\n{verdict}, {} gaps", plan.gaps().len()).unwrap();
    for gap in plan.gaps() {
        writeln!(
            out,
            "- {} ({})\n    lost: {}\n    fix: {}",
            gap.rule, gap.origin, gap.lost, gap.fix
        )
        .unwrap();
    }
    out
}

#[test]
fn single_hosts_and_ports_on_every_named_host() {
    let world = World::linux();
    let text = r#"{ "network": { "hosts": ["example.org", "*.example.org:22"], "loopback_out": [5432, 80], "loopback_in": [3000] } }"#;
    let settings = Settings::new().with(Layer::User, world.keys(Layer::User, text));
    let policy = world.resolve(Kind::Tool, &settings).unwrap();
    let mut out = String::new();
    let mut deaf = HostFacts::named("linux-6.18").unwrap();
    deaf.seccomp_listener = Feature::Missing {
        why: "another filter asks already".to_owned(),
        fix: "none".to_owned(),
    };
    let named = HostFacts::NAMED.map(|name| (name, HostFacts::named(name).unwrap()));
    for (name, facts) in named.into_iter().chain([("no listener", deaf)]) {
        let plan = compile(&policy, &facts, EngineChoice::Auto);
        writeln!(out, "{name}: {}", plan.engine()).unwrap();
        for act in plan.acts() {
            if let Act::Gate(_) = act {
                writeln!(out, "    {act}").unwrap();
            }
        }
        let gaps = plan.gaps().iter();
        for gap in gaps.filter(|gap| gap.rule.contains("host") || gap.rule.contains("port")) {
            writeln!(out, "    gap: {} ({}): {}", gap.rule, gap.origin, gap.lost).unwrap();
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn every_named_host_with_every_preset() {
    let world = World::linux();
    for (word, preset) in Preset::WORDS {
        let kind = match preset {
            Preset::Terminal => Kind::Terminal,
            Preset::Agent | Preset::Strict | Preset::Track => Kind::Tool,
        };
        let text = format!(r#"{{ "preset": "{word}" }}"#);
        let settings = Settings::new().with(Layer::User, world.keys(Layer::User, &text));
        let policy = world.resolve(kind, &settings).unwrap();
        for host in HostFacts::NAMED {
            let facts = HostFacts::named(host).unwrap();
            let plan = compile(&policy, &facts, EngineChoice::Auto);
            insta::assert_snapshot!(format!("{host}-{word}"), in_words(&plan));
        }
    }
}

#[test]
fn a_full_linux_leaves_no_gap_in_any_preset() {
    let world = World::linux();
    let facts = HostFacts::named("linux-6.18").unwrap();
    for kind in [Kind::Tool, Kind::Terminal] {
        for (word, _) in Preset::WORDS {
            let text = format!(r#"{{ "preset": "{word}" }}"#);
            let settings = Settings::new().with(Layer::User, world.keys(Layer::User, &text));
            let policy = world.resolve(kind, &settings).unwrap();
            let plan = compile(&policy, &facts, EngineChoice::Auto);
            assert_eq!(plan.gaps(), [], "{word}");
            assert!(plan.may_launch());
        }
    }
}

#[test]
fn what_a_kernel_lacks_is_a_gap_and_not_a_weaker_plan() {
    let world = World::linux();
    let agent = world.tool("{}");
    let gaps = |facts: &HostFacts, policy| {
        let plan = compile(policy, facts, EngineChoice::Auto);
        assert!(plan.gaps().is_empty() || !plan.may_launch());
        plan.gaps()
            .iter()
            .map(|gap| gap.lost.clone())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let full = HostFacts::named("linux-6.18").unwrap();
    let missing = || ringfence_core::plan::Feature::Missing {
        why: "why".to_owned(),
        fix: "fix".to_owned(),
    };

    let mut old = full.clone();
    old.mount_api = ringfence_core::plan::MountApi::Paths;
    assert!(gaps(&old, &agent).contains("mounts by path only"));
    let mut container = full.clone();
    container.cgroup.own = missing();
    assert_eq!(
        gaps(&container, &agent),
        "",
        "the pid namespace ends a session whole"
    );
    container.user_namespaces = missing();
    assert!(gaps(&container, &agent).contains("processes are found by searching"));
    assert!(gaps(&container, &agent).contains("command lines of the host's processes"));
    assert!(
        gaps(&container, &agent).contains("the host's would be: read and execute"),
        "/tmp"
    );
    let tracked = world.tool(r#"{ "preset": "track" }"#);
    assert_eq!(
        gaps(&container, &tracked),
        "",
        "it promises nothing but tracking, and tracks by descent where it must"
    );
    let bounded = world.tool(r#"{ "tmp": "host", "limits": { "tmp_size": "1GiB" } }"#);
    assert!(gaps(&full, &bounded).contains("cannot be bounded"));
    let mac = HostFacts::named("macos-15").unwrap();
    let bounded =
        world.tool(r#"{ "preset": "track", "limits": { "wall": "1m", "memory": "1GiB" } }"#);
    assert_eq!(gaps(&mac, &bounded), "macOS cannot bound it for a session");
}

proptest! {
    #[test]
    fn every_policy_compiles_on_every_host(
        settings in random::settings(), kind in random::kind(), world in random::world(),
        host in proptest::sample::select(&HostFacts::NAMED[..]),
        engine in proptest::sample::select(&["auto", "namespaces", "landlock", "bwrap"][..]),
    ) {
        let Ok(policy) = world.resolve(kind, &settings) else { return Ok(()) };
        let plan = compile(&policy, &HostFacts::named(host).unwrap(), engine.parse().unwrap());
        prop_assert!(plan.acts().is_sorted_by_key(Act::step));
        prop_assert!(matches!(plan.acts().last(), Some(Act::Command)) || host == "windows");
        prop_assert!(plan.gaps().is_empty() || plan.may_launch() == (policy.on_gap().value == ringfence_core::settings::OnGap::Report));
        prop_assert!(!in_words(&plan).is_empty());
    }
}
