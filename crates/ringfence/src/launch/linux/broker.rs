//! Connects in the command's place.
//!
//! Most kernels cannot let a session use unix sockets among its own processes and
//! keep it from those of the host: a read-only mount does not stop `connect`. So the filter hands
//! every `connect` to the supervisor. It copies the address and the socket, decides on the copies,
//! and makes the connection itself: what the command does to its memory or its descriptors
//! meanwhile changes nothing. The caller's own call is never let through.
//!
//! A unix socket is the session's own if its file lies on the session's scratch, which nobody
//! outside can reach, or if it has an abstract name in the session's own network namespace. One of
//! the host's is reached if its file is the very one that was granted, and pinned before the session
//! began. Every other family is held by that namespace, or the policy allows all of it. Where that
//! namespace has a gate, a connection to a host outside is made to the gate instead.
//!
//! From Landlock 9 the kernel itself tells the session's own unix sockets from all others. Then the
//! filter asks only for the sake of a gate, and the calls on unix sockets are let through: whatever
//! becomes of their arguments meanwhile, they reach nothing that is not inside.

use std::cell::{RefCell, RefMut};
use std::ffi::{CString, OsStr};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};

use ringfence_core::plan::NetworkNamespace;
use ringfence_core::shown::shown_word;
use ringfence_core::text::printable_bytes;
use ringfence_gate::names::Carried;
use ringfence_gate::serve::Carrier;
use ringfence_sys::notify::{Answer, Listener, Notification, read_memory};
use ringfence_sys::{Errno, Pid};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::caller::process_of;
use super::connecting::{Connection, Connectors, Target};
use super::guard::{Guard, makes_a_name};
use super::missed;
use super::shares;
use super::unix::{self, Reachable};
use crate::audit::{Denial, Denied};

/// `struct sockaddr_storage`: no address is longer.
const LONGEST_ADDRESS: usize = 128;
/// Answers the calls of one session.
#[derive(Debug)]
pub(super) struct Broker {
    shared: Arc<Shared>,
    connectors: RefCell<Connectors>,
    /// Looks at the names that are about to be made, where that was asked for.
    guard: RefCell<Option<Guard>>,
    /// The session's user namespace, until it has bounds.
    unbounded: RefCell<Option<OwnedFd>>,
}

/// What the threads that connect share with the one that decides.
#[derive(Debug)]
pub(super) struct Shared {
    listener: Listener,
    network: NetworkNamespace,
    /// Whether the kernel keeps unix sockets of the host away.
    unix_held: bool,
    /// Unix sockets that may be connected to by their path.
    reachable: Reachable,
    /// Where connections out of the session's own network go, if there is a way.
    carrier: Option<Carrier>,
    /// What the session did not get; each thing once, and not without end.
    denied: Mutex<Vec<Denial>>,
    /// Those of them that nobody was told of yet.
    untold: Mutex<Vec<Denial>>,
    /// Ports of its own loopback where the session found nobody.
    deserted: Mutex<Vec<u16>>,
}

/// How many different things are remembered that a session did not get.
const MOST_DENIED: usize = 64;

impl Broker {
    pub(super) fn new(listener: OwnedFd, network: NetworkNamespace) -> Self {
        let listener = Listener::new(listener);
        // Older kernels wake us the slower way.
        let _ = listener.wake_synchronously();
        Self {
            shared: Arc::new(Shared {
                listener,
                network,
                unix_held: false,
                reachable: Reachable::default(),
                carrier: None,
                denied: Mutex::default(),
                untold: Mutex::default(),
                deserted: Mutex::default(),
            }),
            connectors: RefCell::default(),
            guard: RefCell::new(None),
            unbounded: RefCell::new(None),
        }
    }

    /// Bounds this user namespace before the session takes anything that its user has only so much
    /// of.
    pub(super) fn sharing(self, user: OwnedFd) -> Self {
        *self.unbounded.borrow_mut() = Some(user);
        self
    }

    /// Lets these unix sockets be connected to.
    pub(super) fn reaching(mut self, reachable: Reachable) -> Self {
        // Nobody else holds it before the first call was answered.
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.reachable = reachable;
        }
        self
    }

    /// Leaves unix sockets to the kernel, if it keeps those of the host away.
    pub(super) fn unix_held(mut self, held: bool) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.unix_held = held;
        }
        self
    }

    /// Asks this guard about names from now on.
    pub(super) fn guard_names(&self, guard: Guard) {
        *self.guard.borrow_mut() = Some(guard);
    }

    /// What knows about the names.
    pub(super) fn guard(&self) -> RefMut<'_, Option<Guard>> {
        self.guard.borrow_mut()
    }

    /// What is left of it when nobody asks any more.
    pub(super) fn into_guard(self) -> Option<Guard> {
        self.guard.into_inner()
    }

    /// What the session did not get.
    pub(super) fn denials(&self) -> Vec<Denial> {
        let denied = self.shared.denied.lock();
        let mut denials = denied.map_or_else(|_| Vec::new(), |denied| denied.clone());
        // Asked at the end, when nobody waits for an answer.
        if let Ok(ports) = self.shared.deserted.lock() {
            denials.extend(ports.iter().filter_map(|port| missed::service(*port)));
        }
        denials
    }

    /// What the session did not get for the first time since this was last asked.
    pub(super) fn untold(&self) -> Vec<Denial> {
        let untold = self.shared.untold.lock();
        untold.map_or_else(|_| Vec::new(), |mut untold| std::mem::take(&mut *untold))
    }

    /// Has connections out of the session's own network carried to its gate.
    pub(super) fn carrying(mut self, carrier: Carrier) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.carrier = Some(carrier);
        }
        self
    }

    /// Answers one call that waits.
    pub(super) fn serve(&self) {
        let shared = &self.shared;
        // Whoever was killed meanwhile needs no answer.
        let Ok(call) = shared.listener.receive() else {
            return;
        };
        let name = match self.guard.borrow_mut().as_mut() {
            Some(guard) => guard.answer(&call),
            // The filter asks about names, and none is protected.
            None => makes_a_name(&call).then_some(Answer::Continue),
        };
        if let Some(answer) = name {
            // Until here the number of the thread may have been somebody else's; then nobody waits
            // for this answer any more.
            let _ = shared.listener.answer(call.id, answer);
            return;
        }
        if shares::are_taken_by(&call) {
            if let Some(user) = self.unbounded.borrow_mut().take() {
                shares::bound(&user);
            }
            let _ = shared.listener.answer(call.id, Answer::Continue);
            return;
        }
        match shared.decide(&call) {
            Err(errno) => shared.answer(call.id, Err(errno)),
            Ok(Some(connection)) => self.connectors.borrow_mut().make(shared, connection),
            Ok(None) => {
                let _ = shared.listener.answer(call.id, Answer::Continue);
            }
        }
    }
}

impl AsFd for Broker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.listener.as_fd()
    }
}

impl Shared {
    pub(super) fn answer(&self, id: u64, result: Result<(), Errno>) {
        let answer = match result {
            Ok(()) => Answer::Return(0),
            Err(errno) => Answer::Fail(errno),
        };
        let _ = self.listener.answer(id, answer);
    }

    /// The connection to make; none for a call that the kernel may carry out as it is.
    fn decide(&self, call: &Notification) -> Result<Option<Connection>, Errno> {
        let [descriptor, address, length, ..] = call.arguments;
        let thread = i32::try_from(call.pid).ok().and_then(Pid::from_raw);
        let thread = thread.ok_or(Errno::PERM)?;
        // The kernel reads both as 32-bit integers.
        let [descriptor, length] = [descriptor, length].map(|word| word & 0xffff_ffff);
        let length = usize::try_from(length).map_err(|_| Errno::INVAL)?;
        if !(2..=LONGEST_ADDRESS).contains(&length) {
            return Err(Errno::INVAL);
        }
        let mut buffer = [0; LONGEST_ADDRESS];
        let address_copy = buffer.get_mut(..length).ok_or(Errno::INVAL)?;
        if read_memory(thread, address, address_copy)? != length {
            return Err(Errno::FAULT);
        }
        // Only processes can be asked for their descriptors. Most programs that connect have one thread,
        // which is the process.
        let pidfd = match pidfd_open(thread, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(_) => pidfd_open(process_of(thread)?, PidfdFlags::empty())?,
        };
        let descriptor = i32::try_from(descriptor).map_err(|_| Errno::BADF)?;
        let socket = pidfd_getfd(&pidfd, descriptor, PidfdGetfdFlags::empty())?;
        if self.unix_held && sockopt::socket_domain(&socket) == Ok(AddressFamily::UNIX) {
            return Ok(None);
        }
        let target = self.target(thread, &socket, address_copy)?;
        let near = self.near(&socket, &target);
        // Until here the number of the thread may have been somebody else's.
        if !self.listener.still_waits(call.id)? {
            return Err(Errno::PERM);
        }
        Ok(Some(Connection {
            id: call.id,
            socket: Arc::new(socket),
            target,
            near,
        }))
    }

    /// The port of a connection to a server that only the session itself can have.
    fn near(&self, socket: &OwnedFd, target: &Target) -> Option<u16> {
        let (own, port) = match target {
            Target::Inet(address) => (address.ip().is_loopback(), address.port()),
            Target::Inet6(address) => {
                let own = address.ip().to_canonical().is_loopback();
                (own, address.port())
            }
            _ => return None,
        };
        let own = own && self.network == NetworkNamespace::Own;
        let stream = || sockopt::socket_type(socket) == Ok(SocketType::STREAM);
        (own && stream()).then_some(port)
    }

    fn target(&self, thread: Pid, socket: &OwnedFd, address: &[u8]) -> Result<Target, Errno> {
        let (family, rest) = address.split_first_chunk().ok_or(Errno::INVAL)?;
        let family = u16::from_ne_bytes(*family);
        let domain = sockopt::socket_domain(socket).map_err(|_| Errno::NOTSOCK)?;
        if domain == AddressFamily::UNIX {
            return match AddressFamily::from_raw(family) {
                AddressFamily::UNIX => self.unix_target(thread, rest),
                AddressFamily::UNSPEC => Ok(Target::Unspecified),
                _ => Err(Errno::INVAL),
            };
        }
        match AddressFamily::from_raw(family) {
            AddressFamily::UNSPEC => Ok(Target::Unspecified),
            AddressFamily::INET => {
                let target = inet(rest).ok_or(Errno::INVAL)?;
                Ok(self.carried(socket, target))
            }
            AddressFamily::INET6 => {
                let target = inet6(rest).ok_or(Errno::INVAL)?;
                Ok(self.carried(socket, target))
            }
            AddressFamily::NETLINK => netlink(rest).ok_or(Errno::INVAL),
            _ => Err(Errno::AFNOSUPPORT),
        }
    }

    /// Sends a connection to the gate that means a host outside; everything else goes where it
    /// says, which is inside or nowhere.
    fn carried(&self, socket: &OwnedFd, target: Target) -> Target {
        let to = match &target {
            Target::Inet(address) => SocketAddr::V4(*address),
            Target::Inet6(address) => SocketAddr::V6(*address),
            _ => return target,
        };
        let stream = sockopt::socket_type(socket) == Ok(SocketType::STREAM);
        if self.carrier.is_none()
            && self.network == NetworkNamespace::Own
            && let Some(denial) = missed::outside(to)
        {
            self.deny(denial);
        }
        let Some(carrier) = self.carrier.as_ref().filter(|_| stream) else {
            return target;
        };
        match (carrier.carry(to), &target) {
            (Carried::AsIs, _) => target,
            (Carried::Here(address), Target::Inet(_)) => Target::Inet(address),
            (Carried::Here(address), _) => {
                let mapped = address.ip().to_ipv6_mapped();
                Target::Inet6(SocketAddrV6::new(mapped, address.port(), 0, 0))
            }
        }
    }

    fn unix_target(&self, thread: Pid, name: &[u8]) -> Result<Target, Errno> {
        match name.split_first() {
            None => Err(Errno::INVAL),
            Some((0, abstract_name)) => match self.network {
                NetworkNamespace::Own => Ok(Target::UnixAbstract(abstract_name.to_vec())),
                // On a shared network nobody can tell whose name it is.
                NetworkNamespace::Shared => {
                    let shown = printable_bytes(&[b"@", abstract_name].concat());
                    let fix = "nothing: with all of the network, a name is the host's or the session's, and nobody can tell";
                    self.deny(unix_socket(shown, fix.to_owned()));
                    Err(Errno::ACCESS)
                }
            },
            Some(_) => {
                let path = name.split(|byte| *byte == 0).next().unwrap_or_default();
                let path = CString::new(path).map_err(|_| Errno::INVAL)?;
                let found = self.reachable.find(thread, &path);
                let shown = printable_bytes(path.to_bytes());
                if let Some(name) = found
                    .as_ref()
                    .err()
                    .and_then(|_| unix::missed(&path, &unix::USUAL))
                {
                    self.deny(unix_socket(shown, format!("--unix-socket {name}")));
                } else if let Err(Errno::ACCESS) = found {
                    let word = shown_word(OsStr::from_bytes(path.to_bytes()));
                    let fix = format!("--unix-socket {}", word.text);
                    self.deny(unix_socket(shown, fix));
                }
                found.map(Target::UnixFile)
            }
        }
    }

    /// Remembers what the session did not get.
    fn deny(&self, denial: Denial) {
        let Ok(mut denied) = self.denied.lock() else {
            return;
        };
        let same = |known: &&mut Denial| known.what == denial.what && known.target == denial.target;
        if let Some(known) = denied.iter_mut().find(same) {
            known.count = known.count.saturating_add(1);
        } else if denied.len() < MOST_DENIED {
            if let Ok(mut untold) = self.untold.lock() {
                untold.push(denial.clone());
            }
            denied.push(denial);
        }
    }

    /// Remembers a port of the session's own on which nobody answered.
    pub(super) fn desert(&self, port: u16) {
        if let Ok(mut deserted) = self.deserted.lock()
            && deserted.len() < MOST_DENIED
            && !deserted.contains(&port)
        {
            deserted.push(port);
        }
    }
}

fn unix_socket(target: String, fix: String) -> Denial {
    Denial {
        what: Denied::UnixSocket,
        target,
        count: 1,
        fix,
    }
}

fn inet(rest: &[u8]) -> Option<Target> {
    let (port, rest) = rest.split_first_chunk()?;
    let (address, _) = rest.split_first_chunk::<4>()?;
    let address = SocketAddrV4::new(Ipv4Addr::from(*address), u16::from_be_bytes(*port));
    Some(Target::Inet(address))
}

fn inet6(rest: &[u8]) -> Option<Target> {
    let (port, rest) = rest.split_first_chunk()?;
    let (flow, rest) = rest.split_first_chunk()?;
    let (address, rest) = rest.split_first_chunk::<16>()?;
    // The oldest form of the address ends here.
    let scope = rest
        .first_chunk()
        .map_or(0, |scope| u32::from_ne_bytes(*scope));
    Some(Target::Inet6(SocketAddrV6::new(
        Ipv6Addr::from(*address),
        u16::from_be_bytes(*port),
        u32::from_ne_bytes(*flow),
        scope,
    )))
}

fn netlink(rest: &[u8]) -> Option<Target> {
    let (_, rest) = rest.split_first_chunk::<2>()?;
    let (process, rest) = rest.split_first_chunk()?;
    let groups = rest.first_chunk()?;
    Some(Target::Netlink(SocketAddrNetlink::new(
        u32::from_ne_bytes(*process),
        u32::from_ne_bytes(*groups),
    )))
}
