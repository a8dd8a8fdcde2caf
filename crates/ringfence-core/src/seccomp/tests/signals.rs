//! Signals: only one number means processes outside.

use super::super::decision::Verdict;
use super::super::spec::GroupSignals;
use super::super::table::Syscall;
use super::worlds::{Filter, every_filter, native};

#[test]
fn only_the_callers_group_is_kept_from_signals() {
    for Filter { spec, program } in every_filter() {
        let number = u32::from(Syscall::Kill.number(spec.arch).unwrap());
        // The kernel looks at the lower half of a process number.
        for group in [0, 1 << 32] {
            let run = program.run(&native(spec, number, [group, 9, 0, 0, 0, 0]));
            let expected = match spec.group_signals {
                GroupSignals::Allowed => "allow",
                GroupSignals::Refused => "EPERM",
            };
            assert_eq!(run.verdict.name(), expected, "{spec:?}");
        }
        for other in [1, 2, u64::MAX, u64::from(u32::MAX) - 6] {
            let run = program.run(&native(spec, number, [other, 9, 0, 0, 0, 0]));
            assert_eq!(run.verdict, Verdict::Allow, "{spec:?}");
        }
    }
}
