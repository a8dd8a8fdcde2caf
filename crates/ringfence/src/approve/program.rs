//! Asking a program: over a descriptor that it passed, or by starting a command.
//!
//! One JSON object a line, in both directions; docs/APPROVALS.md describes it. An answer repeats the
//! question's id and binding, so that an answer to another question is never taken for this one's.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ringfence_core::permission::Permission;
use ringfence_core::request::{Answer, Scope};
use ringfence_core::shown::marks;
use ringfence_sys::Signal;
use ringfence_sys::signals::{Mask, SignalFd, is_ignored};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Approver, AskError, Question};

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// An answer is short.
const LONGEST: usize = 64 * 1024;

/// A question as a program gets it.
#[derive(Debug, Serialize)]
struct Asked<'a> {
    version: u32,
    #[serde(rename = "type")]
    kind: &'static str,
    id: String,
    binding: String,
    command: Vec<String>,
    command_shown: String,
    directory: String,
    permissions: Vec<&'a Permission>,
    permissions_shown: Vec<String>,
    reason: Option<&'a str>,
    thread: Option<String>,
    scopes: Vec<Scope>,
    answers: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    obstacle: Option<&'a str>,
    warnings: Vec<String>,
}

/// An answer as a program writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    version: u32,
    id: String,
    binding: String,
    answer: String,
}

/// A line of text for a question, and the id that its answer must have.
fn line(question: &Question<'_>) -> Result<(String, String), AskError> {
    let id = random()?;
    let (command, permissions) = (question.shown_command(), question.shown_permissions());
    let all = permissions.iter().chain([&command]);
    let answers = question.answers().into_iter();
    let asked = Asked {
        version: VERSION,
        kind: "request",
        id: id.clone(),
        binding: question.binding.to_string(),
        command: question
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        warnings: marks(all).iter().map(ToString::to_string).collect(),
        command_shown: command.text,
        directory: question.directory.to_string_lossy().into_owned(),
        permissions: question.request.permissions.iter().collect(),
        permissions_shown: permissions.into_iter().map(|shown| shown.text).collect(),
        reason: question.request.reason.as_deref(),
        thread: question.thread.map(ToString::to_string),
        scopes: question.scopes(),
        answers: answers.map(Answer::word).collect(),
        obstacle: question.obstacle.map(|obstacle| obstacle.why),
    };
    let mut text = serde_json::to_string(&asked).map_err(|error| AskError::Kernel {
        source: error.into(),
    })?;
    text.push('\n');
    Ok((text, id))
}

fn parsed(text: &[u8]) -> Result<Answered, AskError> {
    serde_json::from_slice(text).map_err(|_| AskError::Answer {
        why: "it is not an answer of the protocol",
    })
}

fn understood(answered: &Answered, id: &str, question: &Question<'_>) -> Result<Answer, AskError> {
    let why = |why| AskError::Answer { why };
    if answered.version != VERSION {
        return Err(why("it has another version"));
    }
    if answered.id != id || answered.binding != question.binding.to_string() {
        return Err(why("it is for another question"));
    }
    question.offered(&answered.answer)
}

/// Asks over a descriptor that both can read and write: a socket, as a rule.
#[derive(Debug)]
pub struct OverDescriptor {
    descriptor: OwnedFd,
    patience: Duration,
    /// Questions that nobody answered in time: an answer that comes for one of them now is not one
    /// to the next.
    given_up: Vec<String>,
    partial: Vec<u8>,
}

impl OverDescriptor {
    /// Takes over a descriptor that whoever called us left open.
    ///
    /// # Errors
    ///
    /// If there is none of that number.
    pub fn inherited(number: u32, patience: Duration) -> std::io::Result<Self> {
        Ok(Self::new(crate::report::copy_of(number)?.into(), patience))
    }

    /// Asks over this.
    pub fn new(descriptor: OwnedFd, patience: Duration) -> Self {
        Self {
            descriptor,
            patience,
            given_up: Vec::new(),
            partial: Vec::new(),
        }
    }
}

impl Approver for OverDescriptor {
    fn ask(&mut self, question: &Question<'_>) -> Result<Answer, AskError> {
        let (text, id) = line(question)?;
        let kernel = |source| AskError::Kernel { source };
        let copy = self.descriptor.try_clone().map_err(kernel)?;
        File::from(copy)
            .write_all(text.as_bytes())
            .map_err(kernel)?;
        let deadline = Instant::now() + self.patience;
        loop {
            let answer = read_line(&self.descriptor, &mut self.partial, deadline, None);
            if matches!(answer, Err(AskError::TimedOut)) {
                self.given_up.push(id);
                return Err(AskError::TimedOut);
            }
            let answered = parsed(&answer?)?;
            let late = self.given_up.iter().position(|old| *old == answered.id);
            match late {
                Some(index) => drop(self.given_up.swap_remove(index)),
                None => return understood(&answered, &id, question),
            }
        }
    }

    fn who(&self) -> &'static str {
        "a program, over a descriptor"
    }
}

/// Starts a command, with the question on its standard input and the answer on its standard output.
#[derive(Debug)]
pub struct ByCommand {
    command: std::ffi::OsString,
    patience: Duration,
    started: Arc<Mutex<Started>>,
}

impl ByCommand {
    /// A line for `sh`. It runs outside every sandbox: it is the user's own.
    pub fn new(command: impl Into<std::ffi::OsString>, patience: Duration) -> Self {
        Self {
            command: command.into(),
            patience,
            started: Arc::default(),
        }
    }

    fn start(&self) -> Result<(ChildStdin, ChildStdout), AskError> {
        let mut started = held(&self.started);
        if started.over {
            return Err(AskError::Gone);
        }
        let child = Command::new("/bin/sh")
            .arg("-c")
            .arg(&self.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = child.map_err(|source| AskError::Kernel { source })?;
        let streams = child.stdin.take().zip(child.stdout.take());
        started.child = Some(child);
        streams.ok_or(AskError::Gone)
    }

    /// Waits for the command's own end.
    fn succeeds(&self, deadline: Instant, held_back: &Held) -> Result<bool, AskError> {
        loop {
            match held(&self.started).child.as_mut().map(Child::try_wait) {
                Some(Ok(Some(status))) => return Ok(status.success()),
                Some(Ok(None)) if Instant::now() < deadline => {}
                Some(Ok(None) | Err(_)) | None => return Ok(false),
            }
            if held_back.came_within(Duration::from_millis(5)) {
                return Err(AskError::Gone);
            }
        }
    }
}

impl Approver for ByCommand {
    fn ask(&mut self, question: &Question<'_>) -> Result<Answer, AskError> {
        let (text, id) = line(question)?;
        // Before the command's end, so that it goes after it: then a signal that waits has its way.
        let held = Held::new()?;
        // Whatever comes of it, it is not left running.
        let _end = Ending(&self.started);
        let (mut input, output) = self.start()?;
        // A program that knows its answer need not read the question.
        let _ = input.write_all(text.as_bytes());
        drop(input);
        let deadline = Instant::now() + self.patience;
        let output = OwnedFd::from(output);
        let answer = read_line(&output, &mut Vec::new(), deadline, Some(&held))?;
        if !self.succeeds(deadline, &held)? {
            return Err(AskError::Answer {
                why: "the program failed",
            });
        }
        let answered = parsed(&answer)?;
        understood(&answered, &id, question)
    }

    fn who(&self) -> &'static str {
        "a command that answers"
    }

    fn leash(&self) -> Option<Leash> {
        Some(Leash(Arc::clone(&self.started)))
    }
}

/// A command that was started to answer.
#[derive(Debug, Default)]
struct Started {
    child: Option<Child>,
    /// Nobody waits for answers any more.
    over: bool,
}

impl Started {
    fn end(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        if matches!(child.try_wait(), Ok(None)) {
            // It has a group of its own, so whatever it started goes with it.
            let group = i32::try_from(child.id()).ok();
            if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn held(started: &Mutex<Started>) -> MutexGuard<'_, Started> {
    started.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the command of one question.
struct Ending<'a>(&'a Mutex<Started>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        held(self.0).end();
    }
}

/// Signals that would end this process now, held back from this thread while a command answers: that
/// command has a process group of its own, in which nobody else ends it.
struct Held {
    before: Mask,
    arrived: SignalFd,
}

impl Held {
    fn new() -> Result<Self, AskError> {
        let kernel = |errno: Errno| AskError::Kernel {
            source: errno.into(),
        };
        let before = Mask::current().map_err(kernel)?;
        // What is blocked is somebody else's to read, and what is ignored ends nobody.
        let ends = |signal: &i32| !before.contains(*signal) && !is_ignored(*signal);
        let ends = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM]
            .map(Signal::as_raw)
            .into_iter()
            .filter(ends)
            .fold(Mask::EMPTY, Mask::with);
        let arrived = SignalFd::new(ends).map_err(kernel)?;
        ends.block().map_err(kernel)?;
        Ok(Self { before, arrived })
    }

    /// Whether one has come. It is left to act once nobody holds it back.
    fn came_within(&self, time: Duration) -> bool {
        let mut waiting = [PollFd::new(&self.arrived, PollFlags::IN)];
        let time = time.try_into().ok();
        poll(&mut waiting, time.as_ref()).is_ok_and(|count| count > 0)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.before.restore();
    }
}

/// While this lives, commands may be started to answer; when it goes the last one is ended and no
/// other is started. For whoever asks while a session runs: nobody answers for one that is over.
#[derive(Debug)]
pub struct Leash(Arc<Mutex<Started>>);

impl Drop for Leash {
    fn drop(&mut self) {
        let mut started = held(&self.0);
        started.over = true;
        started.end();
    }
}

/// The next line; what came of it until the deadline stays in `line`. A signal that is held back ends the
/// waiting.
fn read_line(
    from: &OwnedFd,
    line: &mut Vec<u8>,
    deadline: Instant,
    held: Option<&Held>,
) -> Result<Vec<u8>, AskError> {
    let kernel = |errno: Errno| AskError::Kernel {
        source: errno.into(),
    };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(AskError::TimedOut);
        }
        let source = PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN);
        let signals = held.map(|held| PollFd::new(&held.arrived, PollFlags::IN));
        // What is not there is watched as the source once more.
        let mut waiting = [source.clone(), signals.clone().unwrap_or(source)];
        let left = left.try_into().map_err(|_| AskError::TimedOut)?;
        match poll(&mut waiting, Some(&left)) {
            Ok(0) => return Err(AskError::TimedOut),
            Ok(_) if signals.is_some() && !waiting[1].revents().is_empty() => {
                return Err(AskError::Gone);
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(kernel(errno)),
        }
        // Byte by byte: what comes behind the line is the next question's.
        let mut byte = [0];
        match rustix::io::read(from, &mut byte) {
            Ok(0) => return Err(AskError::Gone),
            Ok(_) if byte == *b"\n" => return Ok(std::mem::take(line)),
            Ok(_) if line.len() == LONGEST => {
                return Err(AskError::Answer {
                    why: "it is too long",
                });
            }
            Ok(_) => line.extend(byte),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(kernel(errno)),
        }
    }
}

fn random() -> Result<String, AskError> {
    let mut bytes = [0; 16];
    let file = File::open("/dev/urandom");
    file.and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|source| AskError::Kernel { source })?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
