use serde_json::Value;

use crate::stage::{Around, Ran, Who, World, everybody, most_user_namespaces};

/// What an engine cannot do without.
const ENGINE: [&str; 11] = [
    "user-namespace",
    "mount-namespace",
    "pid-namespace",
    "ipc-namespace",
    "uts-namespace",
    "cgroup-namespace",
    "network-namespace",
    "proc-mount",
    "mount-api",
    "landlock",
    "seccomp",
];

fn doctor(world: &World, around: Around) -> (u8, Value) {
    let ran = world.run(around, &["doctor", "--json"]);
    let report = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (ran.code, report)
}

fn row<'a>(report: &'a Value, feature: &str) -> &'a Value {
    let rows = report["features"].as_array().unwrap();
    let row = rows.iter().find(|row| row["feature"] == feature);
    row.unwrap_or_else(|| panic!("no {feature} in {report}"))
}

fn has_circumstance(report: &Value, name: &str) -> bool {
    let all = report["circumstances"].as_array().unwrap();
    all.iter().any(|remark| remark["circumstance"] == name)
}

/// Nothing but the feature, its reason and what follows from it keeps the default from holding.
fn assert_missing(report: &Value, feature: &str, why: &str) {
    let row = row(report, feature);
    assert_eq!(row["state"], "missing", "{report}");
    let told = row["why"].as_str().unwrap();
    assert!(told.contains(why), "{told}");
    assert!(!row["fix"].as_str().unwrap().is_empty());
    assert_eq!(report["default_preset_holds"], false, "{report}");
    let line = report["line"].as_str().unwrap();
    assert!(line.contains("preset agent does not hold"), "{line}");
}

fn assert_refused(world: &World, around: Around, why: &str) {
    let control = world.run(Around::Nothing, &["run", "--", "touch", "control"]);
    assert_eq!(control.code, 0, "{control:?}");
    assert!(world.made("control"));

    let ran = world.run(around, &["run", "--", "touch", "canary"]);

    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.errors.contains(why), "{ran:?}");
    assert!(ran.errors.contains("help: "), "{ran:?}");
    assert!(!world.made("canary"), "{ran:?}");
}

#[test]
fn host_that_is_fit_for_this_suite_holds_every_promise() {
    for who in everybody() {
        let world = World::new(who);
        let (code, report) = doctor(&world, Around::Nothing);

        assert_eq!(code, 0, "{report}");
        assert_eq!(report["version"], 1);
        for feature in ENGINE {
            assert_eq!(
                row(&report, feature)["state"],
                "works",
                "{feature}: {report}"
            );
        }
        assert_eq!(row(&report, "launch")["state"], "works", "{report}");
        let abi = ringfence_sys::landlock::abi().unwrap();
        let line = format!("namespaces+landlock{abi}+seccomp: all promises hold");
        assert_eq!(report["line"], line.as_str());
        assert_eq!(report["facts"]["landlock"]["abi"], abi);
        let limit = &row(&report, "process-limit")["state"];
        let root = who == Who::Caller && rustix::process::geteuid().is_root();
        assert_eq!(limit, if root { "missing" } else { "works" });
        let text = world.run(Around::Nothing, &["doctor"]);
        assert_eq!(text.out.lines().last(), Some(line.as_str()), "{text:?}");
        assert!(!text.out.contains('\u{1b}'), "colour without a terminal");
    }
}

#[test]
fn facts_are_read_back_by_explain() {
    let world = World::new(Who::Caller);
    let (_, report) = doctor(&world, Around::NamespacesOff);
    let file = world.project().join("facts.json");
    std::fs::write(&file, report["facts"].to_string()).unwrap();
    let arguments = ["explain", "--plan", "--host-facts", "facts.json"];

    let ran = world.run(Around::Nothing, &arguments);

    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("landlock"), "{ran:?}");
    assert!(!ran.out.contains("No gaps"), "{ran:?}");
}

#[test]
fn user_namespaces_that_are_switched_off_are_told_and_refused() {
    let before = most_user_namespaces();
    for who in everybody() {
        let world = World::new(who);
        let (code, report) = doctor(&world, Around::NamespacesOff);

        assert_eq!(code, 1, "{report}");
        assert_missing(&report, "user-namespace", "user.max_user_namespaces is 0");
        let fix = row(&report, "user-namespace")["fix"].as_str().unwrap();
        assert!(
            fix.starts_with("sudo sysctl -w user.max_user_namespaces="),
            "{fix}"
        );
        assert_eq!(row(&report, "pid-namespace")["follows"], "user-namespace");
        assert_eq!(row(&report, "landlock")["state"], "works");
        assert_eq!(row(&report, "bwrap")["state"], "missing");
        assert!(has_circumstance(&report, "switch"), "{report}");
        assert_refused(
            &world,
            Around::NamespacesOff,
            "user.max_user_namespaces is 0",
        );
    }
    assert_eq!(most_user_namespaces(), before, "the machine was touched");
}

#[test]
fn weaker_engine_is_used_only_where_it_was_asked_for_and_says_so() {
    for who in everybody() {
        let world = World::new(who);
        let arguments = ["run", "--on-gap", "report", "--", "touch", "canary"];

        let ran = world.run(Around::NamespacesOff, &arguments);

        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(world.made("canary"));
        assert!(
            ran.errors
                .contains("does not hold here: nothing outside the grants"),
            "{ran:?}"
        );
        // What does not hold for one name does not hold for dozens.
        let mut names = ran.errors.lines();
        let in_project = |line: &&str| line.contains("/project/.") && line.contains(" more: ");
        assert!(names.any(|line| in_project(&line)), "{ran:?}");

        let required = ["run", "--on-gap", "report", "--require", "namespaces"];
        let required = [&required[..], &["--", "touch", "required"]].concat();
        let ran = world.run(Around::NamespacesOff, &required);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(!world.made("required"));
    }
}

#[test]
fn host_that_refuses_twice_is_looked_at_as_a_whole() {
    for who in everybody() {
        let world = World::new(who);
        let arguments = ["run", "--on-gap", "report", "--", "touch", "reported"];

        // Without namespaces a launch counts on Landlock, and only learns that there is none by trying.
        let ran = world.run(Around::NeitherWorks, &arguments);

        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(world.made("reported"));
        assert!(
            ran.errors.contains("does not hold here: every file rule"),
            "{ran:?}"
        );
        let why = "user.max_user_namespaces is 0";
        assert_refused(&world, Around::NeitherWorks, why);
    }
}

#[test]
fn filter_that_refuses_namespaces_is_named() {
    const WHY: &str = "a seccomp filter around this process refuses user namespaces";
    for who in everybody() {
        let world = World::new(who);
        let (code, report) = doctor(&world, Around::NamespacesFiltered);

        assert_eq!(code, 1, "{report}");
        assert_missing(&report, "user-namespace", WHY);
        assert!(has_circumstance(&report, "outer-filter"), "{report}");
        assert_refused(&world, Around::NamespacesFiltered, WHY);
    }
}

#[test]
fn filter_that_fakes_an_old_kernel_is_seen_through() {
    const WHY: &str = "a seccomp filter around this process refuses Landlock";
    for who in everybody() {
        let world = World::new(who);
        // The second one lets the version through, so nothing but trying can tell.
        for around in [Around::LandlockHidden, Around::LandlockPretends] {
            let (code, report) = doctor(&world, around);

            assert_eq!(code, 1, "{around:?}: {report}");
            assert_missing(&report, "landlock", WHY);
            assert_eq!(report["facts"]["landlock"]["abi"], 0);
            assert_eq!(row(&report, "user-namespace")["state"], "works");
            assert_refused(&world, around, WHY);
        }
    }
}

#[test]
fn landlock_that_is_used_up_is_told() {
    const WHY: &str = "sixteen layers of Landlock are in force already";
    for who in everybody() {
        let world = World::new(who);
        let (code, report) = doctor(&world, Around::LandlockFull);

        assert_eq!(code, 1, "{report}");
        assert_missing(&report, "landlock", WHY);
        assert_refused(&world, Around::LandlockFull, WHY);
    }
}

#[test]
fn mounts_that_can_only_be_made_by_path_are_told() {
    const WHY: &str = "a seccomp filter around this process refuses mounts";
    for who in everybody() {
        let world = World::new(who);
        let (_, report) = doctor(&world, Around::MountCallsHidden);

        // Whether anything holds now is up to the other engines; this one must not be claimed.
        assert_eq!(row(&report, "mount-api")["state"], "missing", "{report}");
        let line = report["line"].as_str().unwrap();
        assert!(!line.starts_with("namespaces"), "{line}");
        let arguments = ["run", "--engine", "namespaces", "--", "touch", "canary"];
        let control = world.run(Around::Nothing, &[&arguments[..5], &["control"]].concat());
        assert_eq!(control.code, 0, "{control:?}");
        let ran = world.run(Around::MountCallsHidden, &arguments);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(ran.errors.contains(WHY), "{ran:?}");
        assert!(world.made("control") && !world.made("canary"));
    }
}

#[test]
fn launch_that_fails_for_a_reason_no_probe_knows_is_told() {
    const WHY: &str = "could not build the new root";
    for who in everybody() {
        let world = World::new(who);
        let (code, report) = doctor(&world, Around::PivotRefused);

        assert_eq!(code, 1, "{report}");
        for feature in ENGINE {
            assert_eq!(
                row(&report, feature)["state"],
                "works",
                "{feature}: {report}"
            );
        }
        assert_eq!(row(&report, "launch")["state"], "missing", "{report}");
        assert_eq!(report["default_preset_holds"], false);
        assert!(report["line"].as_str().unwrap().contains(WHY), "{report}");
        assert_refused(&world, Around::PivotRefused, WHY);
    }
}

#[test]
fn second_listener_costs_the_names_that_are_not_there() {
    for who in everybody() {
        let world = World::new(who);
        let (code, report) = doctor(&world, Around::Listener);

        assert_eq!(code, 0, "{report}");
        let listener = row(&report, "seccomp-listener");
        assert_eq!(listener["state"], "missing");
        let why = listener["why"].as_str().unwrap();
        assert!(why.contains("has a listener already"), "{why}");
        // All but one thing holds, and that one is named: nobody can be asked about names.
        let ran = world.run(Around::Listener, &["run", "--", "touch", "made"]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(ran.errors.contains("a protected name"), "{ran:?}");
        assert!(!world.made("made"));
        let accepted = ["run", "--on-gap", "report", "--", "touch", "made"];
        let ran = world.run(Around::Listener, &accepted);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(world.made("made"));
    }
}

#[test]
fn inside_a_session_nothing_more_is_promised() {
    for who in everybody() {
        let world = World::new(who);
        let nested = |arguments: &[&str]| -> Ran {
            let outer = ["run", "--", "./ringfence"];
            world.run(Around::Nothing, &[&outer[..], arguments].concat())
        };
        let ran = nested(&["doctor", "--json"]);

        assert_eq!(ran.code, 1, "{ran:?}");
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        assert!(has_circumstance(&report, "ringfence-session"), "{report}");
        assert_missing(
            &report,
            "user-namespace",
            "a seccomp filter around this process",
        );
        let fix = row(&report, "user-namespace")["fix"].as_str().unwrap();
        assert!(fix.contains("outside the ringfence session"), "{fix}");

        let ran = nested(&["run", "--", "touch", "canary"]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(
            ran.errors.contains("outside the ringfence session"),
            "{ran:?}"
        );
        assert!(!world.made("canary"));
    }
}

/// The switch belongs to a pid namespace, so it can be turned in one of our own.
#[test]
fn where_no_program_may_run_from_memory_nothing_starts_and_doctor_says_so() {
    let world = World::new(Who::Caller);
    let inside = |forbid: &str, arguments: &str| {
        let program = world.program();
        let script = format!("{forbid}; exec {} {arguments}", program.display());
        std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "--pid", "--fork"])
            .args(["--mount-proc", "--kill-child", "sh", "-ec", &script])
            .current_dir(world.project())
            .output()
            .unwrap()
    };
    let free = inside("true", "run -- touch free");
    assert_eq!(free.status.code(), Some(0), "{free:?}");
    assert!(world.made("free"));

    let forbid = "echo 2 > /proc/sys/vm/memfd_noexec";
    let refused = inside(forbid, "run -- touch canary");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(125), "{refused:?}");
    assert!(said.contains("vm.memfd_noexec"), "{said}");
    assert!(!world.made("canary"));
    let doctor = inside(forbid, "doctor");
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains("vm.memfd_noexec"), "{said}");
}
