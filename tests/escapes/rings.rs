//! 69: rings, whose calls no filter sees.

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, case, for_each_user, op};

#[test]
fn no_ring_is_made_entered_or_changed() {
    for_each_user(binaries!(), |world| {
        let bad = u64::MAX.to_string();
        let setup = op!["call", libc::SYS_io_uring_setup.to_string(), "1", &bad];
        let enter = op![
            "call",
            libc::SYS_io_uring_enter.to_string(),
            &bad,
            "0",
            "0",
            "0",
            "0"
        ];
        let register = op![
            "call",
            libc::SYS_io_uring_register.to_string(),
            &bad,
            "0",
            "0",
            "0"
        ];
        let cases = [
            case(setup, "EFAULT", "ENOSYS"),
            case(enter, "EBADF", "ENOSYS"),
        ];
        world.check(&world.setup(), &cases);
        // Kernels differ in what they look at first.
        world.check_confined(&world.setup(), &[case(register, "", "ENOSYS")]);
        world.mutation(&world.setup().without(Step::Seccomp), &cases[..1]);
    });
}
