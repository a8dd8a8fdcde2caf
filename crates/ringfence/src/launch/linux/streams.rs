//! What a command may be given as standard input, output and error.
//!
//! These three are the only descriptors that pass, and a descriptor goes around every mount: it
//! was opened outside. So only those pass that lead nowhere else: files, pipes, terminals, and
//! sockets that are connected to somebody for good.

use std::os::fd::BorrowedFd;

use ringfence_core::policy::Policy;
use ringfence_core::settings::NetworkMode;
use ringfence_sys::Errno;
use ringfence_sys::files::{self, Kind};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::net::{AddressFamily, SocketType, getpeername, sockopt};

use super::seat::{Seat, Use};
use crate::launch::LaunchError;

/// Refuses a stream that would lead out.
pub(super) fn check(policy: &Policy, seat: &Seat) -> Result<(), LaunchError> {
    let names = ["standard input", "standard output", "standard error"];
    let streams = seat.streams().into_iter().zip(seat.uses());
    for (name, (stream, used)) in names.into_iter().zip(streams) {
        if used == Use::Terminal {
            // What is there now is replaced by the session's own.
            continue;
        }
        match danger(stream, policy.network().mode()) {
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
