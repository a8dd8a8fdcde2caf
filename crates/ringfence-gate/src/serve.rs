//! Serves the sockets that were made inside a session, or for it.
//!
//! One thread waits at the doors and answers questions for names; each connection gets a thread of
//! its own, small and bounded in number, so that a client that does nothing holds up nobody. What
//! comes in is told apart by its first byte: SOCKS, or HTTP.
//!
//! The gate lives as long as its [`Gate`]. When that goes, the doors are closed and every
//! connection ends; the session has no other network, so it has none from then on.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::dial::Dialer;
use crate::event::{Attempt, Bell, Log};
use crate::names::{Carried, Names};
use crate::stash::Stash;
use crate::stream::{Stop, Stream, pipe, timespec};
use crate::token::Token;

/// How many connections a session may have at once, if there are descriptors for them.
const MOST: usize = 1024;
/// Descriptors that a connection may need, two of its own and two pipes, and those that are left
/// alone.
const EACH: usize = 6;
const SPARE: usize = 128;
/// Enough for the system's resolver, which is what needs most.
const STACK: usize = 256 << 10;
/// How many threads wait for the next connection, and for how long.
const MOST_IDLE: usize = 4;
const IDLE: Duration = Duration::from_secs(5);
/// How long the doors stay closed when there is nothing left to open them with.
const BREATH: Duration = Duration::from_millis(100);

/// Sockets that were made inside a session or for it, bound and listening.
#[derive(Debug, Default)]
pub struct Doors {
    /// For HTTP and SOCKS clients.
    pub proxy: Option<OwnedFd>,
    /// What those have to say, if others than the session's can reach that socket.
    pub token: Option<Token>,
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
    /// Readable when something was refused.
    heard: OwnedFd,
    /// Its closing ends everything.
    end: Option<OwnedFd>,
    waiting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dialer: Dialer,
    pub(crate) token: Option<Token>,
    pub(crate) log: Log,
    pub(crate) names: Names,
    pub(crate) stash: Stash,
    pub(crate) stop: Stop,
    crew: Crew,
    connections: AtomicUsize,
    most: usize,
}

#[derive(Clone, Copy, Debug)]
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
        let (stop, end) = pipe()?;
        let (heard, bell) = pipe()?;
        for end in [&heard, &bell] {
            fcntl_setfl(end, OFlags::NONBLOCK)?;
        }
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let most = (limit.saturating_sub(SPARE) / EACH).clamp(16, MOST);
        let shared = Arc::new(Shared {
            dialer,
            token: doors.token.take(),
            log: Log::ringing(ringing(bell)),
            names: Names::default(),
            stash: Stash::new(std::mem::take(&mut doors.stash)),
            stop: Arc::new(stop),
            crew: Crew::default(),
            connections: AtomicUsize::new(0),
            most,
        });
        let waiting = Waiting::new(doors, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new()
            .name("ringfence-gate".to_owned())
            .stack_size(STACK);
        let waiting = thread.spawn(move || waiting.serve())?;
        Ok(Self {
            shared,
            heard,
            end: Some(end),
            waiting: Some(waiting),
        })
    }

    /// Where a connection of a program inside has to go.
    pub fn carrier(&self) -> Carrier {
        Carrier(Arc::clone(&self.shared))
    }

    /// What was refused since this was last asked. The gate itself is readable when there is
    /// something.
    pub fn refused(&self) -> Vec<Attempt> {
        // Before they are taken: what comes in between rings again.
        let _ = rustix::io::read(&self.heard, &mut [0; 64]);
        self.shared.log.news()
    }

    /// Every attempt up to now, and how many were not kept.
    pub fn attempts(&self) -> (Vec<Attempt>, u64) {
        (self.shared.log.attempts(), self.shared.log.dropped())
    }
}

impl AsFd for Gate {
    /// Readable when something was refused.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.heard.as_fd()
    }
}

fn ringing(bell: OwnedFd) -> Bell {
    Box::new(move || {
        // One that is full rings already.
        let _ = rustix::io::write(&bell, b"!");
    })
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
            shared.refuse_uncarried(&destination);
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
            let breath = timespec(BREATH);
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
                self.admit(*wants, door);
            }
        }
    }

    fn admit(&self, wants: Wants, door: &TcpListener) {
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
        self.shared
            .crew
            .take_on(&self.shared, Visit { wants, client });
    }
}

impl Shared {
    fn serve(&self, visit: Visit) {
        let Visit { wants, client } = visit;
        // Whatever breaks is the end of this connection and of nothing else.
        let _ = match wants {
            Wants::Proxied => self.serve_proxied(client),
            Wants::Carried => self.serve_carried(client),
            Wants::Outside(port) => self.serve_outside(client, port),
            Wants::Inside(port) => self.serve_inside(client, port),
        };
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Somebody who came, and by which door.
struct Visit {
    wants: Wants,
    client: Stream,
}

/// Threads that serve. One that has nothing to do waits a while for the next connection, since
/// starting another would take longer than most requests.
#[derive(Default)]
struct Crew {
    waiting: Mutex<Queue>,
    news: Condvar,
}

#[derive(Default)]
struct Queue {
    visits: VecDeque<Visit>,
    idle: usize,
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").finish_non_exhaustive()
    }
}

impl Crew {
    fn take_on(&self, shared: &Arc<Shared>, visit: Visit) {
        let mut queue = self.queue();
        if queue.idle > queue.visits.len() {
            queue.visits.push_back(visit);
            self.news.notify_one();
            return;
        }
        drop(queue);
        let own = Arc::clone(shared);
        let thread = std::thread::Builder::new().stack_size(STACK);
        let started = thread.spawn(move || {
            let mut next = Some(visit);
            while let Some(visit) = next {
                own.serve(visit);
                next = own.crew.next();
            }
        });
        if started.is_err() {
            // The connection went with the thread that never was, which the client sees.
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The next visit, or `None` if none comes for a while.
    fn next(&self) -> Option<Visit> {
        let mut queue = self.queue();
        if queue.idle >= MOST_IDLE {
            return None;
        }
        queue.idle += 1;
        let empty = |queue: &mut Queue| queue.visits.is_empty();
        let waited = self.news.wait_timeout_while(queue, IDLE, empty);
        let mut queue = waited.map_or_else(|poisoned| poisoned.into_inner().0, |waited| waited.0);
        queue.idle -= 1;
        queue.visits.pop_front()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
