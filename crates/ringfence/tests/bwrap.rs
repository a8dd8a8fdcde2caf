//! Real launches through the system's bubblewrap.
//!
//! This program is its own second stage, so it has a `main` of its own instead of the usual
//! harness: `--exact NAME` runs one test.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::exit,
    reason = "a test program with a main of its own"
)]

#[cfg(target_os = "linux")]
#[path = "launch/world.rs"]
mod world;

#[cfg(target_os = "linux")]
#[path = "launch/granted.rs"]
mod granted;

#[cfg(target_os = "linux")]
#[path = "bwrap/cases.rs"]
mod cases;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    ringfence::shim::run_if_asked();
    if let Some(script) = std::env::var_os("RINGFENCE_TEST_SCRIPT") {
        std::process::exit(cases::run_script(&script));
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let only = arguments
        .iter()
        .position(|argument| argument == "--exact")
        .and_then(|index| arguments.get(index + 1));
    let mut passed = 0;
    let mut failed = Vec::new();
    for (name, case) in cases::ALL {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        match std::panic::catch_unwind(case) {
            Ok(()) => passed += 1,
            Err(_) => failed.push(*name),
        }
        println!(
            "test {name} ... {}",
            if failed.last() == Some(name) {
                "FAILED"
            } else {
                "ok"
            }
        );
    }
    println!("test result: {passed} passed; {} failed", failed.len());
    assert!(failed.is_empty(), "{failed:?}");
}
