//! 70: kinds of sockets. What is not on the list does not exist.

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, case, denied, for_each_user, landlock_abi, op};

const UNIX: u64 = 1;
const INET: u64 = 2;
const INET6: u64 = 10;
const NETLINK: u64 = 16;

#[test]
fn only_listed_families_exist() {
    for_each_user(binaries!(), |world| {
        let mut cases = Vec::new();
        for family in 0..64_u64 {
            for kind in [1_u64, 2, 3, 5] {
                let confined = match (family, kind) {
                    // The supervisor connects for these, and only to the session's own sockets.
                    (UNIX, 1 | 5) if landlock_abi() < 9 => "ok",
                    (UNIX, _) if landlock_abi() < 9 => "EACCES",
                    // Of netlink only questions about routes; the kernel has two types for them.
                    (INET | INET6, 1 | 2) | (UNIX, 1 | 2 | 5) | (NETLINK, 2 | 3) => "ok",
                    (INET | INET6 | UNIX, _) => "EPERM",
                    (NETLINK, _) => "ESOCKTNOSUPPORT",
                    _ => "EAFNOSUPPORT",
                };
                let socket = op!["socket", family.to_string(), kind.to_string(), "0"];
                cases.push(case(socket, "", confined));
            }
        }
        world.check_confined(&world.setup(), &cases);
    });
}

#[test]
fn families_that_anybody_may_use_are_closed() {
    for_each_user(binaries!(), |world| {
        // Neither is bound to a network namespace, or its kernel code is seldom tested.
        let vsock = denied(op!["socket", "40", "1", "0"], "EAFNOSUPPORT");
        let free = world.probe(&vsock.operation);
        if free.line() == "ok" {
            world.check(&world.setup(), std::slice::from_ref(&vsock));
            let open = world.setup().without(Step::Seccomp);
            world.mutation(&open, &[vsock]);
        } else {
            ringfence_testkit::not_run("vsock, for the control");
        }
        // Netlink, but for questions about routes.
        for protocol in [2, 4, 9, 12, 15, 16, 21] {
            let socket = op!["socket", "16", "3", protocol.to_string()];
            world.check_confined(&world.setup(), &[case(socket, "", "EPROTONOSUPPORT")]);
        }
        // The upper half of the word changes nothing.
        let high = op![
            "call",
            libc::SYS_socket.to_string(),
            (0x1_0000_0000_u64 | 0x28).to_string(),
            "1",
            "0"
        ];
        world.check_confined(&world.setup(), &[case(high, "", "EAFNOSUPPORT")]);
    });
}
