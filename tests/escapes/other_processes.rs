//! 72: memory and descriptors of other processes.

use ringfence_core::plan::Step;
use ringfence_testkit::{Canary, Case, binaries, case, for_each_user, op};

/// The ways in, for the process of this number; the memory is read at an address that is not there.
fn cases(process: &str, free: [&str; 5], confined: [&str; 5]) -> Vec<Case> {
    const ATTACH: &str = "16";
    const SEIZE: &str = "0x4206";
    let call = |number: libc::c_long, words: &[&str]| {
        let mut operation = op!["call", number.to_string()];
        operation.extend(words.iter().map(std::ffi::OsString::from));
        operation
    };
    vec![
        case(op!["vm-read", process], free[0], confined[0]),
        case(op!["vm-write", process], free[1], confined[1]),
        case(
            call(libc::SYS_kcmp, &[process, process, "0", "0", "0"]),
            free[2],
            confined[2],
        ),
        case(
            call(libc::SYS_ptrace, &[SEIZE, process, "0", "0"]),
            free[3],
            confined[3],
        ),
        // Last: it leaves the process stopped for a moment.
        case(
            call(libc::SYS_ptrace, &[ATTACH, process, "0", "0"]),
            free[4],
            confined[4],
        ),
    ]
}

#[test]
fn no_process_is_looked_into() {
    for_each_user(binaries!(), |world| {
        let mut canary = Canary::start(world.command("sleep").arg("60"));
        let pid = canary.pid().to_string();
        let free = ["EFAULT", "EFAULT", "ok", "ok", "ok"];
        world.check(&world.setup(), &cases(&pid, free, ["EPERM"; 5]));
        canary.assert_alive();
        // Without the filter there is no such process in here.
        let hidden = cases(&pid, free, ["ESRCH"; 5]);
        world.check_confined(&world.setup().without(Step::Seccomp), &hidden);
        // The first process is there, and closed: with the filter, and without it.
        let first = cases("1", free, ["EPERM"; 5]);
        world.check_confined(&world.setup(), &first);
        world.check_confined(&world.setup().without(Step::Seccomp), &first);
        let bad = u64::MAX.to_string();
        let theft = case(
            op!["call", libc::SYS_pidfd_getfd.to_string(), &bad, "0", "0"],
            "EBADF",
            "EPERM",
        );
        let advice = case(
            op![
                "call",
                libc::SYS_process_madvise.to_string(),
                &bad,
                &bad,
                "1",
                "0",
                "0"
            ],
            "EFAULT",
            "EPERM",
        );
        world.check(&world.setup(), &[theft, advice]);
    });
}
