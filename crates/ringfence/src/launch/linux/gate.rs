//! The ways out of a network that has none.
//!
//! The first process makes sockets in the session's own network and hands them over before
//! anything of the command's runs, which waits until the supervisor serves them. The supervisor, whose
//! user owns the session's user namespace, gives them their addresses, also those that only the
//! privileged may have. So the first process needs no capability for it, whoever made the
//! namespaces, and the sockets cannot be reached from anywhere but inside.

use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use ringfence_core::path::AbsPath;
use ringfence_core::plan::{GatePlan, Hosts};
use ringfence_core::policy::Policy;
use ringfence_gate::dial::Dialer;
use ringfence_gate::judge::{Decider, Judge};
use ringfence_gate::lookup::System;
use ringfence_gate::names::{CARRIER_PORT, NAME_SERVICE, PROXY};
use ringfence_gate::serve::{Doors, Gate};
use ringfence_gate::upstream::Upstreams;
use ringfence_sys::{Errno, sockets};
use rustix::io::{retry_on_intr, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use super::root::Text;
use super::telling::Decisions;
pub(super) use crate::launch::proxy::hosts;
use crate::launch::proxy::{self, PATIENCE, opened, upstreams};
use crate::launch::{Command, LaunchError};

/// How many connections from the host into the session there can be at once.
const MOST_INWARD: usize = 32;
/// How many connections may wait at a door; the kernel has its own bound.
const QUEUE: i32 = 4096;
/// A socket that the first process is to make.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Wanted {
    Datagram,
    Stream,
    /// For IPv6, which a kernel may be without.
    Stream6,
}

/// What the first process has to do.
#[derive(Debug)]
pub(super) struct Making {
    /// Over which the sockets go; ours is closed once the first process has its own.
    pub(super) over: Option<OwnedFd>,
    pub(super) wanted: Vec<Wanted>,
}

/// A socket goes along.
const MADE: &[u8] = b"s";
/// There is no such socket here.
const NONE: &[u8] = b"n";

impl Making {
    /// Makes the sockets and hands them over. Runs in the child.
    pub(super) fn make(&self) -> Result<(), Errno> {
        let over = self.over.as_ref().ok_or(Errno::BADF)?;
        for wanted in &self.wanted {
            let (family, kind) = match wanted {
                Wanted::Datagram => (AddressFamily::INET, SocketType::DGRAM),
                Wanted::Stream => (AddressFamily::INET, SocketType::STREAM),
                Wanted::Stream6 => (AddressFamily::INET6, SocketType::STREAM),
            };
            match socket_with(family, kind, SocketFlags::CLOEXEC, None) {
                Ok(socket) => sockets::send(over, MADE, &[socket.as_fd()])?,
                Err(Errno::AFNOSUPPORT) if *wanted == Wanted::Stream6 => {
                    sockets::send(over, NONE, &[])?;
                }
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

/// A gate that waits for its sockets.
pub(super) struct Opening {
    over: OwnedFd,
    plan: GatePlan,
    /// On the host, for servers inside.
    inward: Vec<(u16, TcpListener)>,
    judge: Judge,
    decisions: Option<Arc<Decisions>>,
    upstreams: Upstreams,
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

fn refused(what: impl Into<String>, errno: Errno) -> LaunchError {
    LaunchError::Prepare {
        what: what.into(),
        source: errno.into(),
    }
}

impl Opening {
    /// Takes what of a gate can be had before the session exists.
    pub(super) fn new(
        plan: &GatePlan,
        policy: &Policy,
        command: &Command,
    ) -> Result<(Self, Making), LaunchError> {
        let mut inward = Vec::new();
        for port in &plan.loopback_in {
            let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, *port);
            let listener = TcpListener::bind(address).map_err(|source| LaunchError::Prepare {
                what: format!("listen on port {port} of the host (`--loopback-in`)"),
                source,
            })?;
            inward.push((*port, listener));
        }
        let upstreams = match plan.hosts {
            Hosts::None => Upstreams::default(),
            _ => upstreams(command)?,
        };
        let pair = sockets::pair().map_err(|errno| refused("open a socket", errno))?;
        let (over, inner) = pair;
        let making = Making {
            over: Some(inner),
            wanted: wanted(plan),
        };
        let opening = Self {
            over,
            plan: plan.clone(),
            inward,
            judge: Judge::new(policy.network().clone()),
            decisions: None,
            upstreams,
        };
        Ok((opening, making))
    }

    /// Has somebody asked about hosts on nobody's list.
    pub(super) fn ask(self, decider: Arc<dyn Decider>) -> Self {
        // Where nobody can be told what was decided, it is decided all the same.
        let (decisions, decider) = match Decisions::of(Arc::clone(&decider)) {
            Ok((decisions, listening)) => (Some(decisions), listening),
            Err(_) => (None, decider),
        };
        Self {
            judge: self.judge.asking(decider, PATIENCE),
            decisions,
            ..self
        }
    }

    /// What whoever is asked will say.
    pub(super) fn decisions(&self) -> Option<Arc<Decisions>> {
        self.decisions.clone()
    }

    /// Receives the sockets, serves them, and lets the first process go on. `None` if it went
    /// before: then it has said why.
    pub(super) fn open(self) -> Result<Option<Gate>, LaunchError> {
        let mut doors = Doors {
            loopback_in: self.inward,
            ..Doors::default()
        };
        let next = || receive(&self.over);
        if self.plan.hosts != Hosts::None {
            let Some(socket) = next()? else {
                return Ok(None);
            };
            doors.proxy = Some(listening(socket, PROXY.into())?);
        }
        if let Hosts::Directly { .. } = self.plan.hosts {
            let (Some(carrier), Some(names)) = (next()?, next()?) else {
                return Ok(None);
            };
            let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, CARRIER_PORT);
            doors.carrier = Some(listening(carrier, any.into())?);
            doors.names = Some(bound(names, name_service().into())?);
        }
        for port in &self.plan.loopback_out {
            let Some(socket) = next()? else {
                return Ok(None);
            };
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            doors
                .loopback_out
                .push((*port, listening(socket, address)?));
            // Where there is no IPv6, nobody inside looks for the service there.
            if let Some(socket) = next()? {
                let address = SocketAddr::from((Ipv6Addr::LOCALHOST, *port));
                let listening = listening(socket, address).ok();
                doors
                    .loopback_out
                    .extend(listening.map(|door| (*port, door)));
            }
        }
        if !self.plan.loopback_in.is_empty() {
            for _ in 0..MOST_INWARD {
                doors.stash.extend(next()?);
            }
        }
        let dialer = Dialer {
            judge: Arc::new(self.judge),
            lookup: Box::new(System),
            upstreams: self.upstreams,
        };
        let gate = opened(doors, dialer)?;
        // Whoever does not hear it any more has ended.
        let _ = retry_on_intr(|| write(&self.over, b"k"));
        Ok(Some(gate))
    }
}

fn wanted(plan: &GatePlan) -> Vec<Wanted> {
    let mut wanted = match plan.hosts {
        Hosts::None => vec![],
        Hosts::ProxyOnly { .. } => vec![Wanted::Stream],
        Hosts::Directly { .. } => vec![Wanted::Stream, Wanted::Stream, Wanted::Datagram],
    };
    for _ in &plan.loopback_out {
        wanted.extend([Wanted::Stream, Wanted::Stream6]);
    }
    if !plan.loopback_in.is_empty() {
        wanted.extend([Wanted::Stream; MOST_INWARD]);
    }
    wanted
}

/// The next socket; `None` if there is none, or nobody to send one.
fn receive(over: &OwnedFd) -> Result<Option<OwnedFd>, LaunchError> {
    let mut message = [0; 1];
    let received = sockets::receive(over, &mut message)
        .map_err(|errno| refused("receive the gate's sockets", errno))?;
    let [socket, ..] = received.descriptors;
    Ok(socket)
}

fn bound(socket: OwnedFd, address: SocketAddr) -> Result<OwnedFd, LaunchError> {
    bind(&socket, &address)
        .map_err(|errno| refused(format!("serve {address} inside the session"), errno))?;
    Ok(socket)
}

fn listening(socket: OwnedFd, address: SocketAddr) -> Result<OwnedFd, LaunchError> {
    let socket = bound(socket, address)?;
    listen(&socket, QUEUE)
        .map_err(|errno| refused(format!("serve {address} inside the session"), errno))?;
    Ok(socket)
}

/// Where names are asked for. A host without that file has programs ask the loopback itself.
fn name_service() -> SocketAddrV4 {
    match std::fs::symlink_metadata(RESOLVER) {
        Ok(_) => NAME_SERVICE,
        Err(_) => SocketAddrV4::new(Ipv4Addr::LOCALHOST, NAME_SERVICE.port()),
    }
}

const RESOLVER: &str = "/etc/resolv.conf";

/// Names that are known without asking.
const NAMES: &str = "/etc/hosts";

/// The files that tell programs inside whom to ask for names, by their real names. One that the host does
/// not have is not looked for inside either.
pub(super) fn name_files(hosts: &Hosts) -> Vec<Text> {
    let Hosts::Directly { .. } = hosts else {
        return Vec::new();
    };
    let resolver = text_at(RESOLVER, |_| resolver_text());
    let names = text_at(NAMES, |known| {
        let uname = rustix::system::uname();
        loopback_names(known, &uname.nodename().to_string_lossy())
    });
    resolver.into_iter().chain(names).collect()
}

fn text_at(path: &str, bytes: impl FnOnce(&str) -> Vec<u8>) -> Option<Text> {
    let real: PathBuf = std::fs::canonicalize(path).ok()?;
    let known = std::fs::read(&real).unwrap_or_default();
    Some(Text {
        at: AbsPath::parse(real).ok()?,
        bytes: bytes(&String::from_utf8_lossy(&known)),
    })
}

/// What the resolver's file says. Without a search list no name is ever made into another.
fn resolver_text() -> Vec<u8> {
    let address = NAME_SERVICE.ip();
    format!("# ringfence answers for the names that this session may reach.\nnameserver {address}\nsearch .\n")
        .into_bytes()
}

/// The names that mean this host. For any other one programs would take its address from the file, which
/// leads nowhere from inside, and never ask for it; for an allowed one the gate reads the host's file.
fn loopback_names(known: &str, own: &str) -> Vec<u8> {
    let mut text =
        "# ringfence answers for all other names.\n127.0.0.1 localhost\n::1 localhost\n".to_owned();
    let mut has_own = false;
    for line in known.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
        if address.is_some_and(|address| address.is_loopback()) {
            has_own |= words.any(|word| word == own);
            text.push_str(line.trim());
            text.push('\n');
        }
    }
    if !has_own && !own.is_empty() && !own.contains(char::is_whitespace) {
        text.extend(["127.0.1.1 ", own, "\n"]);
    }
    text.into_bytes()
}

/// Adds the variables that make programs use the gate; what the policy sets itself stays.
pub(super) fn add_variables(environment: &mut Vec<CString>, policy: &Policy, hosts: &Hosts) {
    if *hosts == Hosts::None {
        return;
    }
    proxy::add_variables(environment, policy, &format!("http://{PROXY}"));
    if let Hosts::ProxyOnly { .. } = hosts {
        // It makes every Java program say that it was read, so only where nothing else helps.
        let (host, port) = (PROXY.ip(), PROXY.port());
        let each = ["http", "https"]
            .map(|scheme| format!("-D{scheme}.proxyHost={host} -D{scheme}.proxyPort={port}"));
        proxy::add(environment, policy, "JAVA_TOOL_OPTIONS", &each.join(" "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_host_stay_and_others_are_asked_for() {
        let known = "127.0.0.1 localhost # 10.0.0.1 x\n10.1.2.3 allowed.test\n# 127.0.0.1 y\n\
                     ::1\tip6-localhost\n127.0.1.1 own other\nfe80::1%lo z\n";
        let begin =
            "# ringfence answers for all other names.\n127.0.0.1 localhost\n::1 localhost\n";
        let kept = "127.0.0.1 localhost\n::1\tip6-localhost\n127.0.1.1 own other\n";
        let text = |own| String::from_utf8(loopback_names(known, own)).unwrap();
        assert_eq!(text("own"), format!("{begin}{kept}"));
        assert_eq!(text("new"), format!("{begin}{kept}127.0.1.1 new\n"));
    }
}
