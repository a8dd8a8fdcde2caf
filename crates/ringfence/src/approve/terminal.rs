//! Asking a person, on the real terminal.
//!
//! The question is drawn before the command starts, so nothing of the command's can draw over it or
//! beside it. What somebody else wrote is escaped and stands in a frame, and whatever a reader could
//! be wrong about is listed; as long as that is not acknowledged, no key says yes. What was typed
//! before the question was there is thrown away. Everything that is not a yes is a no.

use std::fmt::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ringfence_core::request::{Answer, Scope};
use ringfence_core::shown::{Mark, Shown, marks, shown, shown_bytes};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr,
};

use super::{Approver, AskError, Obstacle, Question};

/// Nobody who types gets to answer a question that appeared under their fingers.
const SETTLE: Duration = Duration::from_millis(400);
/// How long somebody may go on typing before that is given up.
const SETTLE_AT_MOST: Duration = Duration::from_secs(5);
const NARROWEST: usize = 40;
const WIDEST: usize = 100;
const LABEL: usize = 11;
/// How many rows the answers to choose from take, at most.
const KEYS: usize = 4;

/// The terminal of this process.
#[derive(Debug)]
pub struct Terminal {
    descriptor: OwnedFd,
    patience: Duration,
}

impl Terminal {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// [`AskError::Nobody`] if there is none, or if this process is not in its foreground.
    pub fn open(patience: Duration) -> Result<Self, AskError> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let descriptor = openat(CWD, "/dev/tty", flags, Mode::empty());
        let descriptor = descriptor.map_err(|_| AskError::Nobody)?;
        if !in_foreground(&descriptor) {
            return Err(AskError::Nobody);
        }
        Ok(Self {
            descriptor,
            patience,
        })
    }

    fn write(&self, text: &str) -> Result<(), AskError> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match rustix::io::write(&self.descriptor, rest) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(kernel(errno)),
            }
        }
        Ok(())
    }

    fn size(&self) -> Size {
        let size = tcgetwinsize(&self.descriptor).ok();
        let known = |count: u16, otherwise| match count {
            0 => otherwise,
            count => usize::from(count),
        };
        let columns = size.map_or(80, |size| known(size.ws_col, 80));
        Size {
            width: columns.saturating_sub(1).clamp(NARROWEST, WIDEST),
            height: size.map_or(24, |size| known(size.ws_row, 24)),
        }
    }

    /// Waits until nothing has been typed for a moment, and throws away what was.
    fn settle(&self) -> Result<(), AskError> {
        let deadline = Instant::now() + SETTLE_AT_MOST;
        loop {
            tcflush(&self.descriptor, QueueSelector::IFlush).map_err(kernel)?;
            if !self.readable(SETTLE)? {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(AskError::TimedOut);
            }
        }
    }

    fn readable(&self, patience: Duration) -> Result<bool, AskError> {
        let mut waiting = [PollFd::from_borrowed_fd(
            self.descriptor.as_fd(),
            PollFlags::IN,
        )];
        let patience = patience.try_into().map_err(|_| AskError::TimedOut)?;
        match poll(&mut waiting, Some(&patience)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(kernel(errno)),
        }
    }

    /// The next key; everything that is in the queue behind an escape belongs to it.
    fn key(&self, deadline: Instant) -> Result<u8, AskError> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(AskError::TimedOut);
            }
            if !self.readable(left)? {
                continue;
            }
            let mut byte = [0];
            match rustix::io::read(&self.descriptor, &mut byte) {
                Ok(0) => return Err(AskError::Gone),
                Ok(_) => return Ok(byte[0]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(kernel(errno)),
            }
        }
    }

    fn answer(&self, question: &Question<'_>, marks: &[Mark]) -> Result<Answer, AskError> {
        self.settle()?;
        let answers = question.answers();
        let mut seen = marks.is_empty();
        self.write(&keys(question, seen))?;
        let deadline = Instant::now() + self.patience;
        loop {
            let answer = match self.key(deadline)? {
                b'k' if !seen => {
                    seen = true;
                    self.write(&keys(question, seen))?;
                    continue;
                }
                b'o' => Answer::Allow(Scope::Once),
                b't' => Answer::Allow(Scope::Thread),
                b'a' => Answer::Allow(Scope::Always),
                b'n' => Answer::Deny(Scope::Thread),
                b'r' => Answer::Retry,
                // d, Enter, Escape, Ctrl-C, Ctrl-D.
                b'd' | b'\r' | b'\n' | 0x1b | 0x03 | 0x04 => Answer::Deny(Scope::Once),
                _ => continue,
            };
            let harmless = !matches!(answer, Answer::Allow(_));
            if answers.contains(&answer) && (seen || harmless) {
                return Ok(answer);
            }
            self.write("\x07")?;
        }
    }
}

impl Approver for Terminal {
    fn ask(&mut self, question: &Question<'_>) -> Result<Answer, AskError> {
        let modes = Quiet::new(&self.descriptor)?;
        let (text, marks) = drawn(question, self.size());
        self.write(&text)?;
        let answer = self.answer(question, &marks);
        let said = match &answer {
            Ok(answer) => format!("{answer}\r\n"),
            Err(error) => format!("denied: {error}\r\n"),
        };
        // The answer counts even if it cannot be repeated.
        let _ = self.write(&said);
        let _ = tcflush(&self.descriptor, QueueSelector::IFlush);
        drop(modes);
        answer
    }

    fn who(&self) -> &'static str {
        "whoever sits at the terminal"
    }
}

fn keys(question: &Question<'_>, seen: bool) -> String {
    if !seen {
        return "└ read what is marked with `careful`, then press k; any other answer is [d]eny: "
            .to_owned();
    }
    let mut out = String::from("\r\n└ ");
    let scopes = question.scopes();
    match question.obstacle {
        Some(Obstacle {
            tried, again: true, ..
        }) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "[r]etry (tried {tried}x), ");
            out.push_str("go on without it [o]nce");
        }
        Some(_) => out.push_str("go on without it [o]nce"),
        None => out.push_str("allow [o]nce"),
    }
    if scopes.contains(&Scope::Thread) {
        out.push_str(", for this [t]hread");
    }
    if scopes.contains(&Scope::Always) {
        out.push_str(", [a]lways");
    }
    out.push_str("; or [d]eny");
    if question.thread.is_some() {
        out.push_str(", [n]ever in this thread");
    }
    out.push_str(" (default: deny): ");
    out
}

/// How much of a terminal is written on.
#[derive(Clone, Copy, Debug)]
struct Size {
    width: usize,
    height: usize,
}

/// The whole question in a frame, and what is marked in it.
fn drawn(question: &Question<'_>, Size { width, height }: Size) -> (String, Vec<Mark>) {
    let command = question.shown_command();
    let directory = shown_bytes(question.directory.as_os_str().as_encoded_bytes());
    let permissions = question.shown_permissions();
    let reason = question.request.reason.as_deref().map(shown);
    let obstacle = question.obstacle.map(|obstacle| shown(obstacle.why));
    let all: Vec<&Shown> = [&command, &directory]
        .into_iter()
        .chain(&permissions)
        .chain(&reason)
        .chain(&obstacle)
        .collect();
    let mut marks = marks(all);
    let heading = match question.obstacle {
        Some(_) => "the sandbox for this command cannot be made",
        None => "this command asks for more than it may",
    };
    let mut out = format!("\r\n┌ ringfence: {heading}\r\n");
    row(&mut out, "command", &command.text, width);
    row(&mut out, "directory", &directory.text, width);
    if let Some(reason) = &reason {
        row(&mut out, "they say", &reason.text, width);
        row(
            &mut out,
            "",
            "(the words of whoever asks; nobody checked them)",
            width,
        );
    }
    if let Some(obstacle) = &obstacle {
        row(&mut out, "because", &obstacle.text, width);
    }
    // Last, so that nothing that is long can push it out of sight.
    for (index, permission) in permissions.iter().enumerate() {
        let label = match (index, question.obstacle) {
            (0, Some(_)) => "instead",
            (0, None) => "wants to",
            _ => "",
        };
        row(&mut out, label, &permission.text, width);
    }
    if question.obstacle.is_some() {
        let what = "(nothing is held back then; it is only tracked)";
        row(&mut out, "", what, width);
    }
    // Many short words are as long as one: whatever has left the screen was not seen.
    let rows = out.lines().count() + marks.len() + KEYS;
    if rows > height && !marks.contains(&Mark::Long) {
        marks.push(Mark::Long);
    }
    for mark in &marks {
        row(&mut out, "careful", &mark.to_string(), width);
    }
    (out, marks)
}

fn row(out: &mut String, label: &str, text: &str, width: usize) {
    let room = width - LABEL - 2;
    // Writing to a String cannot fail.
    let _ = write!(out, "│ {label:<LABEL$}");
    let mut taken = 0;
    for character in text.chars() {
        taken += columns(character);
        if taken > room {
            let _ = write!(out, "\r\n│ {:<LABEL$}", "");
            taken = columns(character);
        }
        out.push(character);
    }
    out.push_str("\r\n");
}

/// How many columns a character takes at most. A line that is too short does no harm; one that the
/// terminal itself breaks stands outside of the frame.
fn columns(character: char) -> usize {
    const FIRST_THAT_MAY_BE_WIDE: char = '\u{1100}';
    1 + usize::from(character >= FIRST_THAT_MAY_BE_WIDE)
}

/// A terminal that neither echoes nor waits for lines, until this goes.
struct Quiet<'a> {
    descriptor: &'a OwnedFd,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn new(descriptor: &'a OwnedFd) -> Result<Self, AskError> {
        let before = tcgetattr(descriptor).map_err(kernel)?;
        let mut modes = before.clone();
        modes.local_modes -=
            LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(descriptor, OptionalActions::Flush, &modes).map_err(kernel)?;
        Ok(Self { descriptor, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // Whoever cannot have the modes back cannot be told either.
        let _ = tcsetattr(self.descriptor, OptionalActions::Flush, &self.before);
    }
}

/// Whether this process may use its terminal: one in the background would be stopped.
fn in_foreground(terminal: &OwnedFd) -> bool {
    let Ok(foreground) = rustix::termios::tcgetpgrp(terminal) else {
        return false;
    };
    let foreground = foreground.as_raw_nonzero().get();
    #[cfg(target_os = "linux")]
    let own = own_group();
    #[cfg(not(target_os = "linux"))]
    let own = Some(rustix::process::getpgrp().as_raw_nonzero().get());
    own == Some(foreground)
}

/// From /proc, where a group of another pid namespace is a plain zero.
#[cfg(target_os = "linux")]
fn own_group() -> Option<i32> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

fn kernel(errno: Errno) -> AskError {
    AskError::Kernel {
        source: errno.into(),
    }
}
