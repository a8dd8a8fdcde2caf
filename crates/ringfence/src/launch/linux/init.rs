//! The first process of a session.
//!
//! It is born in the new namespaces, carries out the plan, starts the command and stays: it reaps
//! what is orphaned, passes signals on, and says how the command ended. When it goes, for any
//! reason, the kernel ends everything else in its pid namespace.
//!
//! Everything here runs after a fork in a process that may have had threads: no allocation, no
//! lock, no log, no panic.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use ringfence_core::plan::Step;
use ringfence_sys::exec::{self, StringArray};
use ringfence_sys::failure::Failure;
use ringfence_sys::process::{self, Dumpable};
use ringfence_sys::signals::{self, Mask, SignalFd};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::{self, Child, Ended};
use ringfence_sys::{Errno, Signal, Subject, descriptors, mounts};
use rustix::event::{PollFd, PollFlags, poll};

use super::acts::Ready;
use super::wire;

/// All that the inside of a session needs, laid out before it exists.
#[derive(Debug)]
pub(super) struct Inside {
    pub(super) acts: Vec<(Step, Ready)>,
    pub(super) fail_at: Option<Step>,
    pub(super) directory: CString,
    pub(super) programs: Vec<CString>,
    pub(super) arguments: StringArray,
    pub(super) environment: StringArray,
    /// Says which act failed; its silence says that the command runs.
    pub(super) failure: OwnedFd,
    /// Says how the command ended.
    pub(super) end: OwnedFd,
    /// The supervisor's ends of both pipes, which the first process has copies of at birth.
    pub(super) outer: [RawFd; 2],
}

/// The status of a first process that could not do its work; the pipe says why.
const FAILED: u8 = 125;

impl Inside {
    /// Lets go of everything but the acts, which explain failures.
    pub(super) fn release(self) -> Vec<(Step, Ready)> {
        self.acts
    }

    fn fail(&self, step: Step, detail: u32, errno: Errno) -> u8 {
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
    if let Err(errno) = tie_to_parent(subject, inside) {
        return inside.fail(Step::Namespaces, 0, errno);
    }
    for (step, act) in &inside.acts {
        if inside.fail_at == Some(*step) {
            return inside.fail(*step, 0, Errno::IO);
        }
        let keep = [inside.failure.as_fd(), inside.end.as_fd()];
        if let Err((detail, errno)) = act.carry_out(subject, keep) {
            return inside.fail(*step, detail, errno);
        }
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
    let command = match Spawn::new(Memory::Shared).start(inside, become_command) {
        Ok(command) => command,
        Err(errno) => return inside.fail(Step::Command, 0, errno),
    };
    // The command runs, or has said why not: in both cases this pipe has done its work.
    if close(subject, inside.failure.as_raw_fd()).is_err() {
        return FAILED;
    }
    let ended = watch(&command, &signals);
    wire::send_end(inside.end.as_fd(), ended);
    0
}

/// Makes sure that this process never outlives its supervisor.
fn tie_to_parent(subject: &Subject, inside: &Inside) -> Result<(), Errno> {
    process::die_with_parent(subject, None, Signal::KILL)?;
    // The parent cannot be seen from in here. If it went before the request above, nobody but
    // this process holds the other end of its pipe any more.
    for outer in inside.outer {
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
    let clean = descriptors::close_from_at_exec(subject, 3).and_then(|()| signals::reset(subject));
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

/// Reaps and passes signals on until the command ends.
fn watch(command: &Child, signals: &SignalFd) -> Ended {
    loop {
        let mut watched = [
            PollFd::new(command, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
        ];
        if poll(&mut watched, None).is_err() {
            continue;
        }
        while let Ok(Some(arrived)) = signals.take() {
            pass_on(command, arrived.signal);
        }
        if let Some(ended) = reap(command) {
            return ended;
        }
    }
}

/// Reaps everything that has ended; `Some` if the command is among it.
fn reap(command: &Child) -> Option<Ended> {
    let mut found = None;
    while let Ok(Some((pid, ended))) = wait::reap_any() {
        if pid == command.pid() {
            found = Some(ended);
        }
    }
    found
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
