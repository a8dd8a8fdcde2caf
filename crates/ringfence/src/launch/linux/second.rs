//! The life of a second stage.
//!
//! Another program made the namespaces and mounts, and then became this one. From here on it is the
//! first process of a session like any other: it looks at what was made, applies what is left of
//! the plan, and starts the command.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use ringfence_core::plan::Step;
use ringfence_sys::{Errno, Subject, descriptors, exec, sockets};
use rustix::fs::{SealFlags, fcntl_get_seals};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::acts::Ready;
use super::handover::{self, LARGEST};
use super::init::{self, Inside, Unborn};

/// The status of a second stage that never came to its orders.
const FAILED: u8 = 125;

/// Every seal that keeps a file as it is.
pub(super) const SEALS: SealFlags = SealFlags::SEAL
    .union(SealFlags::SHRINK)
    .union(SealFlags::GROW)
    .union(SealFlags::WRITE);

/// Reads the orders under a descriptor's number and carries them out.
pub(crate) fn live(number: Option<u32>) -> ! {
    let subject = match Subject::this_process() {
        Ok(subject) => subject,
        Err(errno) => {
            say("cannot restrict a process with threads", errno);
            // Nothing has been changed yet, so an ordinary end is fine; but never the program
            // itself.
            std::process::abort()
        }
    };
    match orders(&subject, number) {
        Ok((inside, greeting)) => {
            let status = begin(&subject, inside, &greeting);
            exec::exit_now(&subject, status)
        }
        Err(errno) => {
            say("cannot read its orders", errno);
            exec::exit_now(&subject, FAILED)
        }
    }
}

/// Says something where the supervisor listens until the second stage is there.
fn say(what: &str, errno: Errno) {
    let _ = writeln!(std::io::stderr(), "the second stage {what}: {errno}");
}

fn orders(subject: &Subject, number: Option<u32>) -> Result<(Inside, OwnedFd), Errno> {
    let number = number.ok_or(Errno::INVAL)?;
    let file = descriptors::copy_of(number)?;
    if !fcntl_get_seals(&file)?.contains(SEALS) {
        return Err(Errno::PERM);
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(LARGEST).unwrap_or(u64::MAX);
    std::fs::File::from(file)
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let (numbers, rest) = bytes.split_at_checked(16).ok_or(Errno::BADMSG)?;
    let mut files = Vec::with_capacity(4);
    for number in numbers.chunks_exact(4) {
        let number = number.try_into().map_err(|_| Errno::BADMSG)?;
        files.push(descriptors::copy_of(u32::from_ne_bytes(number))?);
    }
    let inside = handover::read(rest, &descriptors::copy_of)?;
    let [input, output, error, greeting]: [OwnedFd; 4] =
        files.try_into().map_err(|_| Errno::BADMSG)?;
    let streams = [input.as_fd(), output.as_fd(), error.as_fd()];
    descriptors::place_standard(subject, streams)?;
    Ok((inside, greeting))
}

fn begin(subject: &Subject, mut inside: Inside, greeting: &OwnedFd) -> u8 {
    // Before anything is said: whoever hears the greeting may rely on all of it.
    let checked = inside.acts.iter().find(|(step, _)| *step == Step::Root);
    let Some((_, Ready::Checked(expected))) = checked else {
        return inside.voice.fail(Step::Root, 0, Errno::BADMSG);
    };
    if let Err((detail, errno)) = expected.check() {
        return inside.voice.fail(Step::Root, detail, errno);
    }
    if let Err(errno) = greet(greeting, &expected.private()) {
        return inside.voice.fail(Step::Init, 0, errno);
    }
    match inside.becoming() {
        Ok(becoming) => init::live(subject, &mut Unborn { inside, becoming }),
        Err(errno) => inside.voice.fail(Step::Init, 0, errno),
    }
}

/// Tells the supervisor which process this is, and which file systems are the session's own.
fn greet(greeting: &OwnedFd, private: &[(u32, u32)]) -> Result<(), Errno> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let mut message = vec![GREETING];
    for (major, minor) in private.iter().take(MOST_PRIVATE) {
        message.extend_from_slice(&major.to_ne_bytes());
        message.extend_from_slice(&minor.to_ne_bytes());
    }
    sockets::send(greeting, &message, &[own.as_fd()])
}

pub(super) const GREETING: u8 = b'g';
/// How many private file systems a greeting names; the sockets on others are refused.
pub(super) const MOST_PRIVATE: usize = 64;
