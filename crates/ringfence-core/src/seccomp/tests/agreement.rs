//! Programs say what the data says.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::decision::{Call, Decision, INT, Verdict};
use super::super::spec::{Arch, FilterSpec};
use super::super::table::Syscall;
use super::super::{compile, judge, rules};
use super::worlds::{ARM, I386, X32_BIT, every_spec, native, telling_values, telling_values_for};

/// How far beyond the table numbers are tried.
const NUMBERS: std::ops::Range<u32> = 0..600;

/// Asks the rules for each number once, not through [`judge`], which looks each call up again.
#[test]
fn every_number_of_every_spec_agrees() {
    let calls = Arch::ALL.map(|arch| {
        let calls = NUMBERS.map(|number| (number, Syscall::numbered(arch, number)));
        (arch, calls.collect::<Vec<_>>())
    });
    for spec in every_spec() {
        let program = compile(spec);
        let known = calls.iter().filter(|(arch, _)| *arch == spec.arch);
        for (number, syscall) in known.flat_map(|(_, calls)| calls) {
            for args in [[0; 6], [u64::MAX; 6]] {
                let expected = match syscall.map(|syscall| rules::decision(spec, syscall)) {
                    None => rules::UNKNOWN,
                    Some(None) => rules::ORDINARY,
                    Some(Some(decision)) => decision.judge(spec, &args),
                };
                let call = native(spec, *number, args);
                let verdict = program.run(&call).verdict;
                assert_eq!(verdict, expected.verdict, "{spec:?} {call:?}");
            }
        }
    }
}

/// Every pair of telling values in the arguments of every call that looks at any.
#[test]
fn every_telling_pair_of_arguments_agrees() {
    for arch in Arch::ALL {
        for spec in [FilterSpec::namespaces(arch), FilterSpec::strictest(arch)] {
            let program = compile(spec);
            for rule in rules::rules(spec) {
                let values = telling_values_for(rule.decision);
                for number in rule.calls.iter().filter_map(|call| call.number(arch)) {
                    for (first, second) in pairs(&values) {
                        for args in [
                            [first, second, 0, 0, 0, 0],
                            [2, first, second, second, 0, 0],
                            [first, 1, second, second, 0, 0],
                        ] {
                            let call = native(spec, u32::from(number), args);
                            assert_eq!(
                                program.run(&call).verdict,
                                rule.decision.judge(spec, &args).verdict,
                                "{spec:?} {call:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

fn pairs(values: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    values
        .iter()
        .flat_map(move |first| values.iter().map(move |second| (*first, *second)))
}

/// Where the kernel reads 32 bits the upper word changes nothing; where it reads 64, setting it
/// never opens anything. The program is asked, not the data.
#[test]
fn no_upper_word_opens_anything() {
    for spec in every_spec() {
        let program = compile(spec);
        for rule in rules::rules(spec) {
            let Decision::Look(look) = rule.decision else {
                continue;
            };
            let values = telling_values_for(rule.decision);
            for number in rule.calls.iter().filter_map(|call| call.number(spec.arch)) {
                let verdict = |args| program.run(&native(spec, u32::from(number), args)).verdict;
                for (position, value) in values
                    .iter()
                    .enumerate()
                    .map(|(at, value)| (at % 4, value & INT))
                {
                    let mut args = [2, 1, 0, 0, 0, 0];
                    args[look.argument.index()] = value;
                    args[position] = value;
                    let short = verdict(args);
                    for at in 0..4 {
                        for upper in [1, 0xdead_beef] {
                            let mut tall = args;
                            tall[at] |= upper << 32;
                            let tall = verdict(tall);
                            assert!(
                                tall == short || short == Verdict::Allow,
                                "{number} {args:x?} {at} {upper:x}: {short:?} became {tall:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The arguments that the kernel declares as `int`, by hand: their upper word is not seen by the
/// kernel, so it must not be seen by the filter either.
#[test]
fn upper_words_of_int_arguments_change_no_verdict() {
    let int_arguments = [
        (Syscall::Socket, &[0, 1, 2][..]),
        (Syscall::Socketpair, &[0, 1, 2]),
        (Syscall::Setsockopt, &[1, 2]),
        (Syscall::Ioctl, &[1]),
        (Syscall::Personality, &[0]),
        (Syscall::Prlimit64, &[0, 1]),
        (Syscall::Setrlimit, &[0]),
        (Syscall::Seccomp, &[0, 1]),
        (Syscall::Setpriority, &[0, 1]),
        (Syscall::IoprioSet, &[0, 1]),
        (Syscall::SchedSetaffinity, &[0]),
        (Syscall::MovePages, &[0]),
        (Syscall::Sendto, &[3]),
        (Syscall::Sendmsg, &[2]),
        (Syscall::Sendmmsg, &[3]),
        (Syscall::Fchmod, &[1]),
        (Syscall::Fchmodat, &[2]),
        (Syscall::Clone, &[0]),
    ];
    let values = telling_values();
    for spec in every_spec() {
        let program = compile(spec);
        for (call, positions) in int_arguments {
            let number = u32::from(call.number(spec.arch).unwrap());
            for value in &values {
                for position in positions {
                    let mut args = [1, 1, 0, 0, 0, 0];
                    args[*position] = value & INT;
                    let short = program.run(&native(spec, number, args)).verdict;
                    args[*position] |= 0xdead_beef << 32;
                    let tall = program.run(&native(spec, number, args)).verdict;
                    assert_eq!(short, tall, "{} {args:x?}", call.name());
                }
            }
        }
    }
}

#[test]
fn foreign_entries_and_x32_never_pass() {
    for spec in every_spec() {
        let program = compile(spec);
        for number in NUMBERS {
            for args in [[0; 6], [u64::MAX; 6]] {
                for arch in [I386, ARM, 0, u32::MAX, !spec.arch.token()] {
                    let call = Call { arch, args, number };
                    assert_eq!(program.run(&call).verdict, Verdict::Kill);
                }
                for bit in [X32_BIT, 0x8000_0000, 0x1_0000] {
                    let call = native(spec, number | bit, args);
                    assert_eq!(program.run(&call).verdict.name(), "ENOSYS");
                }
            }
        }
    }
}

fn any_call() -> impl Strategy<Value = (FilterSpec, Call)> {
    let value = prop_oneof![select(telling_values()), any::<u64>(), 0..64_u64];
    let number = prop_oneof![8 => NUMBERS, 1 => any::<u32>()];
    let arch = prop_oneof![
        20 => Just(None),
        1 => select(vec![I386, ARM, Arch::X86_64.token(), Arch::Aarch64.token()]).prop_map(Some),
        1 => any::<u32>().prop_map(Some),
    ];
    let specs = every_spec();
    (any::<Index>(), arch, number, prop::array::uniform6(value)).prop_map(
        move |(at, arch, number, args)| {
            let spec = specs[at.index(specs.len())];
            (
                spec,
                Call {
                    arch: arch.unwrap_or_else(|| spec.arch.token()),
                    args,
                    number,
                },
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    #[test]
    fn random_calls_agree((spec, call) in any_call()) {
        prop_assert_eq!(compile(spec).run(&call).verdict, judge(spec, &call).verdict);
    }
}
