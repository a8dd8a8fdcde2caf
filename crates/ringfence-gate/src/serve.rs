//! Serves the sockets that were made inside a session.
//!
//! One thread waits at the doors and answers questions for names; each connection gets a thread of
//! its own, small and bounded in number, so that a client that does nothing holds up nobody. What
//! comes in is told apart by its first byte: SOCKS, or HTTP.
//!
//! The gate lives as long as its [`Gate`]. When that goes, the doors are closed and every
//! connection ends; the session has no other network, so it has none from then on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ringfence_core::host::Host;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, getrlimit};

use crate::Destination;
use crate::dial::Dialer;
use crate::dns::{self, Kind, Says};
use crate::event::{Attempt, Entry, Log, Outcome, Way};
use crate::hello::{self, Hello};
use crate::http::{self, Door, Next, looks_like_request, names_host};
use crate::names::{Carried, Names};
use crate::refusal::{Failure, Refusal};
use crate::relay::{Ended, Inspect, Look, relay};
use crate::socks::{self, Chosen, Read, Reply};
use crate::stash::Stash;
use crate::stream::{Stop, Stream};

/// How long a client may take to say what it wants.
const FIRST_WORDS: Duration = Duration::from_mins(1);
/// How long an answer may take to be taken.
const ANSWER: Duration = Duration::from_secs(30);
/// How many connections a session may have at once, if there are descriptors for them.
const MOST: usize = 1024;
/// Descriptors that a connection may need, and those that are left alone.
const EACH: usize = 4;
const SPARE: usize = 128;
/// Enough for the system's resolver, which is what needs most.
const STACK: usize = 256 << 10;
/// How long the doors stay closed when there is nothing left to open them with.
const BREATH: Duration = Duration::from_millis(100);

/// Sockets that were made inside a session, bound and listening.
#[derive(Debug, Default)]
pub struct Doors {
    /// For HTTP and SOCKS clients.
    pub proxy: Option<OwnedFd>,
    /// For connections that are carried here.
    pub carrier: Option<OwnedFd>,
    /// For questions about names.
    pub names: Option<OwnedFd>,
    /// For services of the host, by port.
    pub loopback_out: Vec<(u16, OwnedFd)>,
    /// Listening on the host, for servers inside, by port.
    pub loopback_in: Vec<(u16, TcpListener)>,
    /// For connections to those servers, neither bound nor connected.
    pub stash: Vec<OwnedFd>,
}

/// A gate that is open.
#[derive(Debug)]
pub struct Gate {
    shared: Arc<Shared>,
    /// Its closing ends everything.
    end: Option<OwnedFd>,
    waiting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dialer: Dialer,
    pub(crate) log: Log,
    names: Names,
    stash: Stash,
    connections: AtomicUsize,
    most: usize,
    stop: Stop,
}

enum Wants {
    Proxied,
    Carried,
    Outside(u16),
    Inside(u16),
}

impl Gate {
    /// Opens it.
    ///
    /// The threads have the signal mask of the caller: block everything before, and restore it
    /// afterwards.
    ///
    /// # Errors
    ///
    /// For want of descriptors or threads; nothing is served then.
    pub fn open(mut doors: Doors, dialer: Dialer) -> io::Result<Self> {
        let (stop, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let most = (limit.saturating_sub(SPARE) / EACH).clamp(16, MOST);
        let shared = Arc::new(Shared {
            dialer,
            log: Log::default(),
            names: Names::default(),
            stash: Stash::new(std::mem::take(&mut doors.stash)),
            connections: AtomicUsize::new(0),
            most,
            stop: Arc::new(stop),
        });
        let waiting = Waiting::new(doors, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new()
            .name("ringfence-gate".to_owned())
            .stack_size(STACK);
        let waiting = thread.spawn(move || waiting.serve())?;
        Ok(Self {
            shared,
            end: Some(end),
            waiting: Some(waiting),
        })
    }

    /// Where a connection of a program inside has to go.
    pub fn carrier(&self) -> Carrier {
        Carrier(Arc::clone(&self.shared))
    }

    /// Every attempt up to now, and how many were not kept.
    pub fn attempts(&self) -> (Vec<Attempt>, u64) {
        (self.shared.log.attempts(), self.shared.log.dropped())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.end = None;
        if let Some(waiting) = self.waiting.take() {
            let _ = waiting.join();
        }
    }
}

/// Says where the connections of programs go that know no proxy.
#[derive(Clone, Debug)]
pub struct Carrier(Arc<Shared>);

impl Carrier {
    /// Where a connection to this address has to go.
    pub fn carry(&self, to: SocketAddr) -> Carried {
        let shared = &self.0;
        let carried = shared.names.carry(to, &shared.dialer.judge);
        if carried == Carried::AsIs
            && let Some(destination) = shared.names.meant(to)
        {
            let refused = shared.dialer.decide(&destination).err();
            let line = refused.map(|refusal| refusal.line()).unwrap_or_default();
            let host = destination.host.to_string();
            shared
                .log
                .refused(Way::Direct, &host, destination.port, &line);
        }
        carried
    }
}

/// What waits at the doors.
struct Waiting {
    shared: Arc<Shared>,
    listeners: Vec<(Wants, TcpListener)>,
    names: Option<UdpSocket>,
}

impl Waiting {
    fn new(doors: Doors, shared: Arc<Shared>) -> io::Result<Self> {
        let mut listeners: Vec<(Wants, TcpListener)> = Vec::new();
        let proxy = doors.proxy.map(|door| (Wants::Proxied, door.into()));
        let carrier = doors.carrier.map(|door| (Wants::Carried, door.into()));
        listeners.extend(proxy.into_iter().chain(carrier));
        for (port, door) in doors.loopback_out {
            listeners.push((Wants::Outside(port), door.into()));
        }
        for (port, door) in doors.loopback_in {
            listeners.push((Wants::Inside(port), door));
        }
        for (_, listener) in &listeners {
            listener.set_nonblocking(true)?;
        }
        let names = doors.names.map(UdpSocket::from);
        if let Some(names) = &names {
            names.set_nonblocking(true)?;
        }
        Ok(Self {
            shared,
            listeners,
            names,
        })
    }

    fn serve(self) {
        loop {
            // With no room left everybody waits in the kernel's queue.
            let full = self.shared.connections.load(Ordering::Relaxed) >= self.shared.most;
            let mut watched = vec![PollFd::new(&*self.shared.stop, PollFlags::IN)];
            watched.extend(
                self.names
                    .as_ref()
                    .map(|names| PollFd::new(names, PollFlags::IN)),
            );
            let doors = watched.len();
            if !full {
                let listeners = self.listeners.iter();
                watched.extend(listeners.map(|(_, door)| PollFd::new(door, PollFlags::IN)));
            }
            let breath = crate::stream::timespec(BREATH);
            match poll(&mut watched, full.then_some(&breath)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let news: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
            if news.first() == Some(&true) {
                return;
            }
            if let Some(names) = &self.names
                && news.get(1) == Some(&true)
            {
                self.shared.answer_names(names);
            }
            let news = news.get(doors..).unwrap_or_default();
            for ((wants, door), _) in self.listeners.iter().zip(news).filter(|(_, news)| **news) {
                self.admit(wants, door);
            }
        }
    }

    fn admit(&self, wants: &Wants, door: &TcpListener) {
        let socket = match door.accept() {
            Ok((socket, _)) => socket,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {
                // No descriptors, most likely: some connection has to end first.
                std::thread::sleep(BREATH);
                return;
            }
        };
        let Ok(client) = Stream::new(socket, Arc::clone(&self.shared.stop)) else {
            return;
        };
        self.shared.connections.fetch_add(1, Ordering::Relaxed);
        let visit = Visit {
            shared: Arc::clone(&self.shared),
        };
        let wants = match wants {
            Wants::Proxied => Wants::Proxied,
            Wants::Carried => Wants::Carried,
            Wants::Outside(port) => Wants::Outside(*port),
            Wants::Inside(port) => Wants::Inside(*port),
        };
        let thread = std::thread::Builder::new().stack_size(STACK);
        // Without a thread the connection is dropped here, which the client sees.
        let _ = thread.spawn(move || {
            // Whatever breaks is the end of this connection and of nothing else.
            let _ = match wants {
                Wants::Proxied => visit.shared.serve_proxied(client),
                Wants::Carried => visit.shared.serve_carried(client),
                Wants::Outside(port) => visit.shared.serve_outside(client, port),
                Wants::Inside(port) => visit.shared.serve_inside(client, port),
            };
            drop(visit);
        });
    }
}

/// A connection that is counted as long as it lives.
struct Visit {
    shared: Arc<Shared>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Which words a client of a tunnel waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tongue {
    Http,
    None,
    Socks,
}

impl Shared {
    /// Answers everything that was asked, but not for ever.
    fn answer_names(&self, socket: &UdpSocket) {
        const AT_ONCE: usize = 64;
        let mut buffer = [0; dns::LARGEST + 1];
        for _ in 0..AT_ONCE {
            let Ok((length, asker)) = socket.recv_from(&mut buffer) else {
                return;
            };
            let question = dns::read(buffer.get(..length).unwrap_or_default());
            let answer = match &question {
                Ok(question) => Some(question.answer(self.about_name(question))),
                Err(other) => other.answer().map(<[u8]>::to_vec),
            };
            if let Some(answer) = answer {
                let _ = socket.send_to(&answer, asker);
            }
        }
    }

    fn about_name(&self, question: &dns::Question<'_>) -> Says {
        let host = &question.host;
        if is_own_loopback(host) {
            return match question.kind {
                Kind::Address => Says::Address(Ipv4Addr::LOCALHOST),
                Kind::Other => Says::Nothing,
            };
        }
        if !self.dialer.judge.knows_name(host) {
            let rule = "the name is not on the list, so it was not looked up";
            self.log.refused(Way::Name, &host.to_string(), 0, rule);
            return Says::NoSuchName;
        }
        match question.kind {
            Kind::Other => Says::Nothing,
            Kind::Address => self
                .names
                .address(host)
                .map_or(Says::Failure, Says::Address),
        }
    }

    fn serve_proxied(&self, mut client: Stream) -> io::Result<()> {
        let deadline = Instant::now() + FIRST_WORDS;
        client.fill_to(1, deadline)?;
        match client.buffer.first() {
            Some(&socks::VERSION) => self.serve_socks(client, deadline),
            Some(&socks::OLD_VERSION) => {
                self.log
                    .refused(Way::Socks, "(version 4)", 0, "only version 5 is spoken");
                client.write_all(&socks::OLD_REFUSAL, ANSWER)?;
                client.close_gently();
                Ok(())
            }
            _ => match http::serve(self, &mut client, None, Door::Proxy)? {
                Next::Over => {
                    client.close_gently();
                    Ok(())
                }
                Next::Tunnel(destination) => {
                    self.tunnel(client, &destination, Way::Connect, Tongue::Http)
                }
            },
        }
    }

    fn serve_socks(&self, mut client: Stream, deadline: Instant) -> io::Result<()> {
        let (answer, chosen) = loop {
            match socks::greeting(&client.buffer) {
                Read::Whole(chosen, length) => {
                    client.take(length);
                    break chosen;
                }
                Read::Unfinished if client.fill(deadline)? == 0 => return Ok(()),
                Read::Unfinished => {}
            }
        };
        client.write_all(&answer, ANSWER)?;
        if chosen == Chosen::Nothing {
            client.close_gently();
            return Ok(());
        }
        loop {
            match socks::request(&client.buffer) {
                Ok(Read::Whole(destination, length)) => {
                    client.take(length);
                    return self.tunnel(client, &destination, Way::Socks, Tongue::Socks);
                }
                Ok(Read::Unfinished) if client.fill(deadline)? == 0 => return Ok(()),
                Ok(Read::Unfinished) => {}
                Err(wrong) => {
                    let why = wrong.error.map(|error| error.to_string());
                    let why = why.unwrap_or_else(|| "only CONNECT is served".to_owned());
                    self.log.refused(Way::Socks, "(unreadable)", 0, &why);
                    client.write_all(&wrong.reply.to_bytes(), ANSWER)?;
                    client.close_gently();
                    return Ok(());
                }
            }
        }
    }

    /// Serves a program that believes it has reached a host itself.
    fn serve_carried(&self, client: Stream) -> io::Result<()> {
        let local = client.socket.local_addr()?.ip().to_canonical();
        let destination = match local {
            IpAddr::V4(address) => self.names.destination(address),
            IpAddr::V6(_) => None,
        };
        if let Some(destination) = destination {
            return self.tunnel(client, &destination, Way::Direct, Tongue::None);
        }
        client.reset();
        Ok(())
    }

    /// Decides, dials, and carries.
    fn tunnel(
        &self,
        mut client: Stream,
        destination: &Destination,
        way: Way,
        tongue: Tongue,
    ) -> io::Result<()> {
        let entry = self.log.begin(way, destination);
        let rule = match self.dialer.decide(destination) {
            Ok(rule) => rule,
            Err(refusal) => return refused(client, &entry, tongue, &refusal),
        };
        entry.allowed(&rule);
        let mut server = match self.dialer.dial(destination, &self.stop) {
            Ok(server) => server,
            Err(refusal) => return refused(client, &entry, tongue, &refusal),
        };
        match tongue {
            Tongue::Http => {
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n", ANSWER)?;
            }
            Tongue::Socks => client.write_all(&Reply::Succeeded.to_bytes(), ANSWER)?,
            Tongue::None => {}
        }
        if destination.port == 80 && first_words_are_http(&mut client)? {
            // Every request can say another host, so each is looked at.
            let door = Door::Direct(destination, &entry);
            let served = http::serve(self, &mut client, Some(server), door);
            entry.done();
            client.close_gently();
            return served.map(|_| ());
        }
        let mut agreement = Agreement { destination };
        let ended = relay(&mut client, &mut server, &entry, Some(&mut agreement));
        entry.done();
        match ended {
            Ok(Ended::Over) => {}
            Ok(Ended::Refused(why)) => {
                entry.ends(Outcome::Refused, &why);
                client.reset();
            }
            Err(_) => client.reset(),
        }
        Ok(())
    }

    fn serve_outside(&self, mut client: Stream, port: u16) -> io::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let entry = self.log.begin(Way::LoopbackOut, &Destination::of(address));
        entry.allowed("--loopback-out");
        let Ok(server) = TcpStream::connect_timeout(&address, ANSWER) else {
            entry.ends(Outcome::Failed, "nothing of the host listens there");
            client.reset();
            return Ok(());
        };
        let mut server = Stream::new(server, Arc::clone(&self.stop))?;
        let ended = relay(&mut client, &mut server, &entry, None);
        entry.done();
        ended.map(|_| ())
    }

    fn serve_inside(&self, mut client: Stream, port: u16) -> io::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let entry = self.log.begin(Way::LoopbackIn, &Destination::of(address));
        entry.allowed("--loopback-in");
        match self.stash.connect(port) {
            Some(Ok(server)) => {
                let mut server = Stream::new(server, Arc::clone(&self.stop))?;
                let ended = relay(&mut client, &mut server, &entry, None);
                entry.done();
                self.stash.put_back(server.socket);
                ended.map(|_| ())
            }
            Some(Err(_)) => {
                entry.ends(Outcome::Failed, "nothing inside listens there");
                client.reset();
                Ok(())
            }
            None => {
                entry.ends(Outcome::Failed, "too many connections at once");
                client.reset();
                Ok(())
            }
        }
    }
}

/// Whether a client of port 80 speaks HTTP. It always speaks first.
fn first_words_are_http(client: &mut Stream) -> io::Result<bool> {
    let deadline = Instant::now() + FIRST_WORDS;
    loop {
        match looks_like_request(&client.buffer) {
            Some(http) => return Ok(http),
            None if client.fill(deadline)? == 0 => return Ok(false),
            None => {}
        }
    }
}

/// `localhost` and what is below it mean the session's own loopback, whoever asks.
fn is_own_loopback(host: &Host) -> bool {
    matches!(host, Host::Name(name)
        if name.as_str() == "localhost" || name.as_str().ends_with(".localhost"))
}

/// Tells a client in its own tongue.
fn refused(mut client: Stream, entry: &Entry, tongue: Tongue, refusal: &Refusal) -> io::Result<()> {
    let outcome = match refusal {
        Refusal::Unreachable { .. } => Outcome::Failed,
        _ => Outcome::Refused,
    };
    entry.ends(outcome, &refusal.line());
    match tongue {
        Tongue::Http => client.write_all(&refusal.to_http("CONNECT"), ANSWER)?,
        Tongue::Socks => client.write_all(&socks_reply(refusal).to_bytes(), ANSWER)?,
        Tongue::None => {
            client.reset();
            return Ok(());
        }
    }
    client.close_gently();
    Ok(())
}

fn socks_reply(refusal: &Refusal) -> Reply {
    match refusal {
        Refusal::Malformed { .. } => Reply::Failed,
        Refusal::Policy { .. } => Reply::NotAllowed,
        Refusal::Unreachable { failure, .. } => match failure {
            Failure::Refused => Reply::Refused,
            Failure::Late | Failure::Lookup | Failure::Unreachable => Reply::HostUnreachable,
            Failure::Upstream => Reply::Failed,
        },
    }
}

/// Whether a client's first words agree with what it asked for.
struct Agreement<'d> {
    destination: &'d Destination,
}

impl Inspect for Agreement<'_> {
    fn look(&mut self, said: &[u8]) -> Look {
        let refuse = |why: &str| Look::Refuse(why.to_owned());
        let Host::Name(_) = &self.destination.host else {
            // An address has no name that anything could disagree with.
            return Look::Pass;
        };
        match hello::read(said) {
            Err(error) => Look::Refuse(error.to_string()),
            Ok(Hello::Named(name)) if names_host(&name, &self.destination.host) => Look::Pass,
            Ok(Hello::Named(_)) => refuse("the TLS server name is not the host that was asked for"),
            Ok(Hello::Nameless) if self.destination.port == 443 => {
                refuse("the TLS hello has no server name")
            }
            Ok(Hello::Nameless) => Look::Pass,
            Ok(Hello::Unfinished) => Look::More,
            Ok(Hello::NotTls) => self.plain(said),
        }
    }
}

impl Agreement<'_> {
    /// Words that are not TLS.
    fn plain(&self, said: &[u8]) -> Look {
        // Some hosts serve ssh where only this port is open.
        const SSH: &[u8] = b"SSH-";
        match self.destination.port {
            443 if said.starts_with(SSH) => Look::Pass,
            443 if SSH.starts_with(said) => Look::More,
            443 => Look::Refuse("on port 443 only TLS and ssh are carried".to_owned()),
            _ => Look::Pass,
        }
    }
}
