//! What the build script tells the linker.

#[path = "../../build.rs"]
#[expect(dead_code, reason = "it is a program of its own")]
mod build;

#[test]
fn only_a_static_program_has_packed_relocations() {
    let arguments = |features: &str, other: &str| {
        let measured = [
            ("CARGO_CFG_TARGET_OS", "linux"),
            ("CARGO_CFG_TARGET_ARCH", "x86_64"),
            ("CARGO_CFG_TARGET_ENV", "musl"),
            ("OPT_LEVEL", "3"),
            ("CARGO_MANIFEST_DIR", "/checkout"),
            ("CARGO_CFG_TARGET_FEATURE", features),
            (other, "1"),
        ];
        let found = |name: &str| measured.iter().find(|it| it.0 == name);
        build::link_arguments(&|name| found(name).map(|it| it.1.to_owned()))
    };
    let script = "-T/checkout/start.ld";
    let packed = "-Wl,-z,pack-relative-relocs";
    assert_eq!(arguments("crt-static,fxsr,sse2", ""), [script, packed]);
    // The machine's own C library may not know how to unpack them.
    assert_eq!(arguments("fxsr,sse2", ""), [script]);
    assert_eq!(arguments("", ""), [script]);
    for chosen in ["RUSTC_LINKER", "RINGFENCE_PLAIN_LINK"] {
        assert_eq!(arguments("crt-static", chosen), [""; 0], "{chosen}");
    }
}
