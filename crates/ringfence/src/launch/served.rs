//! A session with somebody to serve it, whether or not anybody waits for it.
//!
//! A running session asks: its connections are made by the supervisor, its limits are the
//! supervisor's to keep, and its first process lives only as long as the thread that started it. A
//! program that embeds ringfence has threads that come and go and that wait when it suits them, so
//! each session gets a thread of its own that starts it and stays with it. A thread for all sessions
//! would make each of them wait for the slowest answer of another; a process would have to be
//! somebody's child and would outlive whoever holds the handle.
//!
//! The thread also prepares the session, so that a first process which is born ahead of its orders
//! is the thread's own.
//!
//! The thread has all signals blocked, so no handler of the program ever runs on it, and a stack of
//! modest size. It ends with the session.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ringfence_sys::Signal;
use ringfence_sys::ready::{PollFd, PollFlags};
use ringfence_sys::signals::Mask;
use rustix::fs::{OFlags, fcntl_setfl};

use super::beside::Beside;
use super::{Cause, LaunchError, Observer, Report, Running, pipes};
use crate::event::Event;

/// Enough for making a policy, for a poll loop, and for building a report.
const STACK: usize = 1 << 20;

/// What a holder asks of a session.
#[derive(Clone, Copy, Debug)]
enum Order {
    End,
    Signal(Signal),
}

/// What a session tells its holder.
#[derive(Debug)]
#[non_exhaustive]
pub enum News {
    /// It is over. Nothing comes after this.
    Ended(Box<io::Result<Report>>),
    /// Something happened in it.
    Happened(Event),
}

/// A session that is served. Dropping it ends the session, and waits until it is over.
#[derive(Debug)]
pub struct Served {
    holder: Holder,
    thread: Option<JoinHandle<()>>,
    id: i32,
    terminal: Option<OwnedFd>,
}

/// What is known as soon as the command runs.
struct Started<T> {
    id: i32,
    terminal: Option<OwnedFd>,
    holder: Holder,
    more: T,
}

/// The holder's ends of what the thread is asked and tells by.
#[derive(Debug)]
struct Holder {
    orders: Sender<Order>,
    /// Wakes the thread.
    bell: OwnedFd,
    news: Receiver<News>,
    /// Rings when there are news: a byte comes in.
    told: OwnedFd,
    /// Closed by the thread when it has told everything.
    over: OwnedFd,
}

/// Has a thread of its own start a session, and returns once the command runs, with whatever else
/// there is to say about it. What `begin` returns is given to `start` after a while: it is for what
/// should not wait.
///
/// The calling process is not restricted and may have threads; the calling thread may end.
///
/// # Errors
///
/// What `start` returns, and every [`LaunchError`]: no code of the command has run, and nothing is
/// left.
pub(crate) fn serve<B, T, E>(
    begin: impl FnOnce() -> B + Send + 'static,
    start: impl FnOnce(B) -> Result<(Running, T), E> + Send + 'static,
) -> Result<(Served, T), E>
where
    T: Send + 'static,
    E: From<LaunchError> + Send + 'static,
{
    let (started, starts) = channel();
    let thread = std::thread::Builder::new()
        .name("ringfence".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // A thread without it would only run handlers that another could run as well.
            let _ = Mask::block_all();
            let begun = begin();
            let lines = open_lines().map_err(|source| refused("open a pipe", source));
            let running = lines
                .map_err(E::from)
                .and_then(|lines| Ok((start(begun)?, lines)));
            match running {
                Err(refusal) => {
                    let _ = started.send(Err(refusal));
                }
                Ok(((mut running, more), (holder, control, teller, open))) => {
                    let begun = Started {
                        id: running.id(),
                        terminal: running.take_terminal(),
                        holder,
                        more,
                    };
                    // Whoever is not there any more has ended the session by that.
                    let _ = started.send(Ok(begun));
                    let leaving = live(running, control, teller);
                    // Whoever waits for the end does not wait for what is left of the session.
                    drop(open);
                    drop(leaving);
                }
            }
        })
        .map_err(|error| refused("start a thread", error))?;
    let begun = starts.recv().unwrap_or_else(|_| {
        let source = io::Error::other("the thread that serves it has ended");
        Err(refused("start the session", source).into())
    });
    match begun {
        Ok(begun) => {
            let served = Served {
                holder: begun.holder,
                thread: Some(thread),
                id: begun.id,
                terminal: begun.terminal,
            };
            Ok((served, begun.more))
        }
        Err(refusal) => {
            // It has nothing left to do.
            let _ = thread.join();
            Err(refusal)
        }
    }
}

fn refused(what: &str, source: io::Error) -> LaunchError {
    LaunchError::Prepare {
        what: what.to_owned(),
        source,
    }
}

/// Opens what holder and thread speak by. The last is what the thread closes in the end.
fn open_lines() -> io::Result<(Holder, Control, Teller, OwnedFd)> {
    let (heard, bell) = make_bell()?;
    let (over, open) = pipes::pipe()?;
    let (orders, received) = channel();
    let (told, rings) = make_bell()?;
    let (sender, news) = channel();
    let holder = Holder {
        orders,
        bell,
        news,
        told,
        over,
    };
    let control = Control {
        bell: heard,
        orders: received,
        patience: None,
    };
    let teller = Teller {
        news: sender,
        bell: rings,
    };
    Ok((holder, control, teller, open))
}

/// A pipe that nobody waits at: what is heard, and what rings.
fn make_bell() -> io::Result<(OwnedFd, OwnedFd)> {
    let (heard, bell) = pipes::pipe()?;
    for end in [&heard, &bell] {
        fcntl_setfl(end, OFlags::NONBLOCK)?;
    }
    Ok((heard, bell))
}

/// Serves a session to its end and tells it. What is returned is what is left of the session.
fn live(mut running: Running, mut control: Control, mut teller: Teller) -> impl Sized {
    let report = running.attend_to_its_end(None, &mut control, &mut teller);
    // One that could not be waited for is ended first.
    let leaving = report.is_ok().then(move || running.leave());
    teller.tell(News::Ended(Box::new(report)));
    leaving
}

/// Tells the holder of a session what happens in it.
struct Teller {
    news: Sender<News>,
    bell: OwnedFd,
}

impl Teller {
    fn tell(&self, news: News) {
        // Whoever is not there any more has ended the session by that.
        if self.news.send(news).is_ok() {
            // One that is full rings already.
            let _ = rustix::io::write(&self.bell, &[0]);
        }
    }
}

impl Observer for Teller {
    fn settled(&mut self, _session: &Running) {}

    fn command_ended(&mut self, _session: &Running, _cause: Cause) {}

    fn happened(&mut self, event: &Event) {
        self.tell(News::Happened(event.clone()));
    }
}

impl Served {
    /// The number of the session's first process on this host.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Takes the outer end of the session's own terminal, if it has one.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// Asks for the session's end; its report comes as [`News`].
    pub fn end(&self) {
        self.order(Order::End);
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: Signal) {
        self.order(Order::Signal(signal));
    }

    fn order(&self, order: Order) {
        // A session that is over takes no orders.
        if self.holder.orders.send(order).is_ok() {
            // One that is full rings already.
            let _ = rustix::io::write(&self.holder.bell, b"!");
        }
    }

    /// Waits for the next news; `None` when there will be none.
    pub fn news(&mut self) -> Option<News> {
        let next = self.holder.news.recv().ok();
        self.heard(next)
    }

    /// The next news, if there are any now.
    pub fn try_news(&mut self) -> Option<News> {
        let mut next = self.holder.news.try_recv();
        if let Err(TryRecvError::Empty) = next {
            // What comes in between rings again, or is found by the second look.
            let _ = rustix::io::read(&self.holder.told, &mut [0; 512]);
            next = self.holder.news.try_recv();
        }
        self.heard(next.ok())
    }

    fn heard(&mut self, news: Option<News>) -> Option<News> {
        if let Some(News::Ended(_)) = news {
            // All that the thread has left to do is to wait for the first process.
            self.thread = None;
        }
        news
    }

    /// Readable when there may be news; [`try_news`](Self::try_news) stops it once there are none.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.holder.told.as_fd()
    }
}

impl AsFd for Served {
    /// Readable once the session is over and has told everything.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.holder.over.as_fd()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has dropped its session, which ended it.
            let _ = thread.join();
        }
    }
}

/// The thread's side.
#[derive(Debug)]
struct Control {
    bell: OwnedFd,
    orders: Receiver<Order>,
    patience: Option<Duration>,
}

impl Beside for Control {
    fn watched<'a>(&'a self, watched: &mut Vec<PollFd<'a>>) {
        watched.push(PollFd::new(&self.bell, PollFlags::IN));
    }

    fn patience(&self) -> Option<Duration> {
        self.patience
    }

    fn serve(&mut self, session: &Running) -> io::Result<()> {
        // It only wakes; the orders say why.
        let _ = rustix::io::read(&self.bell, &mut [0; 64]);
        loop {
            match self.orders.try_recv() {
                Ok(Order::Signal(signal)) => {
                    // It may have ended in this very moment.
                    let _ = session.signal(signal);
                }
                Ok(Order::End) | Err(TryRecvError::Disconnected) => {
                    self.patience = Some(Duration::ZERO);
                    return Ok(());
                }
                Err(TryRecvError::Empty) => return Ok(()),
            }
        }
    }

    fn stopped(&mut self, _session: &Running) -> io::Result<()> {
        // Whoever holds it was told, and decides.
        Ok(())
    }
}
