//! Unix sockets that the kernel holds: open, and still asked about where a gate needs it.

use super::super::spec::UnixSockets;
use super::super::table::Syscall;
use super::worlds::{Filter, every_filter, native};

#[test]
fn only_connect_tells_passed_sockets_from_open_ones() {
    for Filter { spec, program } in every_filter() {
        let connect = match spec.unix {
            UnixSockets::Open => "allow",
            UnixSockets::Passed => "ask",
            UnixSockets::Brokered | UnixSockets::Refused => continue,
        };
        let says = |call: Syscall, arguments| {
            let number = u32::from(call.number(spec.arch).unwrap());
            program.run(&native(spec, number, arguments)).verdict.name()
        };
        for kind in [1, 2, 5] {
            for call in [Syscall::Socket, Syscall::Socketpair] {
                assert_eq!(says(call, [1, kind, 0, 0, 0, 0]), "allow", "{spec:?}");
            }
        }
        assert_eq!(
            says(Syscall::Connect, [3, 0, 16, 0, 0, 0]),
            connect,
            "{spec:?}"
        );
    }
}
