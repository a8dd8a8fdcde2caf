use ringfence_core::plan::HostFacts;

use crate::world::World;

#[test]
fn a_dry_run_on_every_named_host() {
    let world = World::lasting();
    world.user_settings("{\n  \"limits\": { \"memory\": \"2GiB\" },\n}\n");
    world.project_settings("{ \"secrets\": { \"hide\": [\"../src\"] } }\n");
    for host in HostFacts::NAMED {
        let ran = world.run(&[
            "run",
            "--dry-run",
            "--host-facts",
            host,
            "--",
            "make",
            "a target",
        ]);
        insta::assert_snapshot!(format!("dry_run_{host}"), ran.golden_without_machine());
    }
}

#[test]
fn details_list_mounts_rules_and_names() {
    let world = World::lasting();

    let ran = world.run(&["explain", "--plan", "-v", "--host-facts", "linux-6.18"]);

    insta::assert_snapshot!(ran.golden_without_machine());
    // A hundred names would bury the rest.
    assert!(!ran.out.contains("/.envrc"), "{}", ran.out);
    let all = world.run(&["explain", "--plan", "-vv", "--host-facts", "linux-6.18"]);
    assert!(all.out.contains("- [PROJECT]/.envrc\n"), "{}", all.out);
}

#[test]
fn a_plan_is_data_for_programs() {
    let world = World::new();

    let ran = world.run(&[
        "run",
        "--dry-run",
        "--json",
        "--preset",
        "track",
        "--host-facts",
        "linux-6.18",
        "--",
        "true",
    ]);

    let parsed: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(parsed["version"], 1);
    insta::assert_snapshot!(ran.golden());
}

#[test]
fn facts_come_from_a_file_too() {
    let world = World::new();
    let facts = HostFacts::named("linux-6.18").unwrap();
    let file = world.write("facts.json", serde_json::to_string(&facts).unwrap());
    let plan = |facts: &std::ffi::OsStr| {
        let arguments = [
            "explain".as_ref(),
            "--plan".as_ref(),
            "--host-facts".as_ref(),
        ];
        world.run(&[&arguments[..], &[facts]].concat())
    };

    let (by_file, by_name) = (plan(file.as_os_str()), plan("linux-6.18".as_ref()));

    assert_eq!(by_file.code, Some(0));
    assert_eq!(by_file.out, by_name.out);
    for bad in ["{}", "not json", "{\"os\": \"plan9\"}"] {
        let file = world.write("facts.json", bad);
        assert_eq!(plan(file.as_os_str()).code, Some(2), "{bad}");
    }
    assert_eq!(plan("no-such-host".as_ref()).code, Some(2));
}

#[test]
fn a_refusal_is_125_and_says_why() {
    let world = World::new();
    let on = |host: &str, flags: &[&str]| {
        let mut arguments = vec!["run", "--dry-run", "--host-facts", host];
        arguments.extend(flags);
        arguments.extend(["--", "true"]);
        world.run(&arguments)
    };

    assert_eq!(on("linux-6.18", &[]).code, Some(0));
    assert_eq!(on("docker-default", &[]).code, Some(125));
    assert_eq!(on("docker-default", &["--on-gap", "report"]).code, Some(0));
    assert_eq!(on("linux-6.18", &["--require", "namespaces"]).code, Some(0));
    let weak = on(
        "docker-default",
        &["--on-gap", "report", "--require", "namespaces"],
    );
    assert_eq!(weak.code, Some(125));
    assert!(
        weak.errors.contains("--require namespaces"),
        "{}",
        weak.errors
    );
    let enough = on(
        "docker-default",
        &["--on-gap", "report", "--require", "landlock"],
    );
    assert_eq!(enough.code, Some(0));
    let tracked = on(
        "linux-6.18",
        &["--preset", "track", "--require", "landlock"],
    );
    assert_eq!(tracked.code, Some(125));
}
