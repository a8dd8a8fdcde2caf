//! A hostile index: reading it ends, in both formats, and what it holds is judged without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence::git::index::{is_of_git, read};

fuzz_target!(|bytes: &[u8]| {
    for length in [20, 32] {
        let _ = read(bytes, length, |entry| {
            assert!(!entry.path.contains(&0));
            let leads_out = entry.path.split(|byte| *byte == b'/').any(|part| part == b"..");
            assert!(!leads_out || !is_of_git(entry.path, entry.mode));
        });
    }
});
