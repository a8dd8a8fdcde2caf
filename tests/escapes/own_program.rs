//! 145: the program that starts sessions lies in what a session may write, which puts another in its place.

use std::fs;
use std::path::Path;

use ringfence_core::plan::Step;
use ringfence_testkit::{Done, Setup, World, binaries, copy_program, for_each_user};

use super::git_metadata::host;

/// What is tried, two directories above the program.
const WAYS: &[&str] = &[
    "cp evil x && mv x a/bin/confine",
    "rm a/bin/confine; cp evil a/bin/confine",
    "rm a/bin/confine; ln evil a/bin/confine",
    "mv a/bin a/old; mkdir -p a/bin; cp evil a/bin/confine",
    "mv a old; mkdir -p a/bin; cp evil a/bin/confine",
    "cp -r a b; cp evil b/bin/confine; mv a old; mv b a",
    "mv a/bin/confine x; cp evil a/bin/confine",
];

fn build(world: &World, tools: &Path) {
    host(
        world,
        &world.path(""),
        "rm -rf tools/*; mkdir -p tools/a/bin",
    );
    let program = tools.join("a/bin/confine");
    copy_program(world.path("bin/confine"), &program);
    fs::write(tools.join("evil"), "evil\n").unwrap();
    world.own();
}

fn inside(world: &World, tools: &Path, setup: &Setup, script: &str) {
    let mut command = world.command(tools.join("a/bin/confine"));
    command.arg(setup.to_argument());
    let done = Done::of(command.args([
        "sh",
        "-c",
        &format!("cd '{}'; {script}; true", tools.display()),
    ]));
    done.assert_status(0);
}

#[test]
fn the_program_that_starts_sessions_is_not_replaced() {
    for_each_user(binaries!(), |world| {
        let tools = world.path("tools");
        fs::create_dir(&tools).unwrap();
        world.own();
        let is_evil = || fs::read(tools.join("a/bin/confine")).is_ok_and(|text| text == b"evil\n");
        let setup = world.setup().settings(world.settings("", &[&tools]));
        for script in WAYS {
            build(world, &tools);
            host(world, &tools, &format!("{script}; true"));
            assert!(is_evil(), "on the host: {script}");

            build(world, &tools);
            inside(world, &tools, &setup, script);
            assert!(!is_evil(), "{script}");

            build(world, &tools);
            inside(world, &tools, &setup.clone().without(Step::Root), script);
            assert!(is_evil(), "without mounts: {script}");
        }
    });
}
