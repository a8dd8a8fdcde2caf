//! What is left of any bytes is text and colours, wherever they were cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_core::terminal::{Aftermath, Sanitizer};

fuzz_target!(|input: (&[u8], u16)| {
    let (bytes, cut) = input;
    let whole = {
        let (mut sanitizer, mut out) = (Sanitizer::new(), Vec::new());
        sanitizer.filter(bytes, &mut out);
        sanitizer.finish(&mut out);
        out
    };
    let at = usize::from(cut).min(bytes.len());
    let (mut sanitizer, mut out) = (Sanitizer::new(), Vec::new());
    sanitizer.filter(&bytes[..at], &mut out);
    sanitizer.filter(&bytes[at..], &mut out);
    sanitizer.finish(&mut out);
    assert_eq!(out, whole);
    assert!(out.len() <= bytes.len() * 3 + 3);

    let mut rest = std::str::from_utf8(&out).expect("text");
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character == '\x1b' {
            let end = rest.find('m').expect("a colour ends");
            let colour = rest[..end].strip_prefix('[').expect("a colour");
            assert!(
                colour
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'))
            );
            rest = &rest[end + 1..];
        } else if character.is_control() {
            assert!(matches!(character, '\n' | '\r' | '\t' | '\x08'));
        }
    }

    // What undoes things leaves nothing to be undone.
    let mut aftermath = Aftermath::new();
    aftermath.listen(bytes);
    let undo = aftermath.undo();
    aftermath.listen(&undo);
    assert_eq!(aftermath.undo(), b"");
});
