//! Golden plans: every named host with every preset, as a person would read them.

use std::fmt::Write as _;

use ringfence_core::origin::Layer;
use ringfence_core::plan::{
    Act, EngineChoice, Feature, HostFacts, LimitName, Plan, Tracking, compile,
};
use ringfence_core::seccomp::UnixSockets;
use ringfence_core::settings::{Kind, Preset, Settings, Word};

use crate::random;
use crate::world::World;
use proptest::prelude::*;

fn in_words(plan: &Plan) -> String {
    let (engine, tracking) = (plan.engine(), plan.tracking());
    let mut out = format!("engine: {engine}\ntracked by: {tracking}\n\n");
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
    let missing = || Feature::Missing {
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
    assert!(!gaps(&container, &agent).contains("processes are found by searching"));
    container.mark = missing();
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

/// The strongest that a host has; a cgroup beside a pid namespace only where a limit needs it.
#[test]
fn a_session_is_tracked_by_the_strongest_there_is() {
    let world = World::linux();
    let missing = || Feature::Missing {
        why: "why".to_owned(),
        fix: "fix".to_owned(),
    };
    let full = HostFacts::named("linux-6.18").unwrap();
    let mut marked = full.clone();
    marked.cgroup.own = missing();
    marked.cgroup.controllers.clear();
    let mut bare = marked.clone();
    bare.mark = missing();
    let mut root = full.clone();
    root.process_limit = missing();
    let agent = world.tool("{}");
    let track = world.tool(r#"{ "preset": "track" }"#);
    let memory = world.tool(r#"{ "limits": { "memory": "1GiB" } }"#);
    let processes = world.tool(r#"{ "limits": { "processes": 50 } }"#);
    for (facts, policy, engine, tracking, cgroup, gap) in [
        (&full, &agent, "auto", Tracking::PidNamespace, false, false),
        (&full, &track, "auto", Tracking::Cgroup, true, false),
        (&full, &memory, "auto", Tracking::PidNamespace, true, false),
        (
            &full,
            &processes,
            "auto",
            Tracking::PidNamespace,
            false,
            false,
        ),
        (&root, &agent, "auto", Tracking::PidNamespace, false, false),
        (
            &root,
            &processes,
            "auto",
            Tracking::PidNamespace,
            true,
            false,
        ),
        (&full, &agent, "landlock", Tracking::Cgroup, true, false),
        (&marked, &track, "auto", Tracking::Mark, false, false),
        (&marked, &agent, "landlock", Tracking::Mark, false, false),
        (
            &marked,
            &memory,
            "auto",
            Tracking::PidNamespace,
            false,
            true,
        ),
        (&bare, &track, "auto", Tracking::Descent, false, false),
        (&bare, &agent, "landlock", Tracking::Descent, false, true),
    ] {
        let plan = compile(policy, facts, engine.parse().unwrap());
        let named = plan.gaps().iter().any(|gap| {
            gap.rule.starts_with("limit") || gap.lost.contains("searching for descendants")
        });
        assert_eq!(
            (plan.tracking(), plan.acts().contains(&Act::Cgroup), named),
            (tracking, cgroup, gap),
            "{engine} {:?}",
            plan.gaps()
        );
    }
    let partly = compile(&memory, &marked, "auto".parse().unwrap());
    assert_eq!(partly.controlled(), []);
    let held = compile(&memory, &full, "auto".parse().unwrap());
    assert_eq!(held.controlled(), [LimitName::Memory]);
    let held = compile(&processes, &root, "auto".parse().unwrap());
    assert_eq!(held.controlled(), [LimitName::Processes]);
}

/// From Landlock 9 the kernel tells the session's own unix sockets from all others.
#[test]
fn unix_sockets_are_left_to_a_kernel_that_can_tell() {
    let world = World::linux();
    let mut asking = HostFacts::named("linux-6.18").unwrap();
    let mut deaf = asking.clone();
    deaf.seccomp_listener = Feature::Missing {
        why: "why".to_owned(),
        fix: "fix".to_owned(),
    };
    let agent = world.tool("{}");
    let hosts = world.tool(r#"{ "network": { "hosts": ["example.org"] } }"#);
    for (policy, engine, older, newer, newer_deaf) in [
        (
            &agent,
            "auto",
            UnixSockets::Brokered,
            UnixSockets::Open,
            UnixSockets::Open,
        ),
        (
            &hosts,
            "auto",
            UnixSockets::Brokered,
            UnixSockets::Passed,
            UnixSockets::Open,
        ),
        (
            &agent,
            "landlock",
            UnixSockets::Refused,
            UnixSockets::Open,
            UnixSockets::Open,
        ),
    ] {
        let unix = |facts: &HostFacts| {
            let plan = compile(policy, facts, engine.parse().unwrap());
            let filter = plan.acts().iter().find_map(|act| {
                if let Act::Seccomp(spec) = act {
                    Some(spec.unix)
                } else {
                    None
                }
            });
            filter.unwrap()
        };
        for abi in [8, 9, 10] {
            (asking.landlock.abi, deaf.landlock.abi) = (abi, abi);
            let expected = if abi < 9 {
                [older, UnixSockets::Refused]
            } else {
                [newer, newer_deaf]
            };
            assert_eq!(
                [unix(&asking), unix(&deaf)],
                expected,
                "{engine}, Landlock {abi}"
            );
        }
    }
}

/// The directory in memory is not there, and the host's around it may be read.
#[test]
fn what_is_hidden_in_a_directory_of_its_own_is_a_gap_without_one() {
    let world = World::linux().directory("/tmp/secret");
    let policy = world.tool(r#"{ "secrets": { "hide": ["/tmp/secret"] } }"#);
    let facts = HostFacts::named("linux-6.18").unwrap();
    let plan = compile(&policy, &facts, "landlock".parse().unwrap());
    let mut gaps = plan.gaps().iter();
    let gap = gaps.find(|gap| gap.rule.starts_with("/tmp/secret: "));
    assert!(gap.is_some());
}

/// Where nothing could tell it from all others, it is refused, and that is said.
#[test]
fn a_granted_socket_is_a_gap_only_where_nothing_tells_it_from_others() {
    let world = World::linux();
    let policy = world.tool(r#"{ "unix_sockets": ["ssh-agent"] }"#);
    let mut facts = HostFacts::named("linux-6.18").unwrap();
    let mut compiled = |abi: u32, engine: &str, listener: bool| {
        facts.landlock.abi = abi;
        facts.seccomp_listener = if listener {
            Feature::Works
        } else {
            Feature::Missing {
                why: "why".to_owned(),
                fix: "fix".to_owned(),
            }
        };
        let plan = compile(&policy, &facts, engine.parse().unwrap());
        let gaps = plan.gaps().iter();
        let gap = gaps
            .clone()
            .any(|gap| gap.rule == "unix socket /run/agent.sock");
        let sockets = plan.acts().iter().find_map(|act| match act {
            Act::Landlock(ruleset) => Some(ruleset.sockets.len()),
            _ => None,
        });
        (gap, sockets.unwrap())
    };
    assert_eq!(compiled(7, "namespaces", true), (false, 0));
    assert_eq!(compiled(7, "namespaces", false), (true, 0));
    assert_eq!(compiled(7, "landlock", true), (true, 0));
    for engine in ["namespaces", "landlock"] {
        for listener in [true, false] {
            assert_eq!(compiled(9, engine, listener), (false, 1), "{engine}");
        }
    }
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
