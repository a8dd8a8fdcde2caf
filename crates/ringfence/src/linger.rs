//! A supervisor that stays when its command has ended.
//!
//! For a program whose whole purpose is one session. It starts itself once more, in a session of
//! its own, as the supervisor of what lingers: closing the terminal does not reach that one. The
//! first ([`Front`]) waits until it hears how the command ended, passes signals on meanwhile, and
//! ends as the command did. The second ([`Behind`]) tells it, and stays.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use ringfence_sys::Errno;
use ringfence_sys::ready::{PollFd, PollFlags, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, kill_process};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::launch::{Cause, Signals, pipes};

/// Whoever was called, and waits for the command alone.
#[derive(Debug)]
pub struct Front {
    read: OwnedFd,
    write: OwnedFd,
}

impl Front {
    /// Gets ready to start this program again.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn new() -> io::Result<Self> {
        let (read, write) = pipes::pipe()?;
        Ok(Self { read, write })
    }

    /// The number of the descriptor that the second has to get for [`Behind::inherited`].
    pub fn number(&self) -> i32 {
        self.write.as_raw_fd()
    }

    /// Starts this program again with these arguments, waits until its command has ended, and
    /// returns the status that tells a shell about it.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn wait(self, arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
        fcntl_setfd(&self.write, FdFlags::empty())?;
        let mut command = Command::new(own_program()?);
        if let Some(name) = std::env::args_os().next() {
            command.arg0(name);
        }
        // Before anything is started, so that none is lost.
        let signals = Signals::listen()?;
        let mut supervisor = command.args(arguments).spawn()?;
        drop(self.write);
        let mut reader = File::from(self.read);
        let pid = i32::try_from(supervisor.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(Errno::SRCH)?;
        loop {
            let mut watched = [
                PollFd::new(&reader, PollFlags::IN),
                PollFd::new(&signals, PollFlags::IN),
            ];
            match poll(&mut watched, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let heard = !watched[0].revents().is_empty();
            while let Some(signal) = signals.take()? {
                // Gone by now is as good: the number is its own until it is waited for.
                let _ = kill_process(pid, signal);
            }
            if heard {
                break;
            }
        }
        let mut status = [0; 1];
        if reader.read(&mut status)? == status.len() {
            return Ok(status[0]);
        }
        // It went without a word: what it said was for the user, and its status is ours.
        let code = supervisor.wait()?.code();
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(125))
    }
}

/// This program, to be started again.
fn own_program() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") {
        // Also if another has its name by now.
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe()
}

/// The supervisor of what lingers.
#[derive(Debug)]
pub struct Behind(File);

impl Behind {
    /// Takes the descriptor over and leaves the terminal.
    ///
    /// Call it before anything else is opened.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn inherited(number: u32) -> io::Result<Self> {
        let front = crate::report::copy_of(number)?;
        match rustix::process::setsid() {
            // Who leads its group already was started by somebody else, and stays where it is.
            Ok(_) | Err(Errno::PERM) => Ok(Self(front)),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Tells the one that waits how the command ended, and lets go of the standard streams: whoever
    /// reads them must hear when everybody else has. If it has gone, the session lingers all the
    /// same.
    pub fn tell(mut self, cause: Cause) {
        if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
            let _ = dup2_stdin(&nothing);
            let _ = dup2_stdout(&nothing);
            let _ = dup2_stderr(&nothing);
        }
        let _ = self.0.write_all(&[cause.exit_status()]);
    }
}
