//! Has the linker put what runs at every start side by side.
//!
//! Most of the program is for other commands than `run`. Scattered among it, what a start needs
//! touches nearly every part of the file, and the kernel maps sixteen pages around each place that is
//! touched, one by one if the file was paged in that way; and takes as many away at the end.
//! `start.ld` says what belongs together. Nothing depends on it but the time of a start.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=start.ld");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={PLAIN}");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // Where it was measured. Other linkers know no such scripts, and unoptimised functions are others.
    let measured = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_ENV", "musl")
        && is("OPT_LEVEL", "3");
    if measured && !is_linker_chosen() {
        let directory = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo::rustc-link-arg-bin=ringfence=-T{directory}/start.ld");
    }
}

/// Whether somebody wants a linker of his own, which may know no such scripts either.
fn is_linker_chosen() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    env::var_os(PLAIN).is_some()
        || env::var_os("RUSTC_LINKER").is_some()
        || flags.contains("fuse-ld")
        || flags.contains("linker")
}

/// For whoever has such a linker without saying so.
const PLAIN: &str = "RINGFENCE_PLAIN_LINK";
