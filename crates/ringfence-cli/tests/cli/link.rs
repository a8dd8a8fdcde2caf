//! What the build script tells the linker.

#[path = "../../build.rs"]
#[expect(dead_code, reason = "it is a program of its own")]
mod build;

#[test]
fn only_a_static_program_has_packed_relocations() {
    let arguments = |flags: &str, other: &str| {
        let measured = [
            ("CARGO_CFG_TARGET_OS", "linux"),
            ("CARGO_CFG_TARGET_ARCH", "x86_64"),
            ("CARGO_CFG_TARGET_ENV", "musl"),
            ("OPT_LEVEL", "3"),
            ("CARGO_MANIFEST_DIR", "/checkout"),
            ("CARGO_ENCODED_RUSTFLAGS", flags),
            (other, "1"),
        ];
        let found = |name: &str| measured.iter().find(|it| it.0 == name);
        build::link_arguments(&|name| found(name).map(|it| it.1.to_owned()))
    };
    let script = "-T/checkout/start.ld";
    let packed = "-Wl,-z,pack-relative-relocs";
    assert_eq!(arguments("", ""), [script, packed]);
    assert_eq!(arguments("-Ctarget-cpu=native", ""), [script, packed]);
    // The machine's own C library may not know how to unpack them.
    let dynamic = "-C\u{1f}target-feature=-crt-static";
    assert_eq!(arguments(dynamic, ""), [script]);
    for chosen in ["RUSTC_LINKER", "RINGFENCE_PLAIN_LINK"] {
        assert_eq!(arguments("", chosen), [""; 0], "{chosen}");
    }
}

/// What Cargo tells a build script is Cargo's to say: so a program is linked, and looked at.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_static_program_is_linked_with_packed_relocations() {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    let directory = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["build.rs", "start.ld"] {
        fs::copy(here.join(file), directory.path().join(file)).unwrap();
    }
    let manifest =
        "[package]\nname = \"ringfence\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(directory.path().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(directory.path().join("src")).unwrap();
    fs::write(directory.path().join("src/main.rs"), "fn main() {}\n").unwrap();
    let linked = |plain: Option<&str>| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--release", "--offline", "--quiet"])
            .args(["--target", "x86_64-unknown-linux-musl", "--target-dir"])
            .arg(directory.path().join("target"))
            .current_dir(directory.path())
            .env_remove("RINGFENCE_PLAIN_LINK");
        if let Some(plain) = plain {
            cargo.env("RINGFENCE_PLAIN_LINK", plain);
        }
        assert!(cargo.status().unwrap().success());
        let program = "target/x86_64-unknown-linux-musl/release/ringfence";
        let program = fs::read(directory.path().join(program)).unwrap();
        (
            dynamic_entry(&program, RELR_SIZE),
            dynamic_entry(&program, RELA_SIZE),
        )
    };
    // The control: without the script's arguments they are a list.
    let (packed, listed) = linked(Some("1"));
    assert_eq!(packed, None);
    assert!(listed.unwrap() > 0);
    let (packed, listed) = linked(None);
    assert!(packed.unwrap() > 0);
    assert_eq!(listed.unwrap_or(0), 0);
}

/// `DT_RELRSZ` and `DT_RELASZ`.
const RELR_SIZE: u64 = 35;
const RELA_SIZE: u64 = 8;

/// What the dynamic section of a 64-bit program says of `wanted`.
fn dynamic_entry(program: &[u8], wanted: u64) -> Option<u64> {
    let word = |at: usize| u64::from_le_bytes(program[at..at + 8].try_into().unwrap());
    let half = |at: usize| u16::from_le_bytes(program[at..at + 2].try_into().unwrap());
    let place = |number: u64| usize::try_from(number).unwrap();
    let headers = (0..usize::from(half(56))).map(|index| place(word(32)) + index * 56);
    // `PT_DYNAMIC`.
    let dynamic = headers
        .into_iter()
        .find(|header| program[*header..*header + 4] == [2, 0, 0, 0])
        .unwrap();
    let (start, length) = (place(word(dynamic + 8)), place(word(dynamic + 32)));
    let entries = (start..start + length).step_by(16);
    let mut found = entries.filter(|entry| word(*entry) == wanted);
    found.next().map(|entry| word(entry + 8))
}
