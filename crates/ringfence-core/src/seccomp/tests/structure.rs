//! The data is sound, and programs have a shape that the kernel takes.

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;

use super::super::bpf::{Instruction, code};
use super::super::decision::{Call, INT, LONG, Verdict};
use super::super::spec::{Arch, FilterSpec};
use super::super::table::Syscall;
use super::super::{Program, compile, rules};
use super::worlds::{every_look, every_spec, native};

#[test]
fn names_and_numbers_are_unique() {
    let names: HashSet<_> = Syscall::ALL.iter().map(|call| call.name()).collect();
    assert_eq!(names.len(), Syscall::ALL.len());
    for arch in Arch::ALL {
        let numbers: Vec<_> = Syscall::ALL
            .iter()
            .filter_map(|call| call.number(arch))
            .collect();
        let distinct: HashSet<_> = numbers.iter().collect();
        assert_eq!(distinct.len(), numbers.len());
    }
}

#[test]
fn well_known_numbers_are_right() {
    let rows = [
        (Syscall::Read, Some(0), Some(63)),
        (Syscall::Open, Some(2), None),
        (Syscall::Socket, Some(41), Some(198)),
        (Syscall::Clone, Some(56), Some(220)),
        (Syscall::Openat, Some(257), Some(56)),
        (Syscall::Clone3, Some(435), Some(435)),
        (Syscall::Fchmodat2, Some(452), Some(452)),
    ];
    for (call, x86_64, aarch64) in rows {
        assert_eq!(call.number(Arch::X86_64), x86_64, "{}", call.name());
        assert_eq!(call.number(Arch::Aarch64), aarch64, "{}", call.name());
        assert_eq!(Syscall::named(call.name()), Some(call));
    }
}

#[test]
fn no_call_has_two_rules() {
    for spec in every_spec() {
        let mut seen = HashMap::new();
        for rule in rules::rules(spec) {
            for call in rule.calls {
                assert!(
                    seen.insert(*call, rule).is_none(),
                    "{} twice in {spec:?}",
                    call.name()
                );
            }
        }
    }
}

#[test]
fn cases_fit_their_mask_and_never_overlap() {
    for look in every_look() {
        for spec in every_spec() {
            let mut seen = HashSet::new();
            for value in look.cases_for(spec).flat_map(|case| case.values) {
                assert_eq!(value & !look.mask, 0, "{look:?}");
                assert!(seen.insert(*value), "{value:#x} twice in {look:?}");
            }
        }
    }
}

/// A mask that keeps some bits of the upper word must keep all of them: half a look at the upper
/// word is a mistake.
#[test]
fn masks_ignore_the_upper_word_or_read_all_of_it() {
    for look in every_look() {
        let upper = look.mask & !INT;
        assert!(upper == 0 || upper == LONG & !INT, "{look:?}");
    }
}

#[test]
fn every_program_is_one_the_kernel_takes() {
    let mut longest = 0;
    for spec in every_spec() {
        let program = compile(spec);
        let instructions = program.instructions();
        longest = longest.max(instructions.len());
        for (at, instruction) in instructions.iter().enumerate() {
            let left = instructions.len() - at - 1;
            let Instruction { code, jt, jf, k } = *instruction;
            match code {
                code::LOAD => assert!(k % 4 == 0 && k < 64),
                code::AND => assert!(left > 0),
                code::JUMP => assert!((k as usize) < left),
                code::IF_ANY_BIT | code::IF_AT_LEAST | code::IF_EQUAL | code::IF_GREATER => {
                    assert!(usize::from(jt.max(jf)) < left);
                    assert_ne!(jt, jf, "a test that tests nothing at {at}");
                }
                code::RETURN => assert_eq!((jt, jf), (0, 0)),
                unknown => panic!("unknown code {unknown:#x}"),
            }
        }
        assert_eq!(
            instructions.last().map(|last| last.code),
            Some(code::RETURN)
        );
    }
    // Far below the kernel's limit, and a jump in size is worth a look.
    assert!(longest <= 320, "{longest} instructions");
    assert!(longest <= Program::LIMIT);
}

#[test]
fn instructions_are_laid_out_as_the_kernel_reads_them() {
    assert_eq!(size_of::<Instruction>(), 8);
    assert_eq!(offset_of!(Instruction, code), 0);
    assert_eq!(offset_of!(Instruction, jt), 2);
    assert_eq!(offset_of!(Instruction, jf), 3);
    assert_eq!(offset_of!(Instruction, k), 4);
}

#[test]
fn the_same_spec_gives_the_same_program() {
    let spec = FilterSpec::namespaces(Arch::X86_64);
    assert_eq!(compile(spec), compile(spec));
}

#[test]
fn common_calls_are_near_the_root() {
    for arch in Arch::ALL {
        let spec = FilterSpec::namespaces(arch);
        let program = compile(spec);
        let steps = |call: Syscall| {
            let number = u32::from(call.number(arch).unwrap());
            let run = program.run(&native(spec, number, [0; 6]));
            assert_eq!(run.verdict, Verdict::Allow, "{}", call.name());
            run.steps
        };
        let common = [
            Syscall::Read,
            Syscall::Write,
            Syscall::Openat,
            Syscall::Close,
            Syscall::Mmap,
            Syscall::Munmap,
            Syscall::Newfstatat,
            Syscall::Futex,
        ];
        for call in common {
            assert!(
                steps(call) <= 12,
                "{} takes {} steps",
                call.name(),
                steps(call)
            );
        }
        // What loading costs: the kernel walks every number through the program.
        let total: usize = (0..=472)
            .map(|number| program.run(&native(spec, number, [0; 6])).steps)
            .sum();
        assert!(total / 473 <= 11, "{} steps on average", total / 473);
    }
}

#[test]
fn the_machine_never_passes_what_it_does_not_understand() {
    let call = Call {
        arch: Arch::X86_64.token(),
        args: [0; 6],
        number: 0,
    };
    let plain = |code, k| Instruction {
        code,
        jt: 0,
        jf: 0,
        k,
    };
    let allow = Verdict::Allow.to_return();
    let broken = [
        vec![],
        vec![plain(code::LOAD, 0)],
        vec![plain(code::LOAD, 8), plain(code::RETURN, allow)],
        vec![plain(code::LOAD, 18), plain(code::RETURN, allow)],
        vec![plain(code::LOAD, 64), plain(code::RETURN, allow)],
        vec![plain(0xffff, 0), plain(code::RETURN, allow)],
        vec![plain(code::JUMP, u32::MAX), plain(code::RETURN, allow)],
        vec![plain(code::RETURN, 0x7ffc_0000)],
        vec![plain(code::RETURN, 0x0005_0000)],
    ];
    for program in broken {
        assert_eq!(Program::new(program).run(&call).verdict, Verdict::Kill);
    }
}
