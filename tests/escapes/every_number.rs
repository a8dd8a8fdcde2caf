//! 74, 75: every call there is, and those there will be.

use ringfence_core::seccomp::{Arch, Call, FilterSpec, UnixSockets, Verdict, judge};
use ringfence_testkit::{binaries, for_each_user, landlock_abi};

#[test]
fn every_number_gets_the_verdict_of_the_rules() {
    for_each_user(binaries!(), |world| {
        let arch = if cfg!(target_arch = "x86_64") {
            Arch::X86_64
        } else {
            Arch::Aarch64
        };
        let mut spec = FilterSpec::namespaces(arch);
        if landlock_abi() < 9 {
            spec.unix = UnixSockets::Brokered;
        }
        let done = world.inside(&world.setup(), ["sweep", "0", "600"]);
        let answers = done.line().strip_prefix("ok:").unwrap();
        let (mut refused, mut unknown) = (0, 0);
        let mut wrong = Vec::new();
        for answer in answers.split(' ') {
            let (number, answer) = answer.split_once('=').unwrap();
            if answer == "-" {
                continue;
            }
            let call = Call {
                arch: arch.token(),
                args: [u64::MAX; 6],
                number: number.parse().unwrap(),
            };
            let verdict = judge(spec, &call).verdict;
            // Whatever the kernel, or the supervisor, says to bad arguments.
            if verdict == Verdict::Allow || verdict == Verdict::Ask {
                continue;
            }
            refused += 1;
            unknown += usize::from(verdict.name() == "ENOSYS");
            if answer != verdict.name() {
                wrong.push(format!("{number}: {answer} instead of {}", verdict.name()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // All numbers above the table, and all with the other bit.
        assert!(refused > 700 && unknown > 650, "{refused} {unknown}");
    });
}
