//! The first process of a session, until it is its own program.
//!
//! It carries out the plan in the memory of whoever started it, which sleeps meanwhile or does something
//! else ([`super::ahead`]), and then becomes the program that stays with the session ([`ringfence_sys::init`]): that starts the
//! command, reaps, passes signals on, says how the command ended, and has nothing of ours in its
//! memory. So a session costs the same from a program of any size.
//!
//! Everything here runs between the birth of a process and its exec, in memory that is somebody
//! else's: no allocation, no lock, no log, no panic, and nothing is dropped that the supervisor
//! still has.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use ringfence_core::plan::Step;
use ringfence_sys::ahead::Leave;
use ringfence_sys::failure::Failure;
use ringfence_sys::init::wire::{Background, Fails, NO_PROGRAM, Orders, SEAT, Steps};
use ringfence_sys::init::{Program, Told};
use ringfence_sys::process::{self, Limit, LimitedResource};
use ringfence_sys::{Errno, Signal, Subject, descriptors, mounts, signals};
use rustix::event::{PollFd, PollFlags, poll};

use super::acts::{Acts, Kept, Ready};
use super::ahead::UNWANTED;
use super::helper::{Hands, Help};
use super::seat::Seat;
use super::wire;
use crate::launch::Linger;
use crate::launch::beside::timespec;

pub(super) use ringfence_sys::init::wire::{Boundary, Going};

/// All that the inside of a session needs, laid out before it exists.
#[derive(Debug)]
pub(super) struct Inside {
    pub(super) boundary: Boundary,
    /// Who sets the session up.
    pub(super) hands: Hands,
    pub(super) acts: Acts,
    /// The limit that carries the session's mark, where it has one.
    pub(super) mark: Option<Limit>,
    /// What becomes of background processes when the command has ended.
    pub(super) linger: Linger,
    /// When the first process goes.
    pub(super) going: Going,
    pub(super) directory: CString,
    pub(super) command: Words,
    pub(super) voice: Arc<Voice>,
    /// Says how the command ended.
    pub(super) end: OwnedFd,
    /// What the command reads and writes, and on which terminal.
    pub(super) seat: Seat,
    /// The supervisor's ends of both pipes, if the first process has copies of them at birth.
    pub(super) outer: Option<[RawFd; 2]>,
}

/// How the first process says what it has done.
#[derive(Debug)]
pub(super) struct Voice {
    /// Says which act failed; its silence says that the command runs.
    pub(super) failure: OwnedFd,
    /// Says when each step was done, if somebody wants to know.
    pub(super) timeline: Option<OwnedFd>,
    /// Where it fails in any case.
    pub(super) fail_at: Option<Step>,
}

impl Voice {
    /// Says that a step is done now.
    fn mark(&self, step: Step) {
        if self.timeline.is_some() {
            self.mark_at(step, wire::now());
        }
    }

    /// Says when a step was done.
    pub(super) fn mark_at(&self, step: Step, done: Duration) {
        if let Some(timeline) = &self.timeline {
            wire::send_mark(timeline.as_fd(), step, done);
        }
    }

    /// Says what failed; the status to end with.
    pub(super) fn fail(&self, step: Step, detail: u32, errno: Errno) -> u8 {
        let failure = Failure {
            act: wire::number(step).into(),
            errno,
            detail,
        };
        // If nobody listens any more there is nobody to tell.
        let _ = failure.send(&self.failure);
        FAILED
    }
}

/// What is to be run.
#[derive(Debug)]
pub(super) struct Words {
    /// Where the program may be, in the order in which it is looked for.
    pub(super) programs: Vec<CString>,
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
}

/// The program of the first process, with everything it is told.
#[derive(Debug)]
pub(super) struct Becoming {
    program: Program,
    told: Told,
}

/// A session that only has to be born.
#[derive(Debug)]
pub(super) struct Unborn {
    pub(super) inside: Inside,
    pub(super) becoming: Becoming,
}

/// The status of a first process that could not do its work; the pipe says why.
const FAILED: u8 = 125;

impl Inside {
    /// Lays out the program that the first process becomes. The command's words go into it.
    pub(super) fn becoming(&mut self) -> Result<Becoming, Errno> {
        let [init, command] = [Step::Init, Step::Command].map(wire::number);
        let number = |fd: BorrowedFd<'_>| fd.as_raw_fd().unsigned_abs();
        let orders = Orders {
            failure: number(self.voice.failure.as_fd()),
            end: number(self.end.as_fd()),
            timeline: self.voice.timeline.as_ref().map(|fd| number(fd.as_fd())),
            waits: self.waits().map(|wait| wait.map(number)),
            terminal: self.seat.terminal().map(number),
            boundary: self.boundary,
            background: match self.linger {
                Linger::No => Background::Ends,
                Linger::Yes => Background::Stays,
            },
            going: self.going,
            fails: match self.voice.fail_at {
                Some(Step::Init) => Fails::Init,
                Some(Step::Command) => Fails::Command,
                _ => Fails::Nothing,
            },
            // Counted where they are laid out.
            programs: 0,
            arguments: 0,
            steps: Steps { init, command },
        };
        let words = &mut self.command;
        let programs = std::mem::take(&mut words.programs);
        let arguments = std::mem::take(&mut words.arguments);
        let environment = std::mem::take(&mut words.environment);
        Ok(Becoming {
            program: Program::new()?,
            told: Told::new(&orders, programs, arguments, environment)?,
        })
    }

    /// Lets go of everything but the acts, which explain failures.
    pub(super) fn release(mut self) -> Acts {
        for (_, act) in &mut self.acts {
            act.let_go();
        }
        self.acts
    }

    /// Whose word is waited for before the command starts.
    fn waits(&self) -> [Option<BorrowedFd<'_>>; 2] {
        let gate = self.acts.iter().find_map(|(_, act)| act.handed_over());
        [gate.map(AsFd::as_fd), self.seat.waits_for()]
    }

    /// The descriptors that the program of the first process needs.
    fn inherited(&self) -> [Option<BorrowedFd<'_>>; 6] {
        let [gate, seat] = self.waits();
        [
            Some(self.voice.failure.as_fd()),
            Some(self.end.as_fd()),
            self.voice.timeline.as_ref().map(AsFd::as_fd),
            self.seat.terminal(),
            gate,
            seat,
        ]
    }
}

impl Unborn {
    /// The descriptors that stay open in the first process.
    fn kept(&self) -> Kept<'_> {
        let listener = self.inside.acts.iter().find_map(|(_, act)| act.listener());
        let [failure, end, timeline, terminal, gate, seat] = self.inside.inherited();
        [
            failure,
            end,
            timeline,
            terminal,
            gate,
            seat,
            listener.map(AsFd::as_fd),
            Some(self.becoming.program.as_fd()),
        ]
    }
}

/// The life of the first process until it is its own program; a result is the status it ends with
/// because it could not become that.
pub(super) fn live(subject: &Subject, unborn: &mut Unborn) -> u8 {
    let unborn = &*unborn;
    let inside = &unborn.inside;
    let voice = &inside.voice;
    voice.mark(Step::Namespaces);
    if let Err((step, errno)) = tie_to_parent(subject, inside) {
        return voice.fail(step, 0, errno);
    }
    if let Err(errno) = signals::reset_dispositions(subject) {
        return voice.fail(Step::Init, 0, errno);
    }
    match Help::begin(subject, inside.hands) {
        Ok(help) => go_on(subject, unborn, help, None),
        Err(errno) => voice.fail(Step::Namespaces, 0, errno),
    }
}

/// The same for one that was born before its orders, has carried out the first of them, and now
/// gets the rest.
pub(super) fn live_on(subject: &Subject, unborn: &Unborn, leave: Leave<'_>) -> u8 {
    let inside = &unborn.inside;
    // From here on descriptors are closed, and they must be its own.
    let parted = descriptors::part(subject).and_then(|()| has_parent(subject, inside));
    match parted {
        Ok(()) => go_on(subject, unborn, Help::Ahead, Some(leave)),
        Err(errno) => inside.voice.fail(Step::Descriptors, 0, errno),
    }
}

/// Carries out all acts that are left and becomes its own program, with the leave of a supervisor that
/// has something else to do meanwhile.
fn go_on(subject: &Subject, unborn: &Unborn, mut help: Help, leave: Option<Leave<'_>>) -> u8 {
    let inside = &unborn.inside;
    let voice = &inside.voice;
    let done = set_up(subject, unborn, &mut help);
    // In any case: it works in memory that is not only ours.
    let helped = help.finish();
    if let Err(status) = done {
        return status;
    }
    if let Err(errno) = helped {
        return voice.fail(Step::Root, 0, errno);
    }
    let ready = mounts::change_directory_to(subject, &inside.directory)
        .and_then(|()| pass_on_descriptors(subject, inside));
    if let Err(errno) = ready {
        return voice.fail(Step::Init, 0, errno);
    }
    if leave.is_some_and(|leave| !leave.is_granted()) {
        return UNWANTED;
    }
    let Becoming { program, told } = &unborn.becoming;
    match program.run(subject, told) {
        // They are the command's, and too much for it as well.
        Errno::TOOBIG => voice.fail(Step::Command, NO_PROGRAM, Errno::TOOBIG),
        errno => voice.fail(Step::Init, 0, errno),
    }
}

/// Carries out all acts, in order; an error is the status to end with.
fn set_up(subject: &Subject, unborn: &Unborn, help: &mut Help) -> Result<(), u8> {
    let inside = &unborn.inside;
    // In the new root, whose terminals are the session's own, and before any rule binds.
    let seated = inside
        .acts
        .partition_point(|(step, _)| *step < Step::Descriptors);
    let (before, after) = inside.acts.split_at(seated);
    let voice = &inside.voice;
    carry_out(subject, voice, before, unborn.kept(), help)?;
    let taken = inside.seat.take(subject);
    taken.map_err(|errno| voice.fail(Step::Init, SEAT, errno))?;
    carry_out(subject, voice, after, unborn.kept(), help)
}

/// Carries out some of the acts.
pub(super) fn carry_out(
    subject: &Subject,
    voice: &Voice,
    acts: &[(Step, Ready)],
    kept: Kept<'_>,
    help: &mut Help,
) -> Result<(), u8> {
    for (step, act) in acts {
        if voice.fail_at == Some(*step) {
            return Err(voice.fail(*step, 0, Errno::IO));
        }
        let done = help.carry_out(subject, act, kept);
        done.map_err(|(detail, errno)| voice.fail(*step, detail, errno))?;
        voice.mark(*step);
    }
    Ok(())
}

/// Leaves open at exec what the first process's program was told of.
fn pass_on_descriptors(subject: &Subject, inside: &Inside) -> Result<(), Errno> {
    for fd in inside.inherited().into_iter().flatten() {
        descriptors::place(subject, fd, fd.as_raw_fd())?;
    }
    Ok(())
}

/// Makes sure that this process never outlives its supervisor. None of it is about namespaces, which
/// there may be none of.
fn tie_to_parent(subject: &Subject, inside: &Inside) -> Result<(), (Step, Errno)> {
    let of = |step: Step| move |errno| (step, errno);
    match inside.boundary {
        // It must live long enough to end the others; it hears of the end by the pipe. If the
        // command has stopped it, it goes on.
        Boundary::Descent => {
            process::signal_at_parents_end(subject, Signal::CONT).map_err(of(Step::Init))?;
            process::become_subreaper(subject).map_err(of(Step::Init))?;
            if let Some(mark) = inside.mark {
                process::set_limit(subject, LimitedResource::Locks, mark)
                    .map_err(of(Step::Limits))?;
            }
        }
        Boundary::PidNamespace => {
            process::die_with_parent(subject, None, Signal::KILL).map_err(of(Step::Init))?;
        }
    }
    has_parent(subject, inside).map_err(of(Step::Init))
}

/// The parent cannot be seen from in here. If it went before it was known that we are to go with
/// it, nobody but this process holds the other end of its pipe any more.
fn has_parent(subject: &Subject, inside: &Inside) -> Result<(), Errno> {
    for outer in inside.outer.into_iter().flatten() {
        close(subject, outer)?;
    }
    let mut watched = [PollFd::new(&inside.end, PollFlags::empty())];
    poll(&mut watched, Some(&timespec(Duration::ZERO)))?;
    if watched[0].revents().contains(PollFlags::ERR) {
        return Err(Errno::SRCH);
    }
    Ok(())
}

fn close(subject: &Subject, number: RawFd) -> Result<(), Errno> {
    let number = number.unsigned_abs();
    descriptors::close_between(subject, number, number)
}
