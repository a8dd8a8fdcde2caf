//! 35, 36: projects with so many repositories in them that they are mounted over by other calls,
//! which would follow links.

use std::fs;
use std::time::{Duration, Instant};

use ringfence_testkit::{Exchange, Snapshot, World, binaries, case, denied, for_each_user, op};

use crate::git_metadata::{host, inside, level};

/// More than are mounted one by one.
const MANY: usize = 24;

fn repositories(world: &World) {
    host(
        world,
        &world.project(""),
        &format!(
            "for i in $(seq 1 {MANY}); do git init -q a/b$i; done
             mkdir -p a/link a/b1/deeper; git init -q a/b1/deeper/still
             echo 'gitdir: ../b1/.git' > a/link/.git
             echo x > a/file; ln -s ../file a/b2/to-file; ln -s a to-a"
        ),
    );
}

/// Each has the same mounts as it would have alone, with the same rights, and links are followed
/// as everywhere.
#[test]
fn many_are_held_as_a_few_are() {
    for_each_user(binaries!(), |world| {
        repositories(world);
        let script = "awk '{ print $5, $6 }' /proc/self/mountinfo | grep /project/a | sort";
        let done = inside(world, &level(world, "hidden"), script);
        done.assert_status(0);
        let mut expected = Vec::new();
        for i in 1..=MANY {
            expected.push((format!("a/b{i}"), "rw,nosuid,nodev"));
            expected.push((format!("a/b{i}/.git"), "ro,nosuid,nodev,noexec"));
        }
        for pinned in ["a", "a/b1/deeper", "a/b1/deeper/still", "a/link"] {
            expected.push((pinned.to_owned(), "rw,nosuid,nodev"));
        }
        for closed in ["a/b1/deeper/still/.git", "a/link/.git"] {
            expected.push((closed.to_owned(), "ro,nosuid,nodev,noexec"));
        }
        expected.sort();
        let mut seen: Vec<(String, &str)> = Vec::new();
        for line in &done.lines {
            let (path, flags) = line.split_once(' ').unwrap();
            let below = path.split_once("/project/").unwrap().1;
            seen.push((below.to_owned(), flags.split(",relatime").next().unwrap()));
        }
        seen.sort();
        assert_eq!(seen, expected, "{}", done.stderr);

        let mut cases = Vec::new();
        for name in ["a", "a/b1", "a/b1/deeper", "a/b24", "a/link"] {
            let moved = format!("{name}.moved");
            let (name, moved) = (world.project(name), world.project(moved));
            cases.push(denied(op!["rename", &name, &moved], "EBUSY"));
        }
        cases.extend([
            denied(op!["create", world.project("a/b24/.git/x")], "EROFS"),
            denied(op!["read", world.project("a/link/.git")], "EACCES"),
            denied(
                op!["list", world.project("a/b1/deeper/still/.git/hooks")],
                "ENOENT",
            ),
            case(op!["read", world.project("a/b2/to-file")], "ok", "ok"),
            case(op!["read", world.project("to-a/b2/to-file")], "ok", "ok"),
        ]);
        world.check_confined(&level(world, "hidden"), &cases);
    });
}

/// Long enough for some hundred launches.
const TIME: Duration = Duration::from_secs(4);

/// A directory above a repository is a link at one moment and none at the next. Whatever is mounted,
/// nothing that the link leads to is.
#[test]
fn no_mount_follows_a_link_that_appears() {
    for_each_user(binaries!(), |world| {
        repositories(world);
        let link = world.path("other/link");
        // An absolute one would be looked up in the root that is about to go.
        std::os::unix::fs::symlink("../../outside/dir", &link).unwrap();
        fs::create_dir(world.outside("dir/.git")).unwrap();
        world.own();
        let outside = Snapshot::of([world.outside("")]);
        let swaps = Exchange::of(&world.project("a/b7"), &link, |number| {
            // As long as one launch takes to mount what it has found.
            Duration::from_micros(200 * (number % 7))
        });
        let start = Instant::now();
        let (mut launched, mut refused, mut ended) = (0, 0, 0);
        let setup = level(world, "hidden");
        while start.elapsed() < TIME {
            let done = inside(world, &setup, "grep -c /outside /proc/self/mountinfo; true");
            match done.status {
                0 => launched += 1,
                125 => refused += 1,
                // The name was there without its mount when it was looked at.
                _ => ended += 1,
            }
            let wrong = done.lines.iter().any(|line| line != "0");
            assert!(!wrong, "{:?} {}", done.lines, done.stderr);
            outside.assert_same([world.outside("")]);
        }
        let swaps = swaps.count();
        ringfence_testkit::say(&format!(
            "{swaps} exchanges, {launched} launches, {refused} refusals, {ended} ended, no mount elsewhere"
        ));
        assert!(launched + ended > 0, "the race was never run");
    });
}
