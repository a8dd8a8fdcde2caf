//! Connections in the command's place, made where nobody else waits for them.
//!
//! Whether and for how long `connect` waits lies with the socket: its flags and its timeouts. The
//! caller shares them, and can change them between any look at them and the call. So the thread that
//! watches the session never connects. A thread of its own does, and is waited for only for a moment:
//! nearly every connection is made by then, and that thread makes the next one. One that takes longer
//! keeps its thread for itself.
//!
//! No such thread may outlive its session for long. Most are woken when the last process inside is
//! gone, and its sockets with it; but the very socket that a thread connects can be what its other
//! end waits for, or carry that in its queue. So what still waits at the end is shut down, and
//! emptied. What is left waits for a socket of the host's that was granted, until its owner answers or
//! goes.

use std::net::{SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ringfence_sys::Errno;
use ringfence_sys::fdpath::FdPath;
use ringfence_sys::files::OpenFlags;
use rustix::fs::{fcntl_getfl, fcntl_setfl};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    RecvFlags, Shutdown, SocketAddrUnix, SocketFlags, accept_with, connect, connect_unspec, recv,
    shutdown,
};

use super::broker::Shared;
use super::missed;

/// What these threads are called.
const NAME: &str = "ringfence-conn";

/// Connections that may wait for their other end at once.
const MOST_WAITING: usize = 64;

/// How long everybody else waits for a connection.
const SOON: Duration = Duration::from_millis(1);

/// More connections than a socket can have in its queue. At the end nobody is left who makes more.
const MOST_QUEUED: usize = 1 << 16;

/// More messages than one sender may have under way to it.
const MOST_MESSAGES: usize = 1 << 12;

/// Makes the connections of one session.
#[derive(Debug, Default)]
pub(super) struct Connectors {
    /// The thread that is free, once there is one.
    free: Option<Connector>,
    /// Sockets that a thread may still be connecting.
    waiting: Vec<Weak<OwnedFd>>,
}

/// A thread that makes one connection after the other, and ends when this is dropped.
#[derive(Debug)]
struct Connector {
    work: Sender<Connection>,
    done: Receiver<()>,
}

/// A connection with everything decided.
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) socket: Arc<OwnedFd>,
    pub(super) target: Target,
    /// The port, if it goes to a server of the session's own.
    pub(super) near: Option<u16>,
}

/// Where a connection goes.
pub(super) enum Target {
    Inet(SocketAddrV4),
    Inet6(SocketAddrV6),
    Netlink(SocketAddrNetlink),
    /// Nowhere: it undoes an earlier connection.
    Unspecified,
    /// A name that only the session's own network namespace knows.
    UnixAbstract(Vec<u8>),
    /// A socket that is pinned by its file.
    UnixFile(OwnedFd),
}

impl Connectors {
    /// Makes a connection and answers, sooner or later.
    pub(super) fn make(&mut self, shared: &Arc<Shared>, connection: Connection) {
        self.waiting.retain(|socket| socket.strong_count() > 0);
        if self.waiting.len() >= MOST_WAITING {
            return shared.answer(connection.id, Err(Errno::AGAIN));
        }
        let id = connection.id;
        let free = self.free.take().or_else(|| Connector::start(shared));
        let socket = Arc::downgrade(&connection.socket);
        let Some(connector) = free.filter(|free| free.work.send(connection).is_ok()) else {
            return shared.answer(id, Err(Errno::AGAIN));
        };
        if connector.done.recv_timeout(SOON).is_ok() {
            self.free = Some(connector);
        } else {
            self.waiting.push(socket);
        }
    }
}

impl Drop for Connectors {
    /// The session is over.
    fn drop(&mut self) {
        let waiting: Vec<_> = self.waiting.iter().filter_map(Weak::upgrade).collect();
        // First all of them: what is taken out of one can be what another one waits for.
        for socket in &waiting {
            let _ = shutdown(socket, Shutdown::Both);
        }
        for socket in &waiting {
            empty(socket);
        }
    }
}

/// Takes out of a socket what is in it: connections that nobody accepted, and messages, which may
/// carry other sockets.
fn empty(socket: &OwnedFd) {
    // Nobody is left who could change it back.
    let Ok(flags) = fcntl_getfl(socket) else {
        return;
    };
    if fcntl_setfl(socket, flags | OpenFlags::NONBLOCK).is_err() {
        return;
    }
    for _ in 0..MOST_QUEUED {
        if accept_with(socket, SocketFlags::CLOEXEC).is_err() {
            break;
        }
    }
    let mut buffer = [0; 4096];
    for _ in 0..MOST_MESSAGES {
        // What comes along with a message is dropped by the kernel, for want of room.
        if recv(socket, &mut buffer, RecvFlags::DONTWAIT).is_err() {
            break;
        }
    }
}

impl Connector {
    /// Starts a thread; `None` if there can be no more of them.
    fn start(shared: &Arc<Shared>) -> Option<Self> {
        let (work, todo) = channel::<Connection>();
        let (tell, done) = channel();
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new().name(NAME.to_owned());
        let thread = thread.stack_size(64 << 10);
        let started = thread.spawn(move || {
            for connection in todo {
                let (id, made) = (connection.id, connection.make());
                let refused = |_: &u16| missed::is_refused(&connection.socket, made);
                if let Some(port) = connection.near.filter(refused) {
                    shared.desert(port);
                }
                // Nobody else has the caller's socket when it goes on.
                drop(connection);
                let waited_for = tell.send(()).is_ok();
                shared.answer(id, made);
                if !waited_for {
                    break;
                }
            }
        });
        started.is_ok().then_some(Self { work, done })
    }
}

impl Connection {
    fn make(&self) -> Result<(), Errno> {
        let socket = &self.socket;
        match &self.target {
            Target::Inet(address) => connect(socket, address),
            Target::Inet6(address) => connect(socket, address),
            Target::Netlink(address) => connect(socket, address),
            Target::Unspecified => connect_unspec(socket),
            Target::UnixAbstract(name) => {
                connect(socket, &SocketAddrUnix::new_abstract_name(name)?)
            }
            Target::UnixFile(file) => {
                let path = FdPath::new(file.as_fd());
                connect(socket, &SocketAddrUnix::new(path.as_c_str())?)
            }
        }
    }
}
