//! The seccomp filter: which system calls a session may make at all.
//!
//! Pure: a [`FilterSpec`] goes in, a [`Program`] for the kernel comes out, and the same data can be
//! asked directly ([`judge`]) and in words ([`explain`]). Nothing here loads a filter, knows a
//! kernel version or reads a policy.
//!
//! # What the filter is for
//!
//! Three things no other layer does. It closes the ways around the other layers (new namespaces
//! and mounts, file handles, rings with old credentials, sockets that port rules do not see, keys
//! of the host's session). It closes the calls that reach into other processes and the terminal.
//! And it keeps the parts of the kernel that a build or a test never needs out of reach, so that a
//! bug there is not a way out.
//!
//! # Why ordinary calls are allowed and unknown ones are not
//!
//! The filter has to let compilers, language runtimes, version control and test suites work
//! without anybody tuning it, and files, processes and the network are already held by namespaces
//! and Landlock. So every call in [`table`] has been judged once:
//!
//! - **dangerous**: refused, with `EPERM` where the kernel itself would say so to a user without
//!   rights, which programs report well; with `ENOSYS` where programs carry a fallback for older
//!   kernels (`clone3`, `io_uring`), so that they take it instead of giving up;
//! - **ordinary**: allowed. An allow-list of calls would refuse nothing more of weight here, and
//!   would break each time a libc starts to use another harmless call;
//! - **not in the table**, also every number a future kernel adds: `ENOSYS`, the answer of a kernel
//!   that lacks the call. Programs must cope with it anyway, and a new way to do an old thing
//!   (as `fchmodat2`, `open_tree_attr` and `fchroot` were) is closed until somebody has judged it.
//!
//! Socket families, types and protocols are an allow-list, since there the dangerous ones are the
//! many and the needed ones are the few.
//!
//! # Foreign calls
//!
//! A call through another architecture's entry (`int 0x80` and 32-bit programs on x86-64, 32-bit
//! Arm on arm64) has other numbers, so no rule could judge it. It ends the process: an error code
//! would leave a 32-bit program running that cannot even exit, and no 64-bit program uses that
//! entry by accident. x32 calls share the native entry and set a bit in the number, which puts
//! them far above the table: `ENOSYS`, what a kernel without x32 says, and also the answer to `-1`
//! and other impossible numbers, which must not kill.
//!
//! # What a filter cannot see
//!
//! Only registers, never memory. Where what matters lies behind a pointer, the whole call is
//! refused (`clone3`) or another layer must hold (paths of sockets, names of files).
//!
//! Set-id bits are refused in every call of the `chmod` family, the only calls that put them on a
//! file with content. Creation modes are not looked at, since `openat2` keeps its mode in memory
//! and every `openat` would have to run the program: a file created with the bits is empty, and
//! whatever first fills it (write, truncate, allocate, copy, splice) clears them, unless the writer
//! has `CAP_FSETID`, which no session has; `mkdir` drops them by itself. What remains is one way to
//! a set-group-id file of the session's own group: created without group execution, filled, and
//! given that right by an access control list. A report of files left behind has to look for it.
//!
//! Descriptors that a session is born with are not judged either: a datagram socket as standard
//! input could be pointed at the host by whoever holds it, so the launcher must not pass one.
//!
//! # Shape
//!
//! [`rules`] is data, each entry with its reason; [`decision`] says what such data means; [`compile`]
//! turns it into a balanced search over call numbers; [`bpf`] is the instruction set and a machine
//! for it. Tests hold program and data against each other, over every spec, and against a recorded
//! table of verdicts.

mod arguments;
mod bpf;
mod compile;
mod creating;
mod decision;
mod explain;
mod rules;
mod sockets;
mod spec;
mod table;
#[cfg(test)]
mod tests;

pub use bpf::{Instruction, Program, Run};
pub use compile::compile;
pub use decision::{Call, Errno, Judgement, Verdict};
pub use explain::{Explanation, UnknownSyscall, explain};
pub use rules::judge;
pub use spec::{
    Arch, Creating, FilterSpec, GroupSignals, HostProcesses, InetSockets, Listening, RouteQueries,
    SetIdBits, SystemIpc, Tracing, UnixSockets,
};
pub use table::Syscall;
