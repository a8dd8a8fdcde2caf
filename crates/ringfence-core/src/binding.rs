//! What an approval was given for, in one value.
//!
//! Somebody who says yes has seen a command, a directory, variables, a policy and paths. All of
//! that goes into a [`Binding`]; when the command is about to run it is made again, and unless both
//! are the same the answer was for something else.

use std::ffi::OsStr;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::path::AbsPath;
use crate::policy::Policy;

/// A SHA-256 of bytes.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// Which file something is, and in which state: it changes when anybody writes to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileIdentity {
    /// Where it is, links followed.
    pub path: AbsPath,
    /// Which filesystem.
    pub device: u64,
    /// Which file in it.
    pub inode: u64,
    /// When it was last changed, contents or not, in seconds and nanoseconds; nobody but the
    /// kernel can set this. Left at zero for directories, which change with every file in them.
    pub changed: (i64, i64),
    /// How long it is; zero for directories.
    pub size: u64,
}

/// Everything that somebody who says yes has seen, or could have asked about.
#[derive(Debug)]
pub struct Bound<'a> {
    /// The command, word by word.
    pub command: Vec<&'a OsStr>,
    /// Where it starts.
    pub directory: FileIdentity,
    /// Its variables, in any order.
    pub environment: Vec<(&'a OsStr, &'a OsStr)>,
    /// Files that the command names: the program, scripts, arguments.
    pub files: Vec<FileIdentity>,
    /// Paths that are asked for.
    pub paths: Vec<FileIdentity>,
    /// The policy that the request adds to.
    pub policy: &'a Policy,
}

/// What an approval was given for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Binding(Hash);

impl Binding {
    /// Binds.
    pub fn new(bound: &Bound<'_>) -> Self {
        let mut hasher = Parts(Sha256::new());
        hasher.text("ringfence binding 1");
        hasher.list(&bound.command, |hasher, word| hasher.os(word));
        hasher.file(&bound.directory);
        let mut environment = bound.environment.clone();
        environment.sort_unstable();
        hasher.list(&environment, |hasher, (name, value)| {
            hasher.os(name);
            hasher.os(value);
        });
        hasher.list(&bound.files, Parts::file);
        hasher.list(&bound.paths, Parts::file);
        // Every value with its origin; written out by the compiler, so no field is forgotten.
        hasher.text(&format!("{:?}", bound.policy));
        Self(Hash(hasher.0.finalize().into()))
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Hashes values with their lengths, so that no two different lists are the same bytes.
struct Parts(Sha256);

impl Parts {
    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        // A length never exceeds what an address can hold.
        self.number(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn os(&mut self, text: &OsStr) {
        self.bytes(text.as_encoded_bytes());
    }

    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(u64::try_from(list.len()).unwrap_or(u64::MAX));
        for entry in list {
            each(self, entry);
        }
    }

    fn file(&mut self, file: &FileIdentity) {
        self.bytes(file.path.bytes());
        self.number(file.device);
        self.number(file.inode);
        self.number(file.changed.0.cast_unsigned());
        self.number(file.changed.1.cast_unsigned());
        self.number(file.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_one_everybody_knows() {
        assert_eq!(
            Hash::of(b"abc").to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
