//! What a command may be given as standard input, output and error.
//!
//! These three are the only descriptors that pass, and a descriptor goes around every mount: it
//! was opened outside. So only those pass that lead nowhere else: files, pipes, terminals, and
//! sockets that are connected to somebody for good. And a file can be opened again by its number, past
//! every mount: Landlock alone holds that, and it takes nothing away inside a grant.

use std::os::fd::{AsRawFd, BorrowedFd};

use ringfence_core::path::AbsPath;
use ringfence_core::plan::Engine;
use ringfence_core::policy::{Access, Content, Policy};
use ringfence_core::settings::NetworkMode;
use ringfence_sys::Errno;
use ringfence_sys::files::{self, Kind};
use rustix::fs::{FileType, OFlags, Stat, fcntl_getfl, fstat, stat};
use rustix::net::{AddressFamily, SocketType, getpeername, sockopt};

use super::seat::{Seat, Use};
use crate::launch::LaunchError;

/// Refuses a stream that would lead out.
pub(super) fn check(policy: &Policy, engine: Engine, seat: &Seat) -> Result<(), LaunchError> {
    let names = ["standard input", "standard output", "standard error"];
    let streams = seat.streams().into_iter().zip(seat.uses());
    for (name, (stream, used)) in names.into_iter().zip(streams) {
        if used == Use::Terminal {
            // What is there now is replaced by the session's own.
            continue;
        }
        let danger = danger(stream, policy.network().mode()).and_then(|danger| match danger {
            // Without a root of its own, what a rule cannot take away from its grant is a gap, by any name.
            None if engine != Engine::Landlock => opened_again(policy, stream),
            danger => Ok(danger),
        });
        match danger {
            // A closed stream leads nowhere.
            Ok(None) | Err(Errno::BADF) => {}
            Ok(Some(danger)) => return Err(LaunchError::Stream { name, danger }),
            Err(errno) => {
                return Err(LaunchError::Prepare {
                    what: format!("look at {name}"),
                    source: errno.into(),
                });
            }
        }
    }
    Ok(())
}

/// What could be done with a stream that the policy does not give.
fn danger(stream: BorrowedFd<'_>, network: NetworkMode) -> Result<Option<&'static str>, Errno> {
    if fcntl_getfl(stream)?.contains(OFlags::PATH) {
        return Ok(Some("a path, from which files of the host can be opened"));
    }
    Ok(match files::identify(stream)?.kind {
        Kind::Regular | Kind::Fifo | Kind::CharacterDevice | Kind::BlockDevice => None,
        Kind::Directory => Some("a directory, from which files of the host can be opened"),
        Kind::Socket => socket_danger(stream, network)?,
        Kind::Symlink | Kind::Unknown => Some("neither a file, a pipe, a terminal nor a socket"),
    })
}

/// What a file could be opened again for that neither its descriptor nor the policy gives: what a rule inside
/// a grant takes away.
///
/// In place of the host's temporary directories the session has its own. What a caller keeps there for a
/// command (`> /tmp/log`) is no secret of a rule's.
fn opened_again(policy: &Policy, stream: BorrowedFd<'_>) -> Result<Option<&'static str>, Errno> {
    let status = fstat(stream)?;
    let mode = fcntl_getfl(stream)? & OFlags::RWMODE;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile || mode == OFlags::RDWR {
        return Ok(None);
    }
    // A file without a name is under no rule.
    let Some(path) = name_of(stream, &status) else {
        return Ok(None);
    };
    let verdict = policy.files().access(&path);
    if verdict.content().is_own() {
        return Ok(None);
    }
    let rules = policy.files().rules().iter();
    let around = rules.filter(|rule| rule.content == Content::Host && rule.path.covers(&path));
    let given = around.map(|rule| rule.access).max();
    let given = given.max(Some(policy.files().default_access()));
    let gains = |access| verdict.access < access && given >= Some(access);
    Ok(if mode == OFlags::WRONLY && gains(Access::Read) {
        Some("a file that could be opened again to be read, and the policy hides it")
    } else if mode == OFlags::RDONLY && gains(Access::Write) {
        Some("a file that could be opened again to be written, and the policy protects it")
    } else {
        None
    })
}

/// The name that a file was opened by, if it still has it.
fn name_of(stream: BorrowedFd<'_>, status: &Stat) -> Option<AbsPath> {
    let number = format!("/proc/self/fd/{}", stream.as_raw_fd());
    let path = AbsPath::parse(std::fs::read_link(number).ok()?).ok()?;
    let named = stat(path.as_path()).ok()?;
    ((named.st_dev, named.st_ino) == (status.st_dev, status.st_ino)).then_some(path)
}

fn socket_danger(
    stream: BorrowedFd<'_>,
    network: NetworkMode,
) -> Result<Option<&'static str>, Errno> {
    let family = sockopt::socket_domain(stream)?;
    let kind = sockopt::socket_type(stream)?;
    let connected = getpeername(stream).is_ok();
    let lasting = connected && (kind == SocketType::STREAM || kind == SocketType::SEQPACKET);
    if family == AddressFamily::UNIX {
        // One end of a pair, as many programs use instead of a pipe.
        return Ok((!lasting).then_some("a socket that can be pointed at any other of the host"));
    }
    let internet = family == AddressFamily::INET || family == AddressFamily::INET6;
    if internet && network == NetworkMode::All {
        return Ok(None);
    }
    // Even a connected one can be disconnected, and connected to somebody else.
    Ok(Some("a socket in the host's network"))
}
