//! How git names what a file holds.
//!
//! Only to tell whether two things are the same. Git's older names are SHA-1, for which whoever
//! means to can make two contents of one name; git refuses the known ways, and we ask about files
//! that the session could not write.

use sha2::{Digest, Sha256};

/// The name of a file's content, in so many bytes.
pub(crate) fn blob(content: &[u8], name_length: usize) -> Vec<u8> {
    let header = format!("blob {}\0", content.len());
    if name_length == 32 {
        let hash = Sha256::new().chain_update(header).chain_update(content);
        return hash.finalize().to_vec();
    }
    sha1(&[header.as_bytes(), content].concat()).to_vec()
}

/// SHA-1, as FIPS 180-4 has it.
#[expect(clippy::many_single_char_names, reason = "they are called so there")]
fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let mut padded = message.to_vec();
    padded.push(0x80);
    let zeros = (56 + 64 - padded.len() % 64) % 64;
    padded.resize(padded.len() + zeros, 0);
    let bits = u64::try_from(message.len()).unwrap_or_default() * 8;
    padded.extend(bits.to_be_bytes());
    for block in padded.as_chunks::<64>().0 {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for at in 16..80 {
            let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
            words[at] = mixed.rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (round, word) in words.iter().enumerate() {
            let (chosen, constant) = match round / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let sum = a.rotate_left(5).wrapping_add(chosen).wrapping_add(e);
            let sum = sum.wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
        }
        for (known, new) in state.iter_mut().zip([a, b, c, d, e]) {
            *known = known.wrapping_add(new);
        }
    }
    let mut out = [0; 20];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_git_gives() {
        let hex = |content: &[u8], length| {
            let name = blob(content, length);
            let digits = name.iter().map(|byte| format!("{byte:02x}"));
            digits.collect::<String>()
        };
        // `git hash-object`, in a repository of each format.
        assert_eq!(hex(b"", 20), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(
            hex(b"hello\n", 20),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
        let million = hex(&vec![b'a'; 1_000_000], 20);
        assert_eq!(million, "de1fbf0c2f34f67f01f355f31ed0cf7319643c5e");
        assert_eq!(
            hex(b"", 32),
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
        );
        // Around the end of a block.
        for (length, name) in LENGTHS {
            assert_eq!(hex(&vec![b'x'; length], 20), name, "{length}");
        }
    }

    const LENGTHS: [(usize, &str); 4] = [
        (46, "1d98a4e287acc725ef6f635b729014f7d49148da"),
        (47, "719ddd7888a02660234770b651274214ff7df239"),
        (54, "5cccb48e118d37594ea57fccbf7ce881bf216abd"),
        (55, "e329c5109ce10a7367561757d2f5a053c528f11e"),
    ];
}
