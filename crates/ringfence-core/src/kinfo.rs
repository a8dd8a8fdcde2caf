//! The process table of macOS, as the kernel hands it out.
//!
//! Only its layout: `sysctl` fills a buffer with records of one size, of which four fields matter
//! here. Pure, so that what is read from the kernel's bytes is tested where no such kernel runs.

use crate::cleanup::{Identity, Life, Listed};

/// How large one record is.
pub const RECORD: usize = 648;

/// Where the fields are that matter: the time of birth (seconds, then microseconds), the state, the
/// number.
const SECONDS: usize = 0;
const MICROSECONDS: usize = 8;
const STATE: usize = 36;
const PID: usize = 40;

/// The state of a process that is dead and not yet collected.
const ZOMBIE: u8 = 5;

/// Bytes that are not a process table.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the kernel's process table has a layout that is not known")]
pub struct UnknownLayout;

/// Reads every record.
///
/// # Errors
///
/// If the bytes are not a whole number of records, or hold what no record can. Then nothing is known
/// about any process.
pub fn read(bytes: &[u8]) -> Result<Vec<Listed>, UnknownLayout> {
    let records = bytes.chunks_exact(RECORD);
    if !records.remainder().is_empty() {
        return Err(UnknownLayout);
    }
    records.map(record).collect()
}

fn record(bytes: &[u8]) -> Result<Listed, UnknownLayout> {
    let seconds = i64::from_ne_bytes(field(bytes, SECONDS)?);
    let microseconds = i32::from_ne_bytes(field(bytes, MICROSECONDS)?);
    let pid = i32::from_ne_bytes(field(bytes, PID)?);
    let [state] = field(bytes, STATE)?;
    let plausible = pid >= 0 && seconds >= 0 && (0..1_000_000).contains(&microseconds);
    if !plausible || state > ZOMBIE {
        return Err(UnknownLayout);
    }
    let born = seconds
        .unsigned_abs()
        .saturating_mul(1_000_000)
        .saturating_add(u64::from(microseconds.unsigned_abs()));
    Ok(Listed {
        process: Identity { pid, born },
        life: if state == ZOMBIE {
            Life::Zombie
        } else {
            Life::Running
        },
    })
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], UnknownLayout> {
    let field = bytes
        .get(at..at + N)
        .and_then(|field| field.try_into().ok());
    field.ok_or(UnknownLayout)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(pid: i32, seconds: i64, microseconds: i32, state: u8) -> Vec<u8> {
        let mut bytes = vec![0xaa; RECORD];
        bytes[SECONDS..SECONDS + 8].copy_from_slice(&seconds.to_ne_bytes());
        bytes[MICROSECONDS..MICROSECONDS + 4].copy_from_slice(&microseconds.to_ne_bytes());
        bytes[STATE] = state;
        bytes[PID..PID + 4].copy_from_slice(&pid.to_ne_bytes());
        bytes
    }

    #[test]
    fn records_are_read_one_by_one() {
        let mut bytes = written(71, 1_700_000_000, 12, 2);
        bytes.extend(written(72, 1_700_000_001, 0, ZOMBIE));
        let read = read(&bytes).unwrap();
        let (first, second) = (read[0], read[1]);
        assert_eq!((first.process.pid, first.life), (71, Life::Running));
        assert_eq!(first.process.born, 1_700_000_000_000_012);
        assert_eq!((second.process.pid, second.life), (72, Life::Zombie));
    }

    #[test]
    fn another_layout_is_refused() {
        assert_eq!(read(&[0; RECORD + 1]), Err(UnknownLayout));
        assert_eq!(read(&written(-1, 1, 0, 2)), Err(UnknownLayout));
        assert_eq!(read(&written(1, 1, 1_000_000, 2)), Err(UnknownLayout));
        assert_eq!(read(&written(1, 1, 0, 6)), Err(UnknownLayout));
        assert_eq!(read(&[]), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..(3 * RECORD))) {
            let _ = read(&bytes);
        }
    }
}
