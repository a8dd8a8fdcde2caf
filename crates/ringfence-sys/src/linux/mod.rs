//! Linux on `x86_64` and `aarch64`, one file per mechanism.
//!
//! rustix is used wherever it has the call; [`raw`] is for those it lacks.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("ringfence knows the Linux system calls of x86_64 and aarch64 only");

pub mod ahead;
pub mod capabilities;
pub mod cgroup;
#[cfg(all(
    target_arch = "x86_64",
    any(test, all(feature = "program", target_env = "musl"))
))]
mod copying;
pub mod descriptors;
pub mod events;
pub mod exec;
pub mod failure;
pub mod fdpath;
pub mod files;
#[cfg(feature = "program")]
pub mod heap;
pub mod init;
/// The first process's program once more, so that its sources are linted and their tests run.
#[cfg(any(test, clippy))]
#[expect(dead_code, reason = "it runs as a program of its own")]
#[path = "../../init"]
mod init_program {
    use super::init::wire;
    use super::raw::bare;

    mod calls;
    mod life;
}
pub mod keyring;
pub mod landlock;
pub mod loopback;
pub mod mountinfo;
pub mod mounts;
pub mod namespaces;
pub mod notify;
pub mod oldmounts;
pub mod probe;
pub mod process;
pub mod processors;
pub mod procfs;
mod raw;
pub mod ready;
pub mod seccomp;
pub mod signals;
pub mod sockets;
pub mod spawn;
mod stack;
pub mod statmount;
mod subject;
pub mod switches;
#[cfg(feature = "testing")]
pub mod testing;
pub(crate) mod tty;
pub mod wait;

// What macOS waits with can be tried here.
#[cfg(test)]
#[path = "../macos/ready.rs"]
pub mod by_select;

pub use rustix::io::Errno;
pub use rustix::process::{Pid, Signal};
pub use subject::Subject;
