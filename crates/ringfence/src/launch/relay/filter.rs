//! Standard output and error through a filter, where there is no terminal to lend.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use ringfence_sys::Errno;
use ringfence_sys::ready::{PollFd, PollFlags};
use rustix::fs::{FileType, OFlags, fcntl_setfl, fstat};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{stderr, stdout};

use super::Rest;
use super::buffer::Flow;
use super::show::{Output, Shown};
use super::user::Screen;
use crate::launch::beside::Beside;
use crate::launch::{Observer, Report, Running, Signals, Stream, Streams, pipes};

/// How long a writer takes to go that has let go of its pipe.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Two pipes for what a command prints, and the filters behind them.
#[derive(Debug)]
pub struct Filter {
    output: Stretch,
    error: Stretch,
}

/// One stream.
#[derive(Debug)]
struct Stretch {
    source: Option<OwnedFd>,
    /// The command's end, until it is given away.
    inner: Option<OwnedFd>,
    way: Output,
    target: Target,
    /// Why what was printed is lost, if it is.
    refusal: Option<Errno>,
}

#[derive(Debug)]
enum Target {
    /// Closed, or gone.
    Nowhere,
    /// Writing to it never waits.
    Plain(OwnedFd),
    Screen(Screen),
}

impl Filter {
    /// Opens the pipes.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn new(shown: Shown) -> io::Result<Self> {
        Ok(Self {
            output: Stretch::open(stdout(), shown)?,
            error: Stretch::open(stderr(), shown)?,
        })
    }

    /// The streams for the command; standard input is the caller's.
    pub fn streams(&mut self) -> Streams {
        let given = |stretch: &mut Stretch| {
            let inner = stretch.inner.take();
            inner.map_or(Stream::Inherited, Stream::Given)
        };
        Streams {
            output: given(&mut self.output),
            error: given(&mut self.error),
            ..Streams::default()
        }
    }

    /// Waits for whoever reads, as every program does that prints; but not if it is told to end.
    fn finish(&mut self, signals: &Signals) {
        for stretch in [&mut self.output, &mut self.error] {
            if stretch.drain(signals) == Rest::Given {
                stretch.way.finish();
                stretch.drain(signals);
            }
            while let Target::Screen(screen) = &mut stretch.target
                && !screen.finish(Duration::from_millis(20))
                && !told_to_end(signals)
            {}
            if let Target::Screen(screen) = &mut stretch.target {
                stretch.refusal = stretch.refusal.or_else(|| screen.refusal());
            }
        }
    }

    /// Which stream could not be written, and why not. A reader that has gone away is no reason: it had
    /// all it wanted, and the command heard of it.
    pub fn unwritten(&self) -> Option<(&'static str, io::Error)> {
        let streams = [
            ("standard output", &self.output),
            ("standard error", &self.error),
        ];
        streams.into_iter().find_map(|(name, stretch)| {
            let refusal = stretch.refusal.filter(|errno| *errno != Errno::PIPE)?;
            Some((name, refusal.into()))
        })
    }
}

fn told_to_end(signals: &Signals) -> bool {
    // Whoever cannot be asked is not waited for.
    !matches!(signals.ask_to_end(), Ok(None))
}

impl Stretch {
    fn open(stream: BorrowedFd<'_>, shown: Shown) -> io::Result<Self> {
        let (source, inner) = pipes::pipe()?;
        fcntl_setfl(&source, OFlags::NONBLOCK)?;
        Ok(Self {
            source: Some(source),
            inner: Some(inner),
            way: Output::new(shown),
            target: Target::open(stream)?,
            refusal: None,
        })
    }

    /// Moves what can be moved.
    fn pump(&mut self) -> Flow {
        let mut moved = Flow::Waits;
        if let Some(source) = &self.source {
            match self.way.fill(source) {
                Flow::Closed(_) => self.source = None,
                Flow::Moved => moved = Flow::Moved,
                Flow::Waits => {}
            }
        }
        match self.write() {
            Flow::Waits => moved,
            other => other,
        }
    }

    /// Moves all there is.
    fn drain(&mut self, signals: &Signals) -> Rest {
        loop {
            match self.pump() {
                Flow::Closed(_) => return Rest::Abandoned,
                Flow::Moved => {}
                Flow::Waits if self.way.is_empty() => return Rest::Given,
                Flow::Waits if told_to_end(signals) => return Rest::Abandoned,
                Flow::Waits => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn write(&mut self) -> Flow {
        let flow = match &mut self.target {
            Target::Nowhere => {
                self.way.clear();
                return Flow::Waits;
            }
            Target::Plain(file) => self.way.drain(&*file),
            Target::Screen(screen) => match screen.target() {
                Some(target) => self.way.drain(target),
                None => Flow::Waits,
            },
        };
        if let Flow::Closed(errno) = flow {
            let behind = match &mut self.target {
                // Its own end has gone; it knows why.
                Target::Screen(screen) => {
                    screen.finish(AT_ONCE);
                    screen.refusal()
                }
                Target::Nowhere | Target::Plain(_) => Some(errno),
            };
            self.refusal = self.refusal.or(behind);
            // Nobody reads: the command hears of it when it prints again, as it always would.
            self.target = Target::Nowhere;
            self.source = None;
        }
        flow
    }

    fn watched<'a>(&'a self, watched: &mut Vec<PollFd<'a>>) {
        if let Some(source) = self.source.as_ref().filter(|_| self.way.has_room()) {
            watched.push(PollFd::new(source, PollFlags::IN));
        }
        if let Target::Screen(screen) = &self.target
            && let Some(target) = screen.target().filter(|_| !self.way.is_empty())
        {
            watched.push(PollFd::from_borrowed_fd(target, PollFlags::OUT));
        }
    }
}

impl Target {
    fn open(stream: BorrowedFd<'_>) -> io::Result<Self> {
        const ABOVE_STANDARD: i32 = 3;
        let Ok(found) = fstat(stream) else {
            return Ok(Self::Nowhere);
        };
        Ok(match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Self::Plain(fcntl_dupfd_cloexec(stream, ABOVE_STANDARD)?),
            _ => Self::Screen(Screen::open(stream)?),
        })
    }
}

impl Beside for Filter {
    fn watched<'a>(&'a self, watched: &mut Vec<PollFd<'a>>) {
        self.output.watched(watched);
        self.error.watched(watched);
    }

    fn patience(&self) -> Option<Duration> {
        None
    }

    fn serve(&mut self, _session: &Running) -> io::Result<()> {
        self.output.pump();
        self.error.pump();
        Ok(())
    }

    fn stopped(&mut self, _session: &Running) -> io::Result<()> {
        Ok(())
    }
}

impl Running {
    /// Waits until the session is over, passes signals on, and filters what it prints.
    ///
    /// # Errors
    ///
    /// The kernel's answer; the session has been ended.
    pub fn wait_filtering(self, filter: &mut Filter, signals: &Signals) -> io::Result<Report> {
        self.wait_filtering_observed(filter, signals, &mut ())
    }

    /// The same, with somebody who is told how far it is.
    ///
    /// # Errors
    ///
    /// The kernel's answer; the session has been ended.
    pub fn wait_filtering_observed(
        self,
        filter: &mut Filter,
        signals: &Signals,
        observer: &mut dyn Observer,
    ) -> io::Result<Report> {
        let report = self.watch(Some(signals), filter, observer);
        filter.finish(signals);
        report
    }
}
