//! A hostile program: whatever its numbers say, reading it ends, and it is granted no other file
//! than a program, a library or a script.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use ringfence::elf::{Image, names};
use ringfence::programs::{Files, closure};

/// The program, a library of the same bytes, and a key.
struct Tree<'a>(&'a [u8]);

const KEY: &str = "/home/me/.ssh/id";

impl Files for Tree<'_> {
    fn open(&self, path: &Path) -> Option<Box<dyn Image>> {
        // By names, not by spelling: `//home/me` is the same place.
        if path == Path::new("/absent") {
            return None;
        }
        let bytes = if path == Path::new(KEY) {
            b"a key".to_vec()
        } else {
            self.0.to_vec()
        };
        Some(Box::new(bytes))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let found = names(&bytes.to_vec());
    let needed = closure(Path::new("/project/tool"), &Tree(bytes));
    assert!(!needed.iter().any(|path| path == Path::new(KEY)));
    assert!(found.is_some() || bytes.starts_with(b"#!") || needed.is_empty());
});
