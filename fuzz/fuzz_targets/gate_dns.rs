//! Questions for names: the name that is judged is the one that was asked, and an answer is one.
#![no_main]

use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use ringfence_gate::dns::{self, Says};

fuzz_target!(|bytes: &[u8]| {
    let question = match dns::read(bytes) {
        Ok(question) => question,
        Err(other) => {
            if let Some(answer) = other.answer() {
                assert_eq!(answer[..2], bytes[..2]);
                assert!(answer[2] & 0x80 != 0, "nobody answers an answer");
            }
            return;
        }
    };
    let mut labels = Vec::new();
    let mut at = 12;
    while bytes[at] != 0 {
        let length = usize::from(bytes[at]);
        labels.push(String::from_utf8_lossy(&bytes[at + 1..=at + length]).to_ascii_lowercase());
        at += length + 1;
    }
    assert_eq!(question.host.to_string(), labels.join("."));
    for says in [
        Says::Address(Ipv4Addr::LOCALHOST),
        Says::Nothing,
        Says::NoSuchName,
        Says::Failure,
    ] {
        let answer = question.answer(says);
        assert_eq!(answer[..2], bytes[..2]);
        assert!(dns::read(&answer).is_err(), "an answer is no question");
        assert_eq!(answer[12..at + 5], bytes[12..at + 5]);
    }
});
