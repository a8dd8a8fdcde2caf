//! How git names what a file holds.
//!
//! Only to tell whether two things are the same. Git's older names are SHA-1, for which whoever
//! means to can make two contents of one name; git refuses the known ways, and we ask about files
//! that the session could not write.

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The name of a file's content, in so many bytes.
pub(crate) fn blob(content: &[u8], name_length: usize) -> Vec<u8> {
    let header = format!("blob {}\0", content.len());
    if name_length == 32 {
        let hash = Sha256::new().chain_update(header).chain_update(content);
        return hash.finalize().to_vec();
    }
    let hash = Sha1::new().chain_update(header).chain_update(content);
    hash.finalize().to_vec()
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
    }
}
