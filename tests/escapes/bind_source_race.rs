//! 15: what was approved is exchanged for something else while it is being mounted.

use std::fs;
use std::time::{Duration, Instant};

use ringfence_testkit::{Exchange, Snapshot, binaries, for_each_user};

/// Long enough for some hundred launches, of which the races hit many.
const TIME: Duration = Duration::from_secs(8);
const SWAPS: u64 = 10_000;
/// Both outcomes are seen sooner or later.
const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn an_exchanged_source_is_refused_or_the_approved_one() {
    for_each_user(binaries!(), |world| {
        let granted = world.path("other/granted");
        let link = world.path("other/link");
        fs::create_dir(&granted).unwrap();
        std::os::unix::fs::symlink(world.outside(""), &link).unwrap();
        world.own();
        let outside = Snapshot::of([world.outside("")]);
        let swaps = Exchange::of(&granted, &link, |number| {
            // Now and then a pause that is longer than what is raced with.
            Duration::from_millis(if number % 64 == 63 { 2 } else { 0 })
        });
        let start = Instant::now();
        let (mut launched, mut refused) = (0, 0);
        let mut setup = world.setup().settings(world.settings("", &[&granted]));
        // The grant is for the directory; what this races with is everything after that.
        setup.follow_no_links = true;
        // On a busy machine it may take longer until both outcomes were seen.
        let raced = |launched, refused| {
            start.elapsed() >= TIME && swaps.count() >= SWAPS && launched > 0 && refused > 0
        };
        while !raced(launched, refused) {
            assert!(start.elapsed() < PATIENCE, "the race was never run");
            setup.pause = u64::from(launched % 3 == 0);
            let script = format!(
                "echo x > {0}/new; echo x >> {0}/canary; true",
                granted.display()
            );
            let done = world.run(&setup, ["sh", "-c", &script]);
            match done.status {
                0 => launched += 1,
                125 => refused += 1,
                other => panic!("status {other}: {}", done.stderr),
            }
            outside.assert_same([world.outside("")]);
        }
        let swaps = swaps.count();
        ringfence_testkit::say(&format!(
            "{swaps} exchanges, {launched} launches, {refused} refusals, no leak"
        ));
    });
}
