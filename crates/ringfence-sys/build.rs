//! Builds the program that the first process of a session becomes (`init/main.rs`).
//!
//! It needs no C library, so nothing but the compiler that builds this crate and a linker: the
//! one that comes with the compiler, or else the system's.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=init");
    println!("cargo::rerun-if-changed=build.rs");
    if variable("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(());
    }
    build(with_own_linker).or_else(|first| {
        build(with_system_linker).map_err(|second| {
            format!("the first process's program cannot be built:\n{first}\n{second}")
        })
    })
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}

fn build(linker: fn(&mut Command)) -> Result<(), String> {
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc
        .args(["--edition=2024", "--crate-name=init", "--crate-type=bin"])
        .args(["--target", &variable("TARGET")?])
        .args(["-Copt-level=s", "-Cpanic=abort", "-Cstrip=symbols"])
        // One address for everything: no relocations to work through before the first instruction.
        .args(["-Crelocation-model=static", "-Ctarget-feature=+crt-static"])
        .arg("-o")
        .arg(Path::new(&variable("OUT_DIR")?).join("init"))
        .arg("init/main.rs");
    linker(&mut rustc);
    let output = rustc.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

fn with_own_linker(rustc: &mut Command) {
    rustc
        .args(["-Clinker=rust-lld", "-Clinker-flavor=ld.lld"])
        .args(["-Clink-self-contained=no", "-Clink-arg=--no-rosegment"]);
}

fn with_system_linker(rustc: &mut Command) {
    for argument in ["-nostartfiles", "-nostdlib", "-static"] {
        rustc.arg(format!("-Clink-arg={argument}"));
    }
}
