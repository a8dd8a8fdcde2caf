//! Any bytes give an IR whose ranges lie in the text and in each other, and which survives JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_shell::Ir;

fuzz_target!(|bytes: &[u8]| {
    let ir = Ir::from_bash(bytes);
    for block in &ir.blocks {
        assert!(block.span.start <= block.span.end && block.span.end <= ir.length);
        if let Some(within) = block.within {
            assert!(ir.blocks[within as usize].span.holds(block.span));
        }
    }
    for command in &ir.commands {
        assert!(ir.blocks[command.block as usize].span.holds(command.span));
        for word in &command.words {
            assert!(word.span.end <= ir.length);
            assert!(
                word.holes
                    .iter()
                    .all(|hole| hole.at as usize <= word.text.len())
            );
        }
    }
    let json = serde_json::to_string(&ir).unwrap();
    assert_eq!(serde_json::from_str::<Ir>(&json).unwrap(), ir);
});
