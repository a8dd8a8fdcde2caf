//! What a profile has of its session: a directory, and a fingerprint in it.
//!
//! Nothing on macOS holds the processes of a session together: they can leave their group and their
//! parents. But none can leave its profile, and every child inherits it. So a profile has two points
//! of its own, one that may be read and one that may not, and the kernel says of any process whether
//! both hold. No other profile allows the one and denies the other.

use crate::path::AbsPath;

/// The directory of one session.
///
/// It holds the two points and the temporary directory. Its name is made from a number that nobody
/// can guess, so no other profile speaks of it by accident.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionDirectory {
    path: AbsPath,
}

/// The two points of a session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Points {
    /// May be read by every process of the session.
    pub allowed: AbsPath,
    /// May not.
    pub denied: AbsPath,
}

impl SessionDirectory {
    /// The beginning of the name.
    pub const PREFIX: &'static str = "ringfence-";

    /// The directory for a session with this number, below `parent`, which must be canonical.
    pub fn new(parent: &AbsPath, number: u128) -> Self {
        let name = format!("{}{number:032x}", Self::PREFIX);
        Self {
            path: parent.below(name),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &AbsPath {
        &self.path
    }

    /// The session's temporary directory.
    pub fn tmp(&self) -> AbsPath {
        self.path.below("tmp")
    }

    /// The points of the fingerprint. The second one is never made: only its name is asked about.
    pub fn points(&self) -> Points {
        Points {
            allowed: self.path.below("allowed"),
            denied: self.path.below("denied"),
        }
    }

    /// The number of the session whose directory has this name.
    pub fn number_in(name: &str) -> Option<u128> {
        let digits = name.strip_prefix(Self::PREFIX)?;
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() != 32 || !digits.bytes().all(lower) {
            return None;
        }
        u128::from_str_radix(digits, 16).ok()
    }
}

/// What the kernel says about a process and one point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Probe {
    /// It may read there.
    Allowed,
    /// It may not.
    Denied,
    /// There is no such process, or nobody may ask about it.
    Unknown,
}

/// Whether a process is of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fingerprint {
    /// It is under the session's profile.
    Matches,
    /// It is under another one, or none.
    Other,
}

impl Fingerprint {
    /// Puts the two answers together. What is not known is not ours: nobody is ended on a guess.
    pub fn of(allowed: Probe, denied: Probe) -> Self {
        if allowed == Probe::Allowed && denied == Probe::Denied {
            Self::Matches
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_both_points_together_match() {
        use Probe::{Allowed, Denied, Unknown};
        for allowed in [Allowed, Denied, Unknown] {
            for denied in [Allowed, Denied, Unknown] {
                let both = allowed == Allowed && denied == Denied;
                assert_eq!(
                    Fingerprint::of(allowed, denied) == Fingerprint::Matches,
                    both
                );
            }
        }
    }

    #[test]
    fn a_name_leads_back_to_its_number() {
        let parent = AbsPath::parse("/private/tmp").unwrap();
        for number in [0, 1, u128::MAX, 0xabc] {
            let directory = SessionDirectory::new(&parent, number);
            let name = directory.path().as_path().file_name().unwrap();
            assert_eq!(
                SessionDirectory::number_in(name.to_str().unwrap()),
                Some(number)
            );
        }
        for name in [
            "ringfence-",
            "ringfence-xyz",
            "ringfence-0",
            "other",
            "ringfence-000000000000000000000000000000AB",
        ] {
            assert_eq!(SessionDirectory::number_in(name), None, "{name}");
        }
    }
}
