//! Has the linker put what runs at every start side by side, and pack what has to be relocated.
//!
//! Most of the program is for other commands than `run`. Scattered among it, what a start needs
//! touches nearly every part of the file, and the kernel maps sixteen pages around each place that is
//! touched, one by one if the file was paged in that way; and takes as many away at the end.
//! `start.ld` says what belongs together.
//!
//! A static program that may lie anywhere has some six thousand addresses to fill in before its first
//! instruction. As a list they take 140 KiB, which are read at every start; packed, 2 KiB. A static program
//! brings along what unpacks them. Any other counts on the C library of the machine, where musl before 1.2.4
//! does not know how and the program crashes, so there they stay a list.
//!
//! Otherwise nothing depends on either but the time of a start.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=start.ld");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={PLAIN}");
    let variable = |name: &str| Some(env::var_os(name)?.to_string_lossy().into_owned());
    for argument in link_arguments(&variable) {
        println!("cargo::rustc-link-arg-bin=ringfence={argument}");
    }
}

/// What the linker is told, for a build with such variables.
pub(crate) fn link_arguments(variable: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
    // Where it was measured. Other linkers know no such scripts, and unoptimised functions are others.
    let measured = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_ENV", "musl")
        && is("OPT_LEVEL", "3");
    if !measured || is_toolchain_chosen(variable) {
        return Vec::new();
    }
    let directory = variable("CARGO_MANIFEST_DIR").unwrap_or_default();
    let mut arguments = vec![format!("-T{directory}/start.ld")];
    // Static unless somebody says otherwise. `CARGO_CFG_TARGET_FEATURE` would be the place to ask, but
    // Cargo lists `crt-static` there in neither case.
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if !flags.contains("-crt-static") {
        arguments.push("-Wl,-z,pack-relative-relocs".to_owned());
    }
    arguments
}

/// Whether somebody wants a linker of his own, which may know no such scripts either, or a C library of
/// his own (`link-self-contained`), which may be too old to unpack anything.
fn is_toolchain_chosen(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    variable(PLAIN).is_some()
        || variable("RUSTC_LINKER").is_some()
        || flags.contains("fuse-ld")
        || flags.contains("linker")
        || flags.contains("self-contained")
}

/// For whoever has such a linker without saying so.
const PLAIN: &str = "RINGFENCE_PLAIN_LINK";
