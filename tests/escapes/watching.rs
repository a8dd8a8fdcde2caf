//! 112: learning about hidden files without opening them.

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, denied, for_each_user, op};

#[test]
fn hidden_files_cannot_be_watched_or_looked_at() {
    for_each_user(binaries!(), |world| {
        let secret = world.home(".ssh/id_canary");
        let cases = [
            denied(op!["watch", &secret], "ENOENT"),
            denied(op!["stat", &secret], "ENOENT"),
            denied(op!["open-path", &secret], "ENOENT"),
            denied(op!["chdir", secret.parent().unwrap()], "ok"),
        ];
        world.check(&world.setup(), &cases);
        // Mounts are what holds: Landlock lets anybody look.
        world.check_confined(&world.setup().without(Step::Landlock), &cases);
        world.mutation(&world.setup().without(Step::Root), &cases[..3]);
    });
}
