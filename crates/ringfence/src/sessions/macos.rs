//! Finding, ending and removing what belongs to a session, by the fingerprint in its profile.
//!
//! The directory that is written down for a session has the session's number in its name, and that is
//! all that is needed: every process of the session may read one point in it and may not read another,
//! and no other process is like that.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;

use ringfence_core::cleanup::{Identity, end_session, members};
use ringfence_core::path::AbsPath;
use ringfence_core::seatbelt::SessionDirectory;
use ringfence_sys::{Errno, processes};
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use super::record::{DirectoryIdentity, Record};
use super::{Session, State};
use crate::launch::Table;

/// There are no cgroups here.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum GroupIdentity {}

/// The fingerprint is the mark, and is known by the session's directory.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Mark {}

/// Numbers that nobody can guess.
pub(super) fn random() -> Result<[u8; 8], Errno> {
    let mut random = [0; 8];
    let filled = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    filled.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(random)
}

/// The kernel's name for this start of the machine.
pub(super) fn boot() -> Result<String, Errno> {
    processes::boot().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Nobody needs to know: every record names the start of the machine.
pub(super) fn running_for() -> Option<std::time::Duration> {
    None
}

/// There is one world of process numbers.
#[expect(clippy::unnecessary_wraps, reason = "as where there are several")]
pub(super) fn pids() -> Result<u64, Errno> {
    Ok(0)
}

/// The device that holds a file.
pub(super) fn device(found: &Stat) -> (u32, u32) {
    (found.st_dev.cast_unsigned(), 0)
}

/// When a process started, if it is there.
pub(super) fn start_of(pid: i32) -> Option<u64> {
    Some(Table::identity(pid)?.born)
}

/// Nothing has to be known of everybody beforehand.
pub(super) fn all_processes() -> HashMap<i32, Identity> {
    HashMap::new()
}

/// The directory of a session, if the record has one of the right form.
fn session_of(record: &Record) -> Option<SessionDirectory> {
    let path = &record.tmp.as_ref()?.path;
    let number = SessionDirectory::number_in(path.file_name()?.to_str()?)?;
    let parent = AbsPath::parse(path.parent()?).ok()?;
    Some(SessionDirectory::new(&parent, number))
}

/// A session for people to look at.
pub(super) fn describe(record: &Record, state: State, _stats: &HashMap<i32, Identity>) -> Session {
    let session = session_of(record);
    let members = session.map(|session| members(&mut Table::new(&session, None)));
    // Half a list is better than none: it is for people to look at.
    let members = members.and_then(Result::ok).unwrap_or_default();
    let memory = members
        .iter()
        .filter_map(|one| processes::resident(one.pid));
    record.describe(state, members.len(), memory.sum())
}

/// Ends every process of a session; whoever watches over it does the rest.
pub(super) fn end(record: &Record) -> Result<(), Errno> {
    // A record without a directory is one of a session that had not started anything.
    let Some(session) = session_of(record) else {
        return Ok(());
    };
    let ended = end_session(&mut Table::new(&session, None));
    ended.map(|_| ()).map_err(|_| Errno::BUSY)
}

/// Ends what is left of a session without a supervisor, and removes what it has made.
pub(super) fn remove(record: &Record) -> Result<(), Errno> {
    end(record)?;
    remove_directory(record)
}

/// Removes the directory of a session, if it is still that one.
pub(super) fn remove_directory(record: &Record) -> Result<(), Errno> {
    let (Some(identity), Some(session)) = (&record.tmp, session_of(record)) else {
        return Ok(());
    };
    let path = session.path().as_path();
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let found = match File::open(path) {
        Ok(directory) => DirectoryIdentity::of(path.to_owned(), directory)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(errno(error)),
    };
    if found != *identity {
        // Another has its name by now.
        return Ok(());
    }
    std::fs::remove_dir_all(path).map_err(errno)
}
