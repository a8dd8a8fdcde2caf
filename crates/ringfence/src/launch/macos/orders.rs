//! What a second stage is told, and what it says if it cannot do it.
//!
//! Both cross a pipe between two copies of this program, as JSON. Bytes that are not text go as
//! numbers, so a path or an argument arrives as it was.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

/// Far more than any session needs: larger orders are refused.
const LARGEST: u64 = 64 << 20;

/// What a copy of this program was started for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Task {
    /// To become a command.
    Become(Orders),
    /// To outlive the supervisor, and end the session if that dies.
    Keep(Keep),
}

/// What a keeper has to know.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keep {
    /// Where the session's directory is.
    pub(crate) parent: Vec<u8>,
    /// The number in its name.
    pub(crate) number: String,
    /// The process group that the session began with, if that is its own.
    pub(crate) group: Option<i32>,
    /// The descriptor whose end says that the supervisor is gone, or done.
    pub(crate) lifeline: i32,
}

/// What to apply, and what to become.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Orders {
    /// The text of the profile.
    pub(crate) profile: String,
    /// Names and values of its parameters.
    pub(crate) parameters: Vec<(String, String)>,
    /// Where the program may be, in the order in which a shell would look.
    pub(crate) programs: Vec<Vec<u8>>,
    /// The program's name as it was asked for, and its arguments.
    pub(crate) arguments: Vec<Vec<u8>>,
    /// `NAME=VALUE`.
    pub(crate) environment: Vec<Vec<u8>>,
    /// Where it starts.
    pub(crate) directory: Vec<u8>,
    /// Bounds, as the kernel counts them.
    pub(crate) limits: Vec<(Bound, u64)>,
    /// The descriptor to say on what went wrong; its silence says that the command runs.
    pub(crate) failure: i32,
    /// The terminal that the session gets, if it gets one.
    pub(crate) desk: Option<Desk>,
}

/// A terminal of the session's own, by the numbers of descriptors.
///
/// Who has one does not become the command but starts it, in a group of its own: a command that led the
/// terminal's session itself could not be stopped by its keys, because nobody could continue it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Desk {
    /// The terminal's inner end.
    pub(crate) inner: i32,
    /// Where it is told what becomes of the command.
    pub(crate) words: i32,
    /// Whose end says that nobody needs the terminal's session any more.
    pub(crate) stay: i32,
}

/// What becomes of a command that has a terminal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Word {
    /// It runs, under this number, in a group of that number.
    Started(i32),
    /// It was stopped.
    Stopped,
    /// It exited.
    Exited(u8),
    /// A signal ended it.
    Killed(i32),
}

impl Word {
    /// How long one is.
    pub(crate) const LENGTH: usize = 5;

    /// As it crosses a pipe, whole or not at all.
    pub(crate) fn to_bytes(self) -> [u8; Self::LENGTH] {
        let (tag, number) = match self {
            Self::Started(pid) => (b'p', pid),
            Self::Stopped => (b's', 0),
            Self::Exited(status) => (b'e', status.into()),
            Self::Killed(signal) => (b'k', signal),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [tag, a, b, c, d]
    }

    /// Reads one; `None` for what is none.
    pub(crate) fn from_bytes([tag, number @ ..]: [u8; Self::LENGTH]) -> Option<Self> {
        let number = i32::from_le_bytes(number);
        match tag {
            b'p' if number > 1 => Some(Self::Started(number)),
            b's' => Some(Self::Stopped),
            b'e' => Some(Self::Exited(u8::try_from(number).ok()?)),
            b'k' if number > 0 => Some(Self::Killed(number)),
            _ => None,
        }
    }
}

/// What is bounded for each process.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bound {
    /// Seconds on the processor.
    Cpu,
    /// Bytes in a file.
    FileSize,
    /// Open files.
    Files,
}

/// What a second stage could not do.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Failure {
    /// Something before the profile.
    Prepare {
        /// What was being done.
        what: String,
        /// What the kernel answered, by number.
        errno: Option<i32>,
    },
    /// The profile was refused.
    Profile {
        /// What the system says of it.
        reason: String,
    },
    /// The program is there and cannot be run.
    NotExecutable {
        /// What the kernel answered, by number.
        errno: Option<i32>,
    },
    /// The program is nowhere.
    NotFound,
}

/// Reads one value to the end of a pipe; `None` if there was nothing.
pub(crate) fn receive<T: for<'de> Deserialize<'de>>(pipe: impl Read) -> io::Result<Option<T>> {
    let mut bytes = Vec::new();
    pipe.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_arrive_as_they_were_given() {
        let orders = Orders {
            profile: "(version 1)\n".to_owned(),
            parameters: vec![("P0".to_owned(), "/a \"b\"\n".to_owned())],
            programs: vec![b"/bin/\xff".to_vec()],
            arguments: vec![b"x".to_vec(), Vec::new()],
            environment: vec![b"A=\xfe".to_vec()],
            directory: b"/p".to_vec(),
            limits: vec![(Bound::Cpu, u64::MAX)],
            failure: 7,
            desk: Some(Desk {
                inner: 8,
                words: 9,
                stay: 10,
            }),
        };
        let task = Task::Become(orders);
        let bytes = serde_json::to_vec(&task).unwrap();
        assert_eq!(receive(bytes.as_slice()).unwrap(), Some(task));
        let task = Task::Keep(Keep {
            parent: b"/tmp\xff".to_vec(),
            number: u128::MAX.to_string(),
            group: Some(7),
            lifeline: 5,
        });
        let bytes = serde_json::to_vec(&task).unwrap();
        assert_eq!(receive(bytes.as_slice()).unwrap(), Some(task));
        let failure = Failure::NotExecutable { errno: Some(13) };
        let bytes = serde_json::to_vec(&failure).unwrap();
        assert_eq!(receive(bytes.as_slice()).unwrap(), Some(failure));
    }

    #[test]
    fn words_arrive_as_they_were_said_and_noise_is_none() {
        for word in [
            Word::Started(99_999),
            Word::Stopped,
            Word::Exited(255),
            Word::Killed(9),
        ] {
            assert_eq!(Word::from_bytes(word.to_bytes()), Some(word));
        }
        // No number of a process or a signal that would mean everybody.
        for noise in [
            *b"p\0\0\0\0",
            *b"p\x01\0\0\0",
            *b"p\xff\xff\xff\xff",
            *b"k\0\0\0\0",
            *b"e\0\x01\0\0",
            *b"x\0\0\0\0",
        ] {
            assert_eq!(Word::from_bytes(noise), None, "{noise:?}");
        }
    }

    #[test]
    fn silence_is_silence_and_noise_is_an_error() {
        assert_eq!(receive::<Failure>(&b""[..]).unwrap(), None);
        assert!(receive::<Failure>(&b"{"[..]).is_err());
        assert!(receive::<Orders>(&b"{\"profile\": \"\"}"[..]).is_err());
    }
}
