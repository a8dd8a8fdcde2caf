//! A session in the hands of the program that started it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{Winsize, tcsetwinsize};

use crate::event::{Ended, Event, Happened, Started};
use crate::launch::{Cause, News, Report, Served, Size};
use crate::report::{Planned, SessionName};
use crate::start::Begun;

/// A session that runs: a command and all it has started.
///
/// Dropping it ends the session, and returns when everything that the command has started is gone.
/// The session does not need
/// anybody to wait: a thread of its own serves it. When the program that holds it ends, for whatever
/// reason, so does the session.
///
/// # Examples
///
/// ```no_run
/// use std::io::Read;
/// use ringfence::{Policy, Sandbox, Stdio};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::agent("."))?;
/// let mut session = sandbox.command("make").stdout(Stdio::piped()).spawn()?;
/// let mut text = String::new();
/// if let Some(mut stdout) = session.stdout.take() {
///     stdout.read_to_string(&mut text)?;
/// }
/// let report = session.wait()?;
/// println!("{text}{:?}", report.cause);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Running {
    /// The other end of its standard input, if that is a pipe.
    pub stdin: Option<ChildStdin>,
    /// The other end of its standard output, if that is a pipe.
    pub stdout: Option<ChildStdout>,
    /// The other end of its standard error, if that is a pipe.
    pub stderr: Option<ChildStderr>,
    /// The other end of its terminal, if it has one of its own.
    pub terminal: Option<Terminal>,
    size: Option<OwnedFd>,
    served: Served,
    planned: Arc<Planned>,
    name: Arc<SessionName>,
    /// What was heard while somebody waited for the end.
    unread: VecDeque<Event>,
    report: Option<Report>,
}

/// How many events are kept for somebody who only waits for the end.
const MOST_UNREAD: usize = 4096;

impl Running {
    pub(crate) fn new(
        mut served: Served,
        Begun {
            command,
            planned,
            name,
            ends: [stdin, stdout, stderr],
        }: Begun,
    ) -> Self {
        let terminal = served.take_terminal();
        let planned = Arc::new(planned);
        let mut words = vec![command.program];
        words.extend(command.arguments);
        let name = Arc::new(name);
        let started = Happened::Started(Box::new(Started {
            command: words,
            directory: command.directory,
            process: served.id(),
            planned: Arc::clone(&planned),
        }));
        let started = Event {
            session: Arc::clone(&name),
            ..Event::now(started)
        };
        Self {
            stdin: stdin.map(ChildStdin::from),
            stdout: stdout.map(ChildStdout::from),
            stderr: stderr.map(ChildStderr::from),
            // Whoever takes the terminal away can still be told a new size by us.
            size: terminal.as_ref().and_then(|end| end.try_clone().ok()),
            terminal: terminal.map(|end| Terminal(File::from(end))),
            served,
            planned,
            name,
            unread: VecDeque::from([started]),
            report: None,
        }
    }

    /// The number of the session's first process on this host, for display. It is a child of the
    /// calling process that only this handle waits for.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let session = sandbox.command("sleep").arg("60").spawn()?;
    /// assert!(session.id() > 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn id(&self) -> i32 {
        self.served.id()
    }

    /// Waits until the session is over. Standard input is closed first, as with
    /// [`std::process::Child::wait`].
    ///
    /// # Errors
    ///
    /// The kernel's answer; the session has been ended.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let mut session = sandbox.command("sh").args(["-c", "exit 3"]).spawn()?;
    /// assert_eq!(session.wait()?.cause.exit_status(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&mut self) -> io::Result<Report> {
        self.stdin = None;
        while self.report.is_none() {
            let news = self.served.news();
            self.hear(news)?;
        }
        self.over()
    }

    /// The report, if the session is over.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let mut session = sandbox.command("sleep").arg("60").spawn()?;
    /// assert!(session.try_wait()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_wait(&mut self) -> io::Result<Option<Report>> {
        while self.report.is_none() {
            match self.served.try_news() {
                Some(news) => self.hear(Some(news))?,
                None => return Ok(None),
            }
        }
        self.over().map(Some)
    }

    /// Ends the session: everything in it, whatever it does about signals. Returns when nothing is
    /// left; the cause is [`Cause::Ended`], unless the command was faster.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Cause, Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let mut session = sandbox.command("sleep").arg("60").spawn()?;
    /// assert_eq!(session.kill()?.cause, Cause::Ended);
    /// # Ok(())
    /// # }
    /// ```
    pub fn kill(&mut self) -> io::Result<Report> {
        self.served.end();
        self.wait()
    }

    /// Sends a signal to the command.
    ///
    /// ```no_run
    /// # use ringfence::{Policy, Sandbox, Signal};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let mut session = sandbox.command("sleep").arg("1000").spawn()?;
    /// session.signal(Signal::INT);
    /// println!("{:?}", session.wait()?.cause);
    /// # Ok(())
    /// # }
    /// ```
    pub fn signal(&self, signal: Signal) {
        self.served.signal(signal);
    }

    /// Tells the session's own terminal its new size; its foreground job gets `SIGWINCH`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] if the session has no terminal of its own.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox, Size};
    /// # let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let mut session = sandbox.command("sleep").arg("60").pty(Size::default()).spawn()?;
    /// session.resize(Size { rows: 50, columns: 132 })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn resize(&self, size: Size) -> io::Result<()> {
        let terminal = self.size.as_ref();
        set_size(terminal.ok_or(io::ErrorKind::Unsupported)?, size)
    }

    /// What happens to the session, one after the other, until it is over. Waits for each.
    ///
    /// The first event is its start and the last its end; between them is what it was denied, what
    /// was decided about it, where it was stopped, and which limit ended it.
    ///
    /// ```no_run
    /// # use ringfence::{Happened, Policy, Sandbox};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let mut session = sandbox.command("make").spawn()?;
    /// for event in session.events() {
    ///     match event.happened {
    ///         Happened::Denied(denial) => println!("{}: {}", denial.target, denial.fix),
    ///         Happened::Limited(limit) => println!("it reached its limit of {limit}"),
    ///         Happened::Ended(ended) => println!("ended: {:?}", ended.report.cause),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(&mut self) -> Events<'_> {
        Events(self)
    }

    /// What has happened and was not told yet, without waiting.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    ///
    /// ```no_run
    /// # use ringfence::{Policy, Sandbox};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let mut session = sandbox.command("make").spawn()?;
    /// while let Some(event) = session.try_event()? {
    ///     println!("{}", event.to_json()?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_event(&mut self) -> io::Result<Option<Event>> {
        if self.unread.is_empty()
            && let Some(news) = self.served.try_news()
        {
            self.hear(Some(news))?;
        }
        Ok(self.unread.pop_front())
    }

    /// Readable when [`try_event`](Self::try_event) may have something new to tell: for poll loops
    /// that have other things to wait for. Ask until it has nothing, or it stays readable.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// use std::os::fd::AsRawFd;
    ///
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let session = sandbox.command("true").spawn()?;
    /// // For `poll`, `epoll` or an event loop of somebody else's.
    /// let number = session.events_fd().as_raw_fd();
    /// # assert!(number > 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn events_fd(&self) -> BorrowedFd<'_> {
        self.served.bell()
    }

    /// Whether its end was told, as the last event.
    #[cfg(feature = "tokio")]
    pub(crate) fn has_told_all(&self) -> bool {
        self.report.is_some() && self.unread.is_empty()
    }

    fn hear(&mut self, news: Option<News>) -> io::Result<()> {
        match news {
            Some(News::Ended(report)) => {
                let report = (*report)?;
                let ended = Ended {
                    report: report.clone(),
                    planned: Arc::clone(&self.planned),
                };
                self.unread.push_back(Event {
                    at: report.ended,
                    session: Arc::clone(&self.name),
                    happened: Happened::Ended(Box::new(ended)),
                });
                self.report = Some(report);
                Ok(())
            }
            Some(News::Happened(mut event)) => {
                event.session = Arc::clone(&self.name);
                if self.unread.len() < MOST_UNREAD {
                    self.unread.push_back(event);
                }
                Ok(())
            }
            // It has said before that it is over, or it never can.
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn over(&self) -> io::Result<Report> {
        let report = self.report.clone();
        report.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl AsFd for Running {
    /// Readable once the session is over: for poll loops that have other things to wait for.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.served.as_fd()
    }
}

/// See [`Running::events`].
///
/// # Examples
///
/// ```
/// use ringfence::{Happened, Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// let mut session = sandbox.command("true").spawn()?;
/// let events: Vec<_> = session.events().collect();
/// assert!(matches!(events[0].happened, Happened::Started(_)));
/// assert!(matches!(events[events.len() - 1].happened, Happened::Ended(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Events<'a>(&'a mut Running);

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let Self(running) = self;
        if running.unread.is_empty() && running.report.is_none() {
            let news = running.served.news();
            running.hear(news).ok()?;
        }
        running.unread.pop_front()
    }
}

/// The outer end of a session's own terminal: what is written to it is typed, and what is read from
/// it is shown. Reading ends when the session does.
///
/// # Examples
///
/// ```no_run
/// use std::io::{Read, Write};
/// use ringfence::{Policy, Sandbox, Size};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::terminal("."))?;
/// let mut session = sandbox.command("sh").pty(Size::default()).spawn()?;
/// if let Some(mut terminal) = session.terminal.take() {
///     terminal.write_all(b"stty size; exit\n")?;
///     terminal.resize(Size { rows: 50, columns: 132 })?;
///     let mut shown = String::new();
///     terminal.read_to_string(&mut shown)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Terminal(File);

impl Terminal {
    /// Tells it its new size; its foreground job gets `SIGWINCH`.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        set_size(&self.0, size)
    }

    /// Another handle to the same terminal: for a program that reads on one thread and types on
    /// another.
    ///
    /// # Errors
    ///
    /// For want of descriptors.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::io::{Read, Write};
    /// # use ringfence::{Policy, Sandbox, Size};
    /// # let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let mut session = sandbox.command("cat").pty(Size::default()).spawn()?;
    /// if let Some(mut screen) = session.terminal.take() {
    ///     let mut keyboard = screen.try_clone()?;
    ///     // On another thread, as a rule. The last byte is Ctrl-D.
    ///     keyboard.write_all(b"typed\n\x04")?;
    ///     let mut shown = String::new();
    ///     screen.read_to_string(&mut shown)?;
    ///     assert_eq!(shown.matches("typed").count(), 2);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl Read for Terminal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            // Nobody has the inner end open any more.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => Ok(0),
            other => other,
        }
    }
}

impl Write for Terminal {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Terminal> for OwnedFd {
    fn from(terminal: Terminal) -> Self {
        terminal.0.into()
    }
}

fn set_size(terminal: impl AsFd, size: Size) -> io::Result<()> {
    Ok(tcsetwinsize(
        terminal,
        Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )?)
}

impl Report {
    /// Whether the command exited with status 0.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// assert!(sandbox.command("true").status()?.success());
    /// assert!(!sandbox.command("false").status()?.success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn success(&self) -> bool {
        self.cause == Cause::Exited { status: 0 }
    }

    /// Whether every rule of the policy held.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let report = sandbox.command("true").status()?;
    /// assert!(report.is_fully_enforced(), "{:?}", report.gaps);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_fully_enforced(&self) -> bool {
        self.gaps.is_empty()
    }
}
