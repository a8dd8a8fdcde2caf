//! Climbing past the top: whatever lies under the new root must not be reached by `..`.

use ringfence_core::plan::Step;
use ringfence_testkit::{Hands, binaries, denied, for_each_user, op};

#[test]
fn above_the_root_is_the_root() {
    for_each_user(binaries!(), |world| {
        let up = "../".repeat(40);
        let climb = |path: std::path::PathBuf| format!("{up}{}", path.display());
        let from_root = format!("/{}", climb(world.home(".ssh/id_canary")));
        let cases = [
            denied(op!["read", climb(world.home(".ssh/id_canary"))], "ENOENT"),
            denied(op!["read", climb(world.home(".netrc"))], "EACCES"),
            denied(op!["read", from_root], "ENOENT"),
            denied(op!["write", climb(world.outside("canary"))], "EROFS"),
            denied(
                op!["chmod", climb(world.outside("canary")), "0o600"],
                "EROFS",
            ),
        ];
        for hands in Hands::ALL {
            world.check(&world.setup().by(hands), &cases);
        }
        world.check_confined(&world.setup().without(Step::Landlock), &cases);
    });
}

/// Nothing of the host's own mounts is left in sight: only the copies with their flags.
#[test]
fn no_mount_of_the_host_is_left() {
    for_each_user(binaries!(), |world| {
        for hands in Hands::ALL {
            let setup = world.setup().by(hands);
            let lacking = world.inside(&setup, ["mounts", "nosuid"]);
            assert_eq!(lacking.line(), "ok:");
            let mounts = world.run(&setup, ["cat", "/proc/self/mountinfo"]);
            let at_root = mounts
                .lines
                .iter()
                .filter(|line| line.split(' ').nth(4) == Some("/"));
            assert_eq!(at_root.count(), 1, "{}", mounts.text());
        }
    });
}
