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
    fn silence_is_silence_and_noise_is_an_error() {
        assert_eq!(receive::<Failure>(&b""[..]).unwrap(), None);
        assert!(receive::<Failure>(&b"{"[..]).is_err());
        assert!(receive::<Orders>(&b"{\"profile\": \"\"}"[..]).is_err());
    }
}
