//! Real launches, each with an unconfined control first, as whoever runs the tests and, when that
//! is root, as a plain user as well.
#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "the whole crate is a test module"
)]

mod exchanged;
mod granted;
mod handle;
mod programs;
mod world;
