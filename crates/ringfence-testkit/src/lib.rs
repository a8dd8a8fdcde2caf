//! What the tests of ringfence share: a throwaway [`World`], a `probe` that does single things and
//! says what the kernel answered, and a `confine` that starts it in a sandbox.
//!
//! Unpublished. Everything here ends the test that uses it as soon as something is not as it should
//! be; nothing is skipped without a word.
#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test kit fails the test that uses it"
)]

pub mod errno;
mod exchange;
mod listeners;
mod network;
mod run;
mod setup;
mod snapshot;
mod world;

pub use exchange::Exchange;
pub use listeners::{Canary, Counter, Listeners};
pub use network::{Network, Staged};
pub use run::{Case, Done, case, comes_within, denied, keeps_within, wait_until};
pub use setup::{Hands, Setup, steps};
pub use snapshot::Snapshot;
pub use world::{
    Binaries, CANARY, PLAIN, Who, World, copy_program, for_each_user, is_root, landlock_abi,
    not_run, say,
};

/// The programs of this kit, as cargo built them for the calling test.
#[macro_export]
macro_rules! binaries {
    () => {
        $crate::Binaries {
            probe: env!("CARGO_BIN_EXE_probe"),
            confine: env!("CARGO_BIN_EXE_confine"),
            stage: env!("CARGO_BIN_EXE_stage"),
            tmp: env!("CARGO_TARGET_TMPDIR"),
        }
    };
}

/// An operation of the probe: its name and arguments, texts and paths alike.
#[macro_export]
macro_rules! op {
    ($($part:expr),+ $(,)?) => {
        ::std::vec::Vec::from([$(::std::ffi::OsString::from($part)),+])
    };
}
