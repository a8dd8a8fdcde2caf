//! Any bytes give verdicts, and the stricter rule sets allow no more than the laxer ones.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_shell::{Ir, RuleSet, decide, write_targets};

fuzz_target!(|bytes: &[u8]| {
    let ir = Ir::from_bash(bytes);
    let allows = |rules| decide(&ir, rules).is_allow();
    assert!(!allows(RuleSet::Verify) || allows(RuleSet::Default));
    assert!(!allows(RuleSet::Default) || allows(RuleSet::Relaxed));
    assert!(ir.refusal.is_none() || !allows(RuleSet::Relaxed));
    // What verify allows names no file that would change.
    assert!(!allows(RuleSet::Verify) || write_targets(&ir).is_empty());
});
