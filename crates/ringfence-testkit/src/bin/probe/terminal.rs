//! Terminals: typing into one for somebody else to read.

use std::os::fd::{AsRawFd, OwnedFd};

use ringfence_sys::signals::Mask;
use ringfence_sys::testing::{Entry, Word, call_in_child};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Answer, Arguments, calls, number, text};

pub(super) fn perform(name: &str, arguments: Arguments<'_>) -> Option<Answer> {
    Some(match name {
        // A terminal of its own, made its controlling one; then types into it.
        "type-into-own" => type_into_own(number(arguments, 0)),
        // Standard input.
        "type-into" => {
            let descriptor = number(arguments, 0);
            type_into(descriptor, number(arguments, 1))
        }
        "open-terminal" => open(text(arguments, 0)).map(|_terminal| None),
        _ => return None,
    })
}

fn open(path: impl rustix::path::Arg) -> std::io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDWR, Mode::empty())?)
}

fn type_into_own(request: u64) -> Answer {
    // When the terminal goes, whoever leads its session is told to hang up.
    Mask::block_all().unwrap();
    // Fails if it already leads a session, which is as good.
    let _ = rustix::process::setsid();
    let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&outer)?;
    unlockpt(&outer)?;
    let path = ptsname(&outer, Vec::new())?;
    // The first terminal that a session's leader opens becomes its own.
    let inner = open(path)?;
    type_into(inner.as_raw_fd().unsigned_abs().into(), request)
}

fn type_into(descriptor: u64, request: u64) -> Answer {
    let words = [
        Word::Number(descriptor),
        Word::Number(request),
        Word::Text(c"x"),
        Word::Number(0),
        Word::Number(0),
        Word::Number(0),
    ];
    let number = u64::try_from(libc::SYS_ioctl).unwrap();
    calls::outcome(call_in_child(Entry::Native, number, words)?)
}
