//! 33: a directory above a protected name is moved away, and the name is built again in its place.

use std::fs;

use ringfence_core::plan::Step;
use ringfence_testkit::{Setup, World, binaries, for_each_user};

use super::git_metadata::{host, inside};

/// What a session tries, the file that somebody outside would obey then, and the layer without which
/// it works.
const WAYS: &[(&str, &str, Step)] = &[
    (
        "mv .vscode old && mkdir .vscode && echo evil > .vscode/tasks.json",
        ".vscode/tasks.json",
        Step::Root,
    ),
    (
        "mv vendor v2 && mkdir -p vendor/sub/.git/hooks && echo evil > vendor/sub/.git/hooks/pre-commit",
        "vendor/sub/.git/hooks/pre-commit",
        Step::Root,
    ),
    (
        "mv vendor/sub vendor/v2; mkdir -p vendor/sub/.git/hooks && echo evil > vendor/sub/.git/hooks/post-commit",
        "vendor/sub/.git/hooks/post-commit",
        Step::Root,
    ),
    (
        "cp -r vendor copy && echo evil > copy/sub/.git/hooks/x; mv vendor v2; mv copy vendor",
        "vendor/sub/.git/hooks/x",
        Step::Root,
    ),
    (
        "mv .github old2; mkdir -p .github/workflows && echo evil > .github/workflows/ci.yml",
        ".github/workflows/ci.yml",
        Step::Names,
    ),
    (
        "mkdir -p new/workflows && echo evil > new/workflows/cd.yml; mv .github old3; mv new .github",
        ".github/workflows/cd.yml",
        Step::Names,
    ),
    (
        "mkdir -p new/workflows && echo evil > new/workflows/ce.yml; rm -r .github; ln -s new .github",
        ".github/workflows/ce.yml",
        Step::Names,
    ),
];

fn build(world: &World) {
    let script = "rm -rf ./* .vscode .github; mkdir .vscode .github; echo {} > .vscode/tasks.json
                  echo x > .github/CODEOWNERS; git init -q vendor/sub";
    host(world, &world.project(""), script);
}

#[test]
fn a_name_is_not_built_again_where_it_was() {
    for_each_user(binaries!(), |world| {
        for (script, file, layer) in WAYS {
            let evil =
                || fs::read_to_string(world.project(file)).is_ok_and(|text| text == "evil\n");
            build(world);
            host(world, &world.project(""), &format!("{script}; true"));
            assert!(evil(), "on the host: {script}");

            build(world);
            inside(world, &world.setup(), script);
            assert!(!evil(), "{script}");

            build(world);
            let setup = world.setup().without(*layer);
            inside(world, &setup, &format!("{script}; sleep 0.1"));
            assert!(evil(), "without {layer:?}: {script}");
        }
        build(world);
    });
}

/// The project lies in a directory that is given to be written, and nothing in it needs a mount.
#[test]
fn the_project_itself_stays_where_it_is() {
    for_each_user(binaries!(), |world| {
        let away = "mv ../inner ../away && echo evil > ../away/.envrc";
        let project = world.project("inner");
        let build = || host(world, &world.project(""), "rm -rf inner away; mkdir inner");
        let evil = || world.project("away/.envrc").try_exists().unwrap();
        build();
        host(world, &project, away);
        assert!(evil(), "on the host");

        build();
        let settings = world.settings("", &[&world.project("")]);
        let setup = Setup::new(&project, &world.home("")).settings(settings);
        inside(world, &setup, away);
        assert!(!evil() && project.try_exists().unwrap());
    });
}
