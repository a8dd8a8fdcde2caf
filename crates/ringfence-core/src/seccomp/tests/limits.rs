//! Limits of processes, written by hand.

use super::super::spec::{Arch, FilterSpec};
use super::super::table::Syscall;
use super::worlds::{Filter, every_filter, native};

#[test]
fn the_limit_of_dumps_stays() {
    for Filter { spec, program } in every_filter() {
        let says = |name: &str, args| {
            let number = Syscall::named(name).unwrap().number(spec.arch).unwrap();
            program
                .run(&native(spec, number.into(), args))
                .verdict
                .name()
        };
        assert_eq!(says("setrlimit", [4, 0x7fff_0000, 0, 0, 0, 0]), "ENOSYS");
        assert_eq!(says("setrlimit", [7, 0x7fff_0000, 0, 0, 0, 0]), "allow");
        assert_eq!(says("prlimit64", [0, 4, 0x7fff_0000, 0, 0, 0]), "ENOSYS");
        assert_eq!(says("prlimit64", [0, 4, 1 << 40, 0, 0, 0]), "ENOSYS");
        assert_eq!(says("prlimit64", [0, 4, 0, 0x7fff_0000, 0, 0]), "allow");
        assert_eq!(says("prlimit64", [0, 7, 0x7fff_0000, 0, 0, 0]), "allow");
    }
}

/// All that a pid namespace shows are the command's own processes, but the first.
#[test]
fn the_first_process_keeps_its_limits() {
    for filter in Arch::ALL.map(FilterSpec::namespaces).map(Filter::new) {
        for (args, expected) in [
            ([1, 7, 0x7fff_0000, 0], "EPERM"),
            ([1, 4, 0x7fff_0000_0000, 0], "EPERM"),
            ([1 << 32 | 1, 7, 0x7fff_0000, 0], "EPERM"),
            ([1, 7, 0, 0x7fff_0000], "allow"),
            ([42, 7, 0x7fff_0000, 0], "allow"),
            ([42, 10, 0x7fff_0000, 0], "EPERM"),
        ] {
            assert_eq!(filter.says("prlimit64", &args), expected, "{args:?}");
        }
    }
}
