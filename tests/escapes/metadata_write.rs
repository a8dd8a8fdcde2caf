//! 18, 19: changing a file outside without writing to it.

use ringfence_core::plan::Step;
use ringfence_testkit::{Case, World, binaries, denied, for_each_user, op};

fn cases(world: &World) -> Vec<Case> {
    let canary = world.outside("canary");
    vec![
        denied(op!["chmod", &canary, "0o600"], "EROFS"),
        denied(op!["chown", &canary], "EROFS"),
        denied(op!["utimes", &canary], "EROFS"),
        denied(op!["setxattr", &canary], "EROFS"),
        denied(op!["chmod", world.outside("dir"), "0o700"], "EROFS"),
        denied(op!["chmod", world.home(".bashrc"), "0o600"], "EROFS"),
    ]
}

#[test]
fn modes_owners_times_and_attributes_stay() {
    for_each_user(binaries!(), |world| {
        let cases = cases(world);
        world.check(&world.setup(), &cases);
        // Mounts are what holds: Landlock does not look at any of this.
        world.check_confined(&world.setup().without(Step::Landlock), &cases);
        world.mutation(&world.setup().without(Step::Root), &cases);
    });
}

#[test]
fn truncating_counts_as_writing() {
    for_each_user(binaries!(), |world| {
        let canary = world.outside("canary");
        let refused = |errno: &str| {
            vec![
                denied(op!["open-truncating", &canary], errno),
                denied(op!["truncate", &canary], errno),
                denied(op!["overwrite", &canary], errno),
            ]
        };
        world.check(&world.setup(), &refused("EROFS"));
        // Both layers claim it: each holds alone.
        let mounts = world.setup().without(Step::Landlock);
        world.check_confined(&mounts, &refused("EROFS"));
        let landlock = world.setup().without(Step::Root);
        world.check_confined(&landlock, &refused("EACCES"));
    });
}
