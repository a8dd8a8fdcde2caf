//! 25: naming a file by a handle, past every directory that hides it.

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, case, denied, for_each_user, op};

#[test]
fn no_handle_is_made_or_opened() {
    for_each_user(binaries!(), |world| {
        let handle = [denied(op!["handle", world.outside("canary")], "EPERM")];
        world.check(&world.setup(), &handle);
        world.mutation(&world.setup().without(Step::Seccomp), &handle);
        // A bad address: without the filter the kernel would look at it.
        let bad = u64::MAX.to_string();
        let open = op![
            "call",
            libc::SYS_open_by_handle_at.to_string(),
            &bad,
            &bad,
            "0"
        ];
        world.check(&world.setup(), &[case(open, "EFAULT", "EPERM")]);
    });
}
