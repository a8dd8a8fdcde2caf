//! The first process of a session.
//!
//! It carries out the plan, starts the command and stays: it reaps what is orphaned, passes
//! signals on, and says how the command ended. In a pid namespace the kernel ends everything else
//! when it goes, for any reason. Without one it is the parent of every orphan, and ends them
//! itself, pass by pass, until none is left.
//!
//! Everything here runs after a fork in a process that may have had threads: no allocation, no
//! lock, no log, no panic.

use std::ffi::CString;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use ringfence_core::plan::Step;
use ringfence_sys::exec::{self, StringArray};
use ringfence_sys::failure::Failure;
use ringfence_sys::process::{self, Dumpable, Limit, LimitedResource};
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::signals::{self, Mask, SentBy, SignalFd};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::start::StartArea;
use ringfence_sys::wait::{self, Child, Ended};
use ringfence_sys::{Errno, Pid, Signal, Subject, descriptors, mounts, terminal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;

use super::acts::{Kept, Ready};
use super::helper::{Hands, Help};
use super::seat::Seat;
use super::wire;
use crate::launch::Linger;

/// All that the inside of a session needs, laid out before it exists.
#[derive(Debug)]
pub(super) struct Inside {
    pub(super) boundary: Boundary,
    /// Who sets the session up.
    pub(super) hands: Hands,
    /// The supervisor's arguments and environment, which are nobody's business in here.
    pub(super) start: StartArea,
    pub(super) acts: Vec<(Step, Ready)>,
    /// The limit that carries the session's mark, where it has one.
    pub(super) mark: Option<Limit>,
    /// What becomes of background processes when the command has ended.
    pub(super) linger: Linger,
    pub(super) fail_at: Option<Step>,
    pub(super) directory: CString,
    pub(super) programs: Vec<CString>,
    pub(super) arguments: StringArray,
    pub(super) environment: StringArray,
    /// Says which act failed; its silence says that the command runs.
    pub(super) failure: OwnedFd,
    /// Says how the command ended.
    pub(super) end: OwnedFd,
    /// What the command reads and writes, and on which terminal.
    pub(super) seat: Seat,
    /// Says when each step was done, if somebody wants to know.
    pub(super) timeline: Option<OwnedFd>,
    /// The supervisor's ends of both pipes, if the first process has copies of them at birth.
    pub(super) outer: Option<[RawFd; 2]>,
}

/// What keeps the processes of a session together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Boundary {
    /// Descent: orphans become children of the first process.
    Descent,
    /// A pid namespace, whose init the first process is.
    PidNamespace,
}

/// The status of a first process that could not do its work; the pipe says why.
const FAILED: u8 = 125;

impl Inside {
    /// Lets go of everything but the acts, which explain failures.
    pub(super) fn release(mut self) -> Vec<(Step, Ready)> {
        for (_, act) in &mut self.acts {
            act.let_go();
        }
        self.acts
    }

    /// The descriptors that stay open in the first process.
    fn kept(&self) -> Kept<'_> {
        let listener = self.acts.iter().find_map(|(_, act)| act.listener());
        [
            self.failure.as_fd(),
            self.end.as_fd(),
            self.timeline.as_ref().unwrap_or(&self.end).as_fd(),
            listener.unwrap_or(&self.end).as_fd(),
            self.seat.terminal().unwrap_or(&self.end).as_fd(),
        ]
    }

    fn mark(&self, step: Step) {
        if let Some(timeline) = &self.timeline {
            wire::send_mark(timeline.as_fd(), step);
        }
    }

    pub(super) fn fail(&self, step: Step, detail: u32, errno: Errno) -> u8 {
        let act = Step::ALL.iter().position(|known| *known == step);
        let failure = Failure {
            act: act
                .and_then(|act| u16::try_from(act).ok())
                .unwrap_or(u16::MAX),
            errno,
            detail,
        };
        // If nobody listens any more there is nobody to tell.
        let _ = failure.send(&self.failure);
        FAILED
    }
}

/// The life of the first process; its result is its exit status.
pub(super) fn live(subject: &Subject, inside: &mut Inside) -> u8 {
    inside.mark(Step::Namespaces);
    if let Err(errno) = tie_to_parent(subject, inside) {
        return inside.fail(Step::Namespaces, 0, errno);
    }
    inside.start.forget(subject);
    let mut help = match Help::begin(subject, inside.hands) {
        Ok(help) => help,
        Err(errno) => return inside.fail(Step::Namespaces, 0, errno),
    };
    // In the new root, whose terminals are the session's own, and before any rule binds.
    let seated = inside
        .acts
        .partition_point(|(step, _)| *step < Step::Descriptors);
    if let Err(status) = carry_out(subject, inside, 0..seated, &mut help) {
        return status;
    }
    if let Err(errno) = inside.seat.take(subject) {
        return inside.fail(Step::Init, SEAT, errno);
    }
    if let Err(status) = carry_out(subject, inside, seated..inside.acts.len(), &mut help) {
        return status;
    }
    if let Err(errno) = help.finish() {
        return inside.fail(Step::Root, 0, errno);
    }
    let started = mounts::change_directory_to(subject, &inside.directory)
        .and_then(|()| process::set_dumpable(subject, Dumpable::No))
        .and_then(|()| signals::reset_dispositions(subject));
    if let Err(errno) = started {
        return inside.fail(Step::Init, 0, errno);
    }
    let signals = match all_signals()
        .block()
        .and_then(|_| SignalFd::new(all_signals()))
    {
        Ok(signals) => signals,
        Err(errno) => return inside.fail(Step::Init, 0, errno),
    };
    if inside.fail_at == Some(Step::Init) {
        return inside.fail(Step::Init, 0, Errno::IO);
    }
    inside.mark(Step::Init);
    let command = match Spawn::new(Memory::Shared).start(inside, become_command) {
        Ok(command) => command,
        Err(errno) => return inside.fail(Step::Command, 0, errno),
    };
    // The command runs, or has said why not: in both cases these pipes have done their work. The
    // supervisor reads the second to its end before it answers anything that the command asks.
    let timeline = inside.timeline.as_ref().map(AsRawFd::as_raw_fd);
    for done in [Some(inside.failure.as_raw_fd()), timeline]
        .into_iter()
        .flatten()
    {
        if close(subject, done).is_err() {
            return FAILED;
        }
    }
    let ended = watch(subject, Some(&command), &signals, inside);
    if let (Linger::Yes, Some(ended)) = (inside.linger, ended) {
        // Whoever reads the command's streams must not wait for this process. If they stay open,
        // they only wait.
        let _ = descriptors::close_between(subject, 0, 2);
        wire::send_end(inside.end.as_fd(), ended);
        // Until nobody is left, or nobody wants them any more.
        watch(subject, None, &signals, inside);
    }
    match inside.boundary {
        Boundary::Descent => end_descendants(),
        Boundary::PidNamespace => end_everyone_else(subject),
    }
    if let (Linger::No, Some(ended)) = (inside.linger, ended) {
        wire::send_end(inside.end.as_fd(), ended);
    }
    0
}

/// Which part of starting the first process has to do with streams and terminals.
pub(super) const SEAT: u32 = 1;

/// Carries out some of the acts, in order; an error is the status to end with.
fn carry_out(
    subject: &Subject,
    inside: &Inside,
    which: Range<usize>,
    help: &mut Help,
) -> Result<(), u8> {
    for (step, act) in inside.acts.get(which).unwrap_or_default() {
        if inside.fail_at == Some(*step) {
            return Err(inside.fail(*step, 0, Errno::IO));
        }
        let done = help.carry_out(subject, act, inside.kept());
        done.map_err(|(detail, errno)| inside.fail(*step, detail, errno))?;
        inside.mark(*step);
    }
    Ok(())
}

/// Makes sure that this process never outlives its supervisor.
fn tie_to_parent(subject: &Subject, inside: &Inside) -> Result<(), Errno> {
    match inside.boundary {
        // It must live long enough to end the others; it hears of the end by the pipe. If the
        // command has stopped it, it goes on.
        Boundary::Descent => {
            process::signal_at_parents_end(subject, Signal::CONT)?;
            process::become_subreaper(subject)?;
            // So that whoever ends programs by our name does not end this one with them.
            process::set_name(subject, c"(session)")?;
            if let Some(mark) = inside.mark {
                process::set_limit(subject, LimitedResource::Locks, mark)?;
            }
        }
        Boundary::PidNamespace => process::die_with_parent(subject, None, Signal::KILL)?,
    }
    // The parent cannot be seen from in here. If it went before the request above, nobody but
    // this process holds the other end of its pipe any more.
    for outer in inside.outer.into_iter().flatten() {
        close(subject, outer)?;
    }
    let mut watched = [PollFd::new(&inside.end, PollFlags::empty())];
    let none = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&none))?;
    if watched[0].revents().contains(PollFlags::ERR) {
        return Err(Errno::SRCH);
    }
    Ok(())
}

fn close(subject: &Subject, number: RawFd) -> Result<(), Errno> {
    let number = number.unsigned_abs();
    descriptors::close_between(subject, number, number)
}

fn all_signals() -> Mask {
    let mut mask = Mask::EMPTY;
    for signal in 1..=64 {
        mask = mask.with(signal);
    }
    mask
}

/// Becomes the command, or says why not.
fn become_command(subject: &Subject, inside: &mut Inside) -> u8 {
    if inside.fail_at == Some(Step::Command) {
        return inside.fail(Step::Command, 0, Errno::IO);
    }
    let clean = inside
        .seat
        .take_foreground(subject)
        .and_then(|()| descriptors::close_from_at_exec(subject, 3))
        .and_then(|()| Mask::EMPTY.restore());
    if let Err(errno) = clean {
        return inside.fail(Step::Command, 0, errno);
    }
    // As a shell does: a name that is nowhere is "not found"; one that is somewhere and cannot be
    // run is that, even if later directories have nothing.
    let mut answer = Errno::NOENT;
    for program in &inside.programs {
        let errno = exec::execve(subject, program, &inside.arguments, &inside.environment);
        match errno {
            Errno::NOENT | Errno::NOTDIR => {}
            Errno::ACCESS => answer = errno,
            other => {
                answer = other;
                break;
            }
        }
    }
    inside.fail(Step::Command, 1, answer)
}

/// Reaps and passes signals on until the command ends, or the supervisor does: then `None`.
///
/// Without a command it is for those that linger: until none of them is left. Signals are not for
/// them.
fn watch(
    subject: &Subject,
    command: Option<&Child>,
    signals: &SignalFd,
    inside: &Inside,
) -> Option<Ended> {
    let end = inside.end.as_fd();
    let on_terminal = inside.seat.terminal().is_some();
    loop {
        let mut watched = [
            PollFd::new(signals, PollFlags::IN),
            PollFd::from_borrowed_fd(end, PollFlags::empty()),
            command.map_or_else(
                || PollFd::new(signals, PollFlags::IN),
                |command| PollFd::new(command, PollFlags::IN),
            ),
        ];
        if poll(&mut watched, None).is_err() {
            continue;
        }
        let abandoned = watched[1].revents().contains(PollFlags::ERR);
        while let Ok(Some(arrived)) = signals.take() {
            // A terminal's keys reach the command by themselves: it is in the same group.
            let Some(command) = command else { continue };
            if on_terminal && arrived.signal == Signal::CONT.as_raw() {
                // The whole group was stopped with it.
                let _ = terminal::continue_group(subject, command.pid());
            } else if arrived.sent_by == SentBy::Process {
                pass_on(command, arrived.signal);
            }
        }
        match reap(command) {
            Reaped::Command(ended) => return Some(ended),
            Reaped::Everyone if command.is_none() => return None,
            Reaped::Everyone | Reaped::Some => {}
        }
        while let Some(command) = command
            && let Ok(Some(turn)) = command.turn()
        {
            wire::send_turn(end, turn);
        }
        if abandoned {
            return None;
        }
    }
}

/// Ends everything else in the pid namespace, so that whoever hears of the command's end knows
/// that nothing of it is left. The kernel would do the same when this process goes.
fn end_everyone_else(subject: &Subject) {
    loop {
        // A process that is being killed cannot fork, so a second pass is rare.
        let _ = wait::kill_everyone_else(subject);
        loop {
            match wait::wait_any() {
                Ok(_) => {}
                Err(Errno::INTR) => break,
                Err(_) => return,
            }
        }
    }
}

/// Ends every descendant, however it tried to get away.
///
/// Whoever loses its parent becomes a child of this process, and a child cannot be mistaken for
/// another process before it is reaped here. So each pass ends all children there are, and when
/// none is left there is no descendant left either.
fn end_descendants() {
    let mut buffer = [0; 4096];
    loop {
        let listed = ProcDir::open()
            .and_then(|proc_dir| children(&proc_dir, &mut buffer))
            .unwrap_or_default();
        let mut rest = listed;
        while let Some((pid, after)) = next_number(rest) {
            rest = after;
            if let Some(pid) = Pid::from_raw(pid) {
                // It may have ended in this very moment.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        // Sleeps until one has ended: either one that was killed above, or a newborn's parent.
        if wait::wait_any() == Err(Errno::CHILD) {
            return;
        }
        // Those that have ended meanwhile need no pass of their own.
        while let Ok(Some(_)) = wait::reap_any() {}
    }
}

/// The numbers of our children, as far as they fit; the rest is for the next pass.
fn children<'b>(proc_dir: &ProcDir, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let file = proc_dir.open_file(c"thread-self/children", OFlags::RDONLY)?;
    let count = rustix::io::read(&file, &mut *buffer)?;
    Ok(buffer.get(..count).unwrap_or_default())
}

/// Splits one decimal number off; a number that the buffer cut short is left out.
fn next_number(text: &[u8]) -> Option<(i32, &[u8])> {
    let end = text.iter().position(|byte| *byte == b' ')?;
    let mut number: i32 = 0;
    for byte in text.get(..end)? {
        let digit = i32::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    Some((number, text.get(end + 1..)?))
}

/// Who was found to have ended.
enum Reaped {
    /// The command, so.
    Command(Ended),
    /// No child is left.
    Everyone,
    /// Nobody, or somebody else.
    Some,
}

/// Reaps everything that has ended.
fn reap(command: Option<&Child>) -> Reaped {
    let mut found = Reaped::Some;
    loop {
        match wait::reap_any() {
            Ok(Some((pid, ended))) => {
                if command.is_some_and(|command| command.pid() == pid) {
                    found = Reaped::Command(ended);
                }
            }
            Ok(None) => return found,
            Err(_) => {
                return match found {
                    Reaped::Command(ended) => Reaped::Command(ended),
                    Reaped::Everyone | Reaped::Some => Reaped::Everyone,
                };
            }
        }
    }
}

fn pass_on(command: &Child, signal: i32) {
    // An orphan's end is for us; everything else is for the command.
    let child_ended: i32 = Signal::CHILD.as_raw();
    if signal == child_ended {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(signal) {
        // It may have ended in this very moment.
        let _ = command.signal(signal);
    }
}
