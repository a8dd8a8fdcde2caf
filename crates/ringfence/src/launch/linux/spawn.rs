//! Prepared –spawn→ running: the first process gets its orders, and is heard.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use ringfence_core::plan::{NetworkNamespace, Step};
use ringfence_sys::namespaces::Namespaces;
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Child;
use ringfence_sys::{Errno, sockets};

use super::broker::Broker;
use super::cover::Session;
use super::helper::Hands;
use super::init::{Boundary, Inside, Unborn};
use super::prepare::{Prepared, Start, refused};
use super::running::Running;
use super::seat;
use super::unix::Reachable;
use super::wire;
use crate::launch::{Decider, LaunchError};
use crate::track::group::SessionGroup;

impl Prepared {
    /// Has somebody asked about hosts on nobody's list; without this they are refused.
    ///
    /// A connection is held while somebody is asked. Silence means no.
    pub fn asking(mut self, decider: Arc<dyn Decider>) -> Self {
        self.gate = self.gate.map(|gate| gate.ask(decider));
        self
    }

    /// Whether a first process is there already, with its first orders.
    #[doc(hidden)]
    pub fn is_ahead(&self) -> bool {
        matches!(self.start, Start::Own(_, Some(_)))
    }

    /// Starts the session and returns once the command runs.
    ///
    /// The calling process is not restricted and may have threads. The session ends when the
    /// calling thread does, so call this from one that lives long enough; with a first process that
    /// was begun ahead, when the thread does that began it.
    ///
    /// # Errors
    ///
    /// On any [`LaunchError`] no code of the command has run, and nothing is left.
    pub fn spawn(self) -> Result<Running, LaunchError> {
        self.spawn_while(|| ())
    }

    /// The same; does something while the command is being started, which may still come to nothing.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    #[doc(hidden)]
    pub fn spawn_while(self, meanwhile: impl FnOnce()) -> Result<Running, LaunchError> {
        // At the last moment: everything up to here can be done beside the walk, and undone.
        if self.walking.is_some_and(|walk| !walk.finds_the_same()) {
            return Err(LaunchError::Changed);
        }
        let asked = match &self.start {
            Start::Own(_, Some(ahead)) => ahead.begun,
            _ => wire::now(),
        };
        let mut acts = Vec::new();
        let named = || self.names.of(&self.plan);
        let (child, inside, outside, names) = match self.start {
            Start::Own(mut unborn, Some(ahead)) => {
                if !ahead.is_current() {
                    return Err(LaunchError::Changed);
                }
                let (child, first, names) = ahead.finish(&mut unborn, named)?;
                acts = first;
                (child, unborn.inside, None, names)
            }
            Start::Own(unborn, None) => {
                let names = named()?;
                let (child, inside) = born(*unborn, self.namespaces, self.held.group.as_ref())?;
                (child, inside, None, names)
            }
            Start::Through(bwrap, inside) => {
                let names = named()?;
                let started = bwrap.start(&inside, self.held.group.as_ref())?;
                (started.child, *inside, Some(started.outside), names)
            }
        };
        let boundary = inside.boundary;
        // Our copies of the inside's ends must go, or their silence would never be heard.
        acts.extend(inside.release());
        let mut running = Running::new(
            child, boundary, self.end, self.wall, names, self.plan, self.tmp,
        );
        running.held = self.held;
        running.indexes = self.indexes;
        running.linger = self.linger;
        let mut own_filesystems = Vec::new();
        if let Some(outside) = outside {
            (running, own_filesystems) = running.greeted(&outside, &self.failure, &acts)?;
        }
        running.open_gate(self.gate)?;
        running.terminal = receive(self.terminal)?;
        // From here on the first process becomes its own program and starts the command, so whatever
        // else there is to do is done before that is waited for.
        if let Some(socket) = self.asked_over {
            let asked = broker(&socket, self.namespaces, boundary, running.id());
            let (broker, session) = match asked {
                Ok(asked) => asked,
                // It may have said why before it went.
                Err(error) => {
                    running.started(&self.failure, &acts, &self.program)?;
                    return Err(error);
                }
            };
            running.ask(broker.reaching(Reachable {
                private: own_filesystems,
                granted: self.sockets,
            }));
            running.session = Some(session);
        }
        let running = running.watching_names()?;
        meanwhile();
        let mut running = running.started(&self.failure, &acts, &self.program)?;
        if let Some(timeline) = self.timeline {
            running.timeline = marks(asked, &timeline);
        }
        running.expect_registration(self.registry);
        Ok(running)
    }
}

/// Starts a first process of ours.
fn born(
    mut unborn: Unborn,
    namespaces: Namespaces,
    group: Option<&SessionGroup>,
) -> Result<(Child, Inside), LaunchError> {
    let at_birth = match unborn.inside.hands {
        Hands::One => namespaces,
        // The helper makes the network's.
        Hands::Two => namespaces.difference(Namespaces::NET),
    };
    let mut spawn = Spawn::new(Memory::Shared).namespaces(at_birth);
    if let Some(group) = group {
        spawn = spawn.cgroup(group.as_fd());
    }
    let born = spawn.start(&mut unborn, super::init::live);
    let child = born.map_err(|errno| LaunchError::Act {
        step: crate::launch::StepName(Step::Namespaces),
        object: None,
        source: errno.into(),
    })?;
    Ok((child, unborn.inside))
}

/// Receives the outer end of the session's terminal.
fn receive(terminal: Option<seat::Outer>) -> Result<Option<OwnedFd>, LaunchError> {
    let received = terminal.map(seat::Outer::receive).transpose();
    let received = received.map_err(|errno| refused("receive the session's terminal", errno))?;
    Ok(received.flatten())
}

/// Receives the calls that the filter asks about, and where the session is.
fn broker(
    socket: &OwnedFd,
    namespaces: Namespaces,
    boundary: Boundary,
    first: i32,
) -> Result<(Broker, Session), LaunchError> {
    let mut message = [0; 1];
    let received = sockets::receive(socket, &mut message)
        .map_err(|errno| refused("receive the filter's listener", errno))?;
    let [Some(listener), Some(root), Some(user), Some(mount), ..] = received.descriptors else {
        return Err(refused("receive the filter's listener", Errno::BADMSG));
    };
    let network = if namespaces.contains(Namespaces::NET) {
        NetworkNamespace::Own
    } else {
        NetworkNamespace::Shared
    };
    let changes = std::fs::File::open(format!("/proc/{first}/mountinfo"));
    let session = Session {
        root,
        user,
        mount,
        changes: changes.ok().map(OwnedFd::from),
    };
    let mut broker = Broker::new(listener, network);
    if boundary == Boundary::PidNamespace {
        let user = session.user.try_clone();
        broker = broker.sharing(user.map_err(|source| LaunchError::Prepare {
            what: "hold the session's user namespace".to_owned(),
            source,
        })?);
    }
    Ok((broker, session))
}

/// How long each step took, from the request to the command.
fn marks(asked: Duration, timeline: &OwnedFd) -> Vec<(Step, Duration)> {
    let mut before = asked;
    let mut marks = wire::receive_marks(timeline);
    marks.push((Step::Command, wire::now()));
    for (_, mark) in &mut marks {
        let took = mark.saturating_sub(before);
        before = *mark;
        *mark = took;
    }
    marks
}
