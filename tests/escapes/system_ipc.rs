//! 107: shared memory and queues that have names.

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, case, denied, for_each_user, op};

#[test]
fn no_segment_of_the_host_is_found() {
    for_each_user(binaries!(), |world| {
        // A key that this test alone uses.
        let key = 0x7266_0000 + u64::from(std::process::id() & 0xffff);
        let key = key + u64::from(world.ids().0 != 0);
        let (key, create) = (key.to_string(), (0o1000 | 0o600).to_string());
        let shmget = libc::SYS_shmget.to_string();
        assert_eq!(
            world
                .probe(op!["call", &shmget, &key, "4096", &create])
                .line(),
            "ok"
        );
        let find = op!["call", &shmget, &key, "0", "0"];
        let cases = [denied(find, "ENOENT")];
        world.check(&world.setup(), &cases);
        world.check_confined(&world.setup().without(Step::Seccomp), &cases);
        let queue = case(
            op!["call", libc::SYS_msgget.to_string(), &key, &create],
            "",
            "ok",
        );
        world.check_confined(&world.setup(), &[queue]);
        // What was made inside is not outside.
        let outside = world.probe(op!["call", libc::SYS_msgget.to_string(), &key, "0"]);
        assert_eq!(outside.line(), "ENOENT");
        let removed = std::process::Command::new("ipcrm")
            .args(["-M", &key])
            .status();
        assert!(removed.unwrap().success());
    });
}
