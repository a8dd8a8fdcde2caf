//! Sockets that were made inside, for connections from the host into the session.
//!
//! Only a process inside can make one, so a few are made before the command starts and used again
//! and again: a connection that is over is undone, and the socket is as new.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{connect, connect_unspec, sockopt};

use crate::stream::timespec;

#[derive(Debug)]
pub(crate) struct Stash(Mutex<Vec<OwnedFd>>);

/// How long a server inside may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Stash {
    pub(crate) fn new(sockets: Vec<OwnedFd>) -> Self {
        Self(Mutex::new(sockets))
    }

    /// Connects to a server inside; `None` if every socket is in use.
    pub(crate) fn connect(&self, port: u16) -> Option<io::Result<TcpStream>> {
        let mut sockets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = sockets.pop()?;
        drop(sockets);
        Some(match connected(&socket, port) {
            Ok(()) => Ok(TcpStream::from(socket)),
            Err(errno) => {
                self.put_back(socket);
                Err(errno.into())
            }
        })
    }

    /// Makes a socket new again.
    pub(crate) fn put_back(&self, socket: impl Into<OwnedFd>) {
        let socket = socket.into();
        if connect_unspec(&socket).is_ok() {
            let mut sockets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            sockets.push(socket);
        }
    }
}

fn connected(socket: &OwnedFd, port: u16) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(socket, true)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match connect(socket, &address) {
        Err(Errno::INPROGRESS) => {}
        other => return other,
    }
    let mut watched = [PollFd::new(socket, PollFlags::OUT)];
    if poll(&mut watched, Some(&timespec(PATIENCE)))? == 0 {
        return Err(Errno::TIMEDOUT);
    }
    sockopt::socket_error(socket)?
}
