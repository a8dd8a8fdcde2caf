//! 55, 71, 73: calls that administer the machine, or reach kernel code that no session needs.

use ringfence_core::plan::Step;
use ringfence_testkit::{Case, binaries, case, denied, for_each_user, op};

const BAD: u64 = u64::MAX;

fn call(number: libc::c_long, words: &[u64], free: &str, confined: &str) -> Case {
    let mut operation = op!["call", number.to_string()];
    operation.extend(words.iter().map(|word| word.to_string().into()));
    case(operation, free, confined)
}

/// All with bad addresses: whoever answers `EFAULT` would have looked.
#[test]
fn none_of_them_reaches_the_kernel() {
    for_each_user(binaries!(), |world| {
        let refused = |number, words: &[u64]| call(number, words, "", "EPERM");
        let cases = [
            refused(libc::SYS_settimeofday, &[BAD, 0]),
            refused(libc::SYS_clock_settime, &[0, BAD]),
            refused(libc::SYS_adjtimex, &[BAD]),
            refused(libc::SYS_clock_adjtime, &[0, BAD]),
            refused(libc::SYS_sethostname, &[BAD, 1]),
            refused(libc::SYS_setdomainname, &[BAD, 1]),
            refused(libc::SYS_reboot, &[BAD, BAD, 0, 0]),
            refused(libc::SYS_init_module, &[BAD, 1, BAD]),
            refused(libc::SYS_finit_module, &[BAD, BAD, 0]),
            refused(libc::SYS_delete_module, &[BAD, 0]),
            refused(libc::SYS_kexec_load, &[BAD, BAD, BAD, BAD]),
            refused(libc::SYS_kexec_file_load, &[BAD, BAD, 0, BAD, 0]),
            refused(libc::SYS_quotactl, &[BAD, BAD, 0, BAD]),
            refused(libc::SYS_swapon, &[BAD, 0]),
            refused(libc::SYS_swapoff, &[BAD]),
            refused(libc::SYS_acct, &[BAD]),
            refused(libc::SYS_syslog, &[3, BAD, 1]),
            refused(libc::SYS_vhangup, &[]),
            refused(libc::SYS_bpf, &[0, BAD, 1]),
            refused(libc::SYS_perf_event_open, &[BAD, 0, BAD, BAD, 0]),
            refused(libc::SYS_fanotify_init, &[0, 0]),
            refused(libc::SYS_fanotify_mark, &[BAD, 1, 1, BAD, BAD]),
        ];
        world.check_confined(&world.setup(), &cases);
    });
}

#[test]
fn what_anybody_may_call_is_refused_too() {
    for_each_user(binaries!(), |world| {
        let user_mode_only = 1;
        let cases = [
            call(libc::SYS_userfaultfd, &[user_mode_only], "ok", "EPERM"),
            // A filter may be added; one that wants to be asked may not.
            call(libc::SYS_seccomp, &[1, 8, BAD], "EFAULT", "EPERM"),
            call(libc::SYS_seccomp, &[1, 0, BAD], "EFAULT", "EFAULT"),
            // Memory at the address zero, executable whatever is asked.
            call(libc::SYS_personality, &[0x0040_0000], "ok", "EPERM"),
        ];
        world.check(&world.setup(), &cases);
        let held = [cases[0].clone(), cases[3].clone()];
        world.mutation(&world.setup().without(Step::Seccomp), &held);
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn ports_and_segments_are_out_of_reach() {
    for_each_user(binaries!(), |world| {
        let cases = [
            call(libc::SYS_iopl, &[3], "", "EPERM"),
            call(libc::SYS_ioperm, &[0, 1, 1], "", "EPERM"),
            call(libc::SYS_modify_ldt, &[0, BAD, 1], "", "EPERM"),
        ];
        world.check_confined(&world.setup(), &cases);
    });
}

#[test]
fn no_program_and_no_protocol_is_put_under_a_socket() {
    for_each_user(binaries!(), |world| {
        let bad = BAD.to_string();
        let option = |level: &str, name: &str| {
            op![
                "call",
                libc::SYS_setsockopt.to_string(),
                &bad,
                level,
                name,
                &bad,
                "8"
            ]
        };
        let cases = [
            case(option("1", "26"), "EBADF", "EPERM"),
            case(option("1", "50"), "EBADF", "EPERM"),
            case(option("1", "51"), "EBADF", "EPERM"),
            case(option("1", "52"), "EBADF", "EPERM"),
            case(option("6", "31"), "EBADF", "ENOPROTOOPT"),
            case(option("17", "100"), "EBADF", "ENOPROTOOPT"),
            // Upper halves change nothing.
            case(option("0xdead00000001", "0xbeef0000001a"), "EBADF", "EPERM"),
            // Ordinary options reach the kernel.
            case(option("1", "2"), "EBADF", "EBADF"),
        ];
        world.check(&world.setup(), &cases);
        let raw = if world.ids().0 == 0 { "ok" } else { "EPERM" };
        let raw = case(op!["socket", "2", "3", "1"], raw, "EPERM");
        world.check(&world.setup(), &[raw]);
        let multipath = denied(op!["socket", "2", "1", "262"], "EPROTONOSUPPORT");
        world.check(&world.setup(), &[multipath]);
    });
}
