//! Random trees and random operations: whatever happens inside, nothing outside changes.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ringfence_testkit::{Snapshot, World, binaries, for_each_user, op};

/// How many trees, for each user.
const TREES: u32 = 60;
/// Places that operations are done at and with, by their numbers.
const PLACES: usize = 40;

/// One operation: which, where, and with what.
type Act = (u8, usize, usize);

fn any_acts() -> impl Strategy<Value = Vec<Act>> {
    proptest::collection::vec((0..22_u8, 0..PLACES, 0..PLACES), 30..120)
}

/// What the tree has before the session starts.
#[derive(Clone, Debug)]
enum Planted {
    Directory(usize),
    File(usize),
    HardLink(usize, usize),
    SymbolicLink(usize, usize),
    Relative(usize, usize),
    Pipe(usize),
}

fn any_planted() -> impl Strategy<Value = Vec<Planted>> {
    let place = 0..PLACES;
    let one = prop_oneof![
        place.clone().prop_map(Planted::Directory),
        place.clone().prop_map(Planted::File),
        (place.clone(), place.clone()).prop_map(|(a, b)| Planted::HardLink(a, b)),
        (place.clone(), place.clone()).prop_map(|(a, b)| Planted::SymbolicLink(a, b)),
        (place.clone(), place.clone()).prop_map(|(a, b)| Planted::Relative(a, b)),
        place.prop_map(Planted::Pipe),
    ];
    proptest::collection::vec(one, 0..20)
}

/// Places inside the project, among them protected names, and outside of it, by several spellings.
fn places(world: &World) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = [
        "a",
        "a/a",
        "a/b",
        "a/b/c",
        "b",
        "b/a",
        "c",
        "c/c",
        "d",
        "d/../b",
        "src",
        "src/file",
        ".git",
        ".git/config",
        ".git/hooks/x",
        ".vscode",
        ".vscode/tasks.json",
        ".github",
        ".github/workflows",
        ".cargo/config.toml",
        ".envrc",
        "../outside/canary",
        "../outside/new",
        "a/../../outside/dir",
        "..",
    ]
    .iter()
    .map(|name| world.project(name))
    .collect();
    for name in ["canary", "dir", "dir/canary", "empty", "new", ""] {
        places.push(world.outside(name));
    }
    for name in [
        ".bashrc",
        ".ssh",
        ".ssh/id_canary",
        ".netrc",
        ".config/app/plain",
    ] {
        places.push(world.home(name));
    }
    places.push(world.path("other/src/canary"));
    places.push("/etc/ringfence-new".into());
    places.push("/proc/self/root/etc/ringfence-new".into());
    places.push(world.path("bin/probe"));
    assert_eq!(places.len(), PLACES);
    places
}

fn operation((what, at, with): Act, places: &[PathBuf]) -> Vec<OsString> {
    let (at, with) = (&places[at], &places[with]);
    match what {
        0 => op!["write", at],
        1 => op!["append", at],
        2 => op!["create", at],
        3 => op!["overwrite", at],
        4 => op!["truncate", at],
        5 => op!["mkdir", at],
        6 => op!["rmdir", at],
        7 => op!["unlink", at],
        8 => op!["rename", at, with],
        9 => op!["exchange", at, with],
        10 => op!["link", at, with],
        11 => op!["symlink", at, with],
        12 => op!["fifo", at],
        13 => op!["device", at],
        14 => op!["chmod", at, "0o711"],
        15 => op!["chown", at],
        16 => op!["utimes", at],
        17 => op!["setxattr", at],
        18 => op!["chdir", at],
        19 => op!["unix-listen", at],
        20 => op!["open-truncating", at],
        _ => op!["read", at],
    }
}

/// Lays the tree out, as far as its parts fit together; only ever in the project.
fn plant(world: &World, planted: &[Planted], places: &[PathBuf]) {
    let project = world.project("");
    let inside = |index: &usize| {
        let path = &places[*index];
        let plain =
            path.starts_with(&project) && !path.components().any(|part| part.as_os_str() == "..");
        plain.then_some(path)
    };
    for each in planted {
        let _ = match each {
            Planted::Directory(at) => inside(at).map(fs::create_dir_all),
            // Never through what is there already: a pipe would wait for a reader.
            Planted::File(at) => inside(at).map(|at| fs::File::create_new(at).map(|_file| ())),
            // Hard links that were there before are promised nothing, so none leads out.
            Planted::HardLink(at, to) => inside(at)
                .zip(inside(to))
                .map(|(at, to)| fs::hard_link(to, at)),
            Planted::SymbolicLink(at, to) => {
                inside(at).map(|at| std::os::unix::fs::symlink(&places[*to], at))
            }
            Planted::Relative(at, to) => inside(at).map(|at| {
                let target = places[*to]
                    .strip_prefix(world.path(""))
                    .unwrap_or(&places[*to]);
                std::os::unix::fs::symlink(PathBuf::from("..").join(target), at)
            }),
            Planted::Pipe(at) => inside(at).map(|at| {
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                let kind = rustix::fs::FileType::Fifo;
                Ok(rustix::fs::mknodat(rustix::fs::CWD, at, kind, mode, 0)?)
            }),
        };
    }
}

fn one(world: &World, planted: &[Planted], acts: &[Act]) -> (usize, usize) {
    let project = world.project("");
    fs::remove_dir_all(&project).unwrap();
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(project.join("src/file"), "project\n").unwrap();
    let places = places(world);
    plant(world, planted, &places);
    world.own();
    let mut guarded = world.guarded().to_vec();
    guarded.push("/etc/ringfence-new".into());
    let before = Snapshot::of(&guarded);
    // Something to begin with, unless the tree has it already.
    let mut script = op!["mkdir", &places[0]];
    for directory in [2, 4, 6, 8] {
        script.extend(op![",", "mkdir", &places[directory]]);
    }
    for act in acts {
        script.push(OsString::from(","));
        script.extend(operation(*act, &places));
    }
    let done = world.inside(&world.setup(), &script);
    before.assert_same(&guarded);
    // A tree with a link at a protected name is refused; every other runs to its end.
    match done.status {
        125 => (0, 0),
        0 => {
            let worked = done.lines.iter().filter(|line| line.starts_with("ok"));
            (1, worked.count())
        }
        other => panic!("status {other}: {}", done.stderr),
    }
}

#[test]
fn nothing_outside_changes() {
    for_each_user(binaries!(), |world| {
        let mut runner = TestRunner::new(Config {
            cases: TREES,
            // One tree is used after the other; a failure says what was done.
            max_shrink_iters: 16,
            failure_persistence: None,
            ..Config::default()
        });
        let (launches, worked) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let outcome = runner.run(&(any_planted(), any_acts()), |(planted, acts)| {
            let (launched, did) = one(world, &planted, &acts);
            launches.set(launches.get() + launched);
            worked.set(worked.get() + did);
            Ok(())
        });
        outcome.unwrap();
        let (launches, worked) = (launches.get(), worked.get());
        ringfence_testkit::say(&format!(
            "{TREES} trees, {launches} launches, {worked} operations that worked"
        ));
        assert!(launches > 0 && worked > launches * 5, "nothing was tried");
        let _ = fs::set_permissions(world.project(""), fs::Permissions::from_mode(0o755));
    });
}

/// The harness can tell: without the mounts the same operations do change something.
#[test]
fn the_same_operations_are_seen_without_a_layer() {
    for_each_user(binaries!(), |world| {
        let before = world.snapshot();
        let places = places(world);
        let at = places
            .iter()
            .position(|path| *path == world.outside("canary"));
        let script = operation((14, at.unwrap(), 0), &places);
        let setup = world.setup().without(ringfence_core::plan::Step::Root);
        assert_eq!(world.inside(&setup, &script).line(), "ok");
        assert_ne!(before.differences(&world.snapshot()), "");
    });
}
