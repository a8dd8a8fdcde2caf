//! Who is told what happens in a session, while it happens.
//!
//! Everything is told on the supervisor's own thread, between two turns of its loop. What others
//! find out on theirs (the gate, and whoever is asked about a host) waits in a list and rings a bell.
//! Each thing is told once, and no session can make more of it than there is room for.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use ringfence_gate::Destination;
use ringfence_gate::judge::{Answer, Decider};
use ringfence_gate::serve::Gate;
use ringfence_sys::Errno;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use super::broker::Broker;
use super::running::Running;
use crate::audit::{Denial, Denied};
use crate::event::{Event, Happened};
use crate::launch::{Cause, Observer};

/// How many different things a session can be denied that are told while it runs; the report has
/// more.
const MOST_DENIED: usize = 1024;
/// How often a command can be stopped or continued and somebody hears of it.
const MOST_TURNS: usize = 1024;

/// What was told of a session.
#[derive(Debug, Default)]
pub(super) struct Told {
    denied: HashSet<(Denied, String)>,
    /// How many of the names that somebody tried to make.
    names: usize,
    /// How many of the files that somebody tried to write where nothing may be written.
    files: usize,
    turns: usize,
    pub(super) decisions: Option<Arc<Decisions>>,
}

impl Told {
    fn is_new(&mut self, denial: &Denial) -> bool {
        self.denied.len() < MOST_DENIED && self.denied.insert((denial.what, denial.target.clone()))
    }
}

/// Answers about hosts that nobody was told of yet.
#[derive(Debug)]
pub(super) struct Decisions {
    untold: Mutex<Vec<Event>>,
    bell: OwnedFd,
}

/// Asks somebody, and remembers what was said.
#[derive(Debug)]
struct Listening {
    decider: Arc<dyn Decider>,
    decisions: Arc<Decisions>,
}

impl Decisions {
    /// Puts an ear between a gate and whoever it asks.
    pub(super) fn of(decider: Arc<dyn Decider>) -> Result<(Arc<Self>, Arc<dyn Decider>), Errno> {
        let decisions = Arc::new(Self {
            untold: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let listening = Listening {
            decider,
            decisions: Arc::clone(&decisions),
        };
        Ok((decisions, Arc::new(listening)))
    }

    fn take(&self) -> Vec<Event> {
        // Before they are taken: what comes in between rings again.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        let untold = self.untold.lock();
        std::mem::take(&mut *untold.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Decider for Listening {
    fn decide(&self, destination: &Destination) -> Answer {
        let answer = self.decider.decide(destination);
        let destination = destination.clone();
        let event = Event::now(Happened::Decided {
            destination,
            answer,
        });
        let untold = self.decisions.untold.lock();
        untold.unwrap_or_else(PoisonError::into_inner).push(event);
        // One that rings already is heard.
        let _ = rustix::io::write(&self.decisions.bell, &1_u64.to_ne_bytes());
        answer
    }
}

impl Running {
    /// Adds what rings when there is something to tell.
    pub(super) fn bells<'a>(&'a self, watched: &mut Vec<PollFd<'a>>) {
        if let Some(gate) = &self.gate {
            watched.push(PollFd::new(gate, PollFlags::IN));
        }
        if let Some(decisions) = &self.told.decisions {
            watched.push(PollFd::new(&decisions.bell, PollFlags::IN));
        }
    }

    /// Tells what has happened since the last time.
    pub(super) fn tell(&mut self, observer: &mut dyn Observer) {
        if let Some(decisions) = &self.told.decisions {
            for event in decisions.take() {
                observer.happened(&event);
            }
        }
        let sockets = self.broker.as_ref().map(Broker::untold);
        let mut fresh = sockets.unwrap_or_default();
        if let Some(guard) = self.broker.as_ref().map(Broker::guard)
            && let Some(guard) = guard.as_ref()
        {
            let names = guard.tried().iter().skip(self.told.names);
            fresh.extend(names.map(|name| Denial::of_name(name)));
            self.told.names = guard.tried().len();
            let files = guard.unwritable().after(self.told.files);
            self.told.files += files.len();
            fresh.extend(files.iter().map(|file| Denial::of_file(file)));
        }
        for attempt in self.gate.iter().flat_map(Gate::refused) {
            fresh.extend(Denial::at_gate(&attempt));
        }
        for denial in fresh {
            if self.told.is_new(&denial) {
                observer.happened(&Event::now(Happened::Denied(denial)));
            }
        }
    }

    /// Tells that the command was stopped, or goes on.
    pub(super) fn tell_turn(&mut self, happened: Happened, observer: &mut dyn Observer) {
        self.told.turns += 1;
        if self.told.turns <= MOST_TURNS {
            observer.happened(&Event::now(happened));
        }
    }
}

/// Tells which limit has ended a command, if one has.
pub(super) fn tell_limit(cause: Cause, observer: &mut dyn Observer) {
    if let Some(limit) = cause.limit() {
        observer.happened(&Event::now(Happened::Limited(limit)));
    }
}
