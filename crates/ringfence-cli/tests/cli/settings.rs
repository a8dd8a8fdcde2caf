use crate::world::{World, squeeze};

const SETTINGS: &str = r#"{
  // Everything with an origin of its own.
  "preset": "strict",
  "git": "write",
  "tmp": "host",
  "on_gap": "report",
  "secrets": { "hide": ["~/notes"] },
  "protect": { "add": ["deploy"], "allow": [".vscode"] },
  "network": { "hosts": ["example.org", "*.example.net:8443"], "loopback_out": [5432] },
  "env": { "allow": ["MY_*"], "set": { "CI": "1" } },
  "limits": { "wall": "10m", "memory": "2GiB", "processes": "none" },
  "terminal": { "sandbox": { "additional_executable_paths": ["~/bin"] } },
  "linux": { "limits": { "wall": "20m" } },
}
"#;

fn world() -> World {
    let world = World::new();
    world.user_settings(SETTINGS);
    world.write("home/bin/tool", "");
    world
}

#[test]
fn show_names_the_origin_of_every_value() {
    let ran = world().run(&[
        "settings",
        "show",
        "--write",
        "/usr/share",
        "--limit",
        "cpu=5m",
    ]);

    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(ran.golden_without_machine());
}

#[test]
fn show_is_data_for_programs() {
    let ran = world().run(&["settings", "show", "--json"]);

    let parsed: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(parsed["version"], 1);
    assert_eq!(parsed["preset"]["value"], "strict");
    assert_eq!(parsed["preset"]["origin"]["line"], 3);
    assert_eq!(parsed["limits"]["wall"]["value"], 1200);
    assert_eq!(parsed["limits"]["processes"]["value"], "none");
    let rules = parsed["files"]["rules"].as_array().unwrap();
    assert!(
        rules
            .iter()
            .any(|rule| rule["path"] == "[HOME]/notes" && rule["access"] == "none"),
        "{rules:#?}"
    );
}

#[test]
fn what_a_project_widens_is_listed_and_ignored() {
    let world = World::new();
    world.project_settings(
        r#"{
  "preset": "track",
  "network": { "mode": "all" },
  "git": "full",
  "secrets": { "show": ["~/.ssh"], "hide": ["../src"] },
  "env": { "allow": ["AWS_SECRET_ACCESS_KEY"], "set": { "PATH": "/evil" } },
  "limits": { "processes": "none" },
  "on_gap": "report",
  "agent": { "sandbox_permissions": { "allow_fs_write_all": true } },
}
"#,
    );

    let shown = world.run(&["settings", "show"]);
    let checked = world.run(&["settings", "check"]);
    let explained = world.run(&[
        "explain",
        "../.ssh/id_ed25519",
        "src/main.rs",
        "/usr",
        "--host",
        "example.org",
        "--env",
        "AWS_SECRET_ACCESS_KEY",
    ]);

    let ignored = shown.out.split("\nignored").nth(1).unwrap();
    let columns: Vec<String> = ignored.lines().map(squeeze).collect();
    insta::assert_snapshot!("widening_ignored", columns.join("\n"));
    assert!(checked.out.ends_with(&format!("\nignored{ignored}")));
    insta::assert_snapshot!("widening_explained", explained.golden());
}

#[test]
fn a_kind_that_is_not_covered_is_only_tracked_and_says_so() {
    let world = World::new();
    world.user_settings("{ \"terminal\": { \"sandbox\": { \"apply_to\": \"terminal\" } } }");

    let tool = world.run(&["settings", "show", "--kind", "tool"]);
    let terminal = world.run(&["settings", "show", "--kind", "terminal"]);

    assert!(tool.out.contains("note: `apply_to` leaves out tool"));
    assert!(!terminal.out.contains("note:"));
    assert!(terminal.out.contains("kind         terminal"));
}

#[test]
fn paths_of_the_files() {
    let world = World::new();
    world.user_settings("{}");

    insta::assert_snapshot!(world.run(&["settings", "path"]).golden());
    insta::assert_snapshot!(world.run(&["settings", "path", "--json"]).golden());
}

#[test]
fn a_sound_file_is_said_to_be_sound() {
    let world = World::new();
    world.user_settings("{}");

    insta::assert_snapshot!(world.run(&["settings", "check"]).golden());
}

#[test]
fn the_schema_is_json() {
    let ran = World::new().run(&["settings", "schema"]);

    let parsed: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(parsed["title"], "ringfence settings");
    assert!(parsed["properties"]["preset"].is_object());
}

#[test]
fn variables_are_a_layer_between_files_and_flags() {
    let world = World::new();
    world.write("home/data/x", "");
    world.user_settings("{ \"secrets\": { \"hide\": [\"~/data\"] } }");
    let data = world.home().join("data");
    let ask = |flags: &[&str]| {
        let output = world
            .command()
            .env("RINGFENCE_RW", &data)
            .args(["explain", "../data/x"])
            .args(flags)
            .output()
            .unwrap();
        world.ran(&output).out
    };

    assert!(ask(&[]).contains("read, execute and write: environment variable RINGFENCE_RW"));
    assert!(ask(&["--hide", "../data"]).contains("hidden: flag --hide"));
}

/// It may be a name that another project protects: no mistake, and nobody is told at every start.
#[test]
fn a_slip_in_a_name_that_is_allowed_is_noted() {
    let world = World::new();
    world.user_settings("{ \"protect\": { \"allow\": [\".vscodee\", \".envrd\"] } }");
    world.project_settings("{ \"protect\": { \"add\": [\".envrd\"] } }");
    let note = "`protect.allow` has `.vscodee`, which is no protected name";
    let checked = world.run(&["settings", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.out.contains(note), "{checked:?}");
    assert!(
        checked.out.ends_with("did you mean `.vscode`?\n"),
        "{checked:?}"
    );
    let data = world.run(&["settings", "check", "--json"]).out;
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    assert_eq!(data["notes"].as_array().unwrap().len(), 1, "{data}");
    assert_eq!(world.run(&["run", "--", "true"]).errors, "");
    assert!(
        world
            .run(&["run", "-v", "--", "true"])
            .errors
            .contains(note)
    );
}

/// A hundred names that are not there would bury the rest.
#[test]
fn what_does_not_exist_is_summed_up_unless_asked_for() {
    let world = World::new();
    world.write("home/project/.vscode/x", "");

    let short = world.run(&["settings", "show"]).out;
    let long = world.run(&["settings", "show", "-v"]).out;

    assert!(short.contains("[PROJECT]/.vscode  "), "{short}");
    assert!(!short.contains("/.envrc"), "{short}");
    assert!(short.contains("names of the built-in list of files that run later"));
    for name in [
        "[PROJECT]/.envrc (does not exist)",
        "[HOME]/.aws (does not exist)",
    ] {
        assert!(long.contains(name), "{name}: {long}");
    }
    assert!(!long.contains("-v lists them"), "{long}");
}
