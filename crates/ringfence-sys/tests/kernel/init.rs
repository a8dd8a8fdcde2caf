//! The first process's program, without a session around it.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use ringfence_sys::failure::Failure;
use ringfence_sys::init::wire::{
    Background, Boundary, Fails, Going, NO_PROGRAM, Orders, Steps, Word,
};
use ringfence_sys::init::{Program, Told};
use ringfence_sys::namespaces::Namespaces;
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::{Child, Ended};
use ringfence_sys::{Errno, Signal, Subject, descriptors, process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::harness::{as_each_user, pipe};

const STEPS: Steps = Steps {
    init: 4,
    command: 5,
};

struct Becoming {
    program: Program,
    told: Told,
    inherited: [File; 2],
    output: File,
}

fn become_first(subject: &Subject, becoming: &mut Becoming) -> u8 {
    for fd in &becoming.inherited {
        if descriptors::place(subject, fd.as_fd(), fd.as_raw_fd()).is_err() {
            return 101;
        }
    }
    if descriptors::place(subject, becoming.output.as_fd(), 1).is_err()
        || process::become_subreaper(subject).is_err()
    {
        return 102;
    }
    let Becoming { program, told, .. } = becoming;
    program.run(subject, told);
    103
}

struct First {
    child: Child,
    failure: File,
    end: File,
    /// What the command says; silent once nobody is left who could.
    output: File,
}

/// Starts it with a shell script as the command.
fn first(
    boundary: Boundary,
    background: Background,
    fails: Fails,
    programs: &[&str],
    script: &str,
) -> First {
    first_going(
        Going::WhenLetGo,
        boundary,
        background,
        fails,
        programs,
        script,
    )
}

fn first_going(
    going: Going,
    boundary: Boundary,
    background: Background,
    fails: Fails,
    programs: &[&str],
    script: &str,
) -> First {
    let (failure, failure_inside) = pipe();
    let (end, end_inside) = pipe();
    let (output, output_inside) = pipe();
    let number = |fd: &File| fd.as_raw_fd().unsigned_abs();
    let orders = Orders {
        failure: number(&failure_inside),
        end: number(&end_inside),
        timeline: None,
        waits: [None, None],
        terminal: None,
        boundary,
        background,
        going,
        fails,
        programs: 0,
        arguments: 0,
        steps: STEPS,
    };
    let strings = |list: &[&str]| -> Vec<CString> {
        list.iter()
            .map(|text| CString::new(*text).unwrap())
            .collect()
    };
    let mut becoming = Becoming {
        program: Program::new().unwrap(),
        told: Told::new(
            &orders,
            strings(programs),
            strings(&["sh", "-c", script]),
            strings(&["PATH=/usr/bin:/bin"]),
        )
        .unwrap(),
        inherited: [failure_inside, end_inside],
        output: output_inside,
    };
    let namespaces = match boundary {
        Boundary::Descent => Namespaces::empty(),
        Boundary::PidNamespace => Namespaces::USER | Namespaces::PID,
    };
    let spawn = Spawn::new(Memory::Shared).namespaces(namespaces);
    let child = spawn.start(&mut becoming, become_first).unwrap();
    First {
        child,
        failure,
        end,
        output,
    }
}

fn word(first: &First) -> Option<Word> {
    let mut bytes = [0; 4];
    match rustix::io::read(&first.end, &mut bytes) {
        Ok(4) => Word::from_bytes(bytes),
        _ => None,
    }
}

const BOTH: [Boundary; 2] = [Boundary::Descent, Boundary::PidNamespace];
const SHELL: &[&str] = &["/nowhere/sh", "/bin/sh"];

#[test]
fn it_says_how_the_command_ended() {
    as_each_user(|_, _| {
        for boundary in BOTH {
            for (script, expected) in [("exit 7", Word::Exited(7)), ("kill -9 $$", Word::Killed(9))]
            {
                let first = first(boundary, Background::Ends, Fails::Nothing, SHELL, script);
                assert_eq!(Failure::receive(&first.failure), Ok(None));
                assert_eq!(word(&first), Some(expected));
                drop(first.end);
                assert_eq!(first.child.wait(), Ok(Ended::Exited(0)));
            }
        }
    });
}

#[test]
fn it_says_why_there_is_no_command() {
    as_each_user(|_, _| {
        let cases = [
            (
                Fails::Nothing,
                &["/nowhere"][..],
                STEPS.command,
                NO_PROGRAM,
                Errno::NOENT,
            ),
            (
                Fails::Nothing,
                &["/etc/passwd", "/nowhere"],
                STEPS.command,
                NO_PROGRAM,
                Errno::ACCESS,
            ),
            (Fails::Command, SHELL, STEPS.command, 0, Errno::IO),
            (Fails::Init, SHELL, STEPS.init, 0, Errno::IO),
        ];
        for (fails, programs, step, detail, errno) in cases {
            let first = first(
                Boundary::PidNamespace,
                Background::Ends,
                fails,
                programs,
                "exit 0",
            );
            let failure = Failure {
                act: step.into(),
                errno,
                detail,
            };
            assert_eq!(Failure::receive(&first.failure), Ok(Some(failure)));
            drop(first.end);
            first.child.wait().unwrap();
        }
    });
}

#[test]
fn nobody_is_left_when_it_says_so() {
    as_each_user(|_, _| {
        for boundary in BOTH {
            let script = "for i in 1 2 3; do (setsid sleep 1000 &); done; echo x; exit 3";
            let first = first(boundary, Background::Ends, Fails::Nothing, SHELL, script);
            assert_eq!(word(&first), Some(Word::Exited(3)));
            let mut said = [0; 8];
            assert_eq!(rustix::io::read(&first.output, &mut said), Ok(2));
            // It would sleep here if anybody still held the other end.
            assert_eq!(rustix::io::read(&first.output, &mut said), Ok(0));
            // Whoever waits for its word waits for nothing else. Long enough to be gone.
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(first.child.try_wait(), Ok(None));
            drop(first.end);
            assert_eq!(first.child.wait(), Ok(Ended::Exited(0)));
        }
    });
}

#[test]
fn one_that_is_to_go_at_once_does() {
    as_each_user(|_, _| {
        for boundary in BOTH {
            let (ends, nothing) = (Background::Ends, Fails::Nothing);
            let first = first_going(Going::AtOnce, boundary, ends, nothing, SHELL, "exit 3");
            assert_eq!(word(&first), Some(Word::Exited(3)));
            assert_eq!(first.child.wait(), Ok(Ended::Exited(0)));
            drop(first.end);
        }
    });
}

/// It does not look at the pipe for a while, and need not: it is told.
#[test]
fn one_that_stays_goes_when_it_is_told_that_its_supervisor_has_gone() {
    as_each_user(|_, _| {
        let (ends, nothing) = (Background::Ends, Fails::Nothing);
        // A machine that is busy otherwise gets another try.
        let mut tries = (0..5).map(|_| {
            let first = first(Boundary::Descent, ends, nothing, SHELL, "exit 3");
            assert_eq!(word(&first), Some(Word::Exited(3)));
            drop(first.end);
            let start = std::time::Instant::now();
            first.child.signal(Signal::CONT).unwrap();
            assert_eq!(first.child.wait(), Ok(Ended::Exited(0)));
            start.elapsed()
        });
        assert!(tries.any(|took| took < std::time::Duration::from_millis(25)));
    });
}

#[test]
fn those_that_may_stay_do_until_somebody_ends_them() {
    as_each_user(|_, _| {
        for boundary in BOTH {
            let script = "(setsid sh -c 'sleep 0.2; echo late; sleep 1000' &); exit 3";
            let first = first(boundary, Background::Stays, Fails::Nothing, SHELL, script);
            assert_eq!(word(&first), Some(Word::Exited(3)));
            let mut said = [0; 8];
            assert_eq!(rustix::io::read(&first.output, &mut said), Ok(5));
            drop(first.end);
            assert_eq!(first.child.wait(), Ok(Ended::Exited(0)));
            assert_eq!(rustix::io::read(&first.output, &mut said), Ok(0));
        }
    });
}

/// Nobody sends a signal then: whoever there was has been reaped with the command.
#[test]
fn where_nobody_stays_it_goes_by_itself() {
    as_each_user(|_, _| {
        for boundary in BOTH {
            for script in ["exit 3", "sleep 0.01 & wait; exit 3"] {
                let first = first(boundary, Background::Stays, Fails::Nothing, SHELL, script);
                assert_eq!(word(&first), Some(Word::Exited(3)));
                let ended = ended_soon(&first.child);
                assert_eq!(ended, Some(Ended::Exited(0)), "{boundary:?}: {script}");
                // Until now: it must not be that which it went for.
                drop(first.end);
            }
        }
    });
}

/// Those that ended before the command are told of by one signal, and are more than are reaped at once.
#[test]
fn where_many_have_ended_it_goes_by_itself() {
    as_each_user(|_, _| {
        // On one processor it never wakes between the ends, so that no second signal comes.
        let mut one = CpuSet::new();
        let here = sched_getaffinity(None).unwrap();
        one.set((0..CpuSet::MAX_CPU).find(|cpu| here.is_set(*cpu)).unwrap());
        sched_setaffinity(None, &one).unwrap();
        // Nobody waits for the children of a shell that has become another program.
        let script = "i=0; while [ $i -lt 100 ]; do sleep 0.4 & i=$((i + 1)); done; exec sleep 0.9";
        for boundary in BOTH {
            let first = first(boundary, Background::Stays, Fails::Nothing, SHELL, script);
            assert_eq!(word(&first), Some(Word::Exited(0)));
            let ended = ended_soon(&first.child);
            assert_eq!(ended, Some(Ended::Exited(0)), "{boundary:?}");
            drop(first.end);
        }
    });
}

/// How it ended, if it did so by itself.
fn ended_soon(child: &Child) -> Option<Ended> {
    let start = std::time::Instant::now();
    while start.elapsed() < std::time::Duration::from_secs(20) {
        if let Some(ended) = child.try_wait().unwrap() {
            return Some(ended);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.signal(Signal::KILL).unwrap();
    None
}

#[test]
fn it_ends_with_whoever_waits_for_it() {
    as_each_user(|_, _| {
        for boundary in BOTH {
            let first = first(
                boundary,
                Background::Ends,
                Fails::Nothing,
                SHELL,
                "sleep 1000",
            );
            assert_eq!(Failure::receive(&first.failure), Ok(None));
            drop(first.end);
            assert_eq!(first.child.wait(), Ok(Ended::Exited(0)));
        }
    });
}

#[test]
fn signals_are_passed_on() {
    as_each_user(|_, _| {
        for boundary in BOTH {
            let script = "trap 'exit 9' TERM; echo; while :; do sleep 0.01; done";
            let first = first(boundary, Background::Ends, Fails::Nothing, SHELL, script);
            assert_eq!(rustix::io::read(&first.output, &mut [0; 8]), Ok(1));
            first.child.signal(Signal::TERM).unwrap();
            assert_eq!(word(&first), Some(Word::Exited(9)));
            drop(first.end);
            first.child.wait().unwrap();
        }
    });
}
