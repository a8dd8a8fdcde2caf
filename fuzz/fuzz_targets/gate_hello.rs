//! TLS hellos: however they are cut, the name that is read is the same, and is in the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_gate::hello::{self, Hello};

fuzz_target!(|bytes: &[u8]| {
    let whole = hello::read(bytes);
    let Ok(Hello::Named(name)) = &whole else {
        return;
    };
    assert!(!name.is_empty() && name.len() <= bytes.len());
    let mut known = false;
    for cut in 1..bytes.len() {
        match hello::read(&bytes[..cut]) {
            Ok(Hello::Unfinished) => assert!(!known, "what was known is known"),
            Ok(Hello::Named(early)) => {
                known = true;
                assert_eq!(&early, name);
            }
            other => panic!("{other:?} became {whole:?}"),
        }
    }
});
